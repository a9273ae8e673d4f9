"""The positives and the negatives, sorted apart, and the ties that they are merged to.

Long arrays are read block by block: what is computed of a block stays in the cache, and memory that
the system must find first is asked for once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, sort_runs

#: Ties from which a compiled loop, of which Numba is loaded, repays its own loading, and from which
#: it repays that of Numba too, half a second.
_COMPILED_FROM, _LOADED_FROM = 1 << 20, 24_000_000
#: Rows and ties that are taken at once, which stay in the cache with what is computed of them.
_BLOCK = 1 << 14
#: Negatives per positive up to which merging the classes is quicker than looking positives up.
_CLOSE = 2


@dataclass(frozen=True)
class SortedRows:
    """The rows of one class, from the highest score down.

    Attributes
    ----------
    depths : ndarray
        Negated scores, ascending.
    weight : ndarray, optional
        Their weights; without them each row counts once.
    """

    depths: FloatArray
    weight: FloatArray | None = None

    @classmethod
    def of(
        cls, scores: FloatArray, weight: FloatArray | None, members: NDArray[np.bool_]
    ) -> SortedRows:
        """Sort the members, those of weight zero left out.

        Score and weight are sorted together as one complex number, which takes less time than
        sorting indices. It also fixes the order of tied weights, so that the order of the rows
        cannot change a sum.
        """
        if weight is None:
            depths = _depths_of(scores, members)
            depths.sort()
            return cls(depths)
        members = members & (weight > 0)
        pairs = np.empty(np.count_nonzero(members), dtype=np.complex128)
        pairs.real = -scores[members]
        pairs.imag = weight[members]
        sort_runs(pairs)
        return cls(pairs.real.copy(), pairs.imag.copy())

    def __len__(self) -> int:
        return len(self.depths)

    @cached_property
    def _sums(self) -> FloatArray | None:
        return None if self.weight is None else np.append(0.0, np.cumsum(self.weight))

    def weight_of_first(self, counts: NDArray[np.intp] | FloatArray) -> FloatArray:
        """Weight of the first j rows, for each count j."""
        return counts.astype(np.float64, copy=False) if self._sums is None else self._sums[counts]

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(len(self)) if self._sums is None else float(self._sums[-1])

    def per_tie(self, counts: NDArray[np.intp]) -> FloatArray:
        """Weight between successive counts; a difference of sums would lose some."""
        assert self.weight is not None  # rows without weights are counted
        sums = np.add.reduceat(np.append(self.weight, 0.0), counts[:-1])
        return np.where(counts[1:] > counts[:-1], sums, 0.0)

    def places_among(self, others: SortedRows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """How many of the others lie above each row, and how many at or above it."""
        above = np.searchsorted(others.depths, self.depths, side="left")
        level = above.copy()
        # only where the next of the others has the same score is there more to look up
        last = len(others) - 1
        tied = np.flatnonzero(others.depths[np.minimum(above, last)] == self.depths)
        level[tied] = np.searchsorted(others.depths, self.depths[tied], side="right")
        return above, level


@dataclass(frozen=True)
class SortedClasses:
    """The positives (high) and the negatives (low) sorted apart: faster than sorting all rows."""

    high: SortedRows
    low: SortedRows

    @classmethod
    def of(
        cls, positive: NDArray[np.bool_], scores: FloatArray, weight: FloatArray | None = None
    ) -> SortedClasses:
        """Sort checked input."""
        return cls(
            SortedRows.of(scores, weight, positive), SortedRows.of(scores, weight, ~positive)
        )

    @property
    def is_long(self) -> bool:
        """Whether a compiled loop merges the classes sooner, loading it included."""
        if self.high.weight is not None or self.low.weight is not None:
            return False
        ties = len(self.high) + min(len(self.high), len(self.low))  # of a joined list, at most
        return ties >= (_COMPILED_FROM if "numba" in sys.modules else _LOADED_FROM)

    def share_in_order(self) -> float:
        """Share of the pairs with the positive above, a tie counting one half: the AUC.

        Only the smaller class looks up its places among the larger one.
        """
        pairs = self.high.total * self.low.total
        if len(self.high) > len(self.low):
            return min(1.0, _twice_above(self.low, self.high) / (2 * pairs))
        return max(0.0, (2 * pairs - _twice_above(self.high, self.low)) / (2 * pairs))


def _twice_above(rows: SortedRows, others: SortedRows) -> float:
    """Twice the weight of the pairs with the other above the row, once if they tie."""
    above, level = rows.places_among(others)
    before = others.weight_of_first(above)
    before += others.weight_of_first(level)
    return float(np.sum(before) if rows.weight is None else np.dot(rows.weight, before))


def _depths_of(scores: FloatArray, members: NDArray[np.bool_]) -> FloatArray:
    """The negated scores of the members."""
    depths, filled = np.empty(np.count_nonzero(members)), 0
    for first in range(0, len(scores), _BLOCK):
        rows = slice(first, first + _BLOCK)
        # numbers of rows pick in a third of the time that a mask takes
        part = scores[rows][np.flatnonzero(members[rows])]
        np.negative(part, out=depths[filled : filled + len(part)])
        filled += len(part)
    return depths


def joined_ties(classes: SortedClasses) -> tuple[np.ndarray, np.ndarray]:
    """The ties of `RankedList.joined`: positives and negatives met by their ends, from none on."""
    high, low = classes.high.depths, classes.low.depths
    most = min(2 * len(high) + 1, len(high) + len(low))
    counts = "float64" if classes.high.weight is None else "intp"  # as `weight_of_first` wants
    met, passed = np.empty(most + 1, dtype=counts), np.empty(most + 1, dtype=counts)
    met[0] = passed[0] = 0
    i = j = tie = 0
    while i < len(high):
        stop = int(np.searchsorted(high, high[min(i + _BLOCK, len(high)) - 1], side="right"))
        level = int(np.searchsorted(low, high[stop - 1], side="right"))
        close = level - j <= _CLOSE * (stop - i)
        ties_of = _ties_of_merge if close else _ties_of_search
        found, fallen = ties_of(high[i:stop], low[j:level])
        ties = slice(tie, tie + len(found))
        np.add(found, i, out=met[1:][ties])
        np.add(fallen, j, out=passed[1:][ties])
        i, j, tie = stop, level, ties.stop
    if j < len(low):  # below every positive
        tie += 1
        met[tie], passed[tie] = len(high), len(low)
    return met[: tie + 1], passed[: tie + 1]


def _ties_of_merge(high: FloatArray, low: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Counts down to the end of each joined tie of these rows, by a merge of the classes."""
    depths = np.concatenate((high, low))
    order = np.argsort(depths, kind="stable")  # of two sorted runs; positives first in a tie
    depths, is_positive = depths[order], order < len(high)
    last = np.append(depths[1:] != depths[:-1], True)
    with_positives = is_positive
    if not last.all():
        first = np.append(0, np.where(last[:-1], np.arange(1, len(last)), 0))
        with_positives = is_positive[np.maximum.accumulate(first)]
    last[:-1] &= with_positives[1:] | with_positives[:-1]
    ends = np.flatnonzero(last)
    met = np.cumsum(is_positive, dtype=np.intp)[ends]
    return met, ends + 1 - met


def _ties_of_search(high: FloatArray, low: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The same where positives are few: each is looked up among the negatives.

    The lowest row, of both classes, must be a positive or tie with one.
    """
    ends = np.append(np.flatnonzero(high[1:] != high[:-1]), len(high) - 1)
    found = np.append(0, ends + 1)
    tops = high if len(ends) == len(high) else high[ends]
    # negatives alone at even places, ties with positives at odd ones
    passed = np.zeros(2 * len(ends) + 1, dtype=np.intp)
    passed[1::2], passed[2::2] = SortedRows(tops).places_among(SortedRows(low))
    held = np.ones(2 * len(ends), dtype=bool)
    np.greater(passed[1::2], passed[:-1:2], out=held[::2])
    ties = np.flatnonzero(held)
    return found[(ties + 1) >> 1], passed[1:][ties]


def blocks_of(ties: range) -> Iterator[slice]:
    """Parts of successive ties that fit into the cache."""
    return (slice(at, min(at + _BLOCK, ties.stop)) for at in ties[::_BLOCK])
