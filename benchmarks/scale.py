"""How toprank scales, side by side, in one run: ratios, printed as JSON.

    python benchmarks/scale.py parquet                 # 20,000,000 x 20 float32, out of core
    python benchmarks/scale.py parquet --quick         # a twentieth of the rows

Each part is run in a process of its own, so that its peak memory can be told.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from timing import say

#: Rows that are made and written at once.
PIECE = 250_000
FILES = 8
#: The memory that the fit may take, in bytes of address space: far less than the data.
CAP = 1 << 30


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def write_parquet(folder: Path, n: int, d: int) -> int:
    """Write n rows of d float32 features and a label, in a few files; return their bytes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = rng.standard_normal(d) / np.sqrt(d / 4)
    names = [f"x{j}" for j in range(d)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    rows_a_file = -(-n // FILES)
    left = n
    for place in range(FILES):
        with pq.ParquetWriter(folder / f"part-{place}.parquet", schema) as writer:
            rows = min(rows_a_file, left)
            left -= rows
            for start in range(0, rows, PIECE):
                m = min(PIECE, rows - start)
                X = rng.standard_normal((m, d), dtype=np.float32)
                y = X @ beta + rng.logistic(size=m) > 2.0
                columns = [pa.array(column) for column in X.T]
                writer.write_table(pa.table([*columns, pa.array(y.astype(np.int8))], schema=schema))
    return sum(file.stat().st_size for file in folder.iterdir())


def merely_read(folder: Path) -> dict[str, Any]:
    """Read every row of the files once, with pyarrow alone."""
    import pyarrow.parquet as pq

    start, rows, before = time.perf_counter(), 0, processor_seconds()
    for file in sorted(folder.iterdir()):
        for batch in pq.ParquetFile(file).iter_batches(100_000):
            rows += batch.num_rows
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "processor": processor_seconds() - before, "rows": rows}


def fit(folder: Path, threads: int) -> dict[str, Any]:
    """Fit PNormPush(p=4) to the files, with its address space limited."""
    from toprank import PNormPush, blocks

    before = peak_megabytes()
    limit_data(CAP)
    source = blocks.from_parquet(folder, target="y", n_jobs=threads)
    start, used = time.perf_counter(), processor_seconds()
    model = PNormPush(p=4).fit_blocks(source)
    return {
        "seconds": time.perf_counter() - start,
        "processor": processor_seconds() - used,
        "passes": model.passes_,
        "iterations": model.n_iter_,
        "gradient": float(model.history_[-1]["gradient"]) if model.history_ else None,
        "megabytes at import": before,
        "megabytes at peak": peak_megabytes(),
    }


def limit_data(bytes_: int) -> None:
    """Limit what the process may allocate (not the libraries mapped into it)."""
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_))


def in_a_process(*arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def parquet(size: float, threads: int, rounds: int = 3) -> dict[str, Any]:
    """A fit against merely reading the files as often as the objective was evaluated."""
    n, d = int(20_000_000 * size), 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"parquet: writing {n} x {d}")
        written = write_parquet(folder, n, d)
        reads, fits = [], []
        for turn in range(rounds):
            say(f"parquet: round {turn + 1} of {rounds}")
            reads.append(in_a_process("read", "--folder", folder))
            fits.append(in_a_process("fit", "--folder", folder, "--threads", threads))
    read = min(one["seconds"] for one in reads)
    best = min(fits, key=lambda one: one["seconds"])
    evaluations = best["passes"]["evaluate"]
    ratio = best["seconds"] / (read * evaluations)
    peak = max(one["megabytes at peak"] for one in fits)
    # the description reads every feature too; other work on the machine spares this clock
    passes = evaluations + best["passes"]["describe"]
    spent = [min(one["processor"] for one in some) for some in (fits, reads)]
    return {
        "rows": n,
        "features": d,
        "megabytes of files": round(written / 1e6),
        "megabytes as an array": round(4 * n * d / 1e6),
        "one read, seconds": round(read, 2),
        "fit, seconds": round(best["seconds"], 2),
        "evaluations": evaluations,
        "passes": best["passes"],
        "fit / (reads x evaluations)": {
            "ratio": round(ratio, 3),
            "limit": 3.0,
            "within": ratio <= 3,
        },
        "processor seconds, fit / (reads x passes over the features)": {
            "ratio": round(spent[0] / (spent[1] * passes), 3),
            "limit": 1.5,
            "within": spent[0] <= 1.5 * spent[1] * passes,
            "fit, one read": [round(one, 2) for one in spent],
        },
        "peak memory, megabytes": {"peak": round(peak), "limit": 600, "within": peak < 600},
        "megabytes at import": round(best["megabytes at import"]),
        "limit set on allocations, megabytes": round(CAP / 1e6),
    }


BENCHMARKS = {"parquet": parquet}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("which", nargs="*", choices=[*BENCHMARKS, "read", "fit", []])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.which == ["read"]:
        print(json.dumps(merely_read(arguments.folder)))
        return
    if arguments.which == ["fit"]:
        print(json.dumps(fit(arguments.folder, arguments.threads)))
        return
    size = 0.05 if arguments.quick else 1.0
    results = {
        name: BENCHMARKS[name](size, arguments.threads, arguments.rounds)
        for name in arguments.which or BENCHMARKS
    }
    print(json.dumps({"threads": arguments.threads, "quick": arguments.quick, **results}, indent=2))


if __name__ == "__main__":
    main()
