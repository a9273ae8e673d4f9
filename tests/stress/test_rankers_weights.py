"""Weights of any size give the fit of their ratios, or are refused with the remedy."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank import (
    AdaBoostRanker,
    IRPush,
    PairRanker,
    PNormPush,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)

RANKERS = [
    PNormPush(),
    PNormPush(loss="logistic"),
    PNormPush(p=np.inf, loss="squared_hinge"),
    PNormPush(class_weight="balanced"),
    IRPush(),
    PushRanker(end="both"),
    ProperRanker(),
    RankBoost(5),
    RankBoost(5, target="graded"),
    SmoothMarginRanker(5, target="graded"),
    AdaBoostRanker(5),
    PairRanker(),
    PairRanker(kernel="rbf"),
]
each_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=repr)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(60, 3)).astype(float)
    y = np.arange(60) % 2
    X[:, 0] += 2 * y
    return X, y, rng.integers(1, 4, 60).astype(float)


def scores_of(ranker, X):
    return (getattr(ranker, "decision_function", None) or ranker.predict)(X)


@each_ranker
def test_weights_whose_sum_is_no_float_are_refused(ranker, rows):
    # they gave scores of NaN, and an objective of minus infinity
    X, y, _ = rows
    with pytest.raises(ValueError, match=r"adds up to more than any float.*by their mean"):
        clone(ranker).fit(X, y, sample_weight=np.full(60, 1.7e308))


@pytest.mark.parametrize(
    "ranker", [PNormPush(), ProperRanker(), PNormPush(class_weight="balanced"), PairRanker()]
)
def test_weights_too_far_apart_for_any_sum_are_refused(ranker, rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match=r"from 1e-300 to 1e\+300.*Use 0 to leave a row out"):
        clone(ranker).fit(X, y, sample_weight=np.where(y, 1e-300, 1e300))


@pytest.mark.filterwarnings("ignore:The pairs were not separated")
@each_ranker
def test_a_weight_is_a_repetition_and_zero_an_absent_row(ranker, rows):
    X, y, counts = rows
    counts = counts - (np.arange(60) % 7 == 0)
    repeated = np.repeat(np.arange(60), counts.astype(int))
    weighted = clone(ranker).fit(X, y, sample_weight=counts)
    alone = clone(ranker).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        scores_of(weighted, X), scores_of(alone, X), atol=2e-4 * np.ptp(scores_of(alone, X))
    )


@pytest.mark.parametrize("ranker", [PNormPush(), RankBoost(5, link="logistic")], ids=repr)
@pytest.mark.parametrize("total", [1.0, 1e-300])
def test_probabilities_from_weights_that_are_shares_are_not_all_one_half(ranker, total, rows):
    # Platt's targets took the total for the number of rows, and both became one half
    X, y, counts = rows
    plain = clone(ranker).fit(X, y, sample_weight=counts * 60 / counts.sum())
    shares = clone(ranker).fit(X, y, sample_weight=counts * total / counts.sum())
    np.testing.assert_allclose(shares.predict_proba(X), plain.predict_proba(X), atol=1e-4)
    assert np.ptp(shares.predict_proba(X)[:, 1]) > 0.2


def test_counts_are_still_counts_to_the_link(rows):
    X, y, counts = rows
    repeated = np.repeat(np.arange(60), counts.astype(int))
    weighted = PNormPush().fit(X, y, sample_weight=counts)
    alone = PNormPush().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict_proba(X), alone.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e30])
def test_weights_that_float32_cannot_hold_are_refused_by_trees(weight, rows):
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    X, y, _ = rows
    with pytest.raises(ValueError, match=r"hold weights as float32.*by their mean"):
        PushTrees(n_estimators=3, n_jobs=1).fit(X, y, sample_weight=np.full(60, weight))


def test_trees_without_a_split_say_that_the_weights_are_too_light(rows):
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    X, y, counts = rows
    with pytest.warns(ConvergenceWarning, match="adds up to 1 for 60 rows.*min_child_weight=1"):
        PushTrees(n_estimators=3, n_jobs=1).fit(X, y, sample_weight=counts / counts.sum())


@pytest.mark.parametrize("size", [5e-324, 1e-12, 1e12, 1e300])
@pytest.mark.parametrize(
    "ranker",
    [PNormPush(), PNormPush(loss="logistic"), ProperRanker(), PairRanker()],
    ids=repr,
)
def test_only_the_ratios_of_weights_matter_to_a_mean(ranker, size, rows):
    X, y, counts = rows
    plain = clone(ranker).fit(X, y, sample_weight=counts)
    scaled = clone(ranker).fit(X, y, sample_weight=counts * size)
    apart = scores_of(plain, X) - scores_of(scaled, X)  # the link alone may count rows
    assert np.ptp(apart, axis=0).max() <= 1e-5 * np.ptp(scores_of(plain, X))
