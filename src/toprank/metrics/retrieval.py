"""Measures of information retrieval and of screening: discounted sums over the positives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, expi

from toprank._arrays import BoolArray
from toprank._extras import require
from toprank._numerics import FloatArray, is_number
from toprank.blocks.tensors import OnDevice
from toprank.metrics.order import RankedList, members_of

_PLACES = np.arange(4097.0)
_SUMS = np.concatenate(([0.0], np.cumsum(1 / np.log1p(_PLACES[1:]))))
_LAST = len(_SUMS) - 1
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(9)


def dcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
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
    # no digit of 1 + a whole number is lost, and its logarithm takes half the time
    log = (lambda place: np.log(place + 1.0)) if ranked.exact else np.log1p

    def gain(ties: slice) -> float:
        positive = ranked.positive[ties]
        held = members_of(positive > 0)
        return float(np.sum(positive[held] / log(ranked.places[1:][ties][held])))

    return ranked.sum_over_places(lambda place: 1.0 / log(place), gain)


def dcg_of_resample(ranked: RankedList, alone: BoolArray) -> float:
    """`dcg` with the copies of a row in places of their own, not tied at the last of them."""
    return _in_places(ranked, alone, discount_within, discount_of_places)


def discount_of_places(places: FloatArray) -> FloatArray:
    """What a positive at each place adds to `dcg`."""
    return np.asarray(1.0 / np.log1p(places))


def aver(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
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
    places = ranked.places[1:]
    return ranked.sum_over_places(
        lambda place: 1.0 / place,
        lambda ties: float(np.sum(ranked.positive[ties] / places[ties])),
    )


def aver_of_resample(ranked: RankedList, alone: BoolArray) -> float:
    """`aver` with the copies of a row in places of their own, not tied at the last of them."""

    def within(above: FloatArray, width: FloatArray) -> FloatArray:
        return np.asarray(digamma(above + width + 1) - digamma(above + 1))

    return _in_places(ranked, alone, within, np.reciprocal)


def _in_places(
    ranked: RankedList,
    alone: BoolArray,
    within: Callable[[FloatArray, FloatArray], FloatArray],
    discount: Callable[[FloatArray], FloatArray],
) -> float:
    """The sum over positives of a discount, which `within` sums over a width below some place.

    Rows that were tied before they were drawn stay so, all of them at the last of their places.
    """
    held = np.flatnonzero(ranked.positive)
    positive, above = ranked.positive[held], ranked.places[:-1][held]
    in_tie = positive + ranked.negative[held]
    of_each = discount(ranked.places[1:][held])
    apart = alone[held]
    of_each[apart] = within(above[apart], in_tie[apart]) / in_tie[apart]
    return float(np.dot(positive, of_each))


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
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
    found, places = ranked.found[1:], ranked.places[1:]
    summed = ranked.sum_over_ties(
        lambda ties: np.dot(ranked.positive[ties], found[ties] / places[ties])
    )
    return min(1.0, summed / ranked.positives)


def precision_of_places(places: FloatArray) -> FloatArray:
    """The precision at each positive, whose mean is `average_precision`; see `Swaps`."""
    return np.arange(1, places.shape[1] + 1) / places


def bedroc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    alpha: float = 20.0,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
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
    if isinstance(ranked.positive, OnDevice):
        of_ties = ranked.places[:-1], ranked.positive, ranked.negative, ranked.negatives_below
        above, high, low, below = (decay * (column / total) for column in of_ties)
        led = _discount_sum(high) * _discount_sum(below) * np.exp(-low) + _led_in_tie(high, low)
        gained = float(np.sum(np.exp(-above) * led))
    else:
        gained = _gained_by_all(ranked, decay)
    most = _discount_sum(decay * ranked.positives / total) * _discount_sum(
        decay * ranked.negatives / total
    )
    return float(np.clip(gained / most, 0.0, 1.0))


def _gained_by_all(ranked: RankedList, decay: float) -> float:
    """The sum of the discounts of all positives, less that of the worst order.

    Of rows that count once, in ties of one class, the sum of the worst order is known. Where it is
    at most half of the other, no more than a digit of the difference is lost. Short lists are
    summed with care: the best order has exactly 1.
    """
    if ranked.sums_of_places.known and not ranked.tied:
        rate = decay / ranked.total
        worst = np.exp(-rate * ranked.negatives) * _discount_sum(rate * ranked.positives)
        first = -np.expm1(-rate)
        summed = ranked.sum_over_places(
            lambda place: first * np.exp(-rate * (place - 1.0)),
            lambda ties: _discounts(ranked, ties, rate),
        )
        if worst <= summed / 2:
            return float(summed - worst)
    return ranked.sum_over_ties(lambda ties: _gained(ranked, ties, decay))


def _discounts(ranked: RankedList, ties: slice, rate: float) -> float:
    """The sum of the discounts of some ties' positives, which stand in no tie with negatives."""
    held = ranked.with_positives(ties)
    above, high = (
        column[ties].take(held) * rate for column in (ranked.places[:-1], ranked.positive)
    )
    return float(np.dot(_discount_sum(high), np.exp(-above)))


def _gained(ranked: RankedList, ties: slice, decay: float) -> float:
    """The sum of the discounts of some ties' positives, less that of the worst order.

    They are geometric sums over the places of each tie; as a sum over the negatives that a
    positive leads, nothing cancels.
    """
    held = ranked.with_positives(ties)  # ties without positives lead nothing

    def lengths(column: FloatArray) -> FloatArray:
        taken = column.take(held)
        taken /= ranked.total
        taken *= decay
        return taken

    above, high = lengths(ranked.places[:-1][ties]), lengths(ranked.positive[ties])
    led = _discounts_of_descending(lengths(ranked.negatives_below_of(ties)))
    # one number where all ties hold as many positives
    alike = len(high) > 0 and np.min(high) == np.max(high)
    led *= _discount_sum(float(high[0]) if alike else high)
    if not ranked.exact or ranked.tied:  # some ties have both
        low = lengths(ranked.negative[ties])
        mixed = np.flatnonzero(low)
        led[mixed] *= np.exp(-low[mixed])
        led[mixed] += _led_in_tie(high[mixed], low[mixed])
    np.negative(above, out=above)
    return float(np.dot(np.exp(above, out=above), led))


def _discounts_of_descending(lengths: FloatArray) -> FloatArray:
    """`_discount_sum` of lengths that descend, which are overwritten: exp takes half the time."""
    far = len(lengths) - int(np.searchsorted(lengths[::-1], 1.0))
    long, short = lengths[:far], lengths[far:]
    np.negative(lengths, out=lengths)
    np.subtract(1.0, np.exp(long, out=long), out=long)
    np.negative(np.expm1(short, out=short), out=short)
    return lengths


def _discount_sum(length: OnDevice | FloatArray | float) -> OnDevice | FloatArray | float:
    """Sum of the discounts e^-x over this length, 1 - e^-length."""
    return -np.expm1(-length)


def _led_in_tie(high: OnDevice | FloatArray, low: OnDevice | FloatArray) -> OnDevice | FloatArray:
    r"""What the positives of a tie gain over its own negatives, under random orders.

    .. math:: (1 - e^{-n}) - \frac{n}{m + n} (1 - e^{-(m+n)})

    for positives of length m and negatives of length n. Of long ties one of two forms cancels
    least; of short ones the series does not.
    """
    length = high + low
    with np.errstate(invalid="ignore"):  # weights whose share of the list is below every float
        few_low = _discount_sum(low) - low / length * _discount_sum(length)
        few_high = high / length * _discount_sum(length) - np.exp(-low) * _discount_sum(high)
    m, n = np.minimum(high, 1.0), np.minimum(low, 1.0)
    powers, series, factor = np.ones_like(m), np.zeros_like(m), 0.5
    for k in range(2, 22):
        series = series + factor * powers
        powers = (m + n) * powers + n ** (k - 1)
        factor /= -(k + 1)
    return np.where(length < 1, m * n * series, np.where(low <= high, few_low, few_high))


def summed_discount(depth: ArrayLike) -> FloatArray:
    r"""The sum of 1 / ln(1 + r) over the places r = 1, ..., depth; between whole depths, linear."""
    return np.asarray(discount_within(np.zeros_like(depth, dtype=np.float64), depth))


def discount_within(above: Any, width: Any) -> Any:
    """The discounts of `width` units of weight that stand below `above` units.

    The discount of a place is spread evenly over its unit. It is not the difference of two sums
    from the top, in which a light tie below heavy ones would be lost.
    """
    if isinstance(above, OnDevice):
        return _summed_on_device(above + width) - _summed_on_device(above)
    place = np.floor(above) + 1.0
    head = np.minimum(width, place - above)
    rest = width - head
    count = np.floor(rest)
    summed = head / np.log(place + 1.0)
    part = rest - count
    cut = np.flatnonzero(part)
    summed[cut] += part[cut] / np.log(place[cut] + count[cut] + 2.0)
    several = np.flatnonzero(count > 0)
    summed[several] += _of_places(place[several], count[several])
    return summed


def _of_places(above: FloatArray, count: FloatArray) -> FloatArray:
    """The discounts of so many whole places below the first `above`, from a table or beyond it."""
    first, last = (np.minimum(at, _LAST).astype(np.intp) for at in (above, above + count))
    start = np.maximum(above, _LAST)
    beyond = count - (last - first)
    summed = _SUMS[last] - _SUMS[first]
    far = np.flatnonzero(beyond > 0)
    summed[far] += _beyond(start[far], beyond[far])
    return summed


def _beyond(above: FloatArray, count: FloatArray) -> FloatArray:
    """The Euler-Maclaurin formula; the first term left out is below 1e-14.

    Its integral is one of the logarithmic integral li(1 + place), by quadrature where the two
    ends are close.
    """
    last = above + count
    near = count < 0.5 * above
    half = count[near, None] / 2
    integral = expi(np.log1p(last)) - expi(np.log1p(above))
    nodes = above[near, None] + half * (1 + _NODES)
    integral[near] = np.sum(half * _NODE_WEIGHTS / np.log1p(nodes), axis=1)
    return np.asarray(integral + _correction(last) - _correction(above))


def _correction(place: FloatArray) -> FloatArray:
    """Half of a term and a twelfth of its slope."""
    log = np.log1p(place)
    return np.asarray(1 / (2 * log) - 1 / (12 * (1 + place) * log**2))


def _summed_on_device(depth: OnDevice) -> OnDevice:
    """The sum of 1 / ln(1 + r) over the places r = 1, ..., depth, from a table of every place."""
    torch = require("torch", "torch")
    last = depth.tensor.ceil().max()
    places = torch.arange(1, int(last) + 1, dtype=torch.float64, device=depth.tensor.device)
    sums = torch.cat([places.new_zeros(1), (1.0 / places.log1p()).cumsum(0)])
    below = depth.tensor.floor()
    at = below.long()
    share = depth.tensor - below
    return OnDevice(sums[at] + share * (sums[depth.tensor.ceil().long()] - sums[at]))
