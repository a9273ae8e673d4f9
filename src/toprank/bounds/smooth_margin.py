r"""How far one step of smooth margin ranking gets (Rudin & Schapire 2009, Section 7).

The edge r, the smooth margin g before the step and the weight d0 of the pairs that the weak ranker
leaves alone say all: d+ = (1 + r - d0)/2, d- = (1 - r - d0)/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray

#: Share of r within which g is too near to it for B to be computed.
_NEAREST = 1e-4


def smooth_margin_step(r: ArrayLike, g: ArrayLike, d0: ArrayLike) -> FloatArray:
    r"""The step alpha of smooth margin ranking (equation 12), where g tau = -tau' (equation 11).

    .. math::
        \alpha = \ln \frac{2 (1 - g)\, d_+}{g d_0 + \sqrt{g^2 d_0^2 + 4 (1 - g^2)\, d_+ d_-}}

    which is (12) in a form that is stable where d- is small.

    Parameters
    ----------
    r, g, d0 : float or arrays that broadcast
        Edge, smooth margin, and the weight of the pairs left alone: 0 <= g <= r < 1 - d0.

    Examples
    --------
    >>> from toprank.bounds import smooth_margin_step
    >>> round(float(smooth_margin_step(0.5, 0.0, 0.0)), 6)  # the step of RankBoost, ln(3)/2
    0.549306
    """
    edge, margin, idle, _ = _check(r, g, d0)
    return _step(edge, margin, idle)


def _step(r: FloatArray, g: FloatArray | float, d0: FloatArray) -> FloatArray:
    plus, minus = (1 + r - d0) / 2, (1 - r - d0) / 2
    root = np.sqrt((g * d0) ** 2 + 4 * (1 - g * g) * plus * minus)
    step: FloatArray = np.log(2 * (1 - g) * plus / (g * d0 + root))
    return step


def smooth_margin_progress(r: ArrayLike, g: ArrayLike, d0: ArrayLike) -> FloatArray:
    r"""B(r, g, d0), the share of r - g that a step gains per unit of its length (Lemma 20).

    .. math::
        B = \frac{\Gamma - g}{r - g}, \qquad \Gamma = \frac{-\ln \tau}{\alpha}, \qquad
        \tau = d_+ e^{-\alpha} + d_- e^{\alpha} + d_0

    By equation (9) the smooth margin grows by B alpha (r - g) / s, s the norm after the step. Lemma
    20 says that B > 1/2 wherever d0 < (2/3)(1 - r)(1 - r^2), which is Theorem 7; Figure 2 of the
    paper shows B at d0 = 0.01. As g -> r it tends to 1/2.

    Parameters
    ----------
    r, g, d0 : float or arrays that broadcast
        As in `smooth_margin_step`, with g < r.

    Returns
    -------
    array
        B; NaN where the arguments are no possible round.

    Examples
    --------
    >>> from toprank.bounds import smooth_margin_progress
    >>> bool(smooth_margin_progress(0.5, 0.2, 0.01) > 0.5)
    True
    """
    edge, margin, idle, possible = _check(r, g, d0)
    possible &= margin < edge
    edge, margin = np.where(possible, edge, 0.5), np.where(possible, margin, 0.1)
    idle = np.where(possible, idle, 0.0)
    # nearer to r than this the digits cancel: from 1/2, the limit, B is a line
    nearest = np.minimum(margin, edge * (1.0 - _NEAREST))
    alpha = _step(edge, nearest, idle)
    plus, minus = (1 + edge - idle) / 2, (1 - edge - idle) / 2
    # tau - 1 to the last digit, so that nothing cancels where the step is short
    gain = -np.log1p(plus * np.expm1(-alpha) + minus * np.expm1(alpha))
    above_half: FloatArray = (gain / alpha - nearest) / (edge - nearest) - 0.5
    progress = 0.5 + above_half * (edge - margin) / (edge - nearest)
    return np.where(possible, progress, np.nan)


def _check(
    r: ArrayLike, g: object, d0: object
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray | bool]:
    r, g, d0 = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (r, g, d0)))
    possible = (0 <= g) & (g <= r) & (r < 1) & (d0 >= 0) & (r + d0 < 1)
    if not np.any(possible):
        raise ValueError(
            "No round has such numbers: expected 0 <= g <= r < 1 and 0 <= d0 < 1 - r, the weights "
            "of the pairs ranked rightly and wrongly being (1 + r - d0)/2 and (1 - r - d0)/2."
        )
    return r, g, d0, possible
