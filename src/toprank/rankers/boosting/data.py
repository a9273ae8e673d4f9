"""The rows a booster learns from: present ones, what the weak rankers say of them, the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of
from toprank.pairs import Explicit, Graded, Pairs, Relation, relation_of
from toprank.rankers.boosting.pair_weights import (
    GradedWeights,
    ListedWeights,
    PairWeights,
    TwoClassWeights,
)

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class RankingData:
    """Checked rows.

    Attributes
    ----------
    Z : array of shape (n, m)
        The columns that weak rankers read, or what they say.
    labels : array of shape (n,) or None
        Truth values for two classes, numbers for grades.
    groups : array of shape (n,) or None
    pairs : Pairs or None
        Listed pairs; they replace those that the labels imply.
    weight : array of shape (n,) or None
    """

    Z: Any
    labels: Any
    groups: Any
    pairs: Pairs | None
    weight: FloatArray | None

    @property
    def two_classes(self) -> bool:
        return self.labels is not None and self.labels.dtype == bool

    def take(self, rows: IntArray) -> RankingData:
        """Return the same for some of the rows."""

        def of(values: Any) -> Any:
            return None if values is None else values[rows]

        return RankingData(
            self.Z[rows],
            of(self.labels),
            of(self.groups),
            None if self.pairs is None else self.pairs.take(rows),
            of(self.weight),
        )

    def present(self) -> RankingData:
        """Leave out the rows of weight zero."""
        if self.weight is None or np.all(self.weight > 0):
            return self
        if not np.any(self.weight > 0):
            raise ValueError(
                "Sample weights must contain at least one non-zero number: every row is absent."
            )
        return self.take(np.flatnonzero(self.weight > 0))

    def relation(self) -> Relation:
        """Return which rows should be above which; ValueError if there is no such pair."""
        return relation_of(self.labels, self.groups, self.pairs)

    def pair_weights(self, p: float) -> PairWeights:
        """Return what the pairs weigh."""
        if self.two_classes and self.groups is None and self.pairs is None:
            return TwoClassWeights(self.labels, self.weight, p)
        if p != 1.0:
            raise ValueError(
                f"p={p:g} pushes two classes without groups or listed pairs. Use p=1 with "
                "groups=, pairs= or target='graded'."
            )
        logs = np.zeros(len(self.Z)) if self.weight is None else log_of(self.weight)
        relation = self.relation()
        if isinstance(relation, Graded):
            return GradedWeights(relation, logs)
        assert isinstance(relation, Explicit)
        return ListedWeights(relation, logs)


def split(
    data: RankingData, fraction: float, random_state: np.random.RandomState
) -> tuple[RankingData, RankingData]:
    """Set rows apart for early stopping: whole groups, or a share of each class, or of all rows."""
    n = len(data.Z)
    if data.groups is not None:
        names, group = np.unique(data.groups, return_inverse=True)
        apart = np.isin(group.reshape(-1), _some(np.arange(len(names)), fraction, random_state))
    elif data.two_classes and data.pairs is None:
        apart = np.zeros(n, dtype=bool)
        for members in (np.flatnonzero(data.labels), np.flatnonzero(~data.labels)):
            apart[_some(members, fraction, random_state)] = True
    else:
        apart = np.zeros(n, dtype=bool)
        apart[_some(np.arange(n), fraction, random_state)] = True
    return data.take(np.flatnonzero(~apart)), data.take(np.flatnonzero(apart))


def _some(members: IntArray, fraction: float, random_state: np.random.RandomState) -> IntArray:
    """A share of the members, at least one, and not all."""
    if len(members) < 2:
        raise ValueError(
            "n_iter_no_change sets rows of each class (whole groups, where there are groups) apart "
            "for validation, but one class or the data hold one only. Use n_iter_no_change=None."
        )
    count = min(max(1, round(fraction * len(members))), len(members) - 1)
    return random_state.permutation(members)[:count]
