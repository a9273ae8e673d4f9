"""The rows a booster learns from: present ones, what the weak rankers say of them, the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.pairs import Pairs
from toprank.rankers.boosting.pair_lists import GradedPairs, ListedPairs
from toprank.rankers.boosting.two_class import TwoClassPairs

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

    def crucial_pairs(self, p: float = 1.0) -> TwoClassPairs | GradedPairs | ListedPairs:
        """Return which rows should be above which; ValueError if there is no such pair."""
        plain = self.two_classes and self.groups is None and self.pairs is None
        if plain and np.any(self.labels) and not np.all(self.labels):
            return TwoClassPairs(self.labels, self.weight, p)
        if p != 1.0:
            raise ValueError(
                f"p={p:g} pushes two classes without groups or listed pairs. Use p=1 with "
                "groups=, pairs= or target='graded'."
            )
        found: GradedPairs | ListedPairs
        if self.pairs is not None:
            found = ListedPairs(self.pairs.array, self.weight, len(self.Z))
        else:
            found = GradedPairs(self.labels, self.groups, self.weight)
        if not found.has_pairs:
            where = "within any group" if self.groups is not None else "among the rows"
            raise ValueError(
                f"There is no crucial pair {where} (n_samples={len(self.Z)}): a ranking needs rows "
                "that should be above others. Check the labels, the groups and the weights."
            )
        return found


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
