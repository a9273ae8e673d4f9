"""Probabilities by their logarithms: ln N may be 1e6, and e^-1e6 is a good answer."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toprank.bounds._inputs import above, exactly_one, share

#: The smallest positive float. A bound that underflows is rounded up to it, never down to zero.
TINY = 5e-324


def log_sum(a: float, b: float) -> float:
    """Return ln(e^a + e^b)."""
    return float(np.logaddexp(a, b))


def exp_or_inf(log_value: float) -> float:
    """Return e^log_value, infinity where it exceeds the largest float."""
    return math.exp(log_value) if log_value < 709.0 else math.inf


def probability_of(log_probability: float) -> float:
    """Return the bound on a probability: at most 1, and never rounded down to zero."""
    return max(TINY, math.exp(min(log_probability, 0.0)))


def in_words(log_value: float) -> str:
    """Return e^log_value to three digits, as a power of ten where a float cannot hold it."""
    if abs(log_value) < 700.0:
        return f"{math.exp(log_value):.3g}"
    return f"10^{log_value / math.log(10.0):.4g}"


def smallest_solution(holds: Callable[[float], bool], start: float = 1.0) -> float:
    """Return the smallest x > 0, to the last bits, from which on ``holds`` is true.

    ``holds`` is false for small x and, once true, stays true. The answer is always on the true
    side, so a bound solved for x is kept in spite of rounding; infinity when no float will do.
    """
    low = high = start
    while not holds(high):
        low, high = high, high * 2.0
        if high == math.inf:
            return math.inf
    while low > TINY and holds(low):
        low, high = low / 2.0, low
    while True:
        middle = low + (high - low) / 2.0
        if not low < middle < high:
            return high
        low, high = (low, middle) if holds(middle) else (middle, high)


def solve(
    log_probability: Callable[[float], float],
    name: str,
    size: float | None,
    probability: float | None,
) -> tuple[float, float, float]:
    """Return (the bound's value, size, ln probability), given one of the last two.

    ``log_probability(size)`` is ln of the bound on the probability, and falls with the size of
    the excess or deviation that ``name`` calls.
    """
    exactly_one(**{name: size, "probability": probability})
    if size is not None:
        size = above(name, size)
        log_p = log_probability(size)
        return probability_of(log_p), size, log_p
    log_p = math.log(share("probability", probability))
    size = smallest_solution(lambda candidate: log_probability(candidate) <= log_p)
    return size, size, log_p


def whole(size: float) -> float:
    """Return a sample size rounded up; infinity stays."""
    return size if size == math.inf else float(math.ceil(size))


def number_of(size: float) -> str:
    """Return a sample size in words."""
    return "no number (up to 1.8e308) of" if size == math.inf else f"{size:.15g}"
