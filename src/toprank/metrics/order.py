"""The ranked list: one sort, from which every metric is computed.

Rows of equal score form a tie. Ties are listed from the top of the list to the bottom, with the
weight of positives and of negatives met by the end of each. A weight is a repetition count; a row
of weight zero is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import BoolArray
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking
from toprank.metrics.differences import differences
from toprank.metrics.smooth_sums import FEW, PowerSums, SmoothFunction
from toprank.metrics.sorted_classes import SortedClasses, blocks_of, joined_ties

if TYPE_CHECKING:
    from torch import Tensor

#: Whole numbers below this one are floats, and so are their differences.
_EXACT_COUNT = 2.0**53


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
    edges : tuple of two floats, optional
        Scores of the lowest positive and of the highest negative, where `scores` are not kept.
    """

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    found: FloatArray
    passed: FloatArray
    whole: bool = True
    rows: tuple[float, float] | None = None
    exact: bool = False
    edges: tuple[float, float] | None = None

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
        """The list with all negatives between two positives as one tie.

        What only the order decides is the same for it (`Metric.order_only`), and where positives
        are few the list is short. Its scores are NaN; the two that a metric may need are `edges`.
        """
        edges = -float(classes.high.depths[-1]), -float(classes.low.depths[0])
        if classes.is_long:
            ranked = cls._merged(classes, join=True)
        else:
            ranked = cls._counted(classes, np.empty(0), *joined_ties(classes), whole, differences)
        scores = np.broadcast_to(np.nan, len(ranked.found) - 1)
        return replace(ranked, scores=scores, edges=edges)

    @classmethod
    def _merged(cls, classes: SortedClasses, *, join: bool) -> RankedList:
        """The same lists of rows that count once, by a compiled loop."""
        from toprank.metrics.merge_kernels import merge_ties  # loads Numba

        scores, found, passed = merge_ties(classes.high.depths, classes.low.depths, join)
        held = differences if join else np.diff
        return cls(scores, held(found), held(passed), found, passed, exact=True)

    @classmethod
    def _counted(
        cls,
        classes: SortedClasses,
        scores: FloatArray,
        met: np.ndarray,
        below: np.ndarray,
        whole: bool,
        held: Callable[[FloatArray], FloatArray] = np.diff,
    ) -> RankedList:
        """The list from the numbers of positives and of negatives down to the end of each tie."""
        high, low = classes.high, classes.low
        found, passed = high.weight_of_first(met), low.weight_of_first(below)
        exact = whole and bool(found[-1] + passed[-1] < _EXACT_COUNT)
        if exact:
            positive, negative = held(found), held(passed)
        else:
            positive, negative = high.per_tie(met), low.per_tie(below)
        return cls(scores, positive, negative, found, passed, whole, exact=exact)

    def blocks(self, ties: range | None = None) -> Iterator[slice]:
        """Ties that fit into the cache together, so that no array of all ties need be made."""
        ties = range(len(self.scores)) if ties is None else ties
        if isinstance(self.scores, OnDevice):
            return iter([slice(ties.start, ties.stop)])
        return blocks_of(ties)

    def sum_over_ties(
        self, of_ties: Callable[[slice], SupportsFloat], ties: range | None = None
    ) -> float:
        """The sum of what some ties add, block by block."""
        return sum(float(of_ties(block)) for block in self.blocks(ties))

    @cached_property
    def places(self) -> FloatArray:
        """Weight of all rows in the first j ties, j = 0, ..., m: the last place of each tie."""
        return self.found + self.passed

    def with_positives(self, ties: slice) -> NDArray[np.intp]:
        """Which of some ties hold positives, counted from the first of them."""
        found = self.found[ties.start : ties.stop + 1]
        return np.flatnonzero(found[1:] != found[:-1] if self.exact else self.positive[ties] > 0)

    def places_alone(self, ties: slice) -> FloatArray | None:
        """The places of the positives in some ties; None where some tie holds several of them."""
        held = self.with_positives(ties)
        alone = len(held) == self.found[ties.stop] - self.found[ties.start]
        return self.places[1:][ties][held] if alone else None

    @cached_property
    def sums_of_places(self) -> PowerSums:
        """Of the places of positives that have no other in their tie, block by block.

        Left out are blocks where a tie holds several positives, or few ties hold any.
        """
        blocks = self.blocks() if self.exact else ()
        places = map(self.places_alone, blocks)
        return PowerSums.of(None if at is None or len(at) < FEW else at for at in places)

    def sum_over_places(
        self,
        discount: SmoothFunction,
        of_ties: Callable[[slice], float],
        end: int | None = None,
    ) -> float:
        """The sum over the positives of the first ties of a smooth function of their last place.

        Where several positives of a block stand in one tie, the sum is that `of_ties`, which may
        depend on more than the place.
        """

        def of_block(block: slice, summed: float) -> float:
            if not np.isnan(summed):
                return summed
            places = self.places_alone(block) if self.exact else None
            return of_ties(block) if places is None else float(np.sum(discount(places)))

        blocks = list(self.blocks(range(len(self.scores))[:end]))
        sums = self.sums_of_places.sum_of(discount)[: len(blocks) - (end is not None)].tolist()
        sums += [np.nan] * (len(blocks) - len(sums))
        return sum(map(of_block, blocks, sums))

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

    def heights_of(self, ties: slice) -> FloatArray:
        """The same of some ties."""
        return self.positives - self.found[:-1][ties] if self.exact else self.heights[ties]

    @cached_property
    def negatives_below(self) -> FloatArray:
        """Weight of the negatives below each tie, summed from the bottom too."""
        if self.exact:
            return self.negatives - self.passed[1:]
        return np.append(np.cumsum(self.negative[::-1])[::-1][1:], 0.0)

    def negatives_below_of(self, ties: slice) -> FloatArray:
        """The same of some ties."""
        return self.negatives - self.passed[1:][ties] if self.exact else self.negatives_below[ties]

    @cached_property
    def above_and_level(self) -> tuple[float, float]:
        """Weight of the pairs whose positive stands above the negative, and above or level."""
        above, level = self.found[:-1], self.found[1:]
        sums = np.zeros(2)
        for ties in self.blocks():
            held = self.negative[ties]
            sums += float(np.dot(held, above[ties])), float(np.dot(held, level[ties]))
        return float(sums[0]), float(sums[1])

    @property
    def _counts_pairs(self) -> bool:
        """Whether sums over pairs are whole numbers that no rounding touches."""
        return self.exact and self.positives * self.negatives < _EXACT_COUNT

    @cached_property
    def misranked(self) -> float:
        """Weight of the pairs whose positive stands at or below the negative."""
        if self._counts_pairs:
            return self.positives * self.negatives - self.above_and_level[0]
        return self.sum_over_ties(lambda ties: np.dot(self.negative[ties], self.heights_of(ties)))

    @cached_property
    def tied(self) -> float:
        """Weight of the pairs that tie."""
        if self._counts_pairs:
            return self.above_and_level[1] - self.above_and_level[0]
        return self.sum_over_ties(lambda ties: np.dot(self.negative[ties], self.positive[ties]))

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
        return int(np.searchsorted(self.passed, 0.0, side="right")) - 1

    @property
    def last_positive(self) -> int:
        """Index of the tie that holds the lowest positive."""
        if self.exact:
            return int(np.searchsorted(self.found, self.positives)) - 1
        # a light one may be lost in the sum of all
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
