"""The mergeable sweep: one pass over X gives the value, the gradient and the Hessian.

With the exponential loss and the power price the objective is a sum of log-partition
functions, one for each class:

    F = (1/|s|) log sum_pos w e^{s f} + (1/t) log sum_neg w e^{t f}  -  normalisation

with tilts (s, t) = (-1, p) at the top and (-p, 1) at the bottom. A block of rows contributes
(top, mass, moment, second moment) of e^{tilt f} for each class, and two such contributions
merge by rescaling to the larger top, as in an online softmax. The gradient is the difference of
the classes' tilted means, the Hessian the sum of |tilt| times their tilted covariances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import RowBlocks

#: Entries of X from which compiled kernels repay their loading time (benchmarks/speed.py kernels).
COMPILED_FROM = 20_000_000


@dataclass
class Tilted:
    """e^{tilt f} over the rows of one class: its top, and mass and moments relative to it."""

    moment: FloatArray
    second: FloatArray | None = None
    top: float = -np.inf
    mass: float = 0.0

    @classmethod
    def empty(cls, n_features: int, order: int) -> Tilted:
        second = np.zeros((n_features, n_features)) if order == 2 else None
        return cls(np.zeros(n_features), second)

    def raise_to(self, top: float) -> None:
        """Express mass and moments relative to a higher top."""
        if top <= self.top:
            return
        keep = float(np.exp(self.top - top)) if self.mass else 0.0
        self.top = top
        self.mass *= keep
        self.moment *= keep
        if self.second is not None:
            self.second *= keep

    def add(self, block: FloatArray, exponents: FloatArray) -> None:
        """Add the rows of a block, each with the weight e^exponent."""
        top = float(np.max(exponents, initial=-np.inf))
        if top == -np.inf:  # no row of this class, or only absent ones
            return
        self.raise_to(top)
        weight = np.exp(exponents - self.top)
        self.mass += float(np.sum(weight))
        if self.second is None:
            self.moment += weight @ block
            return
        root = np.sqrt(weight)
        scaled = block * root[:, None]
        self.moment += root @ scaled
        self.second += scaled.T @ scaled  # half the work of A.T @ B

    def merge(self, other: Tilted) -> Tilted:
        """Absorb another part of the same class."""
        self.raise_to(other.top)
        other.raise_to(self.top)
        self.mass += other.mass
        self.moment += other.moment
        if self.second is not None and other.second is not None:
            self.second += other.second
        return self

    @property
    def log_mass(self) -> float:
        return self.top + float(np.log(self.mass))

    @property
    def mean(self) -> FloatArray:
        return self.moment / self.mass

    @property
    def covariance(self) -> FloatArray:
        if self.second is None:
            raise ValueError("this sweep gathered no second moments")
        mean = self.mean
        return self.second / self.mass - np.outer(mean, mean)


#: One end of the list: what the positives and the negatives contribute.
EndPartial = tuple[Tilted, Tilted]


class TiltedSweep:
    """One pass over the rows of X for given tilts of the two classes at each end.

    The rows of the rarer class are gathered inside each block; the commoner class takes the
    whole block, with weight zero for the others. The scores of the last pass are kept.
    ``entries`` is the size of all the data where the source is only a part of them.
    """

    def __init__(
        self,
        source: RowBlocks,
        positive: NDArray[np.bool_],
        log_weight: FloatArray | None,
        tilts: tuple[tuple[float, float], ...],
        entries: int | None = None,
    ):
        self.source = source
        self.entries = source.X.size if entries is None else entries
        self.positive = positive
        self.log_weight = log_weight
        self.tilts = tilts
        self._rare_is_positive = 2 * np.count_nonzero(positive) <= len(positive)
        self._scores: FloatArray | None = None
        self._scored_at: FloatArray | None = None

    @property
    def compiled(self) -> bool:
        """Whether the data are so large, and so laid out, that compiled code is worth it."""
        X = self.source.X
        return bool(
            self.entries >= COMPILED_FROM
            and isinstance(X, np.ndarray)
            and X.flags.c_contiguous
            and X.dtype in (np.float32, np.float64)
            and self.source.units.plain
        )

    def run(self, coef: FloatArray, order: int = 1) -> list[EndPartial]:
        """Return, for each end, the tilted sums of positives and negatives."""
        if self._scores is None:
            self._scores = np.empty(self.source.n_rows)
        self._scored_at = None
        local = self._compiled_chunk if order == 1 and self.compiled else self._chunk
        ends = self.source.map_reduce(
            lambda start, stop: local(start, stop, coef, order), merge_ends
        )
        self._scored_at = coef.copy()
        return ends

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return X @ coef, without reading X again if the last pass was for this coef."""
        at = self._scored_at
        if self._scores is None or at is None or not np.array_equal(at, coef):
            return self.source.scores(coef)
        return self._scores

    def sampled(self, coef: FloatArray, n_rows: int) -> list[EndPartial]:
        """Return estimates of the moments, second ones too, from few well-chosen rows.

        In each class about n_rows rows are drawn in proportion to their weight e^{tilt f}, at
        equal distances of the cumulated weight: no chance, and rows that matter little are
        seldom read. The relative error of a covariance is about sqrt(d / n_rows).
        """
        scores = self.scores(coef)
        ends = []
        for tilts in self.tilts:
            classes = []
            for tilt, members in zip(tilts, (self.positive, ~self.positive), strict=True):
                rows, count = self._draw(tilt, scores, np.flatnonzero(members), n_rows)
                tilted = Tilted.empty(self.source.n_features, order=2)
                step = self.source.block_rows
                for first in range(0, len(rows), step):
                    part = slice(first, first + step)
                    tilted.add(self.source.rows(rows[part]), np.log(count[part]))
                classes.append(tilted)
            ends.append((classes[0], classes[1]))
        return ends

    def _draw(
        self, tilt: float, scores: FloatArray, members: NDArray[np.intp], n_rows: int
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Rows of a class at equal distances of its cumulated weight, and how often each."""
        if self.log_weight is not None:
            members = members[self.log_weight[members] > -np.inf]
        members = members[:: max(1, len(members) // (10 * n_rows))]
        exponents = tilt * scores[members]
        if self.log_weight is not None:
            exponents += self.log_weight[members]
        exponents -= np.max(exponents)
        mass = np.cumsum(np.exp(exponents))
        marks = mass[-1] * (np.arange(n_rows) + 0.5) / n_rows
        drawn, count = np.unique(np.searchsorted(mass, marks), return_counts=True)
        return members[drawn], count.astype(np.float64)

    def _chunk(self, start: int, stop: int, coef: FloatArray, order: int) -> list[EndPartial]:
        d = self.source.n_features
        ends = [(Tilted.empty(d, order), Tilted.empty(d, order)) for _ in self.tilts]
        for rows, block in self.source.blocks(start, stop):
            scores = self._kept_scores[rows]
            np.dot(block, coef, out=scores)
            self._add(ends, rows, block, scores)
        return ends

    @property
    def _kept_scores(self) -> FloatArray:
        if self._scores is None:
            raise RuntimeError("no pass has been made yet")
        return self._scores

    def _add(
        self, ends: list[EndPartial], rows: slice, block: FloatArray, scores: FloatArray
    ) -> None:
        positive = self.positive[rows]
        few = np.flatnonzero(positive == self._rare_is_positive)
        by_row = block.flags.c_contiguous  # otherwise take would copy the whole block first
        gathered = block.take(few, axis=0) if by_row else block.T.take(few, axis=1).T
        few_scores = scores.take(few)
        log_weight = None if self.log_weight is None else self.log_weight[rows]
        for tilts, end in zip(self.tilts, ends, strict=True):
            rare, common = (0, 1) if self._rare_is_positive else (1, 0)
            of_common = tilts[common] * scores
            of_rare = tilts[rare] * few_scores
            if log_weight is not None:
                of_common += log_weight
                of_rare += log_weight[few]
            of_common[few] = -np.inf
            end[common].add(block, of_common)
            end[rare].add(gathered, of_rare)

    def _compiled_chunk(
        self, start: int, stop: int, coef: FloatArray, order: int
    ) -> list[EndPartial]:
        from toprank.objective.kernels import tilted_sums

        log_weight = np.empty(0) if self.log_weight is None else self.log_weight
        kind = self.positive.view(np.uint8)
        ends = []
        for of_pos, of_neg in self.tilts:
            top, mass, moment = tilted_sums(
                self.source.X,
                kind,
                log_weight,
                coef,
                np.array([of_neg, of_pos]),
                start,
                stop,
                self._kept_scores,
            )
            neg, pos = (
                Tilted(moment[c], None, float(top[c]) if mass[c] else -np.inf, float(mass[c]))
                for c in (0, 1)
            )
            ends.append((pos, neg))
        return ends


def merge_ends(left: list[EndPartial], right: list[EndPartial]) -> list[EndPartial]:
    """Join what two sets of rows contribute to each end; both may be overwritten."""
    return [(a.merge(c), b.merge(d)) for (a, b), (c, d) in zip(left, right, strict=True)]
