"""What the door meets rarely: odd columns of labels, numbers, groups and times."""

import numpy as np
import pytest
from scipy import sparse

from toprank._columns import finite_column, labels_column, numbers, one_column, which_missing
from toprank.pairs.door import check_entries, check_rows, relate
from toprank.pairs.row_columns import check_groups, check_span, check_times
from toprank.pairs.unlabelled import _same


def test_a_column_of_one_entry_per_row_is_a_vector():
    assert one_column("y", np.ones((3, 1))).shape == (3,)
    with pytest.raises(ValueError, match=r"got an array of shape \(3, 2\)"):
        one_column("y", np.ones((3, 2)))
    with pytest.raises(ValueError, match="y is not an array"):
        one_column("y", [[1, 2], [3]])


def test_a_missing_value_among_words_is_no_word():
    assert labels_column("y", ["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"missing value, in 1 of 2 rows, first in row 1"):
        labels_column("y", ["a", float("nan")])
    assert labels_column("y", ["a", 3]).tolist() == ["a", 3]  # and not '3'


def test_pandas_missing_value_is_missing_and_equal_to_nothing():
    pandas = pytest.importorskip("pandas")
    assert which_missing(np.array([pandas.NA, 1, "a"], dtype=object)).tolist() == [1, 0, 0]
    assert not _same(pandas.NA, 1)


@pytest.mark.parametrize("before", [1, 120_000])
def test_the_first_entry_that_is_not_a_number_is_named_wherever_it_stands(before):
    given = np.array([1.5] * before + [float("nan"), "ten"], dtype=object)
    with pytest.raises(ValueError, match=r"^score holds 'ten' \(str\), expected numbers"):
        numbers("score", given)


def test_dates_are_no_numbers():
    with pytest.raises(ValueError, match=r"time holds dates or durations .*convert them"):
        numbers("time", np.array(["2024-01-01"], "M8[D]"))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long doubles are doubles here")
def test_numbers_that_only_a_longer_float_tells_apart_are_refused():
    one = np.longdouble(1)
    assert finite_column("score", np.array([one, one + 1])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="score"):
        finite_column("score", np.array([one, one + np.finfo(np.longdouble).eps]))


def test_whole_numbers_of_any_length_are_refused_where_floats_would_confuse_them():
    assert finite_column("score", np.array([1, 2.5], dtype=object)).tolist() == [1.0, 2.5]
    with pytest.raises(ValueError, match="score"):
        finite_column("score", np.array([2**60, 2**60 + 1], dtype=object))


def test_groups_of_numbers_and_words_are_told_apart():
    codes = check_groups(np.array([1, "a", 1, "b", "a"], dtype=object), 5)
    assert np.array_equal(codes[:, None] == codes, np.array(
        [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 1]]
    ))  # fmt: skip
    with pytest.raises(ValueError, match="groups has 5 entries, expected one per row: 4"):
        check_groups([1, 2, 3, 4, 5], 4)
    with pytest.raises(ValueError, match="time has 2 entries, expected one per row: 3"):
        check_times([1, 2], 3)
    check_span(None)


def test_rows_without_labels_are_rows():
    rows, classes = check_rows(None, np.ones((3, 2)), None, [1.0, 0.0, 2.0], target=None)
    assert classes is None and rows.y is None and rows.weight.tolist() == [1.0, 0.0, 2.0]
    with pytest.raises(ValueError, match="This function requires y to be passed"):
        check_rows(None, np.ones((3, 2)), None)


def test_groups_and_pairs_exclude_each_other():
    rows, _ = check_rows(None, np.ones((3, 2)), [0, 1, 1], groups=[0, 0, 0])
    with pytest.raises(ValueError, match="Give groups or pairs, not both"):
        relate(rows, np.array([[1, 0]]))


def test_gaps_of_sparse_rows_are_counted():
    with pytest.raises(ValueError, match=r"contains NaN: 2 of its entries"):
        check_entries(sparse.csr_array(np.array([[np.nan, 1.0], [0.0, np.nan]])))
