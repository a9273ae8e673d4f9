r"""Losses by their links: the proper loss whose canonical link is given, and any loss behind any.

A link is a strictly increasing function psi from probabilities to scores. H' = -psi gives the loss
whose canonical link it is (Agarwal 2012, Section 5.2); and a proper loss c stays proper behind any
link, l(y, v) = c(y, psi^-1(v)) (Section 2.2), though it need not be convex there.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from toprank._numerics import ArrayMap, FloatArray
from toprank.losses.composite import LinkedLoss, ProperLoss, times
from toprank.losses.construct import canonical, from_bayes_risk

#: Log-odds between which a link is integrated, and the points within a cell.
_CELLS = np.linspace(-36.0, 36.0, 289)
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def from_link(link: ArrayMap, slope: ArrayMap | None = None) -> ProperLoss:
    r"""Build the proper loss whose canonical link is given: H' = -psi.

    H(q) is the integral of -psi from 0, raised so that neither H(0) nor H(1) is negative. The
    composite loss is convex in the score, with slope q - 1 for a positive and q for a negative.

    Parameters
    ----------
    link : callable
        psi, strictly increasing on [0, 1], elementwise on arrays; at 0 and 1 it may be infinite,
        but its integral must be finite.
    slope : callable, optional
        psi', which Newton's method needs.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import logit
    >>> from toprank.losses.proper import Logistic, from_link
    >>> own = from_link(logit)
    >>> bool(np.allclose(own.loss(1, [-2.0, 0.0, 3.0]), Logistic().loss(1, [-2.0, 0.0, 3.0])))
    True
    """
    integral = _Integral(link)
    start = max(0.0, float(integral(np.ones(1))[0]))
    if not np.isfinite(start):
        raise ValueError(
            "The integral of the link from 0 to 1 is not finite, so that no regular loss has it: "
            "give a link that grows more slowly towards 0 and 1."
        )
    curvature = None if slope is None else (lambda q: -np.asarray(slope(q)))
    return canonical(
        from_bayes_risk(lambda q: start - integral(q), lambda q: -np.asarray(link(q)), curvature)
    )


class _Integral:
    """The integral of a function of a probability from 0, by Gauss points in the log-odds."""

    def __init__(self, function: ArrayMap):
        self._function = function
        cells = self._over(_CELLS[:-1], _CELLS[1:])
        self._to_start = np.concatenate([[0.0], np.cumsum(cells)])

    def _over(self, low: FloatArray, high: FloatArray) -> FloatArray:
        half = 0.5 * (high - low)
        odds = 0.5 * (high + low)[..., None] + half[..., None] * _POINTS
        q = expit(odds)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(self._function(q), dtype=np.float64) * q * expit(-odds)
        total: FloatArray = half * (values @ _WEIGHTS)
        return total

    def __call__(self, q: FloatArray) -> FloatArray:
        odds = np.clip(logit(np.asarray(q, dtype=np.float64)), _CELLS[0], _CELLS[-1])
        cell = np.clip(np.searchsorted(_CELLS, odds, side="right") - 1, 0, len(_CELLS) - 2)
        within: FloatArray = self._to_start[cell] + self._over(_CELLS[cell], odds)
        return within


def with_link(
    c: ProperLoss, link: ArrayMap, inverse: ArrayMap, inverse_slope: ArrayMap | None = None
) -> ProperLoss:
    r"""Put a proper loss behind a link of your own: l(y, v) = c(y, psi^-1(v)).

    Parameters
    ----------
    c : ProperLoss
        The loss, whose own link is dropped.
    link, inverse : callable
        psi and its inverse, elementwise on arrays; strictly increasing.
    inverse_slope : callable, optional
        The derivative of the inverse in v, for the slope of the loss; needs H'' of c too.

    Returns
    -------
    ProperLoss
        With the properness of c. ``convex`` is False: it is not looked at.

    Examples
    --------
    The squared loss behind a logistic link is the Brier score of a probability.

    >>> from scipy.special import expit, logit
    >>> from toprank.losses.proper import CanonicalSquared, with_link
    >>> brier = with_link(CanonicalSquared(), logit, expit, lambda v: expit(v) * expit(-v))
    >>> float(brier.loss(1, 0.0)), float(brier.inverse_link(0.0))
    (0.25, 0.5)
    """
    linked = _Linked(c, link, inverse, inverse_slope)
    q = np.linspace(0.001, 0.999, 999)
    v = np.asarray(link(q), dtype=np.float64)
    if not (np.all(np.diff(v) > 0) and np.allclose(np.asarray(inverse(v)), q, atol=1e-9)):
        raise ValueError(
            "link must be strictly increasing on (0, 1), and inverse its inverse: they do not "
            "lead back to the probabilities they started from."
        )
    return linked


class _Linked(LinkedLoss):
    """A proper loss behind a link given by callables."""

    def __init__(
        self, c: ProperLoss, link: ArrayMap, inverse: ArrayMap, inverse_slope: ArrayMap | None
    ):
        super().__init__(c)
        self._functions = (link, inverse, inverse_slope)
        with np.errstate(divide="ignore"):
            low, high = np.asarray(link(np.array([0.0, 1.0])), dtype=np.float64)
        self.prediction_space = (float(low), float(high))

    def _link(self, eta: FloatArray) -> FloatArray:
        return np.asarray(self._functions[0](eta), dtype=np.float64)

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        return np.clip(np.asarray(self._functions[1](v), dtype=np.float64), 0.0, 1.0)

    def derivative(self, order: int, sign: FloatArray, v: FloatArray) -> FloatArray:
        low, high = self.prediction_space
        q = self._inverse_link(np.clip(v, low, high))
        if order == 0:
            return np.where(sign > 0, *self._partials(q))
        if order == 1 and self._functions[2] is not None:
            pull = times(np.where(sign > 0, 1.0 - q, -q), self._curvature(q))
            steep = np.asarray(self._functions[2](np.clip(v, low, high)), dtype=np.float64)
            return np.where((v >= low) & (v <= high), pull * steep, 0.0)
        what = "slope: give inverse_slope" if order == 1 else "curvature"
        raise TypeError(f"{self!r} has no {what}")

    def __repr__(self) -> str:
        return f"with_link({self.c!r})"
