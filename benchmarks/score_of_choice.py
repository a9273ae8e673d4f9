"""Is `PNormPushCV.score_interval_` honest on real rows, and how wide is it?

    python benchmarks/score_of_choice.py                  # 100 tables of each setting
    python benchmarks/score_of_choice.py --tables 20 --minutes 5

A table of a few hundred rows is drawn from a real set, and p is chosen and fitted there. The many
rows that were not drawn say what the ranker is worth, nearly exactly: the interval should hold it
in 95 of 100 tables. Nested folds are compared with a fifth of the rows kept aside. Answers are kept
in benchmarks/score_of_choice.json, so that a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from toprank import PNormPushCV
from toprank.datasets import load_magic, load_spambase
from toprank.metrics.registry import METRICS

KEPT = Path(__file__).with_suffix(".json")
#: Set, rows of a table, metric and its parameters.
SETTINGS: tuple[tuple[str, Callable[..., Any], int, str, dict[str, Any]], ...] = (
    ("magic", load_magic, 300, "precision_at", {"k": 0.1}),
    ("spambase, 20 columns", load_spambase, 300, "precision_at", {"k": 0.1}),
    ("magic", load_magic, 300, "auc", {}),
    ("spambase, 20 columns", load_spambase, 300, "auc", {}),
)
_MOST_COLUMNS = 20
WAYS: tuple[Any, ...] = ("nested", 0.2)


def measure(X: Any, y: Any, rows: int, metric: str, how: dict[str, Any], seed: int) -> list[Any]:
    """Ends of both intervals of one table, each with what its ranker is worth on other rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    drawn, others = order[:rows], order[rows:]
    mean, spread = X[drawn].mean(0), X[drawn].std(0) + 1e-9
    X = (X - mean) / spread
    found = []
    for way in WAYS:
        ranker = PNormPushCV(
            ps=(1, 4, 16), alphas=(1e-2,), scoring=metric, scoring_kwargs=how, test_size=way
        ).fit(X[drawn], y[drawn])
        worth = METRICS[metric].function(y[others], ranker.decision_function(X[others]), **how)
        ends = ranker.score_interval_
        found.append([ends.low, ends.high, float(worth)])
    return found


def show(kept: dict[str, list[Any]]) -> None:
    """Print coverage and mean width, as a table in Markdown."""
    print("| set, metric, rows | tables | nested: covers | width | a fifth: covers | width |")
    print("|---|---|---|---|---|---|")
    for name, tables in kept.items():
        ends = np.array(tables)  # table, way, (low, high, worth)
        held = np.mean((ends[..., 0] <= ends[..., 2]) & (ends[..., 2] <= ends[..., 1]), axis=0)
        width = np.mean(ends[..., 1] - ends[..., 0], axis=0)
        shown = " | ".join(f"{a:.2f} | {b:.2f}" for a, b in zip(held, width, strict=True))
        print(f"| {name} | {len(tables)} | {shown} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=np.inf)
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    end = time.monotonic() + 60 * options.minutes
    warnings.simplefilter("ignore")  # fits to so few rows need not be exact
    data = {name: load(return_X_y=True) for name, load, *_ in SETTINGS}
    for number in range(options.tables):
        for name, _, rows, metric, how in SETTINGS:
            tables = kept.setdefault(f"{name}, `{metric}`, {rows}", [])
            if len(tables) > number or time.monotonic() > end:
                continue
            X, y = (np.asarray(part) for part in data[name])
            found = measure(X[:, :_MOST_COLUMNS], y, rows, metric, how, seed=number)
            tables.append([[round(value, 5) for value in one] for one in found])
            KEPT.write_text(json.dumps(kept) + "\n")
    show(kept)


if __name__ == "__main__":
    main()
