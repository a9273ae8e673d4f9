"""From scores to probabilities: slope and offset of an increasing logistic curve.

Whatever the link, a decision value of zero is a probability of one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.solvers import newton

#: Rows per block, so that the temporaries stay small.
_ROWS = 1 << 16
#: Rows up to which the curve is fitted to every score; beyond, to narrow bins of them.
_EXACT_UP_TO = 20_000
_BIN = 1 / 256
_BINS = 4096
_LOCATION_ROWS = 10_000
#: The flattest curve, per standard deviation of the scores.
_FLATTEST = 1e-3


@dataclass(frozen=True)
class Link:
    """P(positive | score f) = sigmoid(slope (f + offset)), slope > 0."""

    slope: float
    offset: float


class Probabilities:
    """Classes and probabilities from scores that are zero at one half.

    For estimators with ``decision_function``, ``classes_`` and the slope of their link.
    """

    classes_: NDArray[Any]
    _slope: float

    def decision_function(self, X: Any) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the two classes, by the link."""
        scores = self.decision_function(X)
        z = self._slope * scores
        return np.column_stack([expit(-z), expit(z)])  # 1 - expit(z) would round to 0

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities of the two classes."""
        scores = self.decision_function(X)
        z = self._slope * scores
        return np.column_stack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)])


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
    curve = _Curve(*_condensed(scores, positive, weight, centre, spread))
    start = np.array([1.0, curve.log_odds])
    a, b = newton(curve, start, tol=1e-10, max_iter=100).coef
    if not a >= _FLATTEST:  # the scores rank backwards: the best increasing curve is flat
        a, b = _FLATTEST, curve.log_odds
    slope = float(a) / spread
    return Link(slope, float(b) / slope - centre)


def _location(scores: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """A centre and a spread of the scores, from evenly spaced rows that are present."""
    present = scores if weight is None else scores[weight > 0]
    sample = present[:: max(1, len(present) // _LOCATION_ROWS)]
    centre = float(np.median(sample))
    spread = float(np.sqrt(np.mean(((sample - centre) / _size(sample)) ** 2))) * _size(sample)
    return centre, spread if spread > 0 else _size(sample)


def _size(values: FloatArray) -> float:
    return float(np.max(np.abs(values), initial=0.0)) or 1.0


def _condensed(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weight: FloatArray | None,
    centre: float,
    spread: float,
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Return standardised scores, labels and weights, many rows gathered into narrow bins.

    A bin becomes one point of each class at its mean. The bins are ``_BIN`` standard
    deviations wide, so the curve notices at the seventh digit; scores beyond the bins are
    kept one by one.
    """
    if len(scores) <= _EXACT_UP_TO:
        ones = np.ones(len(scores)) if weight is None else weight
        return (scores - centre) / spread, positive, ones
    mass, moment = np.zeros(2 * _BINS), np.zeros(2 * _BINS)
    left_over = []
    for start in range(0, len(scores), _ROWS):
        rows = slice(start, start + _ROWS)
        u, label = (scores[rows] - centre) / spread, positive[rows]
        w = None if weight is None else weight[rows]
        outside = np.abs(u) >= _BIN * _BINS / 2
        if np.any(outside):
            ones = np.ones(len(u)) if w is None else w
            left_over.append((u[outside], label[outside], ones[outside]))
            u, label = u[~outside], label[~outside]
            w = None if w is None else w[~outside]
        place = (u / _BIN + _BINS / 2).astype(np.intp)
        place += _BINS * label
        mass += np.bincount(place, weights=w, minlength=2 * _BINS)
        moment += np.bincount(place, weights=u if w is None else w * u, minlength=2 * _BINS)
    used = np.flatnonzero(mass > 0)
    left_over.append((moment[used] / mass[used], used >= _BINS, mass[used]))
    u, label, w = (np.concatenate(parts) for parts in zip(*left_over, strict=True))
    return u, label, w


class _Curve:
    """The mean negative log-likelihood of the two-parameter curve, as a solver's problem."""

    size = 2
    alpha = penalty = 1e-300  # never zero: Platt's targets make the minimum finite
    scale = 1.0

    def __init__(self, u: FloatArray, positive: NDArray[np.bool_], weight: FloatArray):
        self.u = u
        self.total = float(np.sum(weight))
        plus = float(np.sum(weight, where=positive))
        minus = self.total - plus
        self.log_odds = float(np.log((plus + 1.0) / (minus + 1.0)))
        self.target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
        self.weight = weight / self.total

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        z = coef[0] * self.u + coef[1]
        value = float(self.weight @ (np.logaddexp(0.0, z) - self.target * z))
        miss = self.weight * (expit(z) - self.target)
        return value, np.array([float(miss @ self.u), float(np.sum(miss))])

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        z = coef[0] * self.u + coef[1]
        bend = self.weight * expit(z) * expit(-z)
        cross = float(bend @ self.u)
        return np.array([[float(bend @ self.u**2), cross], [cross, float(np.sum(bend))]])

    def coarse(self) -> None:
        return None

    def runs_away(self, coef: FloatArray) -> bool:
        return False
