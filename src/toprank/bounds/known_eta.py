r"""Ranking error, Bayes error and regret when eta(x) = P(y = 1 \| x) is known, for simulation.

The rows stand for the distribution of X: each has the probability of its weight. A row is then a
positive of weight eta and a negative of weight 1 - eta, and every expectation over pairs is a sum
over the sorted scores, in O(n log n). Equations and theorems are those of Agarwal (2012).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.losses.proper import ProperLoss, get_proper_loss
from toprank.metrics import misranking_error


def ranking_error(
    eta: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""The chance that a positive is scored below a negative, ties one half (equation 1).

    .. math::
        \mathrm{er}[f] = \frac{1}{p(1-p)} E_{X,X'}\big[ \eta(X)(1 - \eta(X'))
        \big( 1[f(X) < f(X')] + \tfrac12\, 1[f(X) = f(X')] \big) \big]

    Parameters
    ----------
    eta : array-like of shape (n,)
        P(y = 1) of each row; or its label, 0 or 1 (or -1 or 1), which gives 1 - AUC.
    scores : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    sample_weight : array-like of shape (n,), optional
        Weight of each row; it need not sum to one.

    Examples
    --------
    >>> from toprank.bounds import ranking_error
    >>> ranking_error([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.125
    >>> round(ranking_error([0.2, 0.8], [0.0, 0.0]), 10)
    0.5
    """
    probability, weight = _population(eta, sample_weight)
    f = _finite(scores, len(probability))
    labels = np.repeat([1, 0], len(probability))
    weights = np.concatenate([weight * probability, weight * (1.0 - probability)])
    return misranking_error(labels, np.concatenate([f, f]), sample_weight=weights)


def bayes_ranking_error(eta: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    r"""The least ranking error of any scores (equations 2 and 3).

    .. math::
        \mathrm{er}^* = \frac{1}{2p(1-p)} E_{X,X'}\big[ \min\big(
        \eta(X)(1 - \eta(X')),\, \eta(X')(1 - \eta(X)) \big) \big]

    Parameters
    ----------
    eta, sample_weight
        As in `ranking_error`.

    Examples
    --------
    >>> from toprank.bounds import bayes_ranking_error
    >>> round(bayes_ranking_error([0.2, 0.8]), 10)
    0.2
    """
    probability, _ = _population(eta, sample_weight)
    return ranking_error(probability, probability, sample_weight=sample_weight)


def exact_ranking_regret(
    eta: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""The ranking error of scores minus the least one (equation 4, Theorem 11).

    .. math::
        \mathrm{regret}[f] = \frac{1}{2p(1-p)} E_{X,X'}\big[ |\eta(X) - \eta(X')| \big(
        1[(f(X) - f(X'))(\eta(X) - \eta(X')) < 0] + \tfrac12\, 1[f(X) = f(X')] \big) \big]

    Parameters
    ----------
    eta, scores, sample_weight
        As in `ranking_error`.

    Examples
    --------
    >>> from toprank.bounds import exact_ranking_regret
    >>> exact_ranking_regret([0.1, 0.5, 0.9], [-3.0, 0.0, 1.0])
    0.0
    >>> round(exact_ranking_regret([0.2, 0.8], [0.0, 0.0]), 10)
    0.3
    """
    error = ranking_error(eta, scores, sample_weight=sample_weight)
    return max(0.0, error - bayes_ranking_error(eta, sample_weight=sample_weight))


def surrogate_regret(
    loss: str | ProperLoss,
    eta: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The expected loss of scores minus the least one, E R(eta(X), f(X)) (equations 7 and 10-12).

    Scores are truncated to the loss's prediction space, as for its probabilities (Example 3).

    Parameters
    ----------
    loss : str or ProperLoss
        A loss of `toprank.losses.proper`.
    eta, sample_weight
        As in `ranking_error`.
    scores : array-like of shape (n,)
        Scores in the units of the loss's link.

    Examples
    --------
    >>> from toprank.bounds import surrogate_regret
    >>> round(surrogate_regret("squared", [0.5, 0.5], [0.1, -0.1]), 10)
    0.01
    """
    composite = get_proper_loss(loss)
    probability, weight = _population(eta, sample_weight)
    f = composite.truncate(_finite(scores, len(probability)))
    return float(np.average(composite.conditional_regret(probability, f), weights=weight))


def pairwise_surrogate_regret(
    loss: str | ProperLoss,
    eta: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The regret of f(x) - f(x') over pairs of different labels (equations 21 and 25).

    The expected loss of score differences under `pairwise_distribution` minus the least one over
    all functions of the pair. `pairwise_regret` bounds the ranking regret by it, and Theorem 6
    (`balanced_pairwise_regret`) bounds it by the balanced regret of single rows.

    Parameters
    ----------
    loss, eta, scores, sample_weight
        As in `surrogate_regret`. Time and memory grow with the square of the rows.

    Examples
    --------
    >>> from toprank.bounds import pairwise_surrogate_regret
    >>> round(pairwise_surrogate_regret("logistic", [0.2, 0.8], [0.0, 2.772589]), 6)
    0.0
    """
    composite = get_proper_loss(loss)
    f = _finite(scores, len(np.asarray(eta)))
    probability, pair_eta = pairwise_distribution(eta, sample_weight=sample_weight)
    apart = composite.truncate(f[:, None] - f[None, :])
    return float(np.sum(probability * composite.conditional_regret(pair_eta, apart)))


def gini_mean_difference(eta: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    r"""E \|eta(X) - eta(X')\|, from 0 (eta constant) to 2p(1-p) (eta is 0 or 1).

    Half of it is what the best ranking gains (Clémençon, Lugosi & Vayatis 2006, Example 1):
    2p(1-p) er* = p(1-p) - E \|eta(X) - eta(X')\| / 2.

    Parameters
    ----------
    eta, sample_weight
        As in `ranking_error`.

    Examples
    --------
    >>> from toprank.bounds import gini_mean_difference
    >>> round(gini_mean_difference([0.2, 0.8]), 10)
    0.3
    """
    probability, weight = _population(eta, sample_weight)
    order = np.argsort(probability)
    values, weight = probability[order], weight[order] / np.sum(weight)
    below = np.cumsum(weight)
    # each gap between neighbours lies between everything below it and everything above it
    return float(2.0 * np.sum(np.diff(values) * (below * (1.0 - below))[:-1]))


def pairwise_distribution(
    eta: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""The distribution of pairs of rows with different labels (equations 15 to 17).

    .. math::
        P(\tilde X = (x, x')) = \frac{P(x) P(x')\, (a + b)}{2p(1-p)}, \qquad
        \tilde\eta(x, x') = \frac{a}{a + b}

    with a = eta(x)(1 - eta(x')) and b = eta(x')(1 - eta(x)). P(first row positive) is one half.
    Both arrays have n² entries: it is meant for few rows.

    Parameters
    ----------
    eta, sample_weight
        As in `ranking_error`.

    Returns
    -------
    probability : array of shape (n, n)
        Of each ordered pair; they sum to one.
    pair_eta : array of shape (n, n)
        The probability that the first row is the positive one; one half where a pair cannot occur.

    Examples
    --------
    >>> from toprank.bounds import pairwise_distribution
    >>> probability, pair_eta = pairwise_distribution([0.0, 1.0])
    >>> probability.tolist(), pair_eta.tolist()
    ([[0.0, 0.5], [0.5, 0.0]], [[0.5, 0.0], [1.0, 0.5]])
    """
    q, weight = _population(eta, sample_weight)
    a = q[:, None] * (1.0 - q[None, :])
    both = a + a.T
    mass = np.outer(weight, weight) * both
    pair_eta = np.divide(a, both, out=np.full_like(a, 0.5), where=both > 0)
    return mass / np.sum(mass), pair_eta


def _population(eta: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    probability = np.asarray(eta, dtype=np.float64)
    if probability.ndim != 1 or probability.size == 0:
        raise ValueError(
            f"eta must be one number per row; got an array of shape {probability.shape}."
        )
    if np.all(np.isin(probability, (-1.0, 1.0))):
        probability = (probability + 1.0) / 2.0
    if not np.all((probability >= 0) & (probability <= 1)):
        raise ValueError("eta must hold probabilities in [0, 1], or labels; it has other values.")
    weight = _row_probabilities(sample_weight, len(probability))
    positive = float(np.dot(weight, probability))
    if not 0.0 < positive < float(np.sum(weight)):
        raise ValueError(
            "eta is 0 for every row, or 1 for every row: there is no pair of a positive and a "
            "negative to rank."
        )
    return probability, weight


def _row_probabilities(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weight = _finite(sample_weight, n, "sample_weight")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight must be 0 or more, and positive for some row.")
    return weight


def _finite(values: ArrayLike, n: int, name: str = "scores") -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} must be {n} finite numbers, one per row of eta; got shape {array.shape}."
        )
    return array
