"""Any loss, exactly, pair by pair, in blocks of bounded memory.

The way of summing for a user's own loss, about which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from toprank._numerics import FloatArray, log_of
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pair_sums.base import PairSum, RelatedSum
from toprank.pairs import Relation

#: Pairs held in memory at once (8 MB of margins).
PAIRS_PER_BLOCK = 1 << 20


class Blocked(PairSum):
    """Margins of a block of outer rows against all inner rows, one block after another."""

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        rows = max(1, PAIRS_PER_BLOCK // max(1, len(self.inner)))
        for start in range(0, len(self.outer), rows):
            part = slice(start, start + rows)
            yield part, self.inner[None, :] - self.outer[part, None]

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        sums = [np.zeros((len(self.outer), *v.shape[1:])) for _ in orders]
        for part, margins in self._blocks():
            for total, k in zip(sums, orders, strict=True):
                with np.errstate(over="ignore"):
                    total[part] = self.loss.derivative(k, margins) @ v
        return sums

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        sums = [np.zeros((len(self.inner), *u.shape[1:])) for _ in orders]
        for part, margins in self._blocks():
            for total, k in zip(sums, orders, strict=True):
                with np.errstate(over="ignore"):
                    total += self.loss.derivative(k, margins).T @ u[part]
        return sums

    #: Of many columns: a product of matrices.
    columns_to_outer, columns_to_inner = to_outer, to_inner

    def log_heights(self, weights: FloatArray) -> FloatArray:
        # from the loss's own logarithm, which lasts where the loss over- or underflows
        log_weights, log_heights = log_of(weights), np.empty(len(self.outer))
        for part, margins in self._blocks():
            log_heights[part] = logsumexp(log_weights + self.loss.log_value(margins), axis=1)
        return log_heights


class Listed(RelatedSum):
    """Pair by pair, in blocks of bounded memory: any loss, any relation, O(pairs)."""

    def __init__(
        self, loss: Loss, relation: Relation, scores: FloatArray, workers: Workers | None = None
    ):
        super().__init__(loss, relation, scores, workers)
        if loss.factorises:
            self.log_scale = self._largest_logs()

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
        for i, o, weight in self._weighted_blocks():
            target, source = (i, o) if inward else (o, i)
            for total, k in zip(sums, orders, strict=True):
                terms = v[source] * self._derivative(k, i, o)
                total += np.bincount(target, terms if weight is None else weight * terms, n_targets)
        return sums

    def _weighted_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, FloatArray | None]]:
        """The pairs block by block, each with its weight where pairs have weights."""
        done, weight = 0, self.relation.pair_weight
        for i, o in self.relation.blocks(PAIRS_PER_BLOCK):
            yield i, o, None if weight is None else weight[done : done + len(i)]
            done += len(i)
