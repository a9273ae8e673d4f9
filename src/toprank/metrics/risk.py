"""The ranking risk of real-valued labels, a U-statistic, by counting inversions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from toprank._numerics import FloatArray, stable_order
from toprank.metrics._inputs import TOO_FAR, inverse_weights
from toprank.metrics.order import RankedList
from toprank.pairs import check_counts, check_grades, check_scores


def ranking_risk(
    y_real: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
) -> float:
    r"""Ranking risk: the share of ordered pairs of rows that the scores put the wrong way round.

    .. math::
        \frac{1}{n(n-1)} \sum_{i \ne j} \Big( 1[(y_i - y_j)(f_i - f_j) < 0]
        + \tfrac12\, 1[f_i = f_j,\ y_i \ne y_j] \Big)

    the U-statistic of Clémençon, Lugosi & Vayatis (2006, Section 3), in O(n log n). A tie in score
    counts one half, a pair of equal labels counts nothing but stays in the denominator.

    Parameters
    ----------
    y_real : array-like of shape (n,)
        Real labels, not all equal; larger should be ranked nearer the top.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    sample_weight : array-like of shape (n,), optional
        Repetition counts; n is then their sum W, which must exceed 1.
    label_propensity : float or array-like of shape (n,), optional
        Probability in (0, 1] that the row's label was seen; each weight is divided by it.

    Returns
    -------
    float
        The risk, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import ranking_risk
    >>> ranking_risk([1.5, 2.0, 3.5, 9.0], [0.1, 0.3, 0.2, 0.4])  # one of six pairs
    0.16666666666666666
    """
    labels, scores, weight = check_real_ranking(y_real, y_score, sample_weight, label_propensity)
    present = weight > 0
    labels, scores, weight = labels[present], scores[present], weight[present]
    wrong, tied = misranked_by_row(labels, scores, weight)
    total = float(np.sum(weight))
    return min(1.0, float(np.dot(weight, wrong + tied / 2)) / (total * (total - 1)))


def ranking_risk_of(ranked: RankedList) -> float:
    """`ranking_risk` of a ranked list of two classes."""
    _check_total(ranked.total)
    wrong = ranked.misranked - 0.5 * ranked.tied
    return 2 * wrong / (ranked.total * (ranked.total - 1))


def misranked_by_row(
    labels: FloatArray, scores: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weight of the rows that each row is ranked wrongly against, and ties with, in O(n log n).

    Rows of equal label are never in the wrong order, and their ties are not counted.
    """
    # tied scores in order of label add no inversion
    order = stable_order(labels)
    order = order[stable_order(scores[order])]
    labels, scores, weight = labels[order], scores[order], weight[order]
    new_score = scores[1:] != scores[:-1]
    new_label = new_score | (labels[1:] != labels[:-1])
    grades = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    wrong, tied = np.empty(len(order)), np.empty(len(order))
    wrong[order] = _inversions(grades, weight)
    tied[order] = _run_sums(new_score, weight) - _run_sums(new_label, weight)
    return wrong, np.maximum(tied, 0.0, out=tied)


def _inversions(grades: np.ndarray, weight: FloatArray) -> FloatArray:
    """Weight of the larger grades before each row and of the smaller ones after it.

    Two grades first differ in one bit. Moving the zeros of each bit before its ones, stably, keeps
    the rows that agree in all higher bits in one run, so the pairs that the next bit decides are
    counted run by run, from cumulated sums.
    """
    inversions = np.zeros(len(grades))
    rows = np.arange(len(grades))
    for bit in reversed(range(int(grades.max()).bit_length())):
        is_one = (grades >> bit) & 1 == 1
        prefix = grades >> (bit + 1)
        starts = np.concatenate(([0], np.flatnonzero(prefix[1:] != prefix[:-1]) + 1))
        lengths = np.diff(starts, append=len(grades))
        ones = np.concatenate(([0.0], np.cumsum(np.where(is_one, weight, 0.0))))
        zeros = np.concatenate(([0.0], np.cumsum(np.where(is_one, 0.0, weight))))
        ones_before = ones[:-1] - np.repeat(ones[starts], lengths)
        zeros_after = np.repeat(zeros[starts + lengths], lengths) - zeros[1:]
        # sums of very unequal weights may cancel to just below zero
        inversions += np.maximum(np.where(is_one, zeros_after, ones_before), 0.0)
        order = np.concatenate((np.flatnonzero(~is_one), np.flatnonzero(is_one)))
        grades, weight, rows = grades[order], weight[order], rows[order]
        inversions = inversions[order]
    by_row = np.empty(len(rows))
    by_row[rows] = inversions
    return by_row


def _run_sums(new: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
    """Weight of the run that each row is in; `new` says where the next run begins."""
    starts = np.concatenate(([0], np.flatnonzero(new) + 1))
    return np.repeat(np.add.reduceat(weight, starts), np.diff(starts, append=len(weight)))


def check_real_ranking(
    y_real: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (labels, scores, weights) of real labels, or raise ValueError saying what is wrong."""
    scores, labels = check_scores(y_score), check_grades(y_real, name="y_real")
    check_consistent_length(labels, scores)
    if len(scores) == 0:
        raise ValueError("Found 0 rows while a minimum of 1 is required.")
    weight = weight_of_rows(sample_weight, len(scores))
    if label_propensity is not None:
        weight = inverse_weights(weight, label_propensity, len(scores))
    known = labels[weight > 0]
    if len(known) == 0 or np.all(known == known[0]):
        raise ValueError("y_real holds one value only, so there is no pair to rank.")
    with np.errstate(over="ignore"):
        _check_total(float(np.sum(weight)))
    return labels, scores, weight


def weight_of_rows(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Check the weights of rows without classes; without weights every row counts once."""
    weight = check_counts(sample_weight, n, far_apart=True)
    return np.ones(n) if weight is None else weight


def _check_total(total: float) -> None:
    if total <= 1:
        raise ValueError(
            f"sample_weight sums to {total:g}: as repetition counts that is not a pair of rows. "
            "Scale the weights so that they count rows."
        )
    if total >= 1e100:
        raise ValueError(f"sample_weight sums to {total:g}: {TOO_FAR}")
