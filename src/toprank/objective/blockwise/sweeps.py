"""The passes over a block source: what one block contributes, and how contributions merge.

Each sweep is a small, picklable object. Merging is associative and commutative to rounding:
sums are added, tilted sums rescaled to the larger top, pieces that belong to a block are kept
under its index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.source import Block, joined
from toprank.blocks.statistics import ColumnStatistics, LabelCounts
from toprank.objective.blockwise.rows import Sample, Tilts, View, kind_of, open_block
from toprank.objective.histogram import ScoreHistogram, Standard
from toprank.objective.sweep import EndPartial, merge_ends

#: Pieces of an answer by the index of the block they come from.
Pieces = dict[int, Any]


def _lower_and_higher(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return min(left[0], right[0]), max(left[1], right[1])


class Labels:
    """Labels and weights. Sources may leave the features of the blocks unread for it."""

    needs_features = False

    def local(self, block: Block, state: None) -> LabelCounts:
        if block.y is None:
            raise ValueError(
                "The source has no labels: it can be scored, not fitted. Pass y= (arrays) or "
                "target= (tables) when the source is made."
            )
        return kind_of(block.X).count_labels(block)

    def merge(self, left: LabelCounts, right: LabelCounts) -> LabelCounts:
        return left.merge(right)


@dataclass(frozen=True)
class Thinning:
    """Every so many rows of each class, and of all rows present, counted over the blocks.

    ``steps`` are those of (negatives, positives, rows present); ``before`` gives for each block
    how many of each kind the blocks before it hold. A step of zero takes none.
    """

    steps: tuple[int, int, int]
    before: dict[int, tuple[int, int, int]]


@dataclass(frozen=True)
class Thin:
    """Leaves every so many rows of each class of a block, weighted to stand for all of them."""

    view: View
    thinning: Thinning
    members: tuple[int, int]  #: negatives and positives in all blocks

    def __call__(self, block: Block) -> Block:
        steps, before = self.thinning.steps[:2], self.thinning.before[block.index][:2]
        stands_for = [n / -(-n // step) for n, step in zip(self.members, steps, strict=True)]
        opened: Any = open_block(block, self.view)
        thinned: Block = opened.thinned(steps, before, stands_for)
        return thinned


@dataclass(frozen=True)
class Located:
    """Scores of evenly spaced rows that stay where they lie."""

    view: View
    thinning: Thinning

    def local(self, block: Block, coef: FloatArray) -> Pieces:
        opened: Any = open_block(block, self.view)
        step, before = self.thinning.steps[2], self.thinning.before[block.index][2]
        return {block.index: opened.located_scores(coef, step, before)}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return joined(left, right)


@dataclass(frozen=True)
class Describe:
    """Statistics of the columns and, in the same read, a sample of the rows."""

    view: View  #: with the classes; units are not known yet
    thinning: Thinning | None = None

    def local(self, block: Block, state: None) -> tuple[ColumnStatistics, Pieces]:
        statistics = kind_of(block.X).describe(block)
        if self.thinning is None:
            return statistics, {}
        return statistics, {block.index: self._sample(block, self.thinning)}

    def _sample(self, block: Block, thinning: Thinning) -> tuple[Sample, Sample]:
        opened = open_block(block, self.view)
        return opened.sample(thinning.steps, thinning.before[block.index])

    def merge(
        self, left: tuple[ColumnStatistics, Pieces], right: tuple[ColumnStatistics, Pieces]
    ) -> tuple[ColumnStatistics, Pieces]:
        return left[0].merge(right[0]), joined(left[1], right[1])


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation tells of some rows."""

    ends: list[EndPartial]
    extremes: tuple[float, float]
    histogram: ScoreHistogram | None = None


@dataclass(frozen=True)
class Evaluate:
    """Tilted sums at each end and, if asked for, more of the same scores.

    ``extremes`` asks how far apart the classes lie, ``standard`` for the scores in bins.
    """

    view: View
    tilts: Tilts
    order: int = 1
    extremes: bool = False
    standard: Standard | None = None

    def local(self, block: Block, coef: FloatArray) -> Evaluation:
        opened = open_block(block, self.view)
        evaluation = Evaluation(
            opened.tilted(coef, self.tilts, self.order),
            opened.extremes(coef) if self.extremes else (np.inf, -np.inf),
            None if self.standard is None else opened.histogram(coef, 0.0, self.standard),
        )
        opened.forget_scores()
        return evaluation

    def merge(self, left: Evaluation, right: Evaluation) -> Evaluation:
        return Evaluation(
            merge_ends(left.ends, right.ends),
            _lower_and_higher(left.extremes, right.extremes),
            left.histogram and right.histogram and left.histogram.merge(right.histogram),
        )


@dataclass(frozen=True)
class Extremes:
    """The lowest score of a positive and the highest of a negative."""

    view: View

    def local(self, block: Block, coef: FloatArray) -> tuple[float, float]:
        return open_block(block, self.view).extremes(coef)

    def merge(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        return _lower_and_higher(left, right)


@dataclass(frozen=True)
class Histogram:
    """The scores X @ coef + shift in narrow bins; the state is (coef, shift)."""

    view: View
    standard: Standard

    def local(self, block: Block, state: tuple[FloatArray, float]) -> ScoreHistogram:
        return open_block(block, self.view).histogram(*state, self.standard)

    def merge(self, left: ScoreHistogram, right: ScoreHistogram) -> ScoreHistogram:
        return left.merge(right)


@dataclass(frozen=True)
class Gather:
    """Something of every row, block by block: scores, labels, columns or chosen rows.

    The driver holds all of it: for what cannot be merged, and for small data. The state holds
    the arguments: the same for every block, or for each block its own.
    """

    view: View
    what: str  #: a method of `OpenBlock`

    def local(self, block: Block, state: tuple[Any, ...] | Pieces) -> Pieces:
        arguments = state[block.index] if isinstance(state, dict) else state
        return {block.index: open_block(block, self.view).gathered(self.what, *arguments)}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return joined(left, right)


@dataclass(frozen=True)
class Adjoint:
    """X.T @ v; the state holds v cut into the blocks' pieces."""

    view: View

    def local(self, block: Block, state: Pieces) -> FloatArray:
        return open_block(block, self.view).adjoint(state[block.index])

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right
