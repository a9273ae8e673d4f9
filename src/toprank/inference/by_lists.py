"""Means of a metric over many lists, such as days or queries: the lists are the sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.request import Request
from toprank.inference.result import Comparison, Interval
from toprank.inference.sample import Sample, Spread
from toprank.inference.shares import around, clopper_pearson
from toprank.inference.verdict import Verdict
from toprank.metrics.metric import SHARE, Metric
from toprank.metrics.registry import METRICS

OTHER_LISTS = "the mean over all lists drawn like these"


def check_lists(metric: Metric, groups: ArrayLike | None, method: str = "auto") -> None:
    """Raise ValueError where a mean over lists makes no sense."""
    if not metric.takes_lists:
        takers = [other.name for other in METRICS.values() if other.takes_lists]
        raise ValueError(
            f"{metric.name} is not a mean over lists; lists= is for {takers}. For rows that depend "
            "on each other use groups=."
        )
    if groups is not None:
        raise ValueError("Give lists= or groups=, not both: the lists are what is drawn.")
    if method not in ("auto", "projection"):
        raise ValueError(f"A mean over lists has no interval by method={method!r}; use 'auto'.")


def weight_of_rows(
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


def of_lists(request: Request, values: FloatArray) -> Interval:
    """Interval for the mean of a metric from its value in each list: the lists are independent."""
    estimate = float(np.mean(values))
    method, note = f"Student's t over {len(values)} lists", ""
    if len(values) < 2:
        raise ValueError(
            f"lists holds {len(values)} list with a positive; an interval over lists needs two."
        )
    spread = Spread(float(np.var(values, ddof=1)) / len(values), len(values) - 1.0)
    error = float(np.sqrt(spread.variance))
    lowest, highest = request.metric.bounds(request.settings)
    share = (lowest, highest) == SHARE
    if error == 0 and share:
        ends = clopper_pearson(estimate, len(values), request.level)
        note = "Every list has the same value; the interval is that of as many trials that agree."
    elif share and 0 < estimate < 1:
        ends = around(estimate, spread, request.level)
        method += ", logit scale"
    else:
        reach = float(student.ppf((1 + request.level) / 2, spread.freedom)) * error
        ends = (max(lowest, estimate - reach), estimate + reach)
        if error == 0:
            note = "Every list has the same value, so the sample shows no spread."
    return request.result(estimate, ends, error, method, OTHER_LISTS, note=note)


def compare_lists(verdict: Verdict, metric: Metric, values: list[FloatArray]) -> Comparison:
    """Paired differences of the values of each list."""
    differences = values[0] - values[1]
    count = len(differences)
    if count < 2:
        raise ValueError(f"lists holds {count} list with a positive; a comparison needs two.")
    means = [float(np.mean(one)) for one in values]
    method = f"paired Student's t over {count} lists"
    spread = Spread(float(np.var(differences, ddof=1)) / count, count - 1.0)
    if spread.variance <= 1e-24 * max(1.0, *(mean**2 for mean in means)):
        largest = 1.0 if metric.values == SHARE else None
        return verdict.without_spread(means, count, method, largest)
    return verdict.decided(means, spread, method)
