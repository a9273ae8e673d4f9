"""What one look at the labels tells: how often each occurs, in which block, with what weight.

Every count belongs to some rows and merges with that of other rows, in any order, so that the same
code describes an array, a folder of files and a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks.source import joined

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
