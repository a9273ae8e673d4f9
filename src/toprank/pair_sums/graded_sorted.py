"""Piecewise polynomial losses over graded pairs in O(n log n), by a tree over the label levels.

The rows of a group are cut in two at a label near the middle, each half again, and so on. Every
pair of different labels lies between the halves of exactly one node, where it belongs to a problem
of two classes. The scores are sorted once and parted on the way down, and one pass over both halves
gives the sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.losses.margin import derivative_coefficients
from toprank.pair_sums.graded import GradedSum
from toprank.pair_sums.sorted import Sorted
from toprank.pairs import Graded, IntArray

#: Parts that the depths of the tree are dealt to, for threads: fixed, so that sums are too.
_PARTS = 4
#: Places up to which a stretch of several levels is summed pair by pair.
LEAF = 32


class GradedSorted(GradedSum):
    """Piecewise polynomial losses by the tree over label levels, O(n log n) and exact."""

    @staticmethod
    def supports(loss: Loss) -> bool:
        return Sorted.supports(loss)

    @cached_property
    def tree(self) -> LabelTree:
        return label_tree(self.relation)

    @cached_property
    def _orders(self) -> Any:
        """The places in order of score, within the groups and then within the halves of nodes."""
        from toprank.pair_sums.graded_kernels import distribute, part_nodes
        from toprank.pair_sums.score_order import score_order

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
        self, won: FloatArray, lost: FloatArray, knot: float, depths: list[Any], *, blocks: bool
    ) -> tuple[float, FloatArray]:
        from toprank.pair_sums.graded_squares import block_squares, node_squares

        tree, half_grad, value = self.tree, np.zeros(len(self.x)), 0.0
        rows = (self.x, won, lost)
        if blocks:
            ends = (tree.block_start, tree.block_end, self.relation.level_end)
            value += block_squares(*rows, *ends, knot, half_grad)
        for order, (low, middle, high) in depths:
            value += node_squares(*rows, low, middle, high, order, knot, half_grad)
        return value, half_grad

    def _add_blocks(self, v: FloatArray, where: tuple[Any, ...]) -> None:
        from toprank.pair_sums.graded_kernels import block_sums

        tree, at = self.tree, self.relation
        blocks = (tree.block_start, tree.block_end, at.level_start, at.level_end)
        block_sums(self.x, v, *blocks, *where)

    def _add_nodes(self, v: FloatArray, depths: list[Any], where: tuple[Any, ...]) -> None:
        from toprank.pair_sums.graded_kernels import node_sums

        for order, (low, middle, high) in depths:
            node_sums(self.x, v, low, middle, high, order, *where)


def _polynomials(loss: Loss, orders: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
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
