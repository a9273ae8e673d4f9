"""Crucial pairs in general: higher labels against lower ones within groups, or pairs listed.

Graded and grouped rows cost O(log bins) a row and column each round, however many pairs they form;
listed pairs cost two additions a pair and column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks import Workers
from toprank.rankers.boosting.bins import Binned
from toprank.rankers.boosting.stumps import Masses, Stump

IntArray = NDArray[np.intp]


class GradedPairs:
    """Every row against every row of a lower label, within groups if there are any.

    Rows are kept in order of group, then label.

    Parameters
    ----------
    labels : array of shape (n,)
    groups : array of shape (n,) or None
    weight : array of shape (n,) or None
        Repetition counts, all positive; a pair weighs the product.
    """

    p = 1.0

    def __init__(self, labels: Any, groups: Any, weight: FloatArray | None):
        n = len(labels)
        level = np.unique(labels, return_inverse=True)[1].reshape(-1)
        group = np.zeros(n, dtype=np.intp)
        if groups is not None:
            group = np.unique(groups, return_inverse=True)[1].reshape(-1)
        self.order = np.lexsort((level, group))
        self.place = np.empty(n, dtype=np.intp)
        self.place[self.order] = np.arange(n)
        level, group = level[self.order], group[self.order]
        new_group = np.concatenate([[True], group[1:] != group[:-1]])
        new_level = np.concatenate([[True], level[1:] != level[:-1]]) | new_group
        self.levels = np.append(np.flatnonzero(new_level), n)
        self.groups = np.append(np.flatnonzero(new_group[self.levels[:-1]]), len(self.levels) - 1)
        self.log_weight = np.zeros(n) if weight is None else log_of(weight[self.order])
        self._level_of = np.cumsum(new_level) - 1
        first_level = np.repeat(self.groups[:-1], np.diff(self.groups))
        last_level = np.repeat(self.groups[1:] - 1, np.diff(self.groups))
        self._level_start = self.levels[:-1]
        self._group_start = self.levels[first_level]
        self._group_end = self.levels[last_level + 1]
        self._wins = (self._level_start > self._group_start)[self._level_of]
        self._loses = (self.levels[1:] < self._group_end)[self._level_of]
        self._group_of_row = np.repeat(
            np.arange(len(self.groups) - 1), np.diff(self.levels[self.groups])
        )
        self.has_pairs = bool(np.any(self._wins))
        if self.has_pairs:
            self.log_pairs = self.weights(np.zeros(n))[0]
            self.log_lightest = min(0.0, self._smallest(self.log_weight, -self.log_weight))
            self.log_n_pairs = self.log_pairs - self.log_lightest

    def weights(self, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return log F and row weights whose products over pairs have total one.

        Each group is scaled by its own largest terms, so that only a group whose every pair
        is beyond the range of floats underflows.
        """
        n_groups = len(self.groups) - 1
        starts = self.levels[self.groups[:-1]]
        high = np.where(self._wins, self.log_weight - scores, -np.inf)
        low = np.where(self._loses, self.log_weight + scores, -np.inf)
        tops = [np.maximum.reduceat(part, starts) for part in (high, low)]
        tops = [np.where(np.isfinite(top), top, 0.0) for top in tops]
        win = np.exp(high - tops[0][self._group_of_row])
        lose = np.exp(low - tops[1][self._group_of_row])
        faced = self._below(lose)
        sums: Any = np.bincount(self._group_of_row, win * faced, minlength=n_groups)
        log_group = log_of(sums)
        log_group += tops[0] + tops[1]
        value = log_sum_exp(log_group)
        if not np.isfinite(value):
            return -np.inf, win, lose
        scale = np.minimum(tops[0] + tops[1] - value, 700.0)  # beyond it every product is zero
        win *= np.exp(scale)[self._group_of_row]
        return value, win, lose

    def _below(self, values: FloatArray) -> FloatArray:
        """For each row, the sum over the lower labels of its group, without a subtraction."""
        from toprank.rankers.boosting.pair_kernels import restarted_sums

        return restarted_sums(values, self.levels, self.groups)

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log F and minus its gradient in the scores."""
        value, win, lose = self.weights(scores)
        below, total = self._below(win), np.add.reduceat(win, self.levels[self.groups[:-1]])
        same = np.add.reduceat(win, self._level_start)[self._level_of]
        above = np.maximum(total[self._group_of_row] - below - same, 0.0)
        return value, win * self._below(lose) - np.where(self._loses, lose * above, 0.0)

    def margin(self, scores: FloatArray) -> float:
        """Return the smallest f_i - f_k over the pairs."""
        return self._smallest(scores, scores)

    def _smallest(self, of_winner: FloatArray, of_loser: FloatArray) -> float:
        """Return the smallest difference over the pairs."""
        lowest = np.minimum.reduceat(of_winner, self._level_start)
        highest = np.maximum.reduceat(of_loser, self._level_start)
        smallest = np.inf
        for first, last in zip(self.groups[:-1], self.groups[1:], strict=True):
            if last - first > 1:
                ceiling = np.maximum.accumulate(highest[first : last - 1])
                smallest = min(smallest, float(np.min(lowest[first + 1 : last] - ceiling)))
        return smallest

    def concordance(self, scores: FloatArray) -> float:
        """Return the share of the pairs in order, a tie counting one half."""
        from toprank.metrics.risk import misranked_by_row

        largest = float(np.max(self.log_weight))
        weight = np.exp(self.log_weight - largest)
        wrong = 0.0
        for first, last in zip(self.groups[:-1], self.groups[1:], strict=True):
            rows = slice(int(self.levels[first]), int(self.levels[last]))
            if last - first > 1:
                inverted, tied = misranked_by_row(
                    self._level_of[rows].astype(np.float64), scores[rows], weight[rows]
                )
                wrong += 0.5 * float(weight[rows] @ (inverted + tied / 2))
        return max(0.0, 1.0 - wrong / float(np.exp(self.log_pairs - 2.0 * largest)))

    def on(self, binned: Binned, workers: Workers) -> PairStumps:
        """Return the stumps of binned columns, judged on these pairs."""
        return PairStumps(self, binned, workers)

    def curves(self, codes: Any, weights: Any, side: int, first: int, last: int, out: Any) -> None:
        """Add the differences of d+ and d- in the threshold to out."""
        from toprank.rankers.boosting.pair_kernels import graded_curves

        graded_curves(codes, *weights, self.levels, self.groups, side, first, last, out)

    def masses(self, codes: Any, stump: Stump, weights: Any) -> Masses:
        """Return d+, d- and d0 of one stump."""
        from toprank.rankers.boosting.pair_kernels import graded_masses

        sums = graded_masses(codes, stump.table, *weights, self.levels, self.groups)
        return Masses(*(np.array(sums) / sum(sums)))

    def unit_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return the weights under which every pair weighs one."""
        return self._wins.astype(np.float64), self._loses.astype(np.float64)


class ListedPairs:
    """Crucial pairs (winner, loser) one by one; repeated and contradictory ones are allowed.

    Parameters
    ----------
    pairs : int array of shape (m, 2)
    weight : array of shape (n,) or None
        A pair weighs the product of its rows' weights, all positive.
    n_rows : int
    """

    p = 1.0

    def __init__(self, pairs: IntArray, weight: FloatArray | None, n_rows: int):
        self.order = self.place = np.arange(n_rows)
        self.winners, self.losers = (np.ascontiguousarray(column) for column in pairs.T)
        logs = np.zeros(n_rows) if weight is None else log_of(weight)
        self.log_weight = logs[self.winners] + logs[self.losers]
        self.has_pairs = len(pairs) > 0
        if self.has_pairs:
            self.log_pairs = log_sum_exp(self.log_weight)
            self.log_lightest = min(0.0, float(np.min(self.log_weight)))
            self.log_n_pairs = self.log_pairs - self.log_lightest

    def weights(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log F and the weights of the pairs, of total one."""
        terms = self.log_weight - (scores[self.winners] - scores[self.losers])
        value = log_sum_exp(terms)
        return value, np.exp(terms - value)

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log F and minus its gradient in the scores."""
        value, weight = self.weights(scores)
        n = len(scores)
        won: Any = np.bincount(self.winners, weight, n)
        return value, won - np.bincount(self.losers, weight, n)

    def margin(self, scores: FloatArray) -> float:
        """Return the smallest f_i - f_k over the pairs."""
        return float(np.min(scores[self.winners] - scores[self.losers]))

    def concordance(self, scores: FloatArray) -> float:
        """Return the share of the pairs in order, a tie counting one half."""
        right = np.sign(scores[self.winners] - scores[self.losers])
        return float(np.exp(self.log_weight - self.log_pairs) @ (0.5 + 0.5 * right))

    def on(self, binned: Binned, workers: Workers) -> PairStumps:
        """Return the stumps of binned columns, judged on these pairs."""
        return PairStumps(self, binned, workers)

    def curves(self, codes: Any, weights: Any, side: int, first: int, last: int, out: Any) -> None:
        """Add the differences of d+ and d- in the threshold to out."""
        from toprank.rankers.boosting.pair_kernels import explicit_curves

        explicit_curves(codes, self.winners, self.losers, *weights, side, first, last, out)

    def masses(self, codes: Any, stump: Stump, weights: Any) -> Masses:
        """Return d+, d- and d0 of one stump."""
        h = stump.table[codes].astype(np.int8)
        sign = h[self.winners] - h[self.losers]
        (weight,) = weights
        return Masses(*(float(np.sum(weight[sign == s])) for s in (1, -1, 0)))

    def unit_weights(self) -> tuple[FloatArray]:
        """Return the weights under which every pair weighs one."""
        return (np.ones(len(self.winners)),)


class PairStumps:
    """Scores and pair weights that move together, one stump a round."""

    def __init__(self, pairs: GradedPairs | ListedPairs, binned: Binned, workers: Workers):
        self.pairs, self.binned, self.workers = pairs, binned, workers
        d, n = binned.codes.shape
        self.scores = np.zeros(n)
        self._counts = binned.counts()
        self._width = int(binned.n_edges.max(initial=0)) + 1
        self._gains = np.full((d, 2, self._width), -1.0)
        # where no pair is ranked so, rounding must not say otherwise
        self._possible = self._curves(pairs.unit_weights()) > 0.5
        self._refresh()

    def _refresh(self) -> None:
        self.log_loss, *self._weights = self.pairs.weights(self.scores)

    def _curves(self, weights: Any) -> FloatArray:
        """Return d+ and d- of every stump: shape (2, columns, sides, thresholds)."""
        d = len(self.binned.n_edges)
        both = np.zeros((2, 2, d, 257))
        sides = (0, 1) if np.any(self.binned.has_missing) else (0,)

        def fill(task: tuple[int, int]) -> None:
            side, j = task
            self.pairs.curves(self.binned.codes, weights, side, j, j + 1, both[side])

        list(self.workers.map(fill, [(side, j) for side in sides for j in range(d)]))
        sums = np.cumsum(both, axis=-1)[..., 1 : self._width + 1]
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
        return Stump.of(kernels.first_best(self._gains, binned.n_edges), binned, self._counts)

    def masses(self, stump: Stump) -> Masses:
        """Return the weights of the pairs that the stump ranks rightly, wrongly, not at all."""
        return self.pairs.masses(self.binned.codes[stump.column], stump, self._weights)

    def move(self, stump: Stump, step: float) -> None:
        """Add step · h to the scores; the weights follow."""
        codes = self.binned.codes[stump.column]
        self.scores += step * stump.table[codes]
        self._refresh()
