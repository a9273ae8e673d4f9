"""Intervals and comparisons of metrics of real-valued labels: means of a kernel over pairs of rows.

The share of pairs that are ranked wrongly has a score interval, as the AUC has: every share that
the sample does not contradict. The variance seen is that of the Hoeffding projection; where few
errors show it, and it is below that of a model, the model's is believed instead. Of n rows there
are n (n - 1) / 2 pairs, and each shares a row with twice n - 2 others.

A row that is put anywhere adds more errors than many rows that are nearly right: the end at more
errors is at least as far as one more such row would put it (see `rare_errors`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray
from toprank.inference.rare_errors import most_errors
from toprank.inference.result import Comparison, Interval, Verdict
from toprank.inference.sample import Pulls, VarianceEstimate, combined_variance, sums_by_group
from toprank.inference.score_interval import score_interval
from toprank.inference.u_statistics import UStatistic, ranking_projection, u_statistic
from toprank.metrics.expansion import PairShare
from toprank.metrics.metric import Metric

#: Errors of real labels are mostly small, between rows that are alike: a third of the variance that
#: exponential scores have, until ten errors show what it is.
_PAIRS = PairShare(
    wide=True, errors_to_trust=10.0, hits_to_trust=None, scale=0.3, freedom_over_groups=None
)
#: Errors, in terms of their spread over groups, at which rows of groups count half as rows.
_ERRORS_TO_TRUST = 5.0
#: Share of its pairs that a row misranks on average if its score says nothing of its label.
_MISPLACED = 1 / 3
METHODS = ("score", "projection")


def interval_of_kernel(
    metric: Metric,
    y: ArrayLike,
    s: ArrayLike,
    weight: FloatArray,
    units: NDArray[np.intp] | None,
    level: float,
    method: str,
    **rows: object,
) -> Interval:
    """Interval of the mean of the kernel of a metric of real-valued labels.

    Rows, or groups of them, are drawn together, whatever their labels; `rows` are the caller's
    weights.
    """
    if method not in ("auto", *METHODS):
        raise ValueError(
            f"{metric.name} has no interval by method={method!r}; it has {list(METHODS)}."
        )
    assert metric.kernel is not None
    estimate = metric.function(y, s, **rows)
    pairs = np.column_stack([np.asarray(y, dtype=np.float64), np.asarray(s, dtype=np.float64)])
    result = u_statistic(metric.kernel, pairs, groups=units, sample_weight=weight)
    if method == "projection":
        ends, how = result.interval(level), "Hoeffding projection, logit scale"
    else:
        ends, how = _score_ends(result, level), "score interval, Hoeffding projection"
    return Interval(
        metric.name,
        estimate,
        *ends,
        result.standard_error,
        level,
        how,
        metric.estimand,
        note=_note_on_rows(result),
    )


def _score_ends(result: UStatistic, level: float) -> tuple[float, float]:
    """Ends of the score interval of a share of the pairs of rows."""
    rows = result.rows
    if result.groups is not None:
        errors = min(result.value, 1 - result.value) ** 2 / max(result.variance, 1e-300)
        trust = errors / (errors + _ERRORS_TO_TRUST)
        rows = result.groups + trust * (rows - result.groups)
    low, high = score_interval(
        result.value,
        VarianceEstimate(result.variance, result.freedom),
        _PAIRS,
        (rows, (rows - 1) / 2),
        level,
        over_groups=result.groups is not None,
    )
    errors = min(result.value, 1 - result.value)
    # where half of the pairs are errors a row that is put anywhere adds none
    more = (1 - 2 * errors) * 2 * _MISPLACED / rows
    most = most_errors(errors, result.variance, more, level)
    low, high = (low, max(high, most)) if errors == result.value else (min(low, 1 - most), high)
    # of shares below 1e-80 the root that is sought vanishes in rounding
    return min(low, result.value), max(high, result.value)


def _note_on_rows(result: UStatistic) -> str:
    if not result.variance > 0:
        return "Every pair of rows says the same."
    if not result.few_rows_decide:
        return ""
    return (
        f"A few rows carry most of the error (skewness {result.skewness:.2g} of the influences of "
        f"{len(result.projection)} rows): the interval allows for one more row that is put "
        "anywhere, and more rows would narrow it."
    )


def compare_kernels(
    verdict: Verdict,
    y: ArrayLike,
    scores: tuple[FloatArray, FloatArray],
    weight: FloatArray,
    units: NDArray[np.intp] | None,
) -> Comparison:
    """Difference of two ranking risks, from the difference of the projections of each row."""
    (a, of_a), (b, of_b) = (ranking_projection(y, s, weight) for s in scores)
    total = float(np.sum(weight))
    pulls = 2 * (of_a - of_b - (a - b)) / total
    if units is None:
        spread = combined_variance(Pulls(pulls[weight > 0], weight[weight > 0]))
    else:
        spread = combined_variance(Pulls(sums_by_group(units, weight * pulls), None))
    method = "paired projections of the rows"
    if spread.variance <= 1e-24:
        drawn = total if units is None else len(np.unique(units))
        return verdict.without_spread((a, b), max(1.0, drawn // 2), method, 1.0)
    return verdict.from_variance((a, b), spread, method)
