"""Where the push helps and where it does not: the table of the README.

Every model is linear, on standardised features: scikit-learn's LogisticRegression and PNormPush
for each p, with their default parameters. Ten random stratified splits, two thirds to train on,
one third to measure on; the splits are the same for every model. Nothing is chosen on the rows
that are measured.

With --tuned the penalty of either model is chosen instead, from five values each, by the AUC of
five-fold cross-validation on the training rows. It tells a fault of the push from one of the
default penalty.

    python benchmarks/when_it_helps.py                      the four sets that need no download
    python benchmarks/when_it_helps.py --data FOLDER        and ijcnn1, mammography and w8a, read
                                                            from FOLDER/NAME.csv.gz (last column y)
    python benchmarks/when_it_helps.py --sets ionosphere wdbc --tuned --json results.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush
from toprank.datasets import load_ionosphere, load_magic, load_spambase, load_wdbc
from toprank.metrics import positives_at_top, precision_at

POWERS = (1, 2, 4, 16, 64)
SHIPPED = {
    "magic": load_magic,
    "spambase": load_spambase,
    "ionosphere": load_ionosphere,
    "wdbc": load_wdbc,
}
ELSEWHERE = ("ijcnn1", "mammography", "w8a")
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

MEASURES = {
    "precision in the top 1%": lambda y, s: precision_at(y, s, 0.01),
    "positives above every negative": positives_at_top,
    "AUC": roc_auc_score,
}


def main() -> None:
    options = parse()
    results = {}
    for name in options.sets or [*SHIPPED, *ELSEWHERE]:
        data = load(name, options.data)
        if data is None:
            print(f"{name}: not in {options.data}, left out", file=sys.stderr)
            continue
        start = perf_counter()
        results[name] = measure(
            *data, n_splits=options.splits, seed=options.seed, tuned=options.tuned
        )
        print(f"{name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    print(markdown(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=[*SHIPPED, *ELSEWHERE], help="default: all")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder of NAME.csv.gz files")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", action="store_true", help="choose each penalty; slow")
    parser.add_argument("--json", type=Path, help="also write every number to this file")
    return parser.parse_args()


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray] | None:
    if name in SHIPPED:
        return SHIPPED[name](return_X_y=True)
    path = folder / f"{name}.csv.gz"
    if not path.is_file():
        return None
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int)


def models(tuned: bool = False) -> dict[str, object]:
    logistic = LogisticRegression(max_iter=5000)
    pushes = {f"p = {p}": PNormPush(p=p) for p in POWERS}
    if not tuned:
        return {"logistic": logistic, **pushes}
    penalties = np.logspace(-3, 1, 5)
    return {"logistic": choose(logistic, C=1 / penalties)} | {
        name: choose(push, alpha=penalties) for name, push in pushes.items()
    }


def choose(model: object, **grid: np.ndarray) -> GridSearchCV:
    return GridSearchCV(model, grid, scoring="roc_auc", cv=5)


def measure(X: np.ndarray, y: np.ndarray, *, n_splits: int, seed: int, tuned: bool) -> dict:
    """Values by measure and model, one a split, and the counts of the set."""
    values = {what: {name: [] for name in models()} for what in MEASURES}
    splitter = StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=seed)
    for train, test in splitter.split(X, y):
        scaler = StandardScaler().fit(X[train])
        X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
        for name, model in models(tuned).items():
            scores = model.fit(X_train, y[train]).decision_function(X_test)
            for what, of in MEASURES.items():
                values[what][name].append(float(of(y[test], scores)))
    return {"positives": int(y.sum()), "negatives": int((1 - y).sum()), "values": values}


def markdown(results: dict) -> str:
    """One table per measure: mean ± standard deviation over the splits."""
    parts = []
    for what in MEASURES:
        parts += [f"\n{what}\n", "| data (positives/negatives) | " + " | ".join(models()) + " |"]
        parts += ["|---" * (1 + len(models())) + "|"]
        for name, result in results.items():
            cells = [cell(result["values"][what][model]) for model in models()]
            counts = f"{result['positives']}/{result['negatives']}"
            parts.append(f"| {name} ({counts}) | " + " | ".join(cells) + " |")
    return "\n".join(parts)


def cell(values: list[float]) -> str:
    mean, spread = np.mean(values), np.std(values, ddof=min(1, len(values) - 1))
    return f"{mean:.3f} ± {spread:.3f}".replace("0.", ".")


if __name__ == "__main__":
    main()
