"""The rows of a tensor, ready for the algebra of a sweep: nothing of them leaves the device.

Scores, labels and weights are `OnDevice` vectors, so that losses and prices, written in NumPy's
words, run where the rows lie. What is small comes back as NumPy's float64.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.arrays import SIZE_LIMIT
from toprank.blocks.on_device import OnDevice, on_host
from toprank.blocks.source import Block
from toprank.blocks.statistics import BlockCounts, ColumnStatistics, LabelCounts, first_bad
from toprank.blocks.tensors import all_finite, distinct, on_device
from toprank.objective.blockwise.rows import OpenBlock, Tilts
from toprank.objective.device import DeviceRows
from toprank.objective.histogram import BIN, BINS, ScoreHistogram, Standard
from toprank.objective.sweep import EndPartial

#: Evenly spaced rows that tell in what units the columns are read.
_SAMPLE_ROWS = 4096
#: Weights are counted in whole quanta, so that no order of adding up can change a bit.
_QUANTA = 2.0**60


class TensorBlock(OpenBlock):
    """Rows of a torch tensor, on whatever device it lies."""

    @staticmethod
    def count_labels(block: Block) -> LabelCounts:
        if block.y is None:
            raise ValueError("The source has no labels; give y to blocks.from_torch.")
        labels = distinct(block.y)
        members = [block.y == label for label in labels.tolist()]
        rows = np.array([int(m.sum()) for m in members], dtype=np.int64)
        if block.weight is None:
            counts = BlockCounts(labels, rows, rows)
            return LabelCounts(labels, rows.astype(np.float64), {block.index: counts})
        weight = block.weight.double()
        held = weight > 0
        present = np.array([int((m & held).sum()) for m in members], dtype=np.int64)
        return LabelCounts(
            labels,
            np.array([float((weight * m).sum()) for m in members]),
            {block.index: BlockCounts(labels, rows, present)},
            weighted=True,
            smallest=float(weight.min()) if len(weight) else np.inf,
            finite=all_finite(weight),
        )

    @staticmethod
    def describe(block: Block) -> ColumnStatistics:
        """Describe evenly spaced rows, and the range of all of them where that may matter."""
        X, n = block.X, block.n_rows
        if n == 0:
            return ColumnStatistics.empty(X.shape[1])
        sample = X[:: max(1, n // _SAMPLE_ROWS)].double()
        columns = (sample.amin(0), sample.amax(0), sample.mean(0), sample.var(0, correction=0))
        low, high, mean, variance = map(_host, columns)
        total = ColumnStatistics(len(sample), low, high, mean, len(sample) * variance)
        total.first = block.index, _host(sample[0])
        lowest, highest = (float(end) for end in X.aminmax())
        if not max(-lowest, highest) <= SIZE_LIMIT:
            total.low, total.high = (_host(end.double()) for end in (X.amin(0), X.amax(0)))
            total.bad = first_bad(block.index, total)
            total.look_for_the_smallest(_host(sample))
        return total

    @cached_property
    def rows(self) -> DeviceRows:
        weight = self._weight
        logs = None if weight is None else weight.log()
        positive = None if self.block.y is None else self._positive  # rows are only scored
        return DeviceRows(self.block.X, positive, logs, self.view.units)

    @cached_property
    def _positive(self) -> Any:
        return self.block.y == self.view.classes[1].item()

    @cached_property
    def _weight(self) -> Any:
        weight, of_class = self.block.weight, self.view.class_weight
        weight = None if weight is None else weight.double()
        if of_class is None:
            return weight
        torch = require("torch", "torch")
        numbers = torch.tensor(of_class, dtype=torch.float64, device=self.block.X.device)
        by_class = numbers[self._positive.long()]
        return by_class if weight is None else by_class * weight

    def labels(self) -> tuple[Any, Any]:
        weight = self._weight
        return OnDevice(self._positive), None if weight is None else OnDevice(weight)

    def located_scores(self, coef: FloatArray, step: int, before: int) -> FloatArray:
        """Return the scores of every so many rows present, those of the blocks before counted."""
        rows = self.block.X[self._every(2, step, before)]
        return _host(DeviceRows(rows, None, None, self.view.units).scores(coef))

    def _every(self, kind: int, step: int, before: int) -> Any:
        """Rows of a kind at equal distances: negatives, positives or those present."""
        start = -before % step
        if kind == 2 and self._weight is None:
            torch = require("torch", "torch")
            return torch.arange(start, self.n_rows, step, device=self.block.X.device)
        members = (~self._positive, self._positive, self._weight)[kind]
        return (members > 0).nonzero()[:, 0][start::step]

    def thinned(
        self,
        steps: tuple[int, int],
        before: tuple[int, int],
        stands_for: tuple[float, float],
    ) -> Block:
        """Return every so many rows of each class, with weights that make up for the others."""
        torch = require("torch", "torch")
        kept = [self._every(kind, steps[kind], before[kind]) for kind in (0, 1)]
        counts = [kept[kind].new_full(kept[kind].shape, stands_for[kind], dtype=torch.float64)
                  for kind in (0, 1)]  # fmt: skip
        rows, order = torch.cat(kept).sort()
        weight = torch.cat(counts)[order]
        if self.block.weight is not None:
            weight = weight * self.block.weight[rows].double()
        return Block(self.block.index, self.block.X[rows], self.block.y[rows], weight)

    def gathered(self, what: str, *arguments: Any) -> Any:
        found = getattr(self, what)(*arguments)
        return tuple(map(on_host, found)) if isinstance(found, tuple) else on_host(found)

    def take(self, rows: Any) -> Any:
        chosen = self.block.X[on_device(rows, self.block.X)]
        return (chosen if chosen.dtype.itemsize >= 4 else chosen.double()).cpu().numpy()

    def scores(self, coef: FloatArray) -> Any:
        return OnDevice(self.rows.scores(coef))

    def adjoint(self, v: Any) -> FloatArray:
        return self.rows.adjoint(self._column(v))

    def second_moments(self, weight: Any) -> FloatArray:
        return self.rows.second_moments(self._column(weight))

    def _column(self, v: Any) -> Any:
        return v.tensor if isinstance(v, OnDevice) else on_device(v, self.block.X)

    def columns(self, first: int, last: int) -> FloatArray:
        part = self.block.X[:, first:last].double().cpu().numpy()
        return self.view.units.apply(part, slice(first, last))

    def tilted(self, coef: FloatArray, tilts: Tilts, order: int) -> list[EndPartial]:
        return self.rows.tilted(coef, tilts, order)

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        scores = self.rows.scores(coef)
        present = self._positive | True if self._weight is None else self._weight > 0
        ends = []
        for members, worst, pick in (
            (self._positive & present, np.inf, "min"),
            (~self._positive & present, -np.inf, "max"),
        ):
            inside = scores.where(members, worst)
            ends.append(float(getattr(inside, pick)()) if self.n_rows else worst)
        return ends[0], ends[1]

    def histogram(self, coef: FloatArray, shift: float, standard: Standard) -> ScoreHistogram:
        """Count in whole quanta of weight, so that no order of adding up can change a bit."""
        weight = self._weight
        heaviest = float(self.n_rows if weight is None else weight.sum())
        quanta = _QUANTA / max(heaviest, 1e-300)
        centred = Standard(standard.centre - shift, standard.spread)
        found, beyond = self.rows.counted(coef, weight, centred, quanta)
        counts = found / quanta
        centres = (np.arange(BINS) + 0.5 - BINS / 2) * BIN
        total = ScoreHistogram(counts[0], counts[0] * np.tile(centres, 2) + counts[1] * BIN)
        if beyond:
            u = (self.rows.scores(coef) - centred.centre) / centred.spread
            far = ~(u.abs() < BIN * BINS / 2)
            ones = u.new_ones(len(u)) if weight is None else weight
            total.outside.append((_host(u[far]), _host(self._positive[far]), _host(ones[far])))
        return total


def _host(part: Any) -> NDArray[Any]:
    return np.asarray(part.cpu().numpy())
