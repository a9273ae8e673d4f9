"""Laws of the error of a label: symmetric, with a density that falls on both sides.

Clémençon, Lugosi & Vayatis (2006), Remark 5: these are the errors under which the best ranking is
still by the regression function. Each says how likely the difference of two errors is to exceed x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from toprank._numerics import FloatArray


@dataclass(frozen=True)
class ErrorLaw:
    """A law of e.

    Attributes
    ----------
    draw : callable (generator, n) -> array
        Draws of e.
    exceeds : callable (x, a, b) -> array
        P(a e - b e' > x) for x >= 0 and scales a, b, not both zero.
    """

    draw: Callable[[np.random.Generator, int], FloatArray]
    exceeds: Callable[[FloatArray, FloatArray, FloatArray], FloatArray | float]

    def chance(self, x: FloatArray, a: FloatArray | float, b: FloatArray | float) -> FloatArray:
        """P(a e - b e' > x) for x >= 0; without any error it is one half at 0 and else zero."""
        a, b = np.broadcast_arrays(a, b)
        noisy = (a > 0) | (b > 0)
        sure = np.where(x > 0, 0.0, 0.5)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            spread = self.exceeds(x, np.where(noisy, a, 1.0), np.where(noisy, b, 1.0))
        return np.where(noisy, spread, sure)


def _normal_exceeds(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray | float:
    return ndtr(-x / np.sqrt(a * a + b * b))


def _cauchy_exceeds(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray | float:
    return np.arctan2(a + b, x) / np.pi


def _laplace_exceeds(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Of two Laplace errors: of standard deviations a and b, so of scales a/sqrt(2), b/sqrt(2)."""
    high, low = np.maximum(a, b) / np.sqrt(2.0), np.minimum(a, b) / np.sqrt(2.0)
    alike = high - low < 1e-4 * high  # the general formula loses its digits there
    middle = 0.5 * (high + low)
    equal = 0.5 * np.exp(-x / middle) * (1.0 + 0.5 * x / middle)
    lower = np.where(low > 0, low, 1.0)
    tail = np.where(low > 0, lower**2 * np.exp(-x / lower), 0.0)
    apart = np.where(alike, 1.0, 2.0 * (high**2 - low**2))
    return np.where(alike, equal, (high**2 * np.exp(-x / high) - tail) / apart)


#: The laws by their names.
ERROR_LAWS: dict[str, ErrorLaw] = {
    "normal": ErrorLaw(lambda rng, n: rng.standard_normal(n), _normal_exceeds),
    "laplace": ErrorLaw(lambda rng, n: rng.laplace(scale=np.sqrt(0.5), size=n), _laplace_exceeds),
    "cauchy": ErrorLaw(lambda rng, n: rng.standard_cauchy(n), _cauchy_exceeds),
}
