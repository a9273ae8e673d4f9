"""Sums of exponentials that neither overflow nor lose their small terms.

SciPy's ``logsumexp`` is the reference; these are its two-line versions for one-dimensional
arrays without the copies, because they run once per block of every sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

#: The largest absolute value of an entry of X: sums of squares beyond it come near the largest
#: float, and a column of such sizes is a unit gone wrong or a stand-in for a missing value.
LARGEST_SIZE = 1e100

#: Values that are sorted in one call. Python hears an interrupt between calls, and sorting ten
#: million takes more than a second; merging runs that are sorted does not.
_RUN = 1 << 20


def answers_to_numpy(values: Any) -> bool:
    """Whether NumPy's functions hand this array of another library to that library."""
    return hasattr(type(values), "__array_function__") and not isinstance(values, np.ndarray)


def floats(values: Any) -> Any:
    """Return float64 numbers: NumPy's, or as they are if another library's answer to NumPy."""
    return values if answers_to_numpy(values) else np.asarray(values, dtype=np.float64)


def expit(x: Any) -> Any:
    """Return 1 / (1 + e^-x); SciPy's own knows fewer libraries than NumPy's functions do."""
    return np.exp(-np.logaddexp(0.0, -x)) if answers_to_numpy(x) else special.expit(x)


def log_sum_exp(terms: FloatArray) -> float:
    """Return log(sum(exp(terms))); minus infinity for no terms at all."""
    if terms.size == 0:
        return -np.inf
    top = float(np.max(terms))
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.sum(np.exp(terms - top))))


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


def sum_of_squares(entries: NDArray[Any]) -> float:
    """Return the sum of the squares of all entries, read once and in one thread.

    Infinite or NaN where an entry is; also where the sum exceeds every number of the type.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if entries.flags.forc:
            flat = entries.ravel(order="K")
            return float(np.einsum("i,i->", flat, flat))
        return float(np.einsum("ij,ij->", entries, entries))


def stable_order(values: NDArray[Any]) -> NDArray[np.intp]:
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


def sort_runs(values: NDArray[Any]) -> None:
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
