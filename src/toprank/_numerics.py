"""Sums of exponentials that neither overflow nor lose their small terms, and sorting by runs.

SciPy's ``logsumexp`` is the reference; these are its two-line versions for one-dimensional
arrays without the copies, because they run once per block of every sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._arrays import FloatArray as FloatArray  # most rooms take it from here

#: A function of arrays, entry by entry or linear, that keeps their shape.
ArrayMap = Callable[[FloatArray], FloatArray]

#: The largest absolute value of an entry of X: sums of squares beyond it come near the largest
#: float, and a column of such sizes is a unit gone wrong or a stand-in for a missing value.
LARGEST_SIZE = 1e100

#: Entries whose squares BLAS adds up in one call, in one thread.
_DOT = 8192

#: Values that are sorted in one call. Python hears an interrupt between calls, and sorting ten
#: million takes more than a second; merging runs that are sorted does not.
_RUN = 1 << 20


def is_number(value: object) -> TypeGuard[float]:
    """Whether a parameter is a real number, and neither a truth value nor NaN."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and value == value


def floats(values: object) -> Any:
    """Return NumPy's float64 numbers; vectors on a device, which answer to NumPy, as they are."""
    answers = hasattr(type(values), "__array_function__") and not isinstance(values, np.ndarray)
    return values if answers else np.asarray(values, dtype=np.float64)


def log_sum_exp(terms: FloatArray) -> float:
    """Return log(sum(exp(terms))); minus infinity for no terms at all."""
    if terms.size == 0:
        return -np.inf
    top = float(np.max(terms))
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.sum(np.exp(terms - top))))


def log_sum_and_shares(terms: FloatArray) -> tuple[float, FloatArray]:
    """Return `log_sum_exp` and `softmax` of the terms, at the cost of one of them."""
    top = float(np.max(terms, initial=-np.inf))
    if not np.isfinite(top):
        return top, np.zeros_like(terms)
    weights: FloatArray = np.exp(terms - top)
    mass = float(np.sum(weights))
    weights /= mass
    return top + float(np.log(mass)), weights


def softmax(terms: FloatArray) -> FloatArray:
    """Return exp(terms) divided by its sum; all zeros where every term is minus infinity."""
    top = float(np.max(terms, initial=-np.inf))
    if top == -np.inf:
        return np.zeros_like(terms)
    weights: FloatArray = np.exp(terms - top)
    weights /= np.sum(weights)
    return weights


def log_of(values: FloatArray) -> FloatArray:
    """Return log(values) with log(0) = -inf and no warning: zero is a legal weight or height."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(values)
    return logs


def sum_of_squares(entries: np.ndarray) -> float:
    """Return the sum of the squares of all entries, read once and in one thread.

    Infinite or NaN where an entry is; also where the sum exceeds every number of the type.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if entries.flags.forc:
            flat = entries.ravel(order="K")
            if len(flat) < _DOT:
                return float(np.einsum("i,i->", flat, flat))
            whole = len(flat) - len(flat) % _DOT
            lines, rest = flat[:whole].reshape(-1, _DOT), flat[whole:]
            # products of lines too short for BLAS to share them out among threads
            total = np.matmul(lines[:, None, :], lines[:, :, None]).sum(dtype=np.float64)
            return float(total + np.einsum("i,i->", rest, rest))
        return float(np.einsum("ij,ij->", entries, entries))


def stable_order(values: AnyArray) -> NDArray[np.intp]:
    """Return ``np.argsort(values, kind="stable")``, found run by run.

    Examples
    --------
    >>> stable_order(np.array([2.0, 1.0, 2.0])).tolist()
    [1, 0, 2]
    """
    runs = [
        first + np.argsort(values[first : first + _RUN], kind="stable")
        for first in range(0, len(values), _RUN)
    ]
    if len(runs) < 2:
        return runs[0] if runs else np.empty(0, dtype=np.intp)
    order = np.concatenate(runs)
    return order[np.argsort(values[order], kind="stable")]


def sort_runs(values: AnyArray) -> None:
    """Sort in place as ``values.sort()`` does, run by run.

    Examples
    --------
    >>> values = np.array([2.0, 1.0])
    >>> sort_runs(values)
    >>> values.tolist()
    [1.0, 2.0]
    """
    for first in range(0, len(values), _RUN):
        values[first : first + _RUN].sort()
    if len(values) > _RUN:
        values.sort(kind="stable")


def row_codes(columns: Iterable[ArrayLike]) -> NDArray[np.uint64]:
    """A number per row that depends on its entries alone; columns of the same length.

    Examples
    --------
    >>> import numpy as np
    >>> codes = row_codes([[1.0, np.nan, 1.0, 0.0], [2.0, 3.0, 2.0, 3.0]])
    >>> bool(codes[0] == codes[2]), len(set(codes.tolist()))
    (True, 3)
    """
    total: NDArray[np.uint64] = np.zeros(1, dtype=np.uint64)
    for column in columns:
        numbers = np.asarray(column, dtype=np.float64) + 0.0  # one zero
        missing = np.isnan(numbers)
        if missing.any():
            numbers[missing] = np.nan  # one of the many that there are
        bits = numbers.view(np.uint64)
        total = (total ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return np.asarray(total)


def scramble_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of each number over its whole word (the finaliser of splitmix64).

    Zero stays zero; different numbers stay different.
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


#: How many standard deviations from the mean the farthest number of a long tail lies at least.
_FAR = 50.0
#: Shares of the numbers beyond which those of long tails are not told apart.
_TAILS = (0.005, 0.995)


class LongTail(NamedTuple):
    """A column of which a few numbers are so large that they alone would head a linear list.

    ``low`` and ``high`` are where its tails begin; ``farthest`` lies ``away`` standard deviations
    from the mean.
    """

    low: float
    high: float
    farthest: float
    away: float


def find_long_tail(numbers: FloatArray, weight: FloatArray | None = None) -> LongTail | None:
    """Return where the tails of a column begin if one is long, and None if none is.

    Parameters
    ----------
    numbers : array
        NaN where a number is missing.
    weight : array, optional
        How often each counts.

    Examples
    --------
    >>> amounts = np.append(np.arange(1000.0), 1e7)
    >>> tail = find_long_tail(amounts)
    >>> (tail.low, tail.high, tail.farthest)
    (5.0, 995.0, 10000000.0)
    >>> find_long_tail(np.arange(1000.0)) is None
    True
    """
    there = np.isfinite(numbers)
    x = numbers[there]
    w = np.ones(len(x)) if weight is None else weight[there]
    total = float(np.sum(w))
    unit = float(np.max(np.abs(x), initial=0.0))
    if total <= 0 or unit == 0:
        return None
    apart = x / unit - float(np.sum(w * (x / unit))) / total  # squares of huge numbers overflow
    spread = float(np.sqrt(np.sum(w * apart**2) / total))
    place = int(np.argmax(np.abs(apart)))
    away = abs(float(apart[place])) / spread if spread > 0 else 0.0
    # of few numbers none can lie far off: there it is one that makes the deviation itself
    if away < min(_FAR, 0.9 * np.sqrt(total)):
        return None
    order = np.argsort(x, kind="stable")
    low, high = _outer_numbers(x[order], w[order])
    return LongTail(low, high, float(x[place]), away) if low < high else None


def _outer_numbers(x: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Where the tails of sorted numbers begin; where most are the same, among the different."""
    steps = np.cumsum(weight)
    low, high = (float(x[np.searchsorted(steps, q * steps[-1])]) for q in _TAILS)
    if low < high:
        return low, high
    different = np.unique(x)
    if len(different) < 3:  # a flag
        return low, high
    low, high = (float(different[int(q * (len(different) - 1))]) for q in _TAILS)
    return low, high
