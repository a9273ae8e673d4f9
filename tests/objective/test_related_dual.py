"""The dual of rankers over crucial pairs: grades, groups, listed and weighted pairs, boosting."""

import numpy as np
import pytest

from toprank import PairRanker, Pairs, PNormPush, RankBoost, SmoothMarginRanker

RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 3))
Y = np.clip(np.round(X[:, 0] + RNG.normal(size=24)), -1, 1)
GROUPS = np.arange(24) % 3
WEIGHT = RNG.integers(1, 3, size=24).astype(float)
LISTED = np.argwhere(Y[:, None] > Y)[::2]
PI = RNG.uniform(0.2, 2.0, size=len(LISTED))
GIVEN = {
    "grades": {"y": Y},
    "groups": {"y": Y, "groups": GROUPS},
    "weighted rows": {"y": Y, "sample_weight": WEIGHT},
    "weighted pairs": {"pairs": Pairs(LISTED, 24, PI)},
}


@pytest.mark.parametrize("given", sorted(GIVEN))
@pytest.mark.parametrize(
    "ranker",
    [
        PairRanker(alpha=0.05, tol=1e-8),
        PairRanker("power", "exponential", 0.05, p=3.0, tol=1e-8),
        PairRanker("power", "logistic", 0.05, p=2.0, end="bottom", tol=1e-8),
        PairRanker("log1p", "exponential", 0.5, tol=1e-8),
    ],
    ids=["mean", "push", "bottom", "ir"],
)
def test_pair_weights_balance_the_columns_and_certify_the_minimum(ranker, given):
    fit = ranker.fit(X, **GIVEN[given])
    dual = fit.dual(X, **GIVEN[given])
    pairs, weight = dual.pair_weights()
    assert np.all(weight >= 0) and len(pairs) == fit.n_pairs_
    if "pairs" not in GIVEN[given]:
        assert np.all(Y[pairs[:, 0]] > Y[pairs[:, 1]])
    sums = np.bincount(pairs[:, 0], weight, 24) - np.bincount(pairs[:, 1], weight, 24)
    np.testing.assert_allclose(sums, dual.row_weight, atol=1e-9)
    apart = X[pairs[:, 0]] - X[pairs[:, 1]]
    np.testing.assert_allclose(weight @ apart, fit.alpha * fit.coef_, atol=1e-5)
    assert dual.gap == pytest.approx(fit.optimality_gap_, rel=1e-3, abs=1e-9)


def test_two_classes_have_the_weights_of_the_p_norm_push():
    y = (Y > 0).astype(int)
    of_classes = PNormPush(p=3.0, alpha=0.1).fit(X, y)
    of_pairs = PairRanker("power", "exponential", 0.1, p=3.0).fit(X, y)
    pairs, weight = of_pairs.dual(X, y).pair_weights()
    both = of_classes.dual(X, y)
    table = np.zeros((24, 24))
    table[pairs[:, 0], pairs[:, 1]] = weight
    expected = both.pair_weights()
    np.testing.assert_allclose(table[np.ix_(both.positives, both.negatives)], expected, atol=1e-5)


@pytest.mark.parametrize("given", sorted(GIVEN))
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_boosting_weighs_pairs_as_its_next_round_does(given, p):
    kwargs = dict(GIVEN[given])
    y = kwargs.pop("y", None)
    first = RankBoost(3, p=p, selection="slope", target="graded").fit(X, y, **kwargs)
    pairs, weight = first.dual(X, y, **kwargs).pair_weights()
    assert np.sum(weight) == pytest.approx(1.0)
    fourth = RankBoost(4, p=p, selection="slope", target="graded").fit(X, y, **kwargs).history_[3]
    h = X[:, fourth["feature"]] > fourth["threshold"]
    sign = h[pairs[:, 0]].astype(int) - h[pairs[:, 1]]
    assert weight @ sign == pytest.approx(fourth["edge"], abs=1e-9)
    assert np.sum(weight[sign == 1]) == pytest.approx(fourth["d_plus"], abs=1e-9)


@pytest.mark.more
def test_named_classes_and_smooth_margins_have_weights_too():
    names = np.where(Y > 0, "yes", "no")
    fit = SmoothMarginRanker(200).fit(X, names)
    pairs, weight = fit.dual(X, names).pair_weights()
    f = fit.decision_function(X)
    expected = np.exp(-(f[pairs[:, 0]] - f[pairs[:, 1]]))
    np.testing.assert_allclose(weight, expected / expected.sum(), atol=1e-12)


def test_kernels_have_weights_and_kernels_on_pairs_do_not():
    dual = PairRanker("identity", "logistic", kernel="rbf").fit(X, Y).dual(X, Y)
    assert np.isnan(dual.gap) and np.sum(dual.row_weight) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="no score per row"):
        PairRanker(kernel="rbf", kernel_on="pairs").fit(X, Y).dual(X, Y)
    with pytest.raises(ValueError, match="corners"):
        PairRanker(loss="hinge").fit(X, Y).dual(X, Y)
