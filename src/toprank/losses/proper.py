r"""Strongly proper composite losses (Agarwal 2012, Table 1).

A proper loss c(y, q) of a probability q is lambda-strongly proper (Definition 7) if

.. math::
    L(\eta, q) - H(\eta) \ge \tfrac{\lambda}{2} (\eta - q)^2

for all probabilities, and then bounds the ranking regret of the scores that minimise it
(`toprank.bounds.ranking_regret`). lambda is the least value of -H'' (Theorem 10):

====================  ============  ======================  ====================  ======
loss                  scores        l(y, v)                 link                  lambda
====================  ============  ======================  ====================  ======
Exponential           real line     e^(-yv)                 (1/2) ln(q/(1-q))     4
Logistic              real line     ln(1 + e^(-yv))         ln(q/(1-q))           4
Squared               [-1, 1]       (1 - yv)^2              2q - 1                8
SquaredHinge          [-1, 1]       ((1 - yv)+)^2           2q - 1                8
Spherical             [0, 1]        c(y, v)                 q                     1
CanonicalExponential  real line     sqrt(1 + v²/4) - yv/2   (2q-1)/sqrt(q(1-q))   4
CanonicalSquared      [-1, 1]       (1 - yv)^2 / 4          2q - 1                2
CanonicalSpherical    [-1, 1]       1 - (sqrt(2-v²)+yv)/2   (2q-1)/s(q)           1
====================  ============  ======================  ====================  ======

with s(q) = sqrt(q² + (1-q)²). Two slips of the paper are settled here by Definition 7: its Example
6 calls the squared loss 4-strongly proper, as does its last line the canonical squared loss; L - H
is 4 (eta - q)^2 and (eta - q)^2, so that lambda is 8 and 2, as its Table 1 says.

Beyond a bounded prediction space the losses go on convexly to the whole line: the squared ones by
the same parabola (SquaredHinge: by zero), the canonical spherical one by straight lines. The
spherical loss with the identity link is not convex; `canonical` gives it a link with which it is.

>>> from toprank.losses.proper import Logistic, canonical, from_bayes_risk
>>> loss = Logistic()
>>> float(loss.inverse_link(0.0)), float(loss.bayes_risk(0.5)), loss.strong_properness
(0.5, 0.6931471805599453, 4.0)
>>> own = canonical(from_bayes_risk(lambda q: 4 * q * (1 - q), lambda q: 4 - 8 * q))
>>> own.prediction_space, round(own.strong_properness, 6)
((-4.0, 4.0), 8.0)
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit, logit

from toprank._numerics import FloatArray, floats
from toprank.losses import margin
from toprank.losses.composite import ProperLoss
from toprank.losses.construct import balanced, canonical, from_bayes_risk
from toprank.losses.links import from_link, with_link
from toprank.losses.verdicts import LossVerdict, is_calibrated, is_proper, is_regular

__all__ = [
    "PROPER_LOSSES",
    "CanonicalExponential",
    "CanonicalSpherical",
    "CanonicalSquared",
    "Exponential",
    "Logistic",
    "LossVerdict",
    "ProperLoss",
    "Spherical",
    "Squared",
    "SquaredHinge",
    "balanced",
    "canonical",
    "from_bayes_risk",
    "from_link",
    "get_proper_loss",
    "is_calibrated",
    "is_proper",
    "is_regular",
    "with_link",
]

#: Scores beyond this are as good as infinite, whose quotients are not numbers.
_LARGEST = 1e200


class _MarginLoss(ProperLoss, ABC):
    """A composite loss that depends on y v alone: l(y, v) = phi(y v)."""

    prediction_space = (-np.inf, np.inf)
    convex = True

    @property
    def has_curvature(self) -> bool:
        return True

    def probabilities(self, v: ArrayLike) -> FloatArray:
        scores = floats(v)  # 1 - inverse_link(v) would round to 0
        return np.stack([self.inverse_link(-scores), self.inverse_link(scores)], axis=-1)

    def derivative(self, order: int, sign: FloatArray, v: FloatArray) -> FloatArray:
        phi = self._phi(order, sign * v)
        return sign * phi if order == 1 else phi

    @abstractmethod
    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        """Return phi, or one of its first two derivatives."""


class Exponential(_MarginLoss):
    """l(y, v) = e^(-yv) with the link (1/2) ln(q/(1-q)); H = 2 sqrt(eta (1-eta)) (Example 1)."""

    name = "exponential"
    strong_properness = 4.0

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return 2.0 * np.sqrt(eta * (1.0 - eta))

    def _slope(self, eta: FloatArray) -> FloatArray:
        return (1.0 - 2.0 * eta) / np.sqrt(eta * (1.0 - eta))

    def _curvature(self, eta: FloatArray) -> FloatArray:
        return -0.5 / (eta * (1.0 - eta)) ** 1.5

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        root, other = np.sqrt(eta), np.sqrt(1.0 - eta)
        return other / root, root / other

    def _link(self, eta: FloatArray) -> FloatArray:
        return 0.5 * logit(eta)

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return expit(2.0 * v)

    def log_probabilities(self, v: ArrayLike) -> FloatArray:
        with np.errstate(over="ignore"):
            return _log_sigmoids(2.0 * floats(v))

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        return margin.Exponential().derivative(order, r)

    def closed_canonical(self) -> ProperLoss:
        return CanonicalExponential()


class Logistic(_MarginLoss):
    """l(y, v) = ln(1 + e^(-yv)) with its canonical link ln(q/(1-q)); H is the entropy (Example 2).

    Minimising it is logistic regression.
    """

    name = "logistic"
    strong_properness = 4.0

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return entr(eta) + entr(1.0 - eta)

    def _slope(self, eta: FloatArray) -> FloatArray:
        return -logit(eta)

    def _curvature(self, eta: FloatArray) -> FloatArray:
        return -1.0 / (eta * (1.0 - eta))

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.log(eta), -np.log1p(-eta)

    def _link(self, eta: FloatArray) -> FloatArray:
        return logit(eta)

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return expit(v)

    def log_probabilities(self, v: ArrayLike) -> FloatArray:
        return _log_sigmoids(floats(v))

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        return margin.Logistic().derivative(order, r)

    def closed_canonical(self) -> ProperLoss:
        return self


class Squared(_MarginLoss):
    """l(y, v) = (1 - yv)^2 with the link 2q - 1; H = 4 eta (1-eta) (Example 3).

    Minimising it is least squares on labels -1 and 1: Fisher's linear discriminant.
    """

    name = "squared"
    strong_properness = 8.0
    prediction_space = (-1.0, 1.0)
    monotone = False
    #: H at one half.
    _size = 1.0

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return 4.0 * self._size * eta * (1.0 - eta)

    def _slope(self, eta: FloatArray) -> FloatArray:
        return 4.0 * self._size * (1.0 - 2.0 * eta)

    def _curvature(self, eta: FloatArray) -> FloatArray:
        return np.full_like(eta, -8.0 * self._size)

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 4.0 * self._size * (1.0 - eta) ** 2, 4.0 * self._size * eta**2

    def _link(self, eta: FloatArray) -> FloatArray:
        return 2.0 * eta - 1.0

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return 0.5 * (1.0 + v)

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        if order == 0:
            return self._size * (1.0 - r) ** 2
        return self._size * (-2.0 * (1.0 - r) if order == 1 else np.full_like(r, 2.0))


class SquaredHinge(Squared):
    """The squared loss that stays zero beyond a margin of one (Example 3)."""

    name = "squared_hinge"
    monotone = True

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        gap = np.maximum(1.0 - r, 0.0)  # scores may be infinite here, unlike margins of pairs
        if order == 0:
            return gap**2
        return -2.0 * gap if order == 1 else np.where(gap > 0, 2.0, 0.0)


class CanonicalSquared(Squared):
    """l(y, v) = (1 - yv)^2 / 4, whose canonical link is 2q - 1 (Example 6)."""

    name = "canonical_squared"
    strong_properness = 2.0
    _size = 0.25

    def closed_canonical(self) -> ProperLoss:
        return self


class Spherical(ProperLoss):
    """The spherical loss c(y, q) with the identity as link; H = 1 - s(eta) (Example 4).

    It is not convex in q, not even on [0, 1]: see `CanonicalSpherical`.
    """

    name = "spherical"
    strong_properness = 1.0

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return 2.0 * eta * (1.0 - eta) / (1.0 + np.hypot(eta, 1.0 - eta))

    def _slope(self, eta: FloatArray) -> FloatArray:
        return (1.0 - 2.0 * eta) / np.hypot(eta, 1.0 - eta)

    def _curvature(self, eta: FloatArray) -> FloatArray:
        return -(np.hypot(eta, 1.0 - eta) ** -3.0)

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = np.hypot(eta, 1.0 - eta)  # 1 - eta/s without the cancellation near eta = 1
        return (1.0 - eta) ** 2 / (s * (s + eta)), eta**2 / (s * (s + 1.0 - eta))

    def closed_canonical(self) -> ProperLoss:
        return CanonicalSpherical()


class CanonicalExponential(Exponential):
    """l(y, v) = sqrt(1 + v²/4) - yv/2: the exponential c with its canonical link (Example 5)."""

    name = "canonical_exponential"
    log_probabilities = ProperLoss.log_probabilities

    def _link(self, eta: FloatArray) -> FloatArray:
        return (2.0 * eta - 1.0) / np.sqrt(eta * (1.0 - eta))

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return -self._phi(1, -v)

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        if order == 0:
            return _root_less_half(r)
        r = np.clip(r, -_LARGEST, _LARGEST)
        height = np.hypot(1.0, 0.5 * r)
        return -0.5 * _root_less_half(r) / height if order == 1 else 0.25 * height**-3.0


class CanonicalSpherical(Spherical):
    """l(y, v) = 1 - (sqrt(2 - v²) + yv)/2: the spherical c with its canonical link (Example 7).

    Beyond [-1, 1] it goes on along its tangents: 0 for yv > 1, and -yv for yv < -1.
    """

    name = "canonical_spherical"
    prediction_space = (-1.0, 1.0)
    convex = True
    has_curvature = True
    derivative = _MarginLoss.derivative
    probabilities = _MarginLoss.probabilities

    def _link(self, eta: FloatArray) -> FloatArray:
        return (2.0 * eta - 1.0) / np.hypot(eta, 1.0 - eta)

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return 0.5 * (1.0 + v / np.sqrt(2.0 - v * v))

    def _phi(self, order: int, r: FloatArray) -> FloatArray:
        t = np.clip(r, -1.0, 1.0)
        root = np.sqrt(2.0 - t * t)
        if order == 0:
            return 1.0 - 0.5 * (root + t) + np.maximum(-1.0 - r, 0.0)
        if order == 1:
            return 0.5 * (t / root - 1.0)
        return np.where(t == r, root**-3.0, 0.0)


def _root_less_half(r: FloatArray) -> FloatArray:
    """sqrt(1 + r²/4) - r/2, without the cancellation where r is large."""
    above = np.hypot(1.0, 0.5 * r) + 0.5 * np.abs(r)
    return np.where(r > 0, 1.0 / above, above)


def _log_sigmoids(z: FloatArray) -> FloatArray:
    """The logarithms of sigmoid(-z) and sigmoid(z), which do not underflow."""
    return -np.stack([np.logaddexp(0.0, z), np.logaddexp(0.0, -z)], axis=-1)


PROPER_LOSSES: dict[str, type[ProperLoss]] = {
    cls.name: cls
    for cls in (
        Exponential,
        Logistic,
        Squared,
        SquaredHinge,
        Spherical,
        CanonicalExponential,
        CanonicalSquared,
        CanonicalSpherical,
    )
}


def get_proper_loss(loss: str | ProperLoss) -> ProperLoss:
    """Return the loss for a name or a :class:`ProperLoss`."""
    if isinstance(loss, ProperLoss):
        return loss
    if isinstance(loss, str) and loss in PROPER_LOSSES:
        return PROPER_LOSSES[loss]()
    raise ValueError(
        f"Unknown proper loss {loss!r}: expected one of {sorted(PROPER_LOSSES)} or a "
        "toprank.losses.proper.ProperLoss."
    )
