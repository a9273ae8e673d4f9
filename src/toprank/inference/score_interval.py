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
sample says so before. The end that is nearer to 1 need not fear such errors: two or three show
enough for it.

Each end may miss in half of the risk. Values so near to 1 that not even a sample without an error
leaves them out can be missed by the upper end alone, which then has most of the risk.

The average precision has errors of very different weight: a negative above all rows costs more
than a hundred at the end of the list. Its lower end allows for errors that weigh some of that, as
far as those in the sample do not show that they weigh less, and less where the share is smaller, of
which there is less to take. It is also never less than that of a list in reverse. A positive above
all rows, where few are found, brings more than all others: the upper end does not allow for those
that the sample has missed, and a note says where they count.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import ndtri

from toprank.inference.auc_models import pair_share_variance
from toprank.inference.sample import VarianceEstimate
from toprank.inference.shares import WITHOUT_OTHER_TAIL, student_reach
from toprank.metrics.expansion import PairShare, TopRows
from toprank.metrics.order import RankedList


def score_interval(
    share: float,
    spread: VarianceEstimate,
    pairs: PairShare,
    units: tuple[float, float],
    level: float,
    over_groups: bool = False,
    top: TopRows | None = None,
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
    top : TopRows, optional
        What rows that the sample may have missed would do to the share; None where no row weighs
        more than what the model knows.
    """
    positives, negatives = (max(1.0, count) for count in pairs.rows(units))
    shared = max(positives, negatives) if pairs.wide else (positives + negatives) / 2
    counts = (positives, negatives, shared)
    # at least a quarter of a pair away from 0 and 1
    near = max(min(share, 1 - share), 0.25 / (positives * negatives))
    modelled = pairs.scale * pair_share_variance(near, *counts)
    larger = 1.0 if over_groups else 1 + pairs.shortfall / max(1.0, min(units))
    ratio = larger * spread.variance / modelled
    shown = min(1 - share, share if top is None else max(0.0, share - top.least_seen))
    seen = count_errors(1 - shown, spread.variance)
    # few groups do not show how far groups differ
    groups = spread.freedom / (spread.freedom + pairs.groups_to_trust) if over_groups else 1.0
    below, above = (
        ratio if ratio >= 1 else 1 - _trust(seen, pairs, groups * end) * (1 - ratio)
        for end in pairs.sooner(share, units)
    )
    # heavy errors that were missed are allowed for apart: rows, not tails, are what Student counts
    freedom = spread.freedom if top is None else spread.plain_freedom
    freedom = spread.freedom_over_groups(ratio) if over_groups else freedom

    def ends(level: float) -> tuple[float, float]:
        reach = _reach(ratio, freedom, pairs, level, over_groups)
        low = _lower_end(share, 1 - share, pairs.scale * below * reach**2, counts)
        if top is not None and not over_groups:
            reach = student_reach(math.inf, level)
        # the model is the same for pairs in order and pairs out of order
        return low, 1 - _lower_end(1 - share, share, pairs.scale * above * reach**2, counts)

    low, high = ends(level)
    if top is None:
        more = ends(max(0.0, 1 - WITHOUT_OTHER_TAIL * (1 - level)))
        low, high = _spend_other_tail(share, (low, high), more, (below, above), pairs, units)
    if top is not None:
        known = VarianceEstimate(larger * spread.variance, freedom)
        if top.error > 0:
            low = min(low, _below_heavy_errors(share, known, top, level, over_groups))
        # the share of positives, which decides how small it can be, is itself drawn with groups
        low = _above_reverse(share, low, top, 0.0 if over_groups else top.least)
    return low, high


def level_without_other_tail(beyond: Callable[[float], float], level: float) -> float:
    """The level of one end, where the other end leaves out no value so near to it.

    `beyond` says at any level how far this end is inside of what the other end never leaves out,
    and falls as the level rises; it is 0 or less where the other end cannot miss.
    """
    least = max(0.0, 1 - WITHOUT_OTHER_TAIL * (1 - level))
    if beyond(level) >= 0:
        return level
    return least if beyond(least) <= 0 else float(brentq(beyond, least, level))


def _spend_other_tail(
    share: float,
    ends: tuple[float, float],
    more: tuple[float, float],
    factors: tuple[float, float],
    pairs: PairShare,
    units: tuple[float, float],
) -> tuple[float, float]:
    r"""The ends, and those with `more` of the risk for values that the other end cannot leave out.

    A value u above the share is left out where a share so far below u is rare. Half of the risk is
    kept for shares that are as far above u. The furthest is that of a sample without an error, and
    it is as many standard errors away only if

    .. math:: (u - \hat u) / \sqrt{factor} \le 1 - u

    Beyond, more may be spent here. As with Blaker's acceptability (2000) the ends move without a
    jump, and grow with the level. A part of the curve that has no lower bound has no other end; its
    own lower end misses random scores too often as it is, and keeps to one half.
    """
    below, above = map(math.sqrt, factors)
    nearest = share / (1 + below)
    furthest = share + pairs.bound_from_below(units) * (1 - share) * above / (1 + above)
    of_all = pairs.narrowest(units)[0] == math.inf
    low = min(more[0], max(ends[0], nearest)) if of_all else ends[0]
    return low, max(more[1], min(ends[1], furthest))


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


#: What an error that the sample has missed weighs, of the heaviest there may be; and how many must
#: be seen until lighter ones are half believed. By simulation: normal scores and t scores with the
#: classes 0 to 8 apart, and in reverse; 5 to 200 positives, 0.4% to 50% of the rows.
_WEIGHT, _ERRORS_TO_TRUST = 0.45, 16.0
#: The weight over groups, where it does not fall with the share: a group's rows may move together.
_WEIGHT_OVER_GROUPS = 0.4


def _below_heavy_errors(
    share: float,
    spread: VarianceEstimate,
    top: TopRows,
    level: float,
    over_groups: bool = False,
) -> float:
    r"""The smallest share that rare errors of the same weight w leave possible.

    The heaviest error is a negative above all rows, and w is a part of what it takes, or all of it
    where positives are tied.

    What they take has the variance w (1 - u), and where the share is smaller, there is less to take
    from: by simulation w then falls as the root of it. The score interval ends where

    .. math:: (\hat u - u)^2 = z^2 w \sqrt{u / \hat u} (1 - u)

    Where the sample shows more variance than that, these errors are no longer what it has missed.
    Over few groups that are alike, so small a weight of small shares covers too little: 90%.
    """
    of_heaviest, power = (_WEIGHT_OVER_GROUPS, 0.0) if over_groups else (_WEIGHT, 0.5)
    weight, lost = max(of_heaviest * top.error, top.tied_error), 1 - share
    ratio = spread.variance / (weight * lost) if lost > 0 else 0.0
    trust = _believed(count_errors(share, spread.variance), _ERRORS_TO_TRUST)
    factor = 1 - trust * (1 - ratio) if ratio < 1 else 1 / ratio
    normal = student_reach(math.inf, level)
    reach = normal + (student_reach(spread.freedom, level) - normal) * min(1.0, ratio)
    step = factor * reach**2 * weight

    def excess(low: float) -> float:
        taken = step * (low / share) ** power
        # both terms hold the distance from one, which is zero at the end
        return (share - low) ** 2 - taken * (1 - low) if lost > 0 else 1 - low - taken

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, share, xtol=1e-14 * share, rtol=1e-12))


def _above_reverse(share: float, low: float, top: TopRows, least: float) -> float:
    """The lower end, no lower than a list in reverse can be, and there if this list is one.

    A list in reverse shows no spread, and more than the endless one has: what its rows show beyond
    the least that so many can have is believed as a share of what they show in all.
    """
    beyond, seen = share - least, share - least - (top.least_seen - top.least)
    return least + max(0.0, low - least) * max(0.0, seen) / beyond if beyond > 0 else least


def count_errors(share: float, variance: float) -> float:
    """How many independent errors a loss with this variance is worth; zero where none is seen."""
    return (1 - share) ** 2 / variance if variance > 0 else 0.0


def _believed(errors: float, half: float) -> float:
    return 1 / (1 + half / errors) if errors > 0 else 0.0


def note_on_few_rows(pairs: PairShare, units: tuple[float, float]) -> str:
    """What a reader should know where so few rows lie in a part of the curve that none need."""
    count, kind = pairs.narrowest(units)
    if count >= _FEW_IN_PART:
        return ""
    note = f"This part of the curve is as wide as {count:.3g} {kind}"
    if pairs.bound_from_below(units) < 1:
        return (
            f"{note}: fewer than two bound it little from below, and one not at all. Take a wider "
            "part, or more rows."
        )
    return (
        f"{note}, which show little of the others. Where these are spread more than twice as "
        "widely as the other class, 87% of simulated 95% intervals held the true value."
    )


def note_on_top_tie(pairs: PairShare, ranked: RankedList) -> str:
    """What a reader should know where a part of the curve lies within the first tie."""
    tied = float(ranked.negative[0] / ranked.negatives)
    if tied <= pairs.of_negatives or pairs.narrowest((1.0, 1.0))[1] != "negatives":
        return ""
    return (
        f"{tied:.2g} of the negatives share the first tie, more than this part of the curve holds. "
        "Where most positives do, too, 92% of simulated 95% intervals held the true value."
    )


def note_on_few_of_a_class(pairs: PairShare, units: tuple[float, float]) -> str:
    """What a reader should know of the area under the whole curve where a class has few rows."""
    few, kind = min(zip(units, ("positives", "negatives"), strict=True))
    if few >= _FEW_OF_A_CLASS or pairs.narrowest(units)[0] < math.inf:
        return ""
    return (
        f"Of {few:.3g} {kind}, others unlike those seen may be missing: where some score far from "
        "the rest, simulated 95% intervals held the true value in 88% to 92% of the samples."
    )


#: Rows of a class below which some that are unlike the others are often missed.
_FEW_OF_A_CLASS = 15
#: Rows of a part of the curve below which their spread is little known.
_FEW_IN_PART = 5.0


def note_on_missed_hits(share: float, high: float, top: TopRows | None, positives: float) -> str:
    """What a reader should know where positives on top that the sample has missed could count.

    An event that none of m rows shows may have a chance of up to 3 / m (Hanley & Lippman-Hand
    1983): so many positives may lie above all rows. Most samples of such scores look like those of
    random ones, and an interval that allowed for them would be several times as wide there.
    """
    more = share + _NEVER_SEEN * top.hit if top is not None else 0.0
    if more <= high:
        return ""
    return (
        "The interval assumes that the sample has missed no positives at the very top. If "
        f"{_NEVER_SEEN:g} in {max(_NEVER_SEEN, positives):.3g} were above all other rows, which at "
        f"most 1 sample in 20 shows none of, the value would be about {min(1.0, more):.2g}."
    )


#: How many of a kind of row may have been expected in a sample that holds none.
_NEVER_SEEN = 3.0


def _trust(seen: float, pairs: PairShare, sooner: float) -> float:
    """How far a variance below the model's is believed: by the errors, or hits, that show it.

    `sooner` says how far an end goes by those beyond the first: see `PairShare.sooner`.
    """
    trust = _believed(seen, pairs.errors_to_trust)
    if pairs.hits_to_trust is None:
        return trust
    return trust + sooner * max(0.0, _believed(seen - 1, pairs.hits_to_trust) - trust)


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
