"""The record of benchmarks/gpu.py: a line per run of a figure, the last five of one code."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import toprank

Line = dict[str, Any]

KEPT = Path(__file__).with_name("gpu.json")
#: Runs of a figure that are kept.
MOST = 5
#: What a report says of itself, and every line of the record repeats.
STAMP = ("device", "torch", "toprank", "date", "code")
#: The part that has a row for many figures.
WIDTHS = "evaluation at other widths"
#: The other parts in the order of the page, and what their rows begin with.
PARTS = {
    "evaluation against reading X": "evaluation, 32 bits by rows, ",
    "fit": "fit, ",
    "fit at other widths": "fit of 8 GB, ",
    "fit against scikit-learn": "fit, ",
    "other losses": "loss: ",
    "sparse tensors": "sparse fit, ",
    "rows of the host": "pass over rows of the host, ",
    "PushLoss": "step of `PushLoss`, ",
}
BITS = {"float32": "32", "float64": "64", "float16": "16", "bfloat16": "16"}


def code() -> str:
    """Return what tells one state of the package from another."""
    digest, folder = hashlib.sha256(), Path(toprank.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def figures_of(report: dict[str, Any]) -> Iterator[Line]:
    """Return every figure of a report of gpu.py that has a limit."""
    stamp = {name: report[name] for name in STAMP}
    for part, found in report.items():
        for name, figure in found.items() if isinstance(found, dict) else ():
            if isinstance(figure, dict) and "limit" in figure:
                seconds = {key: float(f"{figure[key]:.4g}") for key in ("ours", "theirs")}
                numbers = {"limit": figure["limit"], "ratio": figure["ratio"], **seconds}
                yield {"part": part, "figure": name, **numbers, **stamp}


def name_of(line: Line) -> tuple[str, str]:
    return line["part"], line["figure"]


def read(path: Path = KEPT) -> list[Line]:
    kept: list[Line] = json.loads(path.read_text()) if path.is_file() else []
    return kept


def keep(report: dict[str, Any], path: Path = KEPT) -> int:
    """Put the figures of a report into the record; return how many were not there.

    Runs of other code leave the record where there is one of this code, and of one code the last
    few stay. The host's own figures are of smaller tables and are refused.
    """
    if report["device"] == "host":
        raise ValueError("figures of the host show that gpu.py runs; they are not kept")
    kept = read(path)
    new = [line for line in figures_of(report) if line not in kept]  # a report counts once
    for line in new:
        named = [old for old in kept if name_of(old) == name_of(line)]
        same = [old for old in named if old["code"] == line["code"]]
        kept = [old for old in kept if old not in named] + [*same, line][-MOST:]
    lines = sorted(kept, key=name_of)  # runs of one figure stay in their order
    path.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    return len(new)


def table_of(kept: list[Line]) -> str:
    """The figures as a table, one row for each, and one for each layout of the other widths."""
    runs = {name: list(lines) for name, lines in groupby(sorted(kept, key=name_of), name_of)}
    rows = list(rows_of_widths({name: of for (part, name), of in runs.items() if part == WIDTHS}))
    for part, words in PARTS.items():
        names = [name for at, name in runs if at == part]
        for name in sorted(names, key=number_of):
            rows.append(row_of(words + name, runs[part, name]))
    of = {name: ", ".join(sorted({line[name] for line in kept})) for name in STAMP[:3]}
    return "\n".join(
        [
            f"{of['device']}; torch {of['torch']}, toprank {of['toprank']}.",
            "",
            "| figure | limit | ratio | within | runs |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def row_of(words: str, runs: list[Line]) -> str:
    """One figure: its ratio, or the median and range, and how many runs keep within the limit."""
    limit, ratios = runs[-1]["limit"], [run["ratio"] for run in runs]
    shown = f"{median(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g})"
    if len(runs) < 3:  # a median would be none of them
        shown = " and ".join(f"{ratio:.3g}" for ratio in ratios)
    within = sum(ratio <= limit for ratio in ratios)
    verdict = f"in {within} of {len(runs)}"
    if within in (0, len(runs)):
        verdict = "yes" if within else "**no**"
    return f"| {words} | {limit} | {shown} | {verdict} | {when(runs)} |"


def rows_of_widths(figures: dict[str, list[Line]]) -> Iterator[str]:
    """A row for each layout and size of entries, with the widths whose median is over the limit."""
    layouts: dict[tuple[str, str], list[tuple[int, list[Line]]]] = {}
    for name, runs in figures.items():
        width, kind, side = name.replace(" x ", ", ").split(", ")
        layouts.setdefault((side, BITS[kind]), []).append((int(width), runs))
    for (side, bits), found in sorted(layouts.items(), reverse=True):
        ratios: dict[int, list[float]] = {}  # of both types of 16 bits
        for columns, runs in sorted(found, key=lambda one: one[0]):
            ratios.setdefault(columns, []).extend(run["ratio"] for run in runs)
        medians = {columns: median(some) for columns, some in ratios.items()}
        limit = found[0][1][-1]["limit"]
        over = [f"{columns:,} ({ratio:.2f})" for columns, ratio in medians.items() if ratio > limit]
        verdict = f"{len(medians) - len(over)} of {len(medians)} widths"
        verdict += f"; **not** {', '.join(over)}" if over else ""
        words = (
            f"evaluation of 4 GB, {bits} bits {side}, {min(medians)} to {max(medians):,} columns"
        )
        shown = f"{min(medians.values()):.2f} to {max(medians.values()):.2f}"
        fewest = min((runs for _, runs in found), key=len)
        yield f"| {words} | {limit} | {shown} | {verdict} | {when(fewest)} |"


def when(runs: list[Line]) -> str:
    """How many runs there are, of which days."""
    days = sorted({run["date"] for run in runs})
    return f"{len(runs)}, {' to '.join(dict.fromkeys((days[0], days[-1])))}"


def number_of(name: str) -> tuple[str, int]:
    """What sorts names by the words before the first number, then by that number."""
    found = re.search(r"\d[\d,]*", name)
    return (name[: found.start()], int(found[0].replace(",", ""))) if found else (name, 0)
