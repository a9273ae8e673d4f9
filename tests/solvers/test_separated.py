"""Rows whose classes are told apart: the path of penalties ends at the minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from toprank import PNormPush, PushRanker
from toprank.objective import LabelledData, SweptProblem, Task
from toprank.solvers import SOLVERS, separated
from toprank.solvers.newton import newton
from toprank.solvers.result import Log
from toprank.solvers.separated import Minimum, along_penalties


def apart(n=80, d=120, seed=0):
    """Fewer rows than columns: any classes can be told apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n) > 0.8


def problem_of_rows(X, y, p, weight=None, end="top", alpha=1e-2):
    data = LabelledData.of_arrays(X, y, weight)
    return SweptProblem(data, Task.build(p=p, alpha=alpha, end=end))


def direct(problem):
    """Where Newton's method ends that is left to itself."""
    found = newton(problem, np.zeros(problem.size), tol=1e-9, max_iter=5000)
    assert found.converged
    return found


@pytest.fixture
def left(monkeypatch):
    """What is noted whenever a fit takes the path."""
    found = []
    name = "toprank.solvers.smooth.along_penalties"
    monkeypatch.setattr(name, lambda *a, **k: found.append(1) or along_penalties(*a, **k))
    return found


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weights", "bottom"])
def test_the_path_ends_at_the_minimum(p, solver, kind, left):
    X, y = apart()
    weight = np.linspace(0.5, 2.0, len(y)) if kind == "weights" else None
    end = "bottom" if kind == "bottom" else "top"
    best = direct(problem_of_rows(X, y, p, weight, end))
    given_rows = sparse.csr_array(X) if kind == "sparse" else X
    model = PushRanker(p=p, alpha=1e-2, solver=solver, end=end, tol=1e-8)
    fit = model.fit(given_rows, y, weight)
    assert fit.objective_ - best.value <= 1e-6 * max(1.0, abs(best.value))
    assert fit.optimality_gap_ <= 1e-6 * max(1.0, abs(best.value))
    assert len(fit.history_) == fit.n_iter_
    # some of Newton's runs are at the minimum before anything is left
    assert left or solver == "newton"


def test_the_path_is_shorter_than_the_way_from_zero(left):
    X, y = apart()
    fit = PNormPush(64.0, alpha=1e-2, solver="newton").fit(X, y)
    assert left
    assert fit.n_iter_ < direct(problem_of_rows(X, y, 64.0)).n_iter / 2


def test_iterations_of_all_stages_count_towards_the_most(left):
    X, y = apart()
    with pytest.warns(match="stopped early"):
        fit = PNormPush(64.0, alpha=1e-2, solver="newton", max_iter=14).fit(X, y)
    assert left
    assert fit.n_iter_ <= 15
    assert len(fit.history_) == fit.n_iter_


@pytest.mark.parametrize("most", range(12, 60, 3))
def test_a_path_that_is_cut_short_says_so_and_tells_of_the_problem_itself(most):
    problem = problem_of_rows(*apart(), 64.0)
    found = along_penalties(problem, newton, max_iter=most, tol=1e-6, log=Log())
    assert found.n_iter == len(found.history) <= most
    assert found.value == problem.value(found.coef)
    small = found.gradient_norm <= 1e-6 * problem.scale
    assert found.converged == small or found.gap <= 1e-9 * abs(found.value)
    assert found.converged or "no convergence" in found.message


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_known_minima_shorten_the_path(solver):
    X, y = apart()
    passed = [
        Minimum(alpha, 4.0, direct(problem_of_rows(X, y, 4.0, alpha=alpha)).coef)
        for alpha in (0.1, 2e-2)
    ]
    problem = problem_of_rows(X, y, 4.0)
    runs = [
        along_penalties(problem, SOLVERS[solver], max_iter=500, tol=1e-8, log=Log(), passed=known)
        for known in ((), passed)
    ]
    assert runs[1].n_iter < runs[0].n_iter
    assert abs(runs[0].value - runs[1].value) <= 1e-7


def test_what_is_the_minimum_already_takes_one_look():
    X, y = apart()
    problem = problem_of_rows(X, y, 4.0)
    best = direct(problem)
    passed = [Minimum(2e-2, 4.0, direct(problem_of_rows(X, y, 4.0, alpha=2e-2)).coef)]
    found = along_penalties(
        problem, newton, max_iter=500, tol=1e-6, log=Log(), passed=passed, known=[best.coef]
    )
    assert found.n_iter <= 1
    assert found.value <= best.value + 1e-12


@given(
    seed=st.integers(0, 10_000),
    p=st.sampled_from([1.0, 2.0, 4.0, 64.0]),
    end=st.sampled_from(["top", "bottom", "both"]),
    length=st.floats(0.01, 100.0),
)
def test_values_below_the_bound_tell_the_classes_apart(seed, p, end, length):
    rng = np.random.default_rng(seed)
    y = np.arange(14) % 3 == 0
    problem = problem_of_rows(rng.normal(size=(14, 3)) + y[:, None], y, p, end=end)
    coef = length * rng.normal(size=3)
    if not problem.separates(coef):
        assert problem.value(coef) >= problem.apart_below


def test_classes_that_overlap_are_never_taken_for_others(left):
    X, y = apart(400, 10)
    for p in (1.0, 4.0, 64.0):
        PNormPush(p, alpha=1e-6).fit(X, y)
    assert not left


def test_without_a_penalty_there_is_no_path():
    X, y = apart()
    problem = problem_of_rows(X, y, 4.0, alpha=0.0)
    assert problem.apart_below == -np.inf
    assert separated.leaves(problem, newton) == {}


def test_minima_of_another_penalty_and_another_p_lie_on_no_line():
    first, second = Minimum(1.0, 4.0, np.zeros(2)), Minimum(0.5, 8.0, np.ones(2))
    assert second.along(first, 0.5, 16.0) is None
    ahead = Minimum(0.5, 4.0, np.zeros(2))
    np.testing.assert_allclose(second.along(ahead, 0.5, 16.0), np.full(2, 1.5))


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
def test_both_ends_take_the_path_to_the_minimum_that_newton_finds(p, left):
    X, y = apart()
    best = direct(problem_of_rows(X, y, p, end="both"))
    fit = PushRanker(p=p, alpha=1e-2, end="both", solver="lbfgs", tol=1e-8).fit(X, y)
    assert left and fit.optimality_gap_ <= 1e-6
    assert fit.objective_ == pytest.approx(best.value, abs=1e-6)
