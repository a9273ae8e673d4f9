"""Stumps judged on crucial pairs: those of two classes, of grades and groups, or listed.

Two classes cost two histograms, never a pair. With weights u_i = w_i e^{-f_i} of the positives and
v_k = w_k e^{p f_k} of the negatives, each of total one, the pairs that a stump ranks rightly weigh
d+ = P1 N0 and those it ranks wrongly d- = P0 N1, where P1 is what the positives with h = 1 weigh,
N0 the negatives with h = 0.

Graded and grouped rows cost O(log bins) per row and column each round, however many pairs they
form; listed pairs cost two additions per pair and column. Under a push (p > 1) their steps have no
closed form and are searched for; the slope costs the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.rankers.boosting.line_search import LineMasses, line_masses
from toprank.rankers.boosting.pair_weights import (
    GradedWeights,
    ListedWeights,
    RelatedWeights,
    TwoClassWeights,
)
from toprank.rankers.boosting.rounds import EQUAL
from toprank.rankers.boosting.stumps import Binned, Masses, Stump, best_stump

_CHUNK = 1 << 14
#: Cells from which threads repay their start.
_THREADED_FROM = 300_000
#: Histograms follow the weights by rescaling, and are added up again after so many rounds, or
#: when rounding may have reached this share of a class's weight.
_FRESH_ROUNDS = 32
_ROUNDING = 1e-13
_EPSILON = 2.0**-52

Item = TypeVar("Item")
Filled = TypeVar("Filled")


class TwoClassStumps:
    """Weights, scores and histograms that move together, one stump per round."""

    def __init__(self, pairs: TwoClassWeights, binned: Binned, workers: Workers):
        self.pairs, self.binned, self.workers = pairs, binned, workers
        d, n = binned.codes.shape
        self.scores = np.zeros(n)
        cut = pairs.n_positive
        self._bounds = (slice(0, cut), slice(cut, n))
        self._starts = [_cuts(cut), cut + _cuts(n - cut)]
        self._rows = np.arange(n, dtype=np.int32)
        self._threaded = d * n >= _THREADED_FROM and workers.n_jobs > 1
        parts = min(d, 4 * workers.n_jobs if self._threaded else 1)
        cuts = np.linspace(0, d, parts + 1).astype(int)
        self._columns = [(int(a), int(b)) for a, b in pairwise(cuts)]
        self._gains = binned.empty_gains()
        self._sums = np.zeros((2, d, 256))
        self._refresh()

    def _map(self, function: Callable[[Item], Filled], items: Sequence[Item]) -> list[Filled]:
        return list((self.workers.map if self._threaded else map)(function, items))

    def _refresh(self) -> None:
        """Recompute weights and histograms from the scores."""
        tilted = self.pairs.tilt(self.scores)
        self._tops = [float(np.max(part)) for part in tilted]
        self.weights = np.concatenate(
            [np.exp(part - top) for part, top in zip(tilted, self._tops, strict=True)]
        )
        self._masses = [float(np.sum(self.weights[bounds])) for bounds in self._bounds]
        self._rows[:] = np.arange(len(self._rows), dtype=np.int32)
        self._sums = self._histograms([np.diff(starts) for starts in self._starts])
        self._rounds, self._rounding = 0, [0.0, 0.0]

    def _histograms(self, counts: list[IntArray]) -> FloatArray:
        """Return the histograms of the listed rows of each class."""
        from toprank.rankers.boosting.kernels import accumulate

        out = np.zeros_like(self._sums)

        def fill(task: tuple[int, tuple[int, int]]) -> None:
            kind, (first, last) = task
            accumulate(
                self.binned.codes,
                self.weights,
                self._rows,
                self._starts[kind],
                counts[kind],
                first,
                last,
                out[kind, first:last],
            )

        self._map(fill, [(kind, part) for part in self._columns for kind in (0, 1)])
        return out

    @property
    def log_masses(self) -> tuple[float, float]:
        """Logarithms of the sums of w_i e^{-f_i} and of w_k e^{p f_k}."""
        high, low = (np.log(m) + t for m, t in zip(self._masses, self._tops, strict=True))
        return float(high), float(low)

    @property
    def log_loss(self) -> float:
        """Log R^(1/p), not normalised."""
        high, low = self.log_masses
        return high + low / self.pairs.p

    def best(self, selection: str) -> Stump | None:
        """Return the stump that lowers the loss most, or the steepest; None without columns."""
        from toprank.rankers.boosting import kernels

        mode = kernels.SLOPE if selection == "slope" else kernels.LOSS
        if mode == kernels.LOSS and self.pairs.p != 1.0:
            mode = kernels.PUSH
        return self._best(mode, np.ones(2))

    def best_classifier(self, shares: FloatArray) -> Stump | None:
        """Return the stump of largest edge in AdaBoost's sense, for the classes' shares."""
        from toprank.rankers.boosting import kernels

        return self._best(kernels.CLASSIFY, shares)

    def _best(self, mode: int, shares: FloatArray) -> Stump | None:
        from toprank.rankers.boosting.kernels import class_gains

        binned = self.binned
        class_gains(
            self._sums,
            shares,
            binned.n_edges,
            binned.has_missing,
            mode,
            self.pairs.p,
            self._gains,
        )
        return best_stump(self._gains, binned)

    def side_masses(self, stump: Stump) -> FloatArray:
        """Return [[P0, P1], [N0, N1]], each class of total one, summed row by row."""
        from toprank.rankers.boosting.kernels import side_masses

        codes, table = self.binned.codes[stump.column], stump.table.astype(np.float64)

        def add(kind: int) -> FloatArray:
            return side_masses(codes, table, self.weights, self._starts[kind]).sum(axis=0)

        self._sides = np.stack(self._map(add, (0, 1)))
        return self._sides / self._sides.sum(axis=1, keepdims=True)

    def masses(self, stump: Stump) -> Masses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""
        from toprank.rankers.boosting.kernels import push_decrease

        (p0, p1), (n0, n1) = self.side_masses(stump)
        p = self.pairs.p
        factor = None if p == 1.0 else float(np.exp(-push_decrease(p1, p0, n1, n0, p)))
        return Masses(p1 * n0, p0 * n1, p1 * n1 + p0 * n0, p, factor)

    def move(self, stump: Stump, step: float) -> None:
        """Add step · h to the scores; weights and histograms follow."""
        from toprank.rankers.boosting.kernels import move

        factors = (np.exp(-step), np.exp(self.pairs.p * step))
        wanted = int(2 * stump.count <= len(self.scores))
        self._rounds += 1
        fresh = self._rounds >= _FRESH_ROUNDS or self._would_blur(factors, wanted)
        if not fresh:
            self._rescale(stump, factors, wanted)
        codes, table = self.binned.codes[stump.column], stump.table

        def follow(kind: int) -> None:
            bounds, of_code = self._bounds[kind], np.where(table, factors[kind], 1.0)
            move(codes[bounds], step * table, of_code, self.weights[bounds], self.scores[bounds])

        self._map(follow, (0, 1))
        if fresh:
            self._refresh()

    def _would_blur(self, factors: tuple[float, float], wanted: int) -> bool:
        """Follow the rounding of a rescaled histogram, and say whether it is too much."""
        for kind, factor in enumerate(factors):
            inside, outside = (factor, 1.0) if wanted else (1.0, factor)
            mass = float(self._sides[kind] @ (1.0, factor))
            terms = outside * self._masses[kind] + abs(inside - outside) * self._sides[kind, wanted]
            self._rounding[kind] = outside * self._rounding[kind] + _EPSILON * float(terms)
            if not (self._rounding[kind] <= _ROUNDING * mass and 1e-100 < mass < 1e100):
                return True
            self._masses[kind] = mass
        return False

    def _rescale(self, stump: Stump, factors: tuple[float, float], wanted: int) -> None:
        """New histograms from the rows of the smaller side: all · c + side · (c' - c)."""
        from toprank.rankers.boosting.kernels import rows_where

        codes, table = self.binned.codes[stump.column], stump.table

        def listed(kind: int) -> IntArray:
            return rows_where(codes, table, wanted, self._starts[kind], self._rows)

        side = self._histograms(self._map(listed, (0, 1)))
        for kind, factor in enumerate(factors):
            inside, outside = (factor, 1.0) if wanted else (1.0, factor)
            total = self._sums[kind]
            total *= outside
            total += (inside - outside) * side[kind]
            np.maximum(total, 0.0, out=total)


def _cuts(n: int) -> NDArray[np.intp]:
    return np.append(np.arange(0, n, _CHUNK), n)


class RelatedStumps(ABC):
    """Scores and pair weights that move together, one stump per round."""

    pairs: RelatedWeights

    def __init__(self, pairs: RelatedWeights, binned: Binned, workers: Workers):
        self.pairs, self.binned, self.workers = pairs, binned, workers
        self.scores = np.zeros(binned.codes.shape[1])
        self._gains = binned.empty_gains()
        # where no pair is ranked so, rounding must not say otherwise
        self._possible = self._curves(self._unit_weights()) > 0.5
        self._refresh()

    @abstractmethod
    def _unit_weights(self) -> tuple[FloatArray, ...]:
        """The weights under which every pair weighs one."""

    @abstractmethod
    def _add_curves(
        self,
        weights: Sequence[FloatArray],
        side: int,
        column: int,
        plus: FloatArray,
        minus: FloatArray,
    ) -> None:
        """Add the differences of d+ and d- from one threshold of a column to the next."""

    def _refresh(self) -> None:
        self.log_loss, *self._weights = self.pairs.weights(self.scores)

    def _curves(self, weights: Sequence[FloatArray]) -> FloatArray:
        """Return d+ and d- of every stump: shape (2, columns, sides, thresholds)."""
        d = len(self.binned.n_edges)
        both = np.zeros((2, 2, d, 257))
        sides = (0, 1) if np.any(self.binned.has_missing) else (0,)

        def fill(task: tuple[int, int]) -> None:
            side, column = task
            self._add_curves(weights, side, column, *both[side, :, column])

        list(self.workers.map(fill, [(side, column) for side in sides for column in range(d)]))
        sums = np.cumsum(both, axis=-1)[..., 1 : self._gains.shape[-1] + 1]
        return np.ascontiguousarray(np.maximum(sums, 0.0).transpose(1, 2, 0, 3))

    def best(self, selection: str) -> Stump | None:
        """Return the stump that lowers the loss most, or the steepest; None without columns."""
        from toprank.rankers.boosting import kernels, pair_kernels

        if not np.isfinite(self.log_loss):
            return None
        binned = self.binned
        plus, minus = np.where(self._possible, self._curves(self._weights), 0.0)
        mode = kernels.SLOPE if selection == "slope" else kernels.LOSS
        pair_kernels.pair_gains(plus, minus, binned.n_edges, binned.has_missing, mode, self._gains)
        if mode == kernels.LOSS and self.pairs.p != 1.0:
            self._search_gains()
        return best_stump(self._gains, binned)

    def _search_gains(self) -> None:
        """Replace the gains of p = 1 by those of the push, for the stumps that may be the best.

        Along a step of a stump the heights are S(a) = S+ e^-a + S- e^a + S0, and by Hölder's
        inequality |S(a)|_p >= |S|_p (d+ e^-a + d- e^a + d0): no step lowers R^(1/p) by more than
        the gain of p = 1 under the push's pair weights. So the line searches begin with the stump
        of largest gain and end where the next one cannot be better.
        """
        bounds, best = self._gains.copy(), 0.0
        self._gains.fill(-1.0)
        for flat in np.argsort(-bounds, axis=None, kind="stable"):
            column, side, place = np.unravel_index(flat, bounds.shape)
            if bounds[column, side, place] < max(best - EQUAL, 0.0):
                break
            h = (np.arange(256) > place).astype(np.uint8)
            h[255] = side
            gain = self._along(h[self.binned.codes[column]]).gain
            self._gains[column, side, place] = gain
            best = max(best, gain)

    def _along(self, h: NDArray[np.uint8]) -> LineMasses:
        return line_masses(self.pairs, self.scores, h, self._split(h))

    def _split(self, h: NDArray[np.uint8]) -> tuple[float, float, float]:
        return self.pairs.split_weights(self._weights, h)

    def masses(self, stump: Stump) -> Masses | LineMasses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""
        h = stump.table[self.binned.codes[stump.column]]
        return Masses(*self._split(h)) if self.pairs.p == 1.0 else self._along(h)

    def move(self, stump: Stump, step: float) -> None:
        """Add step · h to the scores; the weights follow."""
        codes = self.binned.codes[stump.column]
        self.scores += step * stump.table[codes]
        self._refresh()


class GradedStumps(RelatedStumps):
    """Stumps judged on graded pairs, whose weights are products of two rows' weights."""

    pairs: GradedWeights

    def _unit_weights(self) -> tuple[FloatArray, ...]:
        return self.pairs.wins.astype(np.float64), self.pairs.loses.astype(np.float64)

    def _add_curves(
        self,
        weights: Sequence[FloatArray],
        side: int,
        column: int,
        plus: FloatArray,
        minus: FloatArray,
    ) -> None:
        from toprank.rankers.boosting.pair_kernels import graded_curves

        levels = (self.pairs.relation.level_start, self.pairs.relation.level_end)
        codes, cuts = self.binned.codes[column], self.pairs.cuts
        win, lose = weights
        graded_curves(codes, win, lose, *levels, cuts, side, plus, minus)


class ListedStumps(RelatedStumps):
    """Stumps judged on listed pairs, each with a weight of its own."""

    pairs: ListedWeights

    def _unit_weights(self) -> tuple[FloatArray, ...]:
        return (np.ones(len(self.pairs.winners)),)

    def _add_curves(
        self,
        weights: Sequence[FloatArray],
        side: int,
        column: int,
        plus: FloatArray,
        minus: FloatArray,
    ) -> None:
        from toprank.rankers.boosting.pair_kernels import listed_curves

        rows = (self.pairs.winners, self.pairs.losers)
        (weight,) = weights
        listed_curves(self.binned.codes[column], *rows, weight, side, plus, minus)
