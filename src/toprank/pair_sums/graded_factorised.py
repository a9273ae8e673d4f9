"""The exponential loss over graded pairs: one running sum in order of label, O(n)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pair_sums.factorised import Factorised
from toprank.pair_sums.graded import GradedSum
from toprank.pairs import Graded


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
