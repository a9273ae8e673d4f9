"""A smooth problem, solved near by, from gradients alone, or along gentler prices.

Steep prices are approached through gentler ones. Newton's method walks along several of them. For
L-BFGS one may tell the Hessian at the minimum: the weights of the rows there are nearly its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import gradient_leg, lbfgs
from toprank.solvers.newton import newton
from toprank.solvers.result import Callback, Log, Result, largest

if TYPE_CHECKING:
    from toprank.solvers.result import Problem, SteepProblem

Minimiser = Callable[..., Result]

#: Gradients this small are near enough to a minimum for Newton's method.
_NEAR = 1e-2
#: Power prices are first solved at these p, loosely, on the way to a steeper one.
_STEPPING_STONES = tuple(8.0**k for k in range(1, 9))
#: The p, at the most, whose minimum tells the Hessian of a steeper price.
_STONE = 24.0


def solve_smooth(
    problem: Any,
    start: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    warm: bool,
    hessian: FloatArray | None = None,
) -> Result:
    """Solve a smooth problem: near by, from gradients alone, or along gentler prices.

    ``hessian`` is what is known of the Hessian at the minimum.
    """
    log = Log(callback)
    settings: dict[str, Any] = {"tol": tol, "callback": callback}
    far = not (warm or is_boosting(minimiser))
    if hessian is not None:
        settings["hessian"] = hessian
    elif far and looks_ahead(problem, minimiser):
        start, settings["hessian"] = _look_from_stone(problem, start, max_iter, tol, log)
    if far and problem.gradients_first and minimiser is newton:
        reached = gradient_leg(problem, start, max_iter, tol, log)
        if largest(problem.value_grad(reached)[1]) > max(tol, _NEAR) * problem.scale:
            others = reached, _walk(problem, start, minimiser, max_iter, tol, log)
            reached = min(others, key=lambda coef: float(problem.value(coef)))
        start, warm = reached, True
    elif far and not (problem.gradients_first and minimiser is lbfgs):
        start = _walk(problem, start, minimiser, max_iter, tol, log)
    left = max(1, max_iter - len(log.history))
    result = minimiser(problem, start, warm=warm, max_iter=left, **settings)
    result.history = log.history + result.history
    result.n_iter = len(result.history)
    return result


def looks_ahead(problem: Problem, minimiser: Minimiser) -> bool:
    """Whether the Hessian at the minimum is to be told from the minimum of a gentler price."""
    return minimiser is lbfgs and problem.looks_ahead


def _look_from_stone(
    problem: SteepProblem, start: FloatArray, max_iter: int, tol: float, log: Log
) -> tuple[FloatArray, FloatArray | None]:
    """Return where a gentler price has its minimum, about, and the Hessian to expect from there."""
    gentler = problem.gentler(_STONE)
    if gentler is None:
        return start, None
    result = lbfgs(gentler, start, max_iter=max_iter, tol=max(tol, _NEAR), callback=log.callback)
    log.history += result.history
    ahead = problem.hessian_ahead(gentler, result.coef)
    problem.value_grad(result.coef)  # where the solver starts, most often: it is remembered
    return shortened(problem, result.coef), ahead


def _walk(
    problem: Problem,
    coef: FloatArray,
    minimiser: Minimiser,
    max_iter: int,
    tol: float,
    log: Log,
) -> FloatArray:
    """Come near the minimum of a steep price along gentler ones, on as few rows as there are.

    Iterations on a sample of the rows are not logged.
    """
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": max(tol, 1e-2)}
    whole = problem
    while (coarse := problem.coarse()) is not None:
        problem = coarse
    for p in _STEPPING_STONES:
        gentler = problem.gentler(p)
        if gentler is None:
            break
        callback = log.callback if problem is whole else None
        result = minimiser(gentler, shortened(gentler, coef), callback=callback, **settings)
        if problem is whole:
            log.history += result.history
        coef = result.coef
    return shortened(problem, coef)


def shortened(problem: Problem, coef: FloatArray) -> FloatArray:
    """Halve the coefficients for as long as the value falls.

    Where a push leaves little to learn, the minima shrink in proportion to 1/p: that of a gentler
    price lies far beyond the next one, where the weights rest on a handful of rows.
    """
    value = problem.value(coef) if np.any(coef) else 0.0
    while np.any(coef) and (lower := problem.value(0.5 * coef)) < value:
        coef, value = 0.5 * coef, lower
    return coef


def is_boosting(minimiser: Minimiser) -> bool:
    """Whether the solver takes a fixed number of rounds, one coordinate at a time."""
    return getattr(minimiser, "func", minimiser) is coordinate
