"""A sketch of the scores of all rows of a block source: the highest rows, the others in bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import Units
from toprank.blocks.source import Block
from toprank.objective import View, open_block

#: Scores drawn for each bin, so that the bins hold nearly equal shares.
_DRAWN_PER_BIN = 4
#: Parts of kept rows are joined once they hold so many times the rows that are kept.
_SLACK = 2
#: Rows of a block that are present: scores, which are positive, weights.
Rows = tuple[FloatArray, NDArray[np.bool_], FloatArray]


@dataclass(frozen=True)
class Scored:
    """How the rows of a block are scored; it travels with each sweep.

    ``score`` takes the X of a block. One that is x' coef plus an offset, with the columns of x in
    some units, says so by these names: it is taken where the rows lie, on a device too.
    """

    score: Any
    classes: NDArray[np.generic]

    def rows(self, block: Block) -> Rows:
        """Return scores, labels and weights of the rows of weight above zero."""
        units = getattr(self.score, "units", None)
        opened = open_block(block, View(self.classes, units=Units() if units is None else units))
        if units is None:
            scores = np.asarray(self.score(block.X)) if block.n_rows else np.empty(0)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = opened.on_host("scores", self.score.coef) + self.score.offset
        positive, weight = opened.on_host("labels")
        if weight is None:
            return scores, positive, np.ones(len(scores))
        present = weight > 0
        return scores[present], positive[present], weight[present]


@dataclass
class Head:
    """The highest rows of some blocks, and scores drawn from all of them.

    Each part has four lines, from the highest score down: distinct scores, the weights of their
    positives and of their negatives, and how many rows they stand for.
    """

    parts: list[FloatArray] = field(default_factory=list)
    drawn: list[FloatArray] = field(default_factory=list)
    bad: int | None = None  #: the first block with a score that is not a finite number


@dataclass(frozen=True)
class Highest:
    """Keeps the ``keep`` highest rows and all that tie with the last of them."""

    scored: Scored
    keep: int
    rate: float  #: the share of the rows whose scores are drawn

    def local(self, block: Block, state: None) -> Head:
        scores, positive, weight = self.scored.rows(block)
        n = len(scores)
        if not np.all(np.isfinite(scores)):
            return Head(bad=block.index)
        # a stream of its own for every block: the same draw for any number of workers
        rng = np.random.default_rng(block.index)
        drawn = scores[rng.integers(n, size=rng.poisson(n * self.rate))] if n else scores
        if n > self.keep:
            high = scores >= np.partition(scores, n - self.keep)[n - self.keep]
            scores, positive, weight = scores[high], positive[high], weight[high]
        rows = np.stack(
            [scores, np.where(positive, weight, 0.0), np.where(positive, 0.0, weight),
             np.ones(len(scores))]
        )  # fmt: skip
        return Head([highest([rows], self.keep)], [drawn])

    def merge(self, left: Head, right: Head) -> Head:
        parts = left.parts + right.parts
        if sum(part.shape[1] for part in parts) > _SLACK * self.keep:
            parts = [highest(parts, self.keep)]
        bad = [index for index in (left.bad, right.bad) if index is not None]
        return Head(parts, left.drawn + right.drawn, min(bad, default=None))


def highest(parts: list[FloatArray], keep: int) -> FloatArray:
    """Join rows of equal score, and leave those that the highest ``keep`` rows have."""
    rows = np.concatenate(parts, axis=1)
    if rows.shape[1] == 0:
        return rows
    rows = rows[:, np.argsort(-rows[0], kind="stable")]
    starts = np.flatnonzero(np.diff(rows[0], prepend=np.inf))
    ties = np.vstack([rows[0, starts], np.add.reduceat(rows[1:], starts, axis=1)])
    last = int(np.searchsorted(np.cumsum(ties[3]), keep))
    return ties[:, : last + 1]


@dataclass
class ScoreBins:
    """Rows below a cut in bins: weight of each class, lowest and highest score."""

    positive: FloatArray
    negative: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, rows: Rows, edges: FloatArray) -> ScoreBins:
        """Count rows in the bins between the edges, and below and above them."""
        scores, positive, weight = rows
        count = len(edges) + 1
        place = np.searchsorted(edges, scores, side="right")
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(low, place, scores)
        np.maximum.at(high, place, scores)
        of_positives, of_negatives = (
            np.bincount(place, weights=weight * members, minlength=count).astype(np.float64)
            for members in (positive, ~positive)
        )
        return cls(of_positives, of_negatives, low, high)

    def merge(self, other: ScoreBins) -> ScoreBins:
        """Add the rows of other blocks."""
        return ScoreBins(
            self.positive + other.positive,
            self.negative + other.negative,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def held(self) -> ScoreBins:
        """Return the bins that hold rows, from the highest down."""
        used = np.flatnonzero(self.high > -np.inf)[::-1]
        return ScoreBins(self.positive[used], self.negative[used], self.low[used], self.high[used])


@dataclass(frozen=True)
class Below:
    """Counts the rows below a cut in bins; the state is (cut, edges)."""

    scored: Scored

    def local(self, block: Block, state: tuple[float, FloatArray]) -> ScoreBins:
        cut, edges = state
        scores, positive, weight = self.scored.rows(block)
        below = scores < cut
        return ScoreBins.of((scores[below], positive[below], weight[below]), edges)

    def merge(self, left: ScoreBins, right: ScoreBins) -> ScoreBins:
        return left.merge(right)


def draw_rate(n_rows: int, bins: int) -> float:
    """Return the share of the rows to draw so that bins get nearly equal shares."""
    return min(1.0, _DRAWN_PER_BIN * bins / n_rows)


def bin_edges(drawn: FloatArray, cut: float, bins: int) -> FloatArray:
    """Return edges between at most ``bins`` bins: quantiles of the drawn scores below the cut."""
    below = np.sort(drawn[drawn < cut])
    if len(below) == 0:
        return below
    places = np.arange(1, bins) * len(below) // bins
    return np.unique(below[places])
