"""The objective of a plug-in ranker: a loss of each row's score, not of pairs.

    F(coef, b) = (1/W) sum_i w_i l(y_i, x_i' coef + b) + (alpha/2) |coef|^2

with W the total weight and a free intercept b that is not penalised. Solvers see one vector, the
intercept last; X is read once per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import RowBlocks
from toprank.losses.proper import ProperLoss
from toprank.objective.linear import LinearProblem

#: Steps of the intercept alone, at the most, and the slope at which it is settled: what is left
#: to win is of the order of its square.
_INTERCEPT_STEPS = 50
_SETTLED = 1e-12
#: The step of a difference quotient, where the loss has no curvature to give.
_STEP = 1e-6


@dataclass(frozen=True)
class PointwiseTask:
    """What is to be minimised: labelled rows, a composite loss, a penalty."""

    intercepts: ClassVar[int] = 1  #: coefficients beyond those of the columns

    positive: Any  #: which rows are positive; None where the labels lie with the blocks
    weight: FloatArray | None
    loss: ProperLoss
    alpha: float = 0.0

    def problem(self, source: RowBlocks) -> PointwiseProblem:
        """Return the problem, in coefficients and intercept, for rows to score."""
        return PointwiseProblem(source, self)


class PointwiseProblem(LinearProblem):
    """A convex function of the coefficients and the intercept, with the data behind it."""

    task: Any

    def __init__(self, source: RowBlocks, task: PointwiseTask):
        super().__init__(source, task)  # type: ignore[arg-type]
        self.size = source.n_features + 1
        of_coef = np.broadcast_to(self.penalty, source.n_features)
        self.penalty: FloatArray = np.append(of_coef, 0.0)
        self._bind_rows()

    def _bind_rows(self) -> None:
        """Prepare what every evaluation needs of each row."""
        task = self.task
        self._sign = np.where(task.positive, 1.0, -1.0)
        weight = np.ones(self.source.n_rows) if task.weight is None else task.weight
        self._share = weight / np.sum(weight)
        self._absent = None if task.weight is None else weight == 0

    @property
    def positive_share(self) -> float:
        """The weighted share of the positives."""
        return float(np.average(self.task.positive, weights=self.task.weight))

    @property
    def smooth(self) -> bool:
        return True

    @property
    def has_curvature(self) -> bool:
        return self.task.loss.has_curvature

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        def response(rows: slice, scores: FloatArray) -> tuple[float, FloatArray]:
            v = self._present(scores + coef[-1], rows)
            value, slope = self.task.loss.value_slope(self._sign[rows], v)
            share = self._share[rows]
            return float(share @ value), share * slope

        value, grad, total = self.source.respond(coef[:-1], response)
        return self.penalised(value, np.append(grad, total), coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact else self.coarse()
        if coarse is not None:
            return coarse.hessian(coef)
        v = self._present(self.scores(coef), slice(None))
        bend = self._share * self.task.loss.derivative(2, self._sign, v)
        hessian = np.empty((self.size, self.size))
        hessian[:-1, :-1] = self.source.second_moments(bend)
        hessian[:-1, -1] = hessian[-1, :-1] = self.source.adjoint(bend)
        hessian[-1, -1] = np.sum(bend)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def value(self, coef: FloatArray) -> float:
        return self.value_grad(coef)[0]

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.source.scores(coef[:-1]) + coef[-1]

    def gentler(self, p: float) -> None:
        return None

    def undetermined(self, coef: FloatArray) -> bool:
        return self.task.loss.monotone and super().undetermined(coef)

    def runs_away(self, coef: FloatArray) -> bool:
        unbounded = np.isinf(self.task.loss.prediction_space[1])
        return bool(self.alpha == 0 and unbounded and self.separates(coef))

    def column_scale(self) -> FloatArray:
        return np.append(super().column_scale(), 1.0)

    def settled(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients with the best intercept for them.

        With it the gradient of F is that of min over b of F(coef, b), whose every coefficient is
        penalised, so that |gradient|^2 / (2 alpha) bounds the distance to the minimum.
        """
        loss, shift = self.task.loss, float(coef[-1])
        slope = self._intercept_slopes(coef)

        def curvature(b: float, at: float) -> float:
            return slope(b, 2) if loss.has_curvature else (slope(b + _STEP) - at) / _STEP

        now = slope(shift)
        for _ in range(_INTERCEPT_STEPS):
            if abs(now) <= _SETTLED:
                break
            bend = curvature(shift, now)
            trial = shift - now / bend if bend > 0 else shift
            then = slope(trial)
            if not abs(then) < abs(now):
                break
            shift, now = trial, then
        return np.append(coef[:-1], shift)

    def _intercept_slopes(self, coef: FloatArray) -> Callable[..., float]:
        """Return the derivative in the intercept b, of order one or two, as slope(b, order)."""
        scores = self.source.scores(coef[:-1])

        def slope(b: float, order: int = 1) -> float:
            v = self._present(scores + b, slice(None))
            return float(self._share @ self.task.loss.derivative(order, self._sign, v))

        return slope

    def _slopes(self, coef: FloatArray) -> FloatArray:
        v = self._present(self.scores(coef), slice(None))
        return self._share * self.task.loss.derivative(1, self._sign, v)

    def _present(self, scores: FloatArray, rows: slice) -> FloatArray:
        """Scores with those of absent rows set to zero: no weight makes up for an infinite loss."""
        if self._absent is not None:
            scores[self._absent[rows]] = 0.0
        return scores
