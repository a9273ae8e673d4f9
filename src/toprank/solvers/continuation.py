"""Objectives with corners, and very steep ones, through a path of easier ones.

An objective that is not smooth (hinge, max price) is approached from below: each problem on
the path is smooth, lies under the objective F and starts where the last one ended. With F_s
the smooth one and alpha > 0,

    F(coef) - min F  <=  [F(coef) - F_s(coef)] + |grad F_s|^2 / (2 alpha)

is the certificate that is reported, and the path ends when it is small enough. For the max
price F - F_s is the paper's limit p -> inf with gap log(K)/p - [LSE(p f)/p - max f].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toprank._numerics import FloatArray
from toprank.solvers.result import SEPARABLE, Callback, Result

Minimiser = Callable[..., Result]

#: The smooth problems' levels shrink by this factor, down to the smallest.
_FACTOR = 0.25
_SMALLEST_LEVEL = 2.0**-24
#: The certified gap that ends the path, relative to max(1, |F|).
TARGET_GAP = 1e-4
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
    stones: bool = True,
) -> Result:
    """Minimise a problem, smooth or not, with a solver for smooth ones."""
    if problem.smooth:
        if stones:
            start = _walk(problem, start, minimiser, max_iter, tol)
        return minimiser(problem, start, max_iter=max_iter, tol=tol, callback=callback)
    return _narrow(problem, start, minimiser, max_iter, tol, callback)


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
    coef: FloatArray,
    minimiser: Minimiser,
    max_iter: int,
    tol: float,
    callback: Callback | None,
) -> Result:
    """Follow the smooth problems down until the certificate is small enough."""
    history: list[dict[str, Any]] = []
    best: Result | None = None
    level, n_iter = 1.0, 0
    while True:
        smooth = problem.smoothed(level)
        result = minimiser(
            smooth, coef, max_iter=max(1, max_iter - n_iter), tol=tol, callback=callback
        )
        coef, n_iter = result.coef, n_iter + result.n_iter
        history += result.history
        value = problem.value(coef)
        above = value - result.value
        result.gap, result.value = above + result.gap, value
        if best is None or not result.gap >= best.gap:
            best = result
        # without a penalty there is no certificate, but each smooth problem is still solved
        target = TARGET_GAP * max(problem.scale, abs(value))
        close = result.gap <= target or (result.converged and above <= target)
        level *= _FACTOR
        over = n_iter >= max_iter or level < _SMALLEST_LEVEL or result.message == SEPARABLE
        if close or over:
            break
    return _closing(result if close else best, history, n_iter, close)


def _closing(best: Result, history: list[dict[str, Any]], n_iter: int, close: bool) -> Result:
    best.history, best.n_iter = history, n_iter
    if best.message != SEPARABLE:
        best.converged = close
        best.message = "" if close else f"the certified gap is still {best.gap:.2g}"
    return best
