"""The objectives of `toprank.objective.linear`, over the blocks of a source.

Exponential loss with a power price takes one pass an evaluation and keeps nothing of the
rows; so does its limit, the largest height. What a solver asks beyond value and gradient comes
from the description of the data or from a sample that the driver holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.objective.blockwise.data import BlockData
from toprank.objective.blockwise.dual import Dual, DualState
from toprank.objective.blockwise.sweeps import Evaluate, Evaluation, Histogram
from toprank.objective.duality import Terms
from toprank.objective.histogram import EXACT_UP_TO as EXACT_SCORES_UP_TO
from toprank.objective.histogram import Points, Standard, standard_points
from toprank.objective.linear import LinearProblem, SweptProblem
from toprank.objective.sweep import EndPartial

#: Up to this many features second moments cost less than another read of the data: Hessians
#: are exact, and the first evaluation, whose Hessian a solver asks for next, brings it along.
EXACT_UP_TO = 64


class Last:
    """The answer of the last pass: solvers ask for value and Hessian at the same point."""

    def __init__(self) -> None:
        self.order = 0
        self._coef: FloatArray | None = None
        self._answer: Any = None

    def knows(self, coef: FloatArray) -> bool:
        """Whether the last pass was at these coefficients."""
        return self._coef is not None and np.array_equal(self._coef, coef)

    def at(self, coef: FloatArray, order: int, make_pass: Callable[[], Any]) -> Any:
        """Return the answer at the coefficients, to this order of moments at the least."""
        if not self.knows(coef) or self.order < order:
            self._answer = make_pass()
            self._coef, self.order = coef.copy(), order
        return self._answer


class Blockwise(LinearProblem):
    """What every problem over blocks answers without the rows being on the driver."""

    source: Any

    def __init__(self, source: BlockData, task: Any):
        super().__init__(source, task)  # type: ignore[arg-type]
        self._last = Last()

    def _with(self, task: Any) -> LinearProblem:
        from toprank.objective.blockwise import block_problem

        return block_problem(self.source, task)

    @cached_property
    def _coarse(self) -> LinearProblem | None:
        data = self.source.coarser()
        if data is not None:
            return type(self)(data, replace(self.task, positive=None, weight=None))
        sample = self.source.coarse_sample()
        if sample is None:
            return None
        rows, positive, weight = sample
        return replace(self.task, positive=positive, weight=weight).problem(rows)

    @property
    def cheap_curvature(self) -> bool:
        """Whether second moments cost less than another read of the data."""
        data = self.source
        return self.size <= EXACT_UP_TO and data.source.cheap_curvature(data.n_rows)

    def separates(self, coef: FloatArray) -> bool:
        lowest, highest = self.extremes(coef)
        return lowest > highest

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative."""
        lowest, highest = self.source.extremes(coef[: self.source.n_features])
        return lowest, highest

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        data = self.source
        if data.n_rows <= EXACT_SCORES_UP_TO:
            return standard_points(self.scores(coef), *data.labels())
        of_columns, shift = coef[: data.n_features], float(np.sum(coef[data.n_features :]))
        standard = self._standard(of_columns, shift)
        counted = data.run(Histogram(data.view, standard), (of_columns, shift))
        return standard, counted.points()

    def _standard(self, coef: FloatArray, shift: float = 0.0) -> Standard:
        """Where the scores lie, from the rows that the driver holds."""
        return Standard.of(self.source.located_scores(coef) + shift)

    def column_scale(self) -> FloatArray:
        spread = self.source.column_spread()
        return 1.0 / np.where(spread > 0, spread, 1.0)


class BlockSwept(Blockwise, SweptProblem):
    """Exponential loss and power price: value, gradient and Hessian from one pass."""

    @cached_property
    def log_totals(self) -> tuple[float, float]:
        return self.source.log_totals

    def _pass(self, coef: FloatArray, order: int) -> Evaluation:
        data = self.source
        # any evaluation but the first may be the last one, whose scores the link is fitted to
        bins = data.source.reads_anew and data.n_rows > EXACT_SCORES_UP_TO and self._last.order > 0

        def make_pass() -> Evaluation:
            standard = self._standard(coef) if bins else None
            sweep = Evaluate(data.view, self.tilts, order, self.alpha == 0, standard)
            found: Evaluation = data.run(sweep, coef)
            return found

        evaluation: Evaluation = self._last.at(coef, order, make_pass)
        return evaluation

    def evaluate(self, coef: FloatArray, order: int) -> list[EndPartial]:
        """Return the tilted sums at the coefficients."""
        return self._pass(coef, order).ends

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        histogram = self._pass(coef, 1).histogram if self._last.knows(coef) else None
        if histogram is None:
            return super().standard_scores(coef)
        return self._standard(coef), histogram.points()

    def _ends(self, coef: FloatArray) -> list[EndPartial]:
        first = self._last.order == 0 and self.cheap_curvature
        return self.evaluate(coef, 2 if first else 1)

    def _curved_ends(self, coef: FloatArray, exact: bool) -> list[EndPartial]:
        return self.evaluate(coef, 2)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact or self.cheap_curvature else self.coarse()
        return super().hessian(coef) if coarse is None else coarse.hessian(coef, exact=False)

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        if self.alpha == 0 and self._last.knows(coef):
            return self._pass(coef, 1).extremes
        return super().extremes(coef)

    def dual_terms(self, coef: FloatArray, step: FloatArray) -> Terms:
        """Return the terms of the dual value, see `toprank.objective.duality`."""
        (end,) = self.evaluate(coef, 1)
        positives, negatives = (
            (tilt, tilted.log_mass, log_total, float(tilted.mean @ step))
            for tilt, tilted, log_total in zip(self.tilts[0], end, self.log_totals, strict=True)
        )
        state = DualState(coef, step, (positives, negatives))
        terms: Terms = self.source.run(Dual(self.source.view), state)
        return terms

    def log_masses(self, coef: FloatArray) -> tuple[float, float]:
        ((pos, neg),) = self.evaluate(coef, 1)
        return pos.log_mass, neg.log_mass

    def scores(self, coef: FloatArray) -> FloatArray:
        return LinearProblem.scores(self, coef)


class BlockMax(Blockwise):
    """Exponential loss and the largest height, p = inf: approached by `BlockSwept`."""

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def value(self, coef: FloatArray) -> float:
        """Return the largest log S of an outer row: log mean e^-f_pos + max f_neg at the top."""
        sweep = Evaluate(self.source.view, ((-1.0, 1.0),), extremes=True)
        found = self.source.run(sweep, coef)
        ((pos, neg),), (lowest, highest) = found.ends, found.extremes
        of_pos, of_neg = self.source.log_totals
        ends = {
            "top": pos.log_mass - of_pos + highest,
            "bottom": neg.log_mass - of_neg - lowest,
        }
        asked = ends.values() if self.task.end == "both" else [ends[self.task.end]]
        return max(asked) + self._cost(coef)
