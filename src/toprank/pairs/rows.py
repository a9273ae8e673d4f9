"""One table of rows: features, labels, weights, groups and pairs, which always travel together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from toprank._arrays import AnyArray, IntArray
from toprank._numerics import FloatArray
from toprank.pairs.relations import Pairs, Relation, relation_of


@dataclass(frozen=True)
class Rows:
    """Rows that have been checked, and what belongs to each of them.

    A room that needs one more column per row (starting scores, times) adds it as a field of a
    subclass; `take` and `present` know every field.

    Parameters
    ----------
    X : array, sparse matrix, data frame or mapping of columns
        Features.
    y : array of shape (n,), optional
        Labels: truth values for two classes (true is the positive one), numbers for grades.
    weight : array of shape (n,), optional
        Repetition counts; None means one each.
    groups : array of shape (n,), optional
        The group, query or cluster of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.pairs import Rows
    >>> rows = Rows(np.arange(6.0).reshape(3, 2), np.array([True, False, True]), np.ones(3))
    >>> rows.take(np.array([2, 0])).X
    array([[4., 5.],
           [0., 1.]])
    """

    X: Any
    y: Any = None
    weight: FloatArray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return _length(self.X if self.y is None else self.y)

    def take(self, rows: IntArray | NDArray[np.bool_]) -> Self:
        """Return some of the rows, in the order given; the same object if it is all of them.

        A mask is taken as the rows where it is true.
        """
        places = np.flatnonzero(rows) if rows.dtype == bool else np.asarray(rows, dtype=np.intp)
        if len(places) == len(self) and np.array_equal(places, np.arange(len(places))):
            return self
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: _part_of_column(column, places) for name, column in columns.items()}
        )

    @property
    def places_present(self) -> IntArray:
        """The places of the rows of positive weight; a row of weight zero is absent."""
        return np.arange(len(self)) if self.weight is None else np.flatnonzero(self.weight > 0)

    def present(self) -> Self:
        """Return the rows of positive weight."""
        return self if self.weight is None else self.take(self.places_present)

    @property
    def counts(self) -> FloatArray:
        """The weight of each row; one where there are no weights."""
        return np.ones(len(self)) if self.weight is None else self.weight


@dataclass(frozen=True)
class RelatedRows(Rows):
    """Rows, and the pairs of them that are to be compared.

    Parameters
    ----------
    X, y, weight, groups
        As in `Rows`.
    pairs : Pairs, optional
        They replace the pairs that the labels imply.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.pairs import RelatedRows
    >>> RelatedRows(np.zeros((3, 1)), np.array([2.0, 0.0, 1.0])).relation().n_pairs
    3
    """

    pairs: Pairs | None = None

    @property
    def is_bipartite(self) -> bool:
        """Whether every row of one class faces every row of the other, and no other pair counts."""
        two_classes = self.y is not None and self.y.dtype == bool
        return two_classes and self.groups is None and self.pairs is None

    def relation(self) -> Relation:
        """Return which rows belong above which; ValueError if there is no such pair."""
        return relation_of(self.y, self.groups, self.pairs, self.weight)


def _length(column: AnyArray) -> int:
    if isinstance(column, Mapping):
        return _length(next(iter(column.values())))
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


def _part_of_column(column: object, rows: IntArray) -> Any:
    """Some entries of a column, or some rows of a table."""
    if column is None:
        return None
    if isinstance(column, Pairs):
        return column.take(rows)
    if isinstance(column, Mapping):
        return {name: _part_of_column(values, rows) for name, values in column.items()}
    if isinstance(column, np.ndarray):
        return column[rows]
    return _safe_indexing(column, rows)
