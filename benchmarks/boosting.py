"""Boosting stumps against LightGBM with two leaves, side by side: ratios, printed as JSON.

    python benchmarks/boosting.py              # everything
    python benchmarks/boosting.py --quick      # small sizes, to see that it runs
    python benchmarks/boosting.py train score

Both sides see the same rows, rounds, bins and threads, in turns in this process; the best of
several rounds counts. Binning is part of training. What compiling takes is reported apart.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
import warnings
from typing import Any

import lightgbm
import numpy as np
from timing import clock, report, say, side_by_side

from toprank import RankBoost
from toprank.metrics import auc

BOOSTING_ROUNDS = 200
BINS = 255


def table(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """Normal columns and labels from a logistic model, three in ten positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    logit = X @ (rng.standard_normal(d) / np.sqrt(d / 4))
    y = (logit - np.quantile(logit, 0.7) + rng.logistic(size=n) > 0).astype(int)
    return X, y


def ours(threads: int, rounds: int = BOOSTING_ROUNDS) -> RankBoost:
    return RankBoost(rounds, max_bins=BINS, n_jobs=threads)


def theirs(threads: int, rounds: int = BOOSTING_ROUNDS) -> Any:
    return lightgbm.LGBMClassifier(
        n_estimators=rounds, num_leaves=2, max_bin=BINS, n_jobs=threads, verbose=-1
    )


def train(size: float, threads: int) -> dict[str, Any]:
    n = int(1_000_000 * size)
    say(f"train: {n} x 30, {BOOSTING_ROUNDS} rounds")
    X, y = table(n, 30)
    compiling = clock(lambda: ours(threads, 2).fit(X[:20_000], y[:20_000]))
    again = clock(lambda: ours(threads, 2).fit(X[:20_000], y[:20_000]))
    mine, other = side_by_side(
        lambda: ours(threads).fit(X, y), lambda: theirs(threads).fit(X, y), 3, warm_up=False
    )
    scores = ours(threads).fit(X, y).decision_function(X)
    theirs_scores = theirs(threads).fit(X, y).predict(X, raw_score=True)
    return report(
        0.75,
        mine,
        other,
        compiling=round(compiling - again, 2),
        training_auc=[round(auc(y, s), 4) for s in (scores, theirs_scores)],
    )


def score(size: float, threads: int) -> dict[str, Any]:
    n = int(1_000_000 * size)
    say(f"score: {n} x 30, {BOOSTING_ROUNDS} stumps")
    X, y = table(n, 30)
    few = slice(0, max(20_000, n // 10))
    mine, other = ours(threads).fit(X[few], y[few]), theirs(threads).fit(X[few], y[few])
    mine.decision_function(X[:100])
    return report(
        0.5,
        *side_by_side(
            lambda: mine.decision_function(X),
            lambda: other.predict(X, raw_score=True, num_threads=threads),
            5,
            warm_up=False,
        ),
    )


def growth(size: float, threads: int) -> dict[str, Any]:
    """How the time of 50 rounds grows when rows, or columns, double."""
    results = {}
    shapes = ((250_000, 20), (500_000, 20), (1_000_000, 20), (1_000_000, 40))
    before = None
    for n, d in shapes:
        X, y = table(int(n * size), d)
        say(f"growth: {len(X)} x {d}")
        ours(threads, 2).fit(X, y)
        seconds = min(clock(lambda X=X, y=y: ours(threads, 50).fit(X, y)) for _ in range(3))
        if before is not None:
            results[f"{len(X)} x {d}"] = report(2.3, seconds, before)
        before = seconds
    return results


def memory(size: float, threads: int) -> dict[str, Any]:
    """Peak of what a fit allocates, against one byte per cell and 80 bytes per row."""
    results = {}
    for n, d in ((int(1_000_000 * size), 30), (int(400_000 * size), 100)):
        say(f"memory: {n} x {d}")
        X, y = table(n, d)
        ours(threads, 2).fit(X, y)
        tracemalloc.start()
        ours(threads, 20).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        results[f"{n} x {d}"] = report(1.0, peak / n, d + 80.0, unit="bytes per row")
    return results


def grouped(size: float, threads: int) -> dict[str, Any]:
    """A round within groups, which is exact and costs more, against one without."""
    n = int(200_000 * size)
    say(f"grouped: {n} x 10, groups of 20 rows")
    X, y = table(n, 10)
    groups = np.arange(n) // 20
    ours(threads, 2).fit(X[:2000], y[:2000], groups=groups[:2000])
    mine, plain = side_by_side(
        lambda: ours(threads, 20).fit(X, y, groups=groups),
        lambda: ours(threads, 20).fit(X, y),
        2,
        warm_up=False,
    )
    return report(25.0, mine, plain)


BENCHMARKS = {
    "train": train,
    "score": score,
    "growth": growth,
    "memory": memory,
    "grouped": grouped,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("which", nargs="*", choices=[*BENCHMARKS, []], help="default: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"threads": arguments.threads, "quick": arguments.quick}
    for name in arguments.which or BENCHMARKS:
        size = 0.05 if arguments.quick else 1.0
        results[name] = BENCHMARKS[name](size, arguments.threads)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
