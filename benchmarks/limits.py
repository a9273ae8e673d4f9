"""The limits that speed is held to, each with its ratio: what is measured, and the page of it.

    python benchmarks/limits.py                      everything, an hour
    python benchmarks/limits.py --quick              small sizes, to see that it runs; not kept
    python benchmarks/limits.py one-hot losses       some of it
    python benchmarks/limits.py table --table caravan.csv.gz
    python benchmarks/limits.py text --share 0.2     a fifth of the rows
    python benchmarks/limits.py --page               only write the page again

Every figure goes into limits.json with its date and machine, in the place of what stood there, and
the first table of limits.md is written from that file, the second from gpu.json, the record of
benchmarks/gpu.py. A name tells the rows that were measured.

A figure is the ratio of two processor times, taken in turns on one thread, the best of several
rounds: other work on the machine hardly disturbs it. The rows one-hot and text compare at an equal
gap: each solver gets the loosest of a list of tolerances at which its objective is within 1e-6 of
its minimum, relative to max(1, |objective|); ours is a logarithm, so that this is the relative gap
of the risk itself. All others compare fits at their defaults.

Clusters and files are measured by benchmarks/clusters.py and benchmarks/scale.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import gpu_record
import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from threadpoolctl import threadpool_limits
from timing import report, say, side_by_side

import toprank
from toprank import PNormPush, PNormPushCV

#: What is compared, and the outcome.
Line = tuple[str, dict[str, Any]]

#: Where the figures are kept, and the page whose table is written from them.
KEPT = Path(__file__).with_name("limits.json")
PAGE = Path(__file__).with_name("limits.md")
MARKS = {
    name: (f"<!-- {name}: python benchmarks/limits.py --page -->", f"<!-- end of {name} -->")
    for name in ("figures", "GPU figures")
}

#: The gap at which fits are compared, and the tolerances that are tried for it.
GAP = 1e-6
TOLERANCES = [10.0 ** (-k / 2) for k in range(3, 17)]
#: The tolerance of the fit whose objective stands for the minimum.
EXACT = 1e-8


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


def heavy_tails(n: int, d: int) -> tuple[Any, Any]:
    """Return columns of Student's t, 2.5 degrees of freedom, a few of which count."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.5, size=(n, d))
    X /= X.std(axis=0)
    return X, labels(X[:, :5].sum(axis=1), rng)


def text(n: int, d: int, words: int = 30) -> tuple[Any, Any]:
    """Return hashed words, common ones more often, each row of length one."""
    rng = np.random.default_rng(0)
    places = (d * rng.random((n, words), dtype=np.float32) ** 3).astype(np.int32)
    values = np.full(n * words, words**-0.5)
    X = sparse.csr_matrix((values, places.ravel(), np.arange(n + 1) * words), (n, d))
    X.sum_duplicates()
    return X, labels(X @ rng.normal(size=d) * 3, rng)


def bits(n: int, d: int) -> tuple[Any, Any]:
    """Return dense columns of zero and one, a tenth of them ones."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, d)) < 0.1).astype(np.float64)
    return X, labels(X @ rng.normal(size=d) / 2, rng)


def fit(ranker: Any, rows: tuple[Any, Any]) -> Callable[[], Any]:
    return lambda: ranker.fit(*rows)


def compare(
    limit: float | None, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int = 2
) -> dict[str, Any]:
    timer = time.process_time
    return report(limit, *side_by_side(ours, theirs, rounds, timer=timer, warm_up=False))


def push_objective(ranker: Any, rows: tuple[Any, Any]) -> float:
    return float(ranker.objective_)


def logistic_objective(model: Any, rows: tuple[Any, Any]) -> float:
    """Return what LogisticRegression minimises; liblinear penalises the intercept too."""
    X, y = rows
    coef, shift = model.coef_[0], float(model.intercept_[0])
    margins = np.where(y == 1, 1.0, -1.0) * (X @ coef + shift)
    penalty = coef @ coef + (shift**2 if model.solver == "liblinear" else 0.0)
    return float(np.sum(np.logaddexp(0.0, -margins)) + 0.5 * penalty)


def at_the_gap(make: Callable[..., Any], objective: Callable[..., float], rows: Any) -> Any:
    """Return the estimator with the loosest tolerance whose objective is near its minimum.

    A tolerance only says where a solver stops, so that it is found by halving the list.
    """
    best = objective(make(tol=EXACT).fit(*rows), rows)
    near = GAP * max(1.0, abs(best))
    found, first, last = None, 0, len(TOLERANCES)
    while first < last:
        middle = (first + last) // 2
        model = make(tol=TOLERANCES[middle]).fit(*rows)
        if objective(model, rows) - best <= near:
            found, last = model, middle
        else:
            first = middle + 1
    if found is None:
        raise RuntimeError(f"no tolerance brings {make} within the gap")
    return found


def against_logistic(
    rows: tuple[Any, Any], p: float, limit: float, solvers: tuple[str, ...]
) -> dict[str, Any]:
    """A push against the best of scikit-learn's solvers, at an equal gap."""
    ours = at_the_gap(partial(PNormPush, p), push_objective, rows)
    results = []
    for solver in solvers:
        theirs = at_the_gap(
            partial(LogisticRegression, solver=solver, max_iter=5000), logistic_objective, rows
        )
        results.append(compare(limit, fit(ours, rows), fit(theirs, rows)))
    return max(results, key=lambda result: result["ratio"])


def sparse_fits(share: float, table: Path | None) -> Iterator[Line]:
    """A push on one-hot rows against the best of scikit-learn's solvers."""
    n = int(100_000 * share)
    rows = one_hot(n)
    for p, limit in ((4.0, 0.6), (64.0, 1.2)):
        solvers = ("lbfgs", "newton-cholesky", "liblinear")
        found = against_logistic(rows, p, limit, solvers)
        yield f"{n:,} x 500 one-hot, p = {p:g}, against logistic regression", found


def text_fits(share: float, table: Path | None) -> Iterator[Line]:
    """The same on hashed words; newton-cholesky would need a matrix of 80 GB."""
    n = int(1_000_000 * share)
    found = against_logistic(text(n, 100_000), 4.0, 1.0, ("lbfgs", "liblinear"))
    yield f"{n:,} x 100,000 hashed text, p = 4, against logistic regression", found


def hard_pushes(share: float, table: Path | None) -> Iterator[Line]:
    """Steep prices against p = 4."""
    makers: tuple[tuple[Any, int, int, str], ...] = (
        (normal, 100_000, 30, ""),
        (one_hot, 100_000, 10, " columns of 50 categories"),
        (bits, 5_000, 400, " bits"),
        (bits, 20_000, 512, " bits"),
        (normal, 200_000, 100, ""),
        (normal, 1_000_000, 30, ""),
    )
    for make, n, d, kind in makers:
        n = int(n * share)
        rows = make(n, d)
        for p, limit in ((64.0, 1.5), (np.inf, 4.0)):
            ratio = compare(limit, fit(PNormPush(p), rows), fit(PNormPush(4.0), rows), 3)
            yield f"{n:,} x {d}{kind}, p = {p:g} against p = 4", ratio


def wide_tables(share: float, table: Path | None) -> Iterator[Line]:
    """Tables with few rows per column, where most classes can be told apart; they have no limit."""
    makers: tuple[tuple[Any, int, int, str], ...] = (
        (bits, 2_000, 512, " bits"),
        (normal, 1_000, 2_000, ""),
        (normal, 300, 5_000, ""),
        (normal, 1_500, 4_000, ""),
        (normal, 10_000, 1_000, ""),
        (text, 2_000, 20_000, " hashed text"),
        (text, 20_000, 20_000, " hashed text"),
    )
    for make, n, d, kind in makers:
        n = int(n * share)
        rows = make(n, d)
        name = f"{n:,} x {d:,}{kind}"
        logistic = fit(LogisticRegression(max_iter=5000), rows)
        found = compare(None, fit(PNormPush(4.0), rows), logistic)
        yield f"{name}, p = 4 against LogisticRegression", found
        found = compare(None, fit(PNormPush(64.0), rows), fit(PNormPush(4.0), rows))
        yield f"{name}, p = 64 against p = 4", found


def losses(share: float, table: Path | None) -> Iterator[Line]:
    """Other losses against the exponential one, and the memory that they take."""
    n, m, k = int(200_000 * share), int(100_000 * share), int(20_000 * share)
    makers: tuple[tuple[Any, float | None, str], ...] = (
        (partial(normal, n, 100), 2.5, f"{n:,} x 100"),
        (partial(one_hot, m), 2.5, f"{m:,} x 500 one-hot"),
        (partial(one_hot, k), None, f"{k:,} x 500 one-hot"),
        (partial(heavy_tails, m, 30), None, f"{m:,} x 30 with heavy tails"),
    )
    for make, limit, name in makers:
        rows = make()
        for loss in ("logistic", "squared_hinge"):
            ours, theirs = fit(PNormPush(4.0, loss=loss), rows), fit(PNormPush(4.0), rows)
            yield f"{name}, {loss} against exponential", compare(limit, ours, theirs)
            if limit is not None and not sparse.issparse(rows[0]):
                taken = peak_memory(ours) / len(rows[1])
                yield f"{name}, {loss}, bytes per row beyond X", report(48.0, taken, 1.0)


def peak_memory(action: Callable[[], Any]) -> int:
    """Return the most bytes that an action held at once, of what NumPy and Python allocate."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def choosing(share: float, table: Path | None) -> Iterator[Line]:
    """Six p and five penalties on five folds, against logistic regression's five penalties."""
    n, m = int(100_000 * share), int(20_000 * share)
    tables = {f"{n:,} x 500 one-hot": one_hot(n), f"{m:,} x 512 bits": bits(m, 512)}
    for name, rows in tables.items():
        ours, theirs = fit(PNormPushCV(), rows), fit(LogisticRegressionCV(Cs=5, cv=5), rows)
        yield f"{name}, PNormPushCV against LogisticRegressionCV", compare(8.0, ours, theirs, 1)


def table_fits(share: float, table: Path | None) -> Iterator[Line]:
    """`toprank fit --model pnorm` on a table of categories, against one-hot columns."""
    if table is None:
        say("leave out the table: name it with --table (caravan.csv.gz of the CoIL 2000 challenge)")
        return
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from toprank.models import fit_table

    frame = pd.read_csv(table)
    target = frame.columns[-1]
    X, y = frame.drop(columns=target), frame[target]
    for name in X.columns[(X.nunique() > 2) & (X.nunique() <= 10)]:
        X[name] = X[name].map(lambda value: "abcdefghijklmnopqrstuvwxyz"[value])
    frame = X.assign(**{target: y})
    theirs = make_pipeline(OneHotEncoder(sparse_output=False), LogisticRegressionCV(Cs=5, cv=5))
    name = f"{len(X):,} x {X.shape[1]} table of categories"
    against = "against one-hot columns and LogisticRegressionCV"
    found = compare(6.0, lambda: fit_table(frame, target, model="pnorm"), fit(theirs, (X, y)), 1)
    yield f"{name}, fit_table(model='pnorm') {against}", found
    with tempfile.TemporaryDirectory() as folder:
        rows, model, page = (Path(folder) / name for name in ("t.csv", "m.toprank", "r.html"))
        frame.to_csv(rows, index=False)
        learn = ("--target", target, "--model", "pnorm", "--jobs", "1")
        for command in (
            ("fit", rows, *learn, "--output", model),
            ("evaluate", model, rows),
            ("report", rows, *learn, "--output", page),
        ):
            took, _ = run_command(*command)
            yield f"{name}, toprank {command[0]} {against}", report(6.0, took, found["theirs"])


def run_command(*words: object) -> tuple[float, float]:
    """Return the processor seconds and gigabytes of a command of toprank, a process of its own."""
    command = [sys.executable, "-m", "toprank.cli", *map(str, words), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"toprank {words[0]} failed with the status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6  # kilobytes on Linux


def tree_rows(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30)).astype(np.float32)
    y = (X @ rng.standard_normal(30) / 5 + rng.logistic(size=n) > 3).astype(np.float32)
    return X, y


def boosted(share: float, table: Path | None) -> Iterator[Line]:
    """Rounds of trees under the push, against the binary objective, bins made before."""
    from trees import lightgbm_fits, xgboost_fits

    n, rounds = int(1_000_000 * share), 100
    X, y = tree_rows(n)
    for name, make in (("LightGBM", lightgbm_fits), ("XGBoost", xgboost_fits)):
        ours, theirs = make(X, y, rounds, 1)
        yield f"{n:,} x 30, {rounds} rounds in {name}", compare(1.1, ours, theirs)


def choosing_for_trees(share: float, table: Path | None) -> Iterator[Line]:
    """Trees that choose p, the choice and the fit, against as many fits as there are candidates."""
    from toprank import PushTrees

    for n in (int(10_000 * share), int(100_000 * share)):
        rows = tree_rows(n)
        auto, one = PushTrees(n_jobs=1), PushTrees(4.0, n_jobs=1)
        tried = len(auto.ps)
        found = compare(1.2, fit(auto, rows), fit(one, rows))
        what = f"{n:,} x 30, PushTrees(), which tries {tried} p, against {tried} PushTrees(4)"
        yield what, report(1.2, found["ours"], tried * found["theirs"])


def measures(share: float, table: Path | None) -> Iterator[Line]:
    """Metrics of many rows, against np.sort and the fastest packages that are installed."""
    from toprank.metrics import auc, partial_auc, summary

    n, rng = int(10_000_000 * share), np.random.default_rng(0)
    half = rng.random(n) < 0.5
    s = rng.normal(size=n) + half
    found = compare(3.0, lambda: summary(half, s), lambda: np.sort(s))
    yield f"{n:,} rows, half of them positive, summary against np.sort", found
    y = rng.random(n) < 0.1
    s, w = rng.normal(size=n) + y, rng.random(n)
    found = compare(3.0, lambda: summary(y, s), lambda: np.sort(s))
    yield f"{n:,} rows, summary against np.sort", found
    try:
        from scors import roc_auc
    except ImportError:
        say("leave out scors: pip install scors")
    else:
        pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "auc": (lambda: auc(y, s), lambda: roc_auc(y, s)),
            "auc with weights": (
                lambda: auc(y, s, sample_weight=w),
                lambda: roc_auc(y, s, weights=w),
            ),
            "partial_auc": (
                lambda: partial_auc(y, s, max_fpr=0.1),
                lambda: roc_auc(y, s, max_fpr=0.1),
            ),
        }
        for name, (ours, theirs) in pairs.items():
            yield f"{n:,} rows, {name} against scors", compare(1.0, ours, theirs)
    try:
        import polars as pl
        import polars_ds as pds
    except ImportError:
        say("leave out polars-ds: pip install polars-ds")
        return
    frame, area = pl.DataFrame({"y": y.astype(np.uint32), "s": s}), pds.query_roc_auc("y", "s")
    found = compare(1.0, lambda: auc(y, s), lambda: frame.select(area))
    yield f"{n:,} rows, auc against polars-ds", found


def evaluations(share: float, table: Path | None) -> Iterator[Line]:
    """`toprank evaluate` of many rows of CSV, in a process of its own, while it shows progress."""
    import pyarrow as pa
    from pyarrow import csv

    n = int(5_000_000 * share)
    X, y = normal(n, 4)
    rows = pa.table({**{f"x{j}": np.round(X[:, j], 4) for j in range(4)}, "y": y})
    with tempfile.TemporaryDirectory() as folder:
        few, all_rows, model = (Path(folder) / name for name in ("few.csv", "all.csv", "m.toprank"))
        csv.write_csv(rows.slice(0, 20_000), few)
        csv.write_csv(rows, all_rows)
        run_command("fit", few, "--target", "y", "--model", "pnorm", "--output", model)
        took, gigabytes = run_command("evaluate", model, all_rows)
    yield f"{n:,} rows, toprank evaluate, processor seconds against 120", report(1.0, took, 120.0)
    yield f"{n:,} rows, toprank evaluate, gigabytes against 2", report(1.0, gigabytes, 2.0)


#: The figures of this file, each with what it is about.
FIGURES = {
    "one-hot": ("sparse fits", sparse_fits),
    "text": ("sparse fits", text_fits),
    "hard-pushes": ("hard pushes", hard_pushes),
    "wide": ("wide tables", wide_tables),
    "losses": ("other losses", losses),
    "choosing": ("choosing", choosing),
    "table": ("choosing", table_fits),
    "trees": ("trees", boosted),
    "auto-p": ("trees", choosing_for_trees),
    "metrics": ("metrics", measures),
    "evaluate": ("metrics", evaluations),
}


def measure(parts: list[str], share: float, table: Path | None) -> Iterator[dict[str, Any]]:
    """Measure some parts; every figure with what there is to know about it."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    stamp = {"version": toprank.__version__, "date": str(date.today()), "machine": machine}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            say(part)
            for what, found in FIGURES[part][1](share, table):
                line = {"part": part, "figure": what, **found, **stamp}
                say(row_of(line))
                yield line


def keep(line: dict[str, Any]) -> None:
    """Put a figure into the file, in the place of one of the same name."""
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() else []
    others = [old for old in kept if old["figure"] != line["figure"]]
    KEPT.write_text(json.dumps([*others, line], indent=1) + "\n")


def row_of(line: dict[str, Any]) -> str:
    within = {True: "yes", False: "**no**", None: "–"}[line["within"]]
    limit = "–" if line["limit"] is None else line["limit"]
    return (
        f"| {FIGURES[line['part']][0]} | {line['figure']} | {line['ours']:.4g} | "
        f"{line['theirs']:.4g} | {line['ratio']:.2f} | {limit} | {within} | "
        f"{line['machine']} | {line['version']}, {line['date']} |"
    )


def table_of(kept: list[dict[str, Any]]) -> str:
    """The figures as a table, part by part, and what is not among them."""
    parts = list(FIGURES)
    lines = [
        "| about | figure | ours | theirs | ratio | limit | within | machine | measured |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row_of(line) for line in sorted(kept, key=lambda line: parts.index(line["part"]))),
    ]
    missing = [part for part in parts if part not in {line["part"] for line in kept}]
    if missing:
        lines += ["", f"Not measured: {', '.join(missing)}."]
    return "\n".join(lines)


def page_of(page: str) -> str:
    """Return the page with the tables of both records between their marks."""
    gpus = gpu_record.table_of(gpu_record.read())
    tables = {"figures": table_of(json.loads(KEPT.read_text())), "GPU figures": gpus}
    for name, (first, last) in MARKS.items():
        before, rest = page.split(first)
        page = f"{before}{first}\n\n{tables[name]}\n\n{last}{rest.split(last)[1]}"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", choices=[*FIGURES, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size, not kept")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--table", type=Path, help="table of categories, the target last")
    parser.add_argument("--page", action="store_true", help="only write the page")
    asked = parser.parse_args()
    if not asked.page:
        share = 0.05 if asked.quick else asked.share
        for line in measure(asked.which or list(FIGURES), share, asked.table):
            if not asked.quick:
                keep(line)
    if not asked.quick:
        PAGE.write_text(page_of(PAGE.read_text()))


if __name__ == "__main__":
    main()
