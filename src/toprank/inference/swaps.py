"""A test for small samples: let the rankers trade places, row by row.

If two rankers are equally good and alike, their ranks of any row can be swapped without
changing the law of the data. The difference of the metric over many random swaps is its null
distribution, whatever the sample size; a normal limit is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from toprank._numerics import FloatArray
from toprank.inference.sample import Sample
from toprank.metrics.roc import part_of_curve

#: Samples up to this size are compared by swaps: in larger ones the normal limit holds.
SMALL = {"partial_auc": 1000, "average_precision": 4000}
_CELLS = 2**20


def swap_p_value(
    name: str,
    settings: dict[str, Any],
    a: Sample,
    b: Sample,
    difference: float,
    n_resamples: int,
    random_state: Any,
) -> float:
    """Two-sided p-value of a difference, from random swaps of the rankers' ranks."""
    rng = np.random.default_rng(random_state)
    n = len(a.scores)
    # swapped ranks must not tie: one row keeps its jitter with either ranker
    jitter = rng.permutation(n) / (4 * n)
    ranks = [rankdata(sample.scores, "ordinal") + jitter for sample in (a, b)]
    statistic = _STATISTICS[name](settings)
    reached = done = 0
    while done < n_resamples:
        count = min(n_resamples - done, max(1, _CELLS // n))
        swap = rng.random((count, n)) < 0.5
        first, second = np.where(swap, ranks[1], ranks[0]), np.where(swap, ranks[0], ranks[1])
        gaps = statistic(_listed(a.positive, first)) - statistic(_listed(a.positive, second))
        reached += int(np.count_nonzero(np.abs(gaps) >= abs(difference) * (1 - 1e-9)))
        done += count
    return (1 + reached) / (1 + n_resamples)


def swappable(name: str, sample: Sample) -> bool:
    """Whether the sample is small, plain, and the metric one of those that need it."""
    plain = sample.groups is None and sample.weight is None
    return plain and len(sample.scores) <= SMALL.get(name, 0)


def _listed(positive: NDArray[np.bool_], ranks: FloatArray) -> NDArray[np.bool_]:
    """The labels from the top of each list to its bottom, one list a row."""
    return positive[np.argsort(-ranks, axis=1)]


def _average_precision(settings: dict[str, Any]) -> Callable[[NDArray[np.bool_]], FloatArray]:
    def statistic(labels: NDArray[np.bool_]) -> FloatArray:
        found = np.cumsum(labels, axis=1)
        precision = found / np.arange(1, labels.shape[1] + 1)
        return np.asarray(np.sum(labels * precision, axis=1) / found[:, -1])

    return statistic


def _partial_auc(settings: dict[str, Any]) -> Callable[[NDArray[np.bool_]], FloatArray]:
    standardize = settings.get("standardize", True)
    rates = {key: value for key, value in settings.items() if key != "standardize"}
    start, stop, floor = part_of_curve(
        rates.get("max_fpr"), rates.get("min_fpr", 0.0), rates.get("min_tpr")
    )
    best = (stop - start) * (1 - floor)
    chance = (max(stop - floor, 0.0) ** 2 - max(start - floor, 0.0) ** 2) / 2
    scale = 0.5 / (best - chance) if standardize else 1.0

    def statistic(labels: NDArray[np.bool_]) -> FloatArray:
        found, passed = np.cumsum(labels, axis=1), np.cumsum(~labels, axis=1)
        rate = passed / passed[:, -1:]
        before = (passed - 1) / passed[:, -1:]
        width = np.clip(rate, start, stop) - np.clip(before, start, stop)
        height = np.maximum(found / found[:, -1:] - floor, 0.0)
        return np.asarray(scale * np.sum(~labels * width * height, axis=1))

    return statistic


_STATISTICS: dict[str, Callable[..., Callable[[NDArray[np.bool_]], FloatArray]]] = {
    "average_precision": _average_precision,
    "partial_auc": _partial_auc,
}
