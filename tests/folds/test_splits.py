"""Folds: stratified, by groups, in the order of time."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit, cross_validate

from toprank import PNormPush
from toprank.tuning import TimeOrderedSplit, folds_of

Y = np.tile([0, 0, 1], 20)


@given(
    time=st.lists(st.integers(0, 30), min_size=12, max_size=60),
    gap=st.integers(0, 5),
    n_splits=st.integers(2, 4),
)
def test_only_labels_that_had_matured_are_trained_on(time, gap, n_splits):
    time = np.array(time)
    splitter = TimeOrderedSplit(n_splits, gap=gap)
    try:
        folds = list(splitter.split(time, groups=time))
    except ValueError as error:
        assert "no label has matured" in str(error)
        return
    assert len(folds) == n_splits
    for train, test in folds:
        start = time[test].min()
        assert np.all(time[train] + gap <= start) and np.all(time[train] < start)
        # no row of the past whose label was known is left out, and no time is parted
        known = np.flatnonzero((time < start) & (time + gap <= start))
        assert set(train) == set(known)
        inside = (time >= start) & (time <= time[test].max())
        assert set(test) == set(np.flatnonzero(inside))


def test_without_times_or_gap_it_is_scikit_learns_split():
    X = np.zeros((30, 1))
    for ours, theirs in zip(TimeOrderedSplit(4).split(X), TimeSeriesSplit(4).split(X), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_dates_take_a_timedelta_and_days_of_any_order():
    days = np.datetime64("2026-01-01") + np.random.default_rng(0).permutation(100)
    for gap in (timedelta(days=7), np.timedelta64(7, "D")):
        for train, test in TimeOrderedSplit(3, gap=gap).split(days, groups=days):
            assert days[train].max() + np.timedelta64(7, "D") <= days[test].min()
    strings = days.astype(str)
    folds = list(TimeOrderedSplit(3, gap=timedelta(days=7)).split(strings, groups=strings))
    assert len(folds) == 3


@pytest.mark.parametrize(
    ("gap", "time", "message"),
    [
        (7, np.datetime64("2026-01-01") + np.arange(20), "timedelta"),
        (timedelta(days=1), np.arange(20), "number"),
        (-1, np.arange(20), "cannot mature before"),
        (
            0,
            np.r_[np.nan, np.arange(19.0)],
            "time contains NaN or infinity, or a missing value, in 1 of",
        ),
        (0, ["soon"] * 20, "numbers or dates"),
        (100, np.arange(20), "no label has matured"),
    ],
)
def test_times_that_make_no_sense_are_refused(gap, time, message):
    with pytest.raises(ValueError, match=message):
        list(TimeOrderedSplit(3, gap=gap).split(np.zeros(20), groups=time))


def test_the_splitter_works_in_scikit_learn_with_times_as_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + Y[:, None]
    result = cross_validate(
        PNormPush(), X, Y, cv=TimeOrderedSplit(3, gap=2), groups=np.arange(60), scoring="roc_auc"
    )
    assert len(result["test_score"]) == 3


def test_a_number_is_that_many_stratified_folds_drawn_at_random():
    ours = folds_of(4, Y)
    theirs = StratifiedKFold(4, shuffle=True, random_state=0).split(np.zeros((60, 1)), Y)
    for (a, b), (c, d) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_no_fold_is_made_of_neighbours():
    y = np.arange(2000) % 10 == 0
    for _, test in folds_of(4, y):
        places = np.bincount(test // 100, minlength=20)  # a quarter of each stretch of the table
        assert places.min() > 10 and places.max() < 45


def test_a_group_is_never_parted():
    groups = np.repeat(np.arange(15), 4)
    for train, test in folds_of(4, Y, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_a_number_of_folds_is_lowered_to_the_rare_class():
    y = np.r_[np.ones(3, dtype=int), np.zeros(50, dtype=int)]
    assert len(folds_of(5, y)) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "at least two folds"),
        ({"cv": 5, "groups": np.arange(60), "time": np.arange(60)}, "not both"),
        ({"cv": 5, "gap": 3}, "needs time"),
        ({"cv": 5, "groups": np.arange(7)}, "groups has 7 entries, expected one per row"),
        ({"cv": [(np.arange(50), np.arange(50, 60))]}, "at least two"),
        ({"cv": KFold(20), "y": np.sort(Y)}, "one class only"),
    ],
)
def test_folds_that_cannot_be_scored_are_refused(options, message):
    y = options.pop("y", Y)
    with pytest.raises(ValueError, match=message):
        folds_of(options.pop("cv"), y, **options)


def test_folds_by_time_say_how_many_they_are():
    assert TimeOrderedSplit(3).get_n_splits() == 3
