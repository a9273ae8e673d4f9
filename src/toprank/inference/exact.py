"""Intervals of shares of trials: of the rows at a cut, and of the positives above every negative.

The ordinary bootstrap is inconsistent for a maximum: the highest row of a resample is the highest
of the sample with a chance that does not fade. Given the negatives, however, each positive is
above them all or not, independently of the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank.inference.bootstrap import OfOrder
from toprank.inference.request import Request
from toprank.inference.result import Interval
from toprank.inference.sample import Sample
from toprank.inference.shares import clopper_pearson
from toprank.metrics.at_cut import Cut, effective_trials, smoothed

GIVEN_NEGATIVES = "the expected value for new positives, against the negatives of this list"


def of_cut(request: Request, cut: Cut) -> Interval:
    """Interval of a share at a cut of the list."""
    sample, method = request.sample, "Clopper-Pearson, effective trials"
    trials, variance = cut.trials, cut.variance
    request.only("exact", "bootstrap")
    if sample.groups is not None or request.method == "bootstrap":
        statistic = OfOrder(sample, request.metric, request.settings)
        variance = float(np.var(request.replicates(statistic) / cut.scale, ddof=1))
        trials = effective_trials(smoothed(cut.share * trials, trials), variance, trials)
        method = f"Clopper-Pearson, trials from a bootstrap ({request.scheme})"
    low, high = (float(end) for end in clopper_pearson(cut.share, trials, request.level))
    return request.result(
        request.estimate,
        (cut.report(low), cut.report(high)),
        cut.scale * float(np.sqrt(variance)),
        method,
    )


def given_negatives(request: Request, report: Callable[[float, float], float]) -> Interval:
    """Interval of a metric that the highest negative decides: positives are the trials.

    `report` gives the metric from the share of positives above every negative, and the weight of
    all positives.
    """
    sample = request.sample
    request.only("exact")
    above, trials, variance = _positives_above(sample)
    low, high = clopper_pearson(above, trials, request.level)
    total = sample.ranked.positives
    return request.result(
        request.estimate,
        (report(low, total), report(high, total)),
        abs(report(1.0, total) - report(0.0, total)) * float(np.sqrt(variance)),
        "Clopper-Pearson, given the negatives",
        GIVEN_NEGATIVES,
        note=(
            f"The highest negative alone decides {request.metric.name}, where the ordinary "
            "bootstrap is inconsistent. Another sample of negatives has another highest one, which "
            "this interval does not account for."
        ),
    )


def _positives_above(sample: Sample) -> tuple[float, float, float]:
    """Share of positives above every negative, with its trials and variance."""
    ranked = sample.ranked
    beaten = np.arange(len(ranked.scores)) >= ranked.first_negative
    share = float(ranked.found[ranked.first_negative] / ranked.positives)
    trials = sample.units[0]
    inner = smoothed(share * trials, trials)
    variance = inner * (1 - inner) / trials
    if sample.groups is not None:
        spread = sample.spread((~beaten).astype(np.float64), np.zeros(len(beaten)))
        variance = max(variance, spread.variance)
    return share, effective_trials(inner, variance, trials), variance
