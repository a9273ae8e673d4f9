"""Pairwise margin losses l(r), r = f(positive) - f(negative).

Conventions at the edges, stated once: a tie (r = 0) is an error for the 0-1 loss (the paper's
``<=``), and at the kink r = 1 the hinge has slope 0 (the right-hand one). Every loss except
the 0-1 loss is convex, non-negative and non-increasing.

How a loss is summed over pairs is decided by what it declares: ``factorises`` (e^-(a-b) is a
product), ``pieces`` (a polynomial in 1 - r left of each knot, summed by sorting),
``logistic_tails`` (smooth, linear on the left and e^-r on the right, summed by interpolation).
A loss that declares none of these is summed block by block, pair by pair.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit

from toprank._numerics import FloatArray, floats, log_of

#: (knot, coefficients): the loss gains ``sum_m coefficients[m] * (knot - r)**m`` where r < knot.
#: A loss with ``bend = (knot, width)`` also gains ``(knot - r)**2 / (2 * width)``, but only where
#: ``knot - width <= r < knot``: two parabolas without an end would cancel far to the left.
Piece = tuple[float, tuple[float, ...]]


class Loss:
    """A pairwise margin loss: value, slope and (when smooth) curvature of l(r).

    Subclass it, or use :func:`toprank.losses.from_callable`, to bring your own.
    """

    name: ClassVar[str] = "custom"
    smooth: bool = True
    trainable: bool = True
    factorises: bool = False
    logistic_tails: bool = False
    pieces: tuple[Piece, ...] = ()
    bend: tuple[float, float] | None = None
    includes_knot: bool = False

    @property
    def has_curvature(self) -> bool:
        """Whether ``curvature`` is available, which Newton's method needs."""
        return type(self).curvature is not Loss.curvature

    def value(self, r: FloatArray) -> FloatArray:
        """Return l(r)."""
        raise TypeError(f"{type(self).__name__} must define value(r)")

    def slope(self, r: FloatArray) -> FloatArray:
        """Return dl/dr."""
        raise TypeError(f"{type(self).__name__} must define slope(r)")

    def curvature(self, r: FloatArray) -> FloatArray:
        """Return d2l/dr2."""
        raise TypeError(f"{type(self).__name__} has no curvature; use solver='lbfgs'")

    def log_value(self, r: FloatArray) -> FloatArray:
        """Return log l(r); override it where l(r) underflows."""
        return log_of(floats(self.value(r)))

    def derivative(self, order: int, r: FloatArray) -> FloatArray:
        """Return the derivative of the given order: 0 the loss, 1 its slope, 2 its curvature."""
        return (self.value, self.slope, self.curvature)[order](r)

    def smoothed(self, width: float) -> Loss:
        """Return a smooth loss that lies below this one by at most ``width / 2``."""
        if self.smooth:
            return self
        raise TypeError(f"{type(self).__name__} is not smooth and offers no smooth version")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Exponential(Loss):
    """l(r) = e^-r, the loss of RankBoost and of the P-Norm Push (Rudin 2009, Section 5)."""

    name = "exponential"
    factorises = True

    def value(self, r: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(-r)

    def slope(self, r: FloatArray) -> FloatArray:
        return -self.value(r)

    def curvature(self, r: FloatArray) -> FloatArray:
        return self.value(r)

    def log_value(self, r: FloatArray) -> FloatArray:
        return -r


class Logistic(Loss):
    """l(r) = log(1 + e^-r); divide by log 2 for an upper bound of the 0-1 loss."""

    name = "logistic"
    logistic_tails = True

    def value(self, r: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -r)

    def slope(self, r: FloatArray) -> FloatArray:
        return -expit(-r)

    def curvature(self, r: FloatArray) -> FloatArray:
        return expit(r) * expit(-r)

    def log_value(self, r: FloatArray) -> FloatArray:
        # log1p(e^-r) equals e^-r to the last bit beyond r = 38, and underflows beyond 745
        return np.where(r > 38.0, -r, log_of(np.logaddexp(0.0, -np.minimum(r, 38.0))))


class _Piecewise(Loss):
    """A loss given by ``pieces``: polynomials in (knot - r) that set in left of their knots."""

    def derivative(self, order: int, r: FloatArray) -> FloatArray:
        total = np.zeros_like(floats(r))
        for knot, coefficients in self.pieces:
            gap = knot - r
            active = gap >= 0.0 if self.includes_knot else gap > 0.0
            total += np.where(active, _polynomial(coefficients, order, gap), 0.0)
        return total

    def value(self, r: FloatArray) -> FloatArray:
        return self.derivative(0, r)

    def slope(self, r: FloatArray) -> FloatArray:
        return self.derivative(1, r)

    def curvature(self, r: FloatArray) -> FloatArray:
        return self.derivative(2, r)


def _polynomial(coefficients: tuple[float, ...], order: int, gap: FloatArray) -> FloatArray:
    """Derivative in r of sum_m c_m (knot - r)^m, at gap = knot - r."""
    total = np.zeros_like(gap)
    for c in derivative_coefficients(coefficients, order)[::-1]:
        total = total * gap + c
    return total


def derivative_coefficients(coefficients: tuple[float, ...], order: int) -> FloatArray:
    """Coefficients, in powers of the gap, of the derivative in r of a piece."""
    c = np.asarray(coefficients, dtype=np.float64)
    for _ in range(order):
        c = -c[1:] * np.arange(1, len(c)) if len(c) > 1 else np.zeros(1)
    return c


class Hinge(_Piecewise):
    """l(r) = (1 - r)+; not smooth, so it is fitted through narrowing smooth versions."""

    name = "hinge"
    smooth = False
    pieces = ((1.0, (0.0, 1.0)),)

    def smoothed(self, width: float) -> Loss:
        return SmoothedHinge(width)


class SquaredHinge(_Piecewise):
    """l(r) = (1 - r)+^2; with the max price this is TopPush."""

    name = "squared_hinge"
    pieces = ((1.0, (0.0, 0.0, 1.0)),)


class SmoothedHinge(_Piecewise):
    """The hinge with a parabola of the given width at its kink.

    0 for r >= 1, (1-r)^2 / (2 width) down to r = 1 - width, then 1 - r - width/2. It lies
    below the hinge by at most width/2.
    """

    name = "smoothed_hinge"

    def __init__(self, width: float = 0.1):
        self.width = width
        self.bend = (1.0, width)
        self.pieces = ((1.0 - width, (0.5 * width, 1.0)),)

    def derivative(self, order: int, r: FloatArray) -> FloatArray:
        gap = 1.0 - floats(r)
        bent = np.clip(gap, 0.0, self.width)
        if order == 0:
            return bent * bent / (2.0 * self.width) + np.maximum(gap - self.width, 0.0)
        if order == 1:
            return -bent / self.width
        return np.where((gap > 0.0) & (gap <= self.width), 1.0 / self.width, 0.0)

    def __repr__(self) -> str:
        return f"SmoothedHinge(width={self.width!r})"


class ZeroOne(_Piecewise):
    """l(r) = 1 if r <= 0 else 0: for evaluation only; its sums are the paper's heights."""

    name = "zero_one"
    smooth = False
    trainable = False
    includes_knot = True
    pieces = ((0.0, (1.0,)),)
