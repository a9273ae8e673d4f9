"""The objective of a plug-in ranker: a loss of each row's score, not of pairs.

    F(coef, b) = (1/W) sum_i w_i l(y_i, x_i' coef + b) + (alpha/2) |coef|^2

with W the total weight and a free intercept b that is not penalised. Solvers see one vector, the
intercept last; X is read once per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.source import Block
from toprank.losses.proper import ProperLoss
from toprank.objective.data import LabelledData
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.problem import TwoClassProblem
from toprank.objective.risk import PointwiseTask
from toprank.objective.sums import RowSums

if TYPE_CHECKING:
    from toprank.blocks.tensors import OnDevice

#: Steps of the intercept alone, at the most, and the slope at which it is settled: what is left
#: to win is of the order of its square.
_INTERCEPT_STEPS = 50
_SETTLED = 1e-12
#: The step of a difference quotient, where the loss has no curvature to give.
_STEP = 1e-6


@dataclass(frozen=True)
class Pointwise:
    """The loss of every row at coefficients with the intercept last.

    Weights are divided by ``total``, so that only their ratios matter.
    """

    view: View
    loss: ProperLoss
    order: int = 1
    total: float = 1.0

    def local(self, block: Block, coef: FloatArray) -> RowSums:
        opened = open_block(block, self.view)
        total: RowSums | None = None
        # steps that go too far overflow and are taken back; each thread must be told anew
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, tile, scores in opened.scored_tiles(coef[:-1]):
                v, sign, weight = _present(opened, rows, scores + coef[-1], self.total)
                value, slope = self.loss.value_slope(sign, v)
                bend = None
                if self.order == 2:
                    bend = _times(weight, self.loss.derivative(2, sign, v))
                value = np.sum(_times(weight, value))
                sums = RowSums.of(tile, float(value), _times(weight, slope), bend)
                total = sums if total is None else total.merge(sums)
        return total or RowSums.empty(opened.design.n_features, self.order)

    def merge(self, left: RowSums, right: RowSums) -> RowSums:
        merged: RowSums = left.merge(right)
        return merged


@dataclass(frozen=True)
class InterceptSlopes:
    """Slope and curvature of the loss in the intercept alone; the state is (coef, intercept)."""

    view: View
    loss: ProperLoss
    total: float = 1.0

    def local(self, block: Block, state: tuple[FloatArray, float]) -> FloatArray:
        coef, intercept = state
        opened = open_block(block, self.view)
        with np.errstate(over="ignore", invalid="ignore"):
            v = opened.scores(coef) + intercept
            v, sign, weight = _present(opened, slice(None), v, self.total)
            orders = (1, 2) if self.loss.has_curvature else (1,)
            sums = [np.sum(_times(weight, self.loss.derivative(k, sign, v))) for k in orders]
        return np.array(sums, dtype=np.float64)

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right


def _times(weight: object, values: Any) -> Any:
    return values if weight is None else weight * values


def _present(
    opened: OpenBlock, rows: slice, v: OnDevice | FloatArray, total: float
) -> tuple[Any, Any, Any]:
    """Scores, labels as signs, and weights of some rows, relative to their total.

    Scores of absent rows are set to zero: no weight makes up for an infinite loss.
    """
    sign = np.where(opened.positive[rows], 1.0, -1.0)
    if opened.weight is None:
        return v, sign, None
    weight = opened.weight[rows]
    v[weight == 0] = 0.0
    return v, sign, weight / total


class PointwiseProblem(TwoClassProblem):
    """A convex function of the coefficients and the intercept, with the data behind it."""

    def __init__(self, data: LabelledData, task: PointwiseTask):
        super().__init__(data, task)
        self.size = data.n_features + 1
        self.penalty: FloatArray = np.append(np.full(data.n_features, self.alpha), 0.0)
        total = sum(data.totals)
        #: What weights are divided by in every pass, and what is left to divide sums by.
        self._of_weights: float = total if data.weighted else 1.0
        self._total: float = 1.0 if data.weighted else total

    @property
    def positive_share(self) -> float:
        """The weighted share of the positives."""
        neg, pos = self.data.totals
        return pos / (neg + pos)

    def _sums(self, coef: FloatArray, order: int) -> RowSums:
        sweep = Pointwise(self.data.view, self.task.loss, order, self._of_weights)
        sums: RowSums = self._last.at(coef, order, lambda: self.data.run(sweep, coef))
        return sums

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        first = self._last.order == 0 and self.has_curvature and self.cheap_curvature
        sums = self._sums(coef, 2 if first else 1)
        return self.add_penalty(sums.value / self._total, sums.slope / self._total, coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact or self.cheap_curvature else self.coarse()
        if coarse is not None:
            estimate: FloatArray = coarse.hessian(coef)
            return estimate
        sums = self._sums(coef, 2)
        hessian = np.empty((self.size, self.size))
        hessian[:-1, :-1] = sums.second
        hessian[-1] = hessian[:, -1] = sums.bend
        hessian /= self._total
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def lighter(self) -> TwoClassProblem:
        return self.without_zeros()

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.data.scores(coef[:-1]) + coef[-1]

    def is_undetermined(self, coef: FloatArray) -> bool:
        return self.task.loss.monotone and super().is_undetermined(coef)

    def runs_away(self, coef: FloatArray) -> bool:
        unbounded = np.isinf(self.task.loss.prediction_space[1])
        return bool(self.alpha == 0 and unbounded and self.separates(coef))

    def column_scale(self) -> FloatArray:
        return np.append(super().column_scale(), 1.0)

    def settle_intercept(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients with the best intercept for them.

        With it the gradient of F is that of min over b of F(coef, b), whose every coefficient is
        penalised, so that |gradient|^2 / (2 alpha) bounds the distance to the minimum.
        """
        shift = float(coef[-1])
        slopes = self._intercept_slopes(coef)

        def curvature(b: float, at: FloatArray) -> float:
            return float(at[1] if len(at) > 1 else (slopes(b + _STEP)[0] - at[0]) / _STEP)

        now = slopes(shift)
        for _ in range(_INTERCEPT_STEPS):
            if abs(now[0]) <= _SETTLED:
                break
            bend = curvature(shift, now)
            trial = shift - float(now[0]) / bend if bend > 0 else shift
            then = slopes(trial)
            if not abs(then[0]) < abs(now[0]):
                break
            shift, now = trial, then
        return np.append(coef[:-1], shift)

    def _intercept_slopes(self, coef: FloatArray) -> Callable[[float], FloatArray]:
        """Return a function of the intercept: slope there and, if the loss has one, curvature."""
        sweep = InterceptSlopes(self.data.view, self.task.loss, self._of_weights)

        def slopes(b: float) -> FloatArray:
            sums: FloatArray = self.data.run(sweep, (coef[:-1], b))
            return sums / self._total

        return slopes

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        positive, weight = self.data.labels
        v, sign = self.scores(coef), np.where(positive, 1.0, -1.0)
        ones = np.ones(len(v)) if weight is None else weight / self._of_weights
        share = ones / self._total
        slopes = self.task.loss.derivative(1, sign, np.where(share > 0, v, 0.0))
        return np.asarray(share * slopes)
