"""Convex risk over any pairs: graded labels, groups, crucial pairs, with or without a price.

Without a price it is the empirical convex risk of Clémençon, Lugosi & Vayatis (Section 7),

    A_n(f) = sum w_i w_k l(f_i - f_k) / sum w_i w_k    over the pairs (i, k) where i beats k,

with a price the crucial-pairs push of Rudin 2009 (Section 7),

    R_{g,l}(f) = sum_k w_k g( sum_{i beats k} w_i l(f_i - f_k) ),

in the form that is convex for the loss. Power prices are divided by what they come to when every
pair has a loss of one; for two classes that is the normalisation of the P-Norm Push.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of, softmax
from toprank.blocks import Workers
from toprank.losses import Loss, ZeroOne
from toprank.objective.data import BlockData
from toprank.objective.problem import (
    HESSIAN_ROWS_ENOUGH,
    LinearProblem,
    gradient_in_scores,
    hessian_in_scores,
)
from toprank.objective.risk import PushObjective, gentler_price, price_and_loss, smooth_parts
from toprank.pair_sums import PairSum, RelatedSum, related_sum
from toprank.pairs import IntArray, Relation, Sides
from toprank.prices import Power, Price

#: A coarse problem keeps this many rows, or so many a feature if that is more.
_COARSE_ROWS, _COARSE_ROWS_PER_FEATURE = 5_000, 100
#: Pairs that a Hessian is estimated from: at least, a feature, and at most.
_HESSIAN_PAIRS = (6_000, 400, 40_000)
#: Differences of rows held in memory at once.
_PAIRS_AT_ONCE = 2_048


@dataclass(frozen=True)
class PairObjective(PushObjective):
    """F(f) over the pairs of a relation; everything else as for two classes."""

    relation: Relation = field(kw_only=True)
    workers: Workers | None = None

    def _sums(self, scores: FloatArray) -> list[PairSum]:
        return [self._sum(side, scores) for side in self.sides]

    def _sum(self, side: Sides, scores: FloatArray) -> RelatedSum:
        return related_sum(self.loss, self.relation, side.sign * scores, self.workers)

    @cached_property
    def _outer_weight(self) -> FloatArray:
        return np.exp(self.log_outer_weight)

    def value_grad(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return F and its gradient in the scores.

        Without a price the share of every pair is known beforehand, and one pass gives both.
        """
        if self.form == "root" and getattr(self.price, "p", None) == 1.0:
            (side,) = self.sides
            value, grad = self._sum(side, scores).value_grad(side.inner_weight, self._outer_weight)
            if np.isfinite(value):
                return value, side.sign * grad
        return super().value_grad(scores)


@dataclass(frozen=True)
class PairTask:
    """What is to be minimised: a relation with its weights, price, loss, penalty."""

    relation: Relation
    weight: FloatArray
    side: Sides
    price: Price
    loss: Loss
    alpha: float = 0.0

    @classmethod
    def build(
        cls,
        relation: Relation,
        weight: FloatArray,
        *,
        price: str | Price | tuple[object, ...] = "identity",
        p: float = 4.0,
        loss: str | Loss | tuple[object, ...] = "squared_hinge",
        end: str = "top",
        alpha: float = 0.0,
    ) -> PairTask:
        """Resolve names into a price and a loss, and say which side's heights are priced."""
        price, loss = price_and_loss(price, p, loss)
        if (price.outer == "winners") != (end == "bottom"):
            relation, sign = relation.reverse(), -1.0
        else:
            sign = 1.0
        side = _side(relation, weight, sign, price)
        return cls(relation, weight, side, price, loss, alpha)

    def objective(self, workers: Workers | None = None) -> PairObjective:
        return PairObjective(
            (self.side,), self.price, self.loss, relation=self.relation, workers=workers
        )

    def with_price(self, price: Price) -> PairTask:
        """Return the task with another price of the same side's heights."""
        side = _side(self.relation, self.weight, self.side.sign, price)
        return replace(self, price=price, side=side)

    def smoothed(self, level: float) -> PairTask:
        """Return a smooth task that lies below this one and meets it as level -> 0."""
        parts = smooth_parts(self.price, self.loss, 1.0, 1.0, level)
        return replace(self, price=parts["price"], loss=parts["loss"])

    @property
    def smooth(self) -> bool:
        return self.price.smooth and self.loss.smooth

    @property
    def has_curvature(self) -> bool:
        return self.price.has_curvature and self.loss.has_curvature

    def gentler(self, p: float) -> PairTask | None:
        """Return the task with a power price of at most p; None if this one is as gentle."""
        price = gentler_price(self.price, p)
        return None if price is None else replace(self, price=price)

    def thin(self, n_rows: int) -> tuple[IntArray, PairTask] | None:
        """Return about n_rows rows and the task among them."""
        thin = self.relation.thin(n_rows)
        if thin is None:
            return None
        rows, relation = thin
        weight = self.weight[rows]
        side = _side(relation, weight, self.side.sign, self.price)
        return rows, replace(self, relation=relation, weight=weight, side=side)


def _side(relation: Relation, weight: FloatArray, sign: float, price: Price) -> Sides:
    if price.homogeneous:  # to a size at which nothing overflows: ratios stay, to the last bit
        weight = np.ldexp(weight, -int(np.frexp(np.max(weight, initial=0.0))[1]))
    log_outer, inner = log_of(weight[relation.outer]), weight[relation.inner]
    if price.homogeneous:
        log_outer = log_outer - np.log(np.sum(weight[relation.outer]))
        # the norm of the heights where every pair has a loss of one
        in_logs = price.with_form(root=False)
        inner = inner / np.exp(
            in_logs.value_slope(log_of(relation.facing_weight(weight)), log_outer)[0]
        )
    return Sides(relation.outer, relation.inner, sign, log_outer, inner)


class PairProblem(LinearProblem[BlockData]):
    """The objective of a linear ranker over the pairs of a relation, ready for a solver.

    Parameters
    ----------
    data : BlockData
        Rows in memory.
    task : PairTask
    workers : Workers, optional
        Threads for the sums over pairs.
    """

    # a Hessian costs as many evaluations as there are features
    newton_up_to = 100

    def __init__(self, data: BlockData, task: PairTask, workers: Workers | None = None):
        super().__init__(data, task)
        self.workers = workers

    def with_task(self, task: PairTask) -> PairProblem:
        return PairProblem(self.data, task, self.workers)

    @cached_property
    def objective(self) -> PairObjective:
        """The objective in scores."""
        objective: PairObjective = self.task.objective(self.workers)
        return objective

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.objective.scale

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        return self.add_penalty(*gradient_in_scores(self.data, self.objective, coef), coef)

    def value(self, coef: FloatArray) -> float:
        return self.objective.value(self.scores(coef)) + self.cost(coef)

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        return self.objective.value_grad(self.scores(coef))[1]

    def coarse(self) -> PairProblem | None:
        return self._coarse

    @cached_property
    def _coarse(self) -> PairProblem | None:
        """Thin the rows, evenly along the labels or by whole groups.

        Only for prices that do not notice how many rows there are.
        """
        rows = max(_COARSE_ROWS, _COARSE_ROWS_PER_FEATURE * self.size)
        if self.n_rows < 4 * rows or not self.task.price.homogeneous:
            return None
        thin = self.task.thin(rows)
        if thin is None:
            return None
        return PairProblem(self.data.take(thin[0]), thin[1], self.workers)

    def separates(self, coef: FloatArray) -> bool:
        """Whether the scores put every pair strictly in order."""
        side, relation = self.task.side, self.task.relation
        sums = related_sum(ZeroOne(), relation, side.sign * self.scores(coef))
        return not np.any(sums.to_outer((0,), np.ones(len(side.inner)))[0])

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        price, relation = self.task.price, self.task.relation
        least, a_feature, most = _HESSIAN_PAIRS
        count = min(max(least, a_feature * self.size), most, max(least, 2 * self.n_rows))
        few = relation.n_pairs <= count
        sampled = not exact and relation.pair_weight is None
        if isinstance(price, Power) and price.p == 1.0 and (few or sampled):
            return self._hessian_of_pairs(coef, *relation.sample_pairs(count))
        coarse = None if exact else self.coarse()
        if coarse is not None:
            return coarse.hessian(coef, exact=coarse.n_rows <= HESSIAN_ROWS_ENOUGH)
        hessian = hessian_in_scores(self.data, self.objective, coef)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _hessian_of_pairs(self, coef: FloatArray, inner: IntArray, outer: IntArray) -> FloatArray:
        """The Hessian of A_n, or of its logarithm, over the given pairs of the relation."""
        task, side = self.task, self.task.side
        scores = side.sign * self.scores(coef)
        margin = scores[side.inner[inner]] - scores[side.outer[outer]]
        log_weight = side.log_outer_weight[outer] + log_of(side.inner_weight[inner])
        if task.relation.pair_weight is not None:  # all pairs then, in their order
            log_weight = log_weight + log_of(task.relation.pair_weight)
        in_logs = not task.price.root  # the logarithm of a sum of exponentials
        bend = softmax(log_weight - margin) if in_logs else softmax(log_weight)
        bend = bend if in_logs else bend * task.loss.derivative(2, margin)
        bent = np.flatnonzero(bend > 0)
        rows = side.inner[inner[bent]], side.outer[outer[bent]]
        hessian, mean = self._moments_apart(*rows, bend[bent])
        if in_logs:
            hessian -= np.outer(mean, mean)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _moments_apart(
        self, first: IntArray, second: IntArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weighted sums of z z' and of z, z the differences of the given rows."""
        squares, total = np.zeros((self.size, self.size)), np.zeros(self.size)
        for start in range(0, len(weight), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            apart = self.data.dense(first[part]) - self.data.dense(second[part])
            total += weight[part] @ apart
            apart *= np.sqrt(weight[part])[:, None]
            squares += apart.T @ apart
        return squares, total
