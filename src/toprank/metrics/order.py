"""The ranked list: one sort, from which every metric is computed.

Rows of equal score form a tie. Ties are listed from the top of the list to the bottom, with the
weight of positives and of negatives met by the end of each. A weight is a repetition count; a row
of weight zero is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._extras import require
from toprank._numerics import FloatArray, sort_runs
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking

if TYPE_CHECKING:
    from torch import Tensor

#: Whole numbers below this one are floats, and so are their differences.
_EXACT_COUNT = 2.0**53


@dataclass(frozen=True)
class SortedClasses:
    """Each class sorted apart, which is faster than sorting all rows.

    Attributes
    ----------
    high, low : ndarray
        Depths (negated scores) of the positives and of the negatives, ascending.
    high_weight, low_weight : ndarray
        Their weights.
    high_sums, low_sums : ndarray
        Weight of the first j positives, or negatives, for j = 0, 1, ...
    """

    high: FloatArray
    high_weight: FloatArray
    high_sums: FloatArray
    low: FloatArray
    low_weight: FloatArray
    low_sums: FloatArray

    @classmethod
    def of(
        cls, positive: NDArray[np.bool_], scores: FloatArray, weight: FloatArray | None = None
    ) -> SortedClasses:
        """Sort checked input."""
        return cls(
            *_sort_descending(scores, weight, positive),
            *_sort_descending(scores, weight, ~positive),
        )

    def share_in_order(self) -> float:
        """Share of the pairs with the positive above, a tie counting one half: the AUC.

        Only the smaller class looks up its places among the larger one.
        """
        pairs = float(self.high_sums[-1] * self.low_sums[-1])
        if len(self.high) > len(self.low):
            above = _twice_above(self.low, self.low_weight, self.high, self.high_sums)
            return min(1.0, above / (2 * pairs))
        above = _twice_above(self.high, self.high_weight, self.low, self.low_sums)
        return max(0.0, (2 * pairs - above) / (2 * pairs))


def _twice_above(
    rows: FloatArray, row_weight: FloatArray, others: FloatArray, other_sums: FloatArray
) -> float:
    """Twice the weight of the pairs with the other above the row, once if they tie."""
    before = other_sums[np.searchsorted(others, rows, side="left")]
    before += other_sums[np.searchsorted(others, rows, side="right")]
    return float(np.dot(row_weight, before))


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
    """

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    found: FloatArray
    passed: FloatArray
    whole: bool = True
    rows: tuple[float, float] | None = None

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
        whole = weight is None or bool(np.all(weight == np.round(weight)))
        return cls.from_sorted(SortedClasses.of(positive, scores, weight), whole)

    @classmethod
    def from_sorted(cls, classes: SortedClasses, whole: bool = True) -> RankedList:
        """Merge the two sorted classes into one list of ties."""
        depths = np.concatenate((classes.high, classes.low))
        order = np.argsort(depths, kind="stable")  # two sorted runs: a linear merge
        is_positive = order < len(classes.high)
        depths = depths[order]
        ends = np.append(np.flatnonzero(depths[1:] != depths[:-1]), len(depths) - 1)
        met = np.concatenate(([0], np.cumsum(is_positive)[ends]))
        rows = np.concatenate(([0], ends + 1))
        found, passed = classes.high_sums[met], classes.low_sums[rows - met]
        if whole and found[-1] + passed[-1] < _EXACT_COUNT:  # sums of which no difference is lost
            positive, negative = np.diff(found), np.diff(passed)
        else:
            positive = _per_tie(classes.high_weight, met)
            negative = _per_tie(classes.low_weight, rows - met)
        return cls(-depths[ends], positive, negative, found, passed, whole)

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
        return np.cumsum(self.positive[::-1])[::-1]

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


def _per_tie(weight: FloatArray, met: NDArray[np.intp]) -> FloatArray:
    """Sums of the weights between successive counts `met`; a difference of sums would lose some."""
    sums = np.add.reduceat(np.append(weight, 0.0), met[:-1])
    return np.where(met[1:] > met[:-1], sums, 0.0)


def _sort_descending(
    scores: FloatArray, weight: FloatArray | None, members: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Negated scores of the members in ascending order, their weights, and those cumulated.

    Score and weight are sorted together as one complex number, which takes less time than
    sorting indices. It also fixes the order of tied weights, so that the order of the rows
    cannot change a sum.
    """
    if weight is None:
        depths = -scores[members]
        depths.sort()
        return depths, np.ones(len(depths)), np.arange(len(depths) + 1, dtype=np.float64)
    members = members & (weight > 0)
    pairs = np.empty(np.count_nonzero(members), dtype=np.complex128)
    pairs.real = -scores[members]
    pairs.imag = weight[members]
    sort_runs(pairs)
    weight = pairs.imag.copy()
    return pairs.real.copy(), weight, np.concatenate(([0.0], np.cumsum(weight)))


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
