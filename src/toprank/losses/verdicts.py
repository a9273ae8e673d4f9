r"""Is a loss regular, proper, strictly proper, calibrated? A verdict, and a witness against it.

The definitions of Agarwal (2012, Sections 2 and 3), looked at on grids of probabilities and
scores: a witness is a proof that the property fails; without one it holds wherever we looked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from toprank._numerics import FloatArray
from toprank.losses.composite import ProperLoss, times
from toprank.losses.margin import Loss

Partial = Callable[[int, FloatArray], FloatArray]

#: Probabilities that are tried: even in q, and ever closer to the ends.
_GRID = np.unique(
    np.concatenate([np.linspace(0.0, 1.0, 401), expit(np.linspace(-30.0, 30.0, 121))])
)
#: Scores that are tried: zero, and both signs from 1e-6 to 1e3.
_SCORES = np.geomspace(1e-6, 1e3, 800)
#: Losses below zero by this much, and differences of this share of a risk, are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LossVerdict:
    """Whether a property holds, and if not, where it fails.

    Parameters
    ----------
    holds : bool
        The verdict; a LossVerdict is true where it holds.
    statement : str
        The verdict in words.
    witness : tuple of float, or None
        Where it fails: a label and a probability, two probabilities, or a probability alone.
    """

    holds: bool
    statement: str
    witness: tuple[float, ...] | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.statement


def is_regular(c: ProperLoss | Partial) -> LossVerdict:
    """Whether c(y, q) is finite and not negative, but perhaps c(1, 0) and c(-1, 1) (Section 2.2).

    Parameters
    ----------
    c : ProperLoss or callable
        The loss, or its partial losses as a callable c(y, q) with y = 1 or -1 and an array q.

    Examples
    --------
    >>> from toprank.losses.proper import is_regular
    >>> bool(is_regular(lambda y, q: (q - (y > 0)) ** 2))
    True
    >>> print(is_regular(lambda y, q: q - 0.5))
    not regular: c(1, 0) = -0.5
    """
    for sign, free in ((1, 0.0), (-1, 1.0)):
        values = _partials(c, sign)
        wrong = ~(np.isfinite(values) & (values >= -_ROUNDING))
        wrong &= ~((free == _GRID) & (values == np.inf))
        if np.any(wrong):
            q, value = float(_GRID[wrong][0]), float(values[wrong][0])
            return LossVerdict(False, f"not regular: c({sign}, {q:.4g}) = {value:.4g}", (sign, q))
    return LossVerdict(True, "regular: finite and not negative, but perhaps at a certain mistake")


def is_proper(c: ProperLoss | Partial, *, strictly: bool = False) -> LossVerdict:
    r"""Whether the expected loss under P(y = 1) = eta is least at q = eta (Section 2.2).

    Parameters
    ----------
    c : ProperLoss or callable
        As in `is_regular`.
    strictly : bool, default=False
        Ask whether eta is the only minimiser.

    Returns
    -------
    LossVerdict
        Its witness is (eta, q): q does as well as eta, or better.

    Examples
    --------
    >>> from toprank.losses.proper import is_proper
    >>> print(is_proper(lambda y, q: (q - (y > 0)) ** 2, strictly=True))
    strictly proper: every probability is its own best estimate, and the only one
    >>> print(is_proper(lambda y, q: abs(q - (y > 0))))
    not proper: under P(y = 1) = 0.25 the expected loss of q = 0 is 0.25, of q = eta 0.375
    """
    eta = _GRID[:, None]
    positive, negative = _partials(c, 1), _partials(c, -1)
    own = times(_GRID, positive) + times(1.0 - _GRID, negative)
    with np.errstate(invalid="ignore"):
        risk = times(eta, positive[None, :]) + times(1.0 - eta, negative[None, :])
        slack = _ROUNDING * (1.0 + np.abs(own))[:, None]
        better = risk < own[:, None] - slack
        as_good = (risk <= own[:, None] + 1e-3 * slack) & (np.abs(eta - _GRID) > 1e-3)
    failing = better | as_good if strictly else better
    if not np.any(failing):
        words = "every probability is its own best estimate"
        if strictly:
            return LossVerdict(True, f"strictly proper: {words}, and the only one")
        return LossVerdict(True, f"proper: {words}")
    gain = np.where(failing, own[:, None] - risk, -np.inf)
    row, column = np.unravel_index(np.argmax(gain), gain.shape)
    at, q = float(_GRID[row]), float(_GRID[column])
    name = "not strictly proper" if strictly and not np.any(better) else "not proper"
    return LossVerdict(
        False,
        f"{name}: under P(y = 1) = {at:.4g} the expected loss of q = {q:.4g} is "
        f"{risk[row, column]:.4g}, of q = eta {own[row]:.4g}",
        (at, q),
    )


def is_calibrated(loss: Loss) -> LossVerdict:
    r"""Whether the best score has the sign of eta - 1/2, for every eta but 1/2 (equation 25).

    Classification calibration of a margin loss l(y v): what leads from its regret to that of the
    0-1 loss, and over pairs to the ranking regret (Theorem 5).

    Parameters
    ----------
    loss : Loss
        A loss of the margin, as `toprank.losses.get_loss` gives.

    Returns
    -------
    LossVerdict
        Its witness is (eta,): a score of the wrong sign, or zero, does as well as any.

    Examples
    --------
    >>> from toprank.losses import get_loss
    >>> from toprank.losses.proper import is_calibrated
    >>> bool(is_calibrated(get_loss("hinge")))
    True
    """
    wrong = np.concatenate([-_SCORES[::-1], [0.0]])
    with np.errstate(over="ignore"):
        right_losses = loss.value(_SCORES), loss.value(-_SCORES)
        wrong_losses = loss.value(wrong), loss.value(-wrong)
    for eta in _GRID[_GRID > 0.5]:
        best, worst = (
            float(np.min(times(np.full_like(of, eta), of) + times(np.full_like(of, 1 - eta), off)))
            for of, off in (right_losses, wrong_losses)
        )
        if not best < worst - _ROUNDING * (1.0 + abs(worst)):
            return LossVerdict(
                False,
                f"not calibrated: with P(y = 1) = {eta:.4g} a score of at most 0 costs "
                f"{worst:.4g}, no more than the best score above 0, {best:.4g}",
                (float(eta),),
            )
    return LossVerdict(True, "calibrated: the best score has the sign of eta - 1/2")


def _partials(c: ProperLoss | Partial, sign: int) -> FloatArray:
    """Return c(sign, q) on the grid."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if isinstance(c, ProperLoss):
            return c.partial(sign, _GRID)
        values = np.asarray(c(sign, _GRID), dtype=np.float64)
    if values.shape != _GRID.shape:
        raise ValueError(
            f"c({sign}, q) gave an array of shape {values.shape} for {_GRID.shape} probabilities: "
            "expected one loss per probability."
        )
    return values
