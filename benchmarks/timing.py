"""What the benchmarks share: a clock, two actions in turns, and a ratio beside its limit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

Action = Callable[[], Any]


def say(text: str) -> None:
    """Tell whoever waits what is being done; the results alone go to stdout."""
    print(text, file=sys.stderr, flush=True)


def clock(action: Action, timer: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds that an action takes."""
    start = timer()
    action()
    return timer() - start


def side_by_side(
    ours: Action,
    theirs: Action,
    rounds: int = 5,
    *,
    timer: Callable[[], float] = time.perf_counter,
    warm_up: bool = True,
) -> tuple[float, float]:
    """Return the best time of each, taken in turns, after caches and compiled code are warm."""
    if warm_up:
        ours(), theirs()
    times = [(clock(ours, timer), clock(theirs, timer)) for _ in range(rounds)]
    best, other = (min(column) for column in zip(*times, strict=True))
    return best, other


def report(limit: float | None, ours: float, theirs: float, **facts: Any) -> dict[str, Any]:
    """Return the ratio of two figures and whether it keeps within its limit, for JSON."""
    ratio = ours / theirs
    return {
        "ratio": round(ratio, 4),
        "limit": limit,
        "within": None if limit is None else bool(ratio <= limit),
        "ours": round(ours, 4),
        "theirs": round(theirs, 4),
        **facts,
    }
