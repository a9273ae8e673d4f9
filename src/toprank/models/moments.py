"""Means and variances of columns that are the same to the last bit however the rows are cut.

Floating-point sums depend on the order of their terms. Here every term is an integer multiple of a
power of two, and those integers are added: nothing is rounded before the end, so that partial sums
of blocks merge, in any order, to the sums of the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from toprank._numerics import FloatArray

#: A sum is held as an integer number of 2**-_SHIFT: the smallest float there is, with 53 bits more.
_SHIFT = 1126
#: Terms that float64 adds up without rounding, where each is an integer below 2**27.
_AT_ONCE = 1 << 25
#: Splits a float into two halves of 26 bits (Dekker 1971).
_SPLIT = 134217729.0


def exact_sum(terms: FloatArray) -> int:
    """Return the sum of finite numbers, as an integer number of 2**-1126.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.moments import as_float, exact_sum
    >>> as_float(exact_sum(np.array([1e100, 1.0, -1e100])))
    1.0
    """
    total = 0
    for first in range(0, len(terms), _AT_ONCE):
        parts, powers = np.frexp(terms[first : first + _AT_ONCE])
        whole = (parts * 2.0**53).astype(np.int64)
        lowest = int(np.min(powers))
        powers = powers - lowest
        high = np.bincount(powers, weights=whole >> 26)
        low = np.bincount(powers, weights=whole & ((1 << 26) - 1))
        shift = lowest - 53 + _SHIFT
        for place in np.flatnonzero((high != 0) | (low != 0)).tolist():
            term = (int(high[place]) << 26) + int(low[place])
            total += term << (shift + place)
    return total


def as_float(total: int) -> float:
    """Return an exact sum, rounded once."""
    return float(Fraction(total, 1 << _SHIFT))


def _product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The product of two numbers, and what rounding takes from it (Dekker's)."""
    product = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


@dataclass(frozen=True)
class Moments:
    """Weight, sum and sum of squares of the numbers of a column that are there.

    Attributes
    ----------
    rows, missing : int
    weight, total, squares : int
        Exact sums over the numbers that are there, as `exact_sum` has them.
    low, high : float
        The least and the largest number; infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.moments import Moments
    >>> both = Moments.of(np.array([1.0, np.nan])).merge(Moments.of(np.array([4.0])))
    >>> both.mean, both.variance, both.missing
    (2.5, 2.25, 1)
    """

    rows: int = 0
    missing: int = 0
    weight: int = 0
    total: int = 0
    squares: int = 0
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, numbers: FloatArray, weight: FloatArray | None = None) -> Moments:
        """Add up the numbers of a column; NaN where one is missing."""
        there = ~np.isnan(numbers)
        x = numbers[there]
        if not len(x):
            return cls(len(numbers), len(numbers))
        w = None if weight is None else weight[there]
        terms, rest = (x, None) if w is None else _product(w, x)
        square, lost = _product(terms, x)
        total = exact_sum(terms)
        squares = exact_sum(square) + exact_sum(lost)
        if rest is not None:
            total += exact_sum(rest)
            squares += exact_sum(rest * x)
        mass = len(x) << _SHIFT if w is None else exact_sum(w)
        ends = float(np.min(x)), float(np.max(x))
        return cls(len(numbers), len(numbers) - len(x), mass, total, squares, *ends)

    def merge(self, other: Moments) -> Moments:
        """Add the numbers of other rows."""
        return Moments(
            self.rows + other.rows,
            self.missing + other.missing,
            self.weight + other.weight,
            self.total + other.total,
            self.squares + other.squares,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def mean(self) -> float:
        """The mean, rounded once; NaN where nothing is there."""
        return float(Fraction(self.total, self.weight)) if self.weight else np.nan

    @property
    def variance(self) -> float:
        """The mean square deviation, never below zero; NaN where nothing is there."""
        if not self.weight:
            return np.nan
        mean = Fraction(self.total, self.weight)
        return max(0.0, float(Fraction(self.squares, self.weight) - mean * mean))
