"""Minimisers under lower bounds, such as coefficients that may not be negative.

A coefficient at its bound whose slope would push it further is held there; the others move as in
the free problem: by Newton's method, by SciPy's L-BFGS-B, or one at a time. Where there are fewer
rows than columns, Newton's systems are of the size of the rows. A point is the minimum exactly
where the slopes of the free coefficients vanish and those at a bound point outwards (Karush, Kuhn
and Tucker): that residual is what the tolerance is about.

With a penalty the objective lies, for every y within the bounds, above

    F(x) - g'(x - y) + sum_j penalty_j (x_j - y_j)^2 / 2,

whose minimum over y is known coordinate by coordinate, which bounds F(x) - min F.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from toprank._numerics import FloatArray
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import Continued, lbfgs
from toprank.solvers.newton_step import rounding_error, solve_step
from toprank.solvers.result import (
    LEFT,
    SEPARABLE,
    STUCK,
    Callback,
    Curved,
    Log,
    Problem,
    Result,
    SmoothProblem,
    WideProblem,
    at_rounding,
    duality_gap,
    is_cancelled,
    largest,
)

_SUFFICIENT_DECREASE = 1e-4
#: Damping relative to each coordinate's curvature: the first, the least kept, the most tried.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-4, 1e-7, 1e12
#: Iterations of L-BFGS before Newton's, where systems are of the size of the rows.
_BEFORE_ROWS = 200
#: The same from a minimum for a price that is less steep: prices move it more than penalties do.
_BEFORE_ROWS_NEAR = 30
#: Gradients this small are near enough to a minimum for Newton's method to end the run.
_NEAR = 1e-2
#: Runs of L-BFGS-B, each from where the last one ended with a memory that is empty.
_RUNS = 20


def bounded(minimiser: object, lower: FloatArray) -> Callable[..., Result]:
    """Return the solver of the same name for coefficients of at least ``lower``."""
    if minimiser is coordinate:
        return partial(coordinate, lower=lower)
    return partial(bounded_lbfgs if minimiser is lbfgs else bounded_newton, lower=lower)


def after_gentler_price(minimiser: Callable[..., Result]) -> Callable[..., Result]:
    """Return the solver for warm starts from the minimum for a price that is less steep."""
    if getattr(minimiser, "func", None) is not bounded_lbfgs:
        return minimiser
    return partial(minimiser, first=_BEFORE_ROWS_NEAR)


def free_gradient(coef: FloatArray, grad: FloatArray, lower: FloatArray) -> FloatArray:
    """Return the gradient, zero where a bound holds the coefficient against it."""
    return np.where((coef <= lower) & (grad > 0), 0.0, grad)


def bounded_newton(
    problem: Problem,
    start: FloatArray,
    *,
    lower: FloatArray,
    max_iter: int = 200,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
    leaves: Callable[[int, float], bool] | None = None,
    log: Log | None = None,
) -> Result:
    """Newton's method among the coefficients that no bound holds.

    ``leaves`` says of an iteration and a value whether another way to the minimum is to be taken
    from there. ``log`` holds the iterations of another solver that led to the start.
    """
    log = Log(callback) if log is None else log
    before = len(log.history)
    kind = "" if before else "Newton "
    coef = np.maximum(start, lower)
    coarse = None if warm else problem.coarse()
    if coarse is not None:
        loose = max(tol, coarse.noise)
        coef = bounded_newton(coarse, coef, lower=lower, max_iter=max_iter, tol=loose).coef
    value, grad = problem.value_grad(coef)
    damping, message = 0.0, f"no convergence in {max_iter} {kind}iterations"
    while largest(free_gradient(coef, grad, lower)) > tol * problem.scale:
        if len(log.history) >= max_iter:
            break
        bend = _bend_at(problem, coef)
        found = _bounded_step(problem, coef, value, grad, bend, lower, damping)
        if found is None:
            message = STUCK
            break
        coef, value, grad, damping = found
        log.add(coef, objective=value, gradient=largest(free_gradient(coef, grad, lower)))
        if problem.runs_away(coef):
            message = SEPARABLE
            break
        if leaves is not None and leaves(len(log.history) - before, value):
            message = LEFT
            break
    return _finish(problem, coef, value, grad, lower, tol, log, message)


class _Bend(Protocol):
    """A Hessian H, for systems of some of its rows and columns."""

    @property
    def diagonal(self) -> FloatArray: ...

    def times(self, v: FloatArray) -> FloatArray:
        """Return H @ v."""

    def solve(self, target: FloatArray, moving: NDArray[np.bool_], extra: FloatArray) -> FloatArray:
        """Solve for the coordinates that move, others at zero; ``extra`` is on the diagonal."""


@dataclass(frozen=True)
class _Whole:
    hessian: FloatArray

    @property
    def diagonal(self) -> FloatArray:
        return np.maximum(np.diag(self.hessian), 0.0)

    def times(self, v: FloatArray) -> FloatArray:
        return self.hessian @ v

    def solve(self, target: FloatArray, moving: NDArray[np.bool_], extra: FloatArray) -> FloatArray:
        places, found = np.flatnonzero(moving), np.zeros_like(target)
        inner = self.hessian[np.ix_(places, places)] + np.diag(extra[places])
        found[places] = solve_step(inner, target[places])
        return found


@dataclass(frozen=True)
class _ByRows:
    """S'S and a diagonal: systems are of the size of the rows (Woodbury)."""

    curved: Curved
    rest: FloatArray
    diagonal: FloatArray

    def times(self, v: FloatArray) -> FloatArray:
        return self.curved.adjoint(self.curved.times(v)) + self.rest * v

    def solve(self, target: FloatArray, moving: NDArray[np.bool_], extra: FloatArray) -> FloatArray:
        inverse = np.where(moving, 1.0 / (self.rest + extra), 0.0)
        inner = self.curved.gram(np.sqrt(inverse))
        inner[np.diag_indices(len(inner))] += 1.0
        seen = solve_step(inner, self.curved.times(inverse * target))
        return inverse * (target - self.curved.adjoint(seen))


def _bend_at(problem: Problem, coef: FloatArray) -> _Bend:
    if not problem.fewer_rows:
        return _Whole(problem.hessian(coef))
    wide: WideProblem = problem  # type: ignore[assignment]
    curved = wide.curved_rows(coef, exact=True)
    if curved is None:  # no finite curvature
        return _Whole(problem.hessian(coef))
    largest_curvature = float(np.sum(curved.root**2)) / problem.column_scale() ** 2
    return _ByRows(curved, curved.rest + problem.penalty, largest_curvature)


def _bounded_step(
    problem: SmoothProblem,
    coef: FloatArray,
    value: float,
    grad: FloatArray,
    bend: _Bend,
    lower: FloatArray,
    damping: float,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """Take the first damped step that lowers the objective enough; None if none does."""
    free = ~((coef <= lower) & (grad > 0))
    curvature = bend.diagonal
    residual = largest(free_gradient(coef, grad, lower))
    while damping <= _MOST_DAMPING:
        # without damping no zero meets an infinite curvature
        extra = damping * curvature if damping else np.zeros_like(curvature)
        trial = _projected(coef, grad, bend, free, lower, extra)
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
    bend: _Bend,
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
        held = trial - coef
        pulled = grad + bend.times(held) if np.any(held) else grad
        wanted = coef + bend.solve(-pulled, moving, extra)
        crossing = moving & (wanted < lower)
        if not np.any(crossing):
            trial[moving] = wanted[moving]
            break
        trial[crossing] = lower[crossing]
        moving &= ~crossing
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
    leaves: Callable[[int, float], bool] | None = None,
    first: int = 0,
) -> Result:
    """SciPy's L-BFGS-B with the bounds it was made for, in units of the columns' spread.

    Where there are fewer rows than columns, Newton's method goes on after some iterations,
    ``first`` of them from a warm start: its systems are of the size of the rows there.
    """
    log = Log(callback)
    unit = problem.column_scale() / np.sqrt(problem.scale)
    coef = np.maximum(start, lower)
    value, grad = problem.value_grad(coef)
    message = f"no convergence in {max_iter} L-BFGS iterations"
    most = max_iter
    if problem.fewer_rows:
        most = min(max_iter, first if warm else _BEFORE_ROWS)
    for _ in range(_RUNS):
        run = _Run(problem, coef, value, grad, lower, tol, log)
        room = most - len(log.history)
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
    room = max_iter - len(log.history)
    if problem.fewer_rows and room > 0 and not run.done and message != SEPARABLE:
        near = warm or run.residual <= _NEAR * problem.scale
        if near or leaves is None or not leaves(len(log.history), value):
            return bounded_newton(
                problem,
                coef,
                lower=lower,
                max_iter=max_iter,
                tol=tol,
                warm=True,
                leaves=leaves,
                log=log,
            )
        message = LEFT
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
