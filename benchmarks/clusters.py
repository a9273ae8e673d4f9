"""What a cluster costs on one machine: one evaluation on Dask and on Spark against memory.

    python benchmarks/clusters.py                # 2,000,000 x 30, Dask and Spark
    python benchmarks/clusters.py --rows 20_000_000 --columns 20  # 8 GB of memory, 7 of disk
    python benchmarks/clusters.py --quick        # small sizes, to see that it runs
    python benchmarks/clusters.py dask

One evaluation of the P-Norm Push (value and gradient, p = 4) by the same sweep over the same rows:
in memory with `blocks.from_arrays` on two threads, on two Dask workers of one thread, on two Spark
executors of one core. Times are taken in turns in one run, the best of several rounds; what is
printed is the ratio, with the limit it is held to, and the load of the machine. Beside it stands
the ratio of processor seconds, all processes included, summed over the rounds: other work on the
machine spares it, but Java's compilers and heartbeats count. There is none where a worker has ended
meanwhile, which Spark does with idle ones, and taken its seconds out of the sum.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import clock, say
from whole_fits import processor_seconds

from toprank import PNormPush, blocks

LIMITS = {"dask": 1.15, "spark": 2.0}


def sample(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] + rng.logistic(size=n) > 2).astype(np.int8)
    return X, y


def evaluation(source: Any) -> Callable[[], Any]:
    """One pass for value and gradient, as ``fit_blocks`` makes it."""
    from toprank.objective import problem_of
    from toprank.rankers.blockwise import look

    task = PNormPush(p=4)._task()
    problem = problem_of(look(source, None, task.intercepts), task)
    generator = np.random.default_rng(1)

    def evaluate() -> Any:
        return problem.value_grad(0.1 * generator.standard_normal(source.n_features))

    return evaluate


def compare(engine: str, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> Any:
    for _ in range(3):
        ours(), theirs()
    times, spent = [], np.zeros(2)
    for _ in range(rounds):
        before = processor_seconds()
        mine, between = clock(ours), processor_seconds()
        times.append((mine, clock(theirs)))
        spent += between - before, processor_seconds() - between
    best, base = (min(column) for column in zip(*times, strict=True))
    return {
        "engine": engine,
        "median ratio": round(float(np.divide(*np.median(times, axis=0))), 3),
        "ratio": round(best / base, 3),
        "limit": LIMITS[engine],
        "within": best / base <= LIMITS[engine],
        "seconds": round(best, 4),
        "in_memory_seconds": round(base, 4),
        "ratio of processor seconds": round(spent[0] / spent[1], 3) if min(spent) > 0 else None,
        "processor seconds each": [round(one / rounds, 4) for one in spent.tolist()],
        "load": [round(value, 1) for value in os.getloadavg()],
    }


def on_dask(X: Any, y: Any, folder: str) -> Iterator[Any]:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    # files, so that the rows do not travel through the scheduler
    chunks = []
    for part, rows in enumerate(parts(len(X))):
        np.save(f"{folder}/X{part}.npy", X[rows])
        load = dask.delayed(np.load)(f"{folder}/X{part}.npy")
        chunks.append(da.from_delayed(load, X[rows].shape, X.dtype))
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        with blocks.from_dask(da.concatenate(chunks), y, client=client) as source:
            yield source


def on_spark(X: Any, y: Any, folder: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j}" for j in range(X.shape[1])]
    for part, rows in enumerate(parts(len(X))):
        columns = {name: X[rows, j] for j, name in enumerate(names)} | {"y": y[rows]}
        pq.write_table(pa.table(columns), f"{folder}/part-{part}.parquet")
    session = blocks.spark_session(
        "local-cluster[2,1,2048]",
        spark__ui__enabled="false",
        spark__ui__showConsoleProgress="false",
        spark__executor__memory="2g",
        spark__driver__bindAddress="127.0.0.1",
        spark__driver__host="127.0.0.1",
    )
    frame = session.read.parquet(folder)
    with blocks.from_spark(frame, features=names, target="y") as source:
        yield source
    session.stop()


def parts(n: int) -> list[slice]:
    """Eight cuts, four for each worker."""
    return [slice(part * n // 8, (part + 1) * n // 8) for part in range(8)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", choices=["dask", "spark", []], default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=30)
    chosen = parser.parse_args()
    n, d = 20_000 if chosen.quick else chosen.rows, chosen.columns
    X, y = sample(n, d)
    base = evaluation(blocks.from_arrays(X, y, n_jobs=2))
    engines = {"dask": on_dask, "spark": on_spark}
    for name in chosen.engines or list(engines):
        say(f"{name}: {n:,} x {d}")
        with tempfile.TemporaryDirectory() as folder:
            for source in engines[name](X, y, folder):
                found = compare(name, evaluation(source), base, chosen.rounds)
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
