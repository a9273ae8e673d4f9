"""The paper's own yardsticks: heights, and the risk R_{g,l}."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.losses import get_loss
from toprank.metrics._inputs import check_ranking
from toprank.objective import PushObjective
from toprank.pair_sums import pair_sum
from toprank.pairs import orient
from toprank.prices import get_price


def push_risk(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    price: Any = "power",
    p: float = 1.0,
    loss: Any = "exponential",
    end: str = "top",
    balance: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    log: bool = False,
) -> float:
    r"""The risk of ranking with a push, in linear time.

    .. math::
        R_{g,\ell}(f) = \sum_k w_k\, g\Big(\sum_i w_i\, \ell(f_i - f_k)\Big)

    over negatives k and positives i (Rudin 2009, Section 2). ``end="bottom"`` sums over the
    positives instead, and the price "log1p" does so by itself (IR Push, equation 2).
    ``end="both"`` is R_top + balance * R_bottom, or with the price "max" the larger of both.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores; higher is ranked nearer the top.
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
    sample_weight : array-like of shape (n,), optional
        Repetition counts.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    log : bool, default=False
        Return log R, which is finite where R overflows.

    Returns
    -------
    float
        R, or log R; R is infinity where it exceeds the largest float.

    Examples
    --------
    >>> from toprank.metrics import push_risk
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> push_risk(y, [1, 2, 3, 4, 5, 6, 7, 8], p=4, loss="zero_one")  # Rudin 2009, Table 1
    33.0
    """
    positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
    _check_balance(balance)
    g = get_price(price, p)
    sides = orient(positive, weight, end=end, outer=g.outer)
    log_risk = PushObjective(sides, g, get_loss(loss), balance).log_risk(scores)
    if log:
        return log_risk
    with np.errstate(over="ignore"):
        return _tidy(float(np.exp(log_risk)), loss, weight)


def _check_balance(balance: float) -> None:
    if not 0 <= balance < np.inf:
        raise ValueError(
            f"balance={balance!r} cannot weigh the bottom against the top: expected a number >= 0. "
            "Use 0 for the top alone and 1 for both ends alike."
        )


def _tidy(risk: float, loss: Any, weight: FloatArray | None) -> float:
    """Undo the rounding of exp(log R) where R is a whole number: unweighted 0-1 counts."""
    whole = loss == "zero_one" and weight is None and risk < 2**52
    return float(round(risk)) if whole and abs(risk - round(risk)) < 1e-9 * max(1, risk) else risk


def heights(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
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
    pos_label: Any = None,
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


def _heights(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: Any,
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
