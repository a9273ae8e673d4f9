"""Exponential loss and power price: value, gradient and Hessian from one pass over the rows.

Nothing of the rows is kept on the driver. The same passes give the limit of large p, the largest
height, and many settings of p and alpha at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.objective.duality import Dual, DualState, Terms
from toprank.objective.histogram import EXACT_UP_TO as EXACT_SCORES_UP_TO
from toprank.objective.histogram import Points, Standard
from toprank.objective.problem import TwoClassProblem
from toprank.objective.sampled import sampled_moments
from toprank.objective.sweeps import Evaluate, Evaluation
from toprank.objective.tilted import EndPartial

#: Rows of each class that a sampled Hessian is taken from, at the least.
_HESSIAN_ROWS = 10_000
_HESSIAN_ROWS_PER_FEATURE = 300


class SweptProblem(TwoClassProblem):
    """Exponential loss with a power price of finite p, at one end of the list or both."""

    @property
    def newton_up_to(self) -> int:  # type: ignore[override]
        return 100 if self.data.sparse else 500

    @property
    def has_dual(self) -> bool:  # type: ignore[override]
        return len(self.tilts) == 1

    @cached_property
    def tilts(self) -> tuple[tuple[float, float], ...]:
        """(tilt of the positives, tilt of the negatives) at each end."""
        p = self.task.p
        tilts = {"top": ((-1.0, p),), "bottom": ((-p, 1.0),), "both": ((-1.0, p), (-p, 1.0))}
        return tilts[self.task.end]

    def _pass(self, coef: FloatArray, order: int) -> Evaluation:
        data = self.data
        # any evaluation but the first may be the last one, whose scores the link is fitted to
        bins = data.source.reads_anew and data.n_rows > EXACT_SCORES_UP_TO and self._last.order > 0

        def make_pass() -> Evaluation:
            standard = self.standard(coef) if bins else None
            sweep = Evaluate(data.view, self.tilts, order, self.alpha == 0, standard)
            found: Evaluation = data.run(sweep, coef)
            return found

        evaluation: Evaluation = self._last.at(coef, order, make_pass)
        return evaluation

    def evaluate(self, coef: FloatArray, order: int) -> list[EndPartial]:
        """Return the tilted sums at the coefficients."""
        return self._pass(coef, order).ends

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        first = self._last.order == 0 and self.cheap_curvature
        ends = self.evaluate(coef, 2 if first else 1)
        value, shares = self._combine(ends)
        grad = np.zeros(self.size)
        for share, (pos, neg) in zip(shares, ends, strict=True):
            grad += share * (neg.mean - pos.mean)
        return self.penalised(value, grad, coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        ends = self._curved_ends(coef, exact or self.cheap_curvature)
        if ends is None:
            hessian: FloatArray = self._coarse.hessian(coef, exact=len(self.tilts) > 1)
            return hessian
        _, shares = self._combine(ends)
        hessian = np.zeros((self.size, self.size))
        grads = []
        for share, (pos, neg), (of_pos, of_neg) in zip(shares, ends, self.tilts, strict=True):
            hessian += share * (abs(of_pos) * pos.covariance + abs(of_neg) * neg.covariance)
            grads.append(neg.mean - pos.mean)
        if len(ends) == 2:  # (1/p) log(e^{pA} + balance e^{pB}) adds p times a variance
            apart = grads[0] - grads[1]
            hessian += self.task.p * shares[0] * shares[1] * np.outer(apart, apart)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _curved_ends(self, coef: FloatArray, exact: bool) -> list[EndPartial] | None:
        """Tilted sums with second moments, or estimates from some rows; None: ask the sample."""
        if exact:
            return self.evaluate(coef, 2)
        enough = max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.size)
        if self.data.source.in_memory and len(self.tilts) == 1:
            if 3 * enough < self.n_rows:
                return [sampled_moments(self.data, coef, self.tilts[0], enough)]
            return self.evaluate(coef, 2)
        return self.evaluate(coef, 2) if self._coarse is None else None

    def _combine(self, ends: list[EndPartial]) -> tuple[float, list[float]]:
        """F and the share of each end in it."""
        values = [
            sum(
                (float(tilted.log_mass) - log_total) / abs(tilt)
                for tilted, log_total, tilt in zip(end, self.data.log_totals, tilts, strict=True)
            )
            for end, tilts in zip(ends, self.tilts, strict=True)
        ]
        if len(values) == 1:
            return values[0], [1.0]
        p = self.task.p
        top = p * values[0] + float(np.log(self.task.top))
        bottom = p * values[1] + float(np.log(self.task.balance))
        total = float(np.logaddexp(top, bottom))
        return total / p, [float(np.exp(top - total)), float(np.exp(bottom - total))]

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        histogram = self._pass(coef, 1).histogram if self._last.knows(coef) else None
        if histogram is None:
            return super().standard_scores(coef)
        return self.standard(coef), histogram.points()

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        if self.alpha == 0 and self._last.knows(coef):
            return self._pass(coef, 1).extremes
        return super().extremes(coef)

    def dual_terms(self, coef: FloatArray, step: FloatArray) -> Terms:
        """Return the terms of the dual value, see `toprank.objective.duality`."""
        data = self.data
        (end,) = self.evaluate(coef, 1)
        positives, negatives = (
            (tilt, float(tilted.log_mass), log_total, float(tilted.mean @ step))
            for tilt, tilted, log_total in zip(self.tilts[0], end, data.log_totals, strict=True)
        )
        state = DualState(coef, step, (positives, negatives))
        terms: Terms = data.run(Dual(data.view), state)
        return terms

    def log_masses(self, coef: FloatArray) -> tuple[float, float]:
        ((pos, neg),) = self.evaluate(coef, 1)
        return float(pos.log_mass), float(neg.log_mass)


class LargestHeight(TwoClassProblem):
    """Exponential loss and the largest height, p = inf: approached by `SweptProblem`."""

    newton_up_to = SweptProblem.newton_up_to

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def with_task(self, task: Any) -> TwoClassProblem:
        return SweptProblem(self.data, task)

    def value(self, coef: FloatArray) -> float:
        """Return the largest log S of an outer row: log mean e^-f_pos + max f_neg at the top."""
        sweep = Evaluate(self.data.view, ((-1.0, 1.0),), extremes=True)
        found = self.data.run(sweep, coef)
        ((pos, neg),), (lowest, highest) = found.ends, found.extremes
        of_pos, of_neg = self.data.log_totals
        ends = {
            "top": pos.log_mass - of_pos + highest,
            "bottom": neg.log_mass - of_neg - lowest,
        }
        asked = ends.values() if self.task.end == "both" else [ends[self.task.end]]
        return float(max(asked)) + self.cost(coef)


class ManySwept:
    """Problems that differ in p and alpha only, evaluated together in one pass.

    Parameters
    ----------
    problems : sequence of SweptProblem
        Of the same rows, at the top of the list.
    """

    def __init__(self, problems: Sequence[SweptProblem]):
        self.problems = problems
        self.data = problems[0].data
        self.tilts = np.array([problem.tilts[0] for problem in problems])

    @staticmethod
    def supports(problem: object) -> bool:
        """Whether a problem can be evaluated together with others."""
        return isinstance(problem, SweptProblem) and problem.task.end == "top"

    def value_grad(self, coefs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the penalised objective and its gradient, one line per problem."""
        columns = (self.tilts[:, :1], self.tilts[:, 1:])
        ((pos, neg),) = self.data.run(Evaluate(self.data.view, (columns,)), coefs).ends
        masses = np.array([pos.log_mass, neg.log_mass]).T
        log_totals = np.array(self.data.log_totals)
        values = np.sum((masses - log_totals) / np.abs(self.tilts), axis=1)
        grads = neg.mean - pos.mean
        for i, problem in enumerate(self.problems):
            values[i], grads[i] = problem.penalised(float(values[i]), grads[i], coefs[i])
        return values, grads
