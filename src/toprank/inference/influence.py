"""Intervals and comparisons from what each row adds to a metric: its first-order expansion.

A metric with an `Expansion` (see `toprank.metrics.expansion`) is a share, and its interval is made
on the logit scale.

Small samples are compared by swaps. If two rankers are equally good and alike, their ranks of any
row can be swapped without changing the law of the data. The difference of the metric over many
random swaps is its null distribution, whatever the sample size; a normal limit is not needed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import WeightedMetric, replicates
from toprank.inference.result import Comparison, Interval, MetricRequest, Verdict, check_size
from toprank.inference.sample import Sample, VarianceEstimate
from toprank.inference.score_interval import score_interval
from toprank.inference.shares import agreement_interval, interval_around, on_logit, slope_of
from toprank.metrics.expansion import PROJECTION, Expansion, without_one
from toprank.metrics.metric import Swaps

#: Samples up to this size feel the noise that taking off a bias adds.
_SMALL = 1000
_CELLS = 2**20


def interval_from_expansion(request: MetricRequest, expansion: Expansion) -> Interval:
    """Interval of a metric that has an expansion."""
    sample, estimate = request.sample, request.estimate
    check_size(request.label, estimate)
    if expansion.needs_copies and not sample.by_ties:
        request.check_method("bootstrap")
        return _resampled_share(request, expansion, estimate)
    request.check_method(*_methods(expansion))
    if request.method == "bootstrap":
        return _resampled_share(request, expansion, estimate)
    spread = spread_of(expansion, sample)
    if request.method == "delong":
        return _by_delong(request, expansion, estimate, spread)
    if expansion.pairs is not None and request.method != "projection":
        return _by_score(request, expansion, estimate, spread)
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early
    if expansion.on_logit is not None:
        centre, on_positive, on_negative = expansion.on_logit
        there = sample.spread(on_positive, on_negative)
        ends = on_logit(centre, float(np.sqrt(there.variance)), there.plain_freedom, request.level)
    else:
        freedom = np.inf if expansion.normal else spread.freedom
        ends = interval_around(
            expansion.centre, VarianceEstimate(spread.variance, freedom), request.level
        )
    method = f"{expansion.method}, logit scale"
    return _to_metric_scale(request, expansion, estimate, ends, spread, method)


def _methods(expansion: Expansion) -> tuple[str, ...]:
    """What may be asked for, the default first."""
    score = ("score",) if expansion.pairs is not None else ()
    delong = ("delong",) if expansion.method == PROJECTION else ()
    return (*score, "projection", *delong, "bootstrap")


def _by_score(
    request: MetricRequest, expansion: Expansion, estimate: float, spread: VarianceEstimate
) -> Interval:
    """The score interval of a share of pairs."""
    assert expansion.pairs is not None
    if not np.isfinite(spread.variance):
        return _of_single_row(request, expansion, estimate)
    units = request.sample.units
    ends = score_interval(expansion.share, spread, expansion.pairs, units, request.level)
    method, note = f"score interval, {expansion.method}", ""
    if _shows_no_spread(expansion, spread):
        note = (
            "Every pair of rows says the same, so the sample shows no spread; the interval is "
            f"what {units[0]:g} positives and {units[1]:g} negatives leave possible, if the "
            "scores have the spread of exponential ones (Newcombe 2006)."
        )
    return _to_metric_scale(request, expansion, estimate, ends, spread, method, note)


def _by_delong(
    request: MetricRequest, expansion: Expansion, estimate: float, spread: VarianceEstimate
) -> Interval:
    """DeLong's variance and the normal law, as the literature has it."""
    if not np.isfinite(spread.variance):
        return _of_single_row(request, expansion, estimate)
    reach = float(-ndtri((1 - request.level) / 2)) * float(np.sqrt(spread.variance))
    ends = (max(0.0, expansion.share - reach), min(1.0, expansion.share + reach))
    note = ""
    if _shows_no_spread(expansion, spread):
        note = 'Every pair of rows says the same, where this method claims certainty: use "score".'
    method = "DeLong's variance, normal law"
    return _to_metric_scale(request, expansion, estimate, ends, spread, method, note)


def spread_of(expansion: Expansion, sample: Sample) -> VarianceEstimate:
    """Variance of the share, less its bias."""
    first = sample.spread(expansion.on_positive, expansion.on_negative)
    ranked = sample.ranked
    small = len(ranked.scores) <= _SMALL and ranked.whole and ranked.total <= _SMALL
    if expansion.corrected is None or not small or not np.isfinite(first.variance):
        return first
    # taking the bias off adds noise, which matters in small samples only
    second = sample.spread(*without_one(ranked, expansion.corrected))
    return VarianceEstimate(
        max(first.variance, second.variance), min(first.freedom, second.freedom)
    )


def _without_spread(
    request: MetricRequest, expansion: Expansion, estimate: float, spread: VarianceEstimate
) -> Interval | None:
    """Intervals where the rows show no spread at all, or too few of them could."""
    if not np.isfinite(spread.variance):
        return _of_single_row(request, expansion, estimate)
    if not _shows_no_spread(expansion, spread):
        return None
    ends = agreement_interval(expansion.share, expansion.trials, request.level)
    return request.result(
        estimate,
        (expansion.report(ends[0]), expansion.report(ends[1])),
        0.0,
        "exact, from disjoint pairs",
        note=(
            "Every pair of rows says the same, so the sample shows no spread; the interval is "
            f"what {expansion.trials:g} disjoint pairs that agree leave possible."
        ),
    )


def _shows_no_spread(expansion: Expansion, spread: VarianceEstimate) -> bool:
    # sums over many rows leave rounding errors where the spread is zero
    return spread.variance <= 1e-24 or not 0 < expansion.share < 1


def _of_single_row(request: MetricRequest, expansion: Expansion, estimate: float) -> Interval:
    """One class has a single row: everything is possible."""
    high, low = request.sample.units
    few = "positive" if high < low else "negative"
    return request.result(
        estimate,
        (expansion.report(0.0), expansion.report(1.0)),
        np.nan,
        f"no interval: fewer than two {few}s",
        note=f"One {few} row does not show how far such rows spread: any value is possible.",
    )


def _to_metric_scale(
    request: MetricRequest,
    expansion: Expansion,
    estimate: float,
    ends: tuple[float, float],
    spread: VarianceEstimate,
    method: str,
    note: str = "",
) -> Interval:
    """Bring an interval for the share to the form of the metric."""
    share, error = expansion.share, float(np.sqrt(spread.variance))
    slope = slope_of(expansion.report, share)
    bias = estimate - expansion.report(expansion.centre) if expansion.bias else 0.0
    return request.result(
        estimate,
        (expansion.report(ends[0]), expansion.report(ends[1])),
        slope * error,
        method,
        bias=bias,
        note=note,
    )


def _resampled_share(request: MetricRequest, expansion: Expansion, estimate: float) -> Interval:
    """Bootstrap of a metric with an expansion, as a share."""
    settings = {**request.settings, **expansion.share_settings}
    statistic = WeightedMetric(request.sample, request.metric, settings)
    values = replicates(request, statistic) / expansion.unit
    spread = VarianceEstimate(float(np.var(values, ddof=1)), request.freedom())
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early
    moved = replace(expansion, bias=float(np.mean(values)) - expansion.share)
    ends = interval_around(moved.centre, spread, request.level)
    method = f"bootstrap ({request.scheme}, {request.n_resamples}), bias taken off, logit scale"
    return _to_metric_scale(request, moved, estimate, ends, spread, method)


def compare_influences(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """Difference of a smooth metric, from the difference of each row's influence."""
    (value_a, rows_a, largest), (value_b, rows_b, _) = _influences(a), _influences(b)
    values = (value_a, value_b)
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{verdict.label} is {value_a:g} and {value_b:g}; a difference needs finite values."
        )
    apart = rows_a - rows_b
    size = max(1.0, float(np.max(np.abs(apart))))  # fourth powers of a large metric overflow
    spread = a.sample.spread_of_rows(apart / size)
    spread = replace(spread, variance=spread.variance * size**2)
    method = "paired influences of the rows"
    if not np.isfinite(spread.variance):
        raise ValueError(
            "One class has a single row, which does not show how far such rows spread: a "
            "comparison needs at least two positives and two negatives."
        )
    if spread.variance <= 1e-24 * max(1.0, value_a**2, value_b**2):
        return verdict.without_spread(values, a.sample.independent_pairs, method, largest)
    if a.method == "delong":
        law = VarianceEstimate(spread.variance, np.inf)
        return verdict.from_variance(values, law, "DeLong's variance, normal law")
    result = verdict.from_variance(values, spread, method)
    swaps = a.metric.swaps
    if swaps is None or len(a.sample.scores) > swaps.up_to or not a.sample.plain:
        return result
    chance = swap_p_value(a, b, swaps, value_a - value_b)
    method += "; p-value from swaps of the rankers"
    return replace(result, p_value=chance, adjusted_p_value=chance, method=method)


def _influences(request: MetricRequest) -> tuple[float, FloatArray, float]:
    """Value, influence of each row, and the largest difference there could be."""
    sample, value, expand = request.sample, request.estimate, request.metric.expansion
    assert expand is not None
    check_size(request.label, value)
    expansion = expand(sample.ranked, **request.settings)
    slope = slope_of(expansion.report, expansion.share)
    check_size(request.label, slope)
    influence = slope * sample.on_rows(expansion.on_positive, expansion.on_negative)
    return value, influence, abs(slope)


def swap_p_value(a: MetricRequest, b: MetricRequest, swaps: Swaps, difference: float) -> float:
    """Two-sided p-value of a difference, from random swaps of the rankers' ranks."""
    rng = np.random.default_rng(a.random_state)
    positive, n = a.sample.positive, len(a.sample.scores)
    # swapped ranks must not tie: one row keeps its jitter with either ranker
    jitter = rng.permutation(n) / (4 * n)
    ranks = [rankdata(one.sample.scores, "ordinal") + jitter for one in (a, b)]

    def statistic(ranks: FloatArray) -> FloatArray:
        return swaps.of_orders(_from_the_top(positive, ranks), **a.settings)

    reached = done = 0
    while done < a.n_resamples:
        count = min(a.n_resamples - done, max(1, _CELLS // n))
        swap = rng.random((count, n)) < 0.5
        first, second = np.where(swap, ranks[1], ranks[0]), np.where(swap, ranks[0], ranks[1])
        gaps = statistic(first) - statistic(second)
        reached += int(np.count_nonzero(np.abs(gaps) >= abs(difference) * (1 - 1e-9)))
        done += count
    return (1 + reached) / (1 + a.n_resamples)


def _from_the_top(positive: NDArray[np.bool_], ranks: FloatArray) -> NDArray[np.bool_]:
    """The labels from the top of each list to its bottom, one list per row."""
    return positive[np.argsort(-ranks, axis=1)]
