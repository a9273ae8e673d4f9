r"""The variance of the AUC before there is a sample: exact, for a model of the scores.

With m positives and n negatives the empirical AUC is a two-sample U-statistic. Two pairs may be
the same, share their negative or share their positive, which gives (Bamber 1975)

.. math::
    mn\,\mathrm{Var} = A(1 - A) + (m - 1)(Q_1 - A^2) + (n - 1)(Q_2 - A^2)

where Q1 is the chance that two positives both rank above one negative, and Q2 that one positive
ranks above two negatives. A model is what gives Q1 and Q2 for an AUC A.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from toprank._numerics import FloatArray

#: What each model of the scores supposes.
MODELS = {
    "binormal": "normal scores in each class, with standard deviations as {spread:g} to 1",
    "exponential": "exponential scores in each class (Hanley & McNeil 1982)",
    "any": "no model: the largest variance any scores with this AUC can have",
}

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)
_HALVES = 0.5 ** np.arange(48)


def auc_variance(
    value: float,
    positives: float,
    negatives: float,
    model: str = "binormal",
    spread: float = 1.0,
    rest: float | None = None,
) -> float:
    """Variance of the empirical AUC whose expectation is `value`.

    `rest` is 1 - value, for those who know it more exactly than the difference from one.
    """
    rest = 1 - value if rest is None else rest
    if model == "binormal":  # to exchange the classes changes nothing
        return auc_covariance(min(value, rest), min(value, rest), 1.0, positives, negatives, spread)
    pair = value * rest
    if model == "exponential":
        shared = pair * rest / (2 - value), pair * value / (1 + value)
        return _over_pairs(pair, *shared, positives, negatives)
    # a mean of min(m, n) independent pairs, averaged over the ways to form them, varies no more
    return pair / min(positives, negatives)


def pair_share_variance(value: float, positives: float, negatives: float, shared: float) -> float:
    """Variance of a share of pairs if scores are exponential, with as many pairs per row.

    Of `shared` rows of either class a pair shares its row with others. With the mean of positives
    and negatives this is Newcombe's method 5 (2006), which does not care which class is which.
    """
    pair = value * (1 - value)
    alike = (1 - value) / (2 - value) + value / (1 + value)
    return pair * (1 + (shared - 1) * alike) / (positives * negatives)


def auc_covariance(
    value_a: float,
    value_b: float,
    correlation: float,
    positives: float,
    negatives: float,
    spread: float = 1.0,
) -> float:
    """Covariance of the empirical AUCs of two rankers with jointly normal scores.

    `correlation` is that of the two scores of a row, within each class. Whether both rankers order
    a pair rightly depends on two normal differences, which have that correlation if the pair is
    the same, and the negatives' or the positives' part of it if one row is shared.
    """
    a, b = float(ndtri(value_a)), float(ndtri(value_b))
    of_negatives, of_positives = _variance_shares(spread)
    same, share_negative, share_positive = (
        _together(a, b, correlation * part) for part in (1.0, of_negatives, of_positives)
    )
    return _over_pairs(same, share_negative, share_positive, positives, negatives)


def auc_difference_variance(
    value: float,
    difference: float,
    correlation: float,
    positives: float,
    negatives: float,
    spread: float = 1.0,
) -> float:
    """Variance of the difference of the empirical AUCs of two rankers.

    It is that of two variances less twice a covariance, but of rankers that are nearly alike the
    three would leave only their rounding errors. So the terms are put together under the integral.
    """
    a, b = float(ndtri(value)), float(ndtri(value + difference))
    gap = abs(difference)
    same = gap * (1 - gap) + 2 * _integral(a, b, correlation, 1.0)
    share_negative, share_positive = (
        _apart(a, b, part) + 2 * _integral(a, b, correlation * part, part)
        for part in _variance_shares(spread)
    )
    return _over_pairs(same, share_negative, share_positive, positives, negatives)


def both_negative(a: float, b: float, correlation: float) -> float:
    r"""P(X <= a, Y <= b) for standard normal X and Y of a given correlation.

    .. math::
        \Phi(a)\Phi(b) + \frac{1}{2\pi} \int_0^{\arcsin \rho}
        \exp\Big({-\frac{a^2 + b^2 - 2ab \sin t}{2 \cos^2 t}}\Big)\, dt
    """
    return float(ndtr(a) * ndtr(b)) + _together(a, b, correlation)


def _together(a: float, b: float, correlation: float) -> float:
    """Covariance of 1[X <= a] and 1[Y <= b]."""
    if correlation == 1:  # the density has a step at the end of the range
        return float(ndtr(min(a, b)) * ndtr(-max(a, b)))
    if correlation < 0:
        return -_integral(a, -b, 0.0, -correlation)
    return _integral(a, b, 0.0, correlation)


def _variance_shares(spread: float) -> tuple[float, float]:
    """Share of the negatives, and of the positives, in the variance of a difference of scores."""
    squared = min(spread, 1 / spread) ** 2
    larger, smaller = 1 / (1 + squared), squared / (1 + squared)
    return (smaller, larger) if spread > 1 else (larger, smaller)


def _integral(a: float, b: float, low: float, high: float) -> float:
    """Integral of the density of `both_negative` over correlations from `low` to `high` >= 0."""
    if low == high:
        return 0.0
    below = _integral(a, -b, 0.0, -low) if low < 0 else 0.0
    u, weight = _angles(max(low, 0.0), high)
    density = np.exp(-(((a - b) / np.sin(u)) ** 2) / 2 - a * b / (1 + np.cos(u)))
    return below + float(np.dot(weight, density)) / (2 * np.pi)


def _apart(a: float, b: float, correlation: float) -> float:
    """Integral from 0 to a correlation of the densities at (a, a) and (b, b) less two at (a, b)."""
    if correlation == 1:
        gap = abs(float(ndtr(a) - ndtr(b)))
        return gap * (1 - gap)
    u, weight = _angles(0.0, correlation)
    of_a, of_b = (-(c**2) / (1 + np.cos(u)) for c in (a, b))
    narrow = np.expm1(-(((a - b) / np.sin(u)) ** 2) * np.cos(u) / 2)
    lower, higher = np.minimum(of_a, of_b), np.maximum(of_a, of_b)
    square = np.exp(higher) * np.expm1((lower - higher) / 2) ** 2
    density = square - 2 * np.exp((of_a + of_b) / 2) * narrow
    return float(np.dot(weight, density)) / (2 * np.pi)


def _angles(low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights over arccos of the correlations; panels halve towards a correlation of one.

    For rankers that are nearly alike the density is a step there, as narrow as they are alike.
    """
    first, last = float(np.arccos(high)), float(np.arccos(low))
    edges = np.append(np.maximum(last * _HALVES, first), first)
    half = -np.diff(edges)[:, None] / 2
    middle = (edges[:-1, None] + edges[1:, None]) / 2
    return (middle + half * _NODES).ravel(), (half * _NODE_WEIGHTS).ravel()


def _over_pairs(
    same: float, share_negative: float, share_positive: float, positives: float, negatives: float
) -> float:
    """Variance, or covariance, of a mean over all pairs from those of two pairs."""
    shared = (positives - 1) * share_negative + (negatives - 1) * share_positive
    return (same + shared) / positives / negatives
