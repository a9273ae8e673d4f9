"""Metrics that the one highest negative decides: exact intervals for new positives.

The ordinary bootstrap is inconsistent for a maximum: the highest row of a resample is the highest
of the sample with a chance that does not fade. Given the negatives, however, each positive is
above them all or not, independently of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.inference.request import GIVEN_NEGATIVES, Request, only, without_lists
from toprank.inference.result import Interval
from toprank.inference.sample import Sample
from toprank.inference.shares import clopper_pearson, effective_trials, smoothed
from toprank.metrics.registry import METRICS


def is_extreme(name: str, settings: dict[str, Any]) -> bool:
    """Whether the highest negative alone decides the metric."""
    return (
        name in ("max_height", "positives_at_top")
        or (name == "tpr_at_fpr" and settings.get("fpr") == 0)
        or (name == "pnorm_risk" and settings.get("p") == np.inf and not settings.get("margin"))
    )


def given_negatives(request: Request) -> Interval:
    """Exact interval for metrics that the highest negative decides: positives are the trials."""
    sample = request.sample
    only(request, "exact")
    estimate = METRICS[request.name].of(sample.ranked, without_lists(), **request.settings)
    above, trials, variance = positives_above(sample)
    low, high = clopper_pearson(above, trials, request.level)
    report = _of_share_above(request)
    return request.result(
        estimate,
        (report(low), report(high)),
        abs(report(1.0) - report(0.0)) * float(np.sqrt(variance)),
        "Clopper-Pearson, given the negatives",
        GIVEN_NEGATIVES,
        note=(
            f"The highest negative alone decides {request.name}, where the ordinary bootstrap is "
            "inconsistent. Another sample of negatives has another highest one, of which this "
            "interval does not speak."
        ),
    )


def positives_above(sample: Sample) -> tuple[float, float, float]:
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


def _of_share_above(request: Request) -> Callable[[float], float]:
    """From the share of positives above every negative to the metric."""
    name, settings = request.name, request.settings
    total = request.sample.ranked.positives

    def report(share: float) -> float:
        if name == "tpr_at_fpr":
            return share
        if name == "positives_at_top":
            return share if settings.get("normalize", True) else share * total
        height = 1 - share if settings.get("normalize", False) else (1 - share) * total
        if not settings.get("log", False):
            return height
        return float(np.log(height)) if height > 0 else -np.inf

    return report
