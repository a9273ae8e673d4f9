"""The ranked list: one sort, from which every metric is computed.

Rows of equal score form a tie. Ties are listed from the top of the list to the bottom, with the
weight of positives and of negatives met by the end of each. A weight is a repetition count; a row
of weight zero is absent.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import BoolArray
from toprank._extras import require
from toprank._numerics import FloatArray, sort_runs
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking

if TYPE_CHECKING:
    from torch import Tensor

#: Ties from which a compiled loop, of which Numba is loaded, repays its own loading, and from which
#: it repays that of Numba too, half a second.
_COMPILED_FROM, _LOADED_FROM = 1 << 20, 24_000_000
#: Whole numbers below this one are floats, and so are their differences.
_EXACT_COUNT = 2.0**53


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
            depths = scores.take(np.flatnonzero(members))  # a third of the time of scores[members]
            np.negative(depths, out=depths)
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


@dataclass(frozen=True)
class RankedList:
    """Ties in descending order of score, with cumulated weights.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        The distinct scores, descending.
    positive, negative : ndarray of shape (m,)
        Weight of the positives, and of the negatives, in each tie.
    found : ndarray of shape (m + 1,)
        Weight of the positives in the first j ties, for j = 0, ..., m.
    passed : ndarray of shape (m + 1,)
        Weight of the negatives in the first j ties.
    whole : bool
        Whether every weight is a whole number.
    rows : tuple of two floats, optional
        Independent positives and negatives, where a weight says how many others a row stands for.
    exact : bool
        Whether no difference of `found` or of `passed` is rounded.
    """

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    found: FloatArray
    passed: FloatArray
    whole: bool = True
    rows: tuple[float, float] | None = None
    exact: bool = False

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        sample_weight: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
        pos_label: object = None,
    ) -> RankedList:
        """Check the input of a metric and rank it."""
        return cls.rank(*check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity))

    @classmethod
    def rank(
        cls, positive: NDArray[np.bool_], scores: FloatArray, weight: FloatArray | None = None
    ) -> RankedList:
        """Rank checked input."""
        if isinstance(scores, OnDevice):
            return cls(*_ranked_on_device(positive, scores, weight))
        return cls.from_sorted(SortedClasses.of(positive, scores, weight), all_whole(weight))

    @classmethod
    def from_sorted(cls, classes: SortedClasses, whole: bool = True) -> RankedList:
        """Merge the two sorted classes into one list of ties."""
        high, low = classes.high, classes.low
        if classes.is_long:
            return cls._merged(classes, join=False)
        depths = np.concatenate((high.depths, low.depths))
        order = np.argsort(depths, kind="stable")  # two sorted runs: a linear merge
        is_positive = order < len(high)
        depths = depths[order]
        ends = np.append(np.flatnonzero(depths[1:] != depths[:-1]), len(depths) - 1)
        met = np.concatenate(([0], np.cumsum(is_positive)[ends]))
        rows = np.concatenate(([0], ends + 1))
        return cls._counted(classes, -depths[ends], met, rows - met, whole)

    @classmethod
    def joined(cls, classes: SortedClasses, whole: bool = True) -> RankedList:
        """The list with all negatives between two positives as one tie, at the highest's score.

        What only the order decides is the same for it (`Metric.order_only`), and where positives
        are few the list is short. Otherwise it is the whole list, unless a compiled loop merges.
        """
        high, low = classes.high, classes.low
        if classes.is_long:
            return cls._merged(classes, join=True)
        if len(high) > len(low):
            return cls.from_sorted(classes, whole)
        depths = high.depths
        ends = np.append(np.flatnonzero(depths[1:] != depths[:-1]), len(depths) - 1)
        tops = SortedRows(depths if len(ends) == len(depths) else depths[ends])
        # negatives alone at even places, ties with positives at odd ones
        counts = "float64" if high.weight is None else "intp"  # as `weight_of_first` wants
        passed: np.ndarray = np.empty(2 * len(ends) + 2, dtype=counts)
        passed[0], passed[-1] = 0, len(low)
        passed[1:-1:2], passed[2::2] = tops.places_among(low)
        met = np.empty_like(passed)
        met[:2], met[2::2], met[3::2] = 0, ends + 1, ends + 1
        scores = np.empty(len(passed) - 1)
        scores[1::2] = tops.depths
        first = np.minimum(passed[:-1:2], len(low) - 1)
        scores[::2] = low.depths.take(first.astype(np.intp, copy=False))
        held = np.ones(len(scores) + 1, dtype=bool)
        held[1::2] = passed[1::2] > passed[:-1:2]
        last = np.flatnonzero(held)
        scores = scores.take(last[1:] - 1)
        np.negative(scores, out=scores)
        return cls._counted(classes, scores, met.take(last), passed.take(last), whole)

    @classmethod
    def _merged(cls, classes: SortedClasses, *, join: bool) -> RankedList:
        """The same lists of rows that count once, by a compiled loop."""
        from toprank.metrics.merge_kernels import merge_ties  # loads Numba

        return cls(*merge_ties(classes.high.depths, classes.low.depths, join), exact=True)

    @classmethod
    def _counted(
        cls,
        classes: SortedClasses,
        scores: FloatArray,
        met: np.ndarray,
        below: np.ndarray,
        whole: bool,
    ) -> RankedList:
        """The list from the numbers of positives and of negatives down to the end of each tie."""
        high, low = classes.high, classes.low
        found, passed = high.weight_of_first(met), low.weight_of_first(below)
        exact = whole and bool(found[-1] + passed[-1] < _EXACT_COUNT)
        if exact:
            positive, negative = np.diff(found), np.diff(passed)
        else:
            positive, negative = high.per_tie(met), low.per_tie(below)
        return cls(scores, positive, negative, found, passed, whole, exact=exact)

    @cached_property
    def places(self) -> FloatArray:
        """Weight of all rows in the first j ties, j = 0, ..., m: the last place of each tie."""
        return self.found + self.passed

    @property
    def positives(self) -> float:
        """Weight of all positives, W+."""
        return float(self.found[-1])

    @property
    def negatives(self) -> float:
        """Weight of all negatives, W-."""
        return float(self.passed[-1])

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.places[-1])

    @cached_property
    def heights(self) -> FloatArray:
        """Weight of the positives at or below each tie: the height of its negatives.

        Summed from the bottom, so that small heights are exact whatever is above them.
        """
        if self.exact:
            return self.positives - self.found[:-1]
        return np.cumsum(self.positive[::-1])[::-1]

    @property
    def negatives_below(self) -> FloatArray:
        """Weight of the negatives below each tie, summed from the bottom too."""
        if self.exact:
            return self.negatives - self.passed[1:]
        return np.append(np.cumsum(self.negative[::-1])[::-1][1:], 0.0)

    @cached_property
    def misranked(self) -> float:
        """Weight of the pairs whose positive stands at or below the negative."""
        return float(np.dot(self.negative, self.heights))

    @cached_property
    def tied(self) -> float:
        """Weight of the pairs that tie."""
        return float(np.dot(self.negative, self.positive))

    @cached_property
    def with_positives(self) -> NDArray[np.intp] | OnDevice:
        """The ties that hold a positive: their numbers, on a device a mask."""
        return members_of(self.positive > 0)

    def heights_within(self, margin: float) -> FloatArray:
        """Weight of the positives that do not lead each tie by more than `margin`."""
        if margin == 0:
            return self.heights
        with np.errstate(over="ignore"):  # beyond every score, and compared as such
            bar = self.scores + margin
        leading = np.searchsorted(-self.scores, -bar, side="left")
        return np.append(self.heights, 0.0)[leading]

    @cached_property
    def first_negative(self) -> int:
        """Index of the tie that holds the highest negative."""
        return int(np.argmax(self.negative > 0))

    @property
    def last_positive(self) -> int:
        """Index of the tie that holds the lowest positive."""
        return len(self.scores) - 1 - int(np.argmax(self.positive[::-1] > 0))


def members_of(mask: BoolArray | OnDevice) -> NDArray[np.intp] | OnDevice:
    """Where a mask is true: numbers of places, which pick faster; on a device the mask."""
    return mask if isinstance(mask, OnDevice) else np.flatnonzero(mask)


def all_whole(weight: FloatArray | None) -> bool:
    """Whether every weight is a whole number."""
    return weight is None or bool(np.all(weight == np.round(weight)))


def _ranked_on_device(
    positive: OnDevice, scores: OnDevice, weight: OnDevice | None
) -> tuple[OnDevice | bool, ...]:
    """Sort on the device; return what a RankedList is made of."""
    torch = require("torch", "torch")
    high, at = positive.tensor, scores.tensor
    if weight is not None:
        present = weight.tensor > 0
        high, at, units = high[present], at[present], weight.tensor[present]
    at, order = at.sort(descending=True)
    high = high[order]
    units = torch.ones_like(at, dtype=torch.float64) if weight is None else units[order]
    del order
    last = torch.cat([at[1:] != at[:-1], high.new_ones(1)])
    ends = last.nonzero()[:, 0]
    whole = weight is None or bool((units == units.round()).all())
    columns = [_units_per_tie(units * side, ends, whole) for side in (high, ~high)]
    (in_positive, found), (in_negative, passed) = columns
    lists = (at[ends].double(), in_positive, in_negative, found, passed)
    return (*map(OnDevice, lists), whole)


def _units_per_tie(units: Tensor, ends: Tensor, whole: bool) -> tuple[Tensor, Tensor]:
    """The units in each tie, and in the first j ties for j = 0, 1, ..."""
    torch = require("torch", "torch")
    met = torch.cat([units.new_zeros(1), units.cumsum(0)[ends]])
    if whole:
        return met.diff(), met
    # a difference of sums would lose what a light tie holds
    lengths = torch.cat([ends[:1] + 1, ends.diff()])
    return torch.segment_reduce(units, "sum", lengths=lengths), met
