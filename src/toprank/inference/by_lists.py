"""Means of a metric over many lists, such as days or queries: the lists are the sample."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.request import OTHER_LISTS, Request, check_settings
from toprank.inference.result import Interval
from toprank.inference.sample import Sample, Spread
from toprank.inference.shares import around, clopper_pearson
from toprank.metrics.cuts import Lists
from toprank.metrics.registry import METRICS, get_metric
from toprank.metrics.value import value_each


def check_lists(name: str, groups: ArrayLike | None, method: str) -> None:
    """Raise ValueError where a mean over lists makes no sense."""
    metric = get_metric(name)
    if "groups" not in inspect.signature(metric.function).parameters:
        takers = [
            other.name
            for other in METRICS.values()
            if "groups" in inspect.signature(other.function).parameters
        ]
        raise ValueError(
            f"{name} is not a mean over lists; lists= is for {takers}. For rows that depend on "
            "each other use groups=."
        )
    if groups is not None:
        raise ValueError("Give lists= or groups=, not both: the lists are what is drawn.")
    if method not in ("auto", "projection"):
        raise ValueError(f"A mean over lists has no interval by method={method!r}; use 'auto'.")


def resolved_weight(
    y: ArrayLike,
    s: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
    pos_label: Any,
) -> FloatArray | None:
    """Weights of all rows, propensities included; None means one each."""
    sample = Sample.of(y, s, sample_weight, None, "counts", label_propensity, pos_label)
    if sample.weight is None:
        return None
    weight = np.zeros(len(np.asarray(s)))
    weight[sample.present] = sample.weight
    return weight


def of_lists(
    name: str,
    y: ArrayLike,
    s: ArrayLike,
    lists: ArrayLike,
    weight: FloatArray | None,
    pos_label: Any,
    level: float,
    settings: dict[str, Any],
) -> Interval:
    """Interval for the mean of a metric over lists: the lists are independent."""
    metric = get_metric(name)
    check_settings(metric, settings)
    values = per_list(name, y, s, lists, weight, pos_label, settings)
    request = Request(name, settings, Sample.of(y, s, pos_label=pos_label), level, "auto")
    estimate = float(np.mean(values))
    method, note = f"Student's t over {len(values)} lists", ""
    if len(values) < 2:
        raise ValueError(
            f"lists holds {len(values)} list with a positive; an interval over lists needs two."
        )
    spread = Spread(float(np.var(values, ddof=1)) / len(values), len(values) - 1.0)
    error = float(np.sqrt(spread.variance))
    share = is_share(name)
    if error == 0 and share:
        ends = clopper_pearson(estimate, len(values), level)
        note = "Every list has the same value; the interval is that of as many trials that agree."
    elif share and 0 < estimate < 1:
        ends = around(estimate, spread, level)
        method += ", logit scale"
    else:
        reach = float(student.ppf((1 + level) / 2, spread.freedom)) * error
        ends = (estimate - reach, estimate + reach)
        if name != "value_at":
            ends = (max(0.0, ends[0]), ends[1])
        if error == 0:
            note = "Every list has the same value, so the sample shows no spread."
    return request.result(estimate, ends, error, method, OTHER_LISTS, note=note)


def is_share(name: str) -> bool:
    """Whether the metric of a list is a number from 0 to 1."""
    return name not in ("value_at", "lift_at", "enrichment_factor")


def per_list(
    name: str,
    y: ArrayLike,
    s: ArrayLike,
    lists: ArrayLike,
    weight: FloatArray | None,
    pos_label: Any,
    settings: dict[str, Any],
) -> FloatArray:
    """The values that the metric, with ``groups=lists``, is the mean of."""
    metric = get_metric(name)
    if metric.each_list is None:
        return value_each(y, s, groups=lists, sample_weight=weight, pos_label=pos_label, **settings)
    return metric.each_list(Lists.of(y, s, lists, weight, None, pos_label), **settings)
