"""What a proper composite loss is: partial losses of a probability, behind a link.

A loss c(y, q) of a probability q is proper if the expected loss under y ~ eta is least at
q = eta. With a link v = psi(q) it becomes a loss of a score, l(y, v) = c(y, psi^-1(v)).

Conventions, stated once: labels are -1 and 1, or 0 and 1, or truth values; a product of a
probability zero and an infinite loss is zero; a score outside the prediction space is truncated
to it before it becomes a probability, while the loss itself goes on, convex where it can be.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray, floats, log_of


class ProperLoss:
    """A proper loss of a probability, with the identity as link unless a subclass has another.

    A subclass gives H, its derivatives and lambda; the partial losses follow from H by
    equations (31) and (32) of Agarwal (2012). One with a link of its own also overrides
    ``_link``, ``_inverse_link``, ``prediction_space`` and ``derivative``.
    """

    name: ClassVar[str] = "custom"
    #: lambda of Definition 7; zero if the loss is not strongly proper.
    strong_properness: float = 0.0
    #: The scores that the link takes values in.
    prediction_space: tuple[float, float] = (0.0, 1.0)
    #: Whether the loss is convex in the score, on the whole line.
    convex: bool = False
    #: Whether the loss never rises as the score moves towards the label's side.
    monotone: bool = True

    @property
    def has_curvature(self) -> bool:
        """Whether the second derivative in the score is available."""
        return False

    @property
    def has_risk_curvature(self) -> bool:
        """Whether the second derivative of H is available."""
        return type(self)._curvature is not ProperLoss._curvature

    def bayes_risk(self, eta: ArrayLike) -> FloatArray:
        """Return H(eta), the least expected loss when P(y = 1) = eta (equation 9)."""
        return self._bayes_risk(_probability(eta))

    def bayes_risk_slope(self, eta: ArrayLike) -> FloatArray:
        """Return H'(eta)."""
        with np.errstate(divide="ignore", over="ignore"):
            return self._slope(_probability(eta))

    def bayes_risk_curvature(self, eta: ArrayLike) -> FloatArray:
        """Return H''(eta), minus the weight function of the loss."""
        with np.errstate(divide="ignore", over="ignore"):
            return self._curvature(_probability(eta))

    def partial(self, y: ArrayLike, eta: ArrayLike) -> FloatArray:
        """Return c(y, eta), the loss of the probability eta when the label is y."""
        sign, q = np.broadcast_arrays(_signs(y), _probability(eta))
        with np.errstate(divide="ignore", over="ignore"):
            positive, negative = self._partials(q)
        return np.where(sign > 0, positive, negative)

    def plug_in_risk(self, eta: ArrayLike, estimate: ArrayLike) -> FloatArray:
        """Return L(eta, estimate), the expected loss of an estimate of eta."""
        p, q = _probability(eta), _probability(estimate)
        with np.errstate(divide="ignore", over="ignore"):
            positive, negative = self._partials(q)
        return times(p, positive) + times(1.0 - p, negative)

    def plug_in_regret(self, eta: ArrayLike, estimate: ArrayLike) -> FloatArray:
        """Return L(eta, estimate) - H(eta), at least (lambda/2) (eta - estimate)^2."""
        return np.maximum(self.plug_in_risk(eta, estimate) - self.bayes_risk(eta), 0.0)

    def link(self, eta: ArrayLike) -> FloatArray:
        """Return psi(eta), the score that stands for the probability eta."""
        with np.errstate(divide="ignore", over="ignore"):
            return self._link(_probability(eta))

    def inverse_link(self, v: ArrayLike) -> FloatArray:
        """Return the probability of a score, truncated to the prediction space."""
        with np.errstate(over="ignore"):
            return self._inverse_link(self.truncate(v))

    def probabilities(self, v: ArrayLike) -> FloatArray:
        """Return the probabilities of both labels, the negative one first, in two columns."""
        q = self.inverse_link(v)
        return np.stack([1.0 - q, q], axis=-1)

    def log_probabilities(self, v: ArrayLike) -> FloatArray:
        """Return the logarithms of `probabilities`; minus infinity for a probability zero."""
        return log_of(self.probabilities(v))

    def truncate(self, v: ArrayLike) -> FloatArray:
        """Return the score, or the nearest end of the prediction space (Example 3)."""
        return np.clip(_check_score(v), *self.prediction_space)

    def loss(self, y: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return l(y, v), the loss of the score v when the label is y."""
        return self._of_score(0, y, v)

    def slope(self, y: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return the derivative of l(y, v) in v."""
        return self._of_score(1, y, v)

    def curvature(self, y: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return the second derivative of l(y, v) in v."""
        return self._of_score(2, y, v)

    def conditional_risk(self, eta: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return L(eta, v), the expected loss of a score (equation 8)."""
        p = _probability(eta)
        return times(p, self.loss(1, v)) + times(1.0 - p, self.loss(-1, v))

    def conditional_regret(self, eta: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return R(eta, v) = L(eta, v) - H(eta) (equation 10)."""
        return np.maximum(self.conditional_risk(eta, v) - self.bayes_risk(eta), 0.0)

    def closed_canonical(self) -> ProperLoss | None:
        """Return the same c with its canonical link, where that has a closed form."""
        return None

    def derivative(self, order: int, sign: FloatArray, v: FloatArray) -> FloatArray:
        """Return the derivative in v of l(sign, v): 0 the loss, 1 its slope, 2 its curvature.

        Unlike the methods above it trusts its input: signs are -1.0 and 1.0.
        """
        low, high = self.prediction_space
        q = np.clip(v, low, high)
        if order == 0:
            return np.where(sign > 0, *self._partials(q))
        if order == 1:  # c'(1, q) = (1 - q) H''(q) and c'(-1, q) = -q H''(q)
            pull = np.where(sign > 0, 1.0 - q, -q)
            return np.where((v >= low) & (v <= high), times(pull, self._curvature(q)), 0.0)
        raise TypeError(f"{type(self).__name__} has no curvature in the score")

    def value_slope(self, sign: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `derivative` of orders 0 and 1; override it where they share work."""
        return self.derivative(0, sign, v), self.derivative(1, sign, v)

    def _of_score(self, order: int, y: ArrayLike, v: ArrayLike) -> FloatArray:
        sign, scores = np.broadcast_arrays(_signs(y), _check_score(v))
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return self.derivative(order, sign, scores)

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        raise TypeError(f"{type(self).__name__} must define _bayes_risk, the function H")

    def _slope(self, eta: FloatArray) -> FloatArray:
        raise TypeError(f"{type(self).__name__} must define _slope, the derivative of H")

    def _curvature(self, eta: FloatArray) -> FloatArray:
        raise TypeError(f"{type(self).__name__} has no second derivative of H")

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c(1, eta) and c(-1, eta), by equations (31) and (32)."""
        risk, slope = self._bayes_risk(eta), self._slope(eta)
        return risk + times(1.0 - eta, slope), risk - times(eta, slope)

    def _link(self, eta: FloatArray) -> FloatArray:
        return eta

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return v

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LinkedLoss(ProperLoss):
    """A proper loss c behind another link: H and the partial losses are those of c."""

    def __init__(self, c: ProperLoss):
        self.c = c
        self.strong_properness = c.strong_properness

    @property
    def has_risk_curvature(self) -> bool:
        return self.c.has_risk_curvature

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return self.c._bayes_risk(eta)

    def _slope(self, eta: FloatArray) -> FloatArray:
        return self.c._slope(eta)

    def _curvature(self, eta: FloatArray) -> FloatArray:
        return self.c._curvature(eta)

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.c._partials(eta)


def times(probability: FloatArray, value: FloatArray) -> FloatArray:
    """Return the product, zero where the probability is, whatever the value."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(probability == 0, 0.0, probability * value)


def _probability(eta: ArrayLike) -> FloatArray:
    array = np.asarray(eta, dtype=np.float64)
    if not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"A probability must lie in [0, 1]; got {_first_outside(array)!r}.")
    return array


def _first_outside(array: FloatArray) -> float:
    return float(array[~((array >= 0) & (array <= 1))].flat[0])


def _check_score(v: ArrayLike) -> FloatArray:
    array: FloatArray = floats(v)
    if np.any(np.isnan(array)):
        raise ValueError("A score is NaN; scores must be numbers, infinite ones included.")
    return array


def _signs(y: ArrayLike) -> FloatArray:
    labels = np.asarray(y)
    if labels.dtype.kind not in "biuf" or not np.all(np.isin(labels, (-1, 0, 1))):
        raise ValueError(f"Labels must be -1 and 1, or 0 and 1, or truth values; got {y!r}.")
    return np.where(labels > 0, 1.0, -1.0)
