"""Means and variances of columns that are the same to the last bit however the rows are cut.

Floating-point sums depend on the order of their terms. Here every term is an integer multiple of a
power of two, and those integers are added: nothing is rounded before the end, so that partial sums
of blocks merge, in any order, to the sums of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import add

import numpy as np

from toprank._numerics import FloatArray

#: A sum is held as an integer number of 2**-_SHIFT: the smallest float there is, with 53 bits more.
_SHIFT = 1126
#: Terms that float64 adds up without rounding, where each is an integer below 2**27.
_AT_ONCE = 1 << 25
#: Splits a float into two halves of 26 bits (Dekker 1971).
_SPLIT = 134217729.0
#: Numbers of several columns that are added up together, so few that they stay in a cache.
_TOGETHER = 1 << 16
#: Rounds of leading bits: numbers of very different sizes, of which something is left, take many.
_ROUNDS = 6
#: From so many rows on gaps of a column cost more as zeros than it does to leave them out.
_LONG = 1 << 12
#: The largest exponent of a float.
_LARGEST_POWER = 1023


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


def exact_sums(terms: FloatArray) -> list[int]:
    """Return `exact_sum` of each line of a matrix.

    A round takes the leading bits of every number of a line: multiples of one power of two that
    are so few bits long that float64 adds them up without rounding. What is left of the numbers
    goes to the next round (Rump, Ogita and Oishi 2008, algorithm 3.2), and after a few
    rounds to `exact_sum`.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.moments import as_float, exact_sums
    >>> [as_float(total) for total in exact_sums(np.array([[1e100, 1.0, -1e100], [0.5, 0.25, 0]]))]
    [1.0, 0.75]
    """
    room = (terms.shape[1] + 1).bit_length()  # 2**room is at least two more than the numbers
    totals = [0] * len(terms)
    places, left = np.arange(len(terms)), terms
    for _ in range(_ROUNDS):
        largest = np.max(np.abs(left), axis=1, initial=0.0)
        power = np.frexp(largest)[1] + room
        beyond = ~np.isfinite(largest) | (power > _LARGEST_POWER)
        for line in np.flatnonzero(beyond).tolist():
            totals[places[line]] += exact_sum(left[line])
        goes_on = (largest > 0) & ~beyond
        if not np.any(goes_on):
            return totals
        if not np.all(goes_on):
            places, left, power = places[goes_on], left[goes_on], power[goes_on]
        above = np.ldexp(1.0, power)[:, None]
        leading = left + above
        leading -= above
        left = left - leading
        for place, part in zip(places.tolist(), np.sum(leading, axis=1).tolist(), strict=True):
            whole, unit = part.as_integer_ratio()  # the unit is a power of two
            totals[place] += whole << (_SHIFT + 1 - unit.bit_length())
    for place, rest in zip(places.tolist(), left, strict=True):
        totals[place] += exact_sum(rest)
    return totals


def as_float(total: int) -> float:
    """Return an exact sum, rounded once."""
    return total / (1 << _SHIFT)


def _product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The product of two numbers, and what rounding takes from it (Dekker's)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = (a_high, a_low) if b is a else _halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    high = _SPLIT * a
    high -= high - a
    return high, a - high


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
        found = cls._of_few(numbers, weight)
        return cls._of_lines(numbers[None], weight)[0] if found is None else found

    @classmethod
    def of_columns(
        cls, columns: Iterable[tuple[str, FloatArray]], weight: FloatArray | None = None
    ) -> dict[str, Moments]:
        """Add up the numbers of each of some columns, which come with their names."""
        found: dict[str, Moments] = {}
        held: dict[str, FloatArray] = {}
        for name, numbers in columns:
            few = cls._of_few(numbers, weight)
            found[name] = cls() if few is None else few  # names stay in the order given
            if few is None:
                held[name] = numbers
            if len(held) * len(numbers) >= _TOGETHER:
                found |= cls._of_held(held, weight)
                held = {}
        return found | cls._of_held(held, weight)

    @classmethod
    def _of_held(cls, held: dict[str, FloatArray], weight: FloatArray | None) -> dict[str, Moments]:
        if not held:
            return {}
        return dict(zip(held, cls._of_lines(np.array([*held.values()]), weight), strict=True))

    @classmethod
    def _of_few(cls, numbers: FloatArray, weight: FloatArray | None) -> Moments | None:
        """Add up a long column without its gaps, where these are at least half of it."""
        if len(numbers) < _LONG or np.count_nonzero(there := ~np.isnan(numbers)) > len(there) / 2:
            return None
        own = None if weight is None else weight[there]
        found = cls._of_lines(numbers[None, there], own)[0]
        return replace(found, rows=len(numbers), missing=len(numbers) - found.rows)

    @classmethod
    def _of_lines(cls, lines: FloatArray, weight: FloatArray | None) -> list[Moments]:
        """Add up the numbers of each line of a matrix."""
        gaps = np.isnan(lines)
        n, missing = lines.shape[1], np.count_nonzero(gaps, axis=1)
        low = np.min(lines, axis=1, initial=np.inf, where=~gaps)
        high = np.max(lines, axis=1, initial=-np.inf, where=~gaps)
        x = np.where(gaps, 0.0, lines)
        if weight is None:
            masses = [(n - gone) << _SHIFT for gone in missing.tolist()]
            terms, rest = x, None
        else:
            masses = exact_sums(np.where(gaps, 0.0, weight))
            terms, rest = _product(weight, x)
        square, lost = _product(terms, x)
        totals, squares = exact_sums(terms), map(add, exact_sums(square), exact_sums(lost))
        if rest is not None:
            totals = [*map(add, totals, exact_sums(rest))]
            squares = map(add, squares, exact_sums(rest * x))
        of_lines = missing.tolist(), masses, totals, squares, low.tolist(), high.tolist()
        return [cls(n, *of_line) for of_line in zip(*of_lines, strict=True)]

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
        return self.total / self.weight if self.weight else np.nan

    @property
    def variance(self) -> float:
        """The mean square deviation, never below zero; NaN where nothing is there."""
        if not self.weight:
            return np.nan
        apart = self.squares * self.weight - self.total**2
        return max(0.0, apart / self.weight**2)
