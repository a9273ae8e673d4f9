"""Every solver reaches the same minimum; where it cannot be exact it says how far it may be."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from toprank import PNormPush, PushRanker
from toprank.objective import LabelledData, Task, build_objective, problem_of

SMOOTH = [
    {"p": 1.0},
    {"p": 4.0},
    {"p": 64.0},
    {"p": 4.0, "loss": "logistic"},
    {"p": 4.0, "loss": "squared_hinge"},
    {"price": "log1p"},
    {"price": "exponential"},
]
CORNERED = [
    {"p": np.inf},
    {"p": np.inf, "end": "bottom"},
    {"p": np.inf, "end": "both", "balance": 5.0},
    {"p": np.inf, "loss": "logistic"},
    {"p": np.inf, "loss": "squared_hinge"},
    {"p": 1.0, "loss": "hinge"},
    {"p": 4.0, "loss": "hinge"},
    {"p": np.inf, "loss": "hinge"},
]
DATA = ["wdbc", "spambase", "magic", "ill_conditioned"]


def name_of(settings):
    return "-".join(str(value) for value in settings.values())


def add_penalty(settings, X, positive, coef, alpha=1e-3):
    """Value, gradient and scale of the objective, straight from the scores."""
    objective = build_objective(positive, **settings)
    value, in_scores = objective.value_grad(X @ coef)
    return value + alpha / 2 * coef @ coef, X.T @ in_scores + alpha * coef, objective.scale


@pytest.mark.sampled(15)
@pytest.mark.parametrize("settings", SMOOTH, ids=name_of)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("data", DATA)
def test_newton_and_lbfgs_reach_the_same_stationary_point(data, settings, tasks):
    X, positive = tasks[data]
    fits = [
        PushRanker(**settings, alpha=1e-3, solver=solver).fit(X, positive)
        for solver in ("newton", "lbfgs")
    ]
    for fit in fits:
        value, gradient, scale = add_penalty(settings, X, positive, fit.coef_[0])
        assert np.max(np.abs(gradient)) <= 1e-6 * scale
        assert fit.objective_ == pytest.approx(value, rel=1e-10, abs=1e-10)
    first, second = fits
    assert first.objective_ == pytest.approx(second.objective_, rel=1e-7, abs=1e-7)
    atol = 1e-3 * np.max(np.abs(first.coef_))
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=0, atol=atol)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("settings", SMOOTH, ids=name_of)
def test_coordinate_descent_comes_down_to_the_same_minimum(settings, small):
    X, positive = small
    best = PushRanker(**settings, alpha=0.1, solver="newton", tol=1e-9).fit(X, positive)
    boosted = PushRanker(**settings, alpha=0.1, solver="coordinate", max_iter=2000)
    boosted.fit(X, positive)
    _, gradient, scale = add_penalty(settings, X, positive, boosted.coef_[0], alpha=0.1)
    assert np.max(np.abs(gradient)) <= 1e-6 * scale
    assert boosted.objective_ >= best.objective_ - 1e-12 * scale
    atol = 1e-4 * np.max(np.abs(best.coef_))
    np.testing.assert_allclose(boosted.coef_, best.coef_, rtol=0, atol=atol)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "coordinate"])
def test_a_steep_price_is_solved_to_the_same_tolerance(solver, small):
    X, positive = small
    fit = PNormPush(p=1000, alpha=0.1, solver=solver, max_iter=3000).fit(X, positive)
    _, gradient, _ = add_penalty({"p": 1000.0}, X, positive, fit.coef_[0], alpha=0.1)
    assert np.max(np.abs(gradient)) <= 1e-6


@pytest.mark.sampled(5)
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "coordinate"])
@pytest.mark.parametrize("settings", CORNERED, ids=name_of)
def test_the_stated_gap_holds_where_the_objective_has_corners(settings, solver, small):
    X, positive = small
    fit = PushRanker(**settings, alpha=0.1, solver=solver).fit(X, positive)
    rival = PushRanker(**settings, alpha=0.1, solver="newton").fit(X, positive)
    elsewhere = [1.001 * rival.coef_[0], 0.999 * rival.coef_[0], fit.coef_[0]]
    values = [add_penalty(settings, X, positive, coef, alpha=0.1)[0] for coef in elsewhere]
    assert fit.objective_ == pytest.approx(values[-1], abs=1e-12)
    assert fit.optimality_gap_ >= 0
    assert fit.objective_ - fit.optimality_gap_ <= min(*values, rival.objective_) + 1e-12


@pytest.mark.sampled(11)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("settings", CORNERED, ids=name_of)
@pytest.mark.parametrize("data", ["wdbc", "ill_conditioned"])
def test_the_stated_gap_is_small_where_the_objective_has_corners(data, settings, solver, tasks):
    fit = PushRanker(**settings, solver=solver).fit(*tasks[data])
    assert 0 <= fit.optimality_gap_ <= 1e-4 * max(1.0, abs(fit.objective_))


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("data", ["spambase", "magic"])
@pytest.mark.slow
def test_the_stated_gap_is_small_on_larger_data(data, solver, tasks):
    for settings in ({"p": np.inf}, {"p": 4.0, "loss": "hinge"}):
        fit = PushRanker(**settings, solver=solver).fit(*tasks[data])
        assert 0 <= fit.optimality_gap_ <= 1e-4 * max(1.0, abs(fit.objective_))


def test_the_infinite_push_agrees_with_a_constrained_solver(small):
    X, positive = small
    alpha = 0.1

    def lifted(z):  # LSE(-f_pos) - log I + t, with t above every negative
        return logsumexp(-X[positive] @ z[:-1]) - np.log(positive.sum()) + z[-1] + penalty(z)

    def penalty(z):
        return alpha / 2 * z[:-1] @ z[:-1]

    oracle = minimize(
        lifted,
        np.zeros(X.shape[1] + 1),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: z[-1] - X[~positive] @ z[:-1]},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert oracle.success
    fit = PNormPush(p=np.inf, alpha=alpha).fit(X, positive)
    assert oracle.fun - 1e-9 <= fit.objective_ <= oracle.fun + fit.optimality_gap_ + 1e-9


def test_the_hinge_agrees_with_the_dual_quadratic_programme(small):
    X, positive = small
    alpha = 0.1
    pairs = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, X.shape[1])

    def dual(a):
        push = pairs.T @ a
        return push @ push / (2 * alpha) - a.sum(), pairs @ push / alpha - 1.0

    limits = [(0.0, 1.0 / len(pairs))] * len(pairs)
    oracle = minimize(dual, np.zeros(len(pairs)), jac=True, bounds=limits, tol=1e-12)
    fit = PNormPush(p=1, loss="hinge", alpha=alpha).fit(X, positive)
    assert -oracle.fun - 1e-12 <= fit.objective_ <= -oracle.fun + fit.optimality_gap_ + 1e-6


def test_with_p_of_one_the_minimiser_is_that_of_rankboost(small):
    X, positive = small
    pairs = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, X.shape[1])
    oracle = minimize(lambda lam: np.sum(np.exp(-pairs @ lam)), np.zeros(5), tol=1e-8)
    fit = PNormPush(p=1, alpha=0.0).fit(X, positive)
    assert np.exp(fit.objective_) * len(pairs) == pytest.approx(oracle.fun, rel=1e-9)
    np.testing.assert_allclose(fit.coef_[0], oracle.x, atol=1e-4)


@pytest.mark.parametrize("p", [4.0, 64.0, 1024.0])
def test_a_finite_p_lies_below_the_maximum_by_the_papers_gap(p, small):
    X, positive = small
    coef = PNormPush(p=p).fit(X, positive).coef_[0]
    f = (X @ coef)[~positive]
    gap = np.log(len(f)) / p - (logsumexp(p * f) / p - f.max())
    at_p = build_objective(positive, p=p).value(X @ coef)
    at_most = build_objective(positive, p=np.inf).value(X @ coef)
    assert at_most - at_p == pytest.approx(gap, abs=1e-12)


def test_the_certificate_of_the_infinite_push_is_the_papers_gap(small):
    X, positive = small
    fit = PNormPush(p=np.inf, alpha=0.1).fit(X, positive)
    f = (X @ fit.coef_[0])[~positive]
    p = 4.0 ** np.arange(13)
    gaps = [np.log(len(f)) / q - (logsumexp(q * f) / q - f.max()) for q in p]
    assert np.min(np.abs(np.array(gaps) - fit.optimality_gap_)) <= 1e-9


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("p", [16.0, 256.0, 4096.0])
def test_weights_of_a_finite_p_bound_the_infinite_one_more_sharply_than_the_papers_gap(
    p, end, small
):
    X, positive = small
    if end == "bottom":  # the same problem, seen from the other end of the list
        X, positive = -X, ~positive
    data = LabelledData.of_arrays(X, positive)
    limit = problem_of(data, Task.build(price="max", end=end, alpha=0.1))
    smooth = problem_of(data, Task.build(p=p, end=end, alpha=0.1))
    coef = PushRanker(p=p, end=end, alpha=0.1).fit(X, positive).coef_[0]
    f = X @ coef
    outer = f[~positive] if end == "top" else -f[positive]
    papers = np.log(len(outer)) / p - (logsumexp(p * outer) / p - outer.max())
    value, bound = limit.value(coef), limit.bound_by(smooth, coef)
    assert value - papers < bound + 1e-9
    fit = PushRanker(price="max", end=end, alpha=0.1).fit(X, positive)
    assert bound <= fit.objective_ + 1e-12
    assert 0.0 <= fit.optimality_gap_ <= 1e-4
    assert fit.objective_ - fit.optimality_gap_ <= value


def test_the_minimum_rises_with_p_towards_the_infinite_one(small):
    X, positive = small
    minima = [PNormPush(p=p, alpha=0.1).fit(X, positive).objective_ for p in 4.0 ** np.arange(7)]
    limit = PNormPush(p=np.inf, alpha=0.1).fit(X, positive)
    assert np.all(np.diff(minima) >= -1e-9)
    assert limit.objective_ - np.log(24) / 4096 - 1e-4 <= minima[-1] <= limit.objective_
