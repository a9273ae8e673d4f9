"""The exponential loss: e^-(a-b) is a product, so a double sum is two single sums.

DESIGN fact: (1/p) log R_{p,exp} = LSE(-f_pos) + (1/p) LSE(p f_neg). O(I + K). Over graded pairs it
is one running sum in order of label, O(n).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pair_sums.base import GradedSum, PairSum
from toprank.pairs import Graded


class Factorised(PairSum):
    """e^{-a} summed once, shifted by the smallest a; the outer rows only differ in scale."""

    def __init__(self, loss: Loss, inner: FloatArray, outer: FloatArray):
        super().__init__(loss, inner, outer)
        lowest = float(np.min(inner, initial=np.inf))
        self._decay = np.exp(lowest - inner)
        self.log_scale = outer - lowest

    @staticmethod
    def supports(loss: Loss) -> bool:
        return loss.factorises

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        total = float(self._decay @ v)
        return [np.full(len(self.outer), -total if k == 1 else total) for k in orders]

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        total = float(np.sum(u))
        return [(-total if k == 1 else total) * self._decay for k in orders]


class GradedFactorised(GradedSum):
    """e^{-a} summed along the labels.

    The sums over the winners of a row are relative to the lowest of them, which can only fall
    as the label does: no term is ever larger than its weight.
    """

    def __init__(
        self, loss: Loss, relation: Graded, scores: FloatArray, workers: Workers | None = None
    ):
        super().__init__(loss, relation, scores, workers)
        self.log_scale = (self.x - self._lowest)[relation.outer_places]

    @staticmethod
    def supports(loss: Loss) -> bool:
        return Factorised.supports(loss)

    @cached_property
    def _lowest(self) -> FloatArray:
        from toprank.pair_sums.graded_kernels import lowest_winner

        at, lowest = self.relation, np.empty(len(self.x))
        lowest_winner(self.x, at.level_end, at.group_end, lowest)
        return lowest

    def _sums(self, orders: tuple[int, ...], v: FloatArray, *, inward: bool) -> list[FloatArray]:
        from toprank.pair_sums.graded_kernels import decays_to_inner, decays_to_outer

        at, total = self.relation, np.zeros(len(self.x))
        if inward:
            decays_to_inner(self.x, self._lowest, v, at.level_start, at.group_start, total)
        else:
            decays_to_outer(self.x, self._lowest, v, at.level_end, at.group_end, total)
        return [-total if k == 1 else total for k in orders]
