"""Intervals and comparisons of metrics of real-valued labels, which are U-statistics.

Rows, or groups of them, are drawn together, whatever their labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray
from toprank.inference.result import Comparison, Interval
from toprank.inference.sample import Pulls, combined, sums_in
from toprank.inference.u_statistics import ranking_projection, u_statistic
from toprank.inference.verdict import Verdict
from toprank.metrics.metric import Metric


def of_kernel(
    metric: Metric,
    y: ArrayLike,
    s: ArrayLike,
    weight: FloatArray,
    units: NDArray[np.intp] | None,
    level: float,
    method: str,
    **rows: Any,
) -> Interval:
    """Interval of the mean of the metric's kernel; `rows` are the caller's weights."""
    if method not in ("auto", "projection"):
        raise ValueError(
            f"{metric.name} has no interval by method={method!r}; it has ['projection']."
        )
    assert metric.kernel is not None
    estimate = metric.function(y, s, **rows)
    pairs = np.column_stack([np.asarray(y, dtype=np.float64), np.asarray(s, dtype=np.float64)])
    result = u_statistic(metric.kernel, pairs, groups=units, sample_weight=weight)
    low, high = result.interval(level)
    return Interval(
        metric.name,
        estimate,
        low,
        high,
        result.standard_error,
        level,
        "Hoeffding projection, logit scale",
        metric.estimand,
        note="" if result.variance > 0 else "Every pair of rows says the same.",
    )


def compare_kernels(
    verdict: Verdict,
    y: ArrayLike,
    scores: tuple[Any, Any],
    weight: FloatArray,
    units: NDArray[np.intp] | None,
) -> Comparison:
    """Difference of two ranking risks, from the difference of the projections of each row."""
    (a, of_a), (b, of_b) = (ranking_projection(y, s, weight) for s in scores)
    total = float(np.sum(weight))
    pulls = 2 * (of_a - of_b - (a - b)) / total
    if units is None:
        spread = combined(Pulls(pulls[weight > 0], weight[weight > 0]))
    else:
        spread = combined(Pulls(sums_in(units, weight * pulls), None))
    method = "paired projections of the rows"
    if spread.variance <= 1e-24:
        drawn = total if units is None else len(np.unique(units))
        return verdict.without_spread((a, b), max(1.0, drawn // 2), method, 1.0)
    return verdict.decided((a, b), spread, method)
