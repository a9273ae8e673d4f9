"""Newton's method: it starts on a sample and keeps a Hessian for as long as it serves.

The problem is first solved on a sample of its rows, where a fit is cheap, so that the whole data
are read only a few times. A Hessian costs several gradients: it may come from a sample too, and it
is computed anew only when a step fails to shrink the gradient fourfold. Until then it learns from
every step how the gradient changed, and close to the minimum gains more than a digit per step.
Should a sampled one fail to serve, the exact one takes over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.newton_step import Factor, KeptHessian, Patience, rounding_error
from toprank.solvers.result import (
    LEFT,
    SEPARABLE,
    STUCK,
    Callback,
    Log,
    Result,
    SmoothProblem,
    at_rounding,
    duality_gap,
    is_cancelled,
    is_near,
    largest,
)

#: A kept Hessian must shrink the gradient at least by this factor.
_CONTRACTION = 0.25
#: The same for one that was taken from a sample of the rows.
_SAMPLED_CONTRACTION = 0.5
#: A sampled Hessian that does no better than this is replaced by the exact one.
_FAILURE = 0.8
#: Steps by close estimates that may fail before the exact Hessian takes over for good.
_FAILURES = 10
_SUFFICIENT_DECREASE = 1e-4
#: How far the value of all rows may lie above that of a sample, in units of the scale, and how
#: often what the sample leads to is halved for it.
_FAR_ABOVE, _HALVINGS = 0.1, 10
#: Steps that may bring neither a lower value nor a smaller gradient.
_PATIENCE = 10
#: Damping, relative to the largest curvature seen along each coordinate: the first, the least
#: that is kept up, and the most that is tried.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-4, 1e-7, 1e12


def newton(
    problem: SmoothProblem,
    start: FloatArray,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
    contraction: float = _CONTRACTION,
    leaves: Callable[[int, float], bool] | None = None,
) -> Result:
    """Minimise until the largest gradient entry is at most tol times the problem's scale.

    A ``warm`` start is near the minimum already; no sample of the rows knows better. A Hessian is
    kept while it shrinks the gradient by the factor ``contraction``. ``leaves`` says of an
    iteration and a value whether another way to the minimum is to be taken from there.
    """
    log = Log(callback)
    coef, about = (start, np.inf) if warm else _coarse_start(problem, start, max_iter, tol)
    coef, value, grad = _halve_if_far(problem, coef, about + _FAR_ABOVE * problem.scale)
    size, enough = largest(grad), tol * problem.scale
    hessian: KeptHessian | None = None
    fresh = exact = False
    patience = Patience(value, size, _PATIENCE)
    damping, fallback = _Damping(problem.size), _ExactFallback(problem.close_estimates)
    message = f"no convergence in {max_iter} Newton iterations"
    while len(log.history) < max_iter and size > enough:
        if hessian is None:
            found, fresh = _hessian_at(problem, coef, exact), True
            damping.see(found)
            hessian = KeptHessian(found)
        trial = damping.step(problem, coef, value, grad, size, hessian)
        if trial is None:
            if fresh and exact:
                message = STUCK
                break
            exact = exact or fresh
            hessian = None
            continue
        # a second sample at nearly the same place is no better than the first with what it learned
        wanted = contraction if exact or not problem.has_sample else _SAMPLED_CONTRACTION
        shrunk = trial.size <= wanted * size
        if fresh and trial.size > _FAILURE * size:
            exact = fallback.exact_after_failure(exact, trial.damping)
        if fresh and not coef.any() and getattr(problem, "flattens", False):
            hessian.shrink(trial.coef, trial.grad - grad)
        hessian.learn(trial.coef - coef, trial.grad - grad)
        coef, value, grad, size = trial.coef, trial.value, trial.grad, trial.size
        log.add(coef, objective=value, gradient=size, damping=trial.damping)
        fresh = False
        if trial.damping > 0 or not shrunk:
            hessian = None
        if problem.runs_away(coef):
            message = SEPARABLE
            break
        if leaves is not None and leaves(len(log.history), value):
            message = LEFT
            break
        if patience.ends(value, size):
            message = STUCK
            break
    gap = duality_gap(problem, grad)
    done = size <= enough or at_rounding(gap, value)
    if message == STUCK and not done:
        done = is_near(gap, value) or is_cancelled(problem, coef, grad, tol)
    message = "" if done else message
    return Result(coef, value, grad, len(log.history), done, message, log.history, gap)


def _hessian_at(problem: SmoothProblem, coef: FloatArray, exact: bool) -> FloatArray | Factor:
    """The Hessian, or an estimate, taken apart already where a device does that."""
    ask = None if exact else getattr(problem, "factored_hessian", None)
    found = None if ask is None else ask(coef)
    return problem.hessian(coef, exact=exact) if found is None else Factor(*found)


def _coarse_start(
    problem: SmoothProblem, start: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, float]:
    """Solve on a sample of the rows first, as exactly as a sample deserves.

    Also returns the value of the sample there, infinity where there is none.
    """
    coarse = problem.coarse()
    if coarse is None:
        return start, np.inf
    reached = newton(coarse, start, max_iter=max_iter, tol=max(tol, coarse.noise))
    del coarse
    problem.release_sample()
    return reached.coef, reached.value


def _halve_if_far(
    problem: SmoothProblem, coef: FloatArray, enough: float
) -> tuple[FloatArray, float, FloatArray]:
    """Halve coefficients for as long as the value falls and is not low enough.

    Where tails are heavy a sample lacks the rows that count, and leads to where they lie high.
    """
    value, grad = problem.value_grad(coef)
    for _ in range(_HALVINGS):
        if not value > enough:
            break
        lower, other = problem.value_grad(0.5 * coef)
        if not lower < value:
            break
        coef, value, grad = 0.5 * coef, lower, other
    return coef, value, grad


class _ExactFallback:
    """Decides, after steps that fail, when the exact Hessian replaces an estimate.

    A close estimate is seldom the cause where the step had to be damped, or where the exact Hessian
    does no better: the point is far from the minimum then. After many such steps the exact Hessian
    is used all the same.
    """

    def __init__(self, close: bool):
        self.failures_left = _FAILURES if close else 0
        self.exact_failed = False

    def exact_after_failure(self, exact: bool, damping: float) -> bool:
        """Return whether the next Hessian is to be exact."""
        if self.failures_left == 0:
            return True
        self.failures_left -= 1
        self.exact_failed = self.exact_failed or exact
        return not self.exact_failed and damping == 0


class _Trial:
    def __init__(self, problem: SmoothProblem, coef: FloatArray, damping: float):
        self.coef = coef
        self.damping = damping
        self.value, self.grad = problem.value_grad(coef)
        self.size = largest(self.grad)


class _Damping:
    """Levenberg's remedy: where the quadratic model overshoots, make it rounder and try again.

    A single flat direction must not shorten the whole step, so the damping adds to each
    coordinate a share of the largest curvature seen along it.
    """

    def __init__(self, size: int):
        self.curvature = np.zeros(size)
        self.amount = 0.0

    def see(self, hessian: FloatArray | Factor) -> None:
        self.curvature = np.maximum(self.curvature, hessian.diagonal())

    def step(
        self,
        problem: SmoothProblem,
        coef: FloatArray,
        value: float,
        grad: FloatArray,
        size: float,
        hessian: KeptHessian,
    ) -> _Trial | None:
        """Return the first trial point that lowers the objective enough; None if none does."""
        rounding = rounding_error(value)
        while self.amount <= _MOST_DAMPING:
            damping = self.amount * self.curvature if self.amount else None
            direction = hessian.solve(-grad, damping)
            slope = float(grad @ direction)
            if not np.isfinite(slope) or slope >= 0:
                break
            trial = _Trial(problem, coef + direction, self.amount)
            rise = trial.value - value
            # below rounding the values say nothing; the gradients still do
            idle = abs(rise) <= rounding and trial.size < size
            if rise <= _SUFFICIENT_DECREASE * slope or idle:
                self._ease(rise / slope)
                return trial
            self.amount = max(10.0 * self.amount, _FIRST_DAMPING)
        self.amount = 0.0
        return None

    def _ease(self, gain: float) -> None:
        """Damp less where the model, which promises half the slope, was right."""
        if gain > 0.4:
            self.amount *= 0.1
        if self.amount < _LEAST_DAMPING:
            self.amount = 0.0
