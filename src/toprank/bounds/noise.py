r"""When fast rates hold: the noise conditions of Clémençon, Lugosi & Vayatis (2006, Section 5).

Fast rates need that the variance of a ranker's projection is small where its excess risk is:
Assumption 4, :math:`\mathrm{Var}(h_r) \le c\,\Lambda(r)^\alpha` for every ranker r of the class.
It follows from a condition on the distribution alone, (2) for two classes and (4) for real labels.
Each is looked at here on a population that is known, or on a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from toprank._numerics import FloatArray
from toprank.bounds.bound import above, at_least

#: Rows whose distances to all rows are held at once.
_ROWS = 1024
#: Multiples of the unit at which a distribution function is bounded from below by a chord.
_CHORDS = np.geomspace(1e-3, 1e2, 501)


@dataclass(frozen=True)
class NoiseCondition:
    r"""The constant of a noise condition, :math:`\sup_x E\,D(x, X')^{-\alpha}`.

    Parameters
    ----------
    alpha : float
        The exponent, from 0 to 1.
    constant : float
        c: the largest mean over the rows; infinite where rows of positive probability are alike.
    worst : int
        The row x at which it is reached.
    """

    alpha: float
    constant: float
    worst: int

    def __str__(self) -> str:
        if math.isinf(self.constant):
            return (
                f"the noise condition fails for alpha = {self.alpha:g}: rows like row {self.worst} "
                "have positive probability, so that pairs of them cannot be told apart"
            )
        return (
            f"the noise condition holds for alpha = {self.alpha:g} with c = {self.constant:.4g}, "
            f"reached at row {self.worst}"
        )


def noise_condition(
    eta: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    atoms: bool = False,
) -> NoiseCondition:
    r"""The constant of condition (2): the largest mean of :math:`|\eta(x) - \eta(X')|^{-\alpha}`.

    Parameters
    ----------
    eta : array-like of shape (n,)
        P(Y = 1 | X = x), one number per row.
    alpha : float
        From 0 to 1. With 0 the condition always holds, with c = 1.
    sample_weight : array-like of shape (n,), optional
        Probabilities of the rows, up to a factor.
    atoms : bool, default=False
        True if the rows are the whole population, so that X' may be the row x itself: then the
        condition fails for every alpha > 0. False takes them for a sample of a continuous
        distribution, and leaves each row out of its own mean: an estimate, from below where
        density lies between the rows.

    Returns
    -------
    NoiseCondition

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.bounds import noise_condition
    >>> eta = (np.arange(1000) + 0.5) / 1000  # uniform: at most 2 / (1 - alpha) by Corollary 8
    >>> round(noise_condition(eta, 0.5).constant, 2)
    2.74
    >>> print(noise_condition([0.2, 0.8], 0.5, atoms=True).constant)
    inf
    """
    values = _one_value_per_row("eta", eta)
    if np.any((values < 0) | (values > 1)):
        raise ValueError("eta must hold probabilities in [0, 1]; it has other values.")
    return _largest_mean(values, None, alpha, sample_weight, atoms)


def regression_noise_condition(
    m: ArrayLike,
    sigma: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    atoms: bool = False,
) -> NoiseCondition:
    r"""The constant of condition (4), for real labels Y = m(X) + sigma(X) epsilon.

    The largest mean of :math:`|\Delta(x, X')|^{-\alpha}`,
    :math:`\Delta(x, x') = (m(x) - m(x')) / \sqrt{\sigma^2(x) + \sigma^2(x')}`.

    Parameters
    ----------
    m, sigma : array-like of shape (n,)
        The regression function and the standard deviation of the noise, one number per row.
    alpha, sample_weight, atoms
        As in `noise_condition`.

    Returns
    -------
    NoiseCondition

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.bounds import regression_noise_condition
    >>> m = np.linspace(0, 1, 500)
    >>> round(regression_noise_condition(m, np.full(500, 0.5), 0.5).constant, 2)
    2.27
    """
    values = _one_value_per_row("m", m)
    spread = np.broadcast_to(np.asarray(sigma, dtype=np.float64), values.shape)
    if not np.all(np.isfinite(spread) & (spread > 0)):
        raise ValueError("sigma must be finite and above 0: it is a standard deviation.")
    return _largest_mean(values, spread**2, alpha, sample_weight, atoms)


def _largest_mean(
    values: FloatArray,
    variance: FloatArray | None,
    alpha: float,
    sample_weight: ArrayLike | None,
    atoms: bool,
) -> NoiseCondition:
    alpha = at_least("alpha", alpha, 0.0, 1.0)
    n = len(values)
    if n < 2:
        raise ValueError(f"A noise condition is about pairs of rows; got {n}.")
    weight = (
        np.ones(n) if sample_weight is None else _one_value_per_row("sample_weight", sample_weight)
    )
    if len(weight) != n or np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError(f"sample_weight must be {n} numbers >= 0, and above 0 for some row.")
    means = np.empty(n)
    for first in range(0, n, _ROWS):
        rows = slice(first, min(first + _ROWS, n))
        distance = np.abs(values[rows, None] - values)
        if variance is not None:
            distance /= np.sqrt(variance[rows, None] + variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = distance**-alpha if alpha > 0 else np.ones_like(distance)
        counted = np.broadcast_to(weight, powers.shape)
        if not atoms:
            counted = counted.copy()
            counted[np.arange(len(powers)), np.arange(rows.start, rows.stop)] = 0.0
        powers = np.where(counted > 0, powers, 0.0)
        means[rows] = np.sum(counted * powers, axis=1) / np.sum(counted, axis=1)
    means = np.where(weight > 0, means, -np.inf)
    worst = int(np.argmax(means))
    return NoiseCondition(alpha, float(means[worst]), worst)


def bounded_density_constant(alpha: float, *, density_bound: float) -> float:
    r"""The constant of condition (2) from a bound on the density of eta(X) (Corollary 8).

    .. math:: E\,|\eta(x) - \eta(X')|^{-\alpha} \le \frac{2B}{1 - \alpha}, \qquad \alpha < 1

    Parameters
    ----------
    alpha : float
        In [0, 1).
    density_bound : float
        B: the density of eta(X) on [0, 1] is nowhere larger. At least 1.

    Examples
    --------
    >>> from toprank.bounds import bounded_density_constant
    >>> bounded_density_constant(0.5, density_bound=1.0)
    4.0
    """
    alpha = at_least("alpha", alpha, 0.0, 1.0)
    if alpha == 1.0:
        raise ValueError("alpha=1 is out of reach of a bounded density: expected alpha < 1.")
    return 2.0 * at_least("density_bound", density_bound, 1.0) / (1.0 - alpha)


def projection_variance_bound(
    excess: float,
    *,
    alpha: float,
    constant: float,
    model: str = "bipartite",
    cdf: Callable[[FloatArray], FloatArray] = ndtr,
) -> float:
    r"""The bound on Var(h_s) that a noise condition gives: Assumption 4, with its constant.

    ===============  =====================================================================
    "bipartite"      :math:`c\,\Lambda^\alpha` under condition (2), Proposition 7
    "noiseless"      :math:`\Lambda`, Section 5.2 (alpha and constant are 1)
    "regression"     :math:`\min_t (2F(t)-1)^{-\alpha} (1 + c t^\alpha) \Lambda^\alpha` under (4)
    ===============  =====================================================================

    Proposition 9 prints :math:`(2\Phi(c) - 1) \Lambda^\alpha` for the last one, which is false: it
    applies Jensen's inequality to :math:`\Phi(|\Delta|^{-\alpha})` where the proof of Proposition 7
    needs the mean of :math:`(2\Phi(|\Delta|) - 1)^{-\alpha}`. As :math:`2F - 1` is concave and
    rises, it lies above the chord :math:`(2F(t) - 1) \min(|\Delta|/t, 1)` for every t, and the
    mean of its power -alpha is at most :math:`(2F(t) - 1)^{-\alpha} (1 + c\,t^\alpha)`. This is the
    constant given here, derived by us, with the best t.

    Parameters
    ----------
    excess : float
        Lambda(s) = L(s) - L*, the excess ranking risk, from 0 to 1.
    alpha, constant : float
        Of `noise_condition` or `regression_noise_condition`.
    model : {"bipartite", "noiseless", "regression"}
        Which labels.
    cdf : callable
        For "regression": F, the distribution function of the difference of two errors over its
        standard deviation; the normal one by default. Any law that is symmetric about zero with a
        density that falls on both sides will do (Remark 5).

    Examples
    --------
    >>> from toprank.bounds import projection_variance_bound
    >>> round(projection_variance_bound(0.04, alpha=0.5, constant=3.0), 4)
    0.6
    """
    share = at_least("excess", excess, 0.0, 1.0)
    if model == "noiseless":
        return share
    alpha, c = at_least("alpha", alpha, 0.0, 1.0), above("constant", constant)
    if model == "bipartite":
        return c * share**alpha
    if model == "regression":
        rise = 2.0 * np.asarray(cdf(_CHORDS), dtype=np.float64) - 1.0
        with np.errstate(divide="ignore"):
            factors = (1.0 + c * _CHORDS**alpha) / rise**alpha
        return float(np.min(factors)) * share**alpha
    known = ["bipartite", "noiseless", "regression"]
    raise ValueError(f"model={model!r} is unknown: expected one of {known}.")


def projection_variance(
    scores: ArrayLike, *, eta: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    r"""Var(h_s) and the excess risk Lambda(s) of scores on a known population of two classes.

    h_s is the projection of the excess-risk kernel,
    :math:`h_s(x, y) = E\,q_s((x, y), (X', Y')) - \Lambda(s)` (Section 4). Compare the two with
    `projection_variance_bound`. Takes time and memory of the square of the rows.

    Parameters
    ----------
    scores : array-like of shape (n,)
        A score per row; the pair of two rows is ranked by :math:`s(x) \ge s(x')`.
    eta : array-like of shape (n,)
        P(Y = 1 | X = x).
    sample_weight : array-like of shape (n,), optional
        Probabilities of the rows, up to a factor.

    Returns
    -------
    variance, excess : float

    Examples
    --------
    >>> from toprank.bounds import projection_variance
    >>> variance, excess = projection_variance([2.0, 1.0], eta=[0.2, 0.8])
    >>> round(variance, 4), round(excess, 4)
    (0.04, 0.3)
    """
    s, q = _one_value_per_row("scores", scores), _one_value_per_row("eta", eta)
    weight = (
        np.ones(len(q))
        if sample_weight is None
        else _one_value_per_row("sample_weight", sample_weight)
    )
    if not len(s) == len(q) == len(weight):
        raise ValueError(
            f"scores has {len(s)} rows, eta {len(q)} and sample_weight {len(weight)}: expected one "
            "number per row in each."
        )
    weight = weight / np.sum(weight)
    ours, best = s[:, None] >= s, q[:, None] >= q
    # the kernel q_s where x is the positive one of the pair (x, x'), and less it where x' is
    kernel = best.astype(np.float64) - ours
    of_positive, of_negative = kernel @ (weight * (1.0 - q)), -kernel @ (weight * q)
    excess = float(weight @ (q * of_positive + (1.0 - q) * of_negative))
    second = float(weight @ (q * of_positive**2 + (1.0 - q) * of_negative**2))
    return max(0.0, second - excess**2), excess


def _one_value_per_row(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite numbers, one per row; got shape {array.shape}.")
    return array
