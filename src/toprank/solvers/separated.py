"""Rows whose classes are told apart: the minimum lies far out, and a path leads there.

There an objective like log sum exp falls all along a ray, and the penalty alone ends it: scores at
the minimum grow like 1/alpha, to hundreds or thousands, while a Newton step, or the curvature that
L-BFGS has learned, serves for changes of the scores by about one. A run from zero takes hundreds of
iterations. Minima of larger penalties are near; and as functions of 1/alpha, then of 1/p, the
minima become straight lines, as the same few rows hold them. So the line through two of them leads
to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.lbfgs import ROUND_UP_TO, is_told_by_rows, lbfgs
from toprank.solvers.result import Curved, EasedProblem, Log, Problem, Result, duality_gap

#: Iterations after which a run that has passed the bound below is left: L-BFGS's, others', and
#: theirs from a warm start, which reach a minimum far out in a dozen or two, or in hundreds.
_LBFGS_PATIENCE, _PATIENCE, _WARM_PATIENCE = 30, 10, 20
#: How exactly the minima on the way are known, relative to the scale.
_ON_THE_WAY = 1e-3
#: The steepest price while the penalty comes down.
_GENTLE = 4.0
#: What a penalty is divided by, at first and at the most, and p multiplied by; iterations up to
#: which a step was easy, so that the next may be longer.
_FACTOR, _LARGEST_FACTOR, _STEEPER, _EASY = 2.0, 16.0, 2.0, 3
#: What a penalty is divided by where the curvature at the last minimum leads to the next.
_FACTOR_IF_CURVED = 4.0


def leaves(
    problem: Problem, minimiser: object, *, warm: bool = False
) -> dict[str, Callable[[int, float], bool]]:
    """Return what makes a solver leave such rows to `along_penalties`: its argument ``leaves``.

    Below ``problem.apart_below`` lie values only where the classes are told apart.
    """
    bound = problem.apart_below
    if not bound > -np.inf:
        return {}
    others = _WARM_PATIENCE if warm else _PATIENCE
    patience = _LBFGS_PATIENCE if minimiser is lbfgs else others

    def far(iteration: int, value: float) -> bool:
        return iteration >= patience and value < bound

    return {"leaves": far}


@dataclass(frozen=True)
class Minimum:
    """About where the minimum lies, for another penalty or another p.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.solvers.separated import Minimum
    >>> first, second = Minimum(1.0, 4.0, np.array([2.0])), Minimum(0.5, 4.0, np.array([3.0]))
    >>> second.along(first, 0.25, 4.0).tolist()
    [5.0]
    """

    alpha: float
    p: float
    coef: FloatArray

    def along(self, before: Minimum, alpha: float, p: float) -> FloatArray | None:
        """Return where the line through two minima leads; None where they are not on one line."""
        if self.alpha == alpha == before.alpha:
            here, there, ahead = 1 / self.p, 1 / before.p, 1 / p
        elif self.p == p == before.p:
            here, there, ahead = 1 / self.alpha, 1 / before.alpha, 1 / alpha
        else:
            return None
        return self.coef + (ahead - here) / (here - there) * (self.coef - before.coef)


def along_penalties(
    problem: EasedProblem,
    minimiser: Callable[..., Result],
    *,
    max_iter: int,
    tol: float,
    log: Log,
    passed: Sequence[Minimum] = (),
    known: Sequence[FloatArray] = (),
) -> Result:
    """Minimise along penalties that come down to the problem's, then along p.

    The iterations are added to the log. ``passed`` are minima that are known, of a larger penalty
    or a smaller p, ``known`` points that may be near the problem's own.
    """
    curved = minimiser is lbfgs and _tells_curvature(problem)
    least = _FACTOR_IF_CURVED if curved else _FACTOR
    minima, factor = list(passed), least
    while True:
        alpha, p = _next(problem, minima, factor)
        last = alpha == problem.alpha and p == problem.power
        stage = problem if last else problem.eased(alpha, p)
        starts = [*_starts(minima, alpha, p), *(known if last else ())]
        curvature: dict[str, object] = {}
        if minima and curved:
            near = problem.eased(minima[-1].alpha, minima[-1].p)
            curvature["hessian"] = curvature_of(stage, near, minima[-1].coef)
        found = minimiser(
            stage,
            min(starts, key=stage.value) if starts else np.zeros(problem.size),
            warm=True,
            max_iter=max(1, max_iter - len(log.history)),
            tol=tol if last else max(tol, _ON_THE_WAY),
            callback=log.callback,
            **curvature,
        )
        log.history += found.history
        if last:
            return replace(found, history=log.history, n_iter=len(log.history))
        if len(log.history) >= max_iter:
            return _short_of(problem, found.coef, log)
        minima = [*minima[-1:], Minimum(alpha, p, found.coef)]
        easy = found.n_iter <= _EASY
        factor = min(_LARGEST_FACTOR, factor * least) if easy else least


def curvature_of(problem: Problem, near: Problem, coef: FloatArray) -> FloatArray | Curved | None:
    """Return the curvature by the rows that hold the minimum of a problem nearby, for L-BFGS.

    Where a line leads from there, one or two of them may weigh more than all others. None where
    gradients are tried first, or there are too many columns and no rows tell of them.
    """
    if not _tells_curvature(problem):
        return None
    if is_told_by_rows(problem):
        found: Curved | None = problem.curved_rows(coef, near)  # type: ignore[attr-defined]
        return found
    hessian = near.hessian(coef, exact=False)
    hessian[np.diag_indices(len(hessian))] += problem.penalty - near.penalty
    return hessian


def _tells_curvature(problem: Problem) -> bool:
    if problem.size > ROUND_UP_TO or is_told_by_rows(problem):
        return bool(problem.tells_by_rows)
    return bool(problem.has_curvature and not problem.gradients_first)


def _short_of(problem: EasedProblem, coef: FloatArray, log: Log) -> Result:
    """What is known of the problem where the iterations ended on the way to it."""
    value, gradient = problem.value_grad(coef)
    made, gap = len(log.history), duality_gap(problem, gradient)
    message = f"no convergence in {made} iterations"
    return Result(coef, value, gradient, made, False, message, log.history, gap)


def _next(problem: EasedProblem, passed: Sequence[Minimum], factor: float) -> tuple[float, float]:
    """The next penalty and p."""
    if not passed:
        return max(problem.alpha, _first_penalty(problem)), min(_GENTLE, problem.power)
    last = passed[-1]
    if last.alpha > problem.alpha:
        return max(problem.alpha, last.alpha / factor), last.p
    return problem.alpha, min(problem.power, last.p * _STEEPER)


def _first_penalty(problem: EasedProblem) -> float:
    """A penalty so large that the scores at its minimum differ by about one."""
    zero = np.zeros(problem.size)
    return float(np.ptp(problem.scores(problem.value_grad(zero)[1])))


def _starts(passed: Sequence[Minimum], alpha: float, p: float) -> list[FloatArray]:
    """Points near a minimum: the last one, drawn out, and where the line of the last two leads."""
    if not passed:
        return []
    last = passed[-1]
    found = [last.coef]
    if alpha < last.alpha:
        found.append(last.coef * (last.alpha / alpha))
    if len(passed) > 1 and (ahead := last.along(passed[-2], alpha, p)) is not None:
        found.append(ahead)
    return found
