"""What every way of summing over pairs offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.losses import Loss


class PairSum(ABC):
    """Sums over all pairs (inner, outer) of a loss or of one of its derivatives.

    Inner rows have oriented scores a, outer rows b, and the margin of a pair is r = a - b.
    With l0 = l, l1 = l', l2 = l'':

        to_outer(k, v)[o] = e^{-log_scale[o]} sum_i v[i] l_k(a[i] - b[o])
        to_inner(k, u)[i] = sum_o u[o] e^{-log_scale[o]} l_k(a[i] - b[o])

    ``log_scale`` (one number per outer row) keeps the sums inside the range of floating point
    where every pair of an outer row is far on the right side of the margin.
    """

    log_scale: FloatArray | float

    def __init__(self, loss: Loss, inner: FloatArray, outer: FloatArray):
        self.loss = loss
        self.inner = inner
        self.outer = outer
        self.log_scale = 0.0

    @staticmethod
    @abstractmethod
    def supports(loss: Loss) -> bool:
        """Whether this way of summing is exact (to rounding) for the loss."""

    @abstractmethod
    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        """Sum over the inner rows, for each order of derivative asked for."""

    @abstractmethod
    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        """Sum over the outer rows, for each order of derivative asked for."""

    def log_heights(self, weights: FloatArray) -> FloatArray:
        """Return log S[o], S[o] = sum_i weights[i] l(a[i] - b[o]); minus infinity where S = 0."""
        (scaled,) = self.to_outer((0,), weights)
        # cancellation in signed node sums can leave a zero height at -1e-17
        return log_of(np.maximum(scaled, 0.0)) + self.log_scale
