"""The logistic loss with a power price: three passes, no score on the driver.

With s = 1 where negatives are priced and s = -1 where positives are, inner rows have scores
a = s f and normalised weights w_i, outer rows b = s f and w_o, and

    S_o = sum_i w_i l(a_i - b_o),    F = (sum_o w_o S_o^p)^{1/p},    c_o = dF/dS_o.

The first pass spreads the inner weights onto nodes of boxes (`NodeSums`). In the
second every block sums its heights S_o over those nodes, prices them, and spreads c_o, up to a
factor that is known when all is merged. In the third every inner row sums c_o l'(a_i - b_o) over
the nodes of the outer rows. Nodes give what the rows would, to rounding: ``DEGREE`` numbers for
every half unit of the scores, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._arrays import BoolArray
from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks.source import Block
from toprank.losses import Loss
from toprank.objective.data import LabelledData
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.priced import End, ends_of
from toprank.objective.problem import ScoredProblem, TwoClassProblem
from toprank.objective.risk import Task
from toprank.objective.sums import rescale_factor
from toprank.pair_sums import pair_sum
from toprank.pair_sums.interpolated import DEGREE, WIDTH, Boxes, nodes, spread
from toprank.prices import Power

#: Rows from which sums at nodes are worth a third pass; fewer scores are gathered.
NODES_FROM = 200_000
#: Stands for the logarithm of zero: finite, so that no power of it is NaN.
_LOG_ZERO = -1e300

#: Nodes and their weights.
Points = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class NodeSums:
    """Chebyshev moments of weighted scores, by box: sums that merge and do not grow with n.

    The boxes of `toprank.pair_sums.interpolated` are laid out from zero, so that those of different
    rows are the same. A box keeps the Chebyshev moments of its rows, sum v T_m(x). Moments of
    different rows add up, and ``DEGREE`` weights at the nodes have the same moments: to every sum
    of a smooth loss over the rows the nodes give the same answer, to rounding.

    Attributes
    ----------
    number : ndarray of shape (m,)
        The boxes that hold scores, ascending; box j goes from j to j + 1 widths.
    moments : ndarray of shape (DEGREE, m)
        Their moments.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.objective.node_sums import NodeSums
    >>> scores, weight = np.linspace(-3, 3, 1000), np.ones(1000)
    >>> halves = [NodeSums.of(scores[part::2], weight[part::2]) for part in (0, 1)]
    >>> at, v = halves[0].merge(halves[1]).points()
    >>> len(at), bool(np.isclose(v @ np.logaddexp(0, -at), np.logaddexp(0, -scores).sum()))
    (143, True)
    """

    number: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, weight: FloatArray) -> NodeSums:
        """Spread the weights of some scores."""
        if len(scores) == 0:
            return cls(np.empty(0), np.empty((DEGREE, 0)))
        boxes = Boxes(scores, 0.0)
        return cls(boxes.number, spread(boxes, weight))

    def merge(self, other: NodeSums) -> NodeSums:
        """Add the weights of other scores."""
        number, place = np.unique(np.concatenate([self.number, other.number]), return_inverse=True)
        moments = np.zeros((DEGREE, len(number)))
        for part, at in zip((self, other), np.split(place, [len(self.number)]), strict=True):
            moments[:, at] += part.moments
        return NodeSums(number, moments)

    def times(self, factor: float) -> NodeSums:
        """Multiply all weights."""
        return NodeSums(self.number, factor * self.moments)

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return the nodes, as scores, and their weights, which may be negative."""
        at, to_series = nodes()
        place = (self.number[:, None] + 0.5 + 0.5 * at) * WIDTH
        return place.ravel(), (to_series.T @ self.moments).T.ravel()


class _Rows:
    """Scores, labels and weights of a block, on the host, as an end sees them."""

    def __init__(self, opened: OpenBlock, coef: FloatArray):
        self.opened = opened
        with np.errstate(over="ignore", invalid="ignore"):
            self.scores: FloatArray = opened.on_host("scores", coef)
        self.positive, weight = opened.on_host("labels")
        self.weight: FloatArray = np.ones(len(self.scores)) if weight is None else weight
        self.present = self.weight > 0

    def inner(self, end: End) -> BoolArray:
        """Which rows the heights are summed over."""
        return self.present & (self.positive != end.prices_positives)

    def outer(self, end: End) -> BoolArray:
        """Which rows have their heights priced."""
        return self.present & (self.positive == end.prices_positives)


@dataclass(frozen=True)
class Spread:
    """Inner weights at the nodes, one `NodeSums` per end; None where a score is not finite."""

    view: View
    ends: tuple[End, ...]

    def local(self, block: Block, coef: FloatArray) -> list[NodeSums] | None:
        rows = _Rows(open_block(block, self.view), coef)
        if not np.all(np.isfinite(rows.scores[rows.present])):
            return None
        members = [(end, rows.inner(end)) for end in self.ends]
        return [NodeSums.of(end.sign * rows.scores[at], rows.weight[at]) for end, at in members]

    def merge(
        self, left: list[NodeSums] | None, right: list[NodeSums] | None
    ) -> list[NodeSums] | None:
        if left is None or right is None:
            return None
        return [a.merge(b) for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True)
class PricedHeights:
    """Prices of the heights of some outer rows.

    ``slope`` is X' times the gradient in the outer scores and ``nodes`` holds dF/dS, both
    relative to e^top and before the factor F^{1-p}.
    """

    log_risk: float  #: log sum w S^p
    top: float
    slope: FloatArray
    nodes: NodeSums

    def merge(self, other: PricedHeights) -> PricedHeights:
        """Join the heights of other rows."""
        top = max(self.top, other.top)
        keep = [rescale_factor(part.top, top) for part in (self, other)]
        return PricedHeights(
            float(np.logaddexp(self.log_risk, other.log_risk)),
            top,
            keep[0] * self.slope + keep[1] * other.slope,
            self.nodes.times(keep[0]).merge(other.nodes.times(keep[1])),
        )


@dataclass(frozen=True)
class Heights:
    """Heights of the outer rows, priced; the state is (coef, inner nodes of each end)."""

    view: View
    ends: tuple[End, ...]
    loss: Loss
    p: float

    def local(self, block: Block, state: tuple[FloatArray, list[Points]]) -> list[PricedHeights]:
        coef, inner = state
        rows = _Rows(open_block(block, self.view), coef)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return [self._end(rows, *pair) for pair in zip(self.ends, inner, strict=True)]

    def _end(self, rows: _Rows, end: End, inner: Points) -> PricedHeights:
        at = rows.outer(end)
        scores = end.sign * rows.scores[at]
        sums = pair_sum(self.loss, inner[0], scores)
        height, tilt = sums.to_outer((0, 1), inner[1])
        log_s = np.maximum(log_of(np.maximum(height, 0.0)) + sums.log_scale, _LOG_ZERO)
        log_weight = log_of(rows.weight[at]) + end.log_weight
        exponent = log_weight + (self.p - 1.0) * log_s
        top = float(np.max(exponent, initial=-np.inf))
        per_height = np.exp(exponent - (top if np.isfinite(top) else 0.0))
        slope = np.zeros(len(rows.scores))
        slope[at] = -end.sign * per_height * tilt * np.exp(sums.log_scale)
        return PricedHeights(
            log_sum_exp(log_weight + self.p * log_s),
            top,
            rows.opened.design.adjoint(slope),
            NodeSums.of(scores, per_height),
        )

    def merge(self, left: list[PricedHeights], right: list[PricedHeights]) -> list[PricedHeights]:
        return [a.merge(b) for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True)
class Pull:
    """X' times the gradient in the inner scores; the state is (coef, outer nodes of each end)."""

    view: View
    ends: tuple[End, ...]
    loss: Loss

    def local(self, block: Block, state: tuple[FloatArray, list[Points]]) -> FloatArray:
        coef, outer = state
        rows = _Rows(open_block(block, self.view), coef)
        slope = np.zeros(len(rows.scores))
        with np.errstate(under="ignore"):
            for end, (points, per_height) in zip(self.ends, outer, strict=True):
                at = rows.inner(end)
                sums = pair_sum(self.loss, end.sign * rows.scores[at], points)
                (pull,) = sums.to_inner((1,), per_height * np.exp(sums.log_scale))
                slope[at] += end.sign * rows.weight[at] * pull
        return rows.opened.design.adjoint(slope)

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right


class NodesProblem(TwoClassProblem):
    """Losses with logistic tails and the power price: three passes per evaluation."""

    newton_up_to = ScoredProblem.newton_up_to

    @staticmethod
    def suits(data: LabelledData, task: Task) -> bool:
        """Whether the sums can be taken at nodes, and the rows are so many that they should."""
        many = data.n_rows >= NODES_FROM and not data.source.in_memory
        return many and task.loss.logistic_tails and isinstance(task.price, Power)

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """The ends, with outer weights that sum to one before those of the ends."""
        of_pos, of_neg = self.data.log_totals
        return tuple(
            End(end.prices_positives, end.log_weight - (of_pos if end.prices_positives else of_neg))
            for end in ends_of(self.task)
        )

    def _inner_total(self, end: End) -> float:
        of_pos, of_neg = self.data.log_totals
        return float(np.exp(of_neg if end.prices_positives else of_pos))

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        value, grad = self._last.at(coef, 1, lambda: self._evaluate(coef))
        return self.add_penalty(value, grad, coef)

    def _evaluate(self, coef: FloatArray) -> tuple[float, FloatArray]:
        data, task = self.data, self.task
        nowhere = np.inf, np.zeros(self.size)
        inner = data.run(Spread(data.view, self.ends), coef)
        if inner is None:
            return nowhere
        points = [
            nodes.times(1.0 / self._inner_total(end)).points()
            for end, nodes in zip(self.ends, inner, strict=True)
        ]
        heights = data.run(Heights(data.view, self.ends, task.loss, self.task.p), (coef, points))
        log_norm = log_sum_exp(np.array([part.log_risk for part in heights])) / self.task.p
        value = float(np.exp(log_norm))
        if not np.isfinite(value):
            return nowhere
        if value == 0.0:  # every height is below the smallest float, and so is every slope
            return value, np.zeros(self.size)
        return value, self._gradient(coef, heights, log_norm)

    def _gradient(
        self, coef: FloatArray, heights: list[PricedHeights], log_norm: float
    ) -> FloatArray:
        grad, outer = np.zeros(self.size), []
        for end, part in zip(self.ends, heights, strict=True):
            # F^{1-p}: dF/dS is w (S/F)^{p-1}, at most the weight to the power 1/p
            factor = float(np.exp(part.top - (self.task.p - 1.0) * log_norm))
            grad += factor * part.slope
            outer.append(part.nodes.times(factor / self._inner_total(end)).points())
        data = self.data
        pull: FloatArray = data.run(Pull(data.view, self.ends, self.task.loss), (coef, outer))
        return grad + pull

    def on_sample(self, data: LabelledData) -> ScoredProblem:
        return ScoredProblem(data, self.task)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        """Take it from the sample; an exact one, should that fail to serve, gathers the scores."""
        return ScoredProblem(self.data, self.task).hessian(coef, exact=exact)
