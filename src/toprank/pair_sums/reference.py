"""The double loop: slow, obvious, and the oracle of every other way of summing."""

from __future__ import annotations

import numpy as np

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.pair_sums.base import PairSum


class Reference(PairSum):
    """One outer row at a time, each against every inner row."""

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        return [
            np.array([np.sum(v * self.loss.derivative(k, self.inner - b)) for b in self.outer])
            for k in orders
        ]

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        return [
            np.array([np.sum(u * self.loss.derivative(k, a - self.outer)) for a in self.inner])
            for k in orders
        ]

    def log_heights(self, weights: FloatArray) -> FloatArray:
        log_weights = log_of(weights)
        return np.array(
            [log_sum_exp(log_weights + self.loss.log_value(self.inner - b)) for b in self.outer]
        )
