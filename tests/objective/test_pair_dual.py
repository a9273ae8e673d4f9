"""The dual of fitted rankers (Rudin 2009, Theorem 4): weights of pairs, and of rows."""

import numpy as np
import pytest
from scipy import sparse

from toprank import IRPush, PNormPush, PushRanker
from toprank.objective import PairEntropy

RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] + RNG.normal(size=40) > 0.3).astype(int)
WEIGHT = RNG.integers(0, 3, size=40) + (np.arange(40) < 4)
POS, NEG = np.flatnonzero(Y), np.flatnonzero(1 - Y)
RANKERS = [
    PNormPush(p=1),
    PNormPush(p=4),
    PNormPush(p=4, loss="logistic"),
    PNormPush(p=2, loss="squared_hinge", alpha=0.1),
    IRPush(alpha=0.1),
    PushRanker(price="exponential", alpha=0.1),
    PushRanker(end="bottom", p=3),
    PushRanker(end="both", p=3, balance=0.5),
    PushRanker(end="both", p=3, balance=0.5, balance_of="sums"),
    PushRanker(price=(np.square, lambda s: 2 * s), alpha=0.1, tol=1e-10),
]


def objective_in_margins(ranker, margins):
    """F as a function of the I x K margins, from its definition."""
    loss = {
        "exponential": lambda r: np.exp(-r),
        "logistic": lambda r: np.log1p(np.exp(-r)),
        "squared_hinge": lambda r: np.maximum(1 - r, 0) ** 2,
    }[getattr(ranker, "loss", "exponential")]
    L = loss(margins)
    n_pos, n_neg = L.shape
    if isinstance(ranker, IRPush):
        return np.sum(np.log1p(L.sum(axis=1)))
    p, price = ranker.p, getattr(ranker, "price", "power")
    if price == "exponential":
        return np.log(np.sum(np.exp(L.sum(axis=0))))
    if not isinstance(price, str):
        return np.sum(L.sum(axis=0) ** 2)
    top, bottom = np.mean(L.mean(axis=0) ** p), np.mean(L.mean(axis=1) ** p)
    end = getattr(ranker, "end", "top")
    if end == "both":
        balance = ranker.balance * (
            (n_neg / n_pos) ** (p - 1) if ranker.balance_of == "sums" else 1.0
        )
        top = top + balance * bottom
    risk = bottom if end == "bottom" else top
    return np.log(risk) / p if loss(-1.0) == np.exp(1.0) else risk ** (1 / p)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: str(r).split("<")[0])
def test_pair_weights_are_the_slopes_in_the_margins(ranker):
    fit = ranker.fit(X, Y)
    dual = fit.dual(X, Y)
    margins = (X @ fit.coef_[0])[POS][:, None] - (X @ fit.coef_[0])[NEG]
    weights = dual.pair_weights()
    assert np.array_equal(dual.positives, POS) and np.array_equal(dual.negatives, NEG)
    for i, k in [(0, 0), (3, 5), (len(POS) - 1, len(NEG) - 1)]:
        values = []
        for step in (1e-5, -1e-5):
            moved = margins.copy()
            moved[i, k] += step
            values.append(objective_in_margins(fit, moved))
        assert weights[i, k] == pytest.approx((values[1] - values[0]) / 2e-5, rel=1e-4, abs=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), dual.row_weight[POS], atol=1e-10)
    np.testing.assert_allclose(-weights.sum(axis=0), dual.row_weight[NEG], atol=1e-10)
    # at the minimum the weights balance the columns against the penalty, and certify it
    np.testing.assert_allclose(X.T @ dual.row_weight, fit.alpha * fit.coef_[0], atol=2e-5)
    assert dual.gap == pytest.approx(fit.optimality_gap_, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_products_are_the_papers_weights_and_those_of_its_entropy(p):
    fit = PNormPush(p=p).fit(X, Y)
    ((u, v),) = fit.dual(X, Y).factors
    q = PairEntropy("power", p).weights((X @ fit.coef_[0])[POS][:, None] - (X @ fit.coef_[0])[NEG])
    np.testing.assert_allclose(np.outer(u, v), q / q.sum(), rtol=1e-9)


def test_weights_count_repetitions():
    repeated = np.repeat(np.arange(40), WEIGHT)
    fit = PNormPush(p=3).fit(X, Y, sample_weight=WEIGHT)
    dual = fit.dual(X, Y, sample_weight=WEIGHT)
    other = fit.dual(X[repeated], Y[repeated])
    sums = np.bincount(repeated, other.row_weight, minlength=40)
    np.testing.assert_allclose(dual.row_weight, sums, atol=1e-12)
    assert np.all(dual.row_weight[WEIGHT == 0] == 0)
    assert dual.gap == pytest.approx(fit.optimality_gap_, rel=1e-3, abs=1e-9)


def test_the_pair_weights_are_unique_where_the_coefficients_are_not():
    twice = np.column_stack([X, X[:, 0]])
    one = PNormPush(alpha=0.0, tol=1e-9).fit(X, Y)
    other = PNormPush(alpha=0.0, tol=1e-9, solver="lbfgs").fit(twice, Y)
    np.testing.assert_allclose(
        one.dual(X, Y).pair_weights(), other.dual(twice, Y).pair_weights(), atol=1e-6
    )


def test_positive_coefficients_keep_their_certificate():
    fit = PNormPush(positive=True).fit(X, Y)
    assert fit.dual(X, Y).gap == pytest.approx(fit.optimality_gap_, rel=1e-3, abs=1e-8)


def test_frames_and_sparse_rows_serve_and_bad_rows_are_refused():
    fit = PNormPush().fit(X, Y)
    dense = fit.dual(X, Y)
    thin = fit.dual(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(dense.row_weight, thin.row_weight, atol=1e-12)
    assert thin.gap == pytest.approx(dense.gap, abs=1e-12)
    with pytest.raises(ValueError, match="classes"):
        fit.dual(X, Y + 1)
    with pytest.raises(ValueError, match="one per row"):
        fit.dual(X, Y[:-1])
    with pytest.raises(ValueError, match="corners"):
        PNormPush(p=np.inf).fit(X, Y).dual(X, Y)
    with pytest.raises(ValueError, match="corners"):
        PNormPush(loss="hinge", alpha=0.1).fit(X, Y).dual(X, Y)


def test_negatives_below_every_margin_weigh_nothing():
    y = (X[:, 0] > 0).astype(int)
    far = np.column_stack([10.0 * X[:, 0], X[:, 1:]])
    fit = PNormPush(p=2, loss="squared_hinge", alpha=1e-3).fit(far, y)
    weights = fit.dual(far, y).pair_weights()
    assert np.all(np.isfinite(weights)) and np.any(weights.sum(axis=0) == 0)
