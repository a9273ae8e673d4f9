"""What every bound is made of: its answer, the check of its numbers, and logarithms.

Probabilities are kept by their logarithms: ln N may be 1e6, and e^-1e6 is a good answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toprank._numerics import is_number


@dataclass(frozen=True)
class Bound:
    """The value of a bound, with the statement it makes and the assumptions it needs.

    Parameters
    ----------
    value : float
        The bound.
    vacuous : bool
        True when the bound says nothing that was not known before: a probability or an error
        that is "at most 1.7", for instance.
    statement : str
        The inequality in words and symbols, with the paper's number.
    assumes : tuple of str
        What must hold for the statement to be true, one assumption per entry.

    Examples
    --------
    >>> from toprank.bounds import Bound
    >>> print(Bound(0.12, False, "ranking regret <= 0.12", ("independent rows",)))
    0.12: ranking regret <= 0.12
      assumes: independent rows
    """

    value: float
    vacuous: bool
    statement: str
    assumes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        verdict = " (vacuous: it says nothing that was not known before)" if self.vacuous else ""
        lines = [f"{self.value:.6g}{verdict}: {self.statement}"]
        lines += [f"  assumes: {assumption}" for assumption in self.assumes]
        return "\n".join(lines)


def above(name: str, value: float | None, low: float = 0.0) -> float:
    """Return a finite number > low, or raise ValueError."""
    if not (is_number(value) and low < value < math.inf):
        raise ValueError(f"{name}={value!r} is out of range: expected a finite number > {low:g}.")
    return float(value)


def at_least(name: str, value: float | None, low: float = 0.0, high: float = math.inf) -> float:
    """Return a finite number in [low, high], or raise ValueError."""
    if not (is_number(value) and low <= value <= high and math.isfinite(value)):
        upper = "" if high == math.inf else f" and <= {high:g}"
        raise ValueError(
            f"{name}={value!r} is out of range: expected a finite number >= {low:g}{upper}."
        )
    return float(value)


def share(name: str, value: float | None, high: float = 1.0) -> float:
    """Return a number in (0, high], or raise ValueError."""
    if not (is_number(value) and 0.0 < value <= high):
        raise ValueError(f"{name}={value!r} is out of range: expected a number in (0, {high:g}].")
    return float(value)


def log_count(name: str, value: float) -> float:
    """Return ln of a number >= 1, which may be an integer beyond every float."""
    if not (is_number(value) and 1.0 <= value < math.inf):
        raise ValueError(f"{name}={value!r} is out of range: expected a finite number >= 1.")
    return math.log(value)


def inner_share(name: str, value: float | None) -> float:
    """Return a number in (0, 1), or raise ValueError."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise ValueError(f"{name}={value!r} is out of range: expected a number in (0, 1).")
    return float(value)


def push_power(p: float) -> float:
    """Return p >= 1, infinity included, or raise ValueError."""
    if not (is_number(p) and p >= 1.0):
        raise ValueError(f"p={p!r} is not a power: expected a number >= 1.")
    return float(p)


def exactly_one(**given: float | None) -> str:
    """Return the name of the one argument that is not None."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        came = " and ".join(names) if names else "none of them"
        raise ValueError(
            f"Expected exactly one of {', '.join(given)}; got {came}. "
            "What is left out is what the bound is solved for."
        )
    return names[0]


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
