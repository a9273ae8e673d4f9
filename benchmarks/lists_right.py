"""Do metrics of partial labels, intervals over days and of overlaps hold what they say? Tables.

    python benchmarks/lists_right.py              # some minutes
    python benchmarks/lists_right.py propensity   # or: days, overlap
    python benchmarks/lists_right.py --draws 20   # does it run?

"propensity": of tables of 5,000 rows a list of 500 is looked at, some of it drawn at random. Mean
error of a metric of the list against that of all rows, and its standard errors in brackets.
"days": coverage of intervals of the mean of T days, each correlated with the day before.
"overlap": coverage of intervals of the rank-biased overlap of two lists.
Shortlists, places and hidden positives have their own: shortlists.py, unlabelled.py.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.stats import t as student

from toprank.inference import interval
from toprank.inference.periods import error_of_mean
from toprank.metrics import METRICS
from toprank.select import compare_lists, cut


def propensity(draws: int) -> None:
    """Metrics of looked-at rows, with and without their propensities."""
    print("| drawn at random | metric | of the list | weighted | 95% intervals cover |")
    print("|---|---|---|---|---|")
    measured: dict[str, dict[str, Any]] = {"precision_at": {"k": 0.2}, "auc": {}}
    for explore in (0.1, 0.3, 0.5):
        found: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in measured}
        for draw in range(draws):
            rng = np.random.default_rng((7, draw))
            X = rng.normal(size=(5000, 2))
            y = rng.random(5000) < 1 / (1 + np.exp(2.5 - 1.2 * X[:, 0] - 0.8 * X[:, 1]))
            s = X[:, 0]
            seen = cut(s, 500, explore=explore, random_state=draw)
            listed = y[seen.rows], s[seen.rows]
            for name, given in measured.items():
                metric = METRICS[name].function
                truth = metric(y, s, **given)
                one = interval(name, *listed, label_propensity=seen.propensity, **given)
                naive = metric(*listed, **given) - truth
                found[name].append((naive, one.estimate - truth, one.low <= truth <= one.high))
        for name, rows in found.items():
            naive, weighted, covers = np.array(rows, dtype=float).T
            cells = (f"{100 * explore:g}%", name, _mean(naive), _mean(weighted))
            print("|", " | ".join(cells), f"| {np.mean(covers):.3f} |", flush=True)


def _mean(errors: np.ndarray) -> str:
    error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    return f"{np.mean(errors):+.3f} ({abs(np.mean(errors)) / error:.1f})"


def days(draws: int) -> None:
    """Intervals over days that are like their neighbours."""
    lengths = (10, 30, 60, 120)
    print("| ρ |", " | ".join(f"T={n}" for n in lengths), "| independent, T=60 |")
    print("|---" * (2 + len(lengths)) + "|")
    for rho in (0.0, 0.3, 0.5, 0.7):
        shown = [_cover(rho, n, draws, True) for n in lengths] + [_cover(rho, 60, draws, False)]
        print(f"| {rho:g} |", " | ".join(f"{share:.3f}" for share in shown), "|", flush=True)


def _cover(rho: float, n: int, draws: int, correlated: bool) -> float:
    rng = np.random.default_rng((11, n))
    noise = rng.normal(size=(draws, n))
    series = noise.copy()
    for day in range(1, n):
        series[:, day] = rho * series[:, day - 1] + np.sqrt(1 - rho**2) * noise[:, day]
    held = 0
    for one in series:
        error, freedom = error_of_mean(one, correlated)
        held += abs(np.mean(one)) <= student.isf(0.025, freedom) * error
    return held / draws


def overlap(draws: int) -> None:
    """Intervals of the rank-biased overlap, for tables of other rows like these."""
    print("| rows | noise | mean overlap | 95% intervals cover |\n|---|---|---|---|")
    for n in (300, 1000):
        for noise in (0.1, 0.3, 1.0):
            values, ends = [], []
            for draw in range(draws):
                rng = np.random.default_rng((n, draw))
                known = rng.normal(size=n)
                old, new = (np.argsort(-(known + noise * rng.normal(size=n))) for _ in range(2))
                one = compare_lists(old, new, n // 10)
                values.append(one.overlap)
                ends.append(one.overlap_interval)
            low, high = np.array(ends).T
            mean = np.mean(values)
            covers = np.mean((low <= mean) & (mean <= high))
            print(f"| {n:,} | {noise:g} | {mean:.2f} | {covers:.3f} |", flush=True)


PARTS = {"propensity": (propensity, 200), "days": (days, 5000), "overlap": (overlap, 150)}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=list(PARTS))
    parser.add_argument("--draws", type=int)
    given = parser.parse_args()
    for name, (run, draws) in PARTS.items():
        if given.part in (None, name):
            run(given.draws or draws)
            print()


if __name__ == "__main__":
    main()
