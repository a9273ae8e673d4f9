r"""Score intervals of shares of pairs, such as the AUC: good near 1, and with few positives.

An interval around an estimate takes the variance at the estimate, which a ranker without an error
so far has none of. A score interval asks instead which shares u the sample does not contradict:

.. math::
    (\hat u - u)^2 \le z^2 V(u)

so that its ends move with the sample without a jump, up to a share of exactly 1. V is the variance
of Newcombe (2006, method 5), that of exponential scores (Hanley & McNeil 1982), times a factor
that the sample decides.

The factor is the variance seen (DeLong's, for the AUC) over V at the estimate, wherever that is
above one. Below one it is believed as far as there are errors to see it by. With long tails the
variance seen is too small until the first bad error falls into the sample, and nothing in the
sample says so before.
"""

from __future__ import annotations

from scipy.optimize import brentq
from scipy.special import ndtri

from toprank.inference.auc_models import pair_share_variance
from toprank.inference.sample import VarianceEstimate
from toprank.inference.shares import student_reach
from toprank.metrics.expansion import PairShare


def score_interval(
    share: float,
    spread: VarianceEstimate,
    pairs: PairShare,
    units: tuple[float, float],
    level: float,
    over_groups: bool = False,
    unseen: float = 0.0,
    one_unseen: float = 0.0,
) -> tuple[float, float]:
    """Ends of the score interval of a share of pairs.

    Parameters
    ----------
    share : float
        The estimate, from 0 to 1.
    spread : VarianceEstimate
        Its variance as the sample shows it; zero where the sample shows none.
    pairs : PairShare
        Which pairs the share is of.
    units : tuple of two floats
        Independent positives and negatives.
    level : float
        Confidence level.
    over_groups : bool
        Whether `spread` is one over groups, of which the model knows less.
    unseen : float
        How much a row that the sample has not met could take from the share. The lower end allows
        for it where the variance seen is believed, and for the model's variance where it is not.
    one_unseen : float
        How much one such row could take at most; the lower end lies at least as far away.
    """
    positives, negatives = (max(1.0, count) for count in pairs.rows(units))
    shared = max(positives, negatives) if pairs.wide else (positives + negatives) / 2
    counts = (positives, negatives, shared)
    # at least a quarter of a pair away from 0 and 1
    near = max(min(share, 1 - share), 0.25 / (positives * negatives))
    modelled = pairs.scale * pair_share_variance(near, *counts)
    larger = 1.0 if over_groups else 1 + pairs.shortfall / max(1.0, min(units))
    ratio = larger * spread.variance / modelled
    factor = ratio if ratio >= 1 else 1 - _trust(share, spread, pairs) * (1 - ratio)
    reach = _reach(ratio, spread.freedom, pairs, level, over_groups)
    scale = pairs.scale * factor * reach**2
    low = _lower_end(share, 1 - share, scale, counts)
    if unseen > 0:
        less = max(0.0, share - unseen)
        low = min(low, _lower_end(less, 1 - less, pairs.scale * ratio * reach**2, counts))
    low = min(low, max(0.0, share - one_unseen))
    # the model is the same for pairs in order and pairs out of order
    high = 1 - _lower_end(1 - share, share, scale, counts)
    return low, high


def _reach(
    ratio: float, freedom: float, pairs: PairShare, level: float, over_groups: bool
) -> float:
    """Standard errors from the estimate to the ends.

    The model knows its variance: where it takes the place of a smaller one that was seen, the
    normal law holds, and else it adds degrees of freedom. Over groups it adds fewer, and none where
    the variance is far above its own: rows of a group are then so alike that the groups alone tell.
    """
    more = pairs.freedom_of_model
    if over_groups:
        if pairs.freedom_over_groups is None:
            return student_reach(freedom, level)
        more = pairs.freedom_over_groups / max(1.0, ratio) ** 2
    normal = float(-ndtri((1 - level) / 2))
    return normal + (student_reach(freedom + more, level) - normal) * min(1.0, ratio)


def note_on_few_rows(pairs: PairShare, units: tuple[float, float]) -> str:
    """What a reader should know where so few rows lie in a part of the curve that none need."""
    if pairs.bound_from_below(units) == 1:
        return ""
    count, kind = pairs.narrowest(units)
    return (
        f"This part of the curve is as wide as {count:.3g} {kind}: fewer than two bound it little "
        "from below, and one not at all. Take a wider part, or more rows."
    )


def _trust(share: float, spread: VarianceEstimate, pairs: PairShare) -> float:
    """How far a variance below the model's is believed: by the errors that show it."""
    if spread.variance <= 0:
        return 0.0
    errors = min(share, 1 - share) ** 2 / spread.variance
    return float(errors / (errors + pairs.errors_to_trust))


def _lower_end(
    share: float, rest: float, scale: float, counts: tuple[float, float, float]
) -> float:
    """The smallest share that the sample does not contradict."""
    if share <= 0:
        return 0.0

    def excess(low: float) -> float:
        variance = scale * pair_share_variance(low, *counts)
        if rest > 0:
            return float((share - low) ** 2 - variance)
        # both terms hold the distance from one, which is zero at the end
        return float((1 - low) - variance / (1 - low)) if low < 1 else -1.0

    return float(brentq(excess, 0.0, share, xtol=1e-14 * share, rtol=1e-12))
