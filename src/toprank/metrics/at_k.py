"""The first rows of the list: how many of them are positive, and how many positives lead it.

One tie rule for every metric "at k": rows of equal score stand in random order, and the metric
is the exact expectation over that order, computed, not simulated. A weight is a repetition
count, so a list is made of units of weight, and the units of tied rows are what is shuffled.

One group rule: with ``groups`` each group is a list of its own, and the metric is the plain mean
over the groups that have a positive. A group without positives is left out, because no ranker
can do well or badly there; a group shorter than a count k is taken whole.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.blocks.tensors import OnDevice
from toprank.metrics.lists import Lists
from toprank.metrics.order import RankedList
from toprank.metrics.retrieval import discount_within, summed_discount
from toprank.metrics.sorted_classes import blocks_of


def precision_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
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
    groups : array-like of shape (n,), optional
        The list (a day, a query) each row belongs to. The metric is then the mean over the
        groups that have a positive; a group shorter than a count k is taken whole, and k is
        its length.
    sample_weight : array-like of shape (n,), optional
        Repetition counts. A count k then asks for k units of weight, a fraction for that
        fraction of the total weight, rounded up to whole units if every weight is whole and
        taken as it is if not.
    label_propensity : float or array-like of shape (n,), optional
        Probability in (0, 1] that the row's label was seen; each weight is divided by it, so
        that the labelled rows stand for all rows, and k counts those.
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
    >>> precision_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 1, groups=["a", "a", "b", "b"])
    0.5
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(precision_at_each(lists, k)))


def precision_at_each(lists: Lists, k: int | float) -> FloatArray:
    """`precision_at` of each ranked list that has a positive."""
    sizes = lists.sizes(k)
    return lists.share(lists.hits(sizes), sizes)


def recall_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Recall at k: the share of the positives that are among the first k rows.

    .. math::
        \mathrm{R@}k = \frac{1}{W_+}\, \mathbb{E}\Big[\sum_{i\ \text{positive}}
        w_i\, 1[\mathrm{rank}(i) \le k]\Big]

    Parameters
    ----------
    y_true, y_score, k, groups, sample_weight, label_propensity, pos_label
        As in `precision_at`.

    Returns
    -------
    float
        The expected recall, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import recall_at
    >>> recall_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 2)
    0.5
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(recall_at_each(lists, k)))


def recall_at_each(lists: Lists, k: int | float) -> FloatArray:
    """`recall_at` of each ranked list that has a positive."""
    return lists.share(lists.hits(lists.sizes(k)), lists.positives)


def lift_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Lift at k: precision at k divided by the share of positives in the whole list.

    .. math:: \mathrm{lift@}k = \mathrm{P@}k \Big/ \frac{W_+}{W_+ + W_-}

    Parameters
    ----------
    y_true, y_score, k, groups, sample_weight, label_propensity, pos_label
        As in `precision_at`.

    Returns
    -------
    float
        The expected lift; 1 for random scores.

    Examples
    --------
    >>> from toprank.metrics import lift_at
    >>> lift_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 1)
    2.0
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(lift_at_each(lists, k)))


def lift_at_each(lists: Lists, k: int | float) -> FloatArray:
    """`lift_at` of each ranked list that has a positive."""
    sizes = lists.sizes(k)
    return lists.each(lists.hits(sizes) * lists.totals, sizes * lists.positives)


def enrichment_factor(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Enrichment factor: positives found early, against those expected by chance.

    .. math::
        \mathrm{EF}(\chi) = \frac{1}{\chi\, n_+}\, \mathbb{E}\Big[\sum_{i\ \text{positive}}
        1[\mathrm{rank}(i) \le \chi n]\Big]

    for the fraction chi of the list (Truchon & Bayly 2007), or chi = k / n for a count
    k. It differs from `lift_at` in that only rows wholly within the fraction count, and the
    fraction itself is what is divided by: the largest value is 1 / chi. A fraction of less than
    one row holds none, and its factor is 0.

    Parameters
    ----------
    y_true, y_score, k, groups, sample_weight, label_propensity, pos_label
        As in `precision_at`.

    Returns
    -------
    float
        The expected factor; 1 for random scores, where chi n is whole.

    Examples
    --------
    >>> from toprank.metrics import enrichment_factor
    >>> enrichment_factor([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 0.25)
    2.0
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(enrichment_factor_each(lists, k)))


def enrichment_factor_each(lists: Lists, k: int | float) -> FloatArray:
    """`enrichment_factor` of each ranked list that has a positive."""
    sizes = lists.sizes(k, rounding="down")
    asked = float(k) * lists.totals if isinstance(k, float) else sizes
    return lists.each(lists.hits(sizes) * lists.totals, asked * lists.positives)


def ndcg_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | float,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Normalised discounted cumulative gain at k.

    .. math::
        \mathrm{nDCG@}k = \mathbb{E}\bigg[\sum_{i\ \text{positive}}
        \frac{1[\mathrm{rank}(i) \le k]}{\ln(1 + \mathrm{rank}(i))}\bigg] \Big/
        \sum_{r=1}^{\min(k, W_+)} \frac{1}{\ln(1 + r)}

    The base of the logarithm cancels, so this equals ``sklearn.metrics.ndcg_score``. Where
    weights are not whole, the discount of a place is spread evenly over its unit of weight.

    Parameters
    ----------
    y_true, y_score, k, groups, sample_weight, label_propensity, pos_label
        As in `precision_at`.

    Returns
    -------
    float
        The expected gain, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import ndcg_at
    >>> round(ndcg_at([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8], 4), 6)
    0.919721
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(ndcg_at_each(lists, k)))


def ndcg_at_each(lists: Lists, k: int | float) -> FloatArray:
    """`ndcg_at` of each ranked list that has a positive."""
    sizes = lists.sizes(k)
    ranked = lists.ranked
    cut = lists.tie_at_cut(sizes)
    if ranked is not None and ranked.sums_of_places.known and not ranked.tied:
        gained = _discounted(lists, sizes, cut) + ranked.sum_over_places(
            lambda place: 1.0 / np.log(place + 1.0),
            lambda ties: float(np.sum(_discounted(lists, sizes, ties))),
            cut.start,
        )
    else:
        ties = lists.ties_within(sizes)
        gained = lists.per_list(_discounted(lists, sizes, ties), ties)
    return lists.share(gained, summed_discount(np.minimum(sizes, lists.positives)))


def _discounted(lists: Lists, sizes: FloatArray, ties: slice) -> FloatArray:
    """What the positives of each tie gain within the first `sizes` units of their list."""
    positive, above, weight = lists.positive[ties], lists.above[ties], lists.weight[ties]
    if isinstance(above, OnDevice):
        return positive / weight * discount_within(above, weight * lists.kept(sizes, ties))
    gained = np.zeros_like(above)
    first = ties.indices(len(lists.above))[0]
    for part in blocks_of(range(len(above))):
        held = np.flatnonzero(positive[part] > 0)  # ties without positives gain nothing
        share = lists.kept(sizes, slice(first + part.start, first + part.stop))[held]
        mass = weight[part][held]
        within = discount_within(above[part][held], mass * share)
        gained[part][held] = positive[part][held] / mass * within
    return gained


def top_is_positive(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Winner takes all: the chance that the first row of the list is positive.

    .. math:: \mathrm{WTA} = \mathbb{E}\big[1[\text{the row of rank 1 is positive}]\big]

    which is the share of positives among the rows of the highest score.

    Parameters
    ----------
    y_true, y_score, groups, sample_weight, label_propensity, pos_label
        As in `precision_at`.

    Returns
    -------
    float
        The expectation: 0 or 1, or between them where the first place is tied.

    Examples
    --------
    >>> from toprank.metrics import top_is_positive
    >>> top_is_positive([0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8])
    1.0
    """
    lists = Lists.of(y_true, y_score, groups, sample_weight, label_propensity, pos_label)
    return float(np.mean(top_is_positive_each(lists)))


def top_is_positive_each(lists: Lists) -> FloatArray:
    """`top_is_positive` of each ranked list that has a positive."""
    if lists.count == 1:
        return lists.each(lists.positive[:1], lists.weight[:1])
    top = np.searchsorted(lists.owner, np.arange(lists.count))
    return lists.each(lists.positive[top], lists.weight[top])


def positives_at_top(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    normalize: bool = True,
    negatives: int = 1,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Positives at the absolute top: the share of positives ranked above every negative.

    .. math::
        \frac{1}{W_+} \sum_i w_i\, 1\big[f_i > \max_k f_k\big]

    over positives i of total weight W+ and negatives k of positive weight. A positive that ties
    with the highest negative does not count.

    One row decides this metric. With ``negatives=m`` it is the mean of the shares above each of
    the m highest negatives, which hangs on none of them alone. Rankers that choose a setting by
    this metric compare by ``negatives=5``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
    normalize : bool, default=True
        Divide by W+. If False, return the number (or weight) of such positives.
    negatives : int, default=1
        How many of the highest negatives, by weight; all of them if there are fewer. With 1 it is
        the highest one, whatever it weighs.
    sample_weight : array-like of shape (n,), optional
        Repetition counts; a negative of weight zero is absent.
    label_propensity : float or array-like of shape (n,), optional
        Probability in (0, 1] that the row's label was seen; each weight is divided by it.
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
    >>> positives_at_top([1, 0, 1, 0], [4, 3, 2, 1], negatives=2)
    0.75
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return positives_at_top_of(ranked, normalize, negatives)


def positives_at_top_of(ranked: RankedList, normalize: bool = True, negatives: int = 1) -> float:
    """`positives_at_top` of a ranked list."""
    if not isinstance(negatives, Integral) or negatives < 1:
        raise ValueError(f"negatives={negatives!r}: expected a whole number from 1 up.")
    if negatives == 1:
        above = float(ranked.found[ranked.first_negative])
    else:
        counted = np.clip(negatives - ranked.passed[:-1], 0.0, ranked.negative)
        above = float(np.dot(counted, ranked.found[:-1]) / counted.sum())
    return above / ranked.positives if normalize else above
