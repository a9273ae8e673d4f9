"""Where k cuts a list, or one list per group, and what it keeps of each tie.

Rows of equal score stand in random order, so a cut that falls within a tie keeps the same
expected share of every row in it. A list is made of units of weight, and k asks for units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray, stable_order
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking
from toprank.metrics.differences import differences
from toprank.metrics.order import RankedList, all_whole
from toprank.metrics.sorted_classes import SortedClasses
from toprank.pairs import check_groups


@dataclass(frozen=True)
class Lists:
    """Ties of one or more lists, list by list and from the top of each.

    Attributes
    ----------
    owner : ndarray of shape (m,)
        Which list each tie belongs to.
    weight, positive : ndarray of shape (m,)
        Weight of the rows, and of the positives, in each tie.
    above : ndarray of shape (m,)
        Weight of the rows above each tie in its list.
    whole : bool
        Whether every weight is a whole number.
    amount : ndarray of shape (m,)
        Sum of an amount over the rows of each tie; empty if there is none.
    ranked : RankedList, optional
        The only list, where no count of it is rounded.
    """

    owner: NDArray[np.intp]
    weight: FloatArray
    positive: FloatArray
    above: FloatArray
    whole: bool
    amount: FloatArray = field(default_factory=lambda: np.empty(0))
    ranked: RankedList | None = None

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Lists:
        """Check the input of a metric at k and rank each group, or all rows as one list."""
        checked = check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity)
        if groups is None:
            return cls.of_one(RankedList.rank(*checked))
        return cls.by_rows(*checked, group_codes(groups, len(checked[1])))

    @classmethod
    def of_one(cls, ranked: RankedList) -> Lists:
        """The ties of one ranked list."""
        owner = np.broadcast_to(np.intp(0), len(ranked.scores))
        places = ranked.places
        if not ranked.exact:
            weight = ranked.positive + ranked.negative
            return cls(owner, weight, ranked.positive, places[:-1], ranked.whole)
        counted = differences(places), ranked.positive, places[:-1], ranked.whole
        return cls(owner, *counted, ranked=ranked)

    @classmethod
    def by_rows(
        cls,
        positive: NDArray[np.bool_],
        scores: FloatArray,
        weight: FloatArray | None,
        codes: NDArray[np.intp],
        amount: FloatArray | None = None,
    ) -> Lists:
        """Rank the rows of each group; `amount` is summed over the rows of a tie, weighted."""
        weight = np.ones(len(scores)) if weight is None else weight
        order = stable_order(-scores)
        order = order[stable_order(codes[order])]
        order = order[weight[order] > 0]
        first = np.empty(len(order), dtype=bool)
        first[:1] = True
        by_list, down = codes[order], scores[order]
        first[1:] = (down[1:] != down[:-1]) | (by_list[1:] != by_list[:-1])
        starts = np.flatnonzero(first)

        def per_tie(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values[order], starts))

        owner = np.cumsum(np.diff(codes[order[starts]], prepend=-1) != 0) - 1
        in_tie = per_tie(weight)
        whole = bool(np.all(weight == np.round(weight)))
        return cls(
            owner,
            in_tie,
            per_tie(weight * positive),
            _above(in_tie, owner, whole),
            whole,
            np.empty(0) if amount is None else per_tie(weight * amount),
        )

    @property
    def count(self) -> int:
        """How many lists there are."""
        return int(self.owner[-1]) + 1

    def per_list(self, values: FloatArray, ties: slice = slice(None)) -> FloatArray:
        """Sum over the ties of each list; `values` may cover only some `ties`."""
        if self.count == 1:
            return np.array([np.sum(values)])
        sums = np.bincount(self.owner[ties], weights=values, minlength=self.count)
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def totals(self) -> FloatArray:
        """Weight of the rows of each list."""
        if self.ranked is not None:
            return self.ranked.places[-1:]
        return self.per_list(self.weight)

    @cached_property
    def positives(self) -> FloatArray:
        """Weight of the positives of each list."""
        if self.ranked is not None:
            return self.ranked.found[-1:]
        return self.per_list(self.positive)

    def spread(self, values: FloatArray, ties: slice = slice(None)) -> float | FloatArray:
        """The value of its list for each tie; one number where there is one list."""
        return float(values[0]) if self.count == 1 else values[self.owner[ties]]

    def ties_within(self, sizes: FloatArray) -> slice:
        """Ties that may lie within the first `sizes` units: of one list, none below the cut."""
        if self.count > 1 or sizes[0] >= self.totals[0]:
            return slice(None)
        return slice(0, int(np.searchsorted(self.above, sizes[0])))

    def tie_at_cut(self, sizes: FloatArray) -> slice:
        """The last tie within the first `sizes` units of a single list, which has all before it."""
        last = max(0, self.ties_within(sizes).indices(len(self.above))[1] - 1)
        return slice(last, last + 1)

    def kept(self, sizes: FloatArray, ties: slice = slice(None)) -> FloatArray:
        """Expected share of each tie among the first `sizes` units of its list."""
        weight = self.weight[ties]
        room = np.maximum(self.spread(sizes, ties) - self.above[ties], 0.0)
        share = np.minimum(room, weight) / weight
        # of a list taken whole nothing is left over, whatever rounding made of its length
        all_of_it = self.spread((sizes >= self.totals).astype(np.float64), ties)
        kept: FloatArray = np.maximum(share, all_of_it)
        return kept

    def hits(self, sizes: FloatArray) -> FloatArray:
        """Expected weight of positives among the first `sizes` units of each list."""
        if self.ranked is not None:
            cut = self.tie_at_cut(sizes)
            return self.ranked.found[cut] + self.positive[cut] * self.kept(sizes, cut)
        ties = self.ties_within(sizes)
        return self.per_list(self.positive[ties] * self.kept(sizes, ties), ties)

    def each(self, values: FloatArray, divisor: FloatArray) -> FloatArray:
        """The values / divisor of the lists that have a positive."""
        present = self.positives > 0
        return values[present] / divisor[present]

    def share(self, values: FloatArray, whole: FloatArray) -> FloatArray:
        """The same where values are a part of a whole, whatever rounding says."""
        return np.minimum(self.each(values, whole), 1.0)

    def sizes(self, k: int | float, rounding: str = "up") -> FloatArray:
        """Units of weight that k asks for in each list, or ValueError saying what a k may be.

        A list shorter than a count is taken whole. A fraction of a list of whole weights is
        rounded to whole units, `rounding` "up" (at least one) or "down".
        """
        totals = self.totals
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, Real):
            raise ValueError(f"k={k!r} is a {type(k).__name__}, expected an int or a float.")
        if isinstance(k, Integral):
            longest = float(np.max(totals))
            if not 1 <= k <= longest * (1 + 1e-12):
                raise ValueError(
                    f"k={int(k)} is not a count of the list's rows: expected from 1 to {longest:g}."
                )
            return np.minimum(float(k), totals)
        fraction = float(k)
        if not 0 < fraction <= 1:
            raise ValueError(
                f"k={fraction:g} is a float, so a fraction of the list: expected more than 0 "
                "and at most 1. For a count, pass an int."
            )
        sizes = fraction * totals
        if not self.whole:
            return sizes
        return _to_whole(sizes, rounding)


class SortedOnce:
    """Checked rows, sorted once, for all metrics of a summary."""

    def __init__(self, checked: tuple[BoolArray, FloatArray, FloatArray | None]) -> None:
        self.checked = checked

    @cached_property
    def classes(self) -> SortedClasses | None:
        """Both classes sorted; None on a device, where all rows are sorted together."""
        on_device = isinstance(self.checked[1], OnDevice)
        return None if on_device else SortedClasses.of(*self.checked)

    @cached_property
    def full(self) -> RankedList:
        """The list of all ties."""
        if self.classes is None:
            return RankedList.rank(*self.checked)
        return RankedList.from_sorted(self.classes, all_whole(self.checked[2]))

    @cached_property
    def short(self) -> RankedList:
        """What the order alone decides is the same for this list."""
        if self.classes is None:
            return self.full
        return RankedList.joined(self.classes, all_whole(self.checked[2]))

    def keep_short_only(self) -> None:
        """Free the sorted rows, which take memory; what asks for the full list sorts them again."""
        if self.short is not self.__dict__.get("full"):
            del self.classes

    @cached_property
    def short_lists(self) -> Lists:
        """The same, cut at any k."""
        return Lists.of_one(self.short)


def _above(weight: FloatArray, owner: NDArray[np.intp], whole: bool) -> FloatArray:
    """Weight of the ties above each tie of its own list."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    above = np.concatenate(([0.0], np.cumsum(weight[:-1])))
    if len(starts) == 1 or (whole and above[-1] < 2**53):
        return above - above[starts][owner]
    # a light list after heavy ones would keep only the rounding errors of their sum
    for start, stop in pairwise([*starts.tolist(), len(weight)]):
        above[start] = 0.0
        np.cumsum(weight[start : stop - 1], out=above[start + 1 : stop])
    return above


def group_codes(groups: ArrayLike | None, n: int) -> NDArray[np.intp]:
    """Number the groups from 0, or raise ValueError; without groups all rows are in group 0."""
    codes = check_groups(groups, n)
    return np.zeros(n, dtype=np.intp) if codes is None else codes


def _to_whole(sizes: FloatArray, rounding: str) -> FloatArray:
    """Round, but a whole number plus rounding error stays that whole number."""
    nearest = np.round(sizes)
    near = np.abs(sizes - nearest) <= 1e-9 * np.maximum(1.0, sizes)
    if rounding == "down":
        return np.where(near, nearest, np.floor(sizes))
    return np.maximum(1.0, np.where(near, nearest, np.ceil(sizes)))
