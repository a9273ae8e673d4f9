"""The max price taken as it is: the same minimum as along the path, closer and certified."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from toprank import PNormPush, PushRanker
from toprank.losses import get_loss
from toprank.objective import LabelledData, MaxProblem, Task, build_objective

LOSSES = ["squared_hinge", "logistic", "hinge"]


def value_of(X, positive, coef, loss, alpha, end="top", weight=None):
    objective = build_objective(positive, weight, price="max", loss=loss, end=end)
    return objective.value(X @ coef) + alpha / 2 * coef @ coef


@pytest.mark.sampled(11)
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", ["wdbc", "ill_conditioned"])
def test_it_goes_below_the_path_and_no_further_than_the_path_allows(data, loss, end, tasks):
    X, positive = tasks[data]
    path, direct = (
        PushRanker(price="max", loss=loss, end=end, solver=solver).fit(X, positive)
        for solver in ("lbfgs", "newton")
    )
    assert direct.objective_ <= path.objective_ + direct.optimality_gap_
    assert direct.objective_ >= path.objective_ - path.optimality_gap_
    found = value_of(X, positive, direct.coef_[0], loss, 1e-3, end)
    assert direct.objective_ == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("data", ["wdbc", "ill_conditioned", "spambase", "magic"])
def test_a_smooth_loss_is_solved_to_the_tolerance(data, loss, tasks):
    fit = PNormPush(p=np.inf, loss=loss, tol=1e-9).fit(*tasks[data])
    assert 0 <= fit.optimality_gap_ <= 1e-9
    assert fit.n_iter_ < 50


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_it_agrees_with_a_constrained_solver(loss, small):
    X, positive = small
    alpha, of = 0.1, get_loss(loss)

    def lifted(z):
        return np.mean(of.value(X[positive] @ z[:-1] - z[-1])) + alpha / 2 * z[:-1] @ z[:-1]

    oracle = minimize(
        lifted,
        np.zeros(X.shape[1] + 1),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: z[-1] - X[~positive] @ z[:-1]},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert oracle.success
    fit = PNormPush(p=np.inf, loss=loss, alpha=alpha, tol=1e-10).fit(X, positive)
    assert fit.objective_ == pytest.approx(oracle.fun, abs=1e-8)
    np.testing.assert_allclose(fit.coef_[0], oracle.x[:-1], atol=1e-3)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.sampled_from(["top", "bottom"]),
    st.floats(1e-4, 10.0),
)
def test_every_weighing_of_the_outer_rows_bounds_the_minimum(seed, loss, end, alpha):
    rng = np.random.default_rng(seed)
    positive = np.arange(12) < rng.integers(1, 12)
    X = np.round(rng.normal(size=(12, 3)), 1)
    weight = rng.integers(0, 3, 12) + 1.0
    task = Task.build(price="max", loss=loss, end=end, alpha=alpha)
    problem = MaxProblem(LabelledData.of_arrays(X, positive, weight), task)
    coef = rng.normal(size=3)
    at = problem.peak(coef, X @ coef)
    u = rng.dirichlet(np.ones(problem.n_outer)) * at.force
    lower = at.value - problem.gap(at, problem.slope(at), np.arange(len(u)), u)
    assert at.value == pytest.approx(value_of(X, positive, coef, loss, alpha, end, weight))
    for _ in range(20):
        other = coef * rng.normal() + rng.normal(size=3) * rng.exponential()
        assert lower <= value_of(X, positive, other, loss, alpha, end, weight) + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions_and_a_weight_of_zero_is_an_absent_row(loss, small):
    X, positive = small
    count = np.random.default_rng(0).integers(0, 3, len(positive))
    count[[0, -1]] = 1
    weighted = PNormPush(p=np.inf, loss=loss).fit(X, positive, sample_weight=count)
    repeated = PNormPush(p=np.inf, loss=loss).fit(
        np.repeat(X, count, axis=0), np.repeat(positive, count)
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-6 + 1e-4)
    lower = weighted.objective_ - weighted.optimality_gap_
    assert lower <= repeated.objective_ + 1e-12
    other = np.where(count[:, None] == 0, 1e6, X)  # an absent row may say anything
    again = PNormPush(p=np.inf, loss=loss).fit(other, positive, sample_weight=count)
    assert again.objective_ == pytest.approx(weighted.objective_, rel=1e-6)


def test_sparse_and_dense_rows_give_the_same_fit(small):
    X, positive = small
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, thin = (
        PNormPush(p=np.inf, loss="squared_hinge", tol=1e-10).fit(form(X), positive)
        for form in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_ties_duplicates_and_constant_columns_do_no_harm(dtype):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(300, 6)).astype(dtype)
    X[:, 2] = 1
    X[:, 3] = X[:, 4]
    positive = X[:, 0] + rng.integers(0, 3, 300) > 2
    fit = PNormPush(p=np.inf, loss="squared_hinge", alpha=1e-6).fit(X, positive)
    assert fit.optimality_gap_ <= 1e-6
    assert fit.coef_[0, 3] == pytest.approx(fit.coef_[0, 4], abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_are_all_alike_leave_the_coefficients_at_zero(loss):
    X, positive = np.ones((6, 2)), np.arange(6) < 2
    fit = PNormPush(p=np.inf, loss=loss).fit(X, positive)
    np.testing.assert_allclose(fit.coef_, 0.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_of_the_features_do_not_stop_it(scale, tasks):
    X, positive = tasks["wdbc"]
    fit = PNormPush(p=np.inf, loss="squared_hinge", alpha=1e-2 * scale**2)
    fit.fit(X * scale, positive)
    same = PNormPush(p=np.inf, loss="squared_hinge", alpha=1e-2).fit(X, positive)
    assert 0 <= fit.optimality_gap_ <= 1e-6
    np.testing.assert_allclose(fit.coef_ * scale, same.coef_, atol=1e-3)


def test_one_positive_against_one_negative_is_solved_by_hand():
    X, positive = np.array([[1.0], [0.0]]), np.array([True, False])
    fit = PNormPush(p=np.inf, loss="squared_hinge", alpha=0.5, tol=1e-12).fit(X, positive)
    # (1 - b)^2 + b^2 / 4 is least at b = 4/5
    assert fit.coef_[0, 0] == pytest.approx(0.8, abs=1e-9)
    assert fit.objective_ == pytest.approx(0.2, abs=1e-12)


def test_without_a_penalty_the_path_is_walked_as_before(small):
    ranker = PushRanker(price="max", loss="squared_hinge", alpha=0.0, solver="newton")
    ranker.fit(*small)
    # these few rows' minimum is that of equal scores: not to push at all
    assert ranker.objective_ == pytest.approx(1.0, abs=1e-3)


def test_a_warm_start_at_the_minimum_stays_there(tasks):
    X, positive = tasks["wdbc"]
    ranker = PNormPush(p=np.inf, loss="squared_hinge", warm_start=True).fit(X, positive)
    first = ranker.coef_.copy()
    ranker.fit(X, positive)
    np.testing.assert_allclose(ranker.coef_, first, atol=1e-4 * np.max(np.abs(first)))
    assert ranker.n_iter_ <= 3


@pytest.mark.parametrize("size", [1e-150, 1e20, 1e98])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.filterwarnings("ignore:The solver stopped early")
def test_features_of_any_size_give_finite_scores(loss, size, small):
    X, positive = small
    fit = PNormPush(p=np.inf, loss=loss).fit(X * size, positive)
    assert np.isfinite(fit.decision_function(X * size)).all()
    assert fit.objective_ <= get_loss(loss).value(np.zeros(1))[0] * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_largest_height_of_the_exponential_loss_takes_few_iterations(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = X[:, 0] + X[:, 1] + 0.2 * rng.logistic(size=1500) > 1.5
    ranker = PNormPush(np.inf, solver=solver).fit(X, y)
    f = X @ ranker.coef_[0]
    heights = [np.mean([np.exp(k - i) for i in f[y]]) for k in f[~y]]
    value = np.log(max(heights)) + 0.5e-3 * float(np.sum(ranker.coef_**2))
    assert np.isclose(ranker.objective_, value, rtol=1e-10)
    assert ranker.optimality_gap_ < 1e-4
    assert ranker.n_iter_ < {"newton": 40, "lbfgs": 60}[solver]
