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
