r"""From the excess of a convex risk to that of the ranking risk (Clémençon, Lugosi & Vayatis 2006).

The psi-transform of Bartlett, Jordan & McAuliffe leads from a convex risk to the ranking risk. For
a margin loss l and the probability rho that the pair's first row is the better one,

.. math:: H(\rho) = \inf_\alpha \rho\,\ell(\alpha) + (1 - \rho)\,\ell(-\alpha), \qquad
    \psi(x) = H^-\left(\tfrac{1+x}2\right) - H\left(\tfrac{1+x}2\right)

where :math:`H^-` is the infimum over alpha of the wrong sign, l(0) for a convex loss. (The psi
printed in Section 7 of the report has :math:`H^-` twice.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toprank.bounds.bound import Bound, at_least, smallest_solution
from toprank.losses import LOSSES, Loss, get_loss


def _exponential(x: float) -> float:
    """Return 1 - sqrt(1 - x^2), without the cancellation at small x."""
    return x * x / (1.0 + math.sqrt((1.0 - x) * (1.0 + x)))


def _logistic(x: float) -> float:
    """Return ln 2 minus the entropy of (1 + x)/2."""
    if x == 1.0:
        return math.log(2.0)
    if x < 1e-4:
        return x * x / 2.0 * (1.0 + x * x / 6.0)
    return ((1.0 + x) * math.log1p(x) + (1.0 - x) * math.log1p(-x)) / 2.0


#: psi in closed form; every other convex loss is minimised numerically.
_CLOSED: dict[str, Callable[[float], float]] = {
    "exponential": _exponential,
    "logistic": _logistic,
    "hinge": lambda x: x,
    "squared_hinge": lambda x: x * x,
}


def psi_transform(loss: str | Loss, x: float) -> float:
    r"""The psi-transform of a margin loss: excess of convex risk that an excess of x must cost.

    =============  =======================================================
    loss           :math:`\psi(x)`, for x from 0 to 1
    =============  =======================================================
    exponential    :math:`1 - \sqrt{1 - x^2}`
    logistic       :math:`\frac{1+x}2 \ln(1+x) + \frac{1-x}2 \ln(1-x)`
    hinge          x
    squared_hinge  :math:`x^2`
    your own       l(0) - H((1 + x)/2), minimised numerically
    =============  =======================================================

    Parameters
    ----------
    loss : str or toprank.losses.Loss
        A convex margin loss that falls at 0.
    x : float
        Excess of the ranking risk, from 0 to 1.

    Returns
    -------
    float
        :math:`\psi(x)`.

    Examples
    --------
    >>> from toprank.bounds import psi_transform
    >>> round(psi_transform("exponential", 0.6), 10)
    0.2
    """
    return _transform(get_loss(loss))(at_least("x", x, 0.0, 1.0))


def ranking_risk_from_convex(*, loss: str | Loss, excess: float) -> Bound:
    r"""Excess ranking risk of any f from its excess convex risk.

    .. math:: L(f) - L^* \le \psi^{-1}(A(f) - A^*)

    (Clémençon, Lugosi & Vayatis 2006, Section 7, after Bartlett, Jordan & McAuliffe 2006,
    Theorem 3.)

    Parameters
    ----------
    loss : str or toprank.losses.Loss
        A convex margin loss that falls at 0.
    excess : float
        A(f) - A*, the convex risk of f over pairs minus the smallest possible one.

    Returns
    -------
    Bound
        ``value`` bounds L(f) - L*, at most 1; vacuous from 1 on.

    Examples
    --------
    >>> from toprank.bounds import ranking_risk_from_convex
    >>> round(ranking_risk_from_convex(loss="exponential", excess=0.2).value, 10)
    0.6
    """
    margin_loss = get_loss(loss)
    psi, excess = _transform(margin_loss), at_least("excess", excess)
    vacuous = excess >= psi(1.0)
    value = 1.0 if vacuous else _invert(psi, excess)
    statement = f"L(f) - L* <= {value:.4g}, from an excess {margin_loss.name} risk of {excess:.4g}"
    if vacuous:
        statement += "; this says nothing, because no risk exceeds 1"
    assumes = (
        "A* is the smallest convex risk of all functions of pairs, not of a class",
        "the loss is convex, and its slope at 0 is negative",
    )
    return Bound(value, vacuous, statement, assumes)


def _transform(loss: Loss) -> Callable[[float], float]:
    if type(loss) is LOSSES.get(loss.name) and loss.name in _CLOSED:
        return _CLOSED[loss.name]
    if not (loss.trainable and float(loss.slope(np.zeros(1))[0]) < 0.0):
        raise ValueError(
            f"loss={loss!r} does not fall at 0, so its minimiser need not rank: expected a convex "
            "loss with a negative slope at 0."
        )
    return lambda x: _minimise(loss, x)


def _minimise(loss: Loss, x: float) -> float:
    """Return l(0) - inf over alpha > 0 of (1+x)/2 l(alpha) + (1-x)/2 l(-alpha)."""
    toward, away = (1.0 + x) / 2.0, (1.0 - x) / 2.0

    def rises(alpha: float) -> bool:
        with np.errstate(over="ignore"):
            forward, backward = loss.slope(np.array([alpha, -alpha]))
        # at x = 1 the wrong side does not count, even where its loss is infinite
        return bool(toward * forward - (away * backward if away else 0.0) >= 0.0)

    alpha = smallest_solution(lambda a: a >= 1e6 or rises(a))
    with np.errstate(over="ignore"):
        value = loss.value(np.array([0.0, alpha, -alpha]))
    infimum = toward * value[1] + (away * value[2] if away else 0.0)
    return max(0.0, float(value[0] - infimum))


def _invert(psi: Callable[[float], float], excess: float) -> float:
    """Return the x in [0, 1] with psi(x) = excess, rounded up; psi is convex and rises from 0."""
    if excess == 0.0:
        return 0.0
    return min(1.0, smallest_solution(lambda x: x >= 1.0 or psi(x) >= excess))
