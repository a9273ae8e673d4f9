"""The interval of a choice from folds within folds."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from toprank import PNormPushCV
from toprank.folds import Scoring
from toprank.tuning import nested, push_cv
from toprank.tuning.nested import NestedScores

FEW = {"ps": (1, 16), "alphas": (1e-2,), "cv": 3}


def test_all_rows_tell_more_than_those_kept_aside(rows):
    aside, all_rows = (
        PNormPushCV(**FEW, test_size=size).fit(*rows).score_interval_ for size in (0.2, "nested")
    )
    assert all_rows.high - all_rows.low < 0.75 * (aside.high - aside.low)
    assert all_rows.method == "nested cross-validation, 5 folds"
    assert all_rows.low < all_rows.estimate - all_rows.bias < all_rows.high


def test_no_row_is_tested_by_a_choice_that_saw_it():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 12)), np.arange(80) % 2
    settings = FEW | {"alphas": (1e-3,), "scoring": "auc", "test_size": "nested"}
    found = PNormPushCV(**settings).fit(X, y)
    seen = Scoring("auc").of_scores(y, found.decision_function(X))
    assert seen > 0.7  # what such a choice makes of rows it has seen
    assert found.score_interval_.low < 0.5 < found.score_interval_.high


@pytest.mark.more
def test_folds_that_are_drawn_again_change_it_little(rows):
    once, twice = (
        PNormPushCV(**FEW, test_size="nested", n_repeats=n).fit(*rows).score_interval_
        for n in (1, 2)
    )
    assert twice.method == "nested cross-validation, 5 folds drawn 2 times"
    assert twice.estimate == pytest.approx(once.estimate, abs=once.standard_error)


@pytest.mark.more
def test_neither_threads_nor_copies_of_an_estimator_change_it(rows):
    one, two = (
        PNormPushCV(**FEW, test_size="nested", n_jobs=jobs).fit(*rows).score_interval_
        for jobs in (1, 2)
    )
    assert one == two


@pytest.mark.more
def test_small_tables_are_nested_unless_their_folds_have_an_order(rows, monkeypatch):
    X, y = rows
    one = FEW | {"ps": (1,)}
    groups = np.arange(len(y)) // 3
    assert "nested" in PNormPushCV(**one).fit(X, y).score_interval_.method
    assert "nested" not in PNormPushCV(**one).fit(X, y, groups=groups).score_interval_.method
    for other in ({"cv": StratifiedKFold(3)}, {"scoring": "max_height"}):
        assert "nested" not in PNormPushCV(**one | other).fit(X, y).score_interval_.method
    monkeypatch.setattr(push_cv, "_NESTED_ENTRIES", 1000)
    assert "nested" not in PNormPushCV(**one).fit(X, y).score_interval_.method


@pytest.mark.more
def test_groups_are_not_parted_by_the_folds_of_the_interval(rows):
    X, y = rows
    copies = np.repeat(np.arange(len(y)), 2)
    groups = copies // 3
    settings = FEW | {"scoring": "auc", "test_size": "nested"}
    alone = PNormPushCV(**settings).fit(X, y).score_interval_
    grouped = PNormPushCV(**settings).fit(X[copies], y[copies], groups=groups).score_interval_
    assert grouped.high - grouped.low > 0.8 * (alone.high - alone.low)


def test_too_few_rows_of_a_class_are_kept_aside_or_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) < 4
    with pytest.warns(UserWarning, match="One class has 4"):
        found = PNormPushCV(**FEW, test_size="nested").fit(X, y)
    assert found.score_interval_ is None
    y = np.arange(60) < 9
    assert "nested" not in PNormPushCV(**FEW, scoring="auc").fit(X, y).score_interval_.method


def test_a_perfect_choice_leaves_something_possible():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 4 == 0
    X = rng.normal(size=(100, 2)) + 20 * y[:, None]
    found = PNormPushCV(**FEW, scoring="auc").fit(X, y).score_interval_
    assert found.estimate == found.high == 1
    assert 0.8 < found.low < 0.99


def test_risks_are_reported_as_they_are(rows):
    found = PNormPushCV(**FEW, scoring="misranking_error", test_size="nested").fit(*rows)
    assert 0 < found.score_interval_.low < found.score_interval_.high < 0.5
    assert found.best_score_ < 0


def test_the_variance_is_that_of_the_paper_between_its_two_bounds():
    outer = np.array([[0.7, 0.5, 0.6, 0.8, 0.4]])
    inner = outer + np.array([[0.2, -0.1, 0.1, -0.2, 0.1]])
    found = NestedScores(outer, np.full((1, 5), 0.1), inner)
    apart = np.mean((inner - outer) ** 2)
    assert found.variance == pytest.approx(0.8 * (apart - 0.01))
    assert found.bias == pytest.approx(0.6 * (inner.mean() - outer.mean()))
    stable = NestedScores(outer, np.full((1, 5), 0.1), outer)
    assert stable.variance == pytest.approx(0.01 / 5)
    wild = NestedScores(outer, np.full((1, 5), 0.1), 1 - outer + 0.5)
    assert wild.variance == pytest.approx(0.01)


@pytest.mark.parametrize("share", [0.0, 0.003, 0.4, 0.999, 1.0])
def test_ends_grow_with_the_variance_and_stay_within_zero_and_one(share):
    ends = [nested._share_ends(share, variance, 0.95) for variance in (1e-6, 1e-3, 1e-1)]
    lows, highs = np.array(ends).T
    assert np.all(np.diff(lows) <= 0) and np.all(np.diff(highs) >= 0)
    assert np.all((lows >= 0) & (lows <= share) & (highs >= share) & (highs <= 1))
    if 0.1 < share < 0.9:
        assert highs[0] - lows[0] == pytest.approx(2 * 1.96e-3, rel=0.05)


def test_a_fold_without_a_standard_error_has_no_interval():
    outer = np.full((1, 5), 0.5)
    found = NestedScores(outer, np.array([[0.1, np.inf, 0.1, 0.1, 0.1]]), outer)
    with pytest.raises(ValueError, match="standard error of auc is inf"):
        found.interval(Scoring("auc"), "", 0.95, 20)


def test_a_metric_without_bounds_has_an_interval_of_students_law():
    scores = NestedScores(np.full((1, 5), 3.0), np.full((1, 5), 0.5), np.full((1, 5), 3.0))
    found = scores.interval(Scoring(lambda y, s: float(np.mean(s))), "choice", 0.95, 11)
    error = 0.5 / np.sqrt(5)
    assert found.estimate == 3.0
    assert (found.low, found.high) == pytest.approx((3 - 2.2281 * error, 3 + 2.2281 * error), 1e-4)
