"""Sums over the pairs of a relation: graded labels, groups, or a list of crucial pairs.

The same two questions as for two classes, to_outer and to_inner, with the sums restricted to the
pairs of the relation. :func:`related_sum` picks the fastest way that is exact for the loss.
"""

from __future__ import annotations

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pair_sums.base import PairSum
from toprank.pair_sums.blocked import PAIRS_PER_BLOCK
from toprank.pairs import Relation


class RelatedSum(PairSum):
    """A way of summing over the pairs of a relation, at the oriented scores of all rows."""

    relation: Relation
    n_rows: int

    def __init__(
        self, loss: Loss, relation: Relation, scores: FloatArray, workers: Workers | None = None
    ):
        super().__init__(loss, scores[relation.inner], scores[relation.outer])
        self.relation, self.n_rows = relation, len(scores)

    @staticmethod
    def accepts(relation: Relation) -> bool:
        """Whether this way can follow the relation at all."""
        return True

    def value_grad(self, v: FloatArray, u: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of v u l(r) over the pairs, and its gradient in the scores of all rows.

        For losses without a ``log_scale``.
        """
        height, tilt = self.to_outer((0, 1), v)
        (pull,) = self.to_inner((1,), u)
        grad = np.zeros(self.n_rows)
        grad[self.relation.inner] += v * pull
        grad[self.relation.outer] -= u * tilt
        return float(u @ height), grad


class Listed(RelatedSum):
    """Pair by pair, in blocks of bounded memory: any loss, any relation, O(pairs)."""

    def __init__(
        self, loss: Loss, relation: Relation, scores: FloatArray, workers: Workers | None = None
    ):
        super().__init__(loss, relation, scores, workers)
        if loss.factorises:
            self.log_scale = self._largest_logs()

    @staticmethod
    def supports(loss: Loss) -> bool:
        return True

    def _largest_logs(self) -> FloatArray:
        """The largest -r of each outer row: relative to it e^-r neither over- nor underflows."""
        largest = np.full(len(self.outer), -np.inf)
        for i, o in self.relation.blocks(PAIRS_PER_BLOCK):
            np.maximum.at(largest, o, self.outer[o] - self.inner[i])
        return largest

    def _derivative(self, order: int, i: np.ndarray, o: np.ndarray) -> FloatArray:
        margin = self.inner[i] - self.outer[o]
        with np.errstate(over="ignore"):
            if isinstance(self.log_scale, np.ndarray):
                margin += self.log_scale[o]
            return self.loss.derivative(order, margin)

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        return self._sums(orders, v, len(self.outer), inward=False)

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        return self._sums(orders, u, len(self.inner), inward=True)

    def _sums(
        self, orders: tuple[int, ...], v: FloatArray, n_targets: int, *, inward: bool
    ) -> list[FloatArray]:
        sums = [np.zeros(n_targets) for _ in orders]
        for i, o in self.relation.blocks(PAIRS_PER_BLOCK):
            target, source = (i, o) if inward else (o, i)
            for total, k in zip(sums, orders, strict=True):
                total += np.bincount(target, v[source] * self._derivative(k, i, o), n_targets)
        return sums
