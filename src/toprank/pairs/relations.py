"""Pairs of rows that are not everyone against everyone: graded labels, groups, listed pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray, IntArray
from toprank._numerics import FloatArray

#: Pairs up to which a relation keeps the list of them: fits sum over it again and again.
_KEPT_PAIRS = 1 << 14


class Pairs:
    """Crucial pairs of rows (winner, loser), and the number of rows they point into.

    With weights it is the truth function pi of Rudin 2009 (Section 7) with real values: what the
    loss of a pair is multiplied by.

    It has no length, so that tools which slice whatever is as long as X leave it whole;
    `take` gives the pairs of a subset of the rows.

    Parameters
    ----------
    pairs : array-like of shape (m, 2)
        Row numbers (winner, loser). Repeated and contradictory pairs are allowed.
    n_rows : int
        Number of rows of the table they point into.
    weight : array-like of shape (m,), optional
        How much each pair counts, none of them negative; by default one each. A pair of weight
        zero is absent. Inside a push it stands within the height, before the price is applied.

    Examples
    --------
    >>> from toprank import Pairs
    >>> pairs = Pairs([[0, 1], [2, 0], [2, 3]], n_rows=4)
    >>> pairs.take([2, 0]).array
    array([[0, 1]])
    >>> Pairs([[0, 1], [2, 0]], n_rows=3, weight=[0.5, 2.0]).take([2, 0]).weight
    array([2.])
    """

    def __init__(self, pairs: ArrayLike, n_rows: int, weight: ArrayLike | None = None) -> None:
        if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 0:
            raise ValueError(f"n_rows={n_rows!r} is not a number of rows.")
        self.n_rows: int = int(n_rows)
        self.array: NDArray[np.intp] = check_pairs(pairs, self.n_rows)
        self.weight: FloatArray | None = _check_pair_weight(weight, len(self.array))

    @property
    def winners(self) -> NDArray[np.intp]:
        """Row of the winner of each pair."""
        return self.array[:, 0]

    @property
    def losers(self) -> NDArray[np.intp]:
        """Row of the loser of each pair."""
        return self.array[:, 1]

    def take(self, rows: ArrayLike) -> Pairs:
        """Return the pairs with both rows among `rows`, numbered by their place there.

        A mask of n_rows truth values is taken as the rows where it is true.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            if chosen.shape != (self.n_rows,):
                raise ValueError(
                    f"rows is a mask of shape {chosen.shape}, expected ({self.n_rows},)."
                )
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.intp)
        if len(np.unique(chosen)) != len(chosen):
            raise ValueError("rows names a row twice; the pairs of a repeated row are ambiguous.")
        if chosen.size and not (0 <= chosen.min() and chosen.max() < self.n_rows):
            raise ValueError(f"rows must lie in 0, ..., {self.n_rows - 1}.")
        place = np.full(self.n_rows, -1, dtype=np.intp)
        place[chosen] = np.arange(len(chosen))
        moved = place[self.array]
        kept = (moved >= 0).all(axis=1)
        weight = None if self.weight is None else self.weight[kept]
        return Pairs(moved[kept], len(chosen), weight)

    def __repr__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"Pairs({len(self.array)} pairs, n_rows={self.n_rows}{weighted})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        mine, theirs = (
            np.ones(len(pairs.array)) if pairs.weight is None else pairs.weight
            for pairs in (self, other)
        )
        same_pairs = self.n_rows == other.n_rows and np.array_equal(self.array, other.array)
        return same_pairs and np.array_equal(mine, theirs)

    __hash__ = None  # type: ignore[assignment]


def _check_pair_weight(weight: ArrayLike | None, n_pairs: int) -> FloatArray | None:
    if weight is None:
        return None
    numbers = np.asarray(weight, dtype=np.float64)
    if numbers.shape != (n_pairs,):
        raise ValueError(
            f"weight has shape {numbers.shape}, expected ({n_pairs},): one number per pair."
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0):
        raise ValueError(
            "weight holds numbers that are negative, NaN or infinite; expected how much each pair "
            "counts. For a pair that counts the other way swap its winner and loser."
        )
    return numbers


def check_pairs(pairs: ArrayLike | Pairs, n_rows: int) -> NDArray[np.intp]:
    """Return an (m, 2) array of row numbers, or raise ValueError saying what is wrong."""
    if isinstance(pairs, Pairs):
        if pairs.n_rows != n_rows:
            raise ValueError(
                f"pairs point into a table of {pairs.n_rows} rows, but X has {n_rows}. Use "
                "pairs.take(rows) to keep the pairs of a subset of the rows."
            )
        return pairs.array
    array = np.asarray(pairs)
    if array.size == 0 and array.ndim <= 2:
        return np.empty((0, 2), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"pairs has shape {array.shape}, expected (m, 2): one row (winner, loser) per pair."
        )
    if array.dtype.kind not in "iu":
        if array.dtype.kind != "f" or not np.array_equal(array, np.round(array)):
            raise ValueError(
                f"pairs has dtype {array.dtype}, expected row numbers: integers that say which "
                "row of X wins and which loses."
            )
    if array.min() < 0 or array.max() >= n_rows:
        raise ValueError(
            f"pairs name rows {array.min():g} to {array.max():g}, but there are rows 0 to "
            f"{n_rows - 1} only."
        )
    array = array.astype(np.intp)
    same = np.flatnonzero(array[:, 0] == array[:, 1])
    if same.size:
        raise ValueError(
            f"pairs[{same[0]}] sets row {array[same[0], 0]} against itself; a pair needs two "
            "different rows."
        )
    return array


class Relation(ABC):
    """Which inner row faces which outer row, where not everyone faces everyone.

    ``inner`` and ``outer`` are the rows that face anyone at all. Inner rows win, outer rows lose;
    turned round they change places, so that the winners' heights can be priced.
    """

    inner: IntArray
    outer: IntArray
    n_pairs: int
    #: What each pair counts beside the weights of its rows, in the order of `pairs_at`.
    pair_weight: FloatArray | None = None

    @abstractmethod
    def reverse(self) -> Relation:
        """Return the same pairs with winners as outer rows."""

    @abstractmethod
    def facing_weight(self, weight: FloatArray) -> FloatArray:
        """Return, for each outer row, the total weight of the rows it faces."""

    @abstractmethod
    def pairs_at(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return (inner, outer) of the pairs of these numbers, as places in the two arrays."""

    @abstractmethod
    def smallest_gap(self, of_inner: FloatArray, of_outer: FloatArray) -> float:
        """Return the smallest of_inner[i] - of_outer[o] over the pairs; values are per row."""

    @abstractmethod
    def thin(self, n_rows: int) -> tuple[IntArray, Relation] | None:
        """Return about n_rows rows and the relation among them; None where that makes no sense."""

    def blocks(self, most: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield every pair once, as `pairs_at` does, at most so many at a time."""
        if self.n_pairs <= min(most, _KEPT_PAIRS):
            yield self._all_pairs
            return
        for start in range(0, self.n_pairs, most):
            yield self.pairs_at(np.arange(start, min(start + most, self.n_pairs)))

    @cached_property
    def _all_pairs(self) -> tuple[IntArray, IntArray]:
        return self.pairs_at(np.arange(self.n_pairs))

    def sample_pairs(self, count: int) -> tuple[IntArray, IntArray]:
        """Return (inner, outer) of pairs drawn evenly, always the same; all if there are few."""
        if self.n_pairs <= count:
            return self.pairs_at(np.arange(self.n_pairs))
        # in order, so that looking them up reads memory in order
        return self.pairs_at(np.sort(np.random.default_rng(0).integers(0, self.n_pairs, count)))


class Explicit(Relation):
    """A list of crucial pairs; repeated and contradictory ones count as often as they come."""

    def __init__(self, inner: IntArray, outer: IntArray, pair_weight: FloatArray | None = None):
        # sorted by outer row, so that sums over a height read memory in order
        order = np.argsort(outer, kind="stable")
        self.pair_weight = None if pair_weight is None else pair_weight[order]
        self.inner, self._inner_place = np.unique(inner[order], return_inverse=True)
        outer = outer[order]
        is_new = np.diff(outer, prepend=-1) != 0
        self.outer, self._outer_place = outer[is_new], np.cumsum(is_new) - 1
        self.n_pairs = len(inner)

    @property
    def inner_rows(self) -> IntArray:
        """The inner row of each pair."""
        return self.inner[self._inner_place]

    @property
    def outer_rows(self) -> IntArray:
        """The outer row of each pair, ascending."""
        return self.outer[self._outer_place]

    def reverse(self) -> Explicit:
        return Explicit(self.outer_rows, self.inner_rows, self.pair_weight)

    def facing_weight(self, weight: FloatArray) -> FloatArray:
        of_inner = weight[self.inner][self._inner_place]
        if self.pair_weight is not None:
            of_inner = of_inner * self.pair_weight
        sums = np.bincount(self._outer_place, of_inner, len(self.outer))
        return sums.astype(np.float64)

    def pairs_at(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        return self._inner_place[numbers], self._outer_place[numbers]

    def smallest_gap(self, of_inner: FloatArray, of_outer: FloatArray) -> float:
        gaps = of_inner[self.inner_rows] - of_outer[self.outer_rows]
        return float(np.min(gaps, initial=np.inf))

    def thin(self, n_rows: int) -> tuple[IntArray, Relation] | None:
        step = -(-2 * self.n_pairs // n_rows)
        kept = np.arange(0, self.n_pairs, max(1, step))
        inner, outer = self.inner_rows[kept], self.outer_rows[kept]
        rows, place = np.unique(np.concatenate([inner, outer]), return_inverse=True)
        weight = None if self.pair_weight is None else self.pair_weight[kept]
        return rows, Explicit(place[: len(kept)], place[len(kept) :], weight)


class Graded(Relation):
    """Every row against every row of a lower label in its group.

    In order of group, then label, the rows that win against a given one follow each other.

    Attributes
    ----------
    rows : the rows in that order; a place is a position in it
    level_start, level_end : for each place, the places of the same group and label
    group_start, group_end : for each place, the places of the same group
    """

    def __init__(self, labels: AnyArray, groups: IntArray | None, rows: IntArray):
        labels = labels[rows]
        if groups is None:
            groups, order = np.zeros(len(rows), dtype=np.intp), np.argsort(labels)
        else:
            groups = groups[rows]
            order = np.lexsort((labels, groups))
        labels, groups, self.rows = labels[order], groups[order], rows[order]
        new_group = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        new_level = (groups[1:] != groups[:-1]) | (labels[1:] != labels[:-1])
        self.group_start, self.group_end = _runs(new_group, len(rows))
        self.level_start, self.level_end = _runs(np.flatnonzero(new_level) + 1, len(rows))
        wins = self.level_start > self.group_start
        self.inner_places, self._inner_number = np.flatnonzero(wins), np.cumsum(wins) - 1
        self.outer_places = np.flatnonzero(self.level_end < self.group_end)
        self.inner, self.outer = self.rows[self.inner_places], self.rows[self.outer_places]
        faced = (self.group_end - self.level_end)[self.outer_places]
        self._pairs_before = np.concatenate([[0], np.cumsum(faced)])
        self.n_pairs = int(self._pairs_before[-1])

    @property
    def n_places(self) -> int:
        return len(self.rows)

    @property
    def group_cuts(self) -> IntArray:
        """The first place of each group, and the end of the last."""
        starts = np.flatnonzero(self.group_start == np.arange(self.n_places))
        return np.append(starts, self.n_places)

    def _again(self, sign: int, kept: IntArray, rows: IntArray) -> Graded:
        """The relation of the kept places, with the labels times sign, on other row numbers."""
        labels, groups = np.empty((2, int(rows.max(initial=-1)) + 1), dtype=np.intp)
        labels[rows] = sign * self.level_start[kept]
        groups[rows] = self.group_start[kept]
        return Graded(labels, groups, rows)

    def reverse(self) -> Graded:
        return self._again(-1, np.arange(self.n_places), self.rows)

    def facing_weight(self, weight: FloatArray) -> FloatArray:
        before = np.concatenate([[0.0], np.cumsum(weight[self.rows])])
        return (before[self.group_end] - before[self.level_end])[self.outer_places]

    def pairs_at(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        outer = np.searchsorted(self._pairs_before, numbers, side="right") - 1
        place = self.level_end[self.outer_places[outer]] + numbers - self._pairs_before[outer]
        return self._inner_number[place], outer

    def smallest_gap(self, of_inner: FloatArray, of_outer: FloatArray) -> float:
        # the largest outer value at a lower label of the group, found among ranks: those of a
        # later group are larger, so that one running maximum serves all groups
        outer = of_outer[self.rows]
        order = np.argsort(outer)
        rank = np.empty(self.n_places, dtype=np.intp)
        rank[order] = np.arange(self.n_places)
        offset = self.group_start * self.n_places
        largest = np.maximum.accumulate(rank + offset) - offset
        below = self.level_start[self.inner_places] - 1
        gaps = of_inner[self.inner] - outer[order[largest[below]]]
        return float(np.min(gaps, initial=np.inf))

    def thin(self, n_rows: int) -> tuple[IntArray, Relation] | None:
        step = self.n_places // n_rows
        starts = self.group_cuts[:-1]
        if self.n_places >= 20 * step * len(starts):  # every group keeps some twenty rows
            kept = np.arange(step // 2, self.n_places, step)
        else:
            kept = np.flatnonzero(np.isin(self.group_start, starts[::step]))
        thin = self._again(1, kept, np.arange(len(kept)))
        return (self.rows[kept], thin) if thin.n_pairs else None


def relation_of(
    labels: np.ndarray | None,
    groups: IntArray | None = None,
    pairs: Pairs | None = None,
    weight: FloatArray | None = None,
) -> Relation:
    """Return which rows are compared; ValueError if none are.

    Parameters
    ----------
    labels : array of shape (n,) or None
        A larger one belongs above a smaller one; not read where there are pairs.
    groups : int array of shape (n,) or None
        Only rows of one group are compared.
    pairs : Pairs or None
        They replace the pairs that the labels imply.
    weight : array of shape (n,) or None
        A row of weight zero is absent, and so are its pairs.
    """
    if pairs is not None:
        return _explicit(pairs, weight)
    assert labels is not None
    rows = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0)
    relation = Graded(labels, groups, rows)
    if relation.n_pairs == 0:
        raise ValueError(_no_pair(labels[rows], groups))
    return relation


def _explicit(pairs: Pairs, weight: FloatArray | None) -> Explicit:
    present = np.ones(len(pairs.array), dtype=bool)
    if weight is not None:
        present &= (weight[pairs.array] > 0).all(axis=1)
    if pairs.weight is not None:
        present &= pairs.weight > 0
    if not np.any(present):
        why = (
            "each has weight zero, or names a row that has"
            if len(pairs.array)
            else "pairs is empty"
        )
        raise ValueError(f"There is no pair to rank: {why}.")
    kept = pairs.array[present]
    return Explicit(kept[:, 0], kept[:, 1], None if pairs.weight is None else pairs.weight[present])


def _no_pair(labels: AnyArray, groups: IntArray | None) -> str:
    if len(labels) == 0:
        return "There is no pair to rank: every row has weight 0."
    if len(labels) == 1:
        return "There is no pair to rank: n_samples = 1, and a pair needs two rows."
    if groups is None or np.all(labels == labels[0]):
        return (
            f"There is no pair to rank: every label in y is {labels[0]:g}. Rows are compared where "
            "their labels differ; check the label column, or the split that lost the others."
        )
    return (
        "There is no pair to rank: in every group all labels are equal. Rows are compared within "
        "their group only; check that groups holds the query of each row, not its own number."
    )


def _runs(cuts: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """For each of n places, where its run starts and ends; cuts are where new runs begin."""
    bounds = np.concatenate([[0], cuts, [n]])
    lengths = np.diff(bounds)
    return np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)
