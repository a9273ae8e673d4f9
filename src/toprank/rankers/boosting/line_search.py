"""Steps along one weak ranker that have no closed form: found by a search for the zero of a slope.

Real-valued weak rankers need it, and {0, 1} ones under a push over groups, grades or listed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from toprank._arrays import AnyArray, JsonObject
from toprank._numerics import FloatArray
from toprank.rankers.boosting.stumps import Masses
from toprank.solvers.coordinate import zero_of

#: No step moves a score by more than this: beyond it the loss has vanished.
_FARTHEST = 200.0

#: alpha -> (log loss, edge)
Loss = Callable[[float], tuple[float, float]]


def loss_along(pairs: Any, scores: FloatArray, column: FloatArray) -> Loss:
    """Return the loss along a column: alpha -> (log loss, edge), the edge being minus the slope."""

    def loss(alpha: float) -> tuple[float, float]:
        value, potentials = pairs.potentials(scores + alpha * column)
        return value, float(potentials @ column)

    return loss


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

    def __init__(self, loss: Loss, edge: float, spread: float) -> None:
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

    exact_ascent = ascent  #: the search is exact

    def facts(self) -> JsonObject:
        """What the history says."""
        return {}

    def theorem_7_holds(self) -> bool:
        """False: the theorem is about binary weak rankers and p = 1."""
        return False


class LineMasses(ColumnMasses):
    """The loss along a {0, 1} weak ranker, and the weights d+, d-, d0 of the pairs it ranks."""

    def __init__(self, loss: Loss, masses: Masses) -> None:
        super().__init__(loss, masses.edge, 1.0)
        self.masses = masses

    @property
    def gain(self) -> float:
        """Root of the share of the loss that the best step takes away."""
        return float(np.sqrt(max(1.0 - self.factor, 0.0)))

    def descent(self, log_n_pairs: float) -> float:
        """Return the step to the minimum; where that is at infinity, half a pair stands in."""
        if self.masses.one_sided:
            return self.masses.descent(log_n_pairs)
        return self._finite(self._minimum, log_n_pairs)

    def facts(self) -> JsonObject:
        """What the history says."""
        return self.masses.facts()


def line_masses(
    pairs: Any, scores: FloatArray, h: AnyArray, split: tuple[float, float, float]
) -> LineMasses:
    """Return the loss of some pairs along a {0, 1} weak ranker with values h."""
    return LineMasses(loss_along(pairs, scores, np.asarray(h, float)), Masses(*split, pairs.p))
