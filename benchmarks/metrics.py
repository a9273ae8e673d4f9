"""How fast the metrics are against scikit-learn and SciPy, in one run: ratios, printed as JSON.

    python benchmarks/metrics.py              # ten million rows
    python benchmarks/metrics.py --quick      # small sizes, to see that it runs
    python benchmarks/metrics.py auc summary

Each figure is a ratio of two times taken alternately in this process, the best of several rounds,
with the limit it is held to. Both sides run on one thread and get the same arrays.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, roc_auc_score
from timing import report, side_by_side

from toprank.inference import compare, interval
from toprank.metrics import auc, average_precision, partial_auc, precision_at, ranking_risk, summary


def against(
    limit: float | None, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> dict[str, Any]:
    return report(limit, *side_by_side(ours, theirs, rounds, warm_up=False))


class Data:
    """Scores of two normal classes, a tenth of them positive, and weights."""

    def __init__(self, n: int, rounds: int) -> None:
        rng = np.random.default_rng(0)
        self.y = (rng.random(n) < 0.1).astype(np.int64)
        self.s = rng.normal(size=n) + self.y
        self.tied = np.round(self.s, 2)
        self.w = rng.random(n)
        self.groups = rng.integers(0, max(1, n // 100), n)
        self.real = rng.normal(size=n)
        self.rounds = rounds


def auc_unweighted(d: Data) -> dict[str, Any]:
    return against(0.2, lambda: auc(d.y, d.s), lambda: roc_auc_score(d.y, d.s), d.rounds)


def auc_tied(d: Data) -> dict[str, Any]:
    return against(0.2, lambda: auc(d.y, d.tied), lambda: roc_auc_score(d.y, d.tied), d.rounds)


def auc_weighted(d: Data) -> dict[str, Any]:
    return against(
        0.4,
        lambda: auc(d.y, d.s, sample_weight=d.w),
        lambda: roc_auc_score(d.y, d.s, sample_weight=d.w),
        d.rounds,
    )


def partial_area(d: Data) -> dict[str, Any]:
    return against(
        None,
        lambda: partial_auc(d.y, d.s, max_fpr=0.1),
        lambda: roc_auc_score(d.y, d.s, max_fpr=0.1),
        d.rounds,
    )


def precision_average(d: Data) -> dict[str, Any]:
    return against(
        None,
        lambda: average_precision(d.y, d.s),
        lambda: average_precision_score(d.y, d.s),
        d.rounds,
    )


def everything(d: Data) -> dict[str, Any]:
    return against(1.5, lambda: summary(d.y, d.s), lambda: roc_auc_score(d.y, d.s), d.rounds)


def everything_weighted(d: Data) -> dict[str, Any]:
    return against(
        1.5,
        lambda: summary(d.y, d.s, sample_weight=d.w),
        lambda: roc_auc_score(d.y, d.s, sample_weight=d.w),
        d.rounds,
    )


def within_groups(d: Data) -> dict[str, Any]:
    """A hundred rows per group, against one ROC area of all rows."""
    return against(
        None,
        lambda: precision_at(d.y, d.s, 10, groups=d.groups),
        lambda: roc_auc_score(d.y, d.s),
        d.rounds,
    )


def real_labels(d: Data) -> dict[str, Any]:
    """A tenth of the rows, against the compiled merge sort of Kendall's tau."""
    rows = slice(0, max(100, len(d.y) // 10))
    real, s = d.real[rows], d.s[rows]
    return against(None, lambda: ranking_risk(real, s), lambda: kendalltau(real, s), d.rounds)


def delong(d: Data) -> dict[str, Any]:
    """DeLong's interval, against the AUC alone."""
    return against(3.0, lambda: interval("auc", d.y, d.s), lambda: auc(d.y, d.s), d.rounds)


def bootstrap(d: Data) -> dict[str, Any]:
    """Resamples of a partial area, against a loop over resampled rows: time of 50 each."""
    rows, count = min(100_000, len(d.y)), 50
    y, s = d.y[:rows], d.s[:rows]
    rng = np.random.default_rng(1)

    def ours() -> None:
        interval(
            "partial_auc", y, s, max_fpr=0.1, method="bootstrap", n_resamples=20 * count, n_jobs=1
        )

    def theirs() -> None:
        for _ in range(count):
            drawn = rng.integers(0, rows, rows)
            roc_auc_score(y[drawn], s[drawn], max_fpr=0.1)

    result = against(None, ours, theirs, 1)
    ratio = result["ratio"] / 20  # ours made twenty times as many resamples
    return {**result, "ratio": round(ratio, 4), "limit": 0.1, "within": ratio <= 0.1}


def comparison(d: Data) -> dict[str, Any]:
    """DeLong's test of two rankers at a tenth of the rows, against two AUCs."""
    rows = slice(0, max(100, len(d.y) // 10))
    y, a, b = d.y[rows], d.s[rows], d.tied[rows]
    return against(None, lambda: compare("auc", y, a, b), lambda: (auc(y, a), auc(y, b)), d.rounds)


FIGURES = {
    "auc": auc_unweighted,
    "auc-tied": auc_tied,
    "auc-weighted": auc_weighted,
    "summary": everything,
    "summary-weighted": everything_weighted,
    "partial-auc": partial_area,
    "average-precision": precision_average,
    "precision-in-groups": within_groups,
    "ranking-risk": real_labels,
    "delong": delong,
    "bootstrap": bootstrap,
    "compare": comparison,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="*", help=f"any of {', '.join(FIGURES)}; default all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    given = parser.parse_args()
    unknown = set(given.figures) - set(FIGURES)
    if unknown:
        parser.error(f"unknown figures {sorted(unknown)}; expected any of {list(FIGURES)}")
    data = Data(100_000, 2) if given.quick else Data(10_000_000, 2)
    results: dict[str, Any] = {"rows": len(data.y)}
    for name in given.figures or FIGURES:
        results[name] = FIGURES[name](data)
        print(name, results[name], file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
