"""Thresholds that meet a constraint, and how good the rest is there.

A threshold takes all rows that score at least as high, so a tie is taken whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import BoolArray
from toprank._numerics import is_number
from toprank.metrics.order import RankedList

if TYPE_CHECKING:
    from toprank.blocks.tensors import OnDevice

#: 0.29 of 100 positives is 28.999...96 in floating point, and means 29.
_ROUNDING = 1 - 1e-12


def precision_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    recall: float,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""The highest precision of a threshold whose recall is at least that much.

    .. math::
        \max\Big\{ \frac{TP(t)}{TP(t) + FP(t)} : \frac{TP(t)}{W_+} \ge \text{recall} \Big\}

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    recall : float
        The share of the positives that must score at least the threshold, in (0, 1].

    Returns
    -------
    float
        The precision, from the share of positives among all rows to 1.

    Examples
    --------
    >>> from toprank.metrics import precision_at_recall
    >>> precision_at_recall([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], 0.5)
    1.0
    >>> precision_at_recall([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], 1.0)
    0.75
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return precision_at_recall_of(ranked, recall)


def precision_at_recall_of(ranked: RankedList, recall: float) -> float:
    """`precision_at_recall` of a ranked list."""
    check_share("recall", recall)
    found, places = ranked.found[1:], ranked.places[1:]
    first = int(np.searchsorted(found, recall * ranked.positives * _ROUNDING))
    enough = range(first, len(ranked.scores))
    return max(float(np.max(found[ties] / places[ties])) for ties in ranked.blocks(enough))


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    precision: float,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""The highest recall of a threshold whose precision is at least that much.

    .. math::
        \max\Big\{ \frac{TP(t)}{W_+} : \frac{TP(t)}{TP(t) + FP(t)} \ge \text{precision} \Big\}

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    precision : float
        The share of positives among the rows that score at least the threshold, in (0, 1].

    Returns
    -------
    float
        The recall, from 0 to 1; 0 where no threshold is that precise.

    Examples
    --------
    >>> from toprank.metrics import recall_at_precision
    >>> recall_at_precision([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], 0.75)
    1.0
    >>> recall_at_precision([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], 0.9)
    0.6666666666666666
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return recall_at_precision_of(ranked, precision)


def recall_at_precision_of(ranked: RankedList, precision: float) -> float:
    """`recall_at_precision` of a ranked list."""
    check_share("precision", precision)

    for ties in reversed(list(ranked.blocks())):  # what is found grows down the list
        precise = _precise(ranked, precision, ties)
        found = float(np.max(ranked.found[1:][ties], where=precise, initial=0.0))
        if found > 0:
            return min(1.0, found / ranked.positives)
    return 0.0


def threshold_for(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    precision: float | None = None,
    recall: float | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """The threshold behind `recall_at_precision` or `precision_at_recall`, of these rows.

    It meets the constraint on the rows at hand, and on others about half the time: for a
    threshold that holds with a stated probability, see `toprank.select`.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    precision : float, optional
        The lowest score at which the share of positives is at least this.
    recall : float, optional
        Among the scores at which at least this share of the positives is found, the one of the
        highest precision; of equal ones the highest. Give one of the two.

    Returns
    -------
    float
        Rows that score at least this are taken; infinity where no threshold is that precise.

    Examples
    --------
    >>> from toprank.metrics import threshold_for
    >>> threshold_for([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], precision=0.75)
    3.0
    >>> threshold_for([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], recall=0.5)
    5.0
    """
    if (precision is None) == (recall is None):
        raise ValueError("threshold_for needs precision= or recall=, one of the two.")
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    if precision is not None:
        check_share("precision", precision)
        return float(np.min(ranked.scores, where=_precise(ranked, precision), initial=np.inf))
    assert recall is not None
    best = precision_at_recall_of(ranked, recall)
    precise = ranked.found[1:] / ranked.places[1:] >= best
    return float(np.max(ranked.scores, where=_recalls(ranked, recall) & precise, initial=-np.inf))


def check_share(name: str, share: object) -> None:
    """Raise ValueError unless a wanted precision or recall is a share."""
    if not (is_number(share) and 0 < share <= 1):
        raise ValueError(f"{name}={share!r}: expected a share in (0, 1], such as 0.8.")


def _recalls(ranked: RankedList, recall: float, ties: slice = slice(None)) -> OnDevice | BoolArray:
    """Whether the rows down to the end of each tie hold that share of the positives."""
    return ranked.found[1:][ties] >= recall * ranked.positives * _ROUNDING


def _precise(
    ranked: RankedList, precision: float, ties: slice = slice(None)
) -> OnDevice | BoolArray:
    """Whether the rows down to the end of each tie have that share of positives."""
    return ranked.found[1:][ties] >= precision * ranked.places[1:][ties] * _ROUNDING
