"""The first rows of the list: how many of them are positive, and how many positives lead it.

One tie rule for every metric "at k": rows of equal score stand in random order, and the metric
is the exact expectation over that order, computed, not simulated. A weight is a repetition
count, so a list is made of units of weight, and the units of tied rows are what is shuffled.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray
from toprank.metrics._inputs import check_ranking


def precision_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Precision at k: the share of positives among the first k rows of the list.

    .. math::
        \mathrm{P@}k = \frac1k\, \mathbb{E}\Big[\sum_{i\ \text{positive}}
        1[\mathrm{rank}(i) \le k]\Big]

    with the expectation over random orders of tied rows. If the rows scored above a tie fill
    a places, and the tie holds t rows of which m are positive, it brings (k - a) m / t expected
    positives when the cut at k falls within it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    k : int or float
        An int is a count, from 1 to n. A float is a fraction of the list in (0, 1] and stands
        for ceil(k n) rows, where a product within rounding error of a whole number is that
        number: 0.07 of 100 rows is 7 rows.
    sample_weight : array-like of shape (n,), optional
        Repetition counts. A count k then asks for k units of weight, a fraction for that
        fraction of the total weight, rounded up to whole units if every weight is whole and
        taken as it is if not.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        The expected precision, from 0 to 1.

    Raises
    ------
    ValueError
        If k is not a count or a fraction as above, or the labels, scores or weights are not
        usable.

    Examples
    --------
    >>> from toprank.metrics import precision_at
    >>> precision_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 2)
    0.5
    >>> precision_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.5], 2)  # a tie for the second place
    0.75
    >>> precision_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 0.25)  # the top quarter
    1.0
    """
    positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
    if weight is None:
        weight = np.ones(len(scores))
    size = _list_size(k, weight)
    return _expected_positives(positive, scores, weight, size) / size


def positives_at_top(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Positives at the absolute top: the share of positives ranked above every negative.

    .. math::
        \frac{1}{W_+} \sum_i w_i\, 1\big[f_i > \max_k f_k\big]

    over positives i of total weight W+ and negatives k of positive weight. A positive that ties
    with the highest negative does not count.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    normalize : bool, default=True
        Divide by W+. If False, return the number (or weight) of such positives.
    sample_weight : array-like of shape (n,), optional
        Repetition counts; a negative of weight zero is absent.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        The share of positives above every negative, from 0 to 1, or their number.

    Examples
    --------
    >>> from toprank.metrics import positives_at_top
    >>> y, s = [1, 1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.6]
    >>> positives_at_top(y, s)
    0.75
    >>> positives_at_top(y, s, normalize=False)
    3.0
    """
    positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
    if weight is None:
        weight = np.ones(len(scores))
    highest_negative = np.max(scores[~positive & (weight > 0)])
    above = float(np.sum(weight[positive & (scores > highest_negative)]))
    return above / float(np.sum(weight[positive])) if normalize else above


def _list_size(k: int | float, weight: FloatArray) -> float:
    """Units of weight that k asks for, or ValueError saying what a k may be."""
    total = float(np.sum(weight))
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, Real):
        raise ValueError(f"k={k!r} is a {type(k).__name__}, expected an int or a float.")
    if isinstance(k, Integral):
        if not 1 <= k <= total:
            raise ValueError(
                f"k={int(k)} is not a count of the list's rows: expected from 1 to {total:g}."
            )
        return float(k)
    fraction = float(k)
    if not 0 < fraction <= 1:
        raise ValueError(
            f"k={fraction:g} is a float, so a fraction of the list: expected more than 0 and at "
            "most 1. For a count, pass an int."
        )
    size = fraction * total
    return _round_up(size) if np.all(weight == np.round(weight)) else size


def _round_up(size: float) -> float:
    """ceil(size), but a whole number plus rounding error stays that whole number; at least 1."""
    nearest = round(size)
    near = abs(size - nearest) <= 1e-9 * max(1.0, size)
    return float(max(1, nearest if near else np.ceil(size)))


def _expected_positives(
    positive: NDArray[np.bool_], scores: FloatArray, weight: FloatArray, size: float
) -> float:
    """Expected weight of positives among the first `size` units of weight.

    It is linear in `size` within a tie, so it interpolates the sums at the ends of the ties.
    """
    _, tie = np.unique(-scores, return_inverse=True)
    places = np.cumsum(np.bincount(tie, weights=weight))
    found = np.cumsum(np.bincount(tie, weights=weight * positive))
    return float(np.interp(size, np.concatenate(([0.0], places)), np.concatenate(([0.0], found))))
