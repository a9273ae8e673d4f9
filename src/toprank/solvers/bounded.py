"""Minimisers under lower bounds, such as coefficients that may not be negative.

A coefficient at its bound whose slope would push it further is held there; the others move as in
the free problem: by Newton's method, by SciPy's L-BFGS-B, or one at a time. A point is the
minimum exactly where the slopes of the free coefficients vanish and those at a bound point
outwards (Karush, Kuhn and Tucker): that residual is what the tolerance is about.

With a penalty the objective lies, for every y within the bounds, above

    F(x) - g'(x - y) + sum_j penalty_j (x_j - y_j)^2 / 2,

whose minimum over y is known coordinate by coordinate, which bounds F(x) - min F.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from toprank._numerics import FloatArray
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import Continued, lbfgs
from toprank.solvers.newton_step import rounding_error, solve_step
from toprank.solvers.result import (
    SEPARABLE,
    STUCK,
    Callback,
    Log,
    Problem,
    Result,
    SmoothProblem,
    at_rounding,
    duality_gap,
    is_cancelled,
    largest,
)

_SUFFICIENT_DECREASE = 1e-4
#: Damping relative to each coordinate's curvature: the first, the least kept, the most tried.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-4, 1e-7, 1e12
#: Runs of L-BFGS-B, each from where the last one ended with a memory that is empty.
_RUNS = 20


def bounded(minimiser: object, lower: FloatArray) -> Callable[..., Result]:
    """Return the solver of the same name for coefficients of at least ``lower``."""
    if minimiser is coordinate:
        return partial(coordinate, lower=lower)
    return partial(bounded_lbfgs if minimiser is lbfgs else bounded_newton, lower=lower)


def free_gradient(coef: FloatArray, grad: FloatArray, lower: FloatArray) -> FloatArray:
    """Return the gradient, zero where a bound holds the coefficient against it."""
    return np.where((coef <= lower) & (grad > 0), 0.0, grad)


def bounded_newton(
    problem: SmoothProblem,
    start: FloatArray,
    *,
    lower: FloatArray,
    max_iter: int = 200,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
) -> Result:
    """Newton's method among the coefficients that no bound holds."""
    log = Log(callback)
    coef = np.maximum(start, lower)
    coarse = None if warm else problem.coarse()
    if coarse is not None:
        loose = max(tol, coarse.noise)
        coef = bounded_newton(coarse, coef, lower=lower, max_iter=max_iter, tol=loose).coef
    value, grad = problem.value_grad(coef)
    damping, message = 0.0, f"no convergence in {max_iter} Newton iterations"
    while largest(free_gradient(coef, grad, lower)) > tol * problem.scale:
        if len(log.history) >= max_iter:
            break
        hessian = problem.hessian(coef)
        found = _bounded_step(problem, coef, value, grad, hessian, lower, damping)
        if found is None:
            message = STUCK
            break
        coef, value, grad, damping = found
        log.add(coef, objective=value, gradient=largest(free_gradient(coef, grad, lower)))
        if problem.runs_away(coef):
            message = SEPARABLE
            break
    return _finish(problem, coef, value, grad, lower, tol, log, message)


def _bounded_step(
    problem: SmoothProblem,
    coef: FloatArray,
    value: float,
    grad: FloatArray,
    hessian: FloatArray,
    lower: FloatArray,
    damping: float,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """Take the first damped step that lowers the objective enough; None if none does."""
    free = ~((coef <= lower) & (grad > 0))
    curvature = np.maximum(np.diag(hessian), 0.0)
    residual = largest(free_gradient(coef, grad, lower))
    while damping <= _MOST_DAMPING:
        # without damping no zero meets an infinite curvature
        extra = damping * curvature if damping else np.zeros_like(curvature)
        trial = _projected(coef, grad, hessian, free, lower, extra)
        slope = float(grad @ (trial - coef))
        if not np.isfinite(slope):
            return None
        trial_value, trial_grad = problem.value_grad(trial)
        rise = trial_value - value
        # below rounding the values say nothing; the gradients still do
        idle = abs(rise) <= rounding_error(value) and (
            largest(free_gradient(trial, trial_grad, lower)) < residual
        )
        if (slope < 0 and rise <= _SUFFICIENT_DECREASE * slope) or idle:
            eased = 0.1 * damping if slope < 0 and rise / slope > 0.4 else damping
            return trial, trial_value, trial_grad, eased if eased >= _LEAST_DAMPING else 0.0
        damping = max(10.0 * damping, _FIRST_DAMPING)
    return None


def _projected(
    coef: FloatArray,
    grad: FloatArray,
    hessian: FloatArray,
    free: NDArray[np.bool_],
    lower: FloatArray,
    extra: FloatArray,
) -> FloatArray:
    """The Newton point of the free coefficients; those that would cross a bound stay on it.

    Holding them and solving again for the others keeps the direction one of descent: a step that
    is only cut off at the bounds need not be.
    """
    moving = free.copy()
    trial = coef.copy()
    while np.any(moving):
        places = np.flatnonzero(moving)
        held = np.flatnonzero(free & ~moving)
        pulled = grad[places] + hessian[np.ix_(places, held)] @ (trial[held] - coef[held])
        inner = hessian[np.ix_(places, places)] + np.diag(extra[places])
        wanted = coef[places] + solve_step(inner, -pulled)
        crossing = wanted < lower[places]
        if not np.any(crossing):
            trial[places] = wanted
            break
        trial[places[crossing]] = lower[places[crossing]]
        moving[places[crossing]] = False
    return trial


def bounded_lbfgs(
    problem: Problem,
    start: FloatArray,
    *,
    lower: FloatArray,
    max_iter: int = 5000,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
) -> Result:
    """SciPy's L-BFGS-B with the bounds it was made for, in units of the columns' spread."""
    log = Log(callback)
    unit = problem.column_scale() / np.sqrt(problem.scale)
    coef = np.maximum(start, lower)
    value, grad = problem.value_grad(coef)
    message = f"no convergence in {max_iter} L-BFGS iterations"
    for _ in range(_RUNS):
        run = _Run(problem, coef, value, grad, lower, tol, log)
        room = max_iter - len(log.history)
        if run.done or room <= 0:
            break
        run.go(unit, room)
        fell = run.value < value or run.residual < largest(free_gradient(coef, grad, lower))
        coef, value, grad = run.coef, run.value, run.grad
        if problem.runs_away(coef):
            message = SEPARABLE
            break
        if not fell:
            message = STUCK
            break
    return _finish(problem, coef, value, grad, lower, tol, log, message)


class _Run:
    """One run of SciPy's solver; it keeps the best point it has seen."""

    def __init__(
        self,
        problem: Problem,
        coef: FloatArray,
        value: float,
        grad: FloatArray,
        lower: FloatArray,
        tol: float,
        log: Log,
    ):
        self.problem, self.lower, self.tol, self.log = problem, lower, tol, log
        self.coef, self.value, self.grad = coef, value, grad

    @property
    def residual(self) -> float:
        return largest(free_gradient(self.coef, self.grad, self.lower))

    @property
    def done(self) -> bool:
        return self.residual <= self.tol * self.problem.scale

    def go(self, unit: FloatArray, max_iter: int) -> None:
        continued = Continued()

        def evaluate(z: FloatArray) -> tuple[float, FloatArray]:
            coef = np.maximum(unit * z, self.lower)
            value, grad = self.problem.value_grad(coef)
            if value <= self.value:
                self.coef, self.value, self.grad = coef, value, grad
            return continued(z, value, unit * grad)

        def after(_: FloatArray) -> None:
            self.log.add(self.coef, objective=self.value, gradient=self.residual)
            if self.done or self.problem.runs_away(self.coef):
                raise StopIteration

        optimize.minimize(
            evaluate,
            self.coef / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(self.lower / unit, np.inf),
            callback=after,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter + 100, "ftol": 0.0, "gtol": 0.0},
        )


def _finish(
    problem: SmoothProblem,
    coef: FloatArray,
    value: float,
    grad: FloatArray,
    lower: FloatArray,
    tol: float,
    log: Log,
    message: str,
) -> Result:
    left = free_gradient(coef, grad, lower)
    gap = duality_gap(problem, grad, coef - lower)
    done = largest(left) <= tol * problem.scale or at_rounding(gap, value)
    done = done or (message == STUCK and is_cancelled(problem, coef, left, tol))
    return Result(
        coef, value, left, len(log.history), done, "" if done else message, log.history, gap
    )
