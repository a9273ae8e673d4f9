"""The paper's boosting-style algorithm (Rudin 2009, Figure 2), one feature per round.

Each round takes the feature of largest absolute slope (step 3a; without the absolute value
a feature that should count against an item is never used) and moves its coefficient to the
minimum along it (step 3b), by a step of either sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

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

#: Without a penalty a step moves no score by more than this: beyond it the loss has vanished.
_FARTHEST = 200.0


class ScoresProblem(Problem, Protocol):
    """A problem whose scores may be moved along one column at a time."""

    @property
    def present(self) -> slice | NDArray[np.intp] | NDArray[np.bool_]:
        """The rows that count."""

    def scores(self, coef: FloatArray) -> FloatArray: ...

    def in_scores(self, scores: FloatArray) -> tuple[float, FloatArray]: ...

    def pull_back(self, in_scores: FloatArray) -> FloatArray: ...

    def column(self, feature: int) -> FloatArray: ...

    def add_penalty(
        self, value: float, grad: FloatArray, coef: FloatArray
    ) -> tuple[float, FloatArray]: ...


def coordinate(
    problem: ScoresProblem,
    start: FloatArray,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
    lower: FloatArray | None = None,
) -> Result:
    """Run max_iter rounds, fewer if every slope is within tol of zero.

    No coefficient falls below ``lower``: a step ends at the bound, and a coefficient that its
    slope would push beyond it is not chosen.
    """
    log = Log(callback)
    descent = _Descent(problem, start, lower)
    while len(log.history) < max_iter and largest(descent.slopes) > tol * problem.scale:
        before = descent.value
        feature, step = descent.round()
        log.add(descent.coef, objective=descent.value, feature=feature, step=step)
        if problem.runs_away(descent.coef):
            break
        if step == 0.0 or descent.value >= before:
            break
    converged = largest(descent.slopes) <= tol * problem.scale
    separable = problem.runs_away(descent.coef)
    return Result(
        descent.coef,
        descent.value,
        descent.slopes,
        len(log.history),
        converged,
        SEPARABLE if separable and not converged else "",
        log.history,
        duality_gap(problem, descent.grad, descent.room),
    )


class _Descent:
    """Coefficients and scores that move together, one column at a time."""

    def __init__(self, problem: ScoresProblem, start: FloatArray, lower: FloatArray | None):
        self.problem = problem
        self.lower = np.full(len(start), -np.inf) if lower is None else lower
        self.coef = np.maximum(start, self.lower)
        self.scores = problem.scores(self.coef)
        self._evaluate()

    def _evaluate(self) -> None:
        value, in_scores = self.problem.in_scores(self.scores)
        grad = self.problem.pull_back(in_scores)
        self.value, self.grad = self.problem.add_penalty(value, grad, self.coef)

    @property
    def room(self) -> FloatArray:
        """How far each coefficient may come down."""
        return self.coef - self.lower

    @property
    def slopes(self) -> FloatArray:
        """The gradient, zero where a bound holds the coefficient against it."""
        return np.where((self.room <= 0) & (self.grad > 0), 0.0, self.grad)

    def round(self) -> tuple[int, float]:
        """Move the steepest coefficient to its minimum; return (feature, step)."""
        feature = int(np.argmax(np.abs(self.slopes)))
        column = self.problem.column(feature)
        slope = self._slope_along(column, feature)
        spread = float(np.ptp(column[self.problem.present])) or 1.0
        farthest = np.inf if self.problem.alpha > 0 else _FARTHEST / spread
        step = zero_of(slope, float(self.grad[feature]), 0.25 / spread, farthest)
        step = max(step, -float(self.room[feature]))
        kept = self.coef[feature], self.scores, self.value, self.grad
        self.coef[feature] += step
        self.scores = self.scores + step * column
        self._evaluate()
        if self.value > kept[2]:  # only rounding is left to win
            self.coef[feature], self.scores, self.value, self.grad = kept
            return feature, 0.0
        return feature, step

    def _slope_along(self, column: FloatArray, feature: int) -> Callable[[float], float]:
        penalty = float(np.broadcast_to(self.problem.penalty, self.coef.shape)[feature])
        at = float(self.coef[feature])

        def slope(step: float) -> float:
            _, in_scores = self.problem.in_scores(self.scores + step * column)
            return float(in_scores @ column) + penalty * (at + step)

        return slope


def zero_of(
    slope: Callable[[float], float], at_zero: float, first: float, farthest: float
) -> float:
    """The step at which an increasing slope crosses zero; the farthest one if it never does."""
    sign = -1.0 if at_zero > 0 else 1.0
    near, far = 0.0, first
    while sign * slope(sign * far) < 0:
        if far >= farthest:
            return sign * farthest
        near, far = far, 2.0 * far
    low, high = sorted((sign * near, sign * far))
    if slope(low) > 0 or slope(high) < 0:  # rounding alone: there is no zero to be found
        return 0.0
    return float(optimize.brentq(slope, low, high, xtol=1e-14, rtol=1e-13, maxiter=200))
