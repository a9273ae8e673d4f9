"""The first hour: how long `fit`, `evaluate` and `report` take beside pandas reading the same file.

    python benchmarks/first_hour.py                 # 100,000 rows of 20 numbers
    python benchmarks/first_hour.py --rows 1000000  # what the limits in seconds are for

Every command runs in a process of its own, as users run it, and its CPU time is divided by that of
`pandas.read_csv` of the same file: on a shared machine the ratio means the same, seconds do not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from timing import clock, say

#: CPU time at most at 1,000,000 rows, in readings by pandas. Of fewer rows the start of Python and
#: its libraries, three seconds, is most of it.
LIMITS = {"fit": 60.0, "evaluate": 12.0, "report": 90.0}


def write_table(path: Path, rows: int) -> None:
    """Write a table of 20 numbers, about one row in twenty of which is positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20)).astype(np.float32)
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 1.5 * rng.normal(size=rows)
    table = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(20)])
    table.assign(y=(score > 3).astype(int)).to_csv(path, index=False)


def command_seconds(*arguments: str | Path) -> tuple[float, float]:
    """Return the CPU time and the time on the clock of a command of toprank."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "toprank.cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system
    return cpu - before.children_user - before.children_system, time.perf_counter() - start


def main() -> int:
    """Measure the commands; the exit code is 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--model", default="pnorm")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, model, page = (Path(folder, name) for name in ("t.csv", "model", "page.html"))
        say(f"writing {given.rows} rows")
        write_table(table, given.rows)
        pandas = min(clock(lambda: pd.read_csv(table), time.process_time) for _ in range(2))
        learn = ["-y", "y", "--model", given.model]
        commands = {
            "fit": ["fit", table, *learn, "-o", model, "-q"],
            "evaluate": ["evaluate", model, table, "-q"],
            "report": ["report", table, *learn, "-o", page, "-q"],
        }
        found = {}
        for name, command in commands.items():
            say(f"toprank {name}")
            cpu, wall = command_seconds(*command)
            found[name] = {
                "ratio": round(cpu / pandas, 2),
                "limit": LIMITS[name],
                "within": cpu <= LIMITS[name] * pandas if given.rows >= 1_000_000 else None,
                "cpu_seconds": round(cpu, 2),
                "seconds": round(wall, 2),
            }
    answer = {"rows": given.rows, "pandas_cpu_seconds": round(pandas, 3), **found}
    print(json.dumps(answer, indent=2))
    return 1 if any(one["within"] is False for one in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
