"""Coefficients that may not be negative, of fewer rows than columns: the minimum of SciPy."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from toprank import PNormPush
from toprank.objective import LabelledData, SweptProblem, Task
from toprank.solvers import bounded
from toprank.solvers.result import LEFT


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 120)) < 0.4, rng.normal(size=(40, 120)), 0.0)
    return X, X[:, :5].sum(axis=1) + rng.normal(size=40) > 1.0


def minimum(X, y, p, alpha):
    def value_grad(coef):
        f = X @ coef
        up, down = np.exp(-f[y] + f[y].min()), np.exp(p * (f[~y] - f[~y].max()))
        value = np.log(np.mean(up)) - f[y].min() + np.log(np.mean(down)) / p + f[~y].max()
        grad = -X[y].T @ up / up.sum() + X[~y].T @ down / down.sum()
        return value + alpha / 2 * coef @ coef, grad + alpha * coef

    d = X.shape[1]
    given = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 100_000}
    found = optimize.minimize(
        value_grad, np.zeros(d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * d, options=given
    )
    return found.fun, found.x


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_the_minimum_is_the_one_that_scipy_finds(wide, p, alpha):
    X, y = wide
    best, coef = minimum(X, y, p, alpha)
    fit = PNormPush(p, alpha=alpha, positive=True, tol=1e-8).fit(X, y)
    assert np.all(fit.coef_ >= 0) and np.any(fit.coef_ == 0)
    assert fit.objective_ == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(fit.coef_[0], coef, atol=1e-3 * coef.max())
    assert 0 <= fit.optimality_gap_ <= 1e-6
    assert len(fit.history_) == fit.n_iter_


def test_a_system_of_the_size_of_the_rows_is_that_of_the_columns(wide):
    X, y = wide
    rng = np.random.default_rng(1)
    problem = SweptProblem(LabelledData.of_arrays(X, y), Task.build(p=4.0, alpha=0.1))
    coef = 0.1 * rng.random(problem.size)
    by_rows, whole = bounded._bend_at(problem, coef), bounded._Whole(problem.hessian(coef))
    assert isinstance(by_rows, bounded._ByRows)
    target, extra = rng.normal(size=(2, problem.size)) ** 2
    np.testing.assert_allclose(by_rows.times(target), whole.times(target), rtol=1e-6)
    moving = rng.random(problem.size) < 0.5
    found = by_rows.solve(target, moving, extra)
    np.testing.assert_allclose(found, whole.solve(target, moving, extra), rtol=1e-6, atol=1e-9)
    assert not np.any(found[~moving])


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_newton_goes_on_where_gradients_take_long(wide, solver, monkeypatch):
    X, y = wide
    monkeypatch.setattr(bounded, "_BEFORE_ROWS", 5)
    best, _ = minimum(X, y, 4.0, 1.0)
    fit = PNormPush(alpha=1.0, positive=True, solver=solver, tol=1e-8).fit(X, y)
    assert fit.objective_ == pytest.approx(best, abs=1e-9)
    assert fit.n_iter_ < 60


def test_the_whole_number_of_iterations_is_told_where_two_solvers_share_them(wide, monkeypatch):
    X, y = wide
    monkeypatch.setattr(bounded, "_BEFORE_ROWS", 5)
    with pytest.warns(ConvergenceWarning, match="no convergence in 7 iterations"):
        fit = PNormPush(alpha=1.0, positive=True, solver="lbfgs", tol=1e-12, max_iter=7).fit(X, y)
    assert fit.n_iter_ == 7


@pytest.mark.parametrize(("first", "left"), [(5, True), (20, False)])
def test_a_run_is_left_far_from_the_minimum_and_finished_near_to_it(wide, first, left, monkeypatch):
    X, y = wide
    monkeypatch.setattr(bounded, "_BEFORE_ROWS", first)
    problem = SweptProblem(LabelledData.of_arrays(X, y), Task.build(p=4.0, alpha=1.0))
    zero = np.zeros(problem.size)
    found = bounded.bounded_lbfgs(
        problem, zero, lower=zero, tol=1e-9, leaves=lambda n, _: n >= first
    )
    assert (found.message == LEFT) is left and found.converged is not left
    assert left or found.n_iter <= first + 5


@pytest.mark.parametrize("p", [4.0, 64.0])
def test_a_warm_start_far_from_the_minimum_goes_along_the_penalties(p):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 120))
    s = X[:, :5].sum(axis=1) + rng.normal(size=60)
    y = s > np.quantile(s, 0.7)
    fit = PNormPush(p, alpha=1.0, positive=True, solver="lbfgs", warm_start=True).fit(X, y)
    fit.set_params(alpha=1e-4).fit(X, y)
    assert fit.optimality_gap_ <= 1e-8 * abs(fit.objective_)
    assert fit.n_iter_ < 100


def test_a_warm_start_that_newton_brings_home_is_not_left(wide):
    X, y = wide
    fit = PNormPush(alpha=1e-1, positive=True, solver="lbfgs", warm_start=True).fit(X, y)
    fit.set_params(alpha=1e-2).fit(X, y)
    assert fit.optimality_gap_ <= 1e-6
    assert fit.n_iter_ <= 10


def test_levels_of_a_maximum_take_few_systems(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 200)), rng.random(60) < 0.3
    systems = []
    bend_at = bounded._bend_at
    monkeypatch.setattr(bounded, "_bend_at", lambda *a: systems.append(a) or bend_at(*a))
    fit = PNormPush(np.inf, alpha=10.0, positive=True, solver="lbfgs").fit(X, y)
    assert 0 <= fit.optimality_gap_ <= 1e-4 * max(1.0, abs(fit.objective_))
    assert len(systems) <= 8
