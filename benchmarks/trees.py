"""Boosted trees under the push: how fast, and what it buys, against the binary objective.

    python benchmarks/trees.py speed                   1,000,000 x 30, 100 rounds, both libraries
    python benchmarks/trees.py quality --json FILE     p="auto" on every data set, 10 splits
    python benchmarks/trees.py torch                   PushLoss against BCEWithLogitsLoss
    python benchmarks/trees.py speed quality --quick   small sizes, to see that it runs

Speed: ratios of training times taken in turns in this process, with the same parameters and the
same number of threads, the best of several rounds, with the limit they are held to.

Quality: PushTrees(p="auto"), which chooses p by cross-validation inside
the training rows, against the binary objective, by the precision in the first rows; the same random
splits, two thirds to train on, for both. The differences are tested by the corrected resampled
t-test (Nadeau & Bengio 2003), with Holm's correction over the data sets, at 5%. Grouped data are
split by whole groups. Data: FOLDER/NAME.csv.gz, last column y. With --json the results are kept set
by set, and a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from timing import report, say, side_by_side

from toprank import PushTrees
from toprank.interop import lightgbm as in_lightgbm
from toprank.interop import xgboost as in_xgboost
from toprank.metrics import precision_at
from toprank.tuning import corrected_difference

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
#: Where the user looks: a fraction of the rows, or so many rows of each group.
LOOKED_AT: dict[str, int | float] = {
    "magic": 0.1,
    "spambase": 0.1,
    "mammography": 0.01,
    "ijcnn1": 0.05,
    "cover": 0.005,
    "kddcup04_bio": 5,
    "caravan": 0.05,
}
#: One third of the rows is tested, the rest trained on.
TEST_TO_TRAIN = 0.5
LIMITS = {"lightgbm": 1.25, "xgboost": 1.35, "torch": 3.0}


def speed(options: argparse.Namespace) -> dict[str, Any]:
    n, rounds = (100_000, 20) if options.quick else (options.rows, 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30)).astype(np.float32)
    y = (X @ rng.standard_normal(30) / 5 + rng.logistic(size=n) > 3).astype(np.float32)
    results = {}
    for name, make in (("lightgbm", lightgbm_fits), ("xgboost", xgboost_fits)):
        say(f"speed: {name}, {n} x 30, {rounds} rounds, {options.threads} threads")
        ours, theirs = make(X, y, rounds, options.threads)
        results[name] = report(
            LIMITS[name], *side_by_side(ours, theirs, options.repeats, warm_up=False), rows=n
        )
    return results


def lightgbm_fits(X: Any, y: Any, rounds: int, threads: int) -> Any:
    import lightgbm

    data = lightgbm.Dataset(X, y).construct()  # binned once, for both

    def fit(objective: Any) -> Callable[[], Any]:
        params = {"verbose": -1, "num_threads": threads, "force_row_wise": True}
        return lambda: lightgbm.train({**params, "objective": objective()}, data, rounds)

    return fit(lambda: in_lightgbm.push_objective(4.0)), fit(lambda: "binary")


def xgboost_fits(X: Any, y: Any, rounds: int, threads: int) -> Any:
    import xgboost

    data = xgboost.QuantileDMatrix(X, y, nthread=threads)
    params = {"nthread": threads, "tree_method": "hist"}

    def push() -> Any:
        objective = in_xgboost.push_objective(4.0)
        return xgboost.train({**params, "base_score": 0.0}, data, rounds, obj=objective)

    def binary() -> Any:
        return xgboost.train({**params, "objective": "binary:logistic"}, data, rounds)

    return push, binary


def torch_loss(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from toprank.interop.torch import PushLoss

    device = "cuda" if torch.cuda.is_available() else "cpu"
    n = 1_000_000 if options.quick or device == "cpu" else 10_000_000
    say(f"torch: forward and backward of {n} scores on {device}")
    scores = torch.randn(n, device=device, requires_grad=True)
    targets = (torch.rand(n, device=device) < 0.02).float()

    def step(loss: Any) -> Callable[[], Any]:
        def run() -> None:
            for _ in range(10):
                scores.grad = None
                loss(scores, targets).backward()
            if device == "cuda":
                torch.cuda.synchronize()

        return run

    push, binary = step(PushLoss(4.0)), step(torch.nn.BCEWithLogitsLoss())
    push(), binary()  # warm up
    result = report(
        LIMITS["torch"], *side_by_side(push, binary, 5, warm_up=False), device=device, scores=n
    )
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        push()
        result["bytes_a_score"] = round((torch.cuda.max_memory_allocated() - before) / n, 1)
    return result


def load(name: str, folder: Path) -> Any:
    path = folder / f"{name}.csv.gz"
    if not path.is_file():
        return None
    table = _table(path)
    groups = folder / "groups" / path.name
    return (
        table[:, :-1],
        table[:, -1].astype(int),
        _table(groups)[:, -1].astype(int) if groups.is_file() else None,
    )


def _table(path: Path) -> np.ndarray:
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)


def splits_of(X: Any, y: Any, groups: Any, n_splits: int) -> Any:
    if groups is None:
        return StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y)
    return GroupShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y, groups)


def measure(name: str, data: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Precision of both on every split, and what was chosen."""
    X, y, groups = data
    if options.quick or options.subsample:
        X, y, groups = _thinned(X, y, groups, 3000 if options.quick else options.subsample)
    k = LOOKED_AT[name]
    settings = {"metric_kwargs": {"k": k}, "early_stopping": False, "random_state": 0}
    settings |= {"backend": options.backend, "n_jobs": options.threads, "cv": options.folds}
    values: dict[str, list[Any]] = {"auto": [], "binary": [], "p": []}
    for train, test in splits_of(X, y, groups, 2 if options.quick else options.splits):
        of_train, of_test = (
            ({}, {})
            if groups is None
            else (
                {"groups": groups[train]},
                {"groups": groups[test]},
            )
        )
        for which, p in (("auto", "auto"), ("binary", None)):
            trees = PushTrees(p, **settings).fit(X[train], y[train], **of_train)
            scores = trees.decision_function(X[test])
            values[which].append(precision_at(y[test], scores, k, **of_test))
            if which == "auto":
                values["p"].append(trees.p_)
    return {"k": k, "positives": int(y.sum()), "negatives": int((1 - y).sum()), **values}


def _thinned(X: Any, y: Any, groups: Any, n: int) -> Any:
    """About n rows: at random with the classes' shares, or whole groups."""
    if len(y) <= n:
        return X, y, groups
    if groups is None:
        rows, _ = next(StratifiedShuffleSplit(1, train_size=n, random_state=0).split(X, y))
    else:
        kept = np.unique(groups)[:: max(1, len(y) // n)]
        rows = np.flatnonzero(np.isin(groups, kept))
    return X[rows], y[rows], None if groups is None else groups[rows]


def quality(options: argparse.Namespace) -> dict[str, Any]:
    results = kept(options)
    for name in options.sets or LOOKED_AT:
        if name in results:
            say(f"quality: {name}, kept from {options.json}")
            continue
        data = load(name, options.data)
        if data is None:
            say(f"{name}: not in {options.data}, left out")
            continue
        start = time.perf_counter()
        results[name] = measure(name, data, options)
        say(f"quality: {name}, {time.perf_counter() - start:.0f} s")
        keep(results, options)
    tests = [
        corrected_difference(np.subtract(r["auto"], r["binary"]), TEST_TO_TRAIN)
        for r in results.values()
    ]
    adjusted = holm([test.p_value for test in tests])
    for result, test, p in zip(results.values(), tests, adjusted, strict=True):
        result |= {"difference": test.mean, "low": test.low, "high": test.high, "holm_p": p}
    print(markdown(results))
    return {"settings": settings_of(options), "sets": results}


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    names = ("quick", "splits", "folds", "subsample", "backend")
    return {name: getattr(options, name) for name in names}


def kept(options: argparse.Namespace) -> dict[str, Any]:
    """What an earlier run with the same settings has measured."""
    if options.json is None or not options.json.is_file():
        return {}
    earlier = json.loads(options.json.read_text()).get("quality", {})
    return earlier.get("sets", {}) if earlier.get("settings") == settings_of(options) else {}


def keep(results: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json is not None:
        found = {"quality": {"settings": settings_of(options), "sets": results}}
        partial = options.json.with_suffix(".part")
        partial.write_text(json.dumps(found, indent=1) + "\n")
        partial.replace(options.json)


def holm(p_values: Any) -> list[float]:
    """Holm's adjusted p-values."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    adjusted = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    out = np.empty(len(p))
    out[order] = adjusted
    return out.tolist()


def markdown(results: dict[str, Any]) -> str:
    lines = ["| data (positives/negatives) | first | binary | p auto | difference | Holm p | p |"]
    lines.append("|---" * 7 + "|")
    for name, r in results.items():
        k = f"{100 * r['k']:g}%" if isinstance(r["k"], float) else f"{r['k']} a group"
        chosen = ", ".join("none" if p is None else f"{p:g}" for p in r["p"])
        lines.append(
            f"| {name} ({r['positives']}/{r['negatives']}) | {k} | {np.mean(r['binary']):.3f} | "
            f"{np.mean(r['auto']):.3f} | {r['difference']:+.4f} | {r['holm_p']:.2f} | {chosen} |"
        )
    return "\n".join(lines)


PARTS = {"speed": speed, "quality": quality, "torch": torch_loss}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: speed, quality")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--folds", type=int, default=5, help="of p='auto'")
    parser.add_argument("--subsample", type=int, help="at most so many rows of a data set")
    parser.add_argument("--backend", choices=["lightgbm", "xgboost"], default="lightgbm")
    parser.add_argument("--sets", nargs="+", choices=list(LOOKED_AT))
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder of NAME.csv.gz files")
    parser.add_argument("--json", type=Path, help="also write every number to this file")
    options = parser.parse_args()
    results = {part: PARTS[part](options) for part in options.parts or ["speed", "quality"]}
    shown = {part: result for part, result in results.items() if part != "quality"}
    if shown:
        print(json.dumps(shown, indent=2))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
