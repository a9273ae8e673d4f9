"""Boosters as estimators: early stopping, stages, grades, groups, frames, and what they refuse."""

import pickle

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import check_is_fitted

from toprank import (
    AdaBoostRanker,
    PairRanker,
    Pairs,
    PNormPush,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.metrics import METRICS, auc

BOOSTERS = [RankBoost, AdaBoostRanker, SmoothMarginRanker]


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] + 1.5 * rng.normal(size=400) > 0.8).astype(int)
    return X, y


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", sorted(set(METRICS) - {"value_at"}))
def test_any_metric_can_stop_the_rounds(name, noisy):
    fit = RankBoost(25, n_iter_no_change=5, scoring=name, random_state=0).fit(*noisy)
    values = fit.validation_scores_
    assert fit.n_iter_ == 1 + int(np.argmax(values))
    assert len(values) == 25 or len(values) - fit.n_iter_ == 5
    assert len(fit.history_) == fit.n_iter_


@pytest.mark.parametrize("booster", [RankBoost, AdaBoostRanker])
def test_stopping_keeps_the_rounds_up_to_the_best(booster, noisy):
    X, y = noisy
    fit = booster(500, n_iter_no_change=10, random_state=0, validation_fraction=0.3).fit(X, y)
    assert fit.n_iter_ < 200
    assert len(fit.validation_scores_) == fit.n_iter_ + 10
    assert np.max(fit.validation_scores_) == fit.validation_scores_[fit.n_iter_ - 1]
    again = booster(500, n_iter_no_change=10, random_state=0, validation_fraction=0.3).fit(X, y)
    np.testing.assert_array_equal(fit.decision_function(X), again.decision_function(X))


def test_a_function_can_stop_the_rounds(noisy):
    by_name = RankBoost(50, n_iter_no_change=5, scoring="auc", random_state=1).fit(*noisy)
    by_hand = RankBoost(50, n_iter_no_change=5, scoring=auc, random_state=1).fit(*noisy)
    by_pairs = RankBoost(50, n_iter_no_change=5, random_state=1).fit(*noisy)
    assert by_name.n_iter_ == by_hand.n_iter_ == by_pairs.n_iter_
    np.testing.assert_allclose(by_name.validation_scores_, by_pairs.validation_scores_)


def test_stopping_sets_whole_groups_apart_and_grades_by_concordance(noisy):
    X, _ = noisy
    groups = np.repeat(np.arange(40), 10)
    grades = np.digitize(X[:, 0] + np.random.default_rng(0).normal(size=400), [-1, 0, 1])
    fit = RankBoost(100, target="graded", n_iter_no_change=5, random_state=0)
    fit.fit(X, grades, groups=groups)
    assert 0.6 < fit.validation_scores_.max() <= 1.0


def test_stopping_with_listed_pairs_keeps_the_pairs_of_either_part(noisy):
    X, y = noisy
    pairs = np.argwhere(y[:, None] > y)
    fit = RankBoost(30, n_iter_no_change=5, random_state=0).fit(X, y, pairs=pairs)
    assert fit.n_iter_ >= 1


def test_a_class_of_one_row_cannot_be_split():
    X, y = np.arange(10.0)[:, None], np.arange(10) == 9
    with pytest.raises(ValueError, match="n_iter_no_change"):
        RankBoost(n_iter_no_change=3).fit(X, y)


def test_rows_set_apart_without_a_pair_are_refused(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match="hold no crucial pair"):
        RankBoost(n_iter_no_change=3, random_state=0).fit(X, y, pairs=[[0, 1], [2, 1]])


def test_an_unknown_metric_is_refused(noisy):
    with pytest.raises(ValueError, match="Unknown metric"):
        RankBoost(n_iter_no_change=3, scoring="nonsense").fit(*noisy)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.filterwarnings("ignore:The pairs were not separated")
def test_the_stages_end_at_the_scores(booster, noisy):
    X, y = noisy
    fit = booster(12).fit(X, y)
    stages = list(fit.staged_decision_function(X))
    assert len(stages) == len([r for r in fit.history_ if r["feature"] is not None])
    np.testing.assert_allclose(stages[-1], fit.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("booster", [RankBoost(20), RankBoost(20, p=4.0), AdaBoostRanker(20)])
@pytest.mark.parametrize("link", ["p_classification", "logistic"])
def test_zero_is_a_probability_of_one_half(booster, link, noisy):
    X, y = noisy
    fit = booster.set_params(link=link).fit(X, y)
    scores, probability = fit.decision_function(X), fit.predict_proba(X)
    np.testing.assert_array_equal(scores > 0, probability[:, 1] > 0.5)
    np.testing.assert_array_equal(scores > 0, fit.predict(X) == 1)
    np.testing.assert_allclose(np.exp(fit.predict_log_proba(X)), probability, atol=1e-12)


def test_grades_make_a_plain_ranker(noisy):
    X, _ = noisy
    grades = np.round(2 * X[:, 0] + np.random.default_rng(0).normal(size=400))
    fit = RankBoost(50, target="graded").fit(X, grades)
    assert not is_classifier(fit)
    assert is_classifier(RankBoost())
    assert not hasattr(fit, "predict_proba")
    assert not hasattr(fit, "classes_")
    np.testing.assert_array_equal(fit.predict(X), fit.decision_function(X))
    right = np.argwhere(grades[:, None] > grades)
    f = fit.predict(X)
    signs = np.sign(f[right[:, 0]] - f[right[:, 1]])
    assert fit.score(X, grades) == pytest.approx(np.mean((1 + signs) / 2))
    assert fit.score(X, grades) > 0.75
    assert cross_val_score(RankBoost(20, target="graded"), X, grades, cv=3).min() > 0.6


def test_real_labels_are_grades(noisy):
    X, _ = noisy
    y = X[:, 0] ** 3
    fit = RankBoost(60, target="graded").fit(X, y)
    assert fit.score(X, y) > 0.97


def test_the_score_of_grades_may_be_within_groups(noisy):
    X, _ = noisy
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 400), rng.integers(0, 30, 400)
    weight = rng.integers(0, 3, 400).astype(float)
    fit = RankBoost(10, target="graded").fit(X, y, groups=groups)
    pairs = np.argwhere((y[:, None] > y) & (groups[:, None] == groups))
    f = fit.predict(X)
    mass = weight[pairs].prod(axis=1)
    right = (1 + np.sign(f[pairs[:, 0]] - f[pairs[:, 1]])) / 2
    said = fit.score(X, y, weight, groups=groups)
    assert said == pytest.approx(mass @ right / mass.sum())


def test_groups_may_have_names(noisy):
    pd = pytest.importorskip("pandas")
    X, y = noisy
    numbers = np.arange(400) % 7
    names = pd.Series(np.array(list("abcdefg"))[numbers])
    by_name, by_number = (RankBoost(5).fit(X, y, groups=g) for g in (names, numbers))
    np.testing.assert_array_equal(by_name.decision_function(X), by_number.decision_function(X))


def test_two_classes_in_groups_are_a_classifier_too(noisy):
    X, y = noisy
    fit = RankBoost(20).fit(X, y, groups=np.arange(400) % 7)
    assert fit.predict_proba(X).shape == (400, 2)


def test_pairs_may_come_as_pairs(noisy):
    X, y = noisy
    array = np.argwhere(y[:, None] > y)[::37]
    plain = RankBoost(10).fit(X, y, pairs=array)
    wrapped = RankBoost(10).fit(X, y, pairs=Pairs(array, 400))
    np.testing.assert_array_equal(plain.decision_function(X), wrapped.decision_function(X))
    with pytest.raises(ValueError, match="point into a table"):
        RankBoost().fit(X, y, pairs=Pairs(array, 500))


@pytest.mark.parametrize(
    ("kwargs", "parameters", "match"),
    [
        ({"groups": np.arange(400)}, {}, "no pair to rank: in every group all labels are equal"),
        ({"pairs": np.empty((0, 2), int)}, {}, "no pair to rank: pairs is empty"),
        ({"groups": np.zeros(3)}, {}, "3 entries"),
        ({"groups": np.zeros(400), "pairs": [[0, 1]]}, {}, "not both"),
        ({"pairs": [[0, 400]]}, {}, "rows 0 to"),
        ({"sample_weight": -np.ones(400)}, {}, "negative"),
        ({"sample_weight": np.zeros(400)}, {"target": "graded"}, "non-zero"),
        ({}, {"p": np.inf}, "p"),
        ({}, {"max_bins": 256}, "max_bins"),
        ({}, {"n_thresholds": 0}, "n_thresholds"),
        ({}, {"target": "ordinal"}, "target"),
    ],
)
def test_what_makes_no_sense_is_refused(kwargs, parameters, match, noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=match):
        RankBoost(**parameters).fit(X, y, **kwargs)


@pytest.mark.parametrize(
    "weight",
    [
        np.zeros(400),
        -np.ones(400),
        np.full(400, np.nan),
        np.full(400, np.inf),
        np.full(400, 1e308),
        np.ones(399),
        np.where(np.arange(400) < 7, 1e-200, 1.0),
        ["a"] * 400,
    ],
    ids=["zero", "negative", "nan", "infinite", "too much", "too few", "far apart", "text"],
)
def test_weights_are_refused_in_the_words_of_the_linear_rankers(weight, noisy):
    X, y = noisy
    messages = set()
    for ranker in (
        PNormPush(),
        RankBoost(2),
        RankBoost(2, target="graded"),
        SmoothMarginRanker(2),
        AdaBoostRanker(2),
        PairRanker(),
    ):
        with pytest.raises(ValueError) as caught:
            ranker.fit(X, y, sample_weight=weight)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_listed_pairs_of_grades_need_no_labels(noisy):
    X, _ = noisy
    fit = RankBoost(5, target="graded").fit(X, None, pairs=[[0, 1], [2, 1]])
    check_is_fitted(fit)
    with pytest.raises(ValueError, match="requires y"):
        RankBoost(5, target="graded").fit(X, None)


def test_a_column_of_words_is_refused(noisy):
    _, y = noisy
    with pytest.raises(ValueError, match="X holds words, such as 'ham'"):
        RankBoost().fit(np.where(y, "spam", "ham")[:, None], y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_missing_values_are_ranked(library, noisy):
    frames = pytest.importorskip(library)
    X, y = noisy
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    frame = frames.DataFrame({f"x{j}": X[:, j] for j in range(6)})
    fit = RankBoost(20).fit(frame, frames.Series(y))
    assert fit.feature_names_in_.tolist() == [f"x{j}" for j in range(6)]
    np.testing.assert_array_equal(
        fit.decision_function(frame), RankBoost(20).fit(X, y).decision_function(X)
    )


def test_words_as_labels_and_pickles(noisy):
    X, y = noisy
    fit = RankBoost(10).fit(X, np.where(y, "spam", "ham"))
    assert fit.classes_.tolist() == ["ham", "spam"]
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))


def test_a_line_is_printed_each_round(noisy, capsys):
    RankBoost(3, verbose=1).fit(*noisy)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "objective" in lines[0]
