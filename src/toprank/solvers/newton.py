"""Newton's method that starts on a sample and keeps a Hessian for as long as it serves.

The problem is first solved on a sample of its rows, where a fit is cheap, so that the whole
data are read only a few times. A Hessian costs several gradients: it may come from a sample
too, and it is computed anew only when a step fails to shrink the gradient fourfold. Close
to the minimum a stale Hessian still gains a digit a step. Should a sampled one fail to
serve, the exact one takes over.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from toprank._numerics import FloatArray
from toprank.solvers.result import (
    SEPARABLE,
    Callback,
    Log,
    Problem,
    Result,
    duality_gap,
    largest,
)

#: A kept Hessian must shrink the gradient at least by this factor.
_CONTRACTION = 0.25
#: A sampled Hessian that does no better than this is replaced by the exact one.
_FAILURE = 0.8
_SUFFICIENT_DECREASE = 1e-4
_HALVINGS = 60


def newton(
    problem: Problem,
    start: FloatArray,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
) -> Result:
    """Minimise until the largest gradient entry is at most tol times the problem's scale.

    A ``warm`` start is near the minimum already; no sample of the rows knows better.
    """
    log = Log(callback)
    coef = start if warm else _coarse_start(problem, start, max_iter, tol)
    value, grad = problem.value_grad(coef)
    hessian, fresh, exact = None, False, False
    message = f"no convergence in {max_iter} Newton iterations"
    while len(log.history) < max_iter and largest(grad) > tol * problem.scale:
        if hessian is None:
            hessian, fresh = problem.hessian(coef, exact=exact), True
        direction = _solve(hessian, -grad)
        trial = _line_search(problem, coef, value, grad, direction)
        if trial is None:
            if fresh and exact:
                message = "no further decrease is possible in floating point"
                break
            exact = exact or fresh
            hessian = None
            continue
        shrunk = largest(trial.grad) <= _CONTRACTION * largest(grad)
        exact = exact or (fresh and largest(trial.grad) > _FAILURE * largest(grad))
        coef, value, grad = trial.coef, trial.value, trial.grad
        log.add(objective=value, gradient=largest(grad), step=trial.step)
        fresh = False
        if trial.step < 1.0 or not shrunk:
            hessian = None
        if problem.runs_away(coef):
            message = SEPARABLE
            break
    converged = largest(grad) <= tol * problem.scale
    return Result(
        coef,
        value,
        grad,
        len(log.history),
        converged,
        "" if converged else message,
        log.history,
        duality_gap(problem, grad),
    )


def _coarse_start(problem: Problem, start: FloatArray, max_iter: int, tol: float) -> FloatArray:
    """Solve on a sample of the rows first, as exactly as a sample deserves."""
    coarse = problem.coarse()
    if coarse is None:
        return start
    noise = 0.1 / np.sqrt(coarse.source.n_rows)
    return newton(coarse, start, max_iter=max_iter, tol=max(tol, noise)).coef


class _Trial:
    def __init__(self, problem: Problem, coef: FloatArray, step: float):
        self.coef = coef
        self.step = step
        self.value, self.grad = problem.value_grad(coef)


def _line_search(
    problem: Problem, coef: FloatArray, value: float, grad: FloatArray, direction: FloatArray
) -> _Trial | None:
    """Shorten the step until the objective falls enough; None if it never does."""
    slope = float(grad @ direction)
    if not np.isfinite(slope) or slope >= 0:
        return None
    rounding = 8 * np.finfo(np.float64).eps * max(1.0, abs(value))
    step = 1.0
    for _ in range(_HALVINGS):
        trial = _Trial(problem, coef + step * direction, step)
        rise = trial.value - value
        if rise <= _SUFFICIENT_DECREASE * step * slope:
            return trial
        # below rounding the values say nothing; the gradients still do
        if abs(rise) <= rounding and largest(trial.grad) < largest(grad):
            return trial
        step *= _shrinkage(rise, slope * step)
    return None


def _shrinkage(rise: float, slope: float) -> float:
    """Where the parabola through the two values and the first slope has its minimum."""
    if not np.isfinite(rise):
        return 0.1
    return float(np.clip(-0.5 * slope / max(rise - slope, 1e-300), 0.1, 0.5))


def _solve(hessian: FloatArray, target: FloatArray) -> FloatArray:
    """Solve H x = target in units that make the diagonal one; least squares if H is singular."""
    if not np.all(np.isfinite(hessian)):  # LAPACK may search for ever among infinities
        return np.full_like(target, np.nan)
    diagonal = np.diag(hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian * np.outer(scale, scale)
    try:
        factor = linalg.cho_factor(scaled, check_finite=False)
        if np.min(np.abs(np.diag(factor[0]))) < 1e-7:
            raise linalg.LinAlgError("nearly singular")
        return scale * linalg.cho_solve(factor, scale * target, check_finite=False)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(scaled, check_finite=False)
        keep = values > 1e-13 * max(1.0, float(values[-1]))
        inverse = np.where(keep, 1.0 / np.where(keep, values, 1.0), 0.0)
        return scale * (vectors @ (inverse * (vectors.T @ (scale * target))))
