"""The rows of one block, ready for the algebra of a sweep, wherever they lie.

This is the one place where the kind of a block's matrix matters. `open_block` looks at the
type of ``block.X``: NumPy arrays and CSR matrices become a `HostBlock`; another library's
arrays the class that `KINDS` names for it. A new kind of array is one subclass of `OpenBlock`
with eight methods; what it returns lies on the host and is small, but for `scores`, `labels`,
`columns` and `take`, which only some objectives and small data ask for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of
from toprank.blocks import RowBlocks, Units, Workers
from toprank.blocks.source import Block
from toprank.blocks.statistics import ColumnStatistics, LabelCounts
from toprank.objective.histogram import ScoreHistogram, Standard
from toprank.objective.sweep import EndPartial, Tilted, TiltedSweep

#: Where the class for arrays of another library is found: the library's top-level module, and
#: "module:class" of a subclass of `OpenBlock`, imported when the first such block is opened.
KINDS: dict[str, str] = {"torch": "toprank.objective.blockwise.tensors:TensorBlock"}

Tilts = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class View:
    """How the rows of every block are read; it travels with each sweep.

    ``classes`` are the two labels, the positive one last; ``class_weight`` multiplies the
    weights of (negatives, positives); ``entries`` is the size of the whole matrix, which
    decides whether compiled code is worth loading.
    """

    classes: NDArray[Any]
    class_weight: tuple[float, float] | None = None
    units: Units = field(default_factory=Units)
    entries: int = 0

    def same(self, other: View) -> bool:
        """Whether blocks opened for the other view can be used for this one."""
        return (
            np.array_equal(self.classes, other.classes)
            and self.class_weight == other.class_weight
            and _same(self.units.centre, other.units.centre)
            and _same(self.units.scale, other.units.scale)
            and self.entries == other.entries
        )


def _same(left: FloatArray | None, right: FloatArray | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)


@dataclass
class Sample:
    """Some rows of a block, as they are: features, labels, weights before class weights."""

    X: Any
    positive: NDArray[np.bool_]
    weight: FloatArray | None


class OpenBlock(ABC):
    """What a sweep may ask of the rows of one block.

    Coefficients and what comes back are float64 arrays of the host, columns are in the units of
    the view, and weights include those of the classes. Every method must do with no rows.
    """

    def __init__(self, block: Block, view: View):
        # without the cache that this object goes into: a circle would keep the rows in memory
        self.block = replace(block, cache={})
        self.view = view
        self.n_rows = block.n_rows

    @staticmethod
    @abstractmethod
    def count_labels(block: Block) -> LabelCounts:
        """Count the labels and weights of a block; asked first, before there is a view."""

    @staticmethod
    @abstractmethod
    def describe(block: Block) -> ColumnStatistics:
        """Return range, mean and spread of each column of a block, in raw units."""

    @abstractmethod
    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]:
        """Return which rows are positive, and the weights if there are any."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return some rows as a NumPy array or CSR matrix, raw and in the dtype they have."""

    @abstractmethod
    def scores(self, coef: FloatArray) -> FloatArray:
        """Return X @ coef."""

    @abstractmethod
    def adjoint(self, v: FloatArray) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""

    @abstractmethod
    def second_moments(self, weight: FloatArray) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""

    @abstractmethod
    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last."""

    def sample(
        self, steps: tuple[int, int, int], before: tuple[int, int, int]
    ) -> tuple[Sample, Sample]:
        """Return rows at equal distances, of each class, and of all rows present.

        ``steps`` are the distances of (negatives, positives, rows present), zero for none;
        ``before`` how many of each the blocks before this one hold.
        """
        positive, weight = self.labels()
        present = np.ones(len(positive), dtype=bool) if weight is None else weight > 0
        kept = [
            _every(members, step, first)
            for members, step, first in zip(
                (~positive, positive, present), steps, before, strict=True
            )
        ]
        coarse, located = (
            Sample(self.take(rows), positive[rows], None if weight is None else weight[rows])
            for rows in (np.sort(np.concatenate(kept[:2])), kept[2])
        )
        return coarse, located

    def gathered(self, what: str, *arguments: Any) -> Any:
        """Return what a method returns, as arrays of the host."""
        return getattr(self, what)(*arguments)

    def tilted(self, coef: FloatArray, tilts: Tilts, order: int) -> list[EndPartial]:
        """Return for each end the tilted sums of positives and negatives.

        ``order`` is 1 for masses and means, 2 for second moments too. Override it where one
        read of the rows can do it all.
        """
        scores = self.scores(coef)
        positive, weight = self.labels()
        ends = []
        for end in tilts:
            of_class = []
            for tilt, members in zip(end, (positive, ~positive), strict=True):
                exponents = np.where(members, tilt * scores, -np.inf)
                if weight is not None:
                    exponents += log_of(weight)
                of_class.append(self._tilted_class(exponents, order))
            ends.append((of_class[0], of_class[1]))
        return ends

    def _tilted_class(self, exponents: FloatArray, order: int) -> Tilted:
        top = float(np.max(exponents, initial=-np.inf))
        if top == -np.inf:
            return Tilted.empty(len(self.adjoint(np.zeros(self.n_rows))), order)
        share = np.exp(exponents - top)
        second = self.second_moments(share) if order == 2 else None
        return Tilted(self.adjoint(share), second, top, float(np.sum(share)))

    def forget_scores(self) -> None:
        """Free what the last call of `tilted` kept of each row, if it did."""
        return

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative that is present."""
        scores = self.scores(coef)
        positive, weight = self.labels()
        present = np.ones(self.n_rows, dtype=bool) if weight is None else weight > 0
        lowest = np.min(scores, where=positive & present, initial=np.inf)
        highest = np.max(scores, where=~positive & present, initial=-np.inf)
        return float(lowest), float(highest)

    def histogram(self, coef: FloatArray, shift: float, standard: Standard) -> ScoreHistogram:
        """Return the histogram of the scores X @ coef + shift."""
        return ScoreHistogram.of(self.scores(coef) + shift, *self.labels(), standard)


def _every(members: NDArray[np.bool_], step: int, before: int) -> NDArray[np.intp]:
    """Rows of a kind at equal distances, counted on from the blocks before."""
    rows = np.flatnonzero(members)
    return rows[-before % step :: step] if step else rows[:0]


class HostBlock(OpenBlock):
    """Rows in the memory of this process: a NumPy array, perhaps mapped, or a CSR matrix."""

    #: The last sweep, for the scores it has made.
    _sweep: TiltedSweep | None = None

    @cached_property
    def rows(self) -> RowBlocks:
        rows = RowBlocks(self.block.X, Workers(1), self.view.units)
        rows.chunk_rows = max(1, self.n_rows)  # the source has cut the rows already
        return rows

    @staticmethod
    def count_labels(block: Block) -> LabelCounts:
        return LabelCounts.of(block.index, block.y, block.weight)

    @staticmethod
    def describe(block: Block) -> ColumnStatistics:
        return ColumnStatistics.of(block.index, block.X)

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(self.block.y) == self.view.classes[1], dtype=bool)

    @cached_property
    def weight(self) -> FloatArray | None:
        weight, of_class = self.block.weight, self.view.class_weight
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float64)
        if of_class is None:
            return weight
        by_class = np.where(self.positive, of_class[1], of_class[0])
        return by_class if weight is None else by_class * weight

    @cached_property
    def log_weight(self) -> FloatArray | None:
        return None if self.weight is None else log_of(self.weight)

    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]:
        return self.positive, self.weight

    def take(self, rows: NDArray[np.intp]) -> Any:
        return self.block.X[rows]

    def scores(self, coef: FloatArray) -> FloatArray:
        if self.n_rows == 0:
            return np.zeros(0)
        source = self.rows if self._sweep is None else self._sweep  # which may have them
        return source.scores(coef)

    def forget_scores(self) -> None:
        self._sweep = None

    def adjoint(self, v: FloatArray) -> FloatArray:
        if self.n_rows == 0:
            return np.zeros((self.rows.n_features, *v.shape[1:]))
        return self.rows.adjoint(v)

    def second_moments(self, weight: FloatArray) -> FloatArray:
        if self.n_rows == 0:
            return np.zeros((self.rows.n_features, self.rows.n_features))
        return self.rows.second_moments(weight)

    def columns(self, first: int, last: int) -> FloatArray:
        return self.rows.columns(first, last)

    def tilted(self, coef: FloatArray, tilts: Tilts, order: int) -> list[EndPartial]:
        if self.n_rows == 0:
            d = self.rows.n_features
            return [(Tilted.empty(d, order), Tilted.empty(d, order)) for _ in tilts]
        if self.rows.sparse:
            return super().tilted(coef, tilts, order)
        self._sweep = TiltedSweep(
            self.rows, self.positive, self.log_weight, tilts, self.view.entries
        )
        return self._sweep.run(coef, order)


def kind_of(X: Any) -> type[OpenBlock]:
    """Return the class that can read such a matrix."""
    place = KINDS.get(type(X).__module__.partition(".")[0])
    if place is None:
        return HostBlock
    module, _, name = place.partition(":")
    kind: type[OpenBlock] = getattr(import_module(module), name)
    return kind


def open_block(block: Block, view: View) -> OpenBlock:
    """Return the rows of a block as a sweep reads them, opened once if the block stays."""
    kept = block.cache.get("open")
    if kept is None or not kept.view.same(view):
        kept = block.cache["open"] = kind_of(block.X)(block, view)
    return kept
