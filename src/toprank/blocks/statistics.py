"""What one look at the rows tells: labels and their weights, columns and their units.

How often each label occurs, in which block, with what weight; where each column lies, and which
entries no fit can use. Every description belongs to some rows and merges with that of other rows,
in any order, so that the same code describes an array, a folder of files and a cluster.

A column at 1e9 with a spread of 1 would cost nine digits in every score and more in every
covariance: such columns are read less their centre. Rankings do not notice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._arrays import AnyArray, IntArray
from toprank._numerics import LARGEST_SIZE, FloatArray, sum_of_squares
from toprank.blocks.source import join_pieces

#: Distinct labels that are told apart; a target with more is no label.
MOST_LABELS = 1000

#: What a block found first: the row it begins with, or (column, what is wrong there).
Found = TypeVar("Found", tuple[int, FloatArray], tuple[int, int, str])


@dataclass(frozen=True)
class BlockCounts:
    """The labels of one block: how many rows each has, and how many of weight above zero."""

    labels: np.ndarray
    rows: NDArray[np.int64]
    present: NDArray[np.int64]

    def of(self, label: object) -> tuple[int, int]:
        """Return (rows, rows of weight above zero) of a label."""
        here = np.flatnonzero(self.labels == label)
        return (int(self.rows[here[0]]), int(self.present[here[0]])) if len(here) else (0, 0)


@dataclass
class LabelCounts:
    """How often each label occurs, with what weight, in which block.

    ``smallest`` and ``finite`` describe the weights, so that a bad one can be refused;
    ``weighted`` says whether there are any.
    """

    labels: np.ndarray
    weight: FloatArray
    blocks: dict[int, BlockCounts] = field(default_factory=dict)
    weighted: bool = False
    smallest: float = np.inf
    finite: bool = True

    @classmethod
    def of(cls, index: int, y: object, weight: object = None) -> LabelCounts:
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
            join_pieces(self.blocks, other.blocks),
            self.weighted or other.weighted,
            min(self.smallest, other.smallest),
            self.finite and other.finite,
        )

    @property
    def n_rows(self) -> int:
        return sum(int(np.sum(block.rows)) for block in self.blocks.values())

    @property
    def n_present(self) -> int:
        """Rows of weight above zero."""
        return sum(int(np.sum(block.present)) for block in self.blocks.values())

    def starts(self) -> dict[int, int]:
        """Return the number of the first row of each block, blocks in order of their index."""
        starts, first = {}, 0
        for index in sorted(self.blocks):
            starts[index] = first
            first += int(np.sum(self.blocks[index].rows))
        return starts


def _distinct(y: AnyArray) -> tuple[AnyArray, IntArray]:
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


#: Columns whose mean exceeds their spread this many times are centred before use.
_OFFSET_LIMIT = 100.0
#: Rows whose columns are described, at the least, and the most bytes that this may take.
_SAMPLE_ROWS = 4096
_SAMPLE_BYTES = 1 << 26


@dataclass(frozen=True)
class Units:
    """Columns are read as x - centre. Most data need no centre."""

    centre: FloatArray | None = None

    @property
    def plain(self) -> bool:
        return self.centre is None

    def apply(self, block: np.ndarray, columns: slice = slice(None)) -> FloatArray:
        """Return dense rows in these units, as float64."""
        if self.centre is not None:
            block = block - self.centre[columns]
        return block if block.dtype == np.float64 else block.astype(np.float64)

    def shift(self, coef: FloatArray) -> float:
        """What the centre takes from every score."""
        return 0.0 if self.centre is None else float(self.centre @ coef)

    def same(self, other: Units) -> bool:
        """Whether columns are read alike."""
        if self.centre is None or other.centre is None:
            return self.centre is other.centre
        return np.array_equal(self.centre, other.centre)


@dataclass
class ColumnStatistics:
    """Mean and squared deviations of each column over evenly spaced rows, and the first of them.

    ``first`` is (index of its block, row); ``bad`` is the first entry that no fit can use:
    (block, column, what it is).
    """

    n_rows: int
    mean: FloatArray
    deviation: FloatArray
    first: tuple[int, FloatArray] | None = None
    bad: tuple[int, int, str] | None = None
    sparse: bool = False

    @classmethod
    def empty(cls, n_features: int) -> ColumnStatistics:
        return cls(0, np.zeros(n_features), np.zeros(n_features))

    @classmethod
    def of(cls, index: int, rows: FloatArray) -> ColumnStatistics:
        """Describe some dense rows of a block."""
        if len(rows) == 0:
            return cls.empty(rows.shape[1])
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.mean(rows, axis=0)
            apart = rows - mean
            deviation = np.einsum("ij,ij->j", apart, apart)
        return cls(len(rows), mean, deviation, (index, np.array(rows[0])))

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Join the statistics of other rows (Chan, Golub & LeVeque's update)."""
        first, bad = _least(self.first, other.first), _least(self.bad, other.bad)
        n, is_sparse = self.n_rows + other.n_rows, self.sparse or other.sparse
        if n == 0:
            return ColumnStatistics(0, self.mean, self.deviation, first, bad, is_sparse)
        share = other.n_rows / n
        with np.errstate(invalid="ignore", over="ignore"):
            apart = other.mean - self.mean
            deviation = self.deviation + other.deviation + apart**2 * (self.n_rows * share)
            mean = self.mean + apart * share
        return ColumnStatistics(n, mean, deviation, first, bad, is_sparse)

    def units(self) -> Units:
        """Return units in which no column is too far from zero.

        Sparse columns are not centred: that would make them dense.
        """
        if self.sparse or self.first is None:
            return Units()
        mean, spread = np.abs(self.mean), np.sqrt(self.deviation / self.n_rows)
        # a column that is constant in the sample may just be rare; near zero it does no harm
        far = (mean > _OFFSET_LIMIT * spread) & ((spread > 0) | (mean >= 1.0))
        return Units(np.where(far, self.first[1], 0.0) if np.any(far) else None)


def sample_step(n_rows: int, n_features: int) -> int:
    """Return the distance of the rows that tell the units of so many rows."""
    rows = min(_SAMPLE_ROWS, max(64, _SAMPLE_BYTES // (8 * max(1, n_features))))
    return max(1, n_rows // rows)


def bad_entry(X: Any) -> tuple[int, str] | None:
    """Return (column, what) of an entry that is no finite number of a size that sums can bear.

    A sum of squares tells in one read whether there can be one at all.
    """
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f" or values.size == 0:
        return None
    if sum_of_squares(values) < LARGEST_SIZE**2:
        return None
    wrong = ~(np.abs(values) <= min(LARGEST_SIZE, float(np.finfo(values.dtype).max)))
    if not np.any(wrong):
        return None
    entries = X.tocoo() if sparse.issparse(X) else None
    if entries is None:
        column = int(np.flatnonzero(np.any(wrong, axis=0))[0])
        worst = values[wrong[:, column], column]
    else:
        column = int(np.min(entries.col[wrong]))
        worst = values[wrong & (entries.col == column)]
    return column, describe_entry(worst)


def describe_entry(worst: AnyArray) -> str:
    """Say what is wrong with entries of a column, the worst of them first."""
    if np.any(np.isnan(worst)):
        return "NaN"
    if np.any(np.isinf(worst)):
        return "infinity"
    return f"entries of up to {np.max(np.abs(worst)):.3g} in size"


def refusal(what: str, where: str) -> str:
    """Return the sentence with which an entry is refused."""
    if what in ("NaN", "infinity"):
        return (
            f"Input X contains {what}: {where}. Impute, or drop such rows, before the ranker is "
            "fitted."
        )
    return (
        f"X has {what} in {where}, expected at most {LARGEST_SIZE:g}: if such entries stand for "
        "missing values, replace them; else scale the column, or clip it."
    )


def _least(left: Found | None, right: Found | None) -> Found | None:
    """The one that belongs to the block of lower index; either may be missing."""
    if left is None or right is None:
        return right if left is None else left
    return left if left[0] <= right[0] else right
