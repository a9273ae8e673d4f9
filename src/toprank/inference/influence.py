"""Intervals and comparisons from what each row adds to a metric: its first-order expansion.

A metric with an `Expansion` (see `toprank.metrics.expansion`) is a share, and its interval is made
on the logit scale. Shares of pairs have score intervals. Groups that were drawn whole are left out
in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import WeightedMetric, replicates
from toprank.inference.by_groups import (
    independent_units,
    note_on_groups,
    note_on_weights,
    spread_over_groups,
)
from toprank.inference.rare_errors import allow_for_rare_rows
from toprank.inference.result import Interval, MetricRequest, check_size
from toprank.inference.sample import Sample, VarianceEstimate
from toprank.inference.score_interval import (
    count_errors,
    level_without_other_tail,
    note_on_few_of_a_class,
    note_on_few_rows,
    note_on_missed_hits,
    note_on_top_tie,
    score_interval,
)
from toprank.inference.shares import agreement_interval, interval_around, on_logit, slope_of
from toprank.metrics.expansion import PROJECTION, Expansion
from toprank.metrics.left_out_expansions import without_one

#: Samples up to this size feel the noise that taking off a bias adds.
_SMALL = 1000


def interval_from_expansion(request: MetricRequest, expansion: Expansion) -> Interval:
    """Interval of a metric that has an expansion."""
    sample, estimate = request.sample, request.estimate
    check_size(request.label, estimate)
    if sample.groups is not None and request.method in ("auto", "score"):
        request.check_method(*_methods(expansion))
        return _over_groups(request, expansion, estimate)
    request.check_method(*_methods(expansion))
    if expansion.power is not None and not sample.by_ties:
        # parts of the one row that makes a risk tell of no bias, and little on the logit scale
        expansion = replace(expansion, bias=0.0, on_logit=None)
    if request.method == "bootstrap" or (expansion.needs_copies and sample.groups is not None):
        return _resampled_share(request, expansion, estimate)
    if expansion.pairs is not None and request.method in ("auto", "score"):
        spread = sample.spread(expansion.on_positive, expansion.on_negative)
        return _by_score(request, expansion, estimate, spread)
    spread = spread_of(expansion, sample)
    if request.method == "delong":
        return _by_delong(request, expansion, estimate, spread)
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early
    ends_at = _ends_on_logit(sample, expansion, spread)
    low_level = _level_of_lower_end(request, expansion, ends_at)
    ends = (ends_at(low_level)[0], ends_at(request.level)[1])
    ends = _with_rare_rows(request, expansion, spread, ends)
    notes = note_on_weights(sample), _note_on_powers(request, expansion, spread)
    method, note = f"{expansion.method}, logit scale", " ".join(filter(None, notes))
    return _to_metric_scale(request, expansion, estimate, ends, spread, method, note)


def _ends_on_logit(
    sample: Sample, expansion: Expansion, spread: VarianceEstimate
) -> Callable[[float], tuple[float, float]]:
    """The ends of the interval on the logit scale, for any level."""
    if expansion.on_logit is not None:
        centre, on_positive, on_negative = expansion.on_logit
        there = sample.spread(on_positive, on_negative)
        there = _allow_for_few_positives(sample, there, on_positive)
        error = float(np.sqrt(there.variance))
        return lambda level: on_logit(centre, error, there.plain_freedom, level)
    known = replace(spread, freedom=np.inf) if expansion.normal else spread
    if expansion.power is not None:
        known = _allow_for_few_positives(sample, known, expansion.on_positive)
    return lambda level: interval_around(expansion.centre, known, level)


def _level_of_lower_end(
    request: MetricRequest,
    expansion: Expansion,
    ends_at: Callable[[float], tuple[float, float]],
) -> float:
    """The level of the lower end, less where values near it cannot be missed by the upper one.

    The upper end leaves out no risk that a sample without an error leaves possible. Where a bias
    is taken off, the lower end at a low level may lie above the risk seen; it is not moved there.
    """
    if expansion.power is None:
        return request.level
    rows, power, misplaced = request.sample.units[1], expansion.power, expansion.misplaced

    def beyond(level: float) -> float:
        possible = allow_for_rare_rows((0, 0), 0, 0, power, rows, level, misplaced)[1]
        return ends_at(level)[0] - min(possible, expansion.share)

    return level_without_other_tail(beyond, request.level)


def _allow_for_few_positives(
    sample: Sample, spread: VarianceEstimate, on_positive: FloatArray
) -> VarianceEstimate:
    """The spread of a mean of powers, with what a handful of positives hide of their own part.

    By simulation with 5, 10 and 20 positives among a hundred times as many negatives: a handful
    that happen to lie together show too little of it. What is missing falls with their square.
    """
    part = sample.spread(on_positive, np.zeros_like(on_positive)).variance
    more = (_HANDFUL / sample.units[0]) ** 2 * part
    return replace(spread, variance=spread.variance + more)


def _with_rare_rows(
    request: MetricRequest,
    expansion: Expansion,
    spread: VarianceEstimate,
    ends: tuple[float, float],
) -> tuple[float, float]:
    """The ends, moved as far as rows that are rarely drawn could have moved them."""
    if expansion.power is None:
        return ends
    share, sample = expansion.share, request.sample
    rows = independent_units(sample, share, spread.variance)[1]
    error = float(np.sqrt(max(0.0, spread.variance)))
    how = (expansion.power, rows, request.level, expansion.misplaced)
    return allow_for_rare_rows(ends, share, error, *how)


def _note_on_powers(request: MetricRequest, expansion: Expansion, spread: VarianceEstimate) -> str:
    """Where the interval of a mean of powers covers less than it says; empty elsewhere."""
    if expansion.power is None:
        return ""
    positives = request.sample.units[0]
    if positives < _FEW_POSITIVES:
        return (
            f"It rests on {positives:.3g} positives; with fewer than {_FEW_POSITIVES} simulated "
            "intervals of this metric covered as little as 90% (see toprank.simulate.coverage)."
        )
    power = expansion.power
    if power >= _STEEP and power * spread.variance**0.5 > expansion.share:
        return (
            f"At p={power:g} the highest few negatives carry most of this risk, where "
            "simulated intervals covered as little as 89%. A smaller p can be told more surely."
        )
    if power >= _STEEP and 2 * power >= positives:
        return (
            f"At p={power:g} this risk hangs on how near to all of the positives the highest "
            f"negatives lead, which {positives:.3g} positives hardly show: simulated intervals "
            "covered as little as 88%. A smaller p can be told more surely."
        )
    return ""


#: Positives of whose part in a mean of powers half is seen.
_HANDFUL = 5.0
#: Positives below which intervals of the p-norm risk cover too little, and powers from which they
#: do where one negative carries the risk.
_FEW_POSITIVES, _STEEP = 6, 8.0


def _methods(expansion: Expansion) -> tuple[str, ...]:
    """What may be asked for, the default first."""
    score = ("score",) if expansion.pairs is not None else ()
    delong = ("delong",) if expansion.method == PROJECTION else ()
    return (*score, "projection", *delong, "bootstrap")


def _over_groups(request: MetricRequest, expansion: Expansion, estimate: float) -> Interval:
    """Interval from the spread over groups, each left out in turn where they are not too many."""
    sample, method = request.sample, "each group left out in turn"
    share = WeightedMetric(sample, request.metric, request.settings | {**expansion.share_settings})
    spread = spread_over_groups(sample, lambda weight: share(weight) / expansion.unit)
    if spread is None and expansion.needs_copies:
        found = _resampled_share(request, expansion, estimate)
        return replace(found, note=" ".join(filter(None, (found.note, note_on_groups(sample)))))
    if spread is None:
        spread, method = spread_of(expansion, sample), f"{expansion.method} of the groups"
    unbiased = replace(expansion, bias=0.0)
    if expansion.pairs is not None:
        return _by_score(request, unbiased, estimate, spread, method)
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early

    def ends_at(level: float) -> tuple[float, float]:
        return interval_around(expansion.share, spread, level)

    low_level = _level_of_lower_end(request, expansion, ends_at)
    ends = (ends_at(low_level)[0], ends_at(request.level)[1])
    ends = _with_rare_rows(request, expansion, spread, ends)
    method = f"{method}, logit scale"
    notes = note_on_groups(sample), _note_on_powers(request, expansion, spread)
    note = " ".join(filter(None, notes))
    return _to_metric_scale(request, unbiased, estimate, ends, spread, method, note)


def _by_score(
    request: MetricRequest,
    expansion: Expansion,
    estimate: float,
    spread: VarianceEstimate,
    method: str = "",
) -> Interval:
    """The score interval of a share of pairs."""
    sample, pairs = request.sample, expansion.pairs
    assert pairs is not None
    expansion = replace(expansion, bias=expansion.bias * pairs.bias_taken)
    if not np.isfinite(spread.variance):
        return _of_single_row(request, expansion, estimate)
    shows_none = _shows_no_spread(expansion, spread)
    if shows_none:
        spread = replace(spread, variance=0.0)  # what rounding leaves is no small spread
    units = independent_units(sample, expansion.share, spread.variance)
    low, high = score_interval(
        expansion.centre,
        spread,
        pairs,
        units,
        request.level,
        over_groups=sample.groups is not None,
        top=expansion.top,
    )
    ends = (low * pairs.bound_from_below(sample.units), max(high, expansion.share))
    method = f"score interval, {method or expansion.method}"
    notes = (
        note_on_groups(sample),
        note_on_weights(sample),
        note_on_few_rows(pairs, sample.units),
        note_on_top_tie(pairs, sample.ranked),
        note_on_few_of_a_class(pairs, sample.units)
        if sample.groups is None and expansion.top is None
        else "",
        _note_on_few_errors(expansion, spread),
        note_on_missed_hits(expansion.share, ends[1], expansion.top, sample.units[0])
        if sample.groups is None
        else "",
    )
    note = " ".join(filter(None, notes))
    if shows_none:
        note = (
            "Every pair of rows says the same, so the sample shows no spread; the interval is "
            f"what {units[0]:.4g} positives and {units[1]:.4g} negatives leave possible, if the "
            "scores have the spread of exponential ones (Newcombe 2006)."
        )
    return _to_metric_scale(request, expansion, estimate, ends, spread, method, note)


def _note_on_few_errors(expansion: Expansion, spread: VarianceEstimate) -> str:
    """Where a few heavy errors make the share less than one; empty elsewhere."""
    errors = count_errors(expansion.centre, spread.variance)
    if expansion.top is None or not 0 < errors < FEW_ERRORS:
        return ""
    return (
        f"The rows out of place count as about {errors:.2g} independent errors. With fewer than "
        f"{FEW_ERRORS}, and scores with very long tails, simulated 95% intervals of this metric "
        "held the true value in 91% of the samples or more (see toprank.simulate.coverage)."
    )


#: Errors below which intervals of the average precision may cover too little.
FEW_ERRORS = 12


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
    small = small and sample.by_ties
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
    trials = expansion.trials
    if request.sample.groups is not None:
        trials = min(trials, request.sample.independent_pairs)
    ends = agreement_interval(expansion.share, trials, request.level)
    if expansion.share == 0:
        wider = _with_rare_rows(request, expansion, spread, ends)
        ends = (ends[0], max(ends[1], wider[1]))
    return request.result(
        estimate,
        _reported(expansion, estimate, ends),
        0.0,
        "exact, from disjoint pairs",
        note=(
            "Every pair of rows says the same, so the sample shows no spread; the interval is "
            f"what {trials:g} disjoint pairs that agree leave possible."
        ),
    )


def _shows_no_spread(expansion: Expansion, spread: VarianceEstimate) -> bool:
    # sums over many rows leave rounding errors where the spread is zero
    return spread.variance <= 1e-24 or not 0 < expansion.share < 1


def _of_single_row(request: MetricRequest, expansion: Expansion, estimate: float) -> Interval:
    """One class has a single row: no interval is shorter than the whole range."""
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
    """Bring an interval for the share to the form of the metric.

    Around a centre without bias an interval can end before the share that was seen, and so can one
    of a low level on the logit scale, where leaving out the only error moves the share without end.
    What the sample shows is always possible, with its bias and without.
    """
    share, error = expansion.share, float(np.sqrt(spread.variance))
    ends = (min(ends[0], share, expansion.centre), max(ends[1], share, expansion.centre))
    slope = slope_of(expansion.report, share)
    bias = estimate - expansion.report(expansion.centre) if expansion.bias else 0.0
    reported = _reported(expansion, estimate, ends)
    return request.result(estimate, reported, slope * error, method, bias=bias, note=note)


def _reported(
    expansion: Expansion, estimate: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """The ends in the form of the metric; the estimate, which rounding may move, among them."""
    values = (estimate, expansion.report(ends[0]), expansion.report(ends[1]))
    return float(np.min(values)), float(np.max(values))  # NaN, if any is


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
    note = _note_on_powers(request, expansion, spread)
    if expansion.pairs is not None:
        note = note_on_few_rows(expansion.pairs, request.sample.units)
    return _to_metric_scale(request, moved, estimate, ends, spread, method, note)
