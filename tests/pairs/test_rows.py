"""Rows travel with everything that belongs to them, whatever the container of X."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from toprank.pairs import Pairs, Rows

X = np.arange(12.0).reshape(4, 3)
Y = np.array([True, False, True, False])
KEPT = np.array([3, 0])


@dataclass(frozen=True)
class Started(Rows):
    """Rows of a room that needs two columns more."""

    start: Any = None
    pairs: Pairs | None = None


def frame(library):
    library = pytest.importorskip(library, reason=f"{library} is not installed")
    return library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


TABLES = {
    "array": lambda: X,
    "sparse": lambda: sparse.csr_array(X),
    "pandas": lambda: frame("pandas"),
    "polars": lambda: frame("polars"),
    "list": lambda: X.tolist(),
}


@pytest.mark.parametrize("table", TABLES)
def test_some_rows_keep_their_labels_weights_and_groups(table):
    rows = Rows(TABLES[table](), Y, np.arange(4.0), np.array([5, 6, 7, 8])).take(KEPT)
    taken = rows.X.toarray() if sparse.issparse(rows.X) else np.asarray(rows.X)
    np.testing.assert_array_equal(taken, X[KEPT])
    np.testing.assert_array_equal(rows.y, [False, True])
    np.testing.assert_array_equal(rows.weight, [3, 0])
    np.testing.assert_array_equal(rows.groups, [8, 5])
    assert len(rows) == 2


def test_a_mapping_of_columns_is_taken_column_by_column():
    rows = Rows({"a": X[:, 0], "b": X[:, 1]}).take(KEPT)
    np.testing.assert_array_equal(rows.X["b"], [10, 1])
    assert len(rows) == 2


def test_what_a_subclass_adds_travels_too():
    rows = Started(X, Y, start=np.arange(4.0), pairs=Pairs([[0, 3], [1, 2]], 4)).take(KEPT)
    assert isinstance(rows, Started)
    np.testing.assert_array_equal(rows.start, [3, 0])
    np.testing.assert_array_equal(rows.pairs.array, [[1, 0]])


def test_rows_of_weight_zero_are_absent():
    rows = Rows(X, Y, np.array([1.0, 0.0, 2.0, 0.0]))
    np.testing.assert_array_equal(rows.places_present, [0, 2])
    np.testing.assert_array_equal(rows.present().X, X[[0, 2]])
    np.testing.assert_array_equal(rows.counts, [1, 0, 2, 0])


def test_all_rows_in_order_are_the_same_object():
    rows = Rows(X, Y)
    assert rows.take(np.arange(4)) is rows
    assert rows.present() is rows
    np.testing.assert_array_equal(rows.counts, np.ones(4))


def test_a_mask_takes_the_rows_where_it_is_true():
    # of two rows the mask [False, True] equals their numbers [0, 1]
    rows = Rows(X[:2], Y[:2])
    np.testing.assert_array_equal(rows.take(np.array([False, True])).X, X[1:2])
