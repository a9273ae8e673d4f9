"""Which way to the minimum of a problem, smooth or not.

Smooth problems go to their solver (`toprank.solvers.smooth`). Those with corners are reached along
a path of smooth ones (`toprank.solvers.path`). Where the maximum can be told apart from the loss
(``problem.peaked``), Newton's method takes it as it is, and a path is walked for the corners of
the loss alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toprank._numerics import FloatArray
from toprank.solvers.bounded import bounded
from toprank.solvers.max_price import newton_max
from toprank.solvers.newton import newton
from toprank.solvers.path import narrow
from toprank.solvers.result import Callback, Result
from toprank.solvers.smooth import Minimiser, solve_smooth


def minimise(
    problem: Any,
    start: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    warm: bool = False,
    lower: FloatArray | None = None,
) -> Result:
    """Minimise a problem, smooth or not, with a solver for smooth ones.

    ``warm`` says that the start is near the minimum; ``lower`` are bounds on the coefficients,
    minus infinity where there is none. The coordinate solver's rounds are the paper's algorithm:
    they start where they are told to, and their number is given.
    """
    if lower is not None:
        minimiser = bounded(minimiser, lower)
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}
    if problem.peaked and minimiser is newton:
        direct = _to_the_peak(problem, start, settings)
        if direct.converged:
            return direct
        path = narrow(problem, problem.smoothed, direct.coef, minimiser, warm=True, **settings)
        best = min(direct, path, key=lambda result: result.value)
        # what lies below the minimum lies below it for both
        below = max(result.value - result.gap for result in (direct, path))
        return replace(best, gap=best.value - below, converged=path.converged, message=path.message)
    if not problem.smooth:
        return narrow(problem, problem.smoothed, start, minimiser, warm=warm, **settings)
    return solve_smooth(problem, start, minimiser, warm=warm, **settings)


def _to_the_peak(problem: Any, start: FloatArray, settings: dict[str, Any]) -> Result:
    """Solve with the maximum as it is; smooth the loss on the way only where it has corners."""
    if problem.smooth_in_loss(1.0) is problem:
        return newton_max(problem, start, **settings)
    return narrow(problem, problem.smooth_in_loss, start, newton_max, warm=False, **settings)
