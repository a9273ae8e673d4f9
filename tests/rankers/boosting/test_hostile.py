"""Inputs that a booster meets in the wild: odd weights, refits, clones, metrics that fail."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from toprank import AdaBoostRanker, LabelRanker, RankBoost, SmoothMarginRanker
from toprank.metrics import precision_at, scorer


@pytest.fixture
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] + rng.normal(size=120) > 0).astype(int)


@pytest.mark.parametrize("p", [1.0, 8.0])
@pytest.mark.parametrize("size", [1e300, 1e150])
def test_weights_near_the_largest_float_neither_warn_nor_overflow(p, size, noisy):
    X, y = noisy
    scores = RankBoost(30, p=p).fit(X, y, sample_weight=np.full(120, size)).decision_function(X)
    assert np.all(np.isfinite(scores))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1e-300, 5e-324, 0.01])
@pytest.mark.parametrize(
    "ranker",
    [
        RankBoost(30),
        RankBoost(30, target="graded"),
        AdaBoostRanker(30),
        LabelRanker(30, method="mr_pooled"),
    ],
    ids=["two classes", "graded", "AdaBoost", "labels"],
)
def test_small_weights_all_alike_say_what_weights_of_one_say(ranker, size, noisy):
    X, y = noisy
    light = clone(ranker).fit(X, y, sample_weight=np.full(120, size))
    plain = clone(ranker).fit(X, y)
    assert [r["step"] for r in light.history_] == pytest.approx(
        [r["step"] for r in plain.history_], rel=1e-9
    )


@pytest.mark.parametrize("target", ["binary", "graded"])
def test_light_weights_do_not_make_the_smooth_margin_claim_a_separation(target, noisy):
    X, y = noisy
    light = np.random.default_rng(1).uniform(1e-6, 1e-3, 120)
    ranker = SmoothMarginRanker(40, n_thresholds=5, target=target)
    with pytest.warns(ConvergenceWarning, match="not separated"):
        ranker.fit(X, y, sample_weight=light)
    assert not ranker.separated_
    assert ranker.margin_ < 0


@pytest.mark.parametrize("weak", ["stumps", "features"])
def test_the_smooth_margin_stays_below_the_margin_whatever_the_weights(weak):
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(40, 2))
    y = (X[:, 0] > 0.5).astype(int)
    X[:, 0] = 0.5 + 0.5 * (X[:, 0] - 0.5)
    X[:, 0] += np.where(y, 0.2, -0.2)
    light = rng.uniform(1e-4, 1e-2, 40)
    ranker = SmoothMarginRanker(300, weak_rankers=weak).fit(X, y, sample_weight=light)
    assert 0 < ranker.smooth_margin_[-1] < ranker.margin_ <= ranker.rho_ + 1e-12
    rising = np.diff(ranker.smooth_margin_[np.array([r["ascent"] for r in ranker.history_])])
    assert np.all(rising >= -1e-12)


def test_another_fit_leaves_nothing_of_the_last_one(noisy):
    X, y = noisy
    ranker = RankBoost(10, n_iter_no_change=5, random_state=0).fit(X, y)
    ranker.set_params(n_iter_no_change=None, target="graded", weak_rankers="binary")
    ranker.fit(X > 0, y)
    fresh = clone(ranker).fit(X > 0, y)
    assert set(vars(ranker)) == set(vars(fresh))
    assert not hasattr(ranker, "classes_")


def test_early_stopping_says_why_the_rounds_ended(noisy):
    X, y = noisy
    ranker = RankBoost(200, n_iter_no_change=3, random_state=0).fit(X, y)
    assert ranker.n_iter_ < 200
    assert (
        ranker.stop_reason_ == f"the rows set apart were ranked best after round {ranker.n_iter_}"
    )


@pytest.mark.parametrize("constant", ["weak", "reset"])
def test_adaboost_is_stopped_by_the_scores_it_will_give(constant, noisy):
    X, y = noisy
    seen = []

    def scoring(labels, scores):
        seen.append(scores - scores[0])
        return float(len(seen))

    columns = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    ranker = AdaBoostRanker(
        20,
        constant=constant,
        weak_rankers="features",
        n_iter_no_change=5,
        scoring=scoring,
        random_state=0,
    ).fit(columns, y)
    scores = ranker.decision_function(columns)
    gaps = scores[:, None] - scores
    assert np.all([np.any(np.isclose(gaps, gap, rtol=0, atol=1e-9)) for gap in seen[-1]])


@pytest.mark.parametrize(
    ("scoring", "match"),
    [
        (lambda labels, scores: np.nan, "is NaN on the"),
        (scorer("precision_at", k=5), "functools.partial"),
    ],
)
def test_a_metric_that_cannot_stop_the_rounds_is_refused(scoring, match, noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=match):
        RankBoost(10, n_iter_no_change=3, scoring=scoring).fit(X, y)


def test_a_metric_with_its_settings_stops_the_rounds(noisy):
    X, y = noisy
    top, whole = partial(precision_at, k=3), partial(precision_at, k=12)
    rankers = [
        RankBoost(50, n_iter_no_change=3, scoring=scoring, random_state=0).fit(X, y)
        for scoring in (top, whole)
    ]
    prevalence = rankers[1].validation_scores_[0]  # all twelve rows set apart
    assert np.all(rankers[1].validation_scores_ == prevalence)
    assert rankers[0].validation_scores_.max() > prevalence


def test_a_metric_of_labels_needs_labels(noisy):
    X, _ = noisy
    ranker = RankBoost(10, target="graded", n_iter_no_change=3, scoring="auc")
    pairs = [(i, j) for i in range(60) for j in range(60, 120)]
    with pytest.raises(ValueError, match="there is no y"):
        ranker.fit(X, None, pairs=pairs)


def test_scores_of_graded_rows_are_checked_at_the_door(noisy):
    X, y = noisy
    ranker = RankBoost(5, target="graded").fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ranker.score(X, y[:7])
    with pytest.raises(ValueError, match="groups has 3 entries"):
        ranker.score(X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="known group"):
        ranker.fit(X, y, groups=[None, *["a"] * 119])
    mixed = RankBoost(5).fit(X, y, groups=[*[1] * 60, *["a"] * 60])
    named = RankBoost(5).fit(X, y, groups=np.repeat([0, 1], 60))
    assert np.array_equal(mixed.decision_function(X), named.decision_function(X))


@pytest.mark.parametrize("weak", [3, LogisticRegression])
def test_what_is_no_weak_ranker_is_refused(weak, noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=r"weak_rankers\[0\] is .*expected a function of X"):
        RankBoost(5, weak_rankers=[weak]).fit(X, y)


def test_weak_rankers_that_a_clone_forgot_are_named_with_the_remedy(noisy):
    X, y = noisy
    fitted = LogisticRegression().fit(X, y)
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        clone(RankBoost(5, weak_rankers=[fitted])).fit(X, y)
    for kept in (fitted.predict, FrozenEstimator(fitted)):
        assert clone(RankBoost(5, weak_rankers=[kept])).fit(X, y).n_iter_


def test_labels_other_than_zero_and_one_are_refused(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match="expected 0 and 1 only"):
        LabelRanker(5).fit(X, np.column_stack([2 * y + 1, 3 - 2 * y]))


@pytest.mark.more
@pytest.mark.parametrize(
    "weak",
    ["stumps", "features", DecisionTreeRegressor(max_depth=2)],
    ids=["stumps", "features", "trees"],
)
def test_rounds_end_where_the_loss_of_separated_grades_is_zero(weak):
    y = np.repeat([0, 1, 2], 2)
    X = y[:, None] / 2
    ranker = RankBoost(3000, target="graded", weak_rankers=weak).fit(X, y)
    assert ranker.n_iter_ < 3000
    assert "the loss is zero to the last digit" in ranker.stop_reason_
    scores = ranker.decision_function(X)
    assert np.all(scores[2:] - scores[:-2] > 700)  # e^-gap of every pair is below all floats


def test_one_exact_step_is_enough_for_one_pair():
    """After it the smooth margin is 1, the largest margin there is: no step raises it."""
    ranker = SmoothMarginRanker(10, step="exact").fit([[0.0], [1.0]], [0, 1])
    assert ranker.n_iter_ == 1
    assert ranker.margin_ == 1.0
    assert ranker.smooth_margin_[-1] == pytest.approx(1.0, rel=1e-15)
    assert ranker.stop_reason_ == "no weak ranker improves the ranking"
