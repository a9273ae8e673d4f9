"""Intervals for shares: of trials, of rows at the cut, of a bounded metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv, betaln, ndtri, stdtrit

from toprank._arrays import FloatArray
from toprank._numerics import is_number
from toprank.inference.sample import VarianceEstimate
from toprank.metrics.at_cut import Cut

_TINY = 1e-300
#: How much of the risk an end may spend where the other end cannot miss, over half of it. Twice
#: would be all: where a few positives score as negatives do, upper ends of an AUC then miss in up
#: to 7%, and ends of a share of few trials in 13%.
WITHOUT_OTHER_TAIL = 1.6
#: From here on the beta law is a normal one; further on the quantiles of SciPy are NaN, or warn.
_MANY = 1e10
#: Degrees of freedom from which Student's law is the normal one to sixteen digits.
_MOST_FREEDOM = 1e16


def check_level(level: float) -> float:
    """Return a confidence level, or raise ValueError."""
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r} is not a confidence level: expected between 0 and 1.")
    return float(level)


def clopper_pearson(
    share: FloatArray | float, trials: FloatArray | float, level: FloatArray | float
) -> tuple[Any, Any]:
    """Exact interval for a share of independent trials; trials need not be whole.

    With an effective number of trials this is the interval of Korn & Graubard (1998).
    """
    tail = (1 - level) / 2
    hits, misses = share * trials, (1 - share) * trials
    many = np.minimum(hits, misses) > _MANY
    hits, misses = np.where(many, 1.0, hits), np.where(many, 1.0, misses)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, _TINY), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1, np.maximum(misses, _TINY), tail), 1.0)
    reach = -ndtri(tail) * np.sqrt(share * (1 - share) / np.maximum(trials, 1.0))
    low, high = np.where(many, share - reach, low), np.where(many, share + reach, high)
    return np.minimum(low, share)[()], np.maximum(high, share)[()]


def ends_at_cut(cut: Cut, level: float) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's interval of a share at a cut.

    Where hits are few, its lower end is no higher than the rows above the cut allow.
    """
    low, high = clopper_pearson(cut.share, cut.trials, level)
    if cut.above is None:
        return low, high
    share, trials = cut.above.share, cut.above.trials
    of_rows = clopper_pearson(share, trials, level)[0] * cut.share / np.maximum(share, _TINY)
    held = np.clip((_SEVERAL + 1 - share * trials) / 2, 0.0, 1.0)
    return low - held * np.maximum(0.0, low - of_rows), high


#: Hits from which half of the lower end is that of the trials: see `ends_at_cut`.
_SEVERAL = 5.0


def binomial_interval(
    share: FloatArray, trials: float, level: FloatArray | float, counted: FloatArray | float = 0.7
) -> tuple[FloatArray, FloatArray]:
    """Interval for a share of trials that counts a part of the chance of what was seen.

    An upper end is the share at which ``P(fewer hits) + counted * P(as many)`` is the tail. All
    counted: Clopper and Pearson's, which covers the level at every share and mostly more. One half:
    the mid-p interval, which covers 92% at some shares. With 0.7 a 95% interval covers 93.7% at
    every share, of 2 to 200 trials, and is narrower than the first.
    """
    lower = 1 - binomial_upper_end(1 - share, trials, level, counted)
    return lower, binomial_upper_end(share, trials, level, counted)


#: Steps of Newton's method at most: to nine digits and more, of 1 to 1e6 trials.
_STEPS = 8


def binomial_upper_end(
    share: FloatArray, trials: float, level: FloatArray | float, counted: FloatArray | float = 0.7
) -> FloatArray:
    """The upper end of `binomial_interval`; the lower one is that of the misses, less one."""
    tail = (1 - level) / 2
    high = np.asarray(clopper_pearson(share, trials, level)[1])
    hits, misses = share * trials, (1 - share) * trials
    inner = (misses > 0) & (np.minimum(hits, misses) <= _MANY)
    hits, misses = np.where(inner, hits, 1.0), np.where(inner, misses, 1.0)
    some = np.maximum(hits, _TINY)
    low = np.where(hits > 0, betaincinv(some, misses + 1, 1 - tail), 0.0)
    end, scale = low + counted * (high - low), betaln(hits + 1, misses)
    for _ in range(_STEPS):
        end = np.minimum(np.maximum(end, _TINY), 1 - 2.0**-53)
        fewer = np.where(hits > 0, betainc(some, misses + 1, end), 1.0)
        reached = counted * betainc(hits + 1, misses, end) + (1 - counted) * fewer
        logs = hits * np.log(end) + (misses - 1) * np.log1p(-end) - scale
        # the density of the second is that of the first, times hits * (1 - end) / (misses * end)
        slope = np.exp(logs) * (counted + (1 - counted) * hits * (1 - end) / (misses * end))
        step = (1 - tail - reached) / np.maximum(slope, _TINY)
        end = np.minimum(np.maximum(end + step, low), high)
        if np.all(np.abs(step) <= 1e-12 * end):
            break
    return np.where(inner, end, high)


def agreement_interval(share: float, trials: float, level: float) -> tuple[float, float]:
    """Interval for a mean over pairs that is the same for every pair of the sample.

    Among `trials` disjoint pairs, which are independent, none disagrees, so at most the
    share 1 - (tail)^(1/trials) of all pairs does; those could have any value from 0 to 1.
    """
    tail = (1 - level) / 2
    others = -np.expm1(np.log(tail) / max(trials, 1.0))
    low = share * (1 - others)
    return float(low), float(low + others)


def student_reach(freedom: float, level: float) -> float:
    """How many standard errors an interval reaches to either side, by Student's law.

    The quantile of `scipy.stats.t`, twenty times as fast.
    """
    tail = (1 - level) / 2
    return float(-ndtri(tail) if freedom > _MOST_FREEDOM else -stdtrit(freedom, tail))


def on_logit(centre: float, error: float, freedom: float, level: float) -> tuple[float, float]:
    """Interval for a share from an estimate and its error, both on the logit scale."""
    reach = student_reach(freedom, level) * error
    return _expit(centre - reach), _expit(centre + reach)


def interval_around(share: float, spread: VarianceEstimate, level: float) -> tuple[float, float]:
    """Interval for a share strictly between 0 and 1, symmetric on the logit scale."""
    share = min(max(share, _TINY), 1 - 2.0**-53)  # a bias taken off may leave 0 or 1
    slope = share * (1 - share)
    error = float(np.sqrt(spread.variance)) / max(slope, _TINY)
    centre = float(np.log(share) - np.log1p(-share))
    return on_logit(centre, error, spread.freedom, level)


def slope_of(report: Callable[[float], float], share: float) -> float:
    """How fast a metric moves with its share."""
    near = min(share, 1 - share)  # a logarithm bends within the distance to 0
    step = max(1e-6 * near, 4 * float(np.spacing(share))) if near > 0 else 1e-9
    low, high = max(0.0, share - step), min(1.0, share + step)
    return (report(high) - report(low)) / (high - low)


def newcombe(hits: tuple[int, int], trials: tuple[int, int], level: float) -> tuple[float, float]:
    """Newcombe's interval for a difference of two shares, from Wilson's for each (1998)."""
    (a, low_a, high_a), (b, low_b, high_b) = (
        (hit / trial, *_wilson(hit, trial, level)) for hit, trial in zip(hits, trials, strict=True)
    )
    below = np.hypot(a - low_a, high_b - b)
    above = np.hypot(high_a - a, b - low_b)
    return float(a - b - below), float(a - b + above)


def _wilson(hits: int, trials: int, level: float) -> tuple[float, float]:
    z = float(-ndtri((1 - level) / 2))
    share, spread = hits / trials, z**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    reach = np.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return float(centre - reach), float(centre + reach)


def _expit(value: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -value)))
