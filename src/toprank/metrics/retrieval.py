"""Measures of information retrieval and of screening: discounted sums over the positives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from toprank._numerics import FloatArray, is_number
from toprank.metrics.discount import summed_discount
from toprank.metrics.order import RankedList


def dcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Discounted cumulative gain: the sum of 1 / ln(1 + rank) over the positives.

    .. math:: \mathrm{DCG}(f) = \sum_i \frac{w_i}{\ln(1 + \mathrm{Rank}(i))}

    with the ranks of `ranks`: the worst among ties (Rudin 2009, Section 7). It grows with the
    number of positives; `ndcg_at` does not.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.

    Returns
    -------
    float
        The sum.

    Examples
    --------
    >>> from toprank.metrics import dcg
    >>> round(dcg([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8]), 6)  # 1/ln(2) + 1/ln(4)
    2.164043
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return dcg_of(ranked)


def dcg_of(ranked: RankedList) -> float:
    """`dcg` of a ranked list."""
    return float(np.sum(ranked.positive / np.log1p(ranked.places[1:])))


def dcg_of_resample(ranked: RankedList) -> float:
    """`dcg` with the copies of a row in places of their own, not tied at the last of them."""
    return _in_places(ranked, summed_discount(ranked.places))


def aver(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""The sum of the reciprocal ranks of the positives.

    .. math:: \mathrm{AveR}(f) = \sum_i \frac{w_i}{\mathrm{Rank}(i)}

    with the ranks of `ranks`: the worst among ties (Rudin 2009, Section 7). Despite its name in
    the paper it is a sum, not a mean.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.

    Returns
    -------
    float
        The sum.

    Examples
    --------
    >>> from toprank.metrics import aver
    >>> round(aver([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8]), 6)  # 1 + 1/3
    1.333333
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return aver_of(ranked)


def aver_of(ranked: RankedList) -> float:
    """`aver` of a ranked list."""
    return float(np.sum(ranked.positive / ranked.places[1:]))


def aver_of_resample(ranked: RankedList) -> float:
    """`aver` with the copies of a row in places of their own, not tied at the last of them."""
    return _in_places(ranked, np.asarray(digamma(ranked.places + 1)))


def _in_places(ranked: RankedList, summed: FloatArray) -> float:
    """The sum over positives of a discount, from the discounts summed down to each place."""
    in_tie = ranked.positive + ranked.negative
    return float(np.dot(ranked.positive / in_tie, np.diff(summed)))


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Average precision: the mean over the positives of the precision at their rank.

    .. math::
        \mathrm{AP} = \frac{1}{W_+} \sum_i w_i\,
        \frac{\sum_{i'} w_{i'} 1[f_{i'} \ge f_i]}{\mathrm{Rank}(i)}

    with the worst rank among ties. It equals ``sklearn.metrics.average_precision_score``.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.

    Returns
    -------
    float
        The mean, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import average_precision
    >>> round(average_precision([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8]), 6)  # (1 + 2/3) / 2
    0.833333
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return average_precision_of(ranked)


def average_precision_of(ranked: RankedList) -> float:
    """`average_precision` of a ranked list."""
    precision = ranked.found[1:] / ranked.places[1:]
    return min(1.0, float(np.dot(ranked.positive, precision)) / ranked.positives)


def average_precision_of_orders(labels: NDArray[np.bool_]) -> FloatArray:
    """`average_precision` of many lists without ties, one list per row."""
    found = np.cumsum(labels, axis=1)
    precision = found / np.arange(1, labels.shape[1] + 1)
    return np.asarray(np.sum(labels * precision, axis=1) / found[:, -1])


def bedroc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    alpha: float = 20.0,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Boltzmann-enhanced discrimination of ROC: early recognition, from 0 to 1.

    .. math::
        \mathrm{BEDROC} = \frac{S - S_{\min}}{S_{\max} - S_{\min}},\qquad
        S = \mathbb{E}\Big[\sum_{i\ \text{positive}} e^{-\alpha\, \mathrm{rank}(i) / n}\Big]

    where the largest and smallest values of S have all positives first and last (Truchon & Bayly
    2007, whose closed form is the same number). The expectation is over random orders of
    tied rows. With alpha = 20, four fifths of the score come from the first 8% of the list.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    alpha : float, default=20.0
        Rate of decay; the larger, the more the first places count.

    Returns
    -------
    float
        The score; 1 if all positives come first, 0 if they come last.

    Examples
    --------
    >>> from toprank.metrics import bedroc
    >>> round(bedroc([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8]), 4)
    0.9934
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return bedroc_of(ranked, alpha)


def bedroc_of(ranked: RankedList, alpha: float = 20.0) -> float:
    """`bedroc` of a ranked list."""
    if not (is_number(alpha) and 0 < alpha < np.inf):
        raise ValueError(f"alpha={alpha!r} is not a rate of decay: expected a number > 0.")
    decay = max(float(alpha), 1e-30)  # from there down it is the AUC, to the last digit
    total = ranked.total
    above = decay * (ranked.places[:-1] / total)
    high, low = decay * (ranked.positive / total), decay * (ranked.negative / total)
    below = np.append(np.cumsum(low[::-1])[::-1][1:], 0.0)
    # geometric sums over the places of each tie, less those of the worst order; as a sum over
    # the negatives that a positive leads, nothing cancels
    led = _fading(high) * np.exp(-low) * _fading(below) + _led_in_tie(high, low)
    gained = float(np.sum(np.exp(-above) * led))
    most = _fading(decay * ranked.positives / total) * _fading(decay * ranked.negatives / total)
    return float(np.clip(gained / most, 0.0, 1.0))


def _fading(length: Any) -> Any:
    """Sum of the discounts e^-x over this length, 1 - e^-length."""
    return -np.expm1(-length)


def _led_in_tie(high: Any, low: Any) -> Any:
    r"""What the positives of a tie gain over its own negatives, under random orders.

    .. math:: (1 - e^{-n}) - \frac{n}{m + n} (1 - e^{-(m+n)})

    for positives of length m and negatives of length n. Of long ties one of two forms cancels
    least; of short ones the series does not.
    """
    length = high + low
    with np.errstate(invalid="ignore"):  # weights whose share of the list is below every float
        few_low = _fading(low) - low / length * _fading(length)
        few_high = high / length * _fading(length) - np.exp(-low) * _fading(high)
    m, n = np.minimum(high, 1.0), np.minimum(low, 1.0)
    powers, series, factor = np.ones_like(m), np.zeros_like(m), 0.5
    for k in range(2, 22):
        series = series + factor * powers
        powers = (m + n) * powers + n ** (k - 1)
        factor /= -(k + 1)
    return np.where(length < 1, m * n * series, np.where(low <= high, few_low, few_high))
