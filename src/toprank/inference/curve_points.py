"""Intervals of points of the ROC curve: a rate of one class where that of the other is given.

Both classes are uncertain. The rows of the one say only between which of them the threshold lies;
those of the other that are above it are a binomial number. The two reaches are put together as
roots of sums of squares (MOVER; Zou & Donner 2008), on a scale where a rate near 0 or 1 has room.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray
from toprank.inference.sample import Sample
from toprank.inference.shares import (
    WITHOUT_OTHER_TAIL,
    binomial_interval,
    binomial_upper_end,
    clopper_pearson,
)
from toprank.metrics.at_cut import fpr_where

BOTH_CLASSES = "binomial reaches of both classes"
_ROUNDING = 1e-9
#: Halvings of what is left of a level: to some millionths.
_HALVINGS = 12
#: How much of the chance of the rows seen above a threshold counts, where the threshold is known:
#: see `binomial_interval`.
_COUNTED = 0.7


def tpr_ends(
    sample: Sample, fpr: ArrayLike, observed: ArrayLike, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of the TPR at the threshold above which this share of all negatives lies.

    The share of all negatives above each row of the sample has its own interval, and so has the
    share of all positives above the threshold (`binomial_interval`).
    The curve with every share at its upper end is the lowest the negatives allow, as it is
    concave between two of them; with every share at its lower end, the highest. Where fewer
    negatives than four are expected above the threshold, nothing holds the lowest curve up but
    that: it falls to 0 with the FPR.

    A TPR so high that not even a list in order leaves it out can be missed by the upper end alone,
    which has most of the risk there; the lower end has it where a list in reverse leaves out none.
    """
    fpr, observed = np.asarray(fpr, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    rates = np.broadcast_to(fpr, (2, *fpr.shape))
    levels = _levels_without_other_tail(sample, rates, observed, level)
    low, high = _ends(sample, rates, observed, levels)
    whole = fpr >= 1  # every curve ends where the whole list is taken
    return np.where(whole, observed, low[0]), np.where(whole, observed, high[1])


def _levels_without_other_tail(
    sample: Sample, rates: FloatArray, observed: FloatArray, level: float
) -> FloatArray:
    """The level of each lower end, and of each upper one: see `level_without_other_tail`.

    An end may have the lower level as far as it stays beyond what the other end of a list in order,
    or in reverse, reaches at that level. So an interval lies within those of higher levels.
    """

    def inside(levels: FloatArray, at: BoolArray | EllipsisType = ...) -> FloatArray:
        low, high = _ends(sample, rates[:, at], observed[at], levels)
        in_order = binomial_interval(np.array(1.0), sample.units[0], levels)[0]
        return np.stack([low[0] - (1 - in_order[0]), in_order[1] - high[1]])

    highest = np.full(rates.shape, level)
    kept = inside(highest) >= 0
    if np.all(kept):
        return highest
    lowest = np.full(rates.shape, max(_ROUNDING, 1 - WITHOUT_OTHER_TAIL * (1 - level)))
    lowest, reached = np.where(kept, highest, lowest), inside(lowest) <= 0
    highest = np.where(reached & ~kept, lowest, highest)
    between = np.any(lowest < highest, axis=0)
    lower, upper = lowest[:, between], highest[:, between]
    for _ in range(_HALVINGS if lower.size else 0):
        middle = (lower + upper) / 2
        higher = inside(middle, between) >= 0
        lower, upper = np.where(higher, middle, lower), np.where(higher, upper, middle)
    highest[:, between] = upper
    return highest


def _ends(
    sample: Sample, fpr: FloatArray, observed: FloatArray, level: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends of `tpr_ends` that each miss in half of the risk."""
    high = sample.units[0]
    nearest, furthest = (
        np.minimum(_lowest_curve(sample, fpr, level), observed),
        np.maximum(_highest_curve(sample, fpr, level), observed),
    )
    fewest, most = binomial_interval(observed, high, level, _part_of_seen(sample, fpr))

    def logit(rate: FloatArray) -> FloatArray:
        return np.log(rate * high + 0.5) - np.log((1 - rate) * high + 0.5)

    middle = logit(observed)
    below = np.hypot(middle - logit(nearest), middle - logit(fewest))
    above = np.hypot(logit(furthest) - middle, logit(most) - middle)
    lowest, highest = (
        np.clip(((high + 1) * expit(middle + by) - 0.5) / high, 0.0, 1.0) for by in (-below, above)
    )
    return np.minimum(lowest, observed), np.maximum(highest, observed)


def _part_of_seen(sample: Sample, fpr: FloatArray) -> FloatArray:
    """How much of the chance of the positives seen counts: less where the threshold is uncertain.

    Half of it would do, did the number of positives not move in steps of one. A threshold whose
    standard error is worth so many positives smooths them out: a normal law damps the first wave
    of such steps by exp(-2 (pi error)^2).
    """
    ranked, error = sample.ranked, np.sqrt(fpr * (1 - fpr) / sample.units[1])
    rates, heights = ranked.passed / ranked.negatives, ranked.found / ranked.positives
    lower, upper = (np.interp(fpr + by, rates, heights) for by in (-error, error))
    positives = sample.units[0] * (upper - lower) / 2
    return np.asarray(0.5 + (_COUNTED - 0.5) * np.exp(-2 * (np.pi * positives) ** 2))


def _lowest_curve(sample: Sample, fpr: FloatArray, level: FloatArray) -> FloatArray:
    """TPR with the share of all negatives above each row at its upper end, between two rows."""
    ranked, trials = sample.ranked, _trials(sample.units[1])
    counts = ranked.passed * (sample.units[1] / ranked.negatives)
    # so many negatives, and no fewer, could be above the threshold: the end is beyond it
    enough = _fewest(trials, fpr, level)
    before = np.searchsorted(counts, enough - 1 + _ROUNDING, side="right") - 1
    beyond = np.searchsorted(counts, enough - _ROUNDING, side="left").clip(max=len(counts) - 1)
    beyond = np.searchsorted(counts, counts[beyond] + _ROUNDING, side="right") - 1
    places = np.array([before, beyond])
    share = np.clip(counts[places] / sample.units[1], 0.0, 1.0)
    upper = binomial_upper_end(share, sample.units[1], level, _part_counted(counts[places]))
    rates = np.where(places >= 0, upper, 0.0)
    heights = np.where(places >= 0, ranked.found[places] / ranked.positives, 0.0)
    return _line_between(fpr, rates, heights)


def _highest_curve(sample: Sample, fpr: FloatArray, level: FloatArray) -> FloatArray:
    """TPR with the share of all negatives above each row at its lower end, between two rows."""
    ranked, trials = sample.ranked, _trials(sample.units[1])
    counts = ranked.passed * (sample.units[1] / ranked.negatives)
    most = trials - _fewest(trials, 1 - fpr, level, counted=_COUNTED)
    before = np.searchsorted(counts, most + _ROUNDING, side="right") - 1
    beyond = np.searchsorted(counts, most + 1 - _ROUNDING, side="left").clip(max=len(counts) - 1)
    places = np.array([before, beyond])
    share = np.clip(counts[places] / sample.units[1], 0.0, 1.0)
    rates = 1 - binomial_upper_end(1 - share, sample.units[1], level, _COUNTED)
    return _line_between(fpr, rates, ranked.found[places] / ranked.positives)


def _part_counted(count: FloatArray) -> FloatArray:
    """How much of the chance of so many negatives counts: all of it where there is none.

    Nothing but the first negative then says where the threshold is, and the curve before it may
    bend the other way: with long tails mid-p ends of it cover 90%.
    """
    return 1 - (1 - _COUNTED) * np.clip(count, 0.0, 1.0)


def _fewest(
    trials: float, rate: FloatArray, level: FloatArray, counted: float | None = None
) -> FloatArray:
    """The smallest number of trials whose upper end is not below the rate."""
    tail = (1 - level) / 2
    fewest = binom.ppf(tail, trials, rate)
    part = _part_counted(fewest) if counted is None else counted
    reached = binom.cdf(fewest, trials, rate) - (1 - part) * binom.pmf(fewest, trials, rate)
    return np.asarray(np.where(reached < tail, fewest + 1, fewest))


def _trials(units: float) -> float:
    return min(max(1.0, float(np.round(units))), 1e15)  # beyond, scipy does not end


def _line_between(at: FloatArray, rates: FloatArray, heights: FloatArray) -> FloatArray:
    """Height at a rate on the line between two points of a curve."""
    run = rates[1] - rates[0]
    part = np.divide(at - rates[0], run, out=np.ones_like(run), where=run > 0)
    return np.asarray(heights[0] + np.clip(part, 0.0, 1.0) * (heights[1] - heights[0]))


def fpr_ends(
    sample: Sample, recall: FloatArray, observed: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of the FPR at the threshold above which this share of all positives lies.

    Of the positives at hand a binomial number is above that threshold, which says between which
    of them it lies, whatever the law of the scores. The scale is log(FPR + 0.5 / negatives).
    """
    ranked, tail = sample.ranked, (1 - level) / 2
    high, low = sample.units
    trials = _trials(high)
    fewest, most = (binom.ppf(chance, trials, recall) / trials for chance in (tail, 1 - tail))
    share_found = ranked.found / ranked.positives
    first = np.searchsorted(share_found, fewest - _ROUNDING, side="left")
    last = np.searchsorted(share_found, most + _ROUNDING, side="right")
    passed = np.append(ranked.passed / ranked.negatives, 1.0)
    nearest, furthest = passed[np.maximum(first - 1, 0)], passed[last]
    nearest, furthest = np.minimum(nearest, observed), np.maximum(furthest, observed)
    least, greatest = clopper_pearson(observed, low, level)

    def log(rate: FloatArray) -> FloatArray:
        return np.log(rate + 0.5 / low)

    middle = log(observed)
    below = np.hypot(middle - log(nearest), middle - log(least))
    above = np.hypot(log(furthest) - middle, log(greatest) - middle)
    ends = (np.clip(np.exp(middle + by) - 0.5 / low, 0.0, 1.0) for by in (-below, above))
    lowest, highest = ends
    return np.minimum(lowest, observed), np.where(furthest < 1, highest, 1.0)


def precision_ends(
    sample: Sample, recall: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of the precision at each recall above 0, for the sample's share of positives."""
    prevalence = sample.ranked.positives / sample.ranked.total
    lowest, highest = fpr_ends(sample, recall, fpr_where(sample.ranked, recall), level)
    low, high = (
        prevalence * recall / (prevalence * recall + (1 - prevalence) * fpr)
        for fpr in (highest, lowest)
    )
    return low, high


def best_precision_ends(sample: Sample, recall: float, level: float) -> tuple[float, float]:
    """Interval of the highest precision where the recall is this or more.

    It is no less than the precision at this recall, and no more than that at some larger one.
    """
    larger = np.linspace(recall, 1.0, _POINTS)
    low, high = precision_ends(sample, larger, level)
    return float(low[0]), float(np.max(high))


def best_recall_ends(sample: Sample, precision: float, level: float) -> tuple[float, float]:
    """Interval of the highest recall where the precision is this or more: the band, inverted."""
    least = _furthest(lambda x: precision_ends(sample, x, level)[0] >= precision)
    most = _furthest(lambda x: precision_ends(sample, x, level)[1] >= precision)
    return least[0], most[1]


def _furthest(holds: Callable[[FloatArray], BoolArray]) -> tuple[float, float]:
    """Two points close together, the last of (0, 1] where something holds between them."""
    low, high = 0.0, 1.0
    for _ in range(_ZOOMS):
        points = np.linspace(low, high, _POINTS)
        held = np.flatnonzero(holds(points[1:]))
        last = 0 if len(held) == 0 else int(held[-1]) + 1
        if last == _POINTS - 1:
            return high, high
        low, high = float(points[last]), float(points[last + 1])
    return low, high


#: Points at which a band is read, and how often more closely around one of them.
_POINTS, _ZOOMS = 201, 3
