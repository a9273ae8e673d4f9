"""The paper's own yardsticks: heights, and the risk R_{g,l}."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray, is_number, log_of, log_sum_exp
from toprank.blocks.tensors import OnDevice, unwrap
from toprank.losses import Loss, get_loss
from toprank.metrics._inputs import check_ranking
from toprank.metrics.margins import check_margin
from toprank.metrics.order import RankedList, members_of
from toprank.objective import PushObjective
from toprank.pair_sums import pair_sum
from toprank.pairs import BALANCES, Sides, orient
from toprank.prices import Max, Price, get_price

if TYPE_CHECKING:
    from torch import Tensor

#: Multiples of margins up to this one are floats.
_LARGEST_SCORE = 1e100
#: Powers of two up to this one are taken by squaring, which rounds by so many units at the most.
_MOST_SQUARED = 64
#: Up to this size of the scores a margin of one, where a hinge has its knot, is not rounded away.
_LARGEST_HINGED = 1e12


def push_risk(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    price: str | Price | tuple[object, ...] = "power",
    p: float = 1.0,
    loss: str | Loss | tuple[object, ...] = "exponential",
    end: str = "top",
    balance: float = 1.0,
    balance_of: str = "means",
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
    log: bool = False,
) -> float:
    r"""The risk of ranking with a push, in linear time.

    .. math::
        R_{g,\ell}(f) = \sum_k w_k\, g\Big(\sum_i w_i\, \ell(f_i - f_k)\Big)

    over negatives k and positives i (Rudin 2009, Section 2). ``end="bottom"`` sums over the
    positives instead, and the price "log1p" does so by itself (IR Push, equation 2).
    ``end="both"`` weighs the two ends as :class:`toprank.PushRanker` does: for the prices
    "power", "identity" and "max" each end is first divided by its largest possible count, R_top by
    K I^p and R_bottom by I K^p (I positives, K negatives, by weight), and the sum is given on the
    scale of R_top. With the price "max" it is the larger of both: balance, whose p-th root counts,
    has no say in the limit.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top. At most 1e100 in size, or 1e12 for a loss with
        a knot (the hinges): beyond that a margin of one is lost in rounding.
    price : {"power", "identity", "exponential", "log1p", "max"}, Price or callables
        The price g; "max" is the largest height.
    p : float, default=1.0
        The power of the price "power"; infinity is "max".
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "zero_one"}, Loss or callables
        The loss l of a pair. "zero_one" counts a tie as a misrank.
    end : {"top", "bottom", "both"}, default="top"
        Which end of the list is priced.
    balance : float, default=1.0
        Weight of the bottom for ``end="both"``.
    balance_of : {"means", "sums"}, default="means"
        What ``balance`` weighs: means, as above, or the sums as they are, R_top + balance *
        R_bottom (Rudin 2009, Section 7).
    sample_weight : array-like of shape (n,), optional
        Repetition counts.
    label_propensity : float or array-like of shape (n,), optional
        Probability in (0, 1] that the row's label was seen; each weight is divided by it.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    log : bool, default=False
        Return log R, which is finite where R overflows.

    Returns
    -------
    float
        R, or log R; infinity where it exceeds the largest float.

    Examples
    --------
    >>> from toprank.metrics import push_risk
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> push_risk(y, [1, 2, 3, 4, 5, 6, 7, 8], p=4, loss="zero_one")  # Rudin 2009, Table 1
    33.0
    """
    positive, scores, weight = check_ranking(
        y_true, y_score, sample_weight, pos_label, label_propensity
    )
    _check_balance(balance, balance_of)
    g, of_margin = get_price(price, p), get_loss(loss)
    check_margins(scores, of_margin)
    sides = orient(positive, weight, end=end, outer=g.outer)
    of_means = end == "both" and g.homogeneous and balance_of == "means"
    ends = tuple(side.normalise() for side in sides) if of_means else sides
    log_risk = PushObjective(ends, g, of_margin, balance).log_risk(scores)
    if of_means:
        log_risk += _log_size(sides[0], g)
    if log:
        return log_risk
    with np.errstate(over="ignore"):
        return _whole_if_counted(float(np.exp(log_risk)), loss, weight)


def _log_size(side: Sides, price: Price) -> float:
    """Return log of the largest 0-1 risk of one end: K I^p, or I for the highest height."""
    log_inner = float(np.log(side.total_inner_weight))
    if isinstance(price, Max):
        return log_inner
    return side.log_total_outer_weight + float(getattr(price, "p", 1.0)) * log_inner


def _check_balance(balance: float, balance_of: str) -> None:
    if balance_of not in BALANCES:
        raise ValueError(f"Unknown balance_of={balance_of!r}: expected one of {list(BALANCES)}.")
    if not 0 <= balance < np.inf:
        raise ValueError(
            f"balance={balance!r} cannot weigh the bottom against the top: expected a number >= 0. "
            "Use 0 for the top alone and 1 for both ends alike."
        )


def check_margins(scores: FloatArray, loss: Loss) -> None:
    """Raise ValueError where margins are too large for their losses to be right."""
    largest = float(np.max(np.abs(scores)))
    limit = _LARGEST_HINGED if any(knot for knot, _ in loss.pieces) else _LARGEST_SCORE
    if largest > limit:
        raise ValueError(
            f"y_score is as large as {largest:g}, expected scores up to {limit:g}, of whose "
            "margins this loss can be computed: subtract a constant from the scores, or divide "
            "them by one."
        )


def _whole_if_counted(risk: float, loss: object, weight: FloatArray | None) -> float:
    """Undo the rounding of exp(log R) where R is a whole number: unweighted 0-1 counts."""
    whole = loss == "zero_one" and weight is None and risk < 2**52
    return float(round(risk)) if whole and abs(risk - round(risk)) < 1e-9 * max(1, risk) else risk


def pnorm_risk(
    y_true: ArrayLike,
    y_score: ArrayLike,
    p: float,
    *,
    normalize: bool = False,
    margin: float = 0.0,
    log: bool = False,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""The p-norm risk of the heights: what the P-Norm Push makes small.

    .. math::
        R_{p,1}(f) = \sum_k w_k \Big(\sum_i w_i\, 1[f_i - f_k \le \theta]\Big)^p

    (Rudin 2009, Section 2, where theta = 0), or with ``normalize=True`` its Section 4,

    .. math::
        \bigg(\frac{1}{W_-} \sum_k w_k \Big(\frac{1}{W_+} \sum_i w_i\,
        1[f_i - f_k \le \theta]\Big)^p\bigg)^{1/p}

    A tie is a misrank. The pairs are compared as f_i <= f_k + theta.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    p : float
        The power, at least 1. Infinity gives the largest height.
    normalize : bool, default=False
        Return the normalised form, from 0 to 1.
    margin : float, default=0.0
        The margin theta by which a positive has to lead.
    log : bool, default=False
        Return the logarithm, which is finite where the sum overflows; minus infinity if no
        pair is misranked.

    Returns
    -------
    float
        The risk or its logarithm; infinity where the sum exceeds the largest float.

    Examples
    --------
    >>> from toprank.metrics import pnorm_risk
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> pnorm_risk(y, [1, 2, 3, 4, 5, 6, 7, 8], 4)  # Rudin 2009, Table 1
    33.0
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return pnorm_risk_of(ranked, p, normalize=normalize, margin=margin, log=log)


def pnorm_risk_of(
    ranked: RankedList,
    p: float,
    normalize: bool = False,
    margin: float = 0.0,
    log: bool = False,
) -> float:
    """`pnorm_risk` of a ranked list."""
    if not (is_number(p) and p >= 1):
        raise ValueError(f"p={p!r} is not a power: expected a number >= 1.")
    check_margin("margin", margin)
    if p == np.inf:
        held = ranked.negative > 0  # where there is none, an infinite power would count as NaN
        value = float(np.max(ranked.heights_within(margin)[held]))
        value = value / ranked.positives if normalize else value
        return float(log_of(np.array(value))) if log else value
    with np.errstate(over="ignore"):
        if normalize or log:
            value = _log_pnorm(ranked, p, margin, normalize)
            return value if log else min(1.0, float(np.exp(value)))
        held = ranked.negative > 0
        heights = ranked.heights_within(margin)
        return float(np.dot(ranked.negative[held], heights[held] ** p))


def _log_pnorm(ranked: RankedList, p: float, margin: float, normalize: bool) -> float:
    """Logarithm of the risk of the heights within a margin, in either form."""
    squarings = _squarings(p)
    if ranked.exact and squarings is not None:
        top, rest = _log_squares(ranked, margin, squarings)
    else:
        heights = ranked.heights_within(margin)
        held = members_of(ranked.negative > 0)
        heights, mass = heights[held], ranked.negative[held]
        if not isinstance(heights, OnDevice):  # down the list they fall at positives alone
            first = np.flatnonzero(np.diff(heights, prepend=np.nan))
            heights, mass = heights[first], np.add.reduceat(mass, first)
        logs = log_of(heights)
        top = float(np.max(logs))
        rest = log_sum_exp(log_of(mass) + p * (logs - top)) if top > -np.inf else 0.0
    if top == -np.inf:
        return top
    if not normalize:
        return float(p * top + rest)
    return float(top - np.log(ranked.positives) + (rest - np.log(ranked.negatives)) / p)


def _log_squares(ranked: RankedList, margin: float, squarings: int) -> tuple[float, float]:
    """Logarithms of the largest height and of the sum of powers of heights in units of it.

    Only what lies below the highest is raised to the power, which may be any number.
    """
    within = ranked.heights_of if margin == 0 else ranked.heights_within(margin).__getitem__
    first = ranked.first_negative  # heights descend
    highest = float(within(slice(first, first + 1))[0])
    if highest == 0:
        return -np.inf, 0.0

    def powers(ties: slice) -> FloatArray:
        heights = within(ties) * (1.0 / highest)
        if ties.start <= first:
            np.minimum(heights, 1.0, out=heights)  # there is no negative higher up
        for _ in range(squarings):
            np.square(heights, out=heights)
        return np.dot(ranked.negative[ties], heights)

    return float(np.log(highest)), float(np.log(ranked.sum_over_ties(powers)))


def _squarings(p: float) -> int | None:
    """How often to square a number for its power p; None where that is not how to get it."""
    fraction, exponent = math.frexp(p)
    return exponent - 1 if fraction == 0.5 and 1 <= p <= _MOST_SQUARED else None


def max_height(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Height of the highest negative: how many positives it beats or equals.

    .. math:: R_{\max}(f) = \max_k \sum_i w_i\, 1[f_i \le f_k]

    (Rudin 2009, Section 2). Its complement, 1 - Rmax / W+, is `positives_at_top`.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    normalize : bool, default=False
        Divide by the weight W+ of the positives.

    Returns
    -------
    float
        The largest height.

    Examples
    --------
    >>> from toprank.metrics import max_height
    >>> max_height([0, 1, 0, 1], [1, 2, 3, 4])
    1.0
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return max_height_of(ranked, normalize)


def max_height_of(ranked: RankedList, normalize: bool = False) -> float:
    """`max_height` of a ranked list."""
    first = ranked.first_negative
    height = float(ranked.heights_of(slice(first, first + 1))[0])
    return height / ranked.positives if normalize else height


def heights(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> FloatArray:
    r"""Height of each negative: the (weighted) number of positives ranked at or below it.

    .. math:: \mathrm{Height}(k) = \sum_i w_i\, 1[f_i \le f_k]

    Returned in the order of the negatives in ``y_true``; a tie counts as a misrank.

    Examples
    --------
    >>> from toprank.metrics import heights
    >>> heights([0, 1, 0, 1], [1, 2, 3, 4]).tolist()
    [0.0, 1.0]
    """
    return _heights(y_true, y_score, sample_weight, pos_label, outer="losers")


def reverse_heights(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> FloatArray:
    r"""Reverse height of each positive: the (weighted) number of negatives at or above it.

    .. math:: \mathrm{ReverseHeight}(i) = \sum_k w_k\, 1[f_i \le f_k]

    Returned in the order of the positives in ``y_true`` (Rudin 2009, Section 7).

    Examples
    --------
    >>> from toprank.metrics import reverse_heights
    >>> reverse_heights([0, 1, 0, 1], [1, 2, 3, 4]).tolist()
    [1.0, 0.0]
    """
    return _heights(y_true, y_score, sample_weight, pos_label, outer="winners")


def ranks(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> FloatArray | Tensor:
    r"""Rank of each positive: the (weighted) number of rows at or above it, itself included.

    .. math:: \mathrm{Rank}(i) = \sum_k w_k\, 1[f_i \le f_k] + \sum_{i'} w_{i'}\, 1[f_i \le f_{i'}]

    Returned in the order of the positives in ``y_true``; among ties, the worst rank (Rudin 2009,
    Section 7).

    Examples
    --------
    >>> from toprank.metrics import ranks
    >>> ranks([0, 1, 0, 1, 1], [1, 2, 3, 4, 4]).tolist()
    [4.0, 2.0, 2.0]
    """
    positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
    ranked = RankedList.rank(positive, scores, weight)
    # a row of weight zero may stand between the ties
    ties = np.searchsorted(-ranked.scores, -scores[positive], side="right")
    return unwrap(ranked.places[ties])


def _heights(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: object,
    outer: str,
) -> FloatArray:
    positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
    inner_is_positive = positive if outer == "losers" else ~positive
    sign = 1.0 if outer == "losers" else -1.0
    weights = np.ones(len(scores)) if weight is None else weight
    sums = pair_sum(
        get_loss("zero_one"), sign * scores[inner_is_positive], sign * scores[~inner_is_positive]
    )
    (counts,) = sums.to_outer((0,), weights[inner_is_positive])
    return counts
