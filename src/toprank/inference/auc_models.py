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

#: What each model of the scores supposes.
MODELS = {
    "binormal": "normal scores in each class, with standard deviations as {spread:g} to 1",
    "exponential": "exponential scores in each class (Hanley & McNeil 1982)",
    "any": "no model: the largest variance any scores with this AUC can have",
}

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)


def auc_variance(
    value: float, positives: float, negatives: float, model: str = "binormal", spread: float = 1.0
) -> float:
    """Variance of the empirical AUC whose expectation is `value`."""
    if model == "binormal":
        return auc_covariance(value, value, 1.0, positives, negatives, spread)
    if model == "exponential":
        shared = value / (2 - value), 2 * value**2 / (1 + value)
        return _over_pairs(value, *shared, value**2, positives, negatives)
    # a mean of min(m, n) independent pairs, averaged over the ways to form them, varies no more
    return value * (1 - value) / min(positives, negatives)


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
    of_positives = spread**2 / (1 + spread**2)
    a, b = float(ndtri(value_a)), float(ndtri(value_b))
    same = both_negative(a, b, correlation)
    share_negative = both_negative(a, b, correlation * (1 - of_positives))
    share_positive = both_negative(a, b, correlation * of_positives)
    return _over_pairs(
        *(same, share_negative, share_positive), value_a * value_b, positives, negatives
    )


def both_negative(a: float, b: float, correlation: float) -> float:
    r"""P(X <= a, Y <= b) for standard normal X and Y of a given correlation.

    .. math::
        \Phi(a)\Phi(b) + \frac{1}{2\pi} \int_0^{\arcsin \rho}
        \exp\Big({-\frac{a^2 + b^2 - 2ab \sin t}{2 \cos^2 t}}\Big)\, dt
    """
    if correlation == 1:  # the density has a step at the end of the range
        return float(ndtr(min(a, b)))
    end = float(np.arcsin(correlation))
    angle = end * (1 + _NODES) / 2
    density = np.exp(-(a * a + b * b - 2 * a * b * np.sin(angle)) / (2 * np.cos(angle) ** 2))
    return float(ndtr(a) * ndtr(b) + end / 2 * np.dot(_NODE_WEIGHTS, density) / (2 * np.pi))


def _over_pairs(
    same: float,
    share_negative: float,
    share_positive: float,
    apart: float,
    positives: float,
    negatives: float,
) -> float:
    shared = (positives - 1) * (share_negative - apart) + (negatives - 1) * (share_positive - apart)
    return (same - apart + shared) / (positives * negatives)
