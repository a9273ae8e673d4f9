"""What the door lets in, as what, and what it refuses; every entry is tested in contracts."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from toprank import PNormPush
from toprank._numerics import sum_of_squares
from toprank.pairs import (
    LARGEST_SIZE,
    check_counts,
    check_groups,
    check_rows,
    check_scores,
    check_table,
    check_times,
    check_weights,
)

X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.array([0, 1, 0, 1, 0, 1])


def with_entry(value):
    changed = X.copy()
    changed[2, 1] = value
    return changed


@pytest.mark.parametrize(
    "hold",
    [
        np.asarray,
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[:, ::-1][:, ::-1],
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
        np.ma.MaskedArray,
    ],
)
def test_a_table_is_a_matrix_of_the_same_numbers(hold):
    np.testing.assert_array_equal(np.asarray(check_table(hold(X)), dtype=float), X)


def test_a_sparse_table_stays_sparse_where_it_may_be_sparse():
    assert check_table(sparse.coo_array(X), sparse=True).format == "csr"
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        check_table(sparse.coo_array(X))


@pytest.mark.parametrize("value", [LARGEST_SIZE * 1.1, -1e300, np.finfo(float).max])
@pytest.mark.parametrize(
    "hold", [np.asarray, sparse.csr_array, lambda X: np.repeat(X, 2, axis=1)[:, ::2]]
)
def test_sizes_that_no_sum_can_hold_are_refused(value, hold):
    with pytest.raises(ValueError, match=r"in size, expected at most 1e\+100"):
        check_table(hold(with_entry(value)), sparse=True)
    check_table(hold(with_entry(np.sign(value) * LARGEST_SIZE)), sparse=True)


def test_float32_of_any_size_is_small_enough():
    largest = np.float32(np.finfo(np.float32).max)
    assert check_table(with_entry(0.0).astype(np.float32) * 0 + largest).dtype == np.float32


@pytest.mark.parametrize(("value", "words"), [(np.nan, "contains NaN"), (np.inf, "infinity")])
def test_nan_is_a_missing_value_where_there_may_be_any_and_infinity_never_is(value, words):
    with pytest.raises(ValueError, match=words):
        check_table(with_entry(value))
    if np.isnan(value):
        assert np.isnan(check_table(with_entry(value), missing=True)[2, 1])
    else:
        with pytest.raises(ValueError, match=words):
            check_table(with_entry(value), missing=True)


def test_huge_entries_beside_missing_ones_are_seen():
    table = with_entry(np.nan)
    table[0, 0] = -1e200
    with pytest.raises(ValueError, match=r"up to 1e\+200"):
        check_table(table, missing=True)


def test_rows_for_a_classifier_know_their_classes():
    rows, classes = check_rows(
        BaseEstimator(), X, np.where(Y, "yes", "no"), np.arange(1.0, 7), list("ababab")
    )
    assert classes.tolist() == ["no", "yes"]
    assert rows.y.tolist() == Y.astype(bool).tolist()
    assert rows.groups.tolist() == [0, 1] * 3


def test_rows_for_a_plain_ranker_keep_the_grades_as_numbers():
    rows, classes = check_rows(BaseEstimator(), X, [3, 1, 2, 1, 0, 0], target="graded")
    assert classes is None
    assert rows.y.dtype == np.float64


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 1, 1], r"\(3,\), expected \(6,\): one weight per row"),
        ([1, 1, 1, 1, 1, -1], r"negative values \(smallest -1\)"),
        ([1, 1, 1, 1, 1, np.nan], "NaN or infinity"),
        ([0] * 6, "non-zero"),
        ([1e-300, 1e300, 1, 1, 1, 1], r"runs from 1e-300 to 1e\+300"),
        (np.ma.MaskedArray(np.ones(6), mask=Y == 1), "3 masked entries"),
    ],
)
def test_weights_are_repetition_counts_with_or_without_classes(weight, words):
    with pytest.raises(ValueError, match=words):
        check_weights(Y == 1, weight)
    with pytest.raises(ValueError, match=words):
        check_counts(weight, 6)


def test_groups_are_numbered_and_scores_are_finite():
    assert check_groups(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    assert check_groups(None, 3) is None
    with pytest.raises(ValueError, match="groups has 2 entries, expected one per row: 3"):
        check_groups(["a", "b"], 3)
    with pytest.raises(ValueError, match="y_score contains NaN"):
        check_scores([1.0, np.nan])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_scores([1.0, 2.0], 3)


def test_a_tensor_is_a_table():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    np.testing.assert_array_equal(check_table(torch.from_numpy(X).requires_grad_()), X)
    assert check_table(torch.ones(3, 2, dtype=torch.bfloat16)).dtype == np.float32
    with pytest.raises(ValueError, match="to_dense"):
        check_table(torch.from_numpy(X).to_sparse())


@pytest.mark.parametrize("n", [0, 1, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_huge_or_missing_entry_is_noticed_wherever_it_stands(n, kind):
    entries = np.linspace(-1.0, 1.0, n, dtype=kind)
    assert np.isclose(sum_of_squares(entries), np.sum(entries.astype(float) ** 2), rtol=1e-5)
    for place in {0, n // 2, n - 1} if n else ():
        for bad in (np.nan, np.inf, -np.inf):
            wrong = entries.copy()
            wrong[place] = bad
            assert not sum_of_squares(wrong) < np.inf


def test_words_are_refused_with_their_column_and_a_way_out():
    frame = pytest.importorskip("pandas").DataFrame(
        {"size": [1.0, 2.0], "name": ["Müller", "Huber"]}
    )
    with pytest.raises(ValueError, match=r"words, such as 'Müller' in the column 'name'.*Table"):
        check_table(frame)
    with pytest.raises(ValueError, match=r"words, such as 'Müller', expected numbers"):
        check_table(frame.to_numpy())


@pytest.mark.parametrize(("value", "word"), [(np.nan, "contains NaN"), (np.inf, "infinity")])
def test_gaps_are_refused_with_their_column_their_rows_and_a_way_on(value, word):
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[[2, 5], 1] = value
    y = np.arange(20) % 2
    found = ", in 2 of 20 rows, column {}. "
    with pytest.raises(ValueError, match=word) as of_array:
        PNormPush().fit(X, y)
    assert found.format(1) in str(of_array.value)
    frame = pd.DataFrame(X, columns=["age", "income", "debt"])
    with pytest.raises(ValueError, match=word) as of_frame:
        PNormPush().fit(frame, y)
    assert found.format("'income'") in str(of_frame.value)
    remedy = "TableRanker" if np.isnan(value) else "Replace it"
    assert remedy in str(of_frame.value) and "HistGradient" not in str(of_frame.value)


def test_a_constant_column_changes_no_ranking():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] + X[:, 1] > 0.5
    X[:, 2] = 7.0
    ranker = PNormPush().fit(X, y)
    assert ranker.coef_[0, 2] == 0.0
    np.testing.assert_allclose(
        ranker.coef_[0, :2], PNormPush().fit(X[:, :2], y).coef_[0], rtol=1e-4
    )


_EARLY = timezone(timedelta(hours=-5))
_ZONED = pd.date_range("2026-03-28 12:00", periods=3, tz="Europe/Rome")  # summer begins on the 29th
_ZONES = (_EARLY, "UTC", None)
_INSTANTS = ["2026-03-28T11:00", "2026-03-29T10:00", "2026-03-30T10:00"]


@pytest.mark.parametrize(
    "times",
    [
        _ZONED,
        pd.Series(_ZONED),
        pd.Series(_ZONED.astype(object)),
        _ZONED.to_pydatetime().tolist(),
        [moment.tz_convert(zone) for moment, zone in zip(_ZONED, _ZONES, strict=True)],
        [moment.isoformat() for moment in _ZONED],
        ["2026-03-28T11:00Z", "2026-03-29 05:00-05:00", "2026-03-30T10:00"],
        np.array([moment.isoformat().encode() for moment in _ZONED]),
    ],
)
def test_times_with_a_zone_are_instants_and_numpy_does_not_warn(times):
    read = check_times(times, 3)
    np.testing.assert_array_equal(read, np.array(_INSTANTS, dtype="datetime64[us]"))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_times_with_a_zone_are_the_same_instants_in_other_libraries(library):
    frames = pytest.importorskip(library)
    given = pd.Series(_ZONED)
    times = frames.from_pandas(given) if library == "polars" else frames.array(given)
    read = check_times(times, 3)
    np.testing.assert_array_equal(read, np.array(_INSTANTS, dtype="datetime64[us]"))


def test_times_with_and_without_a_zone_are_read_as_utc_and_words_that_are_none_are_refused():
    mixed = [datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 12, tzinfo=_EARLY)]
    assert np.diff(check_times(mixed, 2)) == np.timedelta64(5, "h")
    for odd in ("noon+01:00", "2026-13-01T00:00Z"):
        with pytest.raises(ValueError, match="numbers or dates such as 2026-01-31"):
            check_times([odd, "2026-01-01"], 2)


@pytest.mark.parametrize("names", [["a", "b", "a"], [0, 1, 0], ["a", 0, "a"]])
@pytest.mark.parametrize("frames", [True, False])
def test_two_columns_of_one_name_are_refused_by_name_with_a_way_out(names, frames):
    table = pd.DataFrame(np.ones((3, 3)), columns=names)
    for estimator in (None, BaseEstimator()):
        with pytest.raises(ValueError, match=rf"several columns of the same name: {names[0]!r}\. "):
            check_table(table, estimator=estimator, frames=frames)
    table.columns = [*"abc"]
    check_table(table, estimator=BaseEstimator(), frames=frames)


def test_two_columns_of_one_name_in_arrow_are_refused_too():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table([arrow.array([1.0, 2.0])] * 2, names=["a", "a"])
    with pytest.raises(ValueError, match=r"the same name: 'a'\. Rename them"):
        PNormPush().fit(table, [0, 1])
