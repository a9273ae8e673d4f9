"""Piecewise polynomial losses (hinge, squared hinge, 0-1) by sorting: O(n log n), exact.

For an outer row with threshold t = b + knot the sum runs over the inner rows a < t of a
polynomial in t - a. With c the largest such a, and the moments M_k = sum v (c - a)^k of the
rows up to c, (t - a)^m expands in (t - c) and c - a, both non-negative: for positive weights
nothing ever cancels, however far the scores lie from zero. The moments follow from one cumulative
sum each, because moving c to the right by D turns M1 into M1 + D M0 and M2 into
M2 + 2 D M1 + D^2 M0.

A bend, a parabola between t - width and t, sums over the few rows in between. Its moments are
taken about the first row of short stretches of the axis, so that rows far away do not enter.

Graded pairs: a tree over the label levels, also O(n log n). The rows of a group are cut in two
at a label near the middle, each half again, and so on. Every pair of different labels lies between
the halves of exactly one node, where it belongs to a problem of two classes. The scores are sorted
once and parted on the way down, and one pass over both halves gives the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.losses.margin import derivative_coefficients
from toprank.pair_sums.base import GradedSum, PairSum
from toprank.pair_sums.pair_by_pair import PAIRS_PER_BLOCK, Blocked
from toprank.pairs import Graded, IntArray

#: From a knot to the last source that each target reaches, and the gap to it.
Reach: TypeAlias = Callable[[float], "tuple[NDArray[np.intp], FloatArray]"]

HIGHEST_DEGREE = 2
#: Parts that the depths of the tree are dealt to, for threads: fixed, so that sums are too.
_PARTS = 4
#: Places up to which a stretch of several levels is summed pair by pair.
LEAF = 32
#: Pairs that take as long as a row in the sorted sums of a column with a bend.
_PAIRS_PER_ROW = 10


class Sorted(PairSum):
    """Cumulative moments of the sorted inner scores, looked up at every outer score."""

    @staticmethod
    def supports(loss: Loss) -> bool:
        return bool(loss.pieces) and all(
            len(coefficients) <= HIGHEST_DEGREE + 1 for _, coefficients in loss.pieces
        )

    @cached_property
    def _forward(self) -> _Prefix:
        return _Prefix(self.loss, self.inner, self.outer)

    @cached_property
    def _backward(self) -> _Prefix:
        # b > a - knot is -b < -a + knot: the same sums with both axes turned round
        return _Prefix(self.loss, -self.outer, -self.inner)

    def _few_pairs(self, columns: int) -> bool:
        """Whether a product of matrices sums so many columns faster than sorting, one by one."""
        pairs, rows = len(self.inner) * len(self.outer), len(self.inner) + len(self.outer)
        return pairs <= min(PAIRS_PER_BLOCK, _PAIRS_PER_ROW * columns * rows)

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        return self._forward.sums(orders, v)

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        return self._backward.sums(orders, u)

    def columns_to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        if self.loss.bend is None:
            return self._forward.sums(orders, v)
        if self._few_pairs(v.shape[1]):
            return Blocked(self.loss, self.inner, self.outer).columns_to_outer(orders, v)
        return super().columns_to_outer(orders, v)

    def columns_to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        if self.loss.bend is None:
            return self._backward.sums(orders, u)
        if self._few_pairs(u.shape[1]):
            return Blocked(self.loss, self.inner, self.outer).columns_to_inner(orders, u)
        return super().columns_to_inner(orders, u)


class _Prefix:
    """Sums over the sources below target + knot of polynomials in target + knot - source.

    Of one vector of weights or, where the loss has no bend, of each column of a table.
    """

    def __init__(self, loss: Loss, source: FloatArray, target: FloatArray):
        self.pieces, self.bend = loss.pieces, loss.bend
        self.side: Literal["left", "right"] = "right" if loss.includes_knot else "left"
        self.order = np.argsort(source)  # ties in any order: their sums are the same
        self.source = source[self.order]
        self.size = len(target)
        # looked up in sorted order the binary searches stay in cache
        self.target_order = np.argsort(target)
        self.target = target[self.target_order]
        self._kept_stretches: _Stretches | None = None

    def sums(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        highest = max(len(c) - 1 for _, c in self.pieces) if self.bend is None else HIGHEST_DEGREE
        v, reach = v[self.order], cache(self._reach)
        with np.errstate(over="ignore", invalid="ignore"):  # squares beyond 1e308 are infinite
            moments = self._moments(v, highest)
            totals = self._sums(orders, moments, reach)
            if self.bend is not None:
                self._add_bend(totals, orders, v, moments, reach, *self.bend)
        return totals

    def _sums(
        self, orders: tuple[int, ...], moments: list[FloatArray], reach: Reach
    ) -> list[FloatArray]:
        shape = (self.size, *moments[0].shape[1:])
        totals = [np.zeros(shape) for _ in orders]
        for knot, coefficients in self.pieces:
            last, gap = reach(knot)
            gap = gap.reshape(-1, *(1 for _ in shape[1:]))
            powers = _powers_at(gap, [moment[last] for moment in moments])
            for total, k in zip(totals, orders, strict=True):
                for c, power in zip(derivative_coefficients(coefficients, k), powers, strict=False):
                    if c != 0.0:
                        total[self.target_order] += c * power
        return totals

    def _add_bend(
        self,
        totals: list[FloatArray],
        orders: tuple[int, ...],
        v: FloatArray,
        moments: list[FloatArray],
        reach: Reach,
        knot: float,
        width: float,
    ) -> None:
        """Add the sums, or derivatives, of (threshold - source)^2 / (2 width) over the bend."""
        threshold = self.target + knot
        first, _ = reach(knot - width)
        last, gap = reach(knot)
        powers = self._stretches(width).powers(v, first, last, threshold)
        # where no row lies beyond the bend, the moments keep even the smallest sums exact
        alone = _powers_at(gap, [moment[last] for moment in moments])
        powers = [np.where(first == 0, a, b) for a, b in zip(alone, powers, strict=True)]
        for total, k in zip(totals, orders, strict=True):
            factor = (0.5, -1.0, 1.0)[k] / width
            total[self.target_order] += factor * powers[2 - k]

    def _stretches(self, width: float) -> _Stretches:
        if self._kept_stretches is None:
            self._kept_stretches = _Stretches(self.source, 2.0 * width)
        return self._kept_stretches

    def _reach(self, knot: float) -> tuple[NDArray[np.intp], FloatArray]:
        """For each sorted target, the last source it reaches (0: none) and the gap to it."""
        threshold = self.target + knot
        last = np.searchsorted(self.source, threshold, side=self.side)
        gap = threshold - self.source[np.maximum(last - 1, 0)]
        gap[last == 0] = 0.0
        return last, gap

    def _moments(self, v: FloatArray, highest: int) -> list[FloatArray]:
        """M_k about the j-th sorted source of the sources up to it; entry 0 is the empty sum."""
        moments = [_cumulate(v)]
        step = np.diff(self.source, prepend=self.source[:1]).reshape(-1, *(1 for _ in v.shape[1:]))
        if highest >= 1:
            moments.append(_cumulate(step * moments[0][:-1]))
        if highest >= 2:
            gained = step * (2.0 * moments[1][:-1] + step * moments[0][:-1])
            moments.append(_cumulate(gained))
        return moments


class _Stretches:
    """Sorted sources cut into stretches of the given length, each with its own origin.

    A window of half that length meets at most two stretches.
    """

    def __init__(self, source: FloatArray, length: float):
        number = np.floor((source - source[0]) / length)
        starts = np.flatnonzero(np.diff(number, prepend=-1.0))
        counts = np.diff(starts, append=len(source))
        self.origin = np.repeat(source[starts], counts)
        self.end = np.repeat(starts + counts, counts)
        self.offset = source - self.origin

    def powers(
        self, v: FloatArray, first: NDArray[np.intp], last: NDArray[np.intp], threshold: FloatArray
    ) -> list[FloatArray]:
        """Sums of v (threshold - source)^m, m = 0, 1, 2, over the sources from first to last."""
        sums = [np.concatenate([[0.0], np.cumsum(v * self.offset**m)]) for m in range(3)]
        cut = np.minimum(self.end[np.minimum(first, len(v) - 1)], last)
        totals = [np.zeros(len(threshold)) for _ in range(3)]
        for low, high in ((first, cut), (cut, last)):
            some = np.flatnonzero(low < high)
            low, high = low[some], high[some]
            s0, s1, s2 = (total[high] - total[low] for total in sums)
            t = threshold[some] - self.origin[low]
            for total, part in zip(
                totals, (s0, t * s0 - s1, t * (t * s0 - 2 * s1) + s2), strict=True
            ):
                total[some] += part
        return totals


def _cumulate(v: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, 2, ... rows."""
    sums = np.zeros((len(v) + 1, *v.shape[1:]))
    np.cumsum(v, axis=0, out=sums[1:])
    return sums


def _powers_at(gap: FloatArray, moments: list[FloatArray]) -> list[FloatArray]:
    """Sums of (gap + c - source)^m for m = 0, 1, 2, from the moments about c."""
    powers = [moments[0]]
    if len(moments) > 1:
        powers.append(gap * moments[0] + moments[1])
    if len(moments) > 2:
        powers.append(gap * (gap * moments[0] + 2.0 * moments[1]) + moments[2])
    return powers


class GradedSorted(GradedSum):
    """Piecewise polynomial losses by the tree over label levels, O(n log n) and exact."""

    @staticmethod
    def supports(loss: Loss) -> bool:
        return Sorted.supports(loss)

    @cached_property
    def tree(self) -> LabelTree:
        return label_tree(self.relation)

    @cached_property
    def _orders(self) -> AnyArray:
        """The places in order of score, within the groups and then within the halves of nodes."""
        from toprank.pair_sums.sorted_kernels import distribute, part_nodes, score_order

        nodes = self.tree.nodes
        orders = np.empty((len(nodes) + 1, len(self.x)), dtype=np.uint32)
        orders[0] = by_score = score_order(self.x)
        if self.relation.group_start[-1] > 0:  # several groups
            distribute(by_score, self.relation.group_start, orders[0])
        for depth, (low, middle, high) in enumerate(nodes):
            part_nodes(low, middle, high, orders[depth], orders[depth + 1])
        return orders[1:]

    def _sums(self, orders: tuple[int, ...], v: FloatArray, *, inward: bool) -> list[FloatArray]:
        v = np.ascontiguousarray(v)
        depths = list(zip(self._orders, self.tree.nodes, strict=True))
        polynomials = list(_polynomials(self.loss, orders))

        def part(first: int) -> FloatArray:
            totals = np.zeros((len(self.x), len(orders)))
            for near, beyond, knot, width in polynomials:
                where = (near, beyond, knot, self.loss.includes_knot, width, inward, totals)
                if first == 0:
                    self._add_blocks(v, where)
                self._add_nodes(v, depths[first::_PARTS], where)
            return totals

        total: FloatArray = sum(self.workers.map(part, range(_PARTS)), np.zeros(1))
        return list(total.T)

    def value_grad(self, v: FloatArray, u: FloatArray) -> tuple[float, FloatArray]:
        squares = _squares(self.loss)
        if squares is None or not np.all(np.isfinite(self.x)):
            return super().value_grad(v, u)
        at, (knot, factor) = self.relation, squares
        won, lost = np.zeros((2, len(self.x)))
        won[at.inner_places], lost[at.outer_places] = v, u
        depths = list(zip(self._orders, self.tree.nodes, strict=True))

        def part(first: int) -> tuple[float, FloatArray]:
            return self._squares_of(won, lost, knot, depths[first::_PARTS], blocks=first == 0)

        parts = self.workers.map(part, range(_PARTS))
        values, half_grads = zip(*parts, strict=True)
        grad = np.zeros(self.n_rows)
        grad[at.rows] = 2.0 * factor * sum(half_grads, np.zeros(1))
        return factor * sum(values), grad

    def _squares_of(
        self,
        won: FloatArray,
        lost: FloatArray,
        knot: float,
        depths: list[tuple[np.ndarray, tuple[IntArray, IntArray, IntArray]]],
        *,
        blocks: bool,
    ) -> tuple[float, FloatArray]:
        from toprank.pair_sums.sorted_kernels import block_squares, node_squares

        tree, half_grad, value = self.tree, np.zeros(len(self.x)), 0.0
        rows = (self.x, won, lost)
        if blocks:
            ends = (tree.block_start, tree.block_end, self.relation.level_end)
            value += block_squares(*rows, *ends, knot, half_grad)
        for order, (low, middle, high) in depths:
            value += node_squares(*rows, low, middle, high, order, knot, half_grad)
        return value, half_grad

    def _add_blocks(self, v: FloatArray, where: tuple[Any, ...]) -> None:
        from toprank.pair_sums.sorted_kernels import block_sums

        tree, at = self.tree, self.relation
        blocks = (tree.block_start, tree.block_end, at.level_start, at.level_end)
        block_sums(self.x, v, *blocks, *where)

    def _add_nodes(
        self,
        v: FloatArray,
        depths: list[tuple[IntArray, tuple[IntArray, IntArray, IntArray]]],
        where: tuple[Any, ...],
    ) -> None:
        from toprank.pair_sums.sorted_kernels import node_sums

        for order, (low, middle, high) in depths:
            node_sums(self.x, v, low, middle, high, order, *where)


def _polynomials(
    loss: Loss, orders: tuple[int, ...]
) -> Iterator[tuple[FloatArray, FloatArray, float, float]]:
    """Yield (near, beyond, knot, width): polynomials in the gap below knot up to a width from it.

    ``beyond`` are those in what the gap exceeds the width by. A bend and the piece that goes
    on where it ends are taken together, so that a pair at the border is in exactly one of them.
    """

    def terms(coefficients: tuple[float, ...]) -> FloatArray:
        rows = [derivative_coefficients(coefficients, k) for k in orders]
        return np.array([np.pad(row, (0, 3 - len(row))) for row in rows])

    pieces = dict(loss.pieces)
    if loss.bend is not None:
        knot, width = loss.bend
        after = pieces.pop(knot - width, (0.0,))
        yield terms((0.0, 0.0, 0.5 / width)), terms(after), knot, width
    for knot, coefficients in pieces.items():
        yield terms(coefficients), terms((0.0,)), knot, np.inf


def _squares(loss: Loss) -> tuple[float, float] | None:
    """Return (knot, factor) where the loss is factor (knot - r)_+^2; None where it is not."""
    if len(loss.pieces) != 1 or loss.bend is not None or loss.includes_knot:
        return None
    ((knot, coefficients),) = loss.pieces
    is_square = len(coefficients) == 3 and not any(coefficients[:2])
    return (knot, coefficients[2]) if is_square else None


class LabelTree:
    """The cuts of a graded relation's places; they depend on the labels alone.

    Attributes
    ----------
    nodes : (low, middle, high) of the nodes of each depth, the groups first
    block_start, block_end : short stretches of several levels, to be summed pair by pair
    """

    def __init__(self, relation: Graded):
        low, high = relation.group_cuts[:-1], relation.group_cuts[1:]
        self.nodes: list[tuple[IntArray, IntArray, IntArray]] = []
        blocks = []
        while len(low):
            several = relation.level_end[low] < high
            short = high - low <= LEAF
            blocks.append((low[several & short], high[several & short]))
            low, high = low[several & ~short], high[several & ~short]
            if len(low):
                middle = _nearest_cut(relation, low, high)
                self.nodes.append((low, middle, high))
                low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        self.block_start, self.block_end = map(np.concatenate, zip(*blocks, strict=True))


_TREES: WeakKeyDictionary[Graded, LabelTree] = WeakKeyDictionary()


def label_tree(relation: Graded) -> LabelTree:
    """The tree of a relation, made once: fits sum over the same relation again and again."""
    tree = _TREES.get(relation)
    if tree is None:
        tree = _TREES[relation] = LabelTree(relation)
    return tree


def _nearest_cut(relation: Graded, low: IntArray, high: IntArray) -> IntArray:
    """Where a new label begins, as near to the middle of low:high as possible."""
    half = (low + high) // 2
    before, after = relation.level_start[half], relation.level_end[half]
    use_before = (before > low) & ((after >= high) | (half - before <= after - half))
    return np.where(use_before, before, after)
