"""Any price and loss, exactly, with the scores of all rows on the driver.

One pass brings the score of every row to the driver (8 bytes per row), where the objective is
evaluated; a second one takes its gradient in the scores back to the blocks, cut into their
pieces. For losses whose pair sums do not merge (hinges: exact by sorting), for rows in memory,
and for coordinate descent.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.objective.data import BlockData
from toprank.objective.problem import TwoClassProblem
from toprank.objective.risk import PushObjective

#: Rows from which a Hessian that is put together column by column is not thinned further.
HESSIAN_ROWS_ENOUGH = 50_000
#: Bytes of dense columns held at once while a Hessian is put together.
_COLUMN_BYTES = 1 << 26


def gradient_in_scores(
    data: BlockData, objective: PushObjective, coef: FloatArray
) -> tuple[float, FloatArray]:
    """Return an objective of the scores X @ coef, and its gradient in the coefficients."""
    value, in_scores = objective.value_grad(data.scores(coef))
    return value, data.adjoint(in_scores)


def hessian_in_scores(data: BlockData, objective: PushObjective, coef: FloatArray) -> FloatArray:
    """Return the Hessian in the coefficients, put together column by column."""
    times = objective.hessian_map(data.scores(coef))
    width = max(1, _COLUMN_BYTES // (8 * data.n_rows))
    size = data.n_features
    hessian = np.empty((size, size))
    for first in range(0, size, width):
        columns = data.columns(first, min(first + width, size))
        bent = np.column_stack([times(column) for column in columns.T])
        hessian[:, first : first + width] = data.adjoint(bent)
    return 0.5 * (hessian + hessian.T)


class ScoredProblem(TwoClassProblem):
    """Scores, the objective in scores, X' times its gradient: two passes per evaluation."""

    # a Hessian costs as many evaluations as there are features
    newton_up_to = 100

    @cached_property
    def objective(self) -> PushObjective:
        """The objective in the scores of all rows."""
        objective: PushObjective = self.task.objective(*self.data.labels)
        return objective

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.objective.scale

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        return self.penalised(*gradient_in_scores(self.data, self.objective, coef), coef)

    def value(self, coef: FloatArray) -> float:
        return self.objective.value(self.scores(coef)) + self.cost(coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact else self.coarse()
        if coarse is not None:
            estimate: FloatArray = coarse.hessian(coef, exact=coarse.n_rows <= HESSIAN_ROWS_ENOUGH)
            return estimate
        hessian = hessian_in_scores(self.data, self.objective, coef)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        return self.objective.value_grad(self.scores(coef))[1]

    # What coordinate descent asks: scores that move along one column at a time.

    def in_scores(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient in the scores."""
        return self.objective.value_grad(scores)

    def pull_back(self, in_scores: FloatArray) -> FloatArray:
        """Return the gradient in the coefficients from that in the scores."""
        return self.data.adjoint(in_scores)

    def column(self, feature: int) -> FloatArray:
        """Return a column of X, dense."""
        return self.data.columns(feature, feature + 1)[:, 0]

    @cached_property
    def present(self) -> NDArray[np.bool_] | slice:
        """The rows of weight above zero."""
        weight = self.data.labels[1]
        return slice(None) if weight is None else weight > 0
