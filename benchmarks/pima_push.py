"""Larger p needs more rows: the pima experiment of Rudin 2006 (Figure 5) over many splits.

    python benchmarks/pima_push.py pima.csv.gz --picture docs/images/pima_push.png

For training sets of 50 and of 300 rows: the precision in the top 20 of the rows left, for each p,
with paired differences from p = 2; the p that the one-standard-error rule chooses on the training
rows alone; and the p that `supported_p` allows. The table has one row a patient, the label last.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from toprank import PNormPush, PNormPushCV
from toprank.metrics import precision_at
from toprank.tuning import supported_p

PS = (1, 2, 4, 8, 16, 64)
SIZES = (50, 300)
TOP = 20


def one_split(X: Any, y: Any, train: Any, test: Any) -> dict[str, Any]:
    """Precision at the top for each p, and what the two pieces of advice say."""
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    precision = [
        precision_at(y[test], PNormPush(p).fit(X[train], y[train]).decision_function(X[test]), TOP)
        for p in PS
    ]
    cautious = PNormPushCV(PS, rule="one_standard_error", test_size=None).fit(X[train], y[train])
    supported = supported_p(X[train], y[train], ps=PS).p
    return {
        "precision": precision,
        "chosen": 0.0 if cautious.p_ is None else cautious.p_,
        "supported": 0.0 if supported is None else supported,
    }


def experiment(X: Any, y: Any, size: int, n_splits: int, seed: int = 0) -> dict[str, Any]:
    """Many splits: the arrays `precision` (splits, p), `chosen` and `supported`; 0 is no push."""
    splitter = StratifiedShuffleSplit(n_splits, train_size=size, random_state=seed)
    found = [one_split(X, y, *split) for split in splitter.split(X, y)]
    return {key: np.array([one[key] for one in found]) for key in found[0]}


def picture(results: dict[int, dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    place = np.log2(PS)
    looks = {
        50: {"color": "#D55E00", "marker": "o", "linestyle": "--"},
        300: {"color": "#0072B2", "marker": "s", "linestyle": "-"},
    }
    for size, found in results.items():
        change = found["precision"] - found["precision"][:, [1]]
        mean = change.mean(axis=0)
        error = change.std(axis=0, ddof=1) / np.sqrt(len(change))
        level = found["precision"][:, 1].mean()
        label = f"{size} rows to train on ({level:.2f} at p = 2)"
        left.errorbar(place, mean, error, capsize=3, label=label, **looks[size])
    left.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    left.set_xticks(place, [str(p) for p in PS])
    left.set_xlabel("p: how hard the push is")
    left.set_ylabel(f"precision in the top {TOP}, against p = 2\n(paired mean ± standard error)")
    left.legend()
    ticks = np.arange(len(PS) + 1)
    powers = (0, *PS)
    for offset, (size, found) in zip((-0.2, 0.2), results.items(), strict=True):
        share = [np.mean(found["supported"] == p) for p in powers]
        colour = looks[size]["color"]
        hatch = "//" if size == 50 else None
        right.bar(
            ticks + offset, share, 0.38, color=colour, alpha=0.85, hatch=hatch, label=f"{size} rows"
        )
    right.set_xticks(ticks, ["none", *map(str, PS)])
    right.set_xlabel("largest p that the training rows support")
    right.set_ylabel("share of the splits")
    right.legend()
    n_splits = len(next(iter(results.values()))["precision"])
    figure.suptitle(f"Pima diabetes data, {n_splits} random splits: larger p needs more rows")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="the pima data, label in the last column")
    parser.add_argument("--splits", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="three splits, to see that it runs")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    data = np.genfromtxt(options.table, delimiter=",", skip_header=1)
    X, y = data[:, :-1], data[:, -1].astype(int)
    n_splits = 3 if options.quick else options.splits
    results = {size: experiment(X, y, size, n_splits) for size in SIZES}
    answer = {}
    for size, found in results.items():
        change = found["precision"][:, -1] - found["precision"][:, 1]
        answer[f"{size} rows"] = {
            "precision": dict(
                zip(map(str, PS), found["precision"].mean(axis=0).round(4), strict=True)
            ),
            "p64_less_p2": [
                round(float(change.mean()), 4),
                round(float(change.std(ddof=1) / np.sqrt(n_splits)), 4),
            ],
            "median_chosen": float(np.median(found["chosen"])),
            "mean_log2_chosen": round(float(np.mean(np.log2(np.maximum(found["chosen"], 0.5)))), 3),
            "median_supported": float(np.median(found["supported"])),
            "share_supporting_64": float(np.mean(found["supported"] == 64)),
        }
    print(json.dumps(answer, indent=2))
    if options.picture is not None:
        picture(results, options.picture)


if __name__ == "__main__":
    main()
