"""Bootstrap intervals, for the metrics that have nothing better and for the caller's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from toprank._columns import labels_column
from toprank._numerics import FloatArray
from toprank.inference.bootstrap import OfOrder
from toprank.inference.request import ENDLESS, SAME_LENGTH, Request, check_size, only
from toprank.inference.result import Interval
from toprank.inference.sample import Sample, Spread
from toprank.inference.shares import around, clopper_pearson
from toprank.metrics._inputs import check_amounts
from toprank.metrics.cuts import Lists
from toprank.metrics.push import push_risk
from toprank.metrics.registry import METRICS
from toprank.metrics.value import value_at

#: Rows that a function without weights may be given.
_MOST_COPIES = 1e8
_SCALES = {"bedroc": "share", "dcg": "log", "aver": "log", "push_risk": "log"}


def resampled(request: Request) -> Interval:
    """Bootstrap of the metrics that have nothing better."""
    only(request, "bootstrap")
    statistic, estimate = statistic_of(request)
    scale = _SCALES.get(request.name, "plain")
    if request.settings.get("log", False):
        scale = "plain"
    values = request.replicates(statistic)
    estimand = ENDLESS if request.name in ("bedroc", "push_risk") else SAME_LENGTH
    return _from_replicates(request, values, estimate, scale, estimand)


def statistic_of(request: Request) -> tuple[Callable[[FloatArray], float], float]:
    """A registered metric as a statistic of the rows' weights, and its value."""
    sample, settings = request.sample, dict(request.settings)
    metric = METRICS[request.name]
    if request.name == "value_at":
        return _value_statistic(sample, settings)
    if request.name == "push_risk":
        return _push_statistic(sample, settings)
    lists = Lists.of_one(sample.ranked)
    return OfOrder(sample, metric, settings), metric.of(sample.ranked, lists, **settings)


def _push_statistic(
    sample: Sample, settings: dict[str, Any]
) -> tuple[Callable[[FloatArray], float], float]:
    def statistic(weight: FloatArray) -> float:
        return push_risk(sample.positive, sample.scores, sample_weight=weight, **settings)

    weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
    return statistic, statistic(weight)


def _value_statistic(
    sample: Sample, settings: dict[str, Any]
) -> tuple[Callable[[FloatArray], float], float]:
    """Amounts belong to the caller's rows; those of absent rows go with them."""
    for name in ("benefit", "cost"):
        if np.ndim(settings.get(name, 0.0)):
            settings[name] = check_amounts(name, settings[name], sample.rows)[sample.present]

    def statistic(weight: FloatArray) -> float:
        return value_at(sample.positive, sample.scores, sample_weight=weight, **settings)

    weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
    return statistic, statistic(weight)


def _from_replicates(
    request: Request, values: FloatArray, estimate: float, scale: str, estimand: str
) -> Interval:
    """Interval around the estimate from the spread of resampled values, on the given scale."""
    method = f"bootstrap ({request.scheme}, {request.n_resamples})"
    freedom = request.freedom()
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{request.label} is not finite in {np.mean(~np.isfinite(values)):.0%} of the "
            "resamples, so its spread cannot be estimated."
        )
    check_size(request.label, float(np.max(np.abs(values))))
    error = float(np.std(values, ddof=1))
    if error <= 1e-12 * abs(estimate) or (scale == "share" and not 0 < estimate < 1):
        return _constant(request, estimate, scale, method, estimand, error)
    if scale == "share":
        spread = Spread(error**2, freedom)
        ends = around(estimate, spread, request.level)
        return request.result(estimate, ends, error, f"{method}, logit scale", estimand)
    reach = float(student.ppf((1 + request.level) / 2, freedom))
    if scale == "log" and estimate > 0 and np.all(values > 0):
        with np.errstate(over="ignore"):
            factor = float(np.exp(reach * np.std(np.log(values), ddof=1)))
        ends = (estimate / factor, estimate * factor)
        return request.result(estimate, ends, error, f"{method}, log scale", estimand)
    ends = (estimate - reach * error, estimate + reach * error)
    return request.result(estimate, ends, error, method, estimand)


def _constant(
    request: Request, estimate: float, scale: str, method: str, estimand: str, error: float
) -> Interval:
    """No resample changes the value."""
    note = "Every resample gives the same value, so the sample shows no spread"
    if scale != "share":
        return request.result(
            estimate, (estimate, estimate), error, method, estimand, note=f"{note}."
        )
    sample = request.sample
    trials = min(sample.units)
    ends = clopper_pearson(estimate, trials, request.level)
    return request.result(
        estimate,
        ends,
        error,
        "Clopper-Pearson",
        estimand,
        note=f"{note}; the interval is that of {trials:g} trials that agree.",
    )


def own_labels(y: ArrayLike, pos_label: Any) -> Any:
    """The labels as a caller's function sees them: 1 and 0 where a positive class is named."""
    labels = labels_column("y", y)
    return labels if pos_label is None else (labels == pos_label).astype(np.intp)


def of_callable(request: Request, metric: Callable[..., float], y: ArrayLike) -> Interval:
    """Bootstrap of a function of labels and scores."""
    only(request, "bootstrap")
    statistic, estimate = callable_statistic(request, metric, y)
    values = request.replicates(statistic)
    return _from_replicates(request, values, estimate, "plain", SAME_LENGTH)


def callable_statistic(
    request: Request, metric: Callable[..., float], y: ArrayLike
) -> tuple[Callable[[FloatArray], float], float]:
    """A function of labels and scores as a statistic of the rows' weights, and its value."""
    sample = request.sample
    labels = np.asarray(y)[sample.present]
    takes_weights = "sample_weight" in inspect.signature(metric).parameters
    if sample.weight is not None and not (takes_weights or sample.counts):
        raise ValueError(f"{request.name} takes no sample_weight, so rows cannot be weighted.")
    if sample.weight is not None and not takes_weights:
        _check_copies(request.name, sample)

    def statistic(weight: FloatArray) -> float:
        if takes_weights:
            return float(metric(labels, sample.scores, sample_weight=weight, **request.settings))
        rows = np.repeat(np.arange(len(weight)), np.round(weight).astype(np.intp))
        return float(metric(labels[rows], sample.scores[rows], **request.settings))

    weight = np.ones(len(labels)) if sample.weight is None else sample.weight
    return statistic, statistic(weight)


def _check_copies(name: str, sample: Sample) -> None:
    """Raise ValueError unless weights can be written out as copies of the rows."""
    if not sample.ranked.whole or sample.ranked.total > _MOST_COPIES:
        raise ValueError(
            f"{name} takes no sample_weight, so that a row of weight w is given to it w times: "
            f"expected whole weights of at most {_MOST_COPIES:g} in all, got a total of "
            f"{sample.ranked.total:g}. Let it take sample_weight=."
        )
