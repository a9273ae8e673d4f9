"""Sums of a smooth function over many points that lie close together.

Where a polynomial of degree six has the function's values between the extremes of the points, to
rounding, its sum over them comes from the sums of their powers. These take a few products, where an
exponential or a logarithm of each point takes ten times as long, and serve every function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from toprank._numerics import FloatArray

SmoothFunction = Callable[[FloatArray], FloatArray]

#: Fewer points are summed one by one.
FEW = 1 << 10
_DEGREE = 6
#: Numbers between these have sixth powers that are floats.
_SIXTH_POWERS = 1e-40, 1e40
#: What stands for a set of points that is left out.
_NONE = [np.nan] * (_DEGREE + 3)
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
    """What the sums of any smooth function over sets of points need.

    Attributes
    ----------
    centre, reach : ndarray of shape (m,)
        The middle of each set's extremes, and their distance from it; NaN of sets left out.
    sums : ndarray of shape (m, 7)
        The sums of x^0, ..., x^6 over the points, for x = point - centre.
    """

    centre: FloatArray
    reach: FloatArray
    sums: FloatArray

    @classmethod
    def of(cls, sets: Iterable[FloatArray | None]) -> PowerSums:
        """Sum the powers of sets of points that ascend or descend; None leaves one out."""
        lines = [_NONE if points is None else _powers_of(points) for points in sets]
        table = np.array(lines).reshape(-1, _DEGREE + 3)
        return cls(table[:, 0], table[:, 1], table[:, 2:])

    @cached_property
    def known(self) -> bool:
        """Whether any set was summed."""
        return bool(np.isfinite(self.centre).any())

    def sum_of(self, function: SmoothFunction) -> FloatArray:
        """Sum a function over each set; NaN where a polynomial would not have its values."""
        totals = np.full(len(self.centre), np.nan)
        alone = self.reach == 0
        fit = (self.reach > _SIXTH_POWERS[0]) & (self.reach < _SIXTH_POWERS[1])
        served = np.flatnonzero(alone | fit)
        centre, reach, sums = self.centre[served], self.reach[served], self.sums[served]
        waves = function(centre[:, None] + reach[:, None] * _NODES) @ _TO_WAVES.T
        good = np.all(np.abs(waves[:, -2:]) < _LAST_TWO * np.abs(waves[:, :1]), axis=1)
        powers = waves @ _TO_POWERS.T
        units = np.where(reach > 0, reach, 1.0)[:, None] ** np.arange(_DEGREE + 1)
        totals[served] = np.where(good, np.sum(powers * (sums / units), axis=1), np.nan)
        return totals


def _powers_of(points: FloatArray) -> list[float]:
    """Centre, reach and sums of powers of one set."""
    first, last = float(points[0]) / 2, float(points[-1]) / 2
    centre = first + last
    x = points - centre
    square = x * x
    cube = square * x
    low = [float(len(x)), float(np.sum(x)), float(np.dot(x, x)), float(np.dot(x, square))]
    high = [float(np.dot(square, square)), float(np.dot(square, cube)), float(np.dot(cube, cube))]
    return [centre, abs(last - first), *low, *high]
