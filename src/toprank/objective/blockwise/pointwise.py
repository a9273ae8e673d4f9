"""The objective of a plug-in ranker over blocks: one pass an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.source import Block
from toprank.losses.proper import ProperLoss
from toprank.objective.blockwise.data import BlockData
from toprank.objective.blockwise.problem import Blockwise
from toprank.objective.blockwise.row_sums import RowSums
from toprank.objective.blockwise.rows import View, open_block
from toprank.objective.pointwise import PointwiseProblem, PointwiseTask


@dataclass(frozen=True)
class Pointwise:
    """The loss of every row at coefficients with the intercept last."""

    view: View
    loss: ProperLoss
    order: int = 1

    def local(self, block: Block, coef: FloatArray) -> RowSums:
        opened = open_block(block, self.view)
        positive, weight = opened.labels()
        with np.errstate(over="ignore", invalid="ignore"):
            v = opened.scores(coef[:-1]) + coef[-1]
            if weight is None:
                weight = np.ones_like(v)
            else:
                v[weight == 0] = 0.0  # no weight makes up for an infinite loss
            sign = np.where(positive, 1.0, -1.0)
            value, slope = self.loss.value_slope(sign, v)
            bend = weight * self.loss.derivative(2, sign, v) if self.order == 2 else None
            return RowSums.of(opened, float(weight @ value), weight * slope, bend)

    def merge(self, left: RowSums, right: RowSums) -> RowSums:
        return left.merge(right)


class BlockPointwise(Blockwise, PointwiseProblem):
    """A convex function of the coefficients and the intercept, over blocks."""

    def __init__(self, source: BlockData, task: PointwiseTask):
        super().__init__(source, task)
        self._total = sum(source.totals)

    def _bind_rows(self) -> None:
        """Labels and weights stay with the blocks."""

    def _sums(self, coef: FloatArray, order: int) -> RowSums:
        sweep = Pointwise(self.source.view, self.task.loss, order)
        sums: RowSums = self._last.at(coef, order, lambda: self.source.run(sweep, coef))
        return sums

    @property
    def positive_share(self) -> float:
        neg, pos = self.source.totals
        return pos / (neg + pos)

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        first = self._last.order == 0 and self.has_curvature and self.cheap_curvature
        sums = self._sums(coef, 2 if first else 1)
        return self.penalised(sums.value / self._total, sums.slope / self._total, coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact or self.cheap_curvature else self.coarse()
        if coarse is not None:
            return coarse.hessian(coef)
        sums = self._sums(coef, 2)
        hessian = np.empty((self.size, self.size))
        hessian[:-1, :-1] = sums.second
        hessian[-1] = hessian[:, -1] = sums.bend
        hessian /= self._total
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def column_scale(self) -> FloatArray:
        return np.append(Blockwise.column_scale(self), 1.0)

    def _intercept_slopes(self, coef: FloatArray) -> Any:
        def slope(b: float, order: int = 1) -> float:
            sums = self._sums(np.append(coef[:-1], b), 2 if self.has_curvature else 1)
            moments = sums.slope if order == 1 else sums.bend
            return float(moments[-1]) / self._total  # type: ignore[index]

        return slope
