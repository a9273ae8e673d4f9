"""The record of benchmarks/gpu.py: a line per run of a figure, the last five of one code."""

from __future__ import annotations

import hashlib
import json
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
STAMP = ("device", "toprank", "torch", "date", "code")
#: The part that has a row for many figures.
WIDTHS = "evaluation at other widths"
#: The other parts in the order of the page, and what their rows begin with.
PARTS = {
    "evaluation against reading X": "evaluation against a sum of X, ",
    "fit": "fit, ",
    "fit against scikit-learn": "fit against scikit-learn's, ",
    "fit at other widths": "fit against scikit-learn's, 8 GB, ",
    "other losses": "fit against the exponential loss, ",
    "sparse tensors": "sparse fit against the host's, ",
    "rows of the host": "a pass over rows of the host against a copy, ",
    "PushLoss": "step of PushLoss against BCEWithLogitsLoss, ",
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


def read(path: Path = KEPT) -> list[Line]:
    kept: list[Line] = json.loads(path.read_text()) if path.is_file() else []
    return kept


def keep(report: dict[str, Any], path: Path = KEPT) -> int:
    """Put the figures of a report into the record; return how many.

    Runs of other code leave the record where there is one of this code, and of one code the last
    few stay. The host's own figures are of smaller tables and are refused.
    """
    if report["device"] == "host":
        raise ValueError("figures of the host show that gpu.py runs; they are not kept")
    kept, new = read(path), list(figures_of(report))
    for line in new:
        same = [
            old for old in kept if name_of(old) == name_of(line) and old["code"] == line["code"]
        ]
        others = [old for old in kept if name_of(old) != name_of(line)]
        kept = [*others, *[*same, line][-MOST:]]
    lines = sorted(kept, key=name_of)  # runs of one figure stay in their order
    path.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    return len(new)


def name_of(line: Line) -> tuple[str, str]:
    return line["part"], line["figure"]


def table_of(kept: list[Line]) -> str:
    """The figures as a table, one row for each, and one for each layout of the other widths."""
    runs = {name: list(lines) for name, lines in groupby(sorted(kept, key=name_of), name_of)}
    rows = list(rows_of_widths({name: of for (part, name), of in runs.items() if part == WIDTHS}))
    for part, words in PARTS.items():
        names = [name for name in runs if name[0] == part]
        for name in sorted(names, key=lambda name: number_of(name[1])):
            rows.append(row_of(words + name[1], runs[name]))
    devices = sorted({line["device"] for line in kept})
    return "\n".join(
        [
            f"Measured on: {', '.join(devices)}. A ratio is the median of the runs, with the least",
            "and the largest; of a layout, the range over its widths.",
            "",
            "| figure | limit | ratio | within | runs |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def row_of(words: str, runs: list[Line]) -> str:
    """One figure: its median and range, and how many of its runs keep within the limit."""
    limit, ratios = runs[-1]["limit"], [run["ratio"] for run in runs]
    within = sum(ratio <= limit for ratio in ratios)
    shown = f"{median(ratios):.3g}"
    if len(runs) > 1:
        shown += f" ({min(ratios):.3g} to {max(ratios):.3g})"
    verdict = "yes" if within == len(runs) else f"**{f'in {within}' if within else 'no'}**"
    if 0 < within < len(runs):
        verdict += f" of {len(runs)}"
    return f"| {words} | {limit} | {shown} | {verdict} | {when(runs)} |"


def rows_of_widths(figures: dict[str, list[Line]]) -> Iterator[str]:
    """A row for each layout and size of entries, with the widths whose median is over the limit."""
    layouts: dict[tuple[str, str], list[tuple[int, str, list[Line]]]] = {}
    for name, runs in figures.items():
        width, kind, side = name.replace(" x ", ", ").split(", ")
        layouts.setdefault((BITS[kind], side), []).append((int(width), kind, runs))
    for (bits, side), found in sorted(layouts.items(), key=lambda item: item[0][1] + item[0][0]):
        found.sort(key=lambda one: one[:2])
        medians = [median(run["ratio"] for run in runs) for *_, runs in found]
        limit = found[0][2][-1]["limit"]
        over = [
            f"{width:,}{f' {kind}' if bits == '16' else ''} ({ratio:.2f})"
            for (width, kind, _), ratio in zip(found, medians, strict=True)
            if ratio > limit
        ]
        verdict = f"{len(found) - len(over)} of {len(found)}"
        verdict += f"; **not** {', '.join(over)}" if over else ""
        every = [run for *_, runs in found for run in runs]
        words = f"evaluation against a sum of X, 4 GB, {bits} bits {side}"
        words += f", {found[0][0]} to {found[-1][0]:,} columns"
        shown = f"{min(medians):.2f} to {max(medians):.2f}"
        yield f"| {words} | {limit} | {shown} | {verdict} | {when(every, len(found))} |"


def when(runs: list[Line], figures: int = 1) -> str:
    """How many runs of each figure there are, when they were made and with which torch."""
    days = sorted({run["date"] for run in runs})
    versions = ", ".join(sorted({run["torch"] for run in runs}))
    return f"{-(-len(runs) // figures)}, {' to '.join(days[:1] + days[1:][-1:])}, torch {versions}"


def number_of(name: str) -> tuple[str, int, str]:
    """What sorts names by their words, then by the first number in them."""
    digits = "".join(part for part in name.replace(",", "").split(" x ")[0] if part.isdigit())
    words = "".join(part for part in name if part.isalpha())
    return (words.removesuffix("x"), int(digits or 0), name)
