"""The passes over a block source: what one block contributes, and how contributions merge.

Each sweep is a small, picklable object. Merging is associative and commutative to rounding:
sums are added, tilted sums rescaled to the larger top, pieces that belong to a block are kept
under its index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.blocks.design import HostDesign, design_kind, design_of
from toprank.blocks.source import Block, join_pieces
from toprank.blocks.statistics import ColumnStatistics, LabelCounts
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.sums import (
    EndPartial,
    Mass,
    ScoreHistogram,
    Standard,
    Tilted,
    Tilts,
    merge_ends,
)

#: Pieces of an answer by the index of the block they come from.
Pieces = dict[int, Any]


def _lower_and_higher(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return min(left[0], right[0]), max(left[1], right[1])


class Labels:
    """Labels and weights. Sources may leave the features of the blocks unread for it."""

    needs_features = False
    opens_fits = True

    def local(self, block: Block, state: None) -> LabelCounts:
        if block.y is None:
            raise ValueError(
                "The source has no labels: it can be scored, not fitted. Pass y= (arrays) or "
                "target= (tables) when the source is made."
            )
        return design_kind(block.X).count_labels(block)

    def merge(self, left: LabelCounts, right: LabelCounts) -> LabelCounts:
        return left.merge(right)


class RowCounts:
    """How many rows each block has."""

    needs_features = False

    def local(self, block: Block, state: None) -> Pieces:
        return {block.index: block.n_rows}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return join_pieces(left, right)


@dataclass(frozen=True)
class Thinning:
    """Every so many rows of each class, and of all rows present, counted over the blocks.

    ``steps`` are those of (negatives, positives, rows present); ``before`` gives for each block
    how many of each kind the blocks before it hold. A step of zero takes none. ``members`` are
    the negatives and positives in all blocks.
    """

    steps: tuple[int, int, int]
    before: dict[int, tuple[int, int, int]]
    members: tuple[int, int]

    @property
    def keeps_rows(self) -> bool:
        """Whether there is a coarse sample at all."""
        return self.steps[:2] != (0, 0)


@dataclass(frozen=True)
class Thin:
    """Leaves every so many rows of each class of a block, weighted to stand for all of them."""

    view: View
    thinning: Thinning

    def __call__(self, block: Block) -> Block:
        thinning = self.thinning
        steps, before = thinning.steps[:2], thinning.before[block.index][:2]
        stands_for = [n / -(-n // step) for n, step in zip(thinning.members, steps, strict=True)]
        counts = thinning.members if len(thinning.before) == 1 else None
        return open_block(block, self.view).thin(steps, before, stands_for, counts)


@dataclass(frozen=True)
class Located:
    """Scores of evenly spaced rows that stay where they lie."""

    view: View
    thinning: Thinning

    def local(self, block: Block, coef: FloatArray) -> Pieces:
        step, before = self.thinning.steps[2], self.thinning.before[block.index][2]
        return {block.index: open_block(block, self.view).spaced_scores(coef, step, before)}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return join_pieces(left, right)


@dataclass(frozen=True)
class Describe:
    """Statistics of the columns of every ``step``-th row and, in the same read, samples of rows.

    ``starts`` gives the number of the first row of each block. The samples are (a thinned block
    or None, evenly spaced rows), for sources whose samples do not stay where the rows lie.
    """

    view: View  #: with the classes; units are not known yet
    step: int
    starts: Mapping[int, int]
    thinning: Thinning | None = None
    check: bool = True  #: whether every entry is looked at
    opens_fits = True

    def local(self, block: Block, state: None) -> tuple[ColumnStatistics, Pieces]:
        start = -self.starts[block.index] % self.step
        statistics = design_kind(block.X).describe(block, start, self.step, self.check)
        if self.thinning is None:
            return statistics, {}
        step, before = self.thinning.steps[2], self.thinning.before[block.index][2]
        located = open_block(block, self.view).spaced_rows(step, before)
        pick = Thin(self.view, self.thinning) if self.thinning.keeps_rows else None
        return statistics, {block.index: (None if pick is None else pick(block), located)}

    def merge(
        self, left: tuple[ColumnStatistics, Pieces], right: tuple[ColumnStatistics, Pieces]
    ) -> tuple[ColumnStatistics, Pieces]:
        return left[0].merge(right[0]), join_pieces(left[1], right[1])


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation tells of some rows."""

    ends: list[EndPartial]
    extremes: tuple[float, float]
    histogram: ScoreHistogram | None = None
    drawn: EndPartial | None = None


@dataclass(frozen=True)
class Evaluate:
    """Tilted sums at each end and, if asked for, more of the same scores.

    ``extremes`` asks how far apart the classes lie, ``standard`` for the scores in bins, ``draw``
    for moments of rows drawn by their weight, so many for each row of (positives, negatives),
    ``keep`` for the scores to stay where they are at hand.
    """

    view: View
    tilts: Tilts
    order: int = 1
    extremes: bool = False
    standard: Standard | None = None
    draw: tuple[float, float] | None = None
    keep: bool = False

    @property
    def shows_bad(self) -> bool:
        """Whether the sums are finite only if every entry is."""
        return self.order == 1

    def is_finite(self, found: Evaluation) -> bool:
        """Whether no entry that was read is infinite or NaN."""
        parts = [part for end in found.ends for part in end]
        return all(np.isfinite(part.mass) and np.all(np.isfinite(part.moment)) for part in parts)

    def local(self, block: Block, coef: FloatArray) -> Evaluation:
        opened = open_block(block, self.view)
        return Evaluation(
            opened.sum_tilted(coef, self.tilts, self.order, keep=self.keep),
            opened.extremes(coef) if self.extremes else (np.inf, -np.inf),
            None if self.standard is None else opened.histogram(coef, 0.0, self.standard),
            None if self.draw is None else opened.drawn_moments(coef, self.tilts[0], self.draw),
        )

    def merge(self, left: Evaluation, right: Evaluation) -> Evaluation:
        return Evaluation(
            merge_ends(left.ends, right.ends),
            _lower_and_higher(left.extremes, right.extremes),
            left.histogram and right.histogram and left.histogram.merge(right.histogram),
            left.drawn and right.drawn and merge_ends([left.drawn], [right.drawn])[0],
        )


@dataclass(frozen=True)
class Masses:
    """Tilted masses of (positives, negatives); the blocks keep the weights for `Pull`."""

    view: View
    tilts: tuple[float, float]

    def local(self, block: Block, coef: FloatArray) -> tuple[Mass, Mass]:
        return open_block(block, self.view).masses(coef, self.tilts)

    def merge(self, left: tuple[Mass, Mass], right: tuple[Mass, Mass]) -> tuple[Mass, Mass]:
        return left[0].merge(right[0]), left[1].merge(right[1])


@dataclass(frozen=True)
class Pull:
    """The negatives' tilted mean less the positives'; the state are the `Masses` of all blocks.

    A sparse matrix is read once for it instead of once per class.
    """

    view: View

    def local(self, block: Block, totals: tuple[Mass, Mass]) -> FloatArray:
        return open_block(block, self.view).pull(totals)

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right


@dataclass(frozen=True)
class RoughMoments:
    """Tilted sums of (positives, negatives) whose second moments have single precision."""

    view: View
    tilts: tuple[float, float]

    def local(self, block: Block, coef: FloatArray) -> EndPartial:
        return open_block(block, self.view).rough_moments(coef, self.tilts)

    def merge(self, left: EndPartial, right: EndPartial) -> EndPartial:
        (merged,) = merge_ends([left], [right])
        return merged


@dataclass(frozen=True)
class StartTilted:
    """Lets a device start on the tilted sums of all rows; the host waits for none of them.

    The answer is whether the scores of the rows will be there with them.
    """

    view: View
    tilts: tuple[float, float]
    tops: tuple[float, float] | None  #: about where the largest exponents lie

    def local(self, block: Block, coef: FloatArray) -> bool:
        return open_block(block, self.view).start_tilted(coef, self.tilts, self.tops)

    def merge(self, left: bool, right: bool) -> bool:
        return left and right


@dataclass(frozen=True)
class Curvature:
    """sum_c |tilt_c| covariance of class c, from about so many rows of each class of a device.

    With a penalty the Hessian is taken apart there: for one block alone.
    """

    view: View
    tilts: tuple[float, float]
    end: EndPartial  #: masses and means of all rows
    n_rows: int
    penalty: FloatArray | float | None = None

    def local(self, block: Block, coef: FloatArray) -> FloatArray:
        opened = open_block(block, self.view)
        return opened.curvature(coef, self.tilts, self.end, self.n_rows, self.penalty)

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right


class StartCurvature(Curvature):
    """Lets a device start on that."""

    def local(self, block: Block, coef: FloatArray) -> None:  # type: ignore[override]
        opened = open_block(block, self.view)
        opened.start_curvature(coef, self.tilts, self.end, self.n_rows, self.penalty)

    def merge(self, left: None, right: None) -> None:  # type: ignore[override]
        return None


#: Of one class: rows, and something of each.
Drawn = tuple[NDArray[np.intp], FloatArray]


@dataclass(frozen=True)
class Exponents:
    """Exponents tilt f + log w of evenly spaced rows of (positives, negatives) that are present.

    ``steps`` are the distances of these rows; ``before`` gives for each block how many of each
    class the blocks before it hold. The pieces are (rows, exponents) of each class.
    """

    view: View
    tilts: tuple[float, float]
    steps: tuple[int, int]
    before: Mapping[int, tuple[int, int]]

    def local(self, block: Block, coef: FloatArray) -> Pieces:
        opened = open_block(block, self.view)
        scores, logs, to_host = opened.scores(coef), opened.log_weight, opened.design.to_host
        drawn = []
        for c, positives in enumerate((True, False)):
            rows = opened.every_present(positives, self.steps[c], self.before[block.index][c])
            exponents = self.tilts[c] * scores[rows]
            if logs is not None:
                exponents = exponents + logs[rows]
            drawn.append((to_host(rows), to_host(exponents)))
        return {block.index: tuple(drawn)}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return join_pieces(left, right)


@dataclass(frozen=True)
class DrawnMoments:
    """Moments of chosen rows of (positives, negatives); the state is {block: (rows, counts)}."""

    view: View

    def local(self, block: Block, state: Mapping[int, tuple[Drawn, Drawn]]) -> EndPartial:
        opened = open_block(block, self.view)
        pos, neg = (self._moments(opened, *drawn) for drawn in state[block.index])
        return pos, neg

    def _moments(self, opened: OpenBlock, rows: IntArray, counts: FloatArray) -> Tilted:
        total = Tilted.empty(opened.design.n_features, order=2)
        design = opened.design
        if len(rows) and isinstance(design, HostDesign) and design.sparse:
            total.top, total.mass = 0.0, float(np.sum(counts))
            total.moment, total.second = design.rough_moments(rows, counts)
        elif len(rows):
            drawn = design_of(opened.design.thin(rows), self.view.units)
            for part, tile in drawn.tiles():
                total.add(tile, np.log(counts[part]))
        return total

    def merge(self, left: EndPartial, right: EndPartial) -> EndPartial:
        (merged,) = merge_ends([left], [right])
        return merged


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
        return {block.index: open_block(block, self.view).on_host(self.what, *arguments)}

    def merge(self, left: Pieces, right: Pieces) -> Pieces:
        return join_pieces(left, right)


@dataclass(frozen=True)
class ScoresInto:
    """Scores written into the blocks' pieces of one vector; the state is (coef, pieces).

    For rows in memory: nothing is put together afterwards.
    """

    view: View

    def local(self, block: Block, state: tuple[FloatArray, Pieces]) -> None:
        coef, pieces = state
        open_block(block, self.view).design.scores(coef, pieces[block.index])

    def merge(self, left: None, right: None) -> None:
        return None


@dataclass(frozen=True)
class Products:
    """A product of the design with a vector of one number per row, cut into the blocks' pieces.

    ``what`` is a method of `toprank.blocks.design.Design`: "adjoint" for X.T @ v, "sizes" for
    |X|.T @ |v|, "second_moments" for X.T @ diag(v) @ X.
    """

    view: View
    what: str = "adjoint"

    def local(self, block: Block, state: Pieces) -> FloatArray:
        design = open_block(block, self.view).design
        total: FloatArray = getattr(design, self.what)(state[block.index])
        return total

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right


@dataclass(frozen=True)
class Squares:
    """Sums and sums of squares of each column, one line each."""

    view: View

    def local(self, block: Block, state: None) -> NDArray[np.float64]:
        design = open_block(block, self.view).design
        return np.array([design.adjoint(np.ones(block.n_rows)), design.squares()])

    def merge(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        return left + right
