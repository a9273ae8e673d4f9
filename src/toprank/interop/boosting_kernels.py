"""Gradient and curvature of every row for a library of trees: compiled loops over rows.

Imported only where so many rows repay loading Numba. Serial and without the GIL.

The loops hold several rows in a register at once, so the exponential is written out: e^x = 2^k e^r
with k the whole number next to x / ln 2, and the series of e^r for |r| <= ln 2 / 2 up to r^12:
its rest is 2e-16. On an ARM processor the C library takes twice as long for a row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import BoolArray
from toprank._extras import jit
from toprank._numerics import FloatArray

# products may be added in one rounding; sums may be taken in any order where it is said
_CONTRACT, _ANY_ORDER = {"contract"}, {"contract", "reassoc", "nsz"}

#: Exponents beyond are taken for this one: its exponential is neither zero nor infinite.
_LARGEST = 700.0
_PER_OCTAVE = 1.0 / math.log(2.0)
# ln 2 in two parts: the first has so few digits that times k it is exact
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Added to a number, leaves the nearest whole one in the last bits.
_WHOLE = 1.5 * 2.0**52
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (
    1.0 / math.factorial(k) for k in range(2, 13)
)

#: Sums of exponentials beyond which some of them may have been out of range.
_SMALLEST_MASS, _LARGEST_MASS = 1e-200, 1e200
#: Rows that tell about where the exponents of a class lie.
_LOOKED_AT = 256


class CompiledPush:
    """Gradient and curvature of two softmaxes, rounded to 20 bits per unit of weight.

    Parameters
    ----------
    positive : array of bool of shape (n,)
    weight : array of shape (n,), optional
    tilts : two pairs (tilt, sign), of the positives and of the negatives
        The gradient of a class is sign times the softmax of tilt times its scores.
    factor : float
        What the gradient is multiplied by.
    bend : float
        What its size is multiplied by to give the curvature.
    least : float
        Curvature per unit of weight that a row has at least.
    """

    def __init__(
        self,
        positive: BoolArray,
        weight: FloatArray | None,
        tilts: tuple[tuple[float, float], ...],
        factor: float,
        bend: float,
        least: float,
    ):
        self._members = (positive.view(np.uint8), (~positive).view(np.uint8))
        self._weight = np.empty(0) if weight is None else weight
        (of_positives, sign), (of_negatives, other_sign) = tilts
        self._tilts = (of_positives, of_negatives)
        self._factors = (factor * sign, factor * other_sign)
        self._bend, self._least = bend, least
        self._steep = int(np.argmax(np.abs(self._tilts)))
        member = self._members[self._steep] != 0
        rows = np.flatnonzero(member if weight is None else member & (weight > 0))
        self._absent = np.flatnonzero(self._weight == 0)
        self._rows = rows[:: 1 + len(rows) // _LOOKED_AT]
        self._room = np.empty(len(positive))  # kept: new memory takes longer to write to

    def __call__(
        self, scores: np.ndarray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Return both for scores of float32 or float64; None where exponents leave their range."""
        n = len(self._room)
        if scores.shape != (n,) or scores.dtype not in (np.float32, np.float64):
            return None
        scores = np.ascontiguousarray(scores)
        # exponents are taken relative to the largest of the steeper class, or nearly so
        tilt, seen = self._tilts[self._steep], scores[self._rows]
        about = float(np.max(seen) if tilt > 0 else np.min(seen))
        members, others = self._members
        exponentials(scores, members, self._tilts[0], self._tilts[1], about, self._room)
        self._room[self._absent] = 0.0
        masses = (
            mass(members, self._weight, self._room),
            mass(others, self._weight, self._room),
        )
        if not all(_SMALLEST_MASS < each < _LARGEST_MASS for each in masses):
            return None  # so does NaN
        gradient, curvature = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
        round_parts(
            members,
            self._room,
            self._factors[0] / masses[0],
            self._factors[1] / masses[1],
            self._bend,
            self._least,
            gradient.view(np.int32),
            curvature.view(np.int32),
        )
        if len(self._weight):
            weight = self._weight.astype(np.float32)
            gradient *= weight
            curvature *= weight
        return gradient, curvature


@jit(nogil=True, cache=True, fastmath=_CONTRACT)
def exponentials(
    scores: np.ndarray,
    member: NDArray[np.uint8],
    of_members: float,
    of_others: float,
    about: float,
    out: FloatArray,
) -> None:
    """Write e^{tilt (f - about)} of every row, with the tilt of members or of others."""
    for i in range(len(out)):
        x = (of_members if member[i] != 0 else of_others) * (scores[i] - about)
        x = min(max(x, -_LARGEST), _LARGEST)
        shifted = x * _PER_OCTAVE + _WHOLE
        k = shifted - _WHOLE
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (_C2 + _C3 * r)
        middle = (_C4 + _C5 * r) + r2 * (_C6 + _C7 * r)
        high = (_C8 + _C9 * r) + r2 * (_C10 + _C11 * r) + r4 * _C12
        series = low + r4 * (middle + r4 * high)
        octaves = np.float64(shifted).view(np.int64) << np.int64(52)
        out[i] = np.int64(np.float64(series).view(np.int64) + octaves).view(np.float64)


@jit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def mass(member: NDArray[np.uint8], weight: FloatArray, values: FloatArray) -> float:
    """Return the sum of weight times value over the members; an empty weight means ones."""
    total = 0.0
    if len(weight) == 0:
        for i in range(len(values)):
            value = values[i]  # read before it is chosen: then no branch depends on it
            total += value if member[i] != 0 else 0.0
    else:
        for i in range(len(values)):
            value = weight[i] * values[i]
            total += value if member[i] != 0 else 0.0
    return total


@jit(nogil=True, cache=True, fastmath=_CONTRACT)
def round_parts(
    member: NDArray[np.uint8],
    values: FloatArray,
    of_members: float,
    of_others: float,
    bend: float,
    least: float,
    gradient: NDArray[np.int32],
    curvature: NDArray[np.int32],
) -> None:
    """Write factor times value, and ``bend`` times its size, as the bits of float32.

    Of 24 significant bits 20 are kept, as in `toprank.interop.boosting`.
    """
    up, kept = np.int32(8), np.int32(-16)
    for i in range(len(values)):
        part = (of_members if member[i] != 0 else of_others) * values[i]
        size = max(abs(part) * bend, least)
        gradient[i] = (np.float32(part).view(np.int32) + up) & kept
        curvature[i] = (np.float32(size).view(np.int32) + up) & kept
