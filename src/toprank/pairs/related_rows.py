"""Rows that are compared with each other: labels within groups, or pairs that are listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from toprank.pairs.door import check_counts, check_grades, check_groups
from toprank.pairs.relations import Pairs, Relation, check_pairs, relation_of
from toprank.pairs.rows import Rows


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


def relate(rows: Rows, pairs: ArrayLike | Pairs | None) -> RelatedRows:
    """Return rows with the pairs that the user has listed, or raise ValueError."""
    listed = None
    if pairs is not None:
        if rows.groups is not None:
            raise ValueError(
                "Give groups or pairs, not both: pairs say by themselves which rows are compared."
            )
        listed = Pairs(check_pairs(pairs, len(rows)), len(rows))
    return RelatedRows(rows.X, rows.y, rows.weight, rows.groups, listed)


def check_related_rows(
    estimator: Any,
    table: Any,
    y: Any,
    groups: ArrayLike | None,
    pairs: ArrayLike | Pairs | None,
    sample_weight: ArrayLike | None,
) -> RelatedRows:
    """Return a checked table with its grades, groups, pairs and weights as the user gave them.

    ValueError where they are wrong, or where neither grades nor pairs say what to compare.
    """
    if y is None and pairs is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give "
            "labels as y, or pairs=."
        )
    n = table.shape[0]
    grades = None if y is None else check_grades(y, n)
    rows = Rows(table, grades, check_counts(sample_weight, n), check_groups(groups, n))
    return relate(rows, pairs)
