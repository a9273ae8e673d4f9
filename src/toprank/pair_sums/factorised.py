"""The exponential loss: e^-(a-b) is a product, so a double sum is two single sums.

DESIGN fact: (1/p) log R_{p,exp} = LSE(-f_pos) + (1/p) LSE(p f_neg). O(I + K).
"""

from __future__ import annotations

import numpy as np

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.pair_sums.base import PairSum


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
