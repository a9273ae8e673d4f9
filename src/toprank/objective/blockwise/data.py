"""A block source that has been looked at: its classes, units and a sample of its rows.

The driver's side of every blockwise fit. It holds what does not grow with the rows (but for
two numbers a block), and answers what an objective asks of a design matrix by passes over the
blocks. `scores`, `labels` and `columns` bring something of every row to the driver; only
objectives that cannot be merged, and small data, ask for them.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks import RowBlocks, Workers
from toprank.blocks.source import BlockSource
from toprank.blocks.statistics import LabelCounts
from toprank.objective.blockwise.rows import View
from toprank.objective.blockwise.sweeps import (
    Adjoint,
    Describe,
    Extremes,
    Gather,
    Labels,
    Located,
    Pieces,
    Sample,
    Thin,
    Thinning,
)
from toprank.objective.histogram import LOCATION_ROWS
from toprank.objective.linear import coarse_rows, coarse_step

#: Where samples stay with the rows: how many rows are worth thinning, and the most to keep.
_KEPT_ROWS = 1 << 16, 1 << 20
#: Bytes of dense rows that a sample may bring to the driver.
_SAMPLE_BYTES = 1 << 28


def count_labels(source: BlockSource) -> LabelCounts:
    """Count the labels and weights of a source, in a pass that needs no features."""
    counts: LabelCounts = source.map_reduce(Labels(), None)
    return counts


class BlockData:
    """The rows of a block source as an objective sees them.

    Parameters
    ----------
    source : BlockSource
    counts : LabelCounts
        Its labels, from `count_labels`.
    classes : array of two labels
        The positive one last.
    class_weight : (float, float), optional
        What multiplies the weights of (negatives, positives).
    workers : Workers
        Threads for problems that fit on the driver.
    size : int
        Number of coefficients that will be fitted; it decides how large a sample is kept.
    finer : BlockData, optional
        What these rows are a sample of; its units and columns are taken over.
    """

    def __init__(
        self,
        source: BlockSource,
        counts: LabelCounts,
        classes: NDArray[Any],
        class_weight: tuple[float, float] | None,
        workers: Workers,
        size: int,
        finer: BlockData | None = None,
    ):
        self.source = source
        self.counts = counts
        self.workers = workers
        self.passes: Counter[str] = Counter({"labels": 1})
        self.n_rows = counts.n_rows
        self.n_features = source.n_features
        entries = self.n_rows * self.n_features
        self.view = View(classes, class_weight, entries=entries)
        self.size = size
        thinning = self._thinning(size)
        #: What a sample would take; it stays where the rows lie if this is set.
        self._kept_back = thinning if source.keeps_samples else None
        self._rows_of_sample = not source.keeps_samples and thinning.steps[:2] != (0, 0)
        if finer is None:
            taken = None if source.keeps_samples else thinning
            self.columns_, self.samples = self.run(Describe(self.view, taken), None)
            self._check_finite()
            self.units = self.columns_.units()
        else:
            self.columns_, self.units = finer.columns_, finer.units
        self.sparse = self.columns_.sparse
        self.view = View(classes, class_weight, self.units, entries)

    def run(self, sweep: Any, state: Any) -> Any:
        """Make one pass over the blocks."""
        self.passes[type(sweep).__name__.lower()] += 1
        return self.source.map_reduce(sweep, state)

    def _thinning(self, size: int) -> Thinning:
        before, at = {}, [0, 0, 0]
        for index in sorted(self.counts.blocks):
            before[index] = (at[0], at[1], at[2])
            block = self.counts.blocks[index]
            for place, label in enumerate(self.view.classes):
                members, present = block.of(label)
                at[place] += members
                at[2] += present
        self.n_negative, self.n_positive, self.n_present = at
        rows = coarse_rows(self.n_rows, size)
        if self.source.keeps_samples and self.n_rows < _KEPT_ROWS[0]:
            rows = None
        steps = [0, 0]
        if rows is not None:
            if self.source.keeps_samples:  # a larger one saves reads of all rows
                rows = max(rows, min(self.n_rows // 32, _KEPT_ROWS[1]))
            rows = min(rows, max(2, _SAMPLE_BYTES // (8 * max(1, self.n_features))))
            steps = [coarse_step(members, rows) for members in at[:2]]
        located = max(1, self.n_present // LOCATION_ROWS)
        return Thinning((steps[0], steps[1], located), before)

    def _check_finite(self) -> None:
        bad = self.columns_.bad
        if bad is None:
            return
        index, column, what = bad
        names = self.source.feature_names
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        raise ValueError(
            f"Input X contains {what}: {name}, in {self.source.name_of(index)}. Impute, or drop "
            "such rows, before blocks are made."
        )

    @cached_property
    def log_totals(self) -> tuple[float, float]:
        """Logarithms of the total weights of the positives and of the negatives."""
        neg, pos = self.totals
        return float(np.log(pos)), float(np.log(neg))

    @cached_property
    def totals(self) -> tuple[float, float]:
        """Total weights of the negatives and of the positives."""
        by_class = (1.0, 1.0) if self.view.class_weight is None else self.view.class_weight
        neg, pos = (
            float(self.counts.weight[self.counts.labels == label][0]) * factor
            for label, factor in zip(self.view.classes, by_class, strict=True)
        )
        return neg, pos

    @property
    def weighted(self) -> bool:
        return self.counts.weighted or self.view.class_weight is not None

    def coarse_sample(self) -> tuple[RowBlocks, NDArray[np.bool_], FloatArray] | None:
        """Return rows, labels and weights that stand for all; None if there are few rows."""
        if not self._rows_of_sample:
            return None
        X, positive, weight = self._collected(0)
        of_class = np.array([self.n_negative, self.n_positive], dtype=np.float64)
        kept = np.bincount(positive.astype(np.intp), minlength=2)
        weights = (of_class / np.maximum(kept, 1))[positive.astype(np.intp)]
        if weight is not None:
            weights = weights * weight
        if not all(np.any(weights[positive == side] > 0) for side in (True, False)):
            return None
        return RowBlocks(X, self.workers, self.units), positive, weights

    def coarser(self) -> BlockData | None:
        """Return a sample that stays where the rows lie; None if there is none such."""
        if self._kept_back is None or self._kept_back.steps[:2] == (0, 0):
            return None
        view = self.view
        pick = Thin(view, self._kept_back, (self.n_negative, self.n_positive))
        source = self.source.thinned(pick)
        counts = count_labels(source)
        if len(counts.labels) < 2 or not np.all(counts.weight > 0):
            return None
        return BlockData(
            source, counts, view.classes, view.class_weight, self.workers, self.size, finer=self
        )

    def located_scores(self, coef: FloatArray) -> FloatArray:
        """Return the scores of evenly spaced rows of weight above zero."""
        if self._kept_back is None:
            return RowBlocks(self._collected(1)[0], self.workers, self.units).scores(coef)
        return self._in_order(self.run(Located(self.view, self._kept_back), coef))

    def _collected(self, which: int) -> tuple[Any, NDArray[np.bool_], FloatArray | None]:
        parts: list[Sample] = [self.samples[index][which] for index in sorted(self.samples)]
        parts = [part for part in parts if len(part.positive)]
        X = self._stacked([part.X for part in parts])
        positive = np.concatenate([part.positive for part in parts])
        if parts[0].weight is None:
            return X, positive, None
        return X, positive, np.concatenate([part.weight for part in parts])

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative."""
        lowest, highest = self.run(Extremes(self.view), coef)
        return lowest, highest

    def column_spread(self) -> FloatArray:
        """Return the standard deviation of each column, in its units."""
        spread = self.columns_.spread
        return spread if self.units.scale is None else spread / self.units.scale

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return X @ coef for every row, blocks in order of their index."""
        return self._in_order(self.run(Gather(self.view, "scores"), (coef,)))

    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]:
        """Return which rows are positive, and their weights."""
        pieces = self.run(Gather(self.view, "labels"), ())
        positive = self._in_order({index: piece[0] for index, piece in pieces.items()})
        if not self.weighted:
            return positive, None
        return positive, self._in_order({index: piece[1] for index, piece in pieces.items()})

    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last."""
        return self._in_order(self.run(Gather(self.view, "columns"), (first, last)))

    def adjoint(self, v: FloatArray) -> FloatArray:
        """Return X.T @ v, v cut into the blocks' pieces."""
        total: FloatArray = self.run(Adjoint(self.view), self._cut(v))
        return total

    def take(self, rows: NDArray[np.intp]) -> RowBlocks:
        """Return copies of some rows."""
        order = np.argsort(rows, kind="stable")
        starts = self.counts.starts()
        cuts = np.searchsorted(rows[order], [*starts.values(), self.n_rows])
        state = {
            index: (rows[order[first:last]] - start,)
            for (index, start), first, last in zip(starts.items(), cuts[:-1], cuts[1:], strict=True)
        }
        pieces = self.run(Gather(self.view, "take"), state)
        X = self._stacked([pieces[index] for index in sorted(pieces)])
        back = np.argsort(order, kind="stable")
        return RowBlocks(X[back], self.workers, self.units)

    def _stacked(self, parts: list[Any]) -> Any:
        return sparse.csr_array(sparse.vstack(parts)) if self.sparse else np.concatenate(parts)

    def _cut(self, v: FloatArray) -> Pieces:
        starts = self.counts.starts()
        ends = [*list(starts.values())[1:], self.n_rows]
        return {
            index: v[start:end] for (index, start), end in zip(starts.items(), ends, strict=True)
        }

    @staticmethod
    def _in_order(pieces: Pieces) -> Any:
        return np.concatenate([pieces[index] for index in sorted(pieces)])
