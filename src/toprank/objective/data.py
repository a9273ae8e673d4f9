"""A block source that has been looked at: its classes, units and a sample of its rows.

The driver's side of every fit. It holds what does not grow with the rows (but for two numbers
per block), and answers what an objective asks of a design matrix by passes over the blocks.
`scores`, `labels` and `columns` bring something of every row to the driver; only objectives that
cannot be merged, and rows in memory, ask for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._arrays import AnyArray, Frame, Matrix, TableLike
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.design import design_of
from toprank.blocks.memory import ArraySource, gather_blocks
from toprank.blocks.source import Bad, BlockSource, Partial, ShowsBad, State, Sweep
from toprank.blocks.statistics import BlockCounts, LabelCounts, Units, refusal, sample_step
from toprank.objective.labelled import View
from toprank.objective.sums import LOCATION_ROWS
from toprank.objective.sweeps import (
    Describe,
    Extremes,
    Gather,
    Labels,
    Located,
    Pieces,
    Products,
    RowCounts,
    Squares,
    Thin,
    Thinning,
)

#: A coarse problem keeps about this share of the rows, within the limits given.
_COARSE_SHARE = 1 / 32
_COARSE_ROWS = (5_000, 200_000)
_COARSE_ROWS_PER_FEATURE = 100
#: On a device, how many rows are worth thinning, and the most to keep.
_DEVICE_ROWS = 1 << 16, 1 << 20
#: On a GPU one in so many rows is kept at the most: a larger sample saves reads of all rows.
_GPU_SHARE = 8
_GPU_ROWS = 1 << 21
#: Rows that tell whether most entries are zero, about.
_ZERO_ROWS = 256
#: Share of entries other than zero below which a dense matrix is worth storing without its zeros,
#: and the bytes that this may take.
_LIGHT_SHARE, _LIGHT_BYTES = 0.2, 1 << 26
#: Bytes of dense rows that a sample may bring to the driver.
_SAMPLE_BYTES = 1 << 28

_NO_CLASSES = np.empty(0)


def count_labels(source: BlockSource) -> LabelCounts:
    """Count the labels and weights of a source, in a pass that needs no features."""
    counts: LabelCounts = source.map_reduce(Labels(), None)
    return counts


def coarse_rows(n: int, size: int) -> int | None:
    """Return about how many rows stand for n in a coarse problem; None if n is small anyway."""
    enough = _COARSE_ROWS_PER_FEATURE * size
    rows = int(max(enough, np.clip(n * _COARSE_SHARE, *_COARSE_ROWS)))
    return None if n < 4 * rows else rows


class BlockData:
    """The rows of a block source as a design matrix that passes read.

    Parameters
    ----------
    source : BlockSource
    starts : mapping
        The number of the first row of each block, in order.
    n_rows : int
    like : BlockData, optional
        What the rows are a sample of; its units are taken over.
    """

    def __init__(
        self,
        source: BlockSource,
        starts: Mapping[int, int],
        n_rows: int,
        like: BlockData | None = None,
    ):
        self.source = source
        self.starts = starts
        self.n_rows = n_rows
        self.n_features = source.n_features
        self.passes: Counter[str] = Counter()
        self._drawn: Pieces | None = None
        self.view = View(_NO_CLASSES, entries=self.entries)
        if like is None:
            self.units, self.sparse = self._look()
        else:
            self.units, self.sparse = like.units, like.sparse
            self._check = like._check
        self.view = View(_NO_CLASSES, None, self.units, self.entries)

    @classmethod
    def of(cls, X: TableLike, n_jobs: int | None = None) -> BlockData:
        """Look at the rows of a matrix in memory that has been checked; they have no labels."""
        source = ArraySource(X, None, None, None, n_jobs, checked=True)
        counts: Pieces = source.map_reduce(RowCounts(), None)
        return cls(source, _block_starts(counts), source.n_rows)

    @property
    def entries(self) -> int:
        return self.n_rows * self.n_features

    #: What looks at every entry, where that has not been done yet.
    _check: Callable[[], Bad | None] | None = None

    def run(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        """Make one pass over the blocks."""
        self.passes[type(sweep).__name__.lower()] += 1
        if self._check is None:
            return self.source.map_reduce(sweep, state)
        check, self._check = self._check, None
        at_one_point = isinstance(state, np.ndarray) and state.ndim == 1
        if isinstance(sweep, ShowsBad) and sweep.shows_bad and at_one_point:
            found: Partial = self.source.map_reduce(sweep, state)
            if not sweep.is_finite(found):
                self._refuse(check())
            return found
        self._refuse(check())
        return self.source.map_reduce(sweep, state)

    def _look(self, thinning: Thinning | None = None) -> tuple[Units, bool]:
        """Check every entry; say in what units the columns are read, and whether X is sparse."""
        step = sample_step(self.n_rows, self.n_features)
        check = None if self.source.checked else self.source.late_check()
        whole = check is None and not self.source.checked
        sweep = Describe(self.view, step, self.starts, thinning, whole)
        statistics, self._drawn = self.run(sweep, None)
        self._refuse(statistics.bad)
        self._check = check
        return statistics.units(), statistics.sparse

    def _refuse(self, bad: Bad | None) -> None:
        """Refuse an entry that no fit can use."""
        if bad is None:
            return
        index, column, what = bad
        names = self.source.feature_names
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        raise ValueError(refusal(what, f"{name}, in {self.source.name_of(index)}"))

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return X @ coef for every row, blocks in order of their index."""
        return self.in_order(self.run(Gather(self.view, "scores"), (coef,)))

    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last."""
        return self.in_order(self.run(Gather(self.view, "columns"), (first, last)))

    def adjoint(self, v: FloatArray) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""
        total: FloatArray = self.run(Products(self.view), self.cut(v))
        return total

    def sizes(self, v: FloatArray) -> FloatArray:
        """Return |X|.T @ |v|: the size of what is added up in X.T @ v."""
        total: FloatArray = self.run(Products(self.view, "sizes"), self.cut(v))
        return total

    def second_moments(self, weight: FloatArray) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""
        total: FloatArray = self.run(Products(self.view, "second_moments"), self.cut(weight))
        return total

    @cached_property
    def squares(self) -> FloatArray:
        """Sums and sums of squares of each column, one line each."""
        sums: FloatArray = self.run(Squares(self.view), None)
        return sums

    def column_spread(self) -> FloatArray:
        """Return the standard deviation of each column."""
        mean, square = self.squares / self.n_rows
        return np.sqrt(np.maximum(square - mean**2, 0.0))

    @cached_property
    def mostly_zero(self) -> bool:
        """Whether more than half of the entries are zero, by evenly spaced rows."""
        if self.sparse:
            return True
        step = max(1, self.n_rows // _ZERO_ROWS)
        rows = self._raw(np.arange(0, self.n_rows, step))
        return 2 * int(np.count_nonzero(rows)) < rows.size

    def take(self, rows: NDArray[np.intp]) -> BlockData:
        """Return copies of some rows, in memory."""
        X = self._raw(rows)
        source = ArraySource(X, None, None, X.shape[0], self.source.n_jobs)
        return BlockData(source, {0: 0}, X.shape[0], self)

    def in_units(self, rows: NDArray[np.intp]) -> Matrix:
        """Return some rows in their units, those of a sparse matrix as CSR."""
        return self._raw(rows) if self.sparse else self.dense(rows)

    def dense(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return some rows, dense and in their units."""
        return design_of(self._raw(rows), self.units).columns(0, self.n_features)

    def _raw(self, rows: NDArray[np.intp]) -> Matrix:
        if len(self.starts) == 1:
            (index,) = self.starts
            return self.run(Gather(self.view, "take"), {index: (rows,)})[index]
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], [*self.starts.values(), self.n_rows])
        state = {
            index: (rows[order[first:last]] - start,)
            for (index, start), first, last in zip(
                self.starts.items(), cuts[:-1], cuts[1:], strict=True
            )
        }
        pieces = self.run(Gather(self.view, "take"), state)
        parts = [pieces[index] for index in sorted(pieces)]
        thin = sparse.issparse(parts[0])
        X = sparse.csr_array(sparse.vstack(parts)) if thin else np.concatenate(parts)
        return X[np.argsort(order, kind="stable")]

    def cut(self, v: FloatArray) -> Pieces:
        """Cut a vector of one number per row into the blocks' pieces."""
        ends = [*list(self.starts.values())[1:], self.n_rows]
        return {
            index: v[start:end]
            for (index, start), end in zip(self.starts.items(), ends, strict=True)
        }

    @staticmethod
    def in_order(pieces: Pieces) -> np.ndarray:
        """Put the pieces of the blocks together, in order of the blocks."""
        parts = [pieces[index] for index in sorted(pieces)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _csr_of(X: Matrix) -> sparse.csr_array:
    """Return a matrix as CSR, its entries as float64 and in the order of the rows."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    there = X != 0
    at = np.flatnonzero(there)
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
    rows_of_c = X if X.flags.c_contiguous else np.ascontiguousarray(X)
    entries = rows_of_c.ravel()[at].astype(np.float64)
    return sparse.csr_array((entries, (at % X.shape[1]).astype(np.int32), ends), X.shape)


def _block_starts(rows: Mapping[int, int]) -> dict[int, int]:
    starts, first = {}, 0
    for index in sorted(rows):
        starts[index] = first
        first += rows[index]
    return starts


class LabelledData(BlockData):
    """Rows of two classes, with weights.

    Parameters
    ----------
    source : BlockSource
    counts : LabelCounts
        Its labels, from `count_labels`.
    classes : array of two labels
        The positive one last.
    class_weight : (float, float), optional
        What multiplies the weights of (negatives, positives).
    size : int
        Number of coefficients that will be fitted; it decides how large a sample is kept.
    like : BlockData, optional
        What the rows are a sample of; its units are taken over.
    """

    def __init__(
        self,
        source: BlockSource,
        counts: LabelCounts,
        classes: AnyArray,
        class_weight: tuple[float, float] | None,
        size: int,
        like: BlockData | None = None,
    ):
        self.counts = counts
        self.classes = classes
        self.class_weight = class_weight
        self.size = size
        #: Whether these rows stand for others.
        self.is_sample = like is not None
        #: Whether the rows of a class weigh alike, and none nothing.
        self.alike = not counts.weighted
        super().__init__(source, counts.starts(), counts.n_rows, like)
        self.passes["labels"] += 1
        self.view = View(classes, class_weight, self.units, self.entries)

    @classmethod
    def of_arrays(
        cls,
        X: Matrix | Frame,
        positive: NDArray[np.bool_],
        weight: FloatArray | None = None,
        *,
        intercepts: int = 0,
        n_jobs: int | None = None,
        like: BlockData | None = None,
    ) -> LabelledData:
        """Look at rows in memory that have been checked."""
        source = ArraySource(X, positive, weight, None, n_jobs, checked=True)
        counts = count_labels(source)
        size = X.shape[1] + intercepts
        return cls(source, counts, np.array([False, True]), None, size, like)

    def without_zeros(self) -> LabelledData | None:
        """Return the same rows, sparse in float64, where small and much faster to read; else None.

        A product converts all entries of another type anew. Passes over them count as passes over
        these rows.
        """
        source = self.source
        if not (isinstance(source, ArraySource) and self.units.plain) or source.stamps:
            return None
        parts = [block.X for block in source.blocks]
        stored = source.stored
        if self.sparse:
            slow = parts[0].dtype != np.float64
        else:
            slow = all(type(part) is np.ndarray for part in parts) and self.mostly_zero
            stored = sum(map(np.count_nonzero, parts)) if slow else stored
            slow = slow and stored <= _LIGHT_SHARE * self.entries
        if not slow or 12 * stored > _LIGHT_BYTES:
            return None
        X = sparse.csr_array(sparse.vstack([_csr_of(part) for part in parts]))
        intercepts = self.size - self.n_features
        found = LabelledData.of_arrays(X, *self.labels, intercepts=intercepts, n_jobs=source.n_jobs)
        found.passes = self.passes
        return found

    def _look(self, thinning: Thinning | None = None) -> tuple[Units, bool]:
        self.view = View(self.classes, self.class_weight, entries=self.entries)
        return super()._look(None if self.source.keeps_samples else self.thinning)

    @cached_property
    def _members(self) -> dict[int, tuple[int, int, int]]:
        """Of each block the numbers of negatives, positives and rows present."""
        members = {}
        for index in sorted(self.counts.blocks):
            of_class = [self.counts.blocks[index].of(label) for label in self.classes]
            present = sum(there for _, there in of_class)
            members[index] = (of_class[0][0], of_class[1][0], present)
        return members

    @cached_property
    def thinning(self) -> Thinning:
        """Which rows stand for all."""
        before, at = {}, (0, 0, 0)
        for index, here in self._members.items():
            before[index] = at
            at = (at[0] + here[0], at[1] + here[1], at[2] + here[2])
        rows = self._rows_to_keep()
        steps = (0, 0) if rows is None else tuple(max(1, n // (rows // 2)) for n in at[:2])
        located = max(1, at[2] // LOCATION_ROWS)
        return Thinning((steps[0], steps[1], located), before, at[:2])

    def _rows_to_keep(self) -> int | None:
        source = self.source
        if source.sample_entries is not None and not self.sparse:
            fewest, most = source.sample_entries
            kept = min(self.n_rows // _GPU_SHARE, most // max(1, self.n_features), _GPU_ROWS)
            return kept if self.entries >= fewest and kept >= _COARSE_ROWS[0] else None
        rows = coarse_rows(self.n_rows, self.size)
        on_device = source.samples_on_device or (source.keeps_samples and not source.in_memory)
        if on_device:
            if self.n_rows < _DEVICE_ROWS[0]:
                return None
            if rows is not None:  # a larger sample saves reads of all rows
                rows = max(rows, min(self.n_rows // 32, _DEVICE_ROWS[1]))
        if rows is None:
            return None
        return min(rows, max(2, _SAMPLE_BYTES // (8 * max(1, self.n_features))))

    @property
    def _samples(self) -> Pieces:
        """Rows that were drawn while the columns were described, or now where others were."""
        if self._drawn is None:
            view = self.view
            self._look()
            self.view = view
        drawn: Pieces | None = self._drawn
        assert drawn is not None
        return drawn

    def through(self, source: BlockSource) -> LabelledData:
        """Return the same rows, looked at already, behind another source that brings them."""
        same = copy(self)
        same.source, same.passes = source, Counter()
        return same

    @cached_property
    def log_totals(self) -> tuple[float, float]:
        """Logarithms of the total weights of the positives and of the negatives."""
        neg, pos = self.totals
        return float(np.log(pos)), float(np.log(neg))

    @cached_property
    def totals(self) -> tuple[float, float]:
        """Total weights of the negatives and of the positives."""
        by_class = (1.0, 1.0) if self.class_weight is None else self.class_weight
        neg, pos = (
            float(self.counts.weight[self.counts.labels == label][0]) * factor
            for label, factor in zip(self.classes, by_class, strict=True)
        )
        return neg, pos

    @property
    def weighted(self) -> bool:
        return self.counts.weighted or self.class_weight is not None

    @cached_property
    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]:
        """Which rows are positive, and their weights, of all rows on the driver."""
        pieces = self.run(Gather(self.view, "labels"), ())
        positive = self.in_order({index: piece[0] for index, piece in pieces.items()})
        if not self.weighted:
            return positive, None
        return positive, self.in_order({index: piece[1] for index, piece in pieces.items()})

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative."""
        lowest, highest = self.run(Extremes(self.view), coef)
        return lowest, highest

    @cached_property
    def coarser(self) -> LabelledData | None:
        """Rows that stand for all, each class thinned by itself; None if there are few rows.

        The rows of a class are evenly spaced and their weights make up for the others, so that
        a rare class stays whole.
        """
        if not self.thinning.keeps_rows:
            return None
        if self.source.keeps_samples:
            source = self.source.thin(Thin(self.view, self.thinning))
        else:
            samples = self._samples
            parts = [samples[index][0] for index in sorted(samples)]
            on_device = self.source.samples_on_device
            source = (
                self.source.gather(parts) if on_device else gather_blocks(parts, self.source.n_jobs)
            )
        counts = self._counts_of_sample if self.source.keeps_samples else None
        counts = counts or count_labels(source)
        if len(counts.labels) < 2 or not np.all(counts.weight > 0):
            return None
        sample = LabelledData(source, counts, self.classes, self.class_weight, self.size, self)
        sample.alike = self.alike  # its weights say how many rows of the class each stands for
        return sample

    @property
    def _counts_of_sample(self) -> LabelCounts | None:
        """What is in `coarser`, where it follows from the numbers of rows; None elsewhere."""
        if self.counts.weighted or len(self.starts) > 1:
            return None
        members, (index,) = np.array(self.thinning.members), self.starts
        rows = -(-members // np.array(self.thinning.steps[:2]))
        blocks = {index: BlockCounts(self.classes, rows, rows)}
        each = float(np.min(members / rows))
        return LabelCounts(self.classes, members.astype(np.float64), blocks, True, each)

    def sample(self, size: int) -> LabelledData | None:
        """Return `coarser` as it is for so many coefficients; it is not kept."""
        other = copy(self)
        other.size = size
        for kept in ("thinning", "coarser"):
            vars(other).pop(kept, None)
        return other.coarser

    def spaced_scores(self, coef: FloatArray) -> FloatArray:
        """Return the scores of evenly spaced rows of weight above zero."""
        if self.source.keeps_samples:
            return self.in_order(self.run(Located(self.view, self.thinning), coef))
        samples = self._samples
        designs = [design_of(samples[index][1], self.units) for index in sorted(samples)]
        return np.concatenate([design.to_host(design.scores(coef)) for design in designs])
