"""What acting on the first k rows is worth, and how far down the list to act."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.metrics._inputs import check_amounts, check_ranking
from toprank.metrics.at_cut import depth_of, kept, rows_around
from toprank.metrics.lists import Lists, group_codes
from toprank.metrics.order import RankedList


def value_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    benefit: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Value at k: the benefits of the positives among the first k rows, less the cost of all k.

    .. math::
        V(k) = \mathbb{E}\Big[\sum_{j:\, \mathrm{rank}(j) \le k}
        \big(\mathrm{benefit}_j\, 1[j\ \text{positive}] - \mathrm{cost}_j\big)\Big]

    with the expectation over random orders of tied rows.

    Parameters
    ----------
    y_true, y_score, k, sample_weight, label_propensity, pos_label
        As in `precision_at`.
    benefit : float or array-like of shape (n,), default=1.0
        Gained when the row is acted on and is positive. Amounts of negatives are not read.
    cost : float or array-like of shape (n,), default=0.0
        Spent when the row is acted on.
    groups : array-like of shape (n,), optional
        The list each row belongs to. The value is then the mean over all groups, those without
        positives included, because acting on them costs; a group shorter than a count k is
        taken whole.

    Returns
    -------
    float
        The expected value.

    Examples
    --------
    >>> from toprank.metrics import value_at
    >>> value_at([1, 0, 1, 0], [4, 3, 2, 1], 3, benefit=[10, 0, 20, 0], cost=4)
    18.0
    """
    values = value_each(
        y_true,
        y_score,
        k,
        benefit=benefit,
        cost=cost,
        groups=groups,
        sample_weight=sample_weight,
        label_propensity=label_propensity,
        pos_label=pos_label,
    )
    return float(np.mean(values))


def value_each(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    benefit: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> FloatArray:
    """The value at k of each group; `value_at` is their mean."""
    lists = _rank_values(
        y_true, y_score, benefit, cost, groups, sample_weight, label_propensity, pos_label
    )
    return lists.per_list(lists.amount * lists.kept(lists.sizes(k)))


def best_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    benefit: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> int | float:
    r"""The k at which `value_at` is largest.

    .. math:: k^* = \min\ \arg\max_{k \ge 0} V(k), \qquad V(0) = 0

    The expected value is linear within a tie, so the best cut is at the end of a tie, or at 0 if
    acting on any part of the list loses. Chosen on the same rows it is measured on, V(k*) is
    optimistic; choose k on one sample and report `value_at` on another.

    Parameters
    ----------
    y_true, y_score, benefit, cost, sample_weight, label_propensity, pos_label
        As in `value_at`.
    groups : array-like of shape (n,), optional
        The list each row belongs to. One k serves all lists: the count that maximises the mean
        over all groups of the value at k, where a group shorter than k is taken whole.

    Returns
    -------
    int or float
        The smallest best count, up to rounding error of its value; a float if the weights are
        not whole numbers.

    Examples
    --------
    >>> from toprank.metrics import best_k
    >>> best_k([1, 0, 1, 0], [4, 3, 2, 1], benefit=[10, 0, 20, 0], cost=4)
    3
    >>> best_k([1, 0, 1, 0], [4, 3, 2, 1], benefit=3, cost=4)
    0
    >>> best_k([1, 0, 1, 0], [4, 3, 2, 1], benefit=3, cost=1, groups=["a", "a", "b", "b"])
    1
    """
    lists = _rank_values(
        y_true, y_score, benefit, cost, groups, sample_weight, label_propensity, pos_label
    )
    depths, values = _values_at_ends(lists)
    rounding = 1e-12 * float(np.sum(np.abs(lists.amount)))
    depth = float(depths[np.argmax(values >= np.max(values) - rounding)])
    return round(depth) if lists.whole else depth


def _values_at_ends(lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Depths at which some tie of some list ends, 0 first, and the summed value at each.

    A tie that began at depth a, and is not over at depth d, has earned (d - a) times its rate.
    """
    ends = lists.above + lists.weight
    rate = lists.amount / lists.weight
    depths = np.unique(np.append(0.0, ends))

    def summed(at: FloatArray, amounts: FloatArray) -> FloatArray:
        """Sum of the amounts that are at most as deep as each depth."""
        place = np.searchsorted(depths, at)
        return np.cumsum(np.bincount(place, weights=amounts, minlength=len(depths)))

    over = summed(ends, lists.amount)
    if lists.count == 1:
        return depths, over
    running = summed(lists.above, rate) - summed(ends, rate)
    begun = summed(lists.above, rate * lists.above) - summed(ends, rate * lists.above)
    return depths, over + running * depths - begun


def _rank_values(
    y_true: ArrayLike,
    y_score: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
    pos_label: object,
) -> Lists:
    """The ranked lists with the value of each tie as their amount."""
    checked = check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity)
    codes = group_codes(groups, len(checked[1]))
    return Lists.by_rows(*checked, codes, worth_of_rows(checked[0], benefit=benefit, cost=cost))


def pulls_of_rows(
    ranked: RankedList,
    ties: IntArray,
    weight: FloatArray,
    worth: FloatArray,
    k: int | float,
    **_: object,
) -> FloatArray:
    """How far a unit of weight of each row moves `value_at`, up to a constant.

    A row above the cut adds its worth, and moves a row at the cut below it, which is worth the mean
    of the rows around the cut. The mean of all rows counts there as one row more.
    """
    depth = depth_of(ranked, k)
    summed = np.append(0.0, np.cumsum(np.bincount(ties, weight * worth)))
    first, last = rows_around(ranked, depth)
    within = np.diff(np.interp([first, last], ranked.places, summed))[0]
    at_cut = (within + summed[-1] / ranked.total) / (last - first + 1)
    return np.asarray(kept(ranked, depth)[ties] * (worth - at_cut))


def worth_of_rows(
    positive: NDArray[np.bool_],
    k: int | float | None = None,
    benefit: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
) -> FloatArray:
    """What acting on each row is worth, whatever the k."""
    gain = np.where(positive, check_amounts("benefit", benefit, len(positive)), 0.0)
    return gain - check_amounts("cost", cost, len(positive))
