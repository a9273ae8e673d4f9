"""The convex dual in the weights of pairs (Rudin 2009, Section 11): phi, B_phi and the projection.

For pairs with margins m, inner rows i and outer rows k, and the exponential loss,

    R(m) = sum_k g(S_k),   S_k = sum_i e^{-m_ik},   q_ik = -dR/dm_ik = g'(S_k) e^{-m_ik},

and phi is the convex conjugate of R as a function of -m. The paper takes g(S) = S^p / p, for which
B_phi(0, q) = R_p / p, and its phi differs from this one by a linear term, which no Bregman distance
sees. In its definition of gamma the sum over i', k' is one over i' alone, as in equation (11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw, xlogy

from toprank._numerics import FloatArray

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class _Conjugate:
    """A price g, its slope g', and the height S at which S g'(S) is a given Q."""

    value: Function
    slope: Function
    height: Function
    largest: float = np.inf  #: no outer row's weights add up to as much as this


def _power(p: float) -> _Conjugate:
    return _Conjugate(lambda s: s**p / p, lambda s: s ** (p - 1), lambda q: q ** (1 / p))


def _lambert(q: object) -> FloatArray:
    return np.real(lambertw(q))


_PRICES: dict[str, Callable[[float], _Conjugate]] = {
    "identity": lambda p: _power(1.0),
    "power": _power,
    "exponential": lambda p: _Conjugate(np.exp, np.exp, _lambert),
    "log1p": lambda p: _Conjugate(np.log1p, lambda s: 1 / (1 + s), lambda q: q / (1 - q), 1.0),
}


class PairEntropy:
    r"""The entropy of pair weights whose Bregman distance is the dual of the push (Theorem 4).

    .. math::
        \phi(q) = \sum_{ik} q_{ik} \ln \frac{q_{ik}}{g'(S_k)} - \sum_k g(S_k),
        \qquad S_k g'(S_k) = \sum_i q_{ik}

    Weights are arrays of shape (inner rows, outer rows): at the top of the list positives by
    negatives, and the other way round at the bottom and for the IR Push.

    Parameters
    ----------
    price : {"power", "identity", "exponential", "log1p"}
        The price g, "power" being :math:`S^p / p`. For "log1p", the IR Push, phi is the entropy of
        K + 1 categories per outer row, what is missing to a weight of one being the last of them.
        "max" has no slope, and so no phi.
    p : float, default=4.0
        The power of "power".

    Examples
    --------
    The minimiser of the push is the only point where the weights of its pairs balance every
    column, and the nearest to equal weights of all that do (Theorem 10):

    >>> import numpy as np
    >>> from toprank.objective import PairEntropy
    >>> entropy = PairEntropy("power", p=2.0)
    >>> q = entropy.weights(np.array([[0.5, -1.0], [2.0, 0.0]]))
    >>> bool(np.isclose(entropy.distance(np.zeros((2, 2)), q), entropy.risk(q)))
    True
    """

    def __init__(self, price: str = "power", p: float = 4.0):
        if price not in _PRICES:
            raise ValueError(
                f"price={price!r} has no entropy of pair weights: expected one of "
                f"{sorted(_PRICES)}."
            )
        if not (1 <= p < np.inf):
            raise ValueError(f"p={p!r}: expected a finite number, at least 1.")
        self.price, self.p = price, float(p)
        self._of = _PRICES[price](float(p))

    def _check(self, q: ArrayLike, name: str = "q") -> FloatArray:
        weights = np.asarray(q, dtype=np.float64)
        if weights.ndim != 2 or not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise ValueError(
                f"{name} must hold one finite weight, not negative, for each pair: an array of "
                "shape (inner rows, outer rows)."
            )
        if np.any(np.sum(weights, axis=0) >= self._of.largest):
            raise ValueError(
                f"{name} has columns that add up to {np.sum(weights, axis=0).max():g}; under the "
                f"price {self.price!r} the weights of an outer row add up to less than "
                f"{self._of.largest:g}."
            )
        return weights

    def weights(self, margins: ArrayLike) -> FloatArray:
        """Return the weights q of pairs with these margins: minus the slope of R in each."""
        loss = np.exp(-np.asarray(margins, dtype=np.float64))
        weights: FloatArray = loss * self._of.slope(np.sum(loss, axis=0))
        return weights

    def risk(self, q: ArrayLike) -> float:
        """Return R, for "power" R_p / p, at the margins that have the weights q."""
        return float(np.sum(self._of.value(self._heights(self._check(q)))))

    def _heights(self, q: FloatArray) -> FloatArray:
        heights: FloatArray = self._of.height(np.sum(q, axis=0))
        return heights

    def value(self, q: ArrayLike) -> float:
        """Return phi(q), where 0 ln 0 = 0."""
        q = self._check(q)
        heights = self._heights(q)
        slopes = np.where(heights > 0, self._of.slope(heights), 1.0)
        return float(np.sum(xlogy(q, q / slopes)) - np.sum(self._of.value(heights)))

    def gradient(self, q: ArrayLike) -> FloatArray:
        """Return the gradient of phi (equation 11), which is minus the margins; -inf at zero."""
        return self._gradient(self._check(q))

    def _gradient(self, q: FloatArray) -> FloatArray:
        heights = self._heights(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient: FloatArray = np.log(q) - np.log(self._of.slope(heights))
        return np.where(q > 0, gradient, -np.inf)

    def distance(self, first: ArrayLike, second: ArrayLike) -> float:
        """Return B_phi(first, second), zero where they agree.

        From no weights at all it is the risk: B_phi(0, q) = R (for "power" R_p / p), less R of
        margins that are all infinite.
        """
        first, second = self._check(first, "first"), self._check(second, "second")
        if np.any((second == 0) & (first > 0)):
            return np.inf
        slopes = np.where(second > 0, self._gradient(second), 0.0)
        along = float(np.sum(slopes * (first - second)))
        return max(0.0, self.value(first) - self.value(second) - along)

    def project(self, q: ArrayLike, v: ArrayLike) -> FloatArray:
        """Return the Legendre-Bregman projection L_phi(q, v) (equation 12).

        The weights of the same pairs when their margins have grown by -v.
        """
        q = self._check(q)
        slopes = self._of.slope(self._heights(q))
        loss = np.where(q > 0, q / np.where(slopes > 0, slopes, 1.0), 0.0) * np.exp(np.asarray(v))
        projected: FloatArray = loss * self._of.slope(np.sum(loss, axis=0))
        return projected
