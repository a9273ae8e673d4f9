"""What one look at the data tells: labels, weights, and the range and spread of each column.

Every statistic here belongs to some rows and merges with that of other rows, in any order, so
that the same code describes an array, a folder of files and a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks.arrays import (
    OFFSET_LIMIT,
    SIZE_LIMIT,
    RowBlocks,
    Units,
    scale_of,
    smallest_size,
)
from toprank.blocks.source import joined
from toprank.blocks.threads import Workers

#: Distinct labels that are told apart; a target with more is no label.
MOST_LABELS = 1000


@dataclass(frozen=True)
class BlockCounts:
    """The labels of one block: how many rows each has, and how many of weight above zero."""

    labels: NDArray[Any]
    rows: NDArray[np.int64]
    present: NDArray[np.int64]

    def of(self, label: Any) -> tuple[int, int]:
        """Return (rows, rows of weight above zero) of a label."""
        here = np.flatnonzero(self.labels == label)
        return (int(self.rows[here[0]]), int(self.present[here[0]])) if len(here) else (0, 0)


@dataclass
class LabelCounts:
    """How often each label occurs, with what weight, in which block.

    ``smallest`` and ``finite`` describe the weights, so that a bad one can be refused;
    ``weighted`` says whether there are any.
    """

    labels: NDArray[Any]
    weight: FloatArray
    blocks: dict[int, BlockCounts] = field(default_factory=dict)
    weighted: bool = False
    smallest: float = np.inf
    finite: bool = True

    @classmethod
    def of(cls, index: int, y: Any, weight: Any = None) -> LabelCounts:
        """Count the labels of one block."""
        y = np.asarray(y)
        labels, place = _distinct(y)
        rows = np.bincount(place, minlength=len(labels)).astype(np.int64)
        if weight is None:
            counts = BlockCounts(labels, rows, rows)
            return cls(labels, rows.astype(np.float64), {index: counts})
        weight = np.asarray(weight, dtype=np.float64)
        present = np.bincount(place[weight > 0], minlength=len(labels)).astype(np.int64)
        total = np.bincount(place, weights=weight, minlength=len(labels)).astype(np.float64)
        return cls(
            labels,
            total,
            {index: BlockCounts(labels, rows, present)},
            weighted=True,
            smallest=float(np.min(weight, initial=np.inf)),
            finite=bool(np.all(np.isfinite(weight))),
        )

    def merge(self, other: LabelCounts) -> LabelCounts:
        """Join the counts of other blocks."""
        both = [part for part in (self, other) if len(part.labels)]
        labels, weight = self.labels, self.weight
        if both:
            labels, place = np.unique(
                np.concatenate([part.labels for part in both]), return_inverse=True
            )
            weight = np.bincount(
                place, np.concatenate([part.weight for part in both]), len(labels)
            ).astype(np.float64)
        return LabelCounts(
            labels[:MOST_LABELS],
            weight[:MOST_LABELS],
            joined(self.blocks, other.blocks),
            self.weighted or other.weighted,
            min(self.smallest, other.smallest),
            self.finite and other.finite,
        )

    @property
    def n_rows(self) -> int:
        return sum(int(np.sum(block.rows)) for block in self.blocks.values())

    def starts(self) -> dict[int, int]:
        """Return the number of the first row of each block, blocks in order of their index."""
        starts, first = {}, 0
        for index in sorted(self.blocks):
            starts[index] = first
            first += int(np.sum(self.blocks[index].rows))
        return starts


def _distinct(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels in order, and which of them each row has."""
    if y.dtype.kind in "biuf" and y.size:
        low, high = y.min(), y.max()
        is_high = y == high
        if np.all(is_high | (y == low)):  # two numbers are told apart without a sort
            if low == high:
                return np.array([low]), np.zeros(len(y), dtype=np.intp)
            return np.array([low, high]), is_high.astype(np.intp)
    try:
        labels, place = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(
            f"The labels are of several types ({', '.join(kinds)}) and cannot be put in order. "
            "Fill in missing ones and use one type."
        ) from error
    return labels, place.astype(np.intp)


@dataclass
class ColumnStatistics:
    """Range, mean and squared deviations of each column, over some rows.

    ``first`` is the first row of the block of lowest index, ``bad`` the first entry that is
    not a finite number: (block, column, what it is). ``smallest`` is the least size of an entry
    other than zero, looked for where entries are huge; elsewhere the largest stands for it.
    """

    n_rows: int
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    deviation: FloatArray
    first: tuple[int, FloatArray] | None = None
    bad: tuple[int, int, str] | None = None
    sparse: bool = False
    smallest: FloatArray = field(default_factory=lambda: np.full(1, np.inf))

    @classmethod
    def empty(cls, n_features: int) -> ColumnStatistics:
        zeros = np.zeros(n_features)
        infinite = np.full(n_features, np.inf)
        return cls(0, infinite, -infinite, zeros, zeros.copy())

    def look_for_the_smallest(self, X: Any) -> None:
        """Find the least entries of huge columns among these rows."""
        smallest = np.where(self.largest > 0, self.largest, np.inf)
        for column in np.flatnonzero(np.isfinite(smallest) & (smallest > SIZE_LIMIT)):
            part = X[:, [column]]
            smallest[column] = smallest_size(part.data if sparse.issparse(part) else part)
        self.smallest = smallest

    @classmethod
    def of(cls, index: int, X: Any) -> ColumnStatistics:
        """Describe the columns of one block, dense or sparse."""
        n, d = X.shape
        if n == 0:
            return cls.empty(d)
        if sparse.issparse(X):
            total = _sparse_part(X)
        else:
            total = cls.empty(d)
            source = RowBlocks(X, Workers(1))
            for _, rows in source.blocks(0, n):
                total = total.merge(_dense_part(rows))
        first = X[:1].toarray() if sparse.issparse(X) else np.asarray(X[:1])
        total.first = (index, first[0].astype(np.float64))
        total.bad = first_bad(index, total)
        return total

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Join the statistics of other rows (Chan, Golub & LeVeque's update)."""
        n = self.n_rows + other.n_rows
        if n == 0:
            return self
        share = other.n_rows / n
        with np.errstate(invalid="ignore", over="ignore"):
            apart = other.mean - self.mean
            deviation = self.deviation + other.deviation + apart**2 * (self.n_rows * share)
            mean = self.mean + apart * share
        return ColumnStatistics(
            n,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            mean,
            deviation,
            _least(self.first, other.first),
            _least(self.bad, other.bad),
            self.sparse or other.sparse,
            np.minimum(self.smallest, other.smallest),
        )

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each column; half the range where squares overflow."""
        with np.errstate(invalid="ignore", over="ignore"):
            half = 0.5 * self.high - 0.5 * self.low
            spread = np.sqrt(self.deviation / max(1, self.n_rows))
        return np.where(np.isfinite(spread) & (self.largest <= SIZE_LIMIT), spread, half)

    @property
    def largest(self) -> FloatArray:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def units(self) -> Units:
        """Return units in which no column is too far from zero or too large; see `safe_units`."""
        if self.n_rows == 0 or len(self.low) == 0 or self.first is None:
            return Units()
        kept, dwarfed = scale_of(self.largest, self.smallest)
        if self.sparse:
            return Units(None, kept, dwarfed)
        scale = 1.0 if kept is None else kept
        mean, spread = np.abs(self.mean) / scale, self.spread / scale
        far = (mean > OFFSET_LIMIT * spread) & ((spread > 0) | (mean >= 1.0))
        centre = np.where(far, self.first[1] / scale, 0.0) if np.any(far) else None
        return Units(centre, kept, dwarfed)


def _dense_part(rows: FloatArray) -> ColumnStatistics:
    rows = np.asfortranarray(rows)  # reductions down short rows are slow
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.mean(rows, axis=0)
        apart = rows - mean
        deviation = np.einsum("ij,ij->j", apart, apart)
    part = ColumnStatistics(len(rows), np.min(rows, axis=0), np.max(rows, axis=0), mean, deviation)
    part.look_for_the_smallest(rows)
    return part


def _sparse_part(X: Any) -> ColumnStatistics:
    """The same from the stored entries; the others are zero."""
    n, d = X.shape
    data = X.data.astype(np.float64)
    low, high = np.zeros(d), np.zeros(d)
    full = np.bincount(X.indices, minlength=d) == n
    low[full], high[full] = np.inf, -np.inf
    np.minimum.at(low, X.indices, data)
    np.maximum.at(high, X.indices, data)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.bincount(X.indices, weights=data, minlength=d) / n
        square = np.bincount(X.indices, weights=data**2, minlength=d)
        deviation = np.maximum(square - n * mean**2, 0.0)
    part = ColumnStatistics(n, low, high, mean, deviation, sparse=True)
    part.look_for_the_smallest(X)
    return part


def first_bad(index: int, total: ColumnStatistics) -> tuple[int, int, str] | None:
    """Return (block, column, what) of the first column that is not finite."""
    # NaN survives a minimum, infinity one of the two
    wrong = np.flatnonzero(~np.isfinite(total.low) | ~np.isfinite(total.high))
    if len(wrong) == 0:
        return None
    column = int(wrong[0])
    what = "NaN" if np.isnan(total.low[column]) else "infinity"
    return index, column, what


def _least(left: Any, right: Any) -> Any:
    """The one that belongs to the block of lower index; either may be missing."""
    if left is None or right is None:
        return right if left is None else left
    return left if left[0] <= right[0] else right
