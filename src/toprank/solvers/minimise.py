"""Newton's method, and the paths that lead it and other solvers to hard problems.

Newton's method starts on a sample and keeps a Hessian for as long as it serves. The problem is
first solved on a sample of its rows, where a fit is cheap, so that the whole data are read only a
few times. A Hessian costs several gradients: it may come from a sample too, and it is computed
anew only when a step fails to shrink the gradient fourfold. Until then it learns from every step
how the gradient changed, and close to the minimum gains more than a digit per step. Should a
sampled one fail to serve, the exact one takes over.

Objectives with corners, and very steep ones, are reached through a path of easier ones. An
objective that is not smooth (hinge, max price) is approached from below: each problem on the path
is smooth, lies under the objective F and starts where the last one ended. With F_s the smooth one
and alpha > 0,

    F(coef) - min F  <=  [F(coef) - F_s(coef)] + |grad F_s|^2 / (2 alpha)

is a certificate, and the path ends when it is small enough. For the max price F - F_s is the
paper's limit p -> inf with gap log(K)/p - [LSE(p f)/p - max f]. There the weights of the outer rows
in F_s bound the minimum from below more sharply (`Problem.bound_by`). Where rows are wide, so that
a level takes dozens of passes, or many and nothing is to be learned from the highest, the best of
these bounds is kept, and the path is left for the point it leads to once that is known to be close.

Where the maximum can be told apart from the loss (``problem.peaked``), Newton's method takes it
as it is, and a path is walked for the corners of the loss alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.bounded import bounded
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import gradient_leg, lbfgs
from toprank.solvers.max_price import newton_max
from toprank.solvers.newton_step import KeptHessian, rounding_error
from toprank.solvers.result import (
    SEPARABLE,
    STUCK,
    Callback,
    Log,
    Result,
    SmoothProblem,
    at_rounding,
    duality_gap,
    is_cancelled,
    largest,
)

if TYPE_CHECKING:
    from toprank.solvers.result import Problem

Minimiser = Callable[..., Result]

#: The smooth problems' levels shrink by this factor, so many times.
_FACTOR = 0.25
_LEVELS = 13
#: The least share of the coefficients of a level that stands for those of the limit.
_SHORTEST = 1 / 32
#: After so few iterations a level is left out.
_EASY = 3
#: Levels among which a fixed number of coordinate rounds is shared out.
_ROUND_LEVELS = (1 / 8, 1 / 64, 1 / 512, 1 / 4096)
#: The certified gap that ends the path, relative to max(1, |F|), and the iterations after it.
_GAP = 1e-4
_POLISH = 200
#: Gradients this small are near enough to a minimum for Newton's method.
_NEAR = 1e-2
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
        path = _narrow(problem, problem.smoothed, direct.coef, minimiser, warm=True, **settings)
        return min(direct, path, key=lambda result: result.value)
    if not problem.smooth:
        return _narrow(problem, problem.smoothed, start, minimiser, warm=warm, **settings)
    return _solve(problem, start, minimiser, warm=warm, **settings)


def _solve(
    problem: Any,
    start: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    warm: bool,
) -> Result:
    """Solve a smooth problem: near by, from gradients alone, or along gentler prices."""
    settings: dict[str, Any] = {"tol": tol, "callback": callback}
    far = not (warm or _is_boosting(minimiser))
    if not far or (problem.gradients_first and minimiser is lbfgs):
        return minimiser(problem, start, warm=warm, max_iter=max_iter, **settings)
    if not (problem.gradients_first and minimiser is newton):
        start = _walk(problem, start, minimiser, max_iter, tol)
        return minimiser(problem, start, warm=warm, max_iter=max_iter, **settings)
    log = Log(callback)
    reached = gradient_leg(problem, start, max_iter, tol, log)
    if largest(problem.value_grad(reached)[1]) > max(tol, _NEAR) * problem.scale:
        others = reached, _walk(problem, start, minimiser, max_iter, tol)
        reached = min(others, key=lambda coef: float(problem.value(coef)))
    left = max(1, max_iter - len(log.history))
    result = minimiser(problem, reached, warm=True, max_iter=left, **settings)
    result.history = log.history + result.history
    result.n_iter = len(result.history)
    return result


def _to_the_peak(problem: Any, start: FloatArray, settings: dict[str, Any]) -> Result:
    """Solve with the maximum as it is; smooth the loss on the way only where it has corners."""
    if problem.smooth_in_loss(1.0) is problem:
        return newton_max(problem, start, **settings)
    return _narrow(problem, problem.smooth_in_loss, start, newton_max, warm=False, **settings)


def _walk(
    problem: Problem, coef: FloatArray, minimiser: Minimiser, max_iter: int, tol: float
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
    history: list[dict[str, object]] = []
    best: Result | None = None
    levels, rounds = _path(problem, minimiser, max_iter)
    # the corners of a loss are walked exactly from the first level on, those of a maximum are not
    steep = problem.first_level < 1.0 and not _is_boosting(minimiser)
    ladder = _Ladder(problem, tol, not steep)
    passed = [(0.0, np.zeros_like(coef))] if steep else []
    easy, bound = False, -np.inf
    for level in levels:
        if easy:  # then every other level will do
            easy = False
            continue
        budget = min(rounds, max_iter - len(history))
        if budget <= 0:
            break
        smooth, inner = smoothed(level), ladder.tolerance
        led = len(passed) > 1 and not _is_boosting(minimiser)
        if led:
            coef = _look_ahead(smooth, level, passed)
        result = _solve(
            smooth, coef, minimiser, max_iter=budget, tol=inner, callback=callback, warm=warm
        )
        result = _certify(problem, result)
        if _leaves_early(problem, result, minimiser):
            bound = max(bound, problem.bound_by(smooth, result.coef))
            result.gap = min(result.gap, result.value - bound)
        coef, warm = result.coef, True
        passed.append((level, coef))
        ladder.come_down(result.above)
        easy = led and len(result.history) <= _EASY and level > levels[-2]
        history += result.history
        close = _is_close(problem, result, tol)
        if not close and bound > -np.inf:
            ahead = _end_of_path(problem, result, passed, bound, tol)
            if ahead is not None:
                best, close = ahead, True
                break
        if close and inner > tol and not _is_boosting(minimiser):
            polished = minimiser(smooth, coef, max_iter=_POLISH, tol=tol, warm=True)
            result = _certify(problem, polished)
            result.gap = min(result.gap, result.value - bound)
            history += result.history
        # without a penalty every gap is infinite, and the value decides
        if best is None or close or (result.gap, result.value) < (best.gap, best.value):
            best = result
        if close or result.message == SEPARABLE:
            break
    return _close_result(best, history, close)


class _Ladder:
    """How exactly the problem of each level is solved."""

    def __init__(self, problem: Problem, tol: float, exact: bool):
        # at the end a tenth of the gap may come from the gradient, shared by all its entries
        self.tolerance = self.last = max(tol, _share_of_gap(problem, 0.1 * _GAP))
        self.problem = problem
        self.exact = exact
        self.come_down(max(1.0, problem.first_level))

    def come_down(self, above: float) -> None:
        """Go to the next level, whose objective is a share of that much above its smooth one.

        A minimum on the way need not be known better than it differs from the next.
        """
        if not self.exact:
            self.tolerance = max(self.last, _share_of_gap(self.problem, _FACTOR * above))


def _share_of_gap(problem: Problem, gap: float) -> float:
    """The entries of a gradient, all alike, that certify a gap."""
    return float(np.sqrt(2.0 * max(gap, 0.0) * problem.alpha / problem.size))


def _look_ahead(smooth: Any, level: float, passed: list[tuple[float, FloatArray]]) -> FloatArray:
    """Return the point where the line through the last two minima leads, if it is the better start.

    In the level the minima lie nearly on a line; where a maximum leaves nothing to learn, they
    shrink towards zero in proportion to it, so that zero at level zero is the first of them.
    """
    ahead, coef = _line_through(passed[-2:], level), passed[-1][1]
    here = smooth.value_grad(coef)[0]
    return ahead if smooth.value_grad(ahead)[0] < here else coef


def _leaves_early(problem: Problem, result: Result, minimiser: Minimiser) -> bool:
    """Whether a bound may end the path: levels take long, or there is nothing left to learn.

    Newton's method takes few steps per level, and ends at a minimum that is known more exactly.
    """
    if minimiser is newton and problem.has_sample:
        return result.value >= problem.value(np.zeros_like(result.coef))
    return minimiser is lbfgs


def _end_of_path(
    problem: Problem,
    result: Result,
    passed: list[tuple[float, FloatArray]],
    bound: float,
    tol: float,
) -> Result | None:
    """Return the point where the path leads, if it is known to be close to the minimum already.

    A lower bound comes nearer to the minimum than the minima of the smooth problems do. Where
    they fall below what zero coefficients reach, the line through the last two of them is
    followed to level zero. Where they do not, there is nothing to learn at the limit, and they
    shrink towards zero: the last one is shortened, which keeps its ranking.
    """
    zero = problem.value(np.zeros_like(result.coef))
    target = _gap_target(problem, result.value, tol)
    if result.value < zero:
        coef = _line_through(passed[-2:], 0.0) if len(passed) > 2 else result.coef
    else:  # by convexity the value of a share lies below the same share of the values
        share = (0.9 * target + bound - zero) / max(result.value - zero, np.finfo(float).tiny)
        coef = min(share, 1.0) * result.coef if share >= _SHORTEST else result.coef
    if coef is result.coef:
        return None
    value = problem.value(coef)
    learned = result.value >= zero or value < zero - target
    if not (learned and value - bound <= target):
        return None
    return replace(result, coef=coef, value=value, gap=value - bound)


def _line_through(points: list[tuple[float, FloatArray]], level: float) -> FloatArray:
    """The point of a level on the line through two others."""
    (before, older), (last, coef) = points
    ahead: FloatArray = coef + (coef - older) * ((level - last) / (last - before))
    return ahead


def _certify(problem: Problem, result: Result) -> Result:
    """Turn a result for a smooth problem into one for the problem above it."""
    value = problem.value(result.coef)
    result.above = value - result.value
    result.gap, result.value = result.above + result.gap, value
    return result


def _is_close(problem: Problem, result: Result, tol: float) -> bool:
    """Whether the gap is small enough; without a penalty, whether each smooth problem is solved."""
    target = _gap_target(problem, result.value, tol)
    return result.gap <= target or (result.converged and result.above <= target)


def _gap_target(problem: Problem, value: float, tol: float) -> float:
    """The gap at which the path ends."""
    return max(_GAP, 100.0 * tol) * max(problem.scale, abs(value))


def _path(problem: Problem, minimiser: Minimiser, max_iter: int) -> tuple[list[float], int]:
    """The levels to pass through, and the most iterations to spend on each."""
    if _is_boosting(minimiser):  # a fixed number of rounds, shared out
        return list(_ROUND_LEVELS), max(1, max_iter // len(_ROUND_LEVELS))
    levels = [_FACTOR**k for k in range(_LEVELS)]
    return [level for level in levels if level <= problem.first_level], max_iter


def _is_boosting(minimiser: Minimiser) -> bool:
    return getattr(minimiser, "func", minimiser) is coordinate


def _close_result(best: Any, history: list[dict[str, object]], close: bool) -> Result:
    result: Result = best
    result.history, result.n_iter = history, len(history)
    if result.message != SEPARABLE:
        result.converged = close
        result.message = "" if close else f"the certified gap is still {result.gap:.2g}"
    return result


#: A kept Hessian must shrink the gradient at least by this factor.
_CONTRACTION = 0.25
#: The same for one that was taken from a sample of the rows.
_SAMPLED_CONTRACTION = 0.5
#: A sampled Hessian that does no better than this is replaced by the exact one.
_FAILURE = 0.8
_SUFFICIENT_DECREASE = 1e-4
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
) -> Result:
    """Minimise until the largest gradient entry is at most tol times the problem's scale.

    A ``warm`` start is near the minimum already; no sample of the rows knows better.
    """
    log = Log(callback)
    coef = start if warm else _coarse_start(problem, start, max_iter, tol)
    value, grad = problem.value_grad(coef)
    size, enough = largest(grad), tol * problem.scale
    hessian: KeptHessian | None = None
    fresh = exact = False
    patience = _Patience(value, size)
    damping = _Damping(problem.size)
    message = f"no convergence in {max_iter} Newton iterations"
    while len(log.history) < max_iter and size > enough:
        if hessian is None:
            found, fresh = problem.hessian(coef, exact=exact), True
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
        wanted = _CONTRACTION if exact or not problem.has_sample else _SAMPLED_CONTRACTION
        shrunk = trial.size <= wanted * size
        exact = exact or (fresh and trial.size > _FAILURE * size)
        hessian.learn(trial.coef - coef, trial.grad - grad)
        coef, value, grad, size = trial.coef, trial.value, trial.grad, trial.size
        log.add(coef, objective=value, gradient=size, damping=trial.damping)
        fresh = False
        if trial.damping > 0 or not shrunk:
            hessian = None
        if problem.runs_away(coef):
            message = SEPARABLE
            break
        if patience.ends(value, size):
            message = STUCK
            break
    gap = duality_gap(problem, grad)
    done = size <= enough or at_rounding(gap, value)
    done = done or (message == STUCK and is_cancelled(problem, coef, grad, tol))
    message = "" if done else message
    return Result(coef, value, grad, len(log.history), done, message, log.history, gap)


def _coarse_start(
    problem: SmoothProblem, start: FloatArray, max_iter: int, tol: float
) -> FloatArray:
    """Solve on a sample of the rows first, as exactly as a sample deserves."""
    coarse = problem.coarse()
    if coarse is None:
        return start
    noise = 0.1 / np.sqrt(coarse.n_rows)
    reached = newton(coarse, start, max_iter=max_iter, tol=max(tol, noise)).coef
    del coarse
    problem.release_sample()
    return reached


class _Patience:
    """Ends a walk in circles among points that differ by rounding alone."""

    def __init__(self, value: float, gradient: float):
        self.best = value, gradient
        self.idle = 0

    def ends(self, value: float, gradient: float) -> bool:
        """Whether neither the value nor the gradient has come down for long."""
        lower = value < self.best[0] - rounding_error(self.best[0]) or gradient < self.best[1]
        self.best = min(self.best[0], value), min(self.best[1], gradient)
        self.idle = 0 if lower else self.idle + 1
        return self.idle >= _PATIENCE


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

    def see(self, hessian: FloatArray) -> None:
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
