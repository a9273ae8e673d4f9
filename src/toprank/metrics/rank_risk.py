"""Sums over the positives of any function of their ranks (Rudin 2009, Section 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import FloatArray
from toprank.losses import get_loss
from toprank.metrics._inputs import check_ranking
from toprank.metrics.push import check_margins
from toprank.pair_sums import pair_sum

if TYPE_CHECKING:
    from toprank.losses import Loss


def rank_risk(
    y_true: ArrayLike,
    y_score: ArrayLike,
    g: Callable[[FloatArray], FloatArray] = np.log1p,
    *,
    of: str = "rank",
    loss: str | Loss | tuple[object, ...] = "zero_one",
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""The sum over the positives of g of their ranks, or of their reverse heights.

    .. math::
        R_g^{\mathrm{Rank}}(f) = \sum_i w_i\, g\Big(\sum_k w_k\, \ell(f_i - f_k)
        + \sum_{i'} w_{i'}\, \ell(f_i - f_{i'})\Big)

    over positives i, i' and negatives k (Rudin 2009, Section 7). With the 0-1 loss the inner sum is
    the rank of the positive, itself included, the worst among ties; ``of="reverse_height"`` leaves
    the positives out of it. g = 1/z gives `aver`, 1/ln(1 + z) `dcg`, ln(1 + z) the IR objective on
    ranks, and with the exponential loss its convex surrogate.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    g : callable, default=numpy.log1p
        Takes an array of ranks, or reverse heights, and returns one number for each.
    of : {"rank", "reverse_height"}, default="rank"
    loss : {"zero_one", "exponential", "logistic", "hinge", "squared_hinge"}, Loss or callables
        How a row that stands at or above the positive is counted.

    Returns
    -------
    float
        The sum; whether it should be large or small depends on g.

    Examples
    --------
    >>> from toprank.metrics import dcg, rank_risk
    >>> import numpy as np
    >>> y, s = [0, 1, 1, 0], [0.1, 0.9, 0.5, 0.8]
    >>> rank_risk(y, s, lambda rank: 1 / np.log1p(rank)) == dcg(y, s)
    True
    >>> round(rank_risk(y, s), 6)  # ln(1 + 1) + ln(1 + 3)
    2.079442
    """
    if of not in ("rank", "reverse_height"):
        raise ValueError(f"Unknown of={of!r}: expected 'rank' or 'reverse_height'.")
    positive, scores, weight = check_ranking(
        y_true, y_score, sample_weight, pos_label, label_propensity
    )
    of_margin = get_loss(loss)
    check_margins(scores, of_margin)
    weights = np.ones(len(scores)) if weight is None else weight
    counted = np.ones(len(scores), dtype=bool) if of == "rank" else ~positive
    sums = pair_sum(of_margin, -scores[counted], -scores[positive])
    with np.errstate(over="ignore"):
        ranks = np.exp(sums.log_heights(weights[counted]))
    if loss == "zero_one" and weight is None:
        ranks = np.round(ranks)
    present = weights[positive] > 0
    values = np.asarray(g(ranks[present]), dtype=np.float64)
    if values.shape != ranks[present].shape:
        raise ValueError(
            f"g returned an array of shape {values.shape} for {ranks[present].shape}; expected one "
            "number per rank."
        )
    return float(weights[positive][present] @ values)
