"""The limits that fits are held to, each with its ratio, in one run: a page of Markdown.

    python benchmarks/limits.py              # everything, some minutes
    python benchmarks/limits.py --quick      # small sizes, to see that it runs
    python benchmarks/limits.py one-hot losses

A figure is the ratio of two processor times, taken in turns on one thread, the best of several
rounds: other work on the machine hardly disturbs it.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import report, say, side_by_side

import toprank
from toprank import PNormPush

#: What is compared, and the outcome.
Line = tuple[str, dict[str, Any]]


def labels(scores: Any, rng: np.random.Generator) -> Any:
    """Return labels of a logistic model, a fifth of them positive."""
    return (scores - np.quantile(scores, 0.8) + rng.logistic(size=len(scores)) > 0).astype(int)


def normal(n: int, d: int) -> tuple[Any, Any]:
    """Return normal columns, a few of which count."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, labels(X[:, :5].sum(axis=1), rng)


def one_hot(n: int, columns: int = 10, levels: int = 50) -> tuple[Any, Any]:
    """Return categories, encoded as sparse columns of zero and one."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, levels, size=(n, columns)) + levels * np.arange(columns)
    ends = np.arange(n + 1) * columns
    X = sparse.csr_matrix((np.ones(n * columns), places.ravel(), ends), (n, columns * levels))
    return X, labels(X @ rng.normal(size=columns * levels) / 2, rng)


def bits(n: int, d: int) -> tuple[Any, Any]:
    """Return dense columns of zero and one, a tenth of them ones."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, d)) < 0.1).astype(np.float64)
    return X, labels(X @ rng.normal(size=d) / 2, rng)


def fit(ranker: Any, rows: tuple[Any, Any]) -> Callable[[], Any]:
    return lambda: ranker.fit(*rows)


def compare(limit: float, ours: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, Any]:
    return report(limit, *side_by_side(ours, theirs, 2, timer=time.process_time, warm_up=False))


def sparse_fits(share: float) -> Iterator[Line]:
    """A push on sparse rows against the best of scikit-learn's solvers."""
    rows = one_hot(int(100_000 * share))
    for p, limit in ((4.0, 0.6), (64.0, 1.2)):
        results = [
            compare(limit, fit(PNormPush(p), rows), fit(LogisticRegression(solver=name), rows))
            for name in ("lbfgs", "newton-cholesky", "liblinear")
        ]
        yield (
            f"one-hot, p = {p:g}, against logistic regression",
            max(results, key=lambda result: result["ratio"]),
        )


def hard_pushes(share: float) -> Iterator[Line]:
    """Steep prices against p = 4."""
    tables = {
        "100,000 x 30": normal(int(100_000 * share), 30),
        "one-hot": one_hot(int(100_000 * share)),
        "5,000 x 400 bits": bits(int(5_000 * share), 400),
    }
    for name, rows in tables.items():
        for p, limit in ((64.0, 1.5), (np.inf, 4.0)):
            ratio = compare(limit, fit(PNormPush(p), rows), fit(PNormPush(4.0), rows))
            yield f"{name}, p = {p:g} against p = 4", ratio


def losses(share: float) -> Iterator[Line]:
    """Other losses against the exponential one."""
    rows = normal(int(200_000 * share), 100)
    for loss in ("logistic", "squared_hinge"):
        yield (
            f"200,000 x 100, {loss} against exponential",
            compare(2.5, fit(PNormPush(4.0, loss=loss), rows), fit(PNormPush(4.0), rows)),
        )


FIGURES = {"one-hot": sparse_fits, "hard-pushes": hard_pushes, "losses": losses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", choices=[*FIGURES, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    asked = parser.parse_args()
    print(f"toprank {toprank.__version__}, {date.today()}, {platform.machine()}, one thread\n")
    print("| figure | ratio | limit | within |\n|---|---|---|---|")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in asked.which or FIGURES:
            say(name)
            for what, found in FIGURES[name](0.05 if asked.quick else 1.0):
                within = "yes" if found["within"] else "**no**"
                print(
                    f"| {what} | {found['ratio']:.2f} | {found['limit']} | {within} |", flush=True
                )


if __name__ == "__main__":
    main()
