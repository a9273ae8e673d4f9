"""One door for every bound: numbers are checked here and nowhere else."""

from __future__ import annotations

import math

from toprank._numerics import is_number


def above(name: str, value: float | None, low: float = 0.0) -> float:
    """Return a finite number > low, or raise ValueError saying what came."""
    if not (is_number(value) and low < value < math.inf):
        raise ValueError(f"{name}={value!r} is out of range: expected a finite number > {low:g}.")
    return float(value)


def at_least(name: str, value: float | None, low: float = 0.0, high: float = math.inf) -> float:
    """Return a finite number in [low, high], or raise ValueError saying what came."""
    if not (is_number(value) and low <= value <= high and math.isfinite(value)):
        upper = "" if high == math.inf else f" and <= {high:g}"
        raise ValueError(
            f"{name}={value!r} is out of range: expected a finite number >= {low:g}{upper}."
        )
    return float(value)


def share(name: str, value: float | None, high: float = 1.0) -> float:
    """Return a number in (0, high], or raise ValueError saying what came."""
    if not (is_number(value) and 0.0 < value <= high):
        raise ValueError(f"{name}={value!r} is out of range: expected a number in (0, {high:g}].")
    return float(value)


def log_count(name: str, value: float) -> float:
    """Return ln of a number >= 1, which may be an integer beyond every float."""
    if not (is_number(value) and 1.0 <= value < math.inf):
        raise ValueError(f"{name}={value!r} is out of range: expected a finite number >= 1.")
    return math.log(value)


def inner_share(name: str, value: float | None) -> float:
    """Return a number in (0, 1), or raise ValueError saying what came."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise ValueError(f"{name}={value!r} is out of range: expected a number in (0, 1).")
    return float(value)


def push_power(p: float) -> float:
    """Return p >= 1, infinity included, or raise ValueError saying what came."""
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
