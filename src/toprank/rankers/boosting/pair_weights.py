"""Crucial pairs with weights, and the exponential loss over them.

A pair (i, k) weighs w_i w_k e^{-(f_i - f_k)}. For two classes, and within a group of graded rows,
that is a product of a weight of i and one of k, and no pair is ever listed.

Under the price of power p the loss is R = sum_k w_k S_k^p, S_k = sum_i w_i e^{-(f_i - f_k)} over
the rows i that k faces, and the pair weighs w_k S_k^(p-1) w_i e^{-(f_i - f_k)}: the gradient of
log R^(1/p) is the same sum over pairs, and within a group still a product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray, log_of, log_sum_exp, softmax
from toprank.pairs import Explicit, Graded, IntArray, RelatedRows, Relation


class PairWeights(ABC):
    """Which rows should be above which, and what each pair weighs.

    Attributes
    ----------
    p : float
        The power of the push.
    order : int array of shape (n,)
        The order in which the rows are kept; scores are in this order but where said otherwise.
    log_pairs : float
        Log R^(1/p) where all scores are equal; for p = 1 the log of what all pairs weigh.
    log_lightest : float
        Logarithm of what the lightest pair weighs; 0 where that is more than one.
    log_n_pairs : float
        Logarithm of the number of pairs; one lighter than one is the unit.
    """

    p: float = 1.0
    order: IntArray
    log_pairs: float
    log_lightest: float
    log_n_pairs: float

    @cached_property
    def place(self) -> IntArray:
        """Where each row is kept."""
        place = np.empty(len(self.order), dtype=np.intp)
        place[self.order] = np.arange(len(place))
        return place

    @abstractmethod
    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log R^(1/p) and minus its gradient in the scores."""

    @abstractmethod
    def split(self, scores: FloatArray, h: np.ndarray) -> tuple[float, float, float]:
        """Return what the pairs weigh that h ranks rightly, wrongly, not at all; of total one.

        Weights are those at the scores; h has two values, in the order of the rows kept.
        """

    @abstractmethod
    def margin(self, scores: FloatArray) -> float:
        """Return the smallest f_i - f_k over the pairs, for scores in the order of the table."""


class TwoClassWeights(PairWeights):
    """Every positive against every negative, under the price of power p.

    Rows are kept in the order positives, negatives.

    Parameters
    ----------
    positive : bool array of shape (n,)
    weight : array of shape (n,) or None
        Repetition counts, all positive.
    p : float
        The power of the push; 1 is RankBoost.
    """

    def __init__(
        self, positive: NDArray[np.bool_], weight: FloatArray | None, p: float = 1.0
    ) -> None:
        self.positive, self.p = positive, p
        self.order = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
        self.n_positive = int(np.count_nonzero(positive))
        logs = np.zeros(len(positive)) if weight is None else log_of(weight[self.order])
        self.log_weight = (logs[: self.n_positive], logs[self.n_positive :])
        log_totals = [log_sum_exp(part) for part in self.log_weight]
        self.log_pairs = log_totals[0] + log_totals[1] / p
        self.log_lightest = min(0.0, float(sum(np.min(part) for part in self.log_weight)))
        self.log_n_pairs = sum(log_totals) - self.log_lightest

    def tilt(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log w_i - f_i of the positives and log w_k + p f_k of the negatives."""
        n = self.n_positive
        return self.log_weight[0] - scores[:n], self.log_weight[1] + self.p * scores[n:]

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        high, low = self.tilt(scores)
        value = log_sum_exp(high) + log_sum_exp(low) / self.p
        return value, np.concatenate([softmax(high), -softmax(low)])

    def split(self, scores: FloatArray, h: AnyArray) -> tuple[float, float, float]:
        n = self.n_positive
        high, low = (softmax(part) for part in self.tilt(scores))
        p0, p1 = (float(np.sum(high[h[:n] == side])) for side in (False, True))
        n0, n1 = (float(np.sum(low[h[n:] == side])) for side in (False, True))
        return p1 * n0, p0 * n1, p1 * n1 + p0 * n0

    def margin(self, scores: FloatArray) -> float:
        return float(np.min(scores[self.positive]) - np.max(scores[~self.positive]))


class RelatedWeights(PairWeights):
    """The pairs of a relation in which every row is present.

    Parameters
    ----------
    relation : Relation
        With at least one pair.
    log_weight : array of shape (n,)
        Logarithms of the rows' repetition counts; a pair weighs the product.
    p : float
        The power of the push, on the heights of the losers.
    """

    def __init__(self, relation: Relation, log_weight: FloatArray, p: float = 1.0):
        self.relation, self.p = relation, p
        equal = np.zeros(len(log_weight))
        self.log_pairs = self.weights(equal)[0]
        self.log_lightest = min(0.0, self._lightest(log_weight))
        self.log_n_pairs = self._flat_weights(equal)[0] - self.log_lightest

    def weights(self, scores: FloatArray) -> tuple[Any, ...]:
        """Return log R^(1/p) and the arrays that say what each pair weighs, of total one."""
        return self._flat_weights(scores) if self.p == 1.0 else self._pushed_weights(scores)

    def _lightest(self, log_weight: FloatArray) -> float:
        return self.relation.smallest_gap(log_weight, -log_weight)

    @abstractmethod
    def _flat_weights(self, scores: FloatArray) -> tuple[Any, ...]:
        """The same for p = 1."""

    @abstractmethod
    def _pushed_weights(self, scores: FloatArray) -> tuple[object, ...]:
        """The same for any p, by the logarithms of the heights."""

    def split(self, scores: FloatArray, h: AnyArray) -> tuple[float, float, float]:
        return self.split_weights(self.weights(scores)[1:], h)

    @abstractmethod
    def split_weights(
        self, weights: Sequence[FloatArray], h: np.ndarray
    ) -> tuple[float, float, float]:
        """The same where the arrays that `weights` returns are known."""

    def margin(self, scores: FloatArray) -> float:
        return self.relation.smallest_gap(scores, scores)


class GradedWeights(RelatedWeights):
    """Every row against every row of a lower label in its group, in order of group and label."""

    relation: Graded

    def __init__(self, relation: Graded, log_weight: FloatArray, p: float = 1.0):
        self.order, self._log_weight = relation.rows, log_weight[relation.rows]
        self.cuts = relation.group_cuts
        self._group = np.repeat(np.arange(len(self.cuts) - 1), np.diff(self.cuts))
        self.wins = relation.level_start > relation.group_start
        self.loses = relation.level_end < relation.group_end
        super().__init__(relation, log_weight, p)

    def _tops(self, values: FloatArray) -> FloatArray:
        """The largest value of each group; 0 where all are minus infinity."""
        tops = np.maximum.reduceat(values, self.cuts[:-1])
        return np.where(np.isfinite(tops), tops, 0.0)

    def _flat_weights(self, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return log F and weights of winners and losers whose products over pairs have total one.

        Each group is scaled by its own largest terms, so that only a group whose every pair
        is beyond the range of floats underflows.
        """
        high = np.where(self.wins, self._log_weight - scores, -np.inf)
        low = np.where(self.loses, self._log_weight + scores, -np.inf)
        tops = [self._tops(part) for part in (high, low)]
        win = np.exp(high - tops[0][self._group])
        lose = np.exp(low - tops[1][self._group])
        sums: np.ndarray = np.bincount(self._group, win * self._below(lose), len(self.cuts) - 1)
        log_group = log_of(sums) + tops[0] + tops[1]
        value = log_sum_exp(log_group)
        if not np.isfinite(value):
            return -np.inf, win, lose
        scale = np.minimum(tops[0] + tops[1] - value, 700.0)  # beyond it every product is zero
        win *= np.exp(scale)[self._group]
        return value, win, lose

    def _pushed_weights(self, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The same for p > 1: the loser's weight has the power p - 1 of its height in it."""
        from toprank.rankers.boosting.pair_kernels import log_sums_above

        high = np.where(self.wins, self._log_weight - scores, -np.inf)
        facing = log_sums_above(high, self.relation.level_end, self.cuts)
        low = np.where(self.loses, self._log_weight + self.p * (scores + facing), -np.inf)
        total = log_sum_exp(low)
        top = self._tops(high)[self._group]
        win = np.exp(high - top)
        lose = np.zeros(len(scores))
        heavy = low > -np.inf
        # beyond 700 every winner of the row is too light to be seen beside its group's lightest
        log_lose = (low - total)[heavy] + (top - facing)[heavy]
        lose[heavy] = np.exp(np.minimum(log_lose, 700.0))
        return total / self.p, win, lose

    def _below(self, values: FloatArray) -> FloatArray:
        from toprank.rankers.boosting.pair_kernels import sums_below

        return sums_below(values, self.relation.level_start, self.cuts)

    def _above(self, values: FloatArray) -> FloatArray:
        from toprank.rankers.boosting.pair_kernels import sums_above

        return sums_above(values, self.relation.level_end, self.cuts)

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        value, win, lose = self.weights(scores)
        return value, win * self._below(lose) - lose * self._above(win)

    def split_weights(
        self, weights: Sequence[FloatArray], h: np.ndarray
    ) -> tuple[float, float, float]:
        from toprank.rankers.boosting.pair_kernels import graded_masses

        win, lose = weights
        sums = np.array(graded_masses(h, win, lose, self.relation.level_end, self.cuts))
        plus, minus, zero = (sums / np.sum(sums)).tolist()
        return plus, minus, zero


class ListedWeights(RelatedWeights):
    """Pairs one by one, in the order of the table; repeated and contradictory ones count."""

    relation: Explicit

    def __init__(self, relation: Explicit, log_weight: FloatArray, p: float = 1.0):
        self.order = np.arange(len(log_weight))
        self.winners, self.losers = relation.inner_rows, relation.outer_rows
        self._log_winner = log_weight[self.winners]
        if relation.pair_weight is not None:  # pi stands inside the height, as the winner's weight
            self._log_winner = self._log_winner + log_of(relation.pair_weight)
        self._log_weight = self._log_winner + log_weight[self.losers]
        # pairs come in the order of their losers
        is_new = np.diff(self.losers, prepend=-1) != 0
        self._starts, self._loser = np.flatnonzero(is_new), np.cumsum(is_new) - 1
        self._log_loser = log_weight[self.losers[self._starts]]
        super().__init__(relation, log_weight, p)

    def _lightest(self, log_weight: FloatArray) -> float:
        return float(np.min(self._log_weight))

    def _flat_weights(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log F and the weights of the pairs, of total one."""
        terms = self._log_weight - (scores[self.winners] - scores[self.losers])
        value = log_sum_exp(terms)
        return value, np.exp(terms - value)

    def _pushed_weights(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """The same for p > 1: each loser has a share, and its pairs have shares of that."""
        terms = self._log_winner - (scores[self.winners] - scores[self.losers])
        top = np.maximum.reduceat(terms, self._starts)
        shares = np.exp(terms - top[self._loser])
        sums = np.add.reduceat(shares, self._starts)
        low = self._log_loser + self.p * (top + np.log(sums))
        total = log_sum_exp(low)
        return total / self.p, shares * (np.exp(low - total) / sums)[self._loser]

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        value, weight = self.weights(scores)
        won: np.ndarray = np.bincount(self.winners, weight, len(scores))
        return value, won - np.bincount(self.losers, weight, len(scores))

    def split_weights(
        self, weights: Sequence[FloatArray], h: np.ndarray
    ) -> tuple[float, float, float]:
        h = np.asarray(h).astype(np.int8)
        sign = h[self.winners] - h[self.losers]
        plus, minus, zero = (float(np.sum(weights[0][sign == s])) for s in (1, -1, 0))
        return plus, minus, zero


def weigh_pairs(rows: RelatedRows, p: float) -> PairWeights:
    """Return what the pairs of some rows weigh, all of the rows being present."""
    if rows.is_bipartite:
        return TwoClassWeights(rows.y, rows.weight, p)
    relation, log_weight = rows.relation(), log_of(rows.counts)
    if isinstance(relation, Graded):
        return GradedWeights(relation, log_weight, p)
    assert isinstance(relation, Explicit)
    return ListedWeights(relation, log_weight, p)
