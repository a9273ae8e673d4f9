"""Real-valued weak rankers: the columns of a matrix as they are, with a line search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.rankers.boosting.rounds import EQUAL
from toprank.solvers.coordinate import zero_of

#: No step moves a score by more than this: beyond it the loss has vanished.
_FARTHEST = 200.0


@dataclass(frozen=True)
class ColumnChoice:
    """The weak ranker whose value is a column as it is."""

    column: int
    gain: float

    @property
    def key(self) -> Any:
        """What makes two of them the same weak ranker."""
        return self.column

    def outputs(self, Z: Any) -> FloatArray:
        """Return h of each row."""
        return np.asarray(Z[:, self.column], dtype=np.float64)

    def facts(self) -> dict[str, Any]:
        """What the history says about it."""
        return {"feature": self.column}


class ColumnMasses:
    """The loss along one column: its slope at zero and the steps along it.

    Parameters
    ----------
    loss : callable
        alpha -> (log loss, edge), the edge being minus the slope.
    edge : float
        The edge at alpha = 0.
    spread : float
        Range of the column.
    """

    def __init__(
        self, loss: Callable[[float], tuple[float, float]], edge: float, spread: float
    ) -> None:
        self._loss, self.edge = loss, edge
        self._spread = spread or 1.0

    @property
    def factor(self) -> float:
        """What the best step multiplies the loss by."""
        value, _ = self._loss(self._minimum)
        return float(np.exp(value - self._loss(0.0)[0]))

    @cached_property
    def _minimum(self) -> float:
        return self._zero(lambda alpha: -self._loss(alpha)[1], -self.edge)

    def _zero(self, slope: Callable[[float], float], at_zero: float) -> float:
        return zero_of(slope, at_zero, 0.25 / self._spread, _FARTHEST / self._spread)

    def _finite(self, step: float, log_n_pairs: float) -> float:
        """A minimum at infinity is cut off where a stump's would be: half a pair against it."""
        if abs(step) * self._spread < _FARTHEST:
            return step
        return float(np.sign(step) * 0.5 * max(log_n_pairs + np.log(2.0), 1.0) / self._spread)

    def descent(self, log_n_pairs: float) -> float:
        """Return the step to the minimum of the loss."""
        return self._finite(self._minimum, log_n_pairs)

    def ascent(self, smooth_margin: float, log_n_pairs: float, norm: float) -> float:
        """Return the step to the maximum of the smooth margin (equation 10).

        It is where (norm + alpha) edge(alpha) + log F(alpha), which falls with alpha, is zero; F is
        in the unit of the smooth margin.
        """
        sign = float(np.sign(self.edge))
        unit = self._loss(0.0)[0] + smooth_margin * norm

        def rising(alpha: float) -> float:
            value, edge = self._loss(sign * alpha)
            return -((norm + alpha) * sign * edge + value - unit)

        return sign * self._finite(self._zero(rising, rising(0.0)), log_n_pairs)

    def facts(self) -> dict[str, Any]:
        """What the history says."""
        return {}

    def theorem_7_holds(self) -> bool:
        """False: the theorem is about binary weak rankers."""
        return False


class ColumnRankers:
    """Scores that move along one column per round.

    Parameters
    ----------
    pairs : object with ``potentials``, ``order`` and ``p``
    H : array of shape (n, m)
        The value of each weak ranker at each row.
    """

    def __init__(self, pairs: Any, H: FloatArray):
        self.pairs = pairs
        self.H = np.asfortranarray(H[pairs.order])
        self.scores = np.zeros(len(H))
        self._spreads = np.ptp(self.H, axis=0) if H.size else np.zeros(H.shape[1])
        self._refresh()

    def _refresh(self) -> None:
        self.log_loss, self._potentials = self.pairs.potentials(self.scores)

    def best(self, selection: str) -> ColumnChoice | None:
        """Return the column that lowers the loss most, or the steepest."""
        edges = self.H.T @ self._potentials
        if selection == "slope":
            gains = np.abs(edges)
        else:
            gains = np.array([self._gain(j, float(edge)) for j, edge in enumerate(edges)])
        if gains.size == 0 or not np.isfinite(self.log_loss):
            return None
        best = float(np.max(gains))
        return ColumnChoice(int(np.argmax(gains >= best - EQUAL)), best)

    def _gain(self, j: int, edge: float) -> float:
        """Root of the decrease; the slope, which is smaller, where the decrease is all rounding."""
        if abs(edge) <= EQUAL:
            return 0.0
        decrease = 1.0 - self._along(j, edge).factor
        return float(np.sqrt(max(decrease, 0.0))) if decrease > 1e-10 else abs(edge)

    @property
    def _start(self) -> FloatArray:
        """Where line searches begin."""
        return self.scores

    def _along(self, j: int, edge: float) -> ColumnMasses:
        column, start = self.H[:, j], self._start

        def loss(alpha: float) -> tuple[float, float]:
            value, potentials = self.pairs.potentials(start + alpha * column)
            return value, float(potentials @ column)

        return ColumnMasses(loss, edge, float(self._spreads[j]))

    def masses(self, choice: ColumnChoice) -> ColumnMasses:
        """Return the loss along the column."""
        edge = float(self.H[:, choice.column] @ self._potentials)
        return self._along(choice.column, edge)

    def move(self, choice: ColumnChoice, step: float) -> None:
        """Add step · h to the scores."""
        self.scores += step * self.H[:, choice.column]
        self._refresh()
