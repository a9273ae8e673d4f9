"""How long Ctrl-C takes: from SIGINT at a random moment of a call to KeyboardInterrupt, as JSON.

    python benchmarks/interrupt.py            # everything
    python benchmarks/interrupt.py --quick    # small sizes, to see that it runs
    python benchmarks/interrupt.py --rounds 20 pnorm-newton trees-lightgbm

Each call runs to its end once, then is interrupted at random moments. After every interrupt
the estimator must be unfitted and the threads gone; after the last one a new fit must give the
answer of the first, bit for bit. The limit is one second; on a machine that does other work too
the time of the processor (of all threads) tells what is owed to this library.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from toprank import (
    AdaBoostRanker,
    IRPush,
    LabelRanker,
    PairRanker,
    PNormPush,
    PNormPushCV,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
    blocks,
    inference,
    metrics,
)

LIMIT = 1.0


def table(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    logit = X @ rng.standard_normal(d)
    return X, (logit - np.quantile(logit, 0.9) + rng.logistic(size=n) > 0).astype(int)


class Fit:
    """The fit of a ranker, again and again with the same estimator."""

    def __init__(self, ranker: Any, X: Any, y: Any = None, **given: Any):
        self.ranker, self.arguments, self.given = ranker, (X, y), given

    def __call__(self) -> None:
        self.ranker.fit(*self.arguments, **self.given)

    def answer(self) -> Any:
        scores = getattr(self.ranker, "decision_function", self.ranker.predict)
        return scores(self.arguments[0][:1000])

    def check_interrupted(self) -> None:
        try:
            check_is_fitted(self.ranker)
        except NotFittedError:
            return
        raise AssertionError(f"{self.ranker} is fitted after an interrupted fit")


class FitBlocks(Fit):
    """A fit to blocks."""

    def __init__(self, ranker: Any, source: Any, rows: Any):
        super().__init__(ranker, rows)
        self.source = source

    def __call__(self) -> None:
        self.ranker.fit_blocks(self.source)


class Call:
    """A function without an estimator."""

    def __init__(self, function: Callable[[], Any]):
        self.function = function

    def __call__(self) -> None:
        self.found = self.function()

    def answer(self) -> Any:
        found = self.found
        return np.array([found.low, found.high] if hasattr(found, "low") else found, dtype=float)

    def check_interrupted(self) -> None:
        """Nothing is kept."""


def memmap_source(X: Any, y: Any, folder: Path) -> Any:
    for name, values in (("X", X), ("y", y)):
        np.save(folder / f"{name}.npy", values)
    return blocks.from_memmap(folder / "X.npy", folder / "y.npy")


def parquet_source(X: Any, y: Any, folder: Path) -> Any:
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    path = folder / "rows.parquet"
    frame.assign(y=y).to_parquet(path, row_group_size=50_000)
    return blocks.from_parquet(path, target="y")


def linear(ranker: Any, rows: int, columns: int) -> Callable[[float, Path], Any]:
    return lambda size, folder: Fit(ranker, *table(max(200, int(rows * size)), columns))


def scored(function: Callable[[Any, Any], Any], rows: int) -> Callable[[float, Path], Any]:
    def case(size: float, folder: Path) -> Call:
        rng = np.random.default_rng(0)
        y = rng.random(max(200, int(rows * size))) < 0.1
        scores = rng.standard_normal(len(y)) + y
        return Call(lambda: function(y, scores))

    return case


def from_source(make: Callable[..., Any], rows: int) -> Callable[[float, Path], Any]:
    def case(size: float, folder: Path) -> FitBlocks:
        X, y = table(max(200, int(rows * size)), 20)
        return FitBlocks(PNormPush(tol=1e-9, n_jobs=2), make(X, y, folder), X)

    return case


def sparse_case(size: float, folder: Path) -> Fit:
    n, d = max(200, int(100_000 * size)), max(50, int(20_000 * size))
    X = sparse.random(n, d, density=1e-3, format="csr", random_state=0)
    logit = X @ np.random.default_rng(0).standard_normal(d)
    return Fit(PNormPush(), X, (logit > np.quantile(logit, 0.85)).astype(int))


def labels_case(size: float, folder: Path) -> Fit:
    X, _ = table(max(200, int(200_000 * size)), 20)
    rng = np.random.default_rng(1)
    Y = (X[:, :5] + rng.standard_normal((len(X), 5)) > 0.5).astype(int)
    return Fit(LabelRanker(50, n_jobs=2), X, Y)


def graded_case(ranker: Any, rows: int) -> Callable[[float, Path], Any]:
    def case(size: float, folder: Path) -> Fit:
        X, _ = table(max(200, int(rows * size)), 10)
        rng = np.random.default_rng(1)
        return Fit(ranker, X, np.round(2 * (X[:, 0] + rng.standard_normal(len(X)))))

    return case


CASES: dict[str, Callable[[float, Path], Any]] = {
    "pnorm-newton": linear(PNormPush(solver="newton", tol=1e-9), 900_000, 20),
    "pnorm-compiled": linear(PNormPush(solver="newton", tol=1e-9), 2_000_000, 20),
    "pnorm-compiled-2-threads": linear(PNormPush(solver="lbfgs", n_jobs=2), 2_000_000, 20),
    "pnorm-lbfgs": linear(PNormPush(solver="lbfgs", tol=1e-9), 500_000, 30),
    "pnorm-coordinate": linear(PNormPush(solver="coordinate"), 300_000, 30),
    "pnorm-inf": linear(PNormPush(p=np.inf), 300_000, 20),
    "pnorm-logistic": linear(PNormPush(loss="logistic"), 500_000, 20),
    "pnorm-hinge": linear(PNormPush(loss="hinge"), 100_000, 20),
    "pnorm-wide": linear(PNormPush(alpha=0.01), 50_000, 300),
    "pnorm-sparse": sparse_case,
    "toppush": linear(PushRanker("max", loss="squared_hinge"), 300_000, 20),
    "both-ends": linear(PushRanker(end="both"), 500_000, 20),
    "ir": linear(IRPush(), 500_000, 20),
    "proper": linear(ProperRanker(), 900_000, 20),
    "cv": linear(PNormPushCV(), 30_000, 20),
    "cv-2-threads": linear(PNormPushCV(n_jobs=2), 30_000, 20),
    "rank-boost": linear(RankBoost(200), 500_000, 20),
    "rank-boost-2-threads": linear(RankBoost(200, n_jobs=2), 500_000, 20),
    "rank-boost-graded": graded_case(RankBoost(20, target="graded"), 100_000),
    "ada-boost": linear(AdaBoostRanker(200, n_jobs=2), 300_000, 20),
    "smooth-margin": linear(SmoothMarginRanker(200), 300_000, 20),
    "labels": labels_case,
    "pair-graded": graded_case(PairRanker(), 300_000),
    "pair-logistic": graded_case(PairRanker(loss="logistic", n_jobs=2), 200_000),
    "pair-kernel": graded_case(PairRanker(kernel="rbf", n_components=1000, random_state=0), 20_000),
    "pair-kernel-exact": graded_case(
        PairRanker(kernel="rbf", n_components=2000, random_state=0), 2_000
    ),
    "trees-lightgbm": linear(PushTrees(n_estimators=50), 300_000, 20),
    "trees-lightgbm-2-threads": linear(PushTrees(n_estimators=50, n_jobs=2), 300_000, 20),
    "trees-xgboost": linear(PushTrees(n_estimators=50, backend="xgboost"), 300_000, 20),
    "trees-auto": linear(PushTrees("auto", n_estimators=30), 20_000, 20),
    "blocks-memmap": from_source(memmap_source, 1_000_000),
    "blocks-parquet": from_source(parquet_source, 500_000),
    "summary": scored(lambda y, s: list(metrics.summary(y, s).as_dict().values()), 10_000_000),
    "auc": scored(metrics.auc, 10_000_000),
    "push-risk-logistic": scored(
        lambda y, s: metrics.push_risk(y, s, p=4, loss="logistic"), 10_000_000
    ),
    "bootstrap": scored(
        lambda y, s: inference.interval("push_risk", y, s, p=4, random_state=0, n_resamples=200),
        200_000,
    ),
    "bootstrap-2-threads": scored(
        lambda y, s: inference.interval(
            "push_risk", y, s, p=4, random_state=0, n_resamples=200, n_jobs=2
        ),
        200_000,
    ),
    "compare": scored(
        lambda y, s: inference.compare("precision_at", y, s, s + 0.1 * y, k=0.01), 2_000_000
    ),
    "roc-band": scored(lambda y, s: inference.roc_band(y, s).low, 200_000),
}


def now() -> Any:
    """The time of the wall clock, and that of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def interrupted(call: Any, after: float) -> Any:
    """Seconds from the signal to KeyboardInterrupt; None where the call was done before it."""
    sent: list[Any] = []
    done, caught = False, None

    def send() -> None:
        time.sleep(after)
        sent.append(now())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send, daemon=True)
    try:
        sender.start()
        call()
        done = True
        sender.join()
        time.sleep(0.1)  # where the call was done first, the signal comes here
    except KeyboardInterrupt:
        caught = now()
    sender.join()
    return None if done or caught is None else caught - sent[0]


def check_threads(patience: float = 1.0) -> None:
    """The threads must be gone within a second: an interrupt may fall where they are waited for."""
    until = time.perf_counter() + patience
    while left := [t for t in threading.enumerate() if t.name.startswith("toprank")]:
        left[0].join(max(0.0, until - time.perf_counter()))
        if time.perf_counter() >= until:
            names = [t.name for t in left]
            raise AssertionError(f"threads are left after an interrupt: {names}")


def measure(name: str, size: float, rounds: int, folder: Path) -> dict[str, Any]:
    call = CASES[name](size, folder)
    call()  # loads and compiles what it needs
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    answer = np.array(call.answer())
    rng = np.random.default_rng(1)
    latencies = []
    for _ in range(rounds):
        latency = interrupted(call, rng.uniform(0.0, 0.98 * seconds))
        check_threads()
        if latency is not None:
            call.check_interrupted()
            latencies.append(latency)
    call()
    np.testing.assert_array_equal(call.answer(), answer)
    if not latencies:
        return {"seconds": round(seconds, 3), "interrupts": 0}
    wall, processor = np.max(latencies, axis=0)
    return {
        "seconds": round(seconds, 3),
        "interrupts": len(latencies),
        "median": round(float(np.median(latencies, axis=0)[0]), 4),
        "worst": round(float(wall), 4),
        "worst_of_processor": round(float(processor), 4),
        "limit": LIMIT,
        "within": bool(wall <= LIMIT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("which", nargs="*", choices=[*CASES, []], help="default: all")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the size")
    parser.add_argument("--size", type=float, default=1.0, help="share of the rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"quick": arguments.quick}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.which or CASES:
            size = 0.02 if arguments.quick else arguments.size
            results[name] = measure(name, size, arguments.rounds, Path(folder))
            print(f"{name}: {results[name]}", file=sys.stderr, flush=True)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
