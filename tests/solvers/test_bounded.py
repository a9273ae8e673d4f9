"""Coefficients that may not be negative: every solver, every form, a gap that holds."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from toprank import IRPush, PNormPush, ProperRanker, PushRanker, blocks
from toprank.solvers import free_gradient, penalty_gap

SOLVERS = ("newton", "lbfgs", "coordinate")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * [1, 3, 0.2, 1, 1, 5]
    slope = np.array([1.0, -0.5, 4.0, -1.0, 0.0, 0.2])
    return X, (X @ slope + rng.normal(size=300) > 1.0).astype(int)


def reference(value_grad, d, free=0):
    found = optimize.minimize(
        value_grad,
        np.zeros(d + free),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * d + [(None, None)] * free,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    return found.fun, found.x


def push_by_hand(X, y, p, alpha):
    def value_grad(coef):
        f = X @ coef
        up, down = np.exp(-f[y == 1]), np.exp(p * f[y == 0])
        value = np.log(np.mean(up)) + np.log(np.mean(down)) / p + alpha / 2 * coef @ coef
        grad = -X[y == 1].T @ up / up.sum() + X[y == 0].T @ down / down.sum() + alpha * coef
        return value, grad

    return value_grad


@pytest.mark.parametrize("p", [1.0, 4.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_minimum_that_scipy_finds(table, solver, p):
    X, y = table
    best, coef = reference(push_by_hand(X, y, p, 1e-2), 6)
    rounds = {"max_iter": 5000} if solver == "coordinate" else {}
    ranker = PNormPush(p, alpha=1e-2, positive=True, solver=solver, tol=1e-8, **rounds).fit(X, y)
    assert np.all(ranker.coef_ >= 0)
    assert np.any(ranker.coef_ == 0)
    np.testing.assert_allclose(ranker.objective_, best, rtol=1e-9)
    np.testing.assert_allclose(ranker.coef_[0], coef, atol=1e-5)
    assert 0 <= ranker.optimality_gap_ < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_gap_of_an_unfinished_fit_bounds_what_is_left(table, solver):
    X, y = table
    best, _ = reference(push_by_hand(X, y, 4.0, 1e-2), 6)
    with pytest.warns() if solver != "coordinate" else np.errstate():
        ranker = PNormPush(alpha=1e-2, positive=True, solver=solver, max_iter=2).fit(X, y)
    left = ranker.objective_ - best
    assert -1e-12 <= left <= ranker.optimality_gap_ + 1e-12


@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(loss="logistic"),
        PNormPush(loss="hinge", alpha=1e-2),
        PNormPush(np.inf, loss="squared_hinge", alpha=1e-2),
        PushRanker("exponential", alpha=1e-2),
        PushRanker(end="both"),
        IRPush(alpha=1.0),
        ProperRanker(),
        ProperRanker("squared", solver="lbfgs"),
    ],
    ids=str,
)
def test_every_price_and_loss_keeps_the_bound_and_its_certificate(ranker, table):
    X, y = table
    fitted = ranker.set_params(positive=True).fit(X, y)
    assert np.all(fitted.coef_ >= 0)
    assert fitted.coef_[0, 3] == 0  # against the label: held at its bound
    assert fitted.optimality_gap_ <= 1e-3 * max(1.0, abs(fitted.objective_))


def test_a_bound_that_nothing_touches_changes_nothing(table):
    X, y = table
    signs = np.sign(PNormPush().fit(X, y).coef_[0])
    free, bound = (PNormPush(positive=b, tol=1e-9).fit(X * signs, y) for b in (False, True))
    np.testing.assert_allclose(bound.coef_, free.coef_, rtol=1e-6)


def test_columns_that_all_point_down_get_no_weight(table):
    X, y = table
    X = -np.abs(X) * y[:, None]
    ranker = PNormPush(positive=True).fit(X, y)
    assert np.all(ranker.coef_ == 0)
    assert ranker.optimality_gap_ == 0


def test_blocks_and_the_certificate_of_all_rows_agree(table):
    X, y = table
    source = blocks.from_arrays(X, y, block_rows=50)
    ranker = PNormPush(alpha=1e-2, positive=True).fit_blocks(source)
    np.testing.assert_allclose(
        ranker.coef_, PNormPush(alpha=1e-2, positive=True).fit(X, y).coef_, rtol=1e-9
    )
    found = ranker.certify_blocks(source)
    assert found.gap < 1e-8
    assert found.coef_error < 1e-4


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_classes_that_a_score_within_the_bounds_separates_are_named_as_the_cause(solver):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    with pytest.warns(ConvergenceWarning, match=r"(?s)separable.*alpha=0"):
        ranker = PNormPush(alpha=0.0, positive=True, solver=solver).fit(X, y)
    assert np.all(ranker.coef_ >= 0)
    scores = ranker.decision_function(X)
    assert scores[y].min() > scores[~y].max()


def test_of_many_rows_some_give_the_start_and_all_of_them_the_answer():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3))
    y = X @ [1.0, -0.5, 0.3] + rng.logistic(size=20_000) > 1
    given = {"alpha": 1e-2, "positive": True, "tol": 1e-9}
    newton = PNormPush(solver="newton", **given).fit(X, y)
    other = PNormPush(solver="lbfgs", **given).fit(X, y)
    np.testing.assert_allclose(newton.coef_, other.coef_, atol=1e-6)
    assert newton.coef_[0, 1] == 0 and newton.n_iter_ <= 4  # from zero it takes more


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_a_tolerance_below_rounding_ends_where_nothing_falls_any_more(table, solver):
    X, y = table
    best, _ = reference(push_by_hand(X, y, 4.0, 1e-2), 6)
    ranker = PNormPush(alpha=1e-2, positive=True, solver=solver, tol=1e-30).fit(X, y)
    assert ranker.n_iter_ < 200
    np.testing.assert_allclose(ranker.objective_, best, rtol=1e-9)


def test_the_gap_is_the_best_of_a_quadratic_over_the_room_left():
    gradient, penalty = np.array([1.0, 1.0, -2.0]), np.array([0.5, 0.5, 1.0])
    room = np.array([0.1, np.inf, 0.0])
    steps = np.linspace(-10, 10, 200_001)
    by_hand = sum(
        np.max((g * steps - a / 2 * steps**2)[steps <= r])
        for g, a, r in zip(gradient, penalty, room, strict=True)
    )
    np.testing.assert_allclose(penalty_gap(gradient, penalty, room), by_hand, rtol=1e-6)
    assert penalty_gap(np.array([1.0]), 0.0, np.array([2.0])) == 2.0
    assert penalty_gap(np.array([-1.0]), 0.0, np.array([2.0])) == np.inf


def test_a_bound_holds_only_against_a_slope_that_points_beyond_it():
    coef, grad, lower = np.array([0.0, 0.0, 1.0]), np.array([2.0, -3.0, 4.0]), np.zeros(3)
    np.testing.assert_array_equal(free_gradient(coef, grad, lower), [0.0, -3.0, 4.0])
