"""Do the intervals cover, and are the p-values what they say? Simulation, printed as a table.

    python benchmarks/error_bars.py                 # 2,000 samples, 10,000 draws under the null
    python benchmarks/error_bars.py --quick         # a tenth of that, to see that it runs
    python benchmarks/error_bars.py intervals       # or: nulls
    python benchmarks/error_bars.py --json out.json

Sampling scheme: scores of negatives are normal(0, 1), of positives normal(separation, 1); the
numbers of both are fixed: 40 positives of 200 rows, or 100 of 2,000. For ranking_risk the label is
real: separation times the score plus noise, and rows are drawn together.

Estimands: for the smooth metrics the value of an endless list with the same share of positives
(measured on 4,000,000 rows); for metrics at k the mean over 10,000 other lists of the same length.

Null hypothesis of `compare`: two rankers whose scores are exchangeable given the label, each the
sum of a common part and one of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import beta, kstest

from toprank.inference import compare, interval
from toprank.metrics import METRICS

SIZES = ((200, 40), (2000, 100))
SEPARATIONS = (0.5, 1.0, 2.0)
SMOOTH: dict[str, dict[str, Any]] = {
    "auc": {},
    "partial_auc": {"max_fpr": 0.1},
    "pnorm_risk": {"p": 4, "normalize": True},
    "average_precision": {},
    "ranking_risk": {},
}
AT_K: dict[str, dict[str, Any]] = {
    "precision_at": {"k": 0.05},
    "recall_at": {"k": 0.1},
    "lift_at": {"k": 20},
    "ndcg_at": {"k": 20},
    "tpr_at_fpr": {"fpr": 0.1},
}
LEVEL = 0.95
LISTS = 10_000
BAND = (0.935, 0.965)


def draw(
    rng: np.random.Generator, name: str, n: int, high: int, separation: float
) -> tuple[np.ndarray, np.ndarray]:
    if name == "ranking_risk":
        scores = rng.normal(size=n)
        return separation * scores + rng.normal(size=n), scores
    y = np.arange(n) < high
    return y, rng.normal(size=n) + separation * y


def value(name: str, settings: dict[str, Any], y: np.ndarray, s: np.ndarray) -> float:
    return METRICS[name].function(y, s, **settings)


def truth(name: str, settings: dict[str, Any], n: int, high: int, separation: float) -> float:
    rng = np.random.default_rng(1)
    if name in SMOOTH:
        times = 4_000_000 // n
        return value(name, settings, *draw(rng, name, n * times, high * times, separation))
    lists = [draw(rng, name, n, high, separation) for _ in range(LISTS)]
    return float(np.mean([value(name, settings, y, s) for y, s in lists]))


def clopper_pearson_width(share: float, trials: int) -> float:
    hits, tail = share * trials, (1 - LEVEL) / 2
    low = beta.ppf(tail, hits, trials - hits + 1) if hits > 0 else 0.0
    high = beta.isf(tail, hits + 1, trials - hits) if hits < trials else 1.0
    return float(high - low)


def trials_of(name: str, settings: dict[str, Any], n: int, high: int) -> int | None:
    """Trials of the naive binomial interval: the rows above the cut, or the positives."""
    if name in ("recall_at", "tpr_at_fpr"):
        return high
    if name == "precision_at":
        k = settings["k"]
        return int(np.ceil(k * n)) if isinstance(k, float) else k
    return None


def covered(
    name: str, settings: dict[str, Any], n: int, high: int, separation: float, samples: int
) -> dict[str, Any]:
    target = truth(name, settings, n, high, separation)
    rng = np.random.default_rng(2)
    results = [
        interval(name, *draw(rng, name, n, high, separation), n_resamples=300, **settings)
        for _ in range(samples)
    ]
    low = np.array([result.low for result in results])
    top = np.array([result.high for result in results])
    share = float(np.mean((low <= target) & (target <= top)))
    smooth = name in SMOOTH
    row = {
        "metric": results[0].metric,
        "rows": n,
        "separation": separation,
        "true value": round(target, 4),
        "coverage": round(share, 4),
        "too high": round(float(np.mean(low > target)), 4),
        "too low": round(float(np.mean(top < target)), 4),
        "width": round(float(np.mean(top - low)), 4),
        "within": bool(BAND[0] <= share and (share <= BAND[1] or not smooth)),
    }
    trials = trials_of(name, settings, n, high)
    if trials is not None:
        naive = [clopper_pearson_width(result.estimate, trials) for result in results]
        row["width / Clopper-Pearson"] = round(float(np.mean(top - low) / np.mean(naive)), 3)
    return row


def null(
    name: str,
    settings: dict[str, Any],
    n: int,
    high: int,
    separation: float,
    draws: int,
    resamples: int = 499,
) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    chances = np.empty(draws)
    for number in range(draws):
        y, common = draw(rng, name, n, high, separation)
        a, b = common + rng.normal(size=(2, n))
        chances[number] = compare(name, y, a, b, n_resamples=resamples, **settings).p_value
    levels = np.array([0.01, 0.05, 0.1, 0.2])
    excess = [float(np.mean(chances <= level) - level) for level in levels]
    distance = float(kstest(chances, "uniform").statistic)
    smooth = name in SMOOTH
    return {
        "metric": f"{name}({', '.join(f'{k}={v}' for k, v in settings.items())})",
        "rows": n,
        "separation": separation,
        "Kolmogorov distance": round(distance, 4),
        "P(p <= 0.05)": round(float(np.mean(chances <= 0.05)), 4),
        "largest excess": round(max(excess), 4),
        "within": bool(distance <= 0.02 if smooth else max(excess) <= 0.01),
    }


def table(rows: list[dict[str, Any]]) -> str:
    heads = list(dict.fromkeys(head for row in rows for head in row))
    cells = [[str(row.get(head, "")) for head in heads] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]

    def line(values: list[str]) -> str:
        padded = (value.ljust(width) for value, width in zip(values, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, [heads, ["-" * width for width in widths], *cells]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["intervals", "nulls", []])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--metrics", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--strict", action="store_true", help="fail if one lies outside")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    shrink = 10 if options.quick else 1
    metrics = {**SMOOTH, **AT_K}
    if options.metrics:
        metrics = {name: metrics[name] for name in options.metrics}
    cases = [
        (name, settings, n, high, separation)
        for name, settings in metrics.items()
        for n, high in SIZES
        for separation in SEPARATIONS
    ]
    results: dict[str, list[dict[str, Any]]] = {}
    for part, work, count in (
        ("intervals", covered, options.samples // shrink),
        ("nulls", null, options.draws // shrink),
    ):
        if options.parts and part not in options.parts:
            continue
        rows = []
        jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
            delayed(work)(*case, count) for case in cases
        )
        for row in jobs:
            print(f"\r{part}: {len(rows) + 1} of {len(cases)}", end="", file=sys.stderr, flush=True)
            rows.append(row)
        print(file=sys.stderr)
        print(f"\n{part}, {count} samples each\n\n{table(rows)}")
        results[part] = rows
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    outside = [row for rows in results.values() for row in rows if not row["within"]]
    total = sum(len(rows) for rows in results.values())
    print(f"\n{total - len(outside)} of {total} within what the documentation says")
    return int(options.strict and bool(outside))


if __name__ == "__main__":
    raise SystemExit(main())
