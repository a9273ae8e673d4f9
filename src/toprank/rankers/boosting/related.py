"""Stumps judged on the pairs of a relation: higher labels against lower ones, or pairs listed.

Graded and grouped rows cost O(log bins) per row and column each round, however many pairs they
form; listed pairs cost two additions per pair and column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.rankers.boosting.bins import Binned
from toprank.rankers.boosting.pair_weights import GradedWeights, ListedWeights, RelatedWeights
from toprank.rankers.boosting.stumps import Masses, Stump, best_stump


class RelatedStumps(ABC):
    """Scores and pair weights that move together, one stump per round."""

    pairs: RelatedWeights

    def __init__(self, pairs: RelatedWeights, binned: Binned, workers: Workers):
        self.pairs, self.binned, self.workers = pairs, binned, workers
        self.scores = np.zeros(binned.codes.shape[1])
        self._gains = binned.empty_gains()
        # where no pair is ranked so, rounding must not say otherwise
        self._possible = self._curves(self._unit_weights()) > 0.5
        self._refresh()

    @abstractmethod
    def _unit_weights(self) -> tuple[FloatArray, ...]:
        """The weights under which every pair weighs one."""

    @abstractmethod
    def _add_curves(
        self, weights: Any, side: int, column: int, plus: FloatArray, minus: FloatArray
    ) -> None:
        """Add the differences of d+ and d- from one threshold of a column to the next."""

    @abstractmethod
    def masses(self, stump: Stump) -> Masses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""

    def _refresh(self) -> None:
        self.log_loss, *self._weights = self.pairs.weights(self.scores)

    def _curves(self, weights: Any) -> FloatArray:
        """Return d+ and d- of every stump: shape (2, columns, sides, thresholds)."""
        d = len(self.binned.n_edges)
        both = np.zeros((2, 2, d, 257))
        sides = (0, 1) if np.any(self.binned.has_missing) else (0,)

        def fill(task: tuple[int, int]) -> None:
            side, column = task
            self._add_curves(weights, side, column, *both[side, :, column])

        list(self.workers.map(fill, [(side, column) for side in sides for column in range(d)]))
        sums = np.cumsum(both, axis=-1)[..., 1 : self._gains.shape[-1] + 1]
        return np.ascontiguousarray(np.maximum(sums, 0.0).transpose(1, 2, 0, 3))

    def best(self, selection: str) -> Stump | None:
        """Return the stump that lowers the loss most, or the steepest; None without columns."""
        from toprank.rankers.boosting import kernels, pair_kernels

        if not np.isfinite(self.log_loss):
            return None
        binned = self.binned
        plus, minus = np.where(self._possible, self._curves(self._weights), 0.0)
        mode = kernels.SLOPE if selection == "slope" else kernels.LOSS
        pair_kernels.pair_gains(plus, minus, binned.n_edges, binned.has_missing, mode, self._gains)
        return best_stump(self._gains, binned)

    def move(self, stump: Stump, step: float) -> None:
        """Add step · h to the scores; the weights follow."""
        codes = self.binned.codes[stump.column]
        self.scores += step * stump.table[codes]
        self._refresh()


class GradedStumps(RelatedStumps):
    """Stumps judged on graded pairs, whose weights are products of two rows' weights."""

    pairs: GradedWeights

    def _unit_weights(self) -> tuple[FloatArray, ...]:
        return self.pairs.wins.astype(np.float64), self.pairs.loses.astype(np.float64)

    def _add_curves(
        self, weights: Any, side: int, column: int, plus: FloatArray, minus: FloatArray
    ) -> None:
        from toprank.rankers.boosting.pair_kernels import graded_curves

        levels = (self.pairs.relation.level_start, self.pairs.relation.level_end)
        codes, cuts = self.binned.codes[column], self.pairs.cuts
        graded_curves(codes, *weights, *levels, cuts, side, plus, minus)

    def masses(self, stump: Stump) -> Masses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""
        from toprank.rankers.boosting.pair_kernels import graded_masses

        h = stump.table[self.binned.codes[stump.column]]
        sums = graded_masses(h, *self._weights, self.pairs.relation.level_end, self.pairs.cuts)
        return Masses(*(np.array(sums) / sum(sums)))


class ListedStumps(RelatedStumps):
    """Stumps judged on listed pairs, each with a weight of its own."""

    pairs: ListedWeights

    def _unit_weights(self) -> tuple[FloatArray, ...]:
        return (np.ones(len(self.pairs.winners)),)

    def _add_curves(
        self, weights: Any, side: int, column: int, plus: FloatArray, minus: FloatArray
    ) -> None:
        from toprank.rankers.boosting.pair_kernels import listed_curves

        rows = (self.pairs.winners, self.pairs.losers)
        listed_curves(self.binned.codes[column], *rows, *weights, side, plus, minus)

    def masses(self, stump: Stump) -> Masses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""
        h = stump.table[self.binned.codes[stump.column]].astype(np.int8)
        sign = h[self.pairs.winners] - h[self.pairs.losers]
        (weight,) = self._weights
        return Masses(*(float(np.sum(weight[sign == s])) for s in (1, -1, 0)))
