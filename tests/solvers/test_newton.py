"""Newton's method: where a sample leads to, and when an estimated Hessian is to blame."""

from importlib import import_module

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from wall import Wall

from toprank import PNormPush
from toprank.objective import LabelledData, ScoredProblem, Task, problem_of
from toprank.solvers import newton

newton_module = import_module("toprank.solvers.newton")  # the package has the function by that name


class Told(Wall):
    """A wall whose Hessian is an estimate, off by a factor; what was asked for is kept."""

    close_estimates = True

    def __init__(self, off):
        self.off = off
        self.asked = []

    def hessian(self, coef, exact=True):
        self.asked.append(exact)
        return (1.0 if exact else self.off) * super().hessian(coef)


@pytest.mark.parametrize(("close", "off"), [(True, 30.0), (False, 30.0)])
def test_an_estimate_that_shortens_every_step_gives_way_to_the_exact_hessian(close, off):
    told = Told(off)
    told.close_estimates = close
    found = newton(told, np.array([0.0, 1.0]), tol=1e-10)
    assert found.converged
    assert told.asked[0] is False
    assert told.asked[-1] is True
    assert len(told.asked) < 10


def test_a_good_estimate_is_not_blamed_for_a_place_far_from_the_minimum():
    X, y = heavy_tails()
    problem = ScoredProblem(
        LabelledData.of_arrays(X, y, None), Task.build(loss="logistic", p=64.0, alpha=1e-3)
    )
    assert problem.close_estimates
    asked, hessian = [], problem.hessian

    def counted(coef, *, exact=True):
        asked.append(exact)
        return hessian(coef, exact=exact)

    problem.hessian = counted
    found = newton(problem, np.ones(X.shape[1]), warm=True)
    assert found.converged
    assert len(asked) > 5
    assert sum(asked) <= 1


def heavy_tails(n=5000, d=8):
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.2, size=(n, d))
    X /= X.std(axis=0)
    return X, X[:, :3].sum(axis=1) + rng.logistic(size=n) > 1.5


def test_what_a_sample_without_the_heavy_rows_leads_to_is_halve_if_far(monkeypatch):
    X, y = heavy_tails(60_000, 5)
    negatives = np.flatnonzero(~y)
    X[negatives[1]] *= 1000 / np.abs(X[negatives[1]]).max()  # no sample of every k-th has it
    starts, halved = [], newton_module._halve_if_far

    def kept(*asked):
        found = halved(*asked)
        starts.append((asked[0].value(asked[1]), found[1]))
        return found

    monkeypatch.setattr(newton_module, "_halve_if_far", kept)
    data = LabelledData.of_arrays(X, y, None)
    found = newton(problem_of(data, PNormPush(4.0)._task()), np.zeros(5))
    assert found.converged
    assert len(starts) == 2  # the sample's own, and that of all rows
    led_to, begun_at = starts[-1]
    assert led_to > 1
    assert begun_at < 0.1
    again = newton(problem_of(data, PNormPush(4.0)._task()), np.zeros(5), warm=True)
    assert found.value == pytest.approx(again.value, abs=1e-9)
    assert found.n_iter < again.n_iter + 10


def test_where_no_half_is_lower_the_first_point_is_kept():
    wall = Wall()
    coef, value, _ = newton_module._halve_if_far(wall, np.array([0.5, -2.0]), -100.0)
    assert coef.tolist() == [0.5, -2.0]
    assert value == wall.value_grad(coef)[0]


def test_estimates_that_fail_again_and_again_give_way_in_the_end():
    X, _ = heavy_tails(6000)
    y = X[:, 0] > 0.5  # told apart and without a penalty: what bins tell of the few pairs is poor
    with pytest.warns(ConvergenceWarning, match="separable"):
        ranker = PNormPush(4.0, loss="squared_hinge", alpha=0.0).fit(X, y)
    assert ranker.n_iter_ < 200
    assert ranker.objective_ < 1e-4
