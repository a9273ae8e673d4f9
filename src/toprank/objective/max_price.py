"""The max price at one end of the list: a smooth function and one maximum of linear scores.

A loss never increases, so the highest height is that of the highest outer row, and with
oriented scores a (inner) and b (outer)

    F(coef) = G(coef, max_k b_k),   G(coef, t) = sum_i w_i l(a_i - t) + (alpha/2) |coef|^2.

G is as smooth as the loss and never decreases in t: F is the least G over all t that lie above
every outer score. With the squared hinge this is TopPush (Li, Jin and Zhou 2014).

For any weights u >= 0 of the outer rows that sum to the positives' pull sum_i a_i,
a_i = -w_i l'(a_i - t), Fenchel's inequality bounds the minimum from below, and

    F(coef) - min F  <=  sum_j (alpha coef - X_in' a + X_out' u)_j^2 / (2 alpha)
                         + sum_k u_k (t - b_k)

is the certificate: a gradient, and the slack of the rows that the weights rest on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.objective.problem import ScoredProblem
from toprank.objective.risk import Task
from toprank.pairs import Sides
from toprank.prices import Max

#: Relative error of a weighted sum of rows.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Peak:
    """What is known of the objective at one vector of coefficients."""

    coef: FloatArray
    scores: FloatArray
    value: float
    top: float  # the highest outer score, t
    pull: FloatArray  # -w l'(a - t), one per inner row
    bend: FloatArray  # w l''(a - t)

    @property
    def force(self) -> float:
        """dG/dt, which the weights of the outer rows sum to."""
        return float(np.sum(self.pull))


class MaxProblem(ScoredProblem):
    """The objective of the max price as G under linear constraints, for a solver that can."""

    peaked = True
    newton_up_to = 500

    @staticmethod
    def suits(task: Task) -> bool:
        """Whether the task is of this form."""
        return (
            isinstance(task.price, Max)
            and task.price.root
            and task.end != "both"
            and task.loss.has_curvature
            and task.alpha > 0
        )

    @property
    def side(self) -> Sides:
        return self.objective.sides[0]

    def with_task(self, task: Task) -> ScoredProblem:
        return ScoredProblem(self.data, task)

    @property
    def n_outer(self) -> int:
        """How many outer rows there are."""
        return len(self.side.outer)

    def outer_scores(self, scores: FloatArray) -> FloatArray:
        """Oriented scores of the outer rows, of which the largest counts."""
        return self.side.sign * scores[self.side.outer]

    def peak(self, coef: FloatArray, scores: FloatArray) -> Peak:
        """Evaluate at coefficients whose scores are known."""
        side, loss = self.side, self.task.loss
        top = float(np.max(self.outer_scores(scores)))
        r = side.sign * scores[side.inner] - top
        value = float(side.inner_weight @ loss.value(r)) + self.cost(coef)
        pull = -side.inner_weight * loss.slope(r)
        return Peak(coef, scores, value, top, pull, side.inner_weight * loss.curvature(r))

    def slope(self, at: Peak) -> FloatArray:
        """Gradient of G in (coef, t)."""
        in_coef = self.penalty * at.coef - self._inner_sum(at.pull)
        return np.append(in_coef, at.force)

    def bend(self, at: Peak) -> FloatArray:
        """Hessian of G in (coef, t)."""
        hessian = np.zeros((self.size + 1, self.size + 1))
        hessian[:-1, :-1] = self._inner_moments(at.bend)
        hessian[np.diag_indices(self.size)] += self.penalty
        hessian[:-1, -1] = hessian[-1, :-1] = -self._inner_sum(at.bend)
        hessian[-1, -1] = np.sum(at.bend)
        return hessian

    def _inner_sum(self, weight: FloatArray) -> FloatArray:
        return self.data.adjoint(self._spread(self.side.sign * weight))

    def _inner_moments(self, weight: FloatArray) -> FloatArray:
        """Second moments of the inner rows: only those that weigh anything are read."""
        bent = np.flatnonzero(weight)
        if 2 * len(bent) > self.n_rows:
            return self.data.second_moments(self._spread(weight))
        return self.data.take(self.side.inner[bent]).second_moments(weight[bent])

    def _spread(self, weight: FloatArray) -> FloatArray:
        spread = np.zeros(self.n_rows)
        spread[self.side.inner] = weight
        return spread

    def outer_rows(self, which: NDArray[np.intp]) -> FloatArray:
        """Oriented features of some outer rows, dense."""
        return self.side.sign * self.data.dense(self.side.outer[which])

    def gap(self, at: Peak, slope: FloatArray, which: NDArray[np.intp], u: FloatArray) -> float:
        """Bound F - min F by weights u of some outer rows (the module's certificate)."""
        residual, slack = self._left_over(at, slope, which, u)
        return float(np.sum(residual**2 / (2.0 * self.penalty))) + slack

    def _left_over(
        self, at: Peak, slope: FloatArray, which: NDArray[np.intp], u: FloatArray
    ) -> tuple[FloatArray, float]:
        """The gradient and the slack that weights of some outer rows do not make up for."""
        residual = slope[:-1] + self.outer_rows(which).T @ u
        return residual, float(u @ (at.top - self.outer_scores(at.scores)[which]))

    def at_rounding(
        self, at: Peak, slope: FloatArray, which: NDArray[np.intp], u: FloatArray
    ) -> bool:
        """Whether what the weights leave over is no more than floating point makes of its sums."""
        residual, slack = self._left_over(at, slope, which, u)
        weight = float(np.linalg.norm(at.pull) + np.linalg.norm(u))
        small = np.abs(residual) <= _ROUNDING * weight * self._column_sizes
        return bool(np.all(small)) and slack <= _ROUNDING * max(1.0, at.value)

    @cached_property
    def _column_sizes(self) -> FloatArray:
        return np.sqrt(self.data.squares[1])

    def smooth_in_loss(self, level: float) -> MaxProblem:
        """Return the problem with a smooth loss that lies below, the maximum left as it is."""
        if self.task.loss.smooth:
            return self
        return MaxProblem(self.data, replace(self.task, loss=self.task.loss.smoothed(level)))
