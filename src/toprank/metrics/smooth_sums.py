"""Sums of a smooth function over many points that lie close together.

Where a polynomial of degree six has the function's values between the extremes of the points, to
rounding, its sum over them comes from the sums of their powers. These take a few products, where an
exponential or a logarithm of each point takes ten times as long, and serve every function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from toprank._numerics import FloatArray

SmoothFunction = Callable[[FloatArray], FloatArray]

#: Fewer points are summed one by one.
FEW = 1 << 10
_DEGREE = 6
#: Numbers between these have sixth powers that are floats.
_SIXTH_POWERS = 1e-40, 1e40
#: Points where the function is evaluated, between -1 and 1.
_NODES = chebyshev.chebpts1(_DEGREE + 1)
#: From values there to Chebyshev's coefficients, and from these to the coefficients of the powers.
_TO_WAVES = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))
_TO_POWERS = np.zeros((_DEGREE + 1, _DEGREE + 1))
for _k, _wave in enumerate(np.eye(_DEGREE + 1)):
    _TO_POWERS[: _k + 1, _k] = chebyshev.cheb2poly(_wave[: _k + 1])
#: The share of the first coefficient that the last two must be below. Those of an exponential, a
#: reciprocal or a logarithm go on to fall by their ratio, so that what is left out is rounding.
_LAST_TWO = np.array([1e-10, 2e-14])


@dataclass(frozen=True)
class PowerSums:
    """What the sum of any smooth function over some points needs.

    Attributes
    ----------
    centre, reach : float
        The middle of the extremes, and their distance from it.
    sums : ndarray
        The sums of x^0, ..., x^6 over the points, for x = point - centre.
    """

    centre: float
    reach: float
    sums: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> PowerSums:
        """Sum the powers of points that ascend or descend."""
        centre, reach = _span_of(points)
        x = points - centre
        square = x * x
        cube = square * x
        low = (len(x), np.sum(x), np.sum(square), np.sum(cube))
        high = (np.dot(square, square), np.dot(square, cube), np.dot(cube, cube))
        return cls(centre, reach, np.array([*low, *high]))

    def sum_of(self, function: SmoothFunction) -> float | None:
        """Sum a function over the points; None where a polynomial would not have its values."""
        powers = _polynomial(function, self.centre, self.reach)
        return None if powers is None else self._sum_of_powers(powers)

    def _sum_of_powers(self, powers: FloatArray) -> float:
        if self.reach == 0:
            return float(self.sums[0] * powers[0])
        return float(np.dot(powers, self.sums / self.reach ** np.arange(_DEGREE + 1)))


def smooth_sum(function: SmoothFunction, points: FloatArray) -> float:
    """Sum a function over points that ascend or descend."""
    if len(points) >= FEW:
        powers = _polynomial(function, *_span_of(points))
        if powers is not None:
            return PowerSums.of(points)._sum_of_powers(powers)
    return float(np.sum(function(points)))


def _span_of(points: FloatArray) -> tuple[float, float]:
    """The middle of the first and the last point, and their distance from it."""
    first, last = float(points[0]) / 2, float(points[-1]) / 2
    return first + last, abs(last - first)


def _polynomial(function: SmoothFunction, centre: float, reach: float) -> FloatArray | None:
    """The coefficients of powers of (x - centre) / reach, if they give the function's values."""
    if reach > 0 and not _SIXTH_POWERS[0] < reach < _SIXTH_POWERS[1]:
        return None
    waves = _TO_WAVES @ function(centre + reach * _NODES)
    if not np.all(np.abs(waves[-2:]) < _LAST_TWO * abs(waves[0])):
        return None
    return _TO_POWERS @ waves
