"""The ROC curve: its area, parts of its area, and points on it.

The curve is the polygon through the points (FPR, TPR) at the end of each tie, so a tie between a
positive and a negative counts as one half in every area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray, is_number
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking
from toprank.metrics.order import RankedList, members_of
from toprank.metrics.sorted_classes import SortedClasses

#: Beyond this rate an area is lost in the rounding of the rates around it.
_LAST_RATE = 0.999999


def auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Area under the ROC curve: the chance that a positive is ranked above a negative.

    .. math::
        \mathrm{AUC} = \frac{1}{W_+ W_-} \sum_i \sum_k w_i w_k
        \big(1[f_i > f_k] + \tfrac12\, 1[f_i = f_k]\big)

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    sample_weight : array-like of shape (n,), optional
        Repetition counts; a row of weight zero is absent.
    label_propensity : float or array-like of shape (n,), optional
        Probability in (0, 1] that the row's label was seen, for rows that are labelled only
        because someone looked. Each weight is divided by it, so that the labelled rows stand
        for all rows.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        The area, from 0 to 1; one half for random scores.

    Examples
    --------
    >>> from toprank.metrics import auc
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    checked = check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity)
    if isinstance(checked[1], OnDevice):
        return auc_of(RankedList.rank(*checked))
    return SortedClasses.of(*checked).share_in_order()


def auc_of(ranked: RankedList) -> float:
    """`auc` of a ranked list."""
    twice = sum(ranked.above_and_level)
    return min(1.0, twice / (2 * ranked.positives * ranked.negatives))


def misranking_error(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    ties: Literal["half", "error"] = "half",
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Share of the pairs of a positive and a negative that are ranked wrongly.

    .. math::
        \frac{1}{W_+ W_-} \sum_i \sum_k w_i w_k \big(1[f_i < f_k] + c\, 1[f_i = f_k]\big)

    with c = 1/2 for ``ties="half"``, which is 1 - AUC, and c = 1 for ``ties="error"``, which is
    the mean height divided by W+ (the fraction of misranks of Rudin & Schapire 2009, Section 5).

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    ties : {"half", "error"}, default="half"
        What a tie between a positive and a negative counts as.

    Returns
    -------
    float
        The share, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import misranking_error
    >>> y, s = [0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]
    >>> misranking_error(y, s), misranking_error(y, s, ties="error")
    (0.125, 0.25)
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return misranking_error_of(ranked, ties)


def misranking_error_of(ranked: RankedList, ties: str = "half") -> float:
    """`misranking_error` of a ranked list."""
    if ties not in ("half", "error"):
        raise ValueError(f"Unknown ties {ties!r}: expected 'half' or 'error'.")
    wrong = ranked.misranked - (0.5 * ranked.tied if ties == "half" else 0.0)
    return min(1.0, wrong / (ranked.positives * ranked.negatives))


def tpr_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    fpr: float,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""True positive rate where the ROC curve crosses a false positive rate.

    .. math::
        \mathrm{ROC}(u) = \max\{\mathrm{TPR} : (u, \mathrm{TPR})\ \text{on the ROC polygon}\}

    Between the points of the curve this is the expected rate when a tie is cut at random, and
    ROC(0) is `positives_at_top`.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    fpr : float
        The false positive rate u, from 0 to 1.

    Returns
    -------
    float
        The true positive rate, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], 0.0)
    0.6666666666666666
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return tpr_at_fpr_of(ranked, fpr)


def tpr_at_fpr_of(ranked: RankedList, fpr: float) -> float:
    """`tpr_at_fpr` of a ranked list."""
    _check_rate("fpr", fpr)
    target = fpr * ranked.negatives
    # 0.29 of 100 negatives is 28.999...96 in floating point, and means 29
    last = int(np.searchsorted(ranked.passed, target * (1 + 1e-12), side="right")) - 1
    if last == len(ranked.scores):
        return 1.0
    share = max(0.0, target - ranked.passed[last]) / ranked.negative[last]
    return float(ranked.found[last] + share * ranked.positive[last]) / ranked.positives


def partial_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: float | None = None,
    min_fpr: float = 0.0,
    min_tpr: float | None = None,
    standardize: bool = True,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Area under a part of the ROC curve.

    .. math::
        A = \int_a^b \max(\mathrm{ROC}(u) - t, 0)\, du

    between the false positive rates a = ``min_fpr`` and b = ``max_fpr`` and above the true
    positive rate t = ``min_tpr``. Standardised (McClish 1989), it is

    .. math::
        \frac12 \Big(1 + \frac{A - A_0}{A_1 - A_0}\Big),\quad
        A_0 = \int_a^b \max(u - t, 0)\, du,\quad A_1 = (b - a)(1 - t)

    where A0 belongs to random scores and A1 to perfect ones: one half and 1 mean what they mean
    for the whole AUC.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    max_fpr : float in (0, 1], optional
        Right end b of the interval; by default 1.
    min_fpr : float, default=0.0
        Left end a of the interval, less than `max_fpr` and at most 0.999999.
    min_tpr : float, optional
        Lower edge t, at most 0.999999; by default 0. Alone, it gives the area of high
        sensitivities.
    standardize : bool, default=True
        Standardise as above, like ``sklearn.metrics.roc_auc_score(max_fpr=...)``, which this
        equals. If False, return the raw area A.

    Returns
    -------
    float
        The area.

    Examples
    --------
    >>> from toprank.metrics import partial_auc
    >>> y, s = [0, 0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6, 7]
    >>> partial_auc(y, s, max_fpr=0.25, standardize=False)
    0.16666666666666666
    >>> round(partial_auc(y, s, max_fpr=0.25), 4)
    0.8095
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return partial_auc_of(ranked, max_fpr, min_fpr, min_tpr, standardize)


def partial_auc_of(
    ranked: RankedList,
    max_fpr: float | None = None,
    min_fpr: float = 0.0,
    min_tpr: float | None = None,
    standardize: bool = True,
) -> float:
    """`partial_auc` of a ranked list."""
    part = part_of_curve(max_fpr, min_fpr, min_tpr)
    start, stop = part.start, part.stop
    first = np.searchsorted(ranked.passed, start * ranked.negatives * (1 - 1e-12), side="right")
    last = np.searchsorted(ranked.passed, stop * ranked.negatives * (1 + 1e-12), side="left")

    def area_above(ties: slice) -> float:
        points = slice(ties.start, ties.stop + 1)
        passed, found = ranked.passed[points], ranked.found[points]
        left, right = (float(passed[at]) / ranked.negatives for at in (0, -1))
        if ranked.exact and part.floor == 0 and start <= left and right <= stop:
            twice = np.dot(np.diff(passed), found[1:] + found[:-1])
            return float(twice) / (2 * ranked.negatives * ranked.positives)
        fpr, tpr = passed / ranked.negatives, found / ranked.positives
        return _area_above(fpr, tpr, start, stop, part.floor)

    area = ranked.sum_over_ties(area_above, range(max(0, int(first) - 1), int(last)))
    return part.standardize(area) if standardize else area


def partial_auc_of_orders(
    labels: NDArray[np.bool_],
    max_fpr: float | None = None,
    min_fpr: float = 0.0,
    min_tpr: float | None = None,
    standardize: bool = True,
) -> FloatArray:
    """`partial_auc`, up to a constant, of many lists without ties, one list per row."""
    part = part_of_curve(max_fpr, min_fpr, min_tpr)
    scale = 0.5 / (part.best - part.chance) if standardize else 1.0
    found, passed = np.cumsum(labels, axis=1), np.cumsum(~labels, axis=1)
    rate, before = passed / passed[:, -1:], (passed - 1) / passed[:, -1:]
    width = np.clip(rate, part.start, part.stop) - np.clip(before, part.start, part.stop)
    height = np.maximum(found / found[:, -1:] - part.floor, 0.0)
    return np.asarray(scale * np.sum(~labels * width * height, axis=1))


def _area_above(fpr: FloatArray, tpr: FloatArray, start: float, stop: float, floor: float) -> float:
    """Area between a non-decreasing polygon and the line tpr = floor, from start to stop."""
    kept = members_of((fpr[1:] > fpr[:-1]) & (fpr[1:] > start) & (fpr[:-1] < stop))
    first, last, before, after = (at[kept] for at in (fpr[:-1], fpr[1:], tpr[:-1], tpr[1:]))
    left, right = np.clip(first, start, stop), np.clip(last, start, stop)
    run, rise = last - first, after - before
    low = before + rise * (left - first) / run - floor
    high = before + rise * (right - first) / run - floor
    width = right - left
    # a segment that crosses the floor leaves a triangle above it
    crossing = (low < 0) & (high > 0)
    triangle = np.divide(high * high, high - low, out=np.zeros_like(high), where=crossing)
    twice = np.where(crossing, triangle, np.maximum(low + high, 0.0))
    return float(np.dot(width, twice)) / 2


@dataclass(frozen=True)
class PartOfCurve:
    """False positive rates from start to stop, above the true positive rate floor."""

    start: float
    stop: float
    floor: float

    @property
    def best(self) -> float:
        """Area of perfect scores."""
        return (self.stop - self.start) * (1 - self.floor)

    @property
    def chance(self) -> float:
        """Area of random scores."""
        left, right = max(self.start - self.floor, 0.0), max(self.stop - self.floor, 0.0)
        return (right - left) * (right + left) / 2

    def standardize(self, area: float) -> float:
        """The area on McClish's scale: one half for random scores, 1 for perfect ones."""
        return 0.5 * (1 + (area - self.chance) / (self.best - self.chance))


def part_of_curve(max_fpr: float | None, min_fpr: float, min_tpr: float | None) -> PartOfCurve:
    """The part that the rates a, b and t leave, or ValueError saying which of them cannot be."""
    stop = 1.0 if max_fpr is None else max_fpr
    floor = 0.0 if min_tpr is None else min_tpr
    _check_rate("max_fpr", stop)
    _check_rate("min_fpr", min_fpr)
    _check_rate("min_tpr", floor)
    if stop == 0:
        raise ValueError("max_fpr=0 leaves no area: expected a rate in (0, 1].")
    if min_fpr >= stop:
        raise ValueError(f"min_fpr={min_fpr:g} must be less than max_fpr={stop:g}.")
    for name, rate in (("min_fpr", min_fpr), ("min_tpr", floor)):
        if rate > _LAST_RATE:
            raise ValueError(
                f"{name}={rate!r} leaves an area too small to compute: expected a rate "
                f"up to {_LAST_RATE}."
            )
    return PartOfCurve(float(min_fpr), float(stop), float(floor))


def _check_rate(name: str, rate: float) -> None:
    if not (is_number(rate) and 0 <= rate <= 1):
        raise ValueError(f"{name}={rate!r} is not a rate: expected a number from 0 to 1.")
