"""The pointwise objective against its definition written out row by row."""

import numpy as np
import pytest
from scipy import sparse

from toprank.losses.proper import PROPER_LOSSES, Exponential, Logistic, Squared, get_proper_loss
from toprank.objective import LabelledData, PointwiseProblem, PointwiseTask
from toprank.solvers import lbfgs, newton

N, D, ALPHA = 400, 3, 0.2
CONVEX = [name for name, cls in PROPER_LOSSES.items() if cls.convex]


def data(weighted=True):
    rng = np.random.default_rng(3)
    positive = rng.random(N) < 0.3
    X = rng.normal(size=(N, D)) + positive[:, None] * [0.5, -0.4, 0.0]
    weight = rng.integers(0, 4, size=N).astype(float) if weighted else None
    return X, positive, weight


def problem(loss, X=None, weighted=True, alpha=ALPHA):
    values, positive, weight = data(weighted)
    X = values if X is None else X
    return on_rows(PointwiseTask(get_proper_loss(loss), alpha), X, positive, weight)


def on_rows(task, X, positive, weight=None):
    return PointwiseProblem(LabelledData.of_arrays(X, positive, weight, intercepts=1), task)


def by_hand(loss, coef, weighted=True):
    X, positive, weight = data(weighted)
    total, size = 0.0, 0.0
    for i in range(N):
        w = 1.0 if weight is None else weight[i]
        total += w * float(get_proper_loss(loss).loss(positive[i], X[i] @ coef[:-1] + coef[-1]))
        size += w
    return total / size + ALPHA / 2 * float(coef[:-1] @ coef[:-1])


COEF = np.array([0.4, -0.3, 0.1, -0.2])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", CONVEX)
def test_the_value_is_the_penalised_mean_loss(loss, weighted):
    value, _ = problem(loss, weighted=weighted).value_grad(COEF)
    assert value == pytest.approx(by_hand(loss, COEF, weighted), rel=1e-12)
    assert problem(loss, weighted=weighted).value(COEF) == value


@pytest.mark.parametrize("loss", CONVEX)
def test_gradient_and_hessian_match_finite_differences(loss):
    at = problem(loss)
    _, grad = at.value_grad(COEF)
    hessian = at.hessian(COEF)
    h = 1e-5
    for j, step in enumerate(h * np.eye(D + 1)):
        (up, above), (down, below) = at.value_grad(COEF + step), at.value_grad(COEF - step)
        assert grad[j] == pytest.approx((up - down) / (2 * h), abs=1e-8)
        # rows at the corner of a parabola's slope blur the difference a little
        np.testing.assert_allclose(hessian[:, j], (above - below) / (2 * h), atol=5e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_sparse_rows_give_what_dense_ones_give(loss):
    X = data()[0]
    X[np.abs(X) < 0.5] = 0.0
    dense, thin = problem(loss, X), problem(loss, sparse.csr_array(X))
    np.testing.assert_allclose(thin.value_grad(COEF)[1], dense.value_grad(COEF)[1], rtol=1e-12)
    np.testing.assert_allclose(thin.hessian(COEF), dense.hessian(COEF), rtol=1e-12)


def test_units_change_the_intercept_but_not_the_objective():
    X, centre = data()[0], np.array([1e6, 0.0, -1e6])
    plain, far = problem("logistic", X), problem("logistic", X + centre)
    assert not far.data.units.plain
    shift = float((far.data.units.centre - centre) @ COEF[:-1])
    moved = np.append(COEF[:-1], COEF[-1] + shift)
    assert far.value(moved) == pytest.approx(plain.value(COEF), rel=1e-9)
    np.testing.assert_allclose(
        far.value_grad(moved)[1][-1], plain.value_grad(COEF)[1][-1], atol=1e-9
    )


def test_the_intercept_is_not_penalised():
    at = problem("logistic")
    assert at.size == D + 1
    np.testing.assert_array_equal(at.penalty, [ALPHA, ALPHA, ALPHA, 0.0])
    assert at.column_scale().shape == (D + 1,)


def test_absent_rows_count_for_nothing_even_where_their_loss_is_infinite():
    X, positive, _ = data()
    X = np.vstack([X, np.full((1, D), 1e5)])
    weight = np.append(np.ones(N), 0.0)
    task = PointwiseTask(Exponential(), ALPHA)
    value, grad = on_rows(task, X, np.append(positive, False), weight).value_grad(COEF)
    assert value == pytest.approx(by_hand("exponential", COEF, weighted=False), rel=1e-12)
    assert np.all(np.isfinite(grad))


@pytest.mark.parametrize("loss", CONVEX)
def test_settling_finds_the_best_intercept(loss):
    at = problem(loss)
    settled = at.settle_intercept(COEF)
    np.testing.assert_array_equal(settled[:-1], COEF[:-1])
    assert abs(at.value_grad(settled)[1][-1]) < 2e-12
    assert at.value(settled) <= at.value(COEF)


@pytest.mark.parametrize("loss", CONVEX)
def test_newton_and_lbfgs_agree(loss):
    at = problem(loss)
    start = np.zeros(D + 1)
    one, other = (solve(at, start, tol=1e-7) for solve in (newton, lbfgs))
    assert one.converged and other.converged
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-5)


def test_many_rows_are_thinned_class_by_class_for_a_first_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 2))
    positive = rng.random(50_000) < 0.02
    whole = on_rows(PointwiseTask(Logistic(), 0.1), X, positive)
    coarse = whole.coarse()
    assert coarse.n_rows < 10_000
    assert coarse.size == whole.size
    coef = np.array([0.3, -0.2, -3.0])
    np.testing.assert_allclose(coarse.hessian(coef), whole.hessian(coef, exact=False))
    np.testing.assert_allclose(coarse.value(coef), whole.value(coef), rtol=0.05)


def test_only_losses_that_fall_for_ever_run_away_on_separated_rows():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    positive = np.array([False, False, True, True])
    coef = np.array([1.0, 0.0])

    def at(loss, alpha=0.0):
        return on_rows(PointwiseTask(loss, alpha), X, positive)

    assert at(Logistic()).runs_away(coef) and at(Logistic()).is_undetermined(coef)
    assert not at(Logistic()).runs_away(-coef)
    assert not at(Logistic(), 0.1).runs_away(coef)
    assert not at(Squared()).runs_away(coef) and not at(Squared()).is_undetermined(coef)
