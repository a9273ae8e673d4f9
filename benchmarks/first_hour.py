"""The first hour: how long `fit`, `evaluate`, `report` and `show` take, and how much memory.

    python benchmarks/first_hour.py                 # 100,000 rows of 20 numbers: ratios alone
    python benchmarks/first_hour.py --rows 1000000  # what the limits in seconds are for
    python benchmarks/first_hour.py --rows 0        # the small table and the start alone

Every command runs in a process of its own, as users run it, with one thread. The limits are for an
idle machine and are held against CPU time: on a shared machine the clock says little. Beside each
stands the time that pandas takes to read the same file. A messy table of 6,000 rows has limits of
its own. `show`, and `rank` of ten rows with an ensemble that reads texts, are measured against
importing scikit-learn and pandas. What was measured last is in first_hour.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import clock, say

#: Seconds at most at 1,000,000 rows of 20 columns, and of the messy table of 6,000.
SECONDS = {"fit": 120.0, "evaluate": 20.0, "report": 180.0}
MESSY_SECONDS = {"fit": 10.0, "report": 20.0}
#: Bytes at most that a fit to 1,000,000 rows takes.
MOST_BYTES = 2.5e9
#: One thread in kernels, and compiled files kept, as pip keeps those of what it installs.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
#: `show` and the start of `rank`, in importing scikit-learn and pandas.
START = 1.3


def write_table(path: Path, rows: int) -> None:
    """Write a table of 20 numbers, about one row in twenty of which is positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20)).astype(np.float32)
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 1.5 * rng.normal(size=rows)
    table = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(20)])
    table.assign(y=(score > 3).astype(int)).to_csv(path, index=False)


def write_messy_table(path: Path, rows: int = 6_000) -> None:
    """Write a table as people have them: words, amounts, dates, gaps, spellings, a long tail."""
    rng = np.random.default_rng(1)
    age, city = rng.normal(45, 12, rows), rng.choice(["Oslo", " oslo", "Rome", "Bern"], rows)
    paid = rng.lognormal(3, 1.5, rows)
    paid[7] = 1e7
    wish = (age - 45) / 12 + (city == "Rome") + 0.3 * np.log(paid) + rng.logistic(size=rows)
    days = np.datetime64("2024-01-01") + rng.integers(0, 600, rows)
    table = pd.DataFrame(
        {
            "customer": [f"C{j:06d}" for j in range(rows)],
            "age": np.where(rng.random(rows) < 0.2, np.nan, age.round(1)),
            "city": city,
            "paid": paid.round(2),
            "price": [f"${value:,.2f}" for value in paid],
            "zip": [f"{value:05d}" for value in rng.integers(1, 99_999, rows)],
            "since": days.astype(str),
            "note": rng.choice(["called twice", "asked for a brochure", "", "moved house"], rows),
            "bought": np.where(wish > np.quantile(wish, 0.93), "yes", "no"),
        }
    )
    table.to_csv(path, index=False)


@dataclass(frozen=True)
class Usage:
    """What a process has used: CPU seconds, seconds on the clock, bytes at its largest."""

    cpu: float
    wall: float
    size: float

    def as_dict(self) -> dict[str, Any]:
        """The figures, rounded, for JSON."""
        return {
            "cpu_seconds": round(self.cpu, 2),
            "seconds": round(self.wall, 2),
            "megabytes": round(self.size / 1e6),
        }


def measure(*command: str | Path) -> Usage:
    """Run a command in a process of its own, with one thread."""
    start = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed with {process.returncode}.")
    unit = 1 if sys.platform == "darwin" else 1024
    wall = time.perf_counter() - start
    return Usage(used.ru_utime + used.ru_stime, wall, float(used.ru_maxrss * unit))


def toprank(*arguments: str | Path) -> Usage:
    """Run a command of toprank."""
    return measure(sys.executable, "-m", "toprank.cli", *arguments)


def large_table(folder: Path, rows: int) -> dict[str, Any]:
    """Measure the commands on a table of numbers."""
    table, model, page = (folder / name for name in ("t.csv", "model", "page.html"))
    say(f"writing {rows} rows")
    write_table(table, rows)
    pandas = min(clock(lambda: pd.read_csv(table), time.process_time) for _ in range(2))
    learn = ["-y", "y", "--quality", "fast"]
    commands: dict[str, list[str | Path]] = {
        "fit": ["fit", table, *learn, "-o", model, "-q"],
        "evaluate": ["evaluate", model, table, "-q"],
        "report": ["report", table, *learn, "-o", page, "-q"],
    }
    found: dict[str, Any] = {"rows": rows, "pandas_cpu_seconds": round(pandas, 3)}
    for name, command in commands.items():
        say(f"toprank {name}")
        used = toprank(*command)
        found[name] = {"times_pandas": round(used.cpu / pandas, 1), **used.as_dict()}
        if rows >= 1_000_000:
            fits = name != "fit" or used.size <= MOST_BYTES
            within = used.cpu <= SECONDS[name] and fits
            found[name] |= {"limit": SECONDS[name], "within": within}
    return found


def messy_table(folder: Path) -> dict[str, Any]:
    """Measure the commands on a small table of mixed columns."""
    table, model, page = (folder / name for name in ("messy.csv", "messy", "messy.html"))
    write_messy_table(table)
    learn = ["-y", "bought", "--id", "customer", "--as-text", "zip", "--quality", "fast"]
    found = {}
    for name, output in (("fit", model), ("report", page)):
        say(f"toprank {name} of the messy table")
        used = toprank(name, table, *learn, "-o", output, "-q")
        limit = MESSY_SECONDS[name]
        found[name] = {**used.as_dict(), "limit": limit, "within": used.cpu <= limit}
    return found


def start_of_commands(folder: Path, rounds: int = 5) -> dict[str, Any]:
    """Measure `show` and `rank` of a few rows against importing what everybody imports."""
    model, few = folder / "messy", folder / "few.csv"
    rows = (folder / "messy.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    few.write_text("".join(rows[:11]), encoding="utf-8")
    commands: dict[str, list[str | Path]] = {
        "importing": ["-c", "import sklearn, pandas"],
        "show": ["-m", "toprank.cli", "show", model],
        "rank": ["-m", "toprank.cli", "rank", model, few, "-q"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):  # in turn, so that a busy minute slows all alike
        for name, command in commands.items():
            say(f"start: {name}")
            seconds[name].append(measure(sys.executable, *command).cpu)
    theirs = float(np.median(seconds.pop("importing")))
    found: dict[str, Any] = {"importing": round(theirs, 2)}
    for name, spent in seconds.items():
        ours = float(np.median(spent))
        ratio = ours / theirs
        found[name] = {
            "ratio": round(ratio, 2),
            "limit": START,
            "within": ratio <= START,
            "cpu_seconds": round(ours, 2),
        }
    return found


def main() -> int:
    """Measure the commands; the exit code is 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = large_table(folder, given.rows) if given.rows else {}
        answer = {"large": large, "messy": messy_table(folder), "start": start_of_commands(folder)}
    print(json.dumps(answer, indent=2))
    entries = [entry for part in answer.values() for entry in part.values()]
    return int(any(isinstance(one, dict) and one.get("within") is False for one in entries))


if __name__ == "__main__":
    raise SystemExit(main())
