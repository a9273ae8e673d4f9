"""Crucial pairs with real weights (Rudin 2009, Section 7): weight two is a pair listed twice."""

import numpy as np
import pytest
from scipy.optimize import minimize

from toprank import PairRanker, Pairs, RankBoost, SmoothMarginRanker

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
LISTED = np.array([(i, k) for i in range(30) for k in range(30) if X[i, 0] > X[k, 0] + 0.8])[::3]
LISTED = np.vstack([LISTED, LISTED[:5, ::-1]])  # some contradict
COUNT = RNG.integers(0, 4, size=len(LISTED))
WEIGHTED = Pairs(LISTED, 30, COUNT)
REPEATED = np.repeat(LISTED, COUNT, axis=0)
ROWS = RNG.integers(1, 3, size=30).astype(float)


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("price", ["identity", "power", "exponential", "max"])
def test_a_ranker_counts_a_weighted_pair_as_often(price, end):
    kwargs = {"price": price, "loss": "logistic", "p": 3.0, "end": end, "alpha": 0.1}
    one = PairRanker(**kwargs).fit(X, pairs=WEIGHTED, sample_weight=ROWS)
    other = PairRanker(**kwargs).fit(X, pairs=REPEATED, sample_weight=ROWS)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    assert one.score(X, pairs=WEIGHTED) == pytest.approx(other.score(X, pairs=REPEATED))


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_solvers_and_losses_agree(solver):
    for loss in ("squared_hinge", "exponential"):
        one = PairRanker(loss=loss, solver=solver, alpha=0.1).fit(X, pairs=WEIGHTED)
        other = PairRanker(loss=loss, alpha=0.1).fit(X, pairs=REPEATED)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)


@pytest.mark.parametrize("kernel_on", ["items", "pairs"])
def test_kernels_count_a_weighted_pair_as_often(kernel_on):
    kwargs = {"kernel": "rbf", "kernel_on": kernel_on, "alpha": 0.1}
    one = PairRanker(**kwargs).fit(X, pairs=WEIGHTED)
    other = PairRanker(**kwargs).fit(X, pairs=REPEATED)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-4)


@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize("weak", ["stumps", "features"])
def test_boosting_counts_a_weighted_pair_as_often(p, weak):
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    kwargs = {"p": p, "target": "graded", "weak_rankers": weak, "selection": "slope"}
    one = RankBoost(6, **kwargs).fit(Z, None, pairs=WEIGHTED)
    other = RankBoost(6, **kwargs).fit(Z, None, pairs=REPEATED)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)
    assert one.margin_ == pytest.approx(other.margin_)


def test_halved_weights_leave_smooth_margins_alone():
    """The lightest pair is the unit: G < margin needs a loss of at least two such pairs."""
    pairs = np.argwhere(X[:, :1] > X[:, 0] + 0.5)
    light = SmoothMarginRanker(30, target="graded").fit(
        X, None, pairs=Pairs(pairs, 30, np.full(len(pairs), 0.5))
    )
    plain = SmoothMarginRanker(30, target="graded").fit(X, None, pairs=pairs)
    np.testing.assert_allclose(light.smooth_margin_, plain.smooth_margin_, atol=1e-9)


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_the_push_over_weighted_pairs_is_its_definition_at_either_end(end):
    real = RNG.uniform(0.1, 2.0, size=len(LISTED))
    fit = PairRanker("power", "exponential", 0.05, p=2.0, end=end, tol=1e-9)
    fit.fit(X, pairs=Pairs(LISTED, 30, real))

    def objective(coef):
        f = X @ coef
        loss = real * np.exp(f[LISTED[:, 1]] - f[LISTED[:, 0]])
        outer = LISTED[:, 1 if end == "top" else 0]
        return 0.5 * np.log(np.sum(np.bincount(outer, loss) ** 2)) + 0.025 * coef @ coef

    found = minimize(objective, np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(fit.coef_, found.x, atol=1e-5)


def test_the_ir_objective_on_ranks_is_a_push_over_all_pairs_with_a_positive():
    """Section 7: the rank in place of the reverse height, sum_i ln(1 + Rank(i)) made convex."""
    from toprank.metrics import rank_risk

    y = X[:, 0] + RNG.normal(size=30) > 0.5
    pairs = [(i, x) for i in np.flatnonzero(y) for x in range(30) if x != i]
    # a positive is in its own rank, with a loss of one
    price = (lambda s: np.log(2 + s), lambda s: 1 / (2 + s), lambda s: -1 / (2 + s) ** 2)
    fit = PairRanker(price, "exponential", alpha=0.1, end="bottom").fit(X, pairs=pairs)

    def objective(coef):
        return rank_risk(y, X @ coef, loss="exponential") + 0.05 * coef @ coef

    found = minimize(objective, np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(fit.coef_, found.x, atol=1e-4)
    assert fit.objective_ == pytest.approx(found.fun, rel=1e-8)


def test_weights_travel_with_their_pairs():
    kept = WEIGHTED.take(np.arange(15))
    both = (LISTED < 15).all(axis=1)
    assert np.array_equal(kept.weight, COUNT[both])
    assert WEIGHTED == Pairs(LISTED, 30, COUNT) and WEIGHTED != Pairs(LISTED, 30)
    assert Pairs(LISTED, 30) == Pairs(LISTED, 30, np.ones(len(LISTED)))
    assert "weighted" in repr(WEIGHTED)


@pytest.mark.parametrize(
    ("weight", "match"),
    [([1.0], "one number per pair"), (-COUNT - 1.0, "negative"), (COUNT * np.nan, "NaN")],
)
def test_weights_that_make_no_sense_are_refused(weight, match):
    with pytest.raises(ValueError, match=match):
        Pairs(LISTED, 30, weight)


def test_pairs_of_weight_zero_are_no_pairs():
    with pytest.raises(ValueError, match="no pair to rank: each has weight zero"):
        PairRanker().fit(X, pairs=Pairs(LISTED, 30, np.zeros(len(LISTED))))
