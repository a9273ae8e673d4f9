"""What boosting leaves behind: a sum of stumps, or of columns, and how it scores rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import Workers

_BLOCK_ROWS = 4096


class WeakSum:
    """f(x) = sum_t alpha_t h_t(x) over the rounds t."""

    def __init__(self, choices: list[Any], steps: list[float]):
        self.choices = choices
        self.columns = np.array([choice.column for choice in choices], dtype=np.intp)
        self.steps = np.array(steps, dtype=np.float64)

    def staged(self, Z: Any) -> Iterator[FloatArray]:
        """Yield the scores after each round."""
        scores = np.zeros(len(Z))
        for choice, step in zip(self.choices, self.steps, strict=True):
            scores = scores + step * choice.outputs(Z)
            yield scores

    def scores(self, Z: Any, workers: Workers) -> FloatArray:
        """Return f of each row."""
        raise NotImplementedError


class StumpSum(WeakSum):
    """A sum of stumps, kept as one step function a column."""

    def __init__(self, choices: list[Any], steps: list[float]):
        super().__init__(choices, steps)
        self.thresholds = np.array([stump.threshold for stump in choices], dtype=np.float64)
        self.missing = np.array([stump.missing for stump in choices], dtype=np.int8)
        self.used = np.unique(self.columns)
        tables = [self._table(column) for column in self.used]
        width = 1 << max((len(edges) for edges, _ in tables), default=1).bit_length()
        self._edges = np.full((len(tables), width), np.inf)
        self._values = np.zeros((len(tables), width))
        for q, (edges, values) in enumerate(tables):
            self._edges[q, : len(edges)] = edges
            self._values[q, : len(values)] = values
        self._missing = np.array(
            [np.sum(self.steps[(self.columns == c) & (self.missing == 1)]) for c in self.used]
        )

    def _table(self, column: int) -> tuple[FloatArray, FloatArray]:
        """Thresholds in order, and the sum of the steps below, for each interval."""
        mine = self.columns == column
        edges, place = np.unique(self.thresholds[mine], return_inverse=True)
        heights = np.bincount(place.reshape(-1), self.steps[mine], minlength=len(edges))
        return edges, np.concatenate([[0.0], np.cumsum(heights)])

    def scores(self, Z: Any, workers: Workers) -> FloatArray:
        """Return f of each row."""
        from toprank.rankers.boosting.kernels import add_steps

        out = np.zeros(len(Z))

        def fill(start: int) -> None:
            rows = slice(start, start + _BLOCK_ROWS)
            block = np.ascontiguousarray(Z[rows], dtype=np.float64)
            add_steps(block, self.used, self._edges, self._values, self._missing, out[rows])

        if len(self.used):
            list(workers.map(fill, range(0, len(Z), _BLOCK_ROWS)))
        return out


class ColumnSum(WeakSum):
    """A sum of columns: a linear score."""

    def coef(self, n_columns: int) -> FloatArray:
        """Coefficient of each column."""
        sums: Any = np.bincount(self.columns, self.steps, minlength=n_columns)
        return sums

    def scores(self, Z: Any, workers: Workers) -> FloatArray:
        """Return f of each row."""
        return np.asarray(Z, dtype=np.float64) @ self.coef(Z.shape[1])


def column_importances(columns: NDArray[np.intp], coef: FloatArray, d: int) -> FloatArray:
    """Share of each column in the sum of the absolute coefficients."""
    sizes: Any = np.bincount(columns, np.abs(coef), minlength=d)
    total = float(np.sum(sizes))
    return sizes / total if total > 0 else sizes
