"""Bootstrap intervals and comparisons, for the metrics that offer nothing better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import OfOrder
from toprank.inference.request import Request, check_size
from toprank.inference.result import Comparison, Interval
from toprank.inference.sample import Sample, Spread
from toprank.inference.shares import around, clopper_pearson
from toprank.inference.verdict import Verdict

#: Rows that a function without weights may be given.
_MOST_COPIES = 1e8

Statistic = Callable[[FloatArray], float]


def resampled(request: Request) -> Interval:
    """Interval around the estimate from the spread of resampled values.

    It is made on the logit scale if the metric has a smallest and a largest value, on the log
    scale if it has no values below 0, and otherwise as it is.
    """
    request.only("bootstrap")
    statistic, estimate = statistic_of(request)
    values = request.replicates(statistic)
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{request.label} is not finite in {np.mean(~np.isfinite(values)):.0%} of the "
            "resamples, so its spread cannot be estimated."
        )
    check_size(request.label, float(np.max(np.abs(values))))
    lowest, highest = request.metric.bounds(request.settings)
    method = f"bootstrap ({request.scheme}, {request.n_resamples})"
    error = float(np.std(values, ddof=1))
    bounded = bool(np.isfinite(highest - lowest))
    if error <= 1e-12 * abs(estimate) or (bounded and not lowest < estimate < highest):
        return _constant(request, estimate, error, method)
    if bounded:
        span = highest - lowest
        spread = Spread((error / span) ** 2, request.freedom())
        low, high = around((estimate - lowest) / span, spread, request.level)
        ends = (lowest + span * low, lowest + span * high)
        return request.result(estimate, ends, error, f"{method}, logit scale")
    reach = float(student.ppf((1 + request.level) / 2, request.freedom()))
    if lowest == 0 and estimate > 0 and np.all(values > 0):
        with np.errstate(over="ignore"):
            factor = float(np.exp(reach * np.std(np.log(values), ddof=1)))
        ends = (estimate / factor, estimate * factor)
        return request.result(estimate, ends, error, f"{method}, log scale")
    ends = (max(lowest, estimate - reach * error), min(highest, estimate + reach * error))
    return request.result(estimate, ends, error, method)


def _constant(request: Request, estimate: float, error: float, method: str) -> Interval:
    """Interval where no resample changes the value, or the value is the smallest or largest."""
    lowest, highest = request.metric.bounds(request.settings)
    note = "Every resample gives the same value, so the sample shows no spread"
    if not np.isfinite(highest - lowest):
        return request.result(estimate, (estimate, estimate), error, method, note=f"{note}.")
    span, trials = highest - lowest, min(request.sample.units)
    share = min(max((estimate - lowest) / span, 0.0), 1.0)
    low, high = clopper_pearson(share, trials, request.level)
    return request.result(
        estimate,
        (lowest + span * low, lowest + span * high),
        error,
        "Clopper-Pearson",
        note=f"{note}; the interval is that of {trials:g} trials that agree.",
    )


def compare_resampled(verdict: Verdict, a: Request, b: Request) -> Comparison:
    """Difference of any metric, over resamples that both rankers share."""
    (of_a, value_a), (of_b, value_b) = (statistic_of(one) for one in (a, b))
    values = a.replicates(lambda weight: of_a(weight) - of_b(weight))
    method = f"paired bootstrap ({a.scheme}, {a.n_resamples})"
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{verdict.label} is not finite in some resamples.")
    check_size(verdict.label, max(abs(value_a), abs(value_b), float(np.max(np.abs(values)))))
    spread = Spread(float(np.var(values, ddof=1)), a.freedom())
    if spread.variance <= 1e-24 * max(value_a**2, value_b**2):
        lowest, highest = a.metric.bounds(a.settings)
        largest = highest - lowest if np.isfinite(highest - lowest) else None
        pairs = a.sample.independent_pairs
        return verdict.without_spread((value_a, value_b), pairs, method, largest)
    return verdict.decided((value_a, value_b), spread, method)


def statistic_of(request: Request) -> tuple[Statistic, float]:
    """A metric as a statistic of the rows' weights, and its value."""
    metric, sample = request.metric, request.sample
    if metric.of_list is not None or metric.each_list is not None:
        return OfOrder(sample, metric, request.settings), request.estimate
    labels, settings = request.labels, request.row_settings
    takes_weights = metric.takes_weights
    if not takes_weights and sample.weight is not None:
        _check_copies(metric.name, sample)

    def statistic(weight: FloatArray) -> float:
        if takes_weights:
            given = (labels, sample.scores)
            return float(metric.function(*given, sample_weight=weight, **settings))
        rows = np.repeat(np.arange(len(weight)), np.round(weight).astype(np.intp))
        return float(metric.function(labels[rows], sample.scores[rows], **settings))

    weight = np.ones(len(labels)) if sample.weight is None else sample.weight
    return statistic, statistic(weight)


def _check_copies(name: str, sample: Sample) -> None:
    """Raise ValueError unless weights can be written out as copies of the rows."""
    if not sample.counts:
        raise ValueError(f"{name} takes no sample_weight, so rows cannot be weighted.")
    if not sample.ranked.whole or sample.ranked.total > _MOST_COPIES:
        raise ValueError(
            f"{name} takes no sample_weight, so that a row of weight w is given to it w times: "
            f"expected whole weights of at most {_MOST_COPIES:g} in all, got a total of "
            f"{sample.ranked.total:g}. Let it take sample_weight=."
        )
