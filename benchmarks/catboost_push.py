"""The push as CatBoost's objective, against CatBoost's own and against PushTrees.

    python benchmarks/catboost_push.py [--data FOLDER] [--sets pima caravan ...]

The pointwise form of the push needs no sums over rows: e^-(f + b) for positives and
e^(p (f + b)) / p for negatives, so CatBoost's row-wise custom objective is exact up to the
intercept b. Average precision on the test rows, the mean of three splits of 3,000 training rows;
1,000 trees at the learning rate that CatBoost chooses for its own loss.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import catboost
import numpy as np
from sklearn.metrics import average_precision_score

try:
    from benchmarks.peers.data import BESIDE, load
    from benchmarks.peers.full import splits
except ModuleNotFoundError:  # run as a file
    from peers.data import BESIDE, load  # type: ignore[no-redef]
    from peers.full import splits  # type: ignore[no-redef]
from toprank import PushTrees

SETS = ("pima", "mammography", "caravan", "w8a", "ijcnn1")
POWERS = (1.0, 4.0)
#: Beyond these exponents a row's slope is held.
LARGEST = 30.0


class Push:
    """First and second derivatives, in CatBoost's sign: it climbs."""

    def __init__(self, p: float, intercept: float):
        self.p, self.intercept = p, intercept

    def calc_ders_range(self, scores: Any, labels: Any, weights: Any) -> list[tuple[float, float]]:
        f = np.clip(np.asarray(scores) + self.intercept, -LARGEST / self.p, LARGEST)
        positive = np.asarray(labels) > 0.5
        slope = np.exp(np.where(positive, -f, self.p * f))
        first = np.where(positive, slope, -slope)
        second = -np.where(positive, slope, self.p * slope)
        return list(zip(first, second, strict=True))


def fit_push(p: float, X: Any, y: Any, rate: float) -> Any:
    intercept = float(np.log(y.sum() / (~y).sum()) / (p + 1))
    model = catboost.CatBoostRegressor(
        loss_function=Push(p, intercept), eval_metric="RMSE", learning_rate=rate, **COMMON
    )
    return model.fit(X, y.astype(float))


COMMON = {"thread_count": 1, "random_seed": 0, "verbose": 0, "allow_writing_files": False}


def one_split(X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, float]:
    own = catboost.CatBoostClassifier(**COMMON).fit(X, y)
    scores = {"CatBoost": own.predict(X_test, prediction_type="RawFormulaVal")}
    rate = own.get_all_params()["learning_rate"]
    for p in POWERS:
        scores[f"CatBoost, push p = {p:g}"] = fit_push(p, X, y, rate).predict(X_test)
    scores["PushTrees(p=4)"] = PushTrees(4.0).fit(X, y).decision_function(X_test)
    return {name: float(average_precision_score(y_test, s)) for name, s in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    for name in options.sets:
        data = load(name, options.data)
        found = [
            one_split(data.X[train], data.y[train] == 1, data.X[test], data.y[test] == 1)
            for _, (train, test) in zip(
                range(options.splits), splits(data, train_rows=3_000), strict=False
            )
        ]
        means = {key: np.mean([one[key] for one in found]) for key in found[0]}
        print(f"{name:12}", "  ".join(f"{key} {value:.3f}" for key, value in means.items()))


if __name__ == "__main__":
    main()
