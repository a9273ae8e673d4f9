"""Objectives with corners, and very steep ones, through a path of easier ones.

An objective that is not smooth (hinge, max price) is approached from below: each problem on
the path is smooth, lies under the objective F and starts where the last one ended. With F_s
the smooth one and alpha > 0,

    F(coef) - min F  <=  [F(coef) - F_s(coef)] + |grad F_s|^2 / (2 alpha)

is the certificate that is reported, and the path ends when it is small enough. For the max
price F - F_s is the paper's limit p -> inf with gap log(K)/p - [LSE(p f)/p - max f].

Where the maximum can be told apart from the loss (``problem.peaked``), Newton's method takes it
as it is, and a path is walked for the corners of the loss alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.coordinate import coordinate
from toprank.solvers.max_price import newton_max
from toprank.solvers.newton import newton
from toprank.solvers.result import SEPARABLE, Callback, Result

Minimiser = Callable[..., Result]

#: The smooth problems' levels shrink by this factor, so many times.
_FACTOR = 0.25
_LEVELS = 13
#: Levels among which a fixed number of coordinate rounds is shared out.
_ROUND_LEVELS = (1 / 8, 1 / 64, 1 / 512, 1 / 4096)
#: The certified gap that ends the path, relative to max(1, |F|), and the iterations after it.
_GAP = 1e-4
_POLISH = 200
#: Power prices are first solved at these p, loosely, on the way to a steeper one.
_STEPPING_STONES = tuple(8.0**k for k in range(1, 9))


def minimise(
    problem: Any,
    start: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    warm: bool = False,
) -> Result:
    """Minimise a problem, smooth or not, with a solver for smooth ones.

    ``warm`` says that the start is near the minimum. The coordinate solver's rounds are the
    paper's algorithm: they start where they are told to, and their number is given.
    """
    boosting = minimiser is coordinate
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}
    if problem.peaked and minimiser is newton:
        direct = _to_the_peak(problem, start, settings)
        if direct.converged:
            return direct
        path = _narrow(problem, problem.smoothed, direct.coef, minimiser, warm=True, **settings)
        return min(direct, path, key=lambda result: result.value)
    if not problem.smooth:
        return _narrow(problem, problem.smoothed, start, minimiser, warm=warm, **settings)
    if not (boosting or warm):
        start = _walk(problem, start, minimiser, max_iter, tol)
    return minimiser(problem, start, warm=warm, **settings)


def _to_the_peak(problem: Any, start: FloatArray, settings: dict[str, Any]) -> Result:
    """Solve with the maximum as it is; smooth the loss on the way only where it has corners."""
    if problem.smooth_in_loss(1.0) is problem:
        return newton_max(problem, start, **settings)
    return _narrow(problem, problem.smooth_in_loss, start, newton_max, warm=False, **settings)


def _walk(
    problem: Any, coef: FloatArray, minimiser: Minimiser, max_iter: int, tol: float
) -> FloatArray:
    """Come near the minimum of a steep price along gentler ones, on as few rows as there are."""
    while (coarse := problem.coarse()) is not None:
        problem = coarse
    for p in _STEPPING_STONES:
        gentler = problem.gentler(p)
        if gentler is None:
            break
        coef = minimiser(gentler, coef, max_iter=max_iter, tol=max(tol, 1e-2)).coef
    return coef


def _narrow(
    problem: Any,
    smoothed: Callable[[float], Any],
    coef: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    warm: bool,
) -> Result:
    """Follow the smooth problems down until the certificate is small enough."""
    history: list[dict[str, Any]] = []
    best: Result | None = None
    levels, rounds = _path(minimiser, max_iter)
    # on the way a tenth of the gap may come from the gradient, shared by all its entries
    inner = max(tol, float(np.sqrt(0.02 * _GAP * problem.alpha / problem.size)))
    for level in levels:
        budget = min(rounds, max_iter - len(history))
        if budget <= 0:
            break
        smooth = smoothed(level)
        result = minimiser(smooth, coef, max_iter=budget, tol=inner, callback=callback, warm=warm)
        result = _certified(problem, result)
        coef, warm = result.coef, True
        history += result.history
        close = _is_close(problem, result, tol)
        if close and inner > tol and minimiser is not coordinate:
            polished = minimiser(smooth, coef, max_iter=_POLISH, tol=tol, warm=True)
            result = _certified(problem, polished)
            history += result.history
        # without a penalty every gap is infinite, and the value decides
        if best is None or close or (result.gap, result.value) < (best.gap, best.value):
            best = result
        if close or result.message == SEPARABLE:
            break
    return _closing(best, history, close)


def _certified(problem: Any, result: Result) -> Result:
    """Turn a result for a smooth problem into one for the problem above it."""
    value = problem.value(result.coef)
    result.above = value - result.value
    result.gap, result.value = result.above + result.gap, value
    return result


def _is_close(problem: Any, result: Result, tol: float) -> bool:
    """Whether the gap is small enough; without a penalty, whether each smooth problem is solved."""
    target = max(_GAP, 100.0 * tol) * max(problem.scale, abs(result.value))
    return result.gap <= target or (result.converged and result.above <= target)


def _path(minimiser: Minimiser, max_iter: int) -> tuple[list[float], int]:
    """The levels to pass through, and the most iterations to spend on each."""
    if minimiser is coordinate:  # a fixed number of rounds, shared out
        return list(_ROUND_LEVELS), max(1, max_iter // len(_ROUND_LEVELS))
    return [_FACTOR**k for k in range(_LEVELS)], max_iter


def _closing(best: Any, history: list[dict[str, Any]], close: bool) -> Result:
    result: Result = best
    result.history, result.n_iter = history, len(history)
    if result.message != SEPARABLE:
        result.converged = close
        result.message = "" if close else f"the certified gap is still {result.gap:.2g}"
    return result
