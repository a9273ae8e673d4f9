"""What whole fits cost beyond memory: Parquet, Dask and Spark against memory, in one run.

    python benchmarks/whole_fits.py                    # every part, at its full size
    python benchmarks/whole_fits.py wide infinity      # two of them
    python benchmarks/whole_fits.py dask --size 0.2    # a fifth of the rows
    python benchmarks/whole_fits.py --write            # and keep the figures in whole_fits.json

| part | what is timed | against | held to |
|---|---|---|---|
| wide | a fit of 200 columns from Parquet files | the fit of the same rows in memory | 3 |
| infinity | the fit with p = inf from Parquet files | | 40 passes |
| dask | a fit on two workers that hold the blocks | the fit of the same rows in memory | 1.15 |
| spark | `from_spark` of files, plain, filtered, computed | counting every column | 3 |
| scores | scores written to Parquet by Spark | writing the rows | 3 |
| sizes | loading, fitting and scoring by rows and by columns | memory | |

A fit is the whole of `fit_blocks`: labels, description, sample, evaluations, probabilities. Times
are the best of a few rounds, taken in turns, on the wall and of the processors, all processes of
Dask and Spark included; the ratio of the latter is held, since other work on the machine spares it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from timing import clock, say

from toprank import PNormPush, blocks

RECORD = Path(__file__).with_suffix(".json")


def sample(n: int, d: int, dtype: Any = np.float64, noise: float = 1.0) -> tuple[Any, Any]:
    """Rows, and labels of which about one in ten is positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=dtype)
    beta = (rng.standard_normal(d) / np.sqrt(d / 4)).astype(dtype)
    return X, (X @ beta + noise * rng.logistic(size=n) > 3).astype(np.int8)


def write_files(folder: Path, X: Any, y: Any, files: int = 8) -> None:
    """Write the rows as a folder of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = len(X)
    for part in range(files):
        rows = slice(part * n // files, (part + 1) * n // files)
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"y": y[rows]}
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")


def processor_seconds() -> float:
    """What this process and those that it started have used of the processors, Java's too."""
    import psutil

    total, own = 0.0, psutil.Process()
    for one in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            used = one.cpu_times()
            total += used.user + used.system
            # of workers that have ended, which Spark does with idle ones
            total += used.children_user + used.children_system
    return total


def take_turns(rounds: int, **calls: Callable[[], Any]) -> dict[str, dict[str, float]]:
    """The best wall and processor seconds of each, after one round that is not counted."""
    for call in calls.values():
        call()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            before = processor_seconds()
            wall = clock(call)
            times[name].append((wall, processor_seconds() - before))
    return {
        name: {"wall": min(t[0] for t in found), "processor": min(t[1] for t in found)}
        for name, found in times.items()
    }


def compare(
    ours: dict[str, float], theirs: dict[str, float], limit: float | None
) -> dict[str, Any]:
    """Ratios of both clocks; the processor's is held, which other work on the machine spares."""
    ratio = ours["processor"] / max(theirs["processor"], 0.01)
    within = {} if limit is None else {"limit": limit, "within": ratio <= limit}
    return {
        "ratio of processor seconds": round(ratio, 2),
        **within,
        "ratio of wall seconds": round(ours["wall"] / theirs["wall"], 2),
        "processor seconds": [round(one["processor"], 2) for one in (ours, theirs)],
        "wall seconds": [round(one["wall"], 2) for one in (ours, theirs)],
    }


def wide(size: float, rounds: int) -> dict[str, Any]:
    n, d = int(500_000 * size), 200
    X, y = sample(n, d)
    fitted: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), X, y)

        def from_files() -> None:
            source = blocks.from_parquet(name, target="y", n_jobs=2)
            fitted["files"] = PNormPush(p=4).fit_blocks(source)

        def in_memory() -> None:
            fitted["memory"] = PNormPush(p=4, n_jobs=2).fit(X, y)

        times = take_turns(rounds, files=from_files, memory=in_memory)
    apart = np.abs(fitted["files"].coef_ - fitted["memory"].coef_).max()
    return {
        "rows": n,
        "columns": d,
        "passes": fitted["files"].passes_,
        "largest difference of coefficients": float(f"{apart:.1e}"),
        "files / memory": compare(times["files"], times["memory"], 3.0),
    }


def infinity(size: float, rounds: int) -> dict[str, Any]:
    n, d = int(1_000_000 * size), 20
    X, y = sample(n, d, noise=0.1)  # with more, the best list of p = inf is one tie
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), X, y)
        started = time.perf_counter()
        model = PNormPush(p=np.inf).fit_blocks(blocks.from_parquet(name, target="y", n_jobs=2))
        took = time.perf_counter() - started
    memory = PNormPush(p=np.inf, n_jobs=2).fit(X, y)
    passes = sum(model.passes_.values())
    return {
        "rows": n,
        "columns": d,
        "seconds": round(took, 2),
        "passes": {"all": passes, "limit": 40, "within": passes <= 40, **model.passes_},
        "objective from files, in memory": [model.objective_, memory.objective_],
    }


def dask(size: float, rounds: int) -> dict[str, Any]:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    n, d = int(2_000_000 * size), 20
    X, y = sample(n, d)
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**settings) as cluster,
        Client(cluster) as client,
    ):
        chunks = []
        for part in range(8):  # files, so that the rows do not travel through the scheduler
            rows = slice(part * n // 8, (part + 1) * n // 8)
            np.save(f"{folder}/X{part}.npy", X[rows])
            load = dask.delayed(np.load)(f"{folder}/X{part}.npy")
            chunks.append(da.from_delayed(load, X[rows].shape, X.dtype))
        with blocks.from_dask(da.concatenate(chunks), y, client=client) as source:
            times = take_turns(
                rounds,
                dask=lambda: PNormPush(p=4).fit_blocks(source),
                memory=lambda: PNormPush(p=4, n_jobs=2).fit(X, y),
            )
    return {
        "rows": n,
        "columns": d,
        "two workers / memory in two threads": compare(times["dask"], times["memory"], 1.15),
    }


@contextmanager
def spark_rows(size: float) -> Iterator[tuple[Any, list[str], Path]]:
    """Rows in Parquet files as a frame of Spark on two cores, their features, and a folder."""
    n, d = int(6_000_000 * size), 20
    session = blocks.spark_session(
        "local[2]",
        spark__ui__enabled="false",
        spark__ui__showConsoleProgress="false",
        spark__driver__bindAddress="127.0.0.1",
        spark__driver__host="127.0.0.1",
    )
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "rows").mkdir()
        write_files(Path(name) / "rows", *sample(n, d, np.float32))
        yield session.read.parquet(f"{name}/rows"), [f"x{j}" for j in range(d)], Path(name)
    session.stop()


def spark(size: float, rounds: int) -> dict[str, Any]:
    with spark_rows(size) as (frame, names, _):
        from pyspark.sql import functions

        filtered = frame.filter("y >= 0").withColumnRenamed("x0", "first")  # all rows stay
        others = ["first", *names[1:]]
        computed = frame.withColumn("x0", functions.col("x0") * 2)  # Spark has to read them

        def count_columns() -> None:  # count() alone reads the footers and no column
            frame.agg(*(functions.count(name) for name in (*names, "y"))).collect()

        times = take_turns(
            rounds,
            files=lambda: blocks.from_spark(frame, features=names, target="y").close(),
            filtered=lambda: blocks.from_spark(filtered, features=others, target="y").close(),
            computed=lambda: blocks.from_spark(computed, features=names, target="y").close(),
            columns=count_columns,
            footers=frame.count,
        )
        n = frame.count()
    return {
        "rows": n,
        "columns": len(names),
        "files / counting every column": compare(times["files"], times["columns"], 3.0),
        "files / count(), of the footers": compare(times["files"], times["footers"], None),
        "filtered, renamed / counting every column": compare(
            times["filtered"], times["columns"], 3.0
        ),
        "a computed column / counting every column": compare(
            times["computed"], times["columns"], None
        ),
    }


def scores(size: float, rounds: int) -> dict[str, Any]:
    with spark_rows(size) as (frame, names, folder):
        with blocks.from_spark(frame, features=names, target="y") as source:
            ranker = PNormPush(p=4).fit_blocks(source)

            def score() -> None:
                scored = ranker.score_blocks(source)
                scored.write.mode("overwrite").parquet(str(folder / "scored"))

            def write() -> None:
                frame.write.mode("overwrite").parquet(str(folder / "written"))

            times = take_turns(rounds, score=score, write=write)
        n = frame.count()
    return {
        "rows": n,
        "columns": len(names),
        "scoring and writing / writing": compare(times["score"], times["write"], 3.0),
    }


def sizes(size: float, rounds: int) -> dict[str, Any]:
    """Processor seconds by rows and by columns: the fit, the scores, both from Parquet files."""
    found = {}
    for n, d in ((100_000, 20), (1_000_000, 20), (100_000, 5), (100_000, 100)):
        n = int(n * size)
        X, y = sample(n, d)
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "rows").mkdir()
            write_files(Path(name) / "rows", X, y)
            spent = [processor_seconds()]
            source = blocks.from_parquet(Path(name) / "rows", target="y", n_jobs=2)
            ranker = PNormPush(p=4).fit_blocks(source)
            spent.append(processor_seconds())
            ranker.score_blocks(source, to=Path(name) / "scores.parquet")
            spent.append(processor_seconds())
            PNormPush(p=4, n_jobs=2).fit(X, y)
            spent.append(processor_seconds())
        steps = [round(float(one), 2) for one in np.diff(spent)]
        found[f"{n:,} x {d}"] = dict(zip(("fit", "scores", "in memory"), steps, strict=True))
    return found


PARTS: dict[str, Callable[[float, int], dict[str, Any]]] = {
    "wide": wide,
    "infinity": infinity,
    "dask": dask,
    "spark": spark,
    "scores": scores,
    "sizes": sizes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--size", type=float, default=1.0, help="share of the full rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RECORD.name}")
    chosen = parser.parse_args()
    found = json.loads(RECORD.read_text()) if chosen.write and RECORD.exists() else {}
    for name in chosen.parts or list(PARTS):
        say(name)
        started = time.perf_counter()
        figures = PARTS[name](chosen.size, chosen.rounds)
        figures |= {
            "date": time.strftime("%Y-%m-%d"),
            "load": round(os.getloadavg()[0], 1),
            "took, seconds": round(time.perf_counter() - started),
        }
        found[name] = figures
        print(json.dumps({name: figures}, indent=2), flush=True)
        if chosen.write:
            RECORD.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
