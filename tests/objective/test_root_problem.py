"""Compiled loops for other losses: the double loop's answers, and a promise about memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from toprank import PNormPush, PushRanker
from toprank.losses import get_loss
from toprank.objective import LabelledData, Task, build_objective, root_problem
from toprank.objective import forms as forms_module
from toprank.objective.binned_curvature import BinnedRows
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem
from toprank.objective.root_problem import RootProblem
from toprank.pair_sums import Reference
from toprank.prices import Power

# compiling the loops takes some seconds where no cache holds them
pytestmark = pytest.mark.more

LOSSES = ("logistic", "squared_hinge")


def rows(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    positive = X[:, 0] + rng.logistic(size=n) > 1
    return X, positive, rng.integers(0, 3, n).astype(float)


def by_double_loop(scores, positive, weight, p, loss, end):
    """F and its gradient from the reference sums."""
    objective = build_objective(positive, weight, p=p, loss=loss, end=end)
    (side,) = objective.sides
    a, b = side.sign * scores[side.inner], side.sign * scores[side.outer]
    sums = Reference(objective.loss, a, b)
    height, tilt = sums.to_outer((0, 1), side.inner_weight)
    share = np.exp(side.log_outer_weight)
    value = np.sum(share * height**p) ** (1 / p)
    c = np.where(height > 0, share * height ** (p - 1) * value ** (1 - p), 0.0)
    (pull,) = sums.to_inner((1,), c)
    gradient = np.zeros(len(scores))
    gradient[side.inner] += side.sign * side.inner_weight * pull
    gradient[side.outer] -= side.sign * c * tilt
    return value, gradient


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1.0, 2.5, 4.0, 64.0])
def test_value_and_gradient_are_those_of_the_double_loop(loss, end, weighted, p):
    _, positive, weight = rows()
    weight = weight if weighted else None
    root = PowerRoot(positive, weight, Power(p, root=True), get_loss(loss), end == "bottom")
    for spread in (0.1, 2.0, 9.0):
        scores = spread * np.random.default_rng(1).normal(size=len(positive)).round(2)
        want = by_double_loop(scores, positive, weight, p, loss, end)
        value, gradient = root.value_grad(scores)
        assert value == pytest.approx(want[0], rel=1e-12)
        scale = np.max(np.abs(want[1]))
        np.testing.assert_allclose(gradient, want[1], rtol=0, atol=1e-11 * scale)


def test_what_the_loops_cannot_sum_goes_the_other_way():
    _, positive, _ = rows()
    for loss in LOSSES:
        root = PowerRoot(positive, None, Power(4.0, root=True), get_loss(loss), False)
        assert root.value_grad(np.where(positive, np.nan, 0.0)) is None
    root = PowerRoot(positive, None, Power(4.0, root=True), get_loss("logistic"), False)
    assert root.value_grad(np.where(positive, 100.0, 0.0)) is None  # e^-100: relative digits
    assert root.value_grad(np.where(positive, -1e6, 0.0)) is None


def test_where_no_pair_has_a_loss_the_value_is_zero():
    _, positive, _ = rows()
    root = PowerRoot(positive, None, Power(4.0, root=True), get_loss("squared_hinge"), False)
    value, gradient = root.value_grad(np.where(positive, 2.0, 0.0))
    assert value == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
def test_where_scores_repeat_the_binned_hessian_is_exact(loss, end, weighted):
    X, positive, weight = rows(n=400)
    X = X.round(0)
    # few distinct scores, none a margin of one apart: bins hold equal ones
    coef = 0.9 * np.array([0.5, -0.25, 0.25, 0.125])
    data = LabelledData.of_arrays(X, positive, weight if weighted else None)
    task = Task.build(p=4.0, loss=loss, end=end, alpha=1e-3)
    want = ScoredProblem(data, task).hessian(coef)
    got = RootProblem(data, task).hessian(coef, exact=False)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.max(np.abs(want)))
    assert np.min(np.linalg.eigvalsh(got)) > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_rows_have_the_binned_hessian_of_dense_ones(loss):
    X, positive, weight = rows(n=400)
    X[np.abs(X) < 0.7] = 0.0
    task, coef = Task.build(p=4.0, loss=loss, alpha=1e-3), np.array([0.5, -0.3, 0.2, 0.1])
    dense, light = (
        RootProblem(LabelledData.of_arrays(part, positive, weight), task).hessian(coef, exact=False)
        for part in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(light, dense, rtol=0, atol=1e-5 * np.max(np.abs(dense)))


def test_outliers_share_a_bin():
    scores = np.concatenate([np.linspace(0, 1, 1000), [1e9, -1e9]])
    binned = BinnedRows.of(
        scores, np.arange(1002) % 2 == 0, np.full(1002, 1 / 501), get_loss("logistic"), 4.0
    )
    assert np.all(np.isfinite(binned.weight))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_fit_by_the_loops_is_the_fit(loss, end, monkeypatch):
    X, positive, weight = rows(n=30_000, d=6)
    ranker = PushRanker(p=4.0, loss=loss, end=end, tol=1e-9)
    want = ranker.fit(X, positive, weight).coef_.copy()
    monkeypatch.setattr(root_problem, "COMPILED_FROM", 0)
    made = []
    monkeypatch.setattr(
        forms_module, "RootProblem", type("Seen", (RootProblem,), {"_root": _kept(made)})
    )
    got = ranker.fit(X, positive, weight)
    assert made
    assert got.optimality_gap_ < 1e-12
    np.testing.assert_allclose(got.coef_, want, rtol=0, atol=1e-7 * np.max(np.abs(want)))


def test_a_hard_push_walks_along_gentler_ones_by_the_loops(monkeypatch):
    X, positive, _ = rows(n=3000)
    ranker = PushRanker(p=64.0, loss="logistic", tol=1e-9)
    want = ranker.fit(X, positive)
    coef, value = want.coef_.copy(), want.objective_
    monkeypatch.setattr(root_problem, "COMPILED_FROM", 0)
    got = ranker.fit(X, positive)
    assert got.objective_ == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(got.coef_, coef, rtol=0, atol=1e-5 * np.max(np.abs(coef)))


def test_the_exact_hessian_of_the_loops_is_that_of_the_gradients():
    X, positive, weight = rows()
    data = LabelledData.of_arrays(X, positive, weight)
    problem = RootProblem(data, Task.build(p=3.0, loss="logistic", alpha=0.01))
    coef, step = np.array([0.5, -0.2, 0.1, 0.0]), 1e-5
    columns = [
        (problem.value_grad(coef + step * e)[1] - problem.value_grad(coef - step * e)[1])
        / (2 * step)
        for e in np.eye(4)
    ]
    hessian = problem.hessian(coef, exact=True)
    np.testing.assert_allclose(hessian, columns, atol=1e-5 * np.max(np.abs(hessian)))


def _kept(made):
    """The loops of a problem, and a note that they were asked for."""

    def root(self):
        made.append(self)
        return RootProblem.__dict__["_root"].function(self)

    return property(root)


@pytest.mark.parametrize("loss", LOSSES)
def test_other_losses_hold_48_bytes_per_row_beside_x(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 100))
    y = X[:, :5].sum(axis=1) + rng.logistic(size=len(X)) > 3
    ranker = PNormPush(p=4.0, loss=loss)
    ranker.fit(X, y)  # loads the compiled loops
    tracemalloc.start()
    try:
        ranker.fit(X, y)
        held = tracemalloc.get_traced_memory()[1] / len(X)
    finally:
        tracemalloc.stop()
    assert held <= 48
