"""From scores to probabilities: slope and offset of an increasing logistic curve.

Whatever the link, a decision value of zero is a probability of one half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.solvers import newton

#: Rows per block, so that the temporaries stay small.
_ROWS = 1 << 16
#: Rows on which the curve is first fitted when there are many more.
_SAMPLE = 50_000
#: The flattest curve, per standard deviation of the scores.
_FLATTEST = 1e-3


@dataclass(frozen=True)
class Link:
    """P(positive | score f) = sigmoid(slope (f + offset)), slope > 0."""

    slope: float
    offset: float


def p_classification(
    scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None, p: float
) -> Link:
    """The link of P-Classification: the offset at which the F-skew vanishes, slope 1 + p.

    b = [LSE(-f_pos) - LSE(p f_neg)] / (1 + p), Corollary 13 of Rudin & Schapire 2009 for the
    power price.
    """
    logs = np.zeros(len(scores)) if weight is None else log_of(weight)
    above = log_sum_exp((logs - scores)[positive])
    below = log_sum_exp((logs + p * scores)[~positive])
    return Link(1.0 + p, (above - below) / (1.0 + p))


def logistic(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None) -> Link:
    """Fit sigmoid(A f + B), A > 0, to the labels by maximum likelihood.

    With Platt's targets, (N+ + 1)/(N+ + 2) and 1/(N- + 2), so that the curve stays finite
    where the scores separate the classes.
    """
    centre, spread = _location(scores, weight)
    problem = _Curve(scores, positive, weight, centre, spread)
    start = np.array([1.0, problem.log_odds])
    a, b = newton(problem, start, tol=1e-10, max_iter=100).coef
    if not a >= _FLATTEST:  # the scores rank backwards: the best increasing curve is flat
        a, b = _FLATTEST, problem.log_odds
    slope = float(a) / spread
    return Link(slope, float(b) / slope - centre)


def _location(scores: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Mean and standard deviation of the scores; a spread of one where they are all equal."""
    largest = float(np.max(np.abs(scores), initial=0.0)) or 1.0
    share = None if weight is None else weight / np.sum(weight)
    mean = largest * float(np.average(scores / largest, weights=share))
    deviation = (scores - mean) / largest
    spread = largest * float(
        np.sqrt(np.average(np.square(deviation, out=deviation), weights=share))
    )
    return mean, spread if spread > 0 else 1.0


class _Curve:
    """The mean negative log-likelihood of the two-parameter curve, as a solver's problem."""

    size = 2
    alpha = 1e-300  # never zero: Platt's targets make the minimum finite
    scale = 1.0

    def __init__(
        self,
        scores: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None,
        centre: float,
        spread: float,
        totals: tuple[float, float] | None = None,
    ):
        self.scores, self.positive, self.weight = scores, positive, weight
        self.centre, self.spread = centre, spread
        if totals is None:
            count = np.ones(1) if weight is None else weight
            ones = np.broadcast_to(count, positive.shape)
            totals = (float(np.sum(ones, where=positive)), float(np.sum(ones, where=~positive)))
        self.totals = totals
        self.n_rows = len(scores)

    @property
    def source(self) -> _Curve:
        return self

    @property
    def log_odds(self) -> float:
        return float(np.log((self.totals[0] + 1.0) / (self.totals[1] + 1.0)))

    def _blocks(self) -> list[slice]:
        return [slice(s, s + _ROWS) for s in range(0, len(self.scores), _ROWS)]

    def _parts(self, rows: slice, coef: FloatArray) -> tuple[FloatArray, ...]:
        """(standardised scores, curve, target, weight) of a block of rows."""
        plus, minus = self.totals
        u = (self.scores[rows] - self.centre) / self.spread
        target = np.where(self.positive[rows], (plus + 1) / (plus + 2), 1 / (minus + 2))
        weight = np.ones(len(u)) if self.weight is None else self.weight[rows]
        return u, coef[0] * u + coef[1], target, weight

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        value, total, grad = 0.0, 0.0, np.zeros(2)
        for rows in self._blocks():
            u, z, target, weight = self._parts(rows, coef)
            value += float(weight @ (np.logaddexp(0.0, z) - target * z))
            miss = weight * (expit(z) - target)
            grad += (float(miss @ u), float(np.sum(miss)))
            total += float(np.sum(weight))
        return value / total, grad / total

    def hessian(self, coef: FloatArray) -> FloatArray:
        total, hessian = 0.0, np.zeros((2, 2))
        for rows in self._blocks():
            u, z, _, weight = self._parts(rows, coef)
            bend = weight * expit(z) * expit(-z)
            cross = float(bend @ u)
            hessian += [[float(bend @ u**2), cross], [cross, float(np.sum(bend))]]
            total += float(np.sum(weight))
        return hessian / total

    def coarse(self) -> _Curve | None:
        step = len(self.scores) // _SAMPLE
        if step < 4:
            return None
        weight = None if self.weight is None else self.weight[::step]
        thin = (self.scores[::step], self.positive[::step], weight, self.centre, self.spread)
        if weight is not None and not np.sum(weight) > 0:
            return None
        return _Curve(*thin, totals=self.totals)

    def separates(self, coef: FloatArray) -> bool:
        return False
