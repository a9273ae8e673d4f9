"""Theorem 4: the pair weights are unique, and a primal-dual gap certifies a fit."""

import numpy as np
import pytest
from scipy.optimize import minimize

from toprank.objective import LabelledData, Task, pair_weights, primal_dual_gap
from toprank.objective import problem_of as form_of
from toprank.solvers import lbfgs, newton

RNG = np.random.default_rng(8)
POSITIVE = np.arange(60) < 25
X = RNG.normal(size=(60, 3)) + 0.3 * POSITIVE[:, None]
TASKS = [{"p": 1.0}, {"p": 4.0}, {"p": 16.0}, {"p": 4.0, "end": "bottom"}]


def problem_of(X=X, weight=None, alpha=0.0, **settings):
    data = LabelledData.of_arrays(X, POSITIVE, weight)
    return form_of(data, Task.build(alpha=alpha, **settings))


def minimum(problem, solver=newton, start=None):
    start = np.zeros(problem.size) if start is None else start
    return solver(problem, start, max_iter=500, tol=1e-11).coef


@pytest.mark.parametrize("settings", TASKS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_at_the_minimum_both_classes_have_the_same_mean(settings, weighted):
    weight = RNG.integers(0, 3, 60).astype(float) + POSITIVE if weighted else None
    problem = problem_of(weight=weight, **settings)
    of_pos, of_neg = pair_weights(problem, minimum(problem))
    assert of_pos.weight.sum() == pytest.approx(1)
    assert of_neg.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        of_pos.weight @ X[of_pos.rows], of_neg.weight @ X[of_neg.rows], atol=1e-9
    )


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_the_pair_weights_are_the_papers(p):
    problem = problem_of(p=p)
    coef = minimum(problem)
    M = X[POSITIVE][:, None, :] - X[~POSITIVE][None, :, :]
    q = np.exp(-M @ coef)
    tilted = q * q.sum(axis=0) ** (p - 1)  # the d-tilde of Figure 2
    of_pos, of_neg = pair_weights(problem, coef)
    np.testing.assert_allclose(
        np.outer(of_pos.weight, of_neg.weight), tilted / tilted.sum(), rtol=1e-9
    )


def test_the_pair_weights_are_unique_where_the_coefficients_are_not():
    twice = np.column_stack([X, X[:, 0], X[:, 1] - X[:, 2]])
    problem = problem_of(twice)
    starts = [np.zeros(5), np.array([2.0, -1.0, 0.5, -2.0, 1.0])]
    coefs = [minimum(problem, lbfgs, start) for start in starts]
    assert np.max(np.abs(coefs[0] - coefs[1])) > 0.1
    points = [pair_weights(problem, coef) for coef in coefs]
    for one, other in zip(*points, strict=True):
        np.testing.assert_allclose(one.weight, other.weight, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("settings", TASKS, ids=str)
def test_the_gap_bounds_how_far_the_objective_is_from_its_minimum(settings, alpha):
    problem = problem_of(alpha=alpha, **settings)
    best = minimum(problem)
    lowest = problem.value(best)
    for distance in (1e-6, 1e-3, 0.1, 3.0):
        for direction in np.eye(3):
            coef = best + distance * direction
            assert primal_dual_gap(problem, coef) >= problem.value(coef) - lowest - 1e-13
    assert primal_dual_gap(problem, best) <= 1e-12


def test_the_gap_is_tight_near_the_minimum():
    problem = problem_of()
    best = minimum(problem)
    coef = best + 1e-3
    above = problem.value(coef) - problem.value(best)
    assert above <= primal_dual_gap(problem, coef) <= 10 * above


# the reference: older releases of SciPy tell of the steps that SLSQP clips
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_the_dual_attains_the_value_of_the_primal():
    problem = problem_of(p=4.0)
    of_pos, of_neg = POSITIVE.sum(), (~POSITIVE).sum()

    def negative_dual(z):
        u, v = z[:of_pos], z[of_pos:]
        return np.sum(u * np.log(u * of_pos)) + np.sum(v * np.log(v * of_neg)) / 4.0

    balance = [
        {"type": "eq", "fun": lambda z: z[:of_pos].sum() - 1},
        {"type": "eq", "fun": lambda z: z[of_pos:].sum() - 1},
        {"type": "eq", "fun": lambda z: z[:of_pos] @ X[POSITIVE] - z[of_pos:] @ X[~POSITIVE]},
    ]
    start = np.concatenate([np.full(of_pos, 1 / of_pos), np.full(of_neg, 1 / of_neg)])
    oracle = minimize(
        negative_dual,
        start,
        method="SLSQP",
        bounds=[(1e-12, 1)] * 60,
        constraints=balance,
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert oracle.success
    assert -oracle.fun == pytest.approx(problem.value(minimum(problem)), abs=1e-6)


def test_on_separable_data_without_a_penalty_the_gap_is_infinite():
    separated = np.where(POSITIVE, 1.0, -1.0)[:, None] + 0.1 * X[:, :1]
    assert primal_dual_gap(problem_of(separated), np.ones(1)) == np.inf


def test_only_the_factorised_form_at_one_end_has_this_dual():
    assert problem_of().has_dual
    assert not problem_of(end="both").has_dual
    assert not problem_of(loss="logistic").has_dual
    with pytest.raises(ValueError, match=r"dual.*exponential loss"):
        pair_weights(problem_of(loss="logistic"), np.zeros(3))


def test_without_a_penalty_nothing_is_certified_where_the_curvature_is_gone():
    separated = X + 10.0 * POSITIVE[:, None]
    problem = problem_of(separated, p=4.0)
    assert primal_dual_gap(problem, np.full(3, 50.0)) == np.inf
    with np.errstate(all="ignore"):
        assert primal_dual_gap(problem, np.full(3, 1e308)) == np.inf
