"""Crucial pairs as an object: what it holds, what it refuses, and how it follows a subset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import Pairs
from toprank.pairs import check_pairs


@given(st.data())
def test_taking_rows_keeps_exactly_the_pairs_within_them(data):
    n = data.draw(st.integers(2, 12))
    row = st.integers(0, n - 1)
    array = data.draw(st.lists(st.tuples(row, row).filter(lambda pair: pair[0] != pair[1])))
    rows = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))]
    taken = Pairs(array, n).take(rows)
    expected = [(rows.index(i), rows.index(k)) for i, k in array if i in rows and k in rows]
    assert taken == Pairs(expected, len(rows))


def test_a_mask_takes_the_rows_where_it_is_true():
    pairs = Pairs([[0, 1], [2, 0]], 3)
    assert pairs.take([True, False, True]) == Pairs([[1, 0]], 2)
    with pytest.raises(ValueError, match="mask of shape"):
        pairs.take([True, False])


def test_pairs_have_no_length_so_that_no_splitter_slices_them():
    with pytest.raises(TypeError):
        len(Pairs([[0, 1]], 2))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ([[0, 1, 2]], r"shape \(1, 3\)"),
        ([0, 1], "shape"),
        ([[0, 3]], "rows 0 to 2 only"),
        ([[-1, 0]], "rows 0 to 2 only"),
        ([[1, 1]], "against itself"),
        ([[0.5, 1.0]], "row numbers"),
        ([["a", "b"]], "row numbers"),
        ([[np.nan, 1.0]], "row numbers"),
    ],
)
def test_what_is_not_a_pair_of_rows_is_refused(array, words):
    with pytest.raises(ValueError, match=words):
        Pairs(array, 3)


@pytest.mark.parametrize("n_rows", [True, -1, 2.0, "3"])
def test_what_is_not_a_number_of_rows_is_refused(n_rows):
    with pytest.raises(ValueError, match="number of rows"):
        Pairs([[0, 1]], n_rows)


def test_pairs_of_another_table_are_refused():
    with pytest.raises(ValueError, match="table of 3 rows, but X has 4"):
        check_pairs(Pairs([[0, 1]], 3), 4)


def test_a_row_named_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        Pairs([[0, 1]], 3).take([0, 0])
