"""What solvers do where numbers fail them: an overshoot, no curvature, a helper that gives up."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize
from wall import Wall

from toprank import PushRanker
from toprank.solvers import max_price, path
from toprank.solvers.bounded import bounded
from toprank.solvers.coordinate import zero_of
from toprank.solvers.lbfgs import Continued, lbfgs
from toprank.solvers.newton import newton
from toprank.solvers.result import STUCK

#: Where 1 / (1 - x) - 1 + x - 0.9 = 0, and the other coordinate of the target.
LOWEST = [(2.9 - np.sqrt(2.9**2 - 3.6)) / 2, -2.0]


class NoHessian(Wall):
    def hessian(self, coef, exact=True):
        return np.full((2, 2), np.inf)


@pytest.mark.parametrize(
    ("minimise", "start"),
    [(newton, -40.0), (lbfgs, -40.0), (lbfgs, 0.0), (bounded(lbfgs, np.full(2, -5.0)), 0.0)],
)
def test_a_step_to_where_the_objective_is_infinite_is_taken_back(minimise, start):
    result = minimise(Wall(), np.array([start, 3.0]))
    assert result.converged
    assert result.coef == pytest.approx(LOWEST, abs=1e-6)


def test_a_function_goes_on_where_it_is_infinite_as_a_parabola():
    continued, slope = Continued(), np.array([-2.0, 0.0])
    assert continued(np.ones(2), np.inf, slope)[0] == 1e300  # nothing is known yet
    assert continued(np.zeros(2), 5.0, slope) == (5.0, slope)
    value, grad = continued(np.array([3.0, 0.0]), np.inf, np.full(2, np.nan))
    # 5 - 2 t + 4 t^2 / 3 falls as 5 - 2 t does at first, and is lowest at t = 3/4
    assert (value, grad.tolist()) == (5.0 - 6.0 + 12.0, [6.0, 0.0])


def test_the_point_that_a_line_search_settles_on_counts_and_not_the_last_it_tried(monkeypatch):
    def minimize(evaluate, start, callback, **_):
        better, worse = np.array([0.3, 0.0]), np.array([0.3, 0.5])
        found = evaluate(better)[0]
        evaluate(worse)
        callback(optimize.OptimizeResult(x=better, fun=found))

    class Flat(NoHessian):
        def column_scale(self):
            return np.ones(2)

    monkeypatch.setattr(optimize, "minimize", minimize)
    result = lbfgs(Flat(), np.zeros(2), max_iter=1)
    assert result.coef.tolist() == [0.3, 0.0]
    assert result.value == Wall().value_grad(result.coef)[0]


class Indefinite(Wall):
    def hessian(self, coef, exact=True):
        return np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize("problem", [NoHessian(), Indefinite()], ids=["none", "indefinite"])
def test_without_curvature_the_gradients_alone_find_the_minimum(problem):
    result = lbfgs(problem, np.zeros(2))
    assert result.converged
    assert result.coef == pytest.approx(LOWEST, abs=1e-6)


class Rounded(Wall):
    """Values that are off by some 1e-15, and higher wherever they are looked at again."""

    calls = 0

    def value_grad(self, coef):
        value, grad = super().value_grad(coef)
        self.calls += 1
        return value + 3e-16 * self.calls, grad


def test_where_values_differ_by_rounding_alone_the_slopes_lead_on():
    result = lbfgs(Rounded(), np.array([0.0, 3.0]), tol=1e-13)
    assert result.converged
    assert result.coef == pytest.approx(LOWEST, abs=1e-12)


@pytest.mark.parametrize("minimise", [newton, bounded(newton, np.full(2, -5.0))])
def test_newton_without_a_hessian_stays_where_it_started_and_says_so(minimise):
    result = minimise(NoHessian(), np.array([-1.0, 0.0]))
    assert (result.converged, result.message) == (False, STUCK)
    assert result.coef.tolist() == [-1.0, 0.0] and result.value == Wall().value_grad(result.coef)[0]


def test_a_slope_that_rounding_alone_turns_has_its_zero_at_no_step():
    assert zero_of(lambda step: step or -1e-18, 1e-18, 1.0, 8.0) == 0.0
    assert zero_of(lambda step: step - 3.0, -3.0, 1.0, 8.0) == pytest.approx(3.0)
    assert zero_of(lambda step: -1.0, -1.0, 1.0, 8.0) == 8.0


def test_a_model_whose_hessian_is_not_positive_is_lifted_until_it_is():
    hessian = np.array([[4.0, 2.0 + 1e-6], [2.0 + 1e-6, 1.0]])  # its determinant is negative
    model = max_price._Model(np.array([1.0, 1.0]), hessian)
    lifted = model.root.T @ model.root
    assert lifted[0, 1] == pytest.approx(1.0 + 5e-7)
    assert 1.0 < lifted[0, 0] < 1.0 + 1e-5 and lifted[1, 1] == pytest.approx(
        lifted[0, 0], rel=1e-15
    )


def in_circles(*_, **__):
    raise RuntimeError("Maximum number of iterations reached.")


def test_where_scipy_runs_in_circles_the_active_set_answers(monkeypatch):
    columns, target = np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    monkeypatch.setattr(optimize, "nnls", in_circles)
    assert max_price.non_negative_least_squares(columns, target) == pytest.approx([0.0, 1.5])


def test_a_column_that_would_leave_at_once_is_passed_over(monkeypatch):
    plain = max_price._least_squares

    def rounded(unit, target, used):  # the first column never gets a weight above zero
        return plain(unit, target, used) * [-1.0, 1.0]

    monkeypatch.setattr(max_price, "_least_squares", rounded)
    x = max_price._active_set(np.eye(2), np.array([2.0, 1.0]))
    assert x.tolist() == [0.0, 1.0]


def test_an_active_set_that_does_not_come_to_rest_ends(monkeypatch):
    known = np.zeros(2, dtype=bool)

    def restless(unit, target, used):  # whoever enters drives the other out
        z = np.where(used & (~known | (used.sum() == 1)), 1.0, -1.0 * used)
        known[:] = used
        return z

    monkeypatch.setattr(max_price, "_least_squares", restless)
    with pytest.raises(RuntimeError, match="did not converge"):
        max_price._active_set(np.eye(2), np.array([5.0, 5.0]))


@pytest.mark.parametrize("alpha", [1e-3, 0.1])  # of which the larger one leaves nothing but zeros
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_largest_height_is_walked_to_where_its_own_method_gives_up(
    loss, alpha, small, monkeypatch
):
    ranker = PushRanker(price="max", loss=loss, solver="newton", alpha=alpha)
    direct = ranker.fit(*small).objective_
    monkeypatch.setattr(max_price, "non_negative_least_squares", in_circles)
    walked = ranker.fit(*small)
    gap = walked.optimality_gap_
    assert direct <= walked.objective_ + 1e-9 and walked.objective_ - gap <= direct + 1e-9
    assert 0 <= gap < 1e-3


def test_the_largest_height_has_no_step_where_its_curvature_is_not_known():
    unknown = SimpleNamespace(bend=lambda at: np.full((2, 2), np.nan))
    assert max_price._step(unknown, None, np.ones(2), None) is None


@pytest.mark.parametrize(
    ("minimiser", "has_sample", "value", "early"),
    [
        (lbfgs, False, 0.5, True),
        (newton, False, 2.0, False),
        (newton, True, 2.0, True),
        (newton, True, 0.5, False),
    ],
)
def test_a_path_on_many_rows_may_end_early_where_it_has_learned_nothing(
    minimiser, has_sample, value, early
):
    problem = SimpleNamespace(has_sample=has_sample, value=lambda coef: 2.0 - float(np.sum(coef)))
    result = SimpleNamespace(value=value, coef=np.ones(2))
    assert path._leaves_early(problem, result, minimiser) is early
