"""The record of benchmarks/error_bars.py: a line per measurement, the last of a cell counts."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Coverage of 95% intervals beyond which a cell is wide.
WIDE = 0.975
KEPT = Path(__file__).with_suffix("").parent / "error_bars.csv"
_SETTING = ("positives", "prevalence", "law", "groups", "unequal", "weighted")


class Cell(NamedTuple):
    """What was found: the share that covers, or is rejected, of the samples with an answer."""

    answer: float
    draws: int
    refused: float
    noted: float = 0.0
    width: float = np.nan
    above: float = np.nan
    below: float = np.nan
    true_value: float = np.nan
    nearest: float = np.nan
    nearest_by_halves: float = np.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the answer."""
        answered = max(1.0, self.draws * (1 - self.refused))
        return float(np.sqrt(max(self.answer * (1 - self.answer), 1 / answered) / answered))


Key = tuple[str, ...]


class Record:
    """The cells that are known, kept in a file as soon as they are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells: dict[Key, Cell] = {}
        if path.exists():
            with path.open(newline="") as lines:
                for line in csv.DictReader(lines):
                    key = tuple(line[name] for name in ("part", "metric", *_SETTING))
                    self.cells[key] = Cell(
                        *(float(line.get(name) or "nan") for name in Cell._fields)
                    )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.tidy()

    def __len__(self) -> int:
        return len(self.cells)

    def __contains__(self, case: Any) -> bool:
        return key_of(case) in self.cells

    def __iter__(self) -> Iterator[tuple[Key, Cell]]:
        return iter(self.cells.items())

    def get(self, case: Any) -> Cell | None:
        """The cell of a case, None where it is not known."""
        return self.cells.get(key_of(case))

    def add(self, case: Any, cell: Cell) -> None:
        """Keep a cell, here and in the file."""
        self.cells[key_of(case)] = cell
        with self.path.open("a", newline="") as lines:
            csv.writer(lines, lineterminator="\n").writerow([*key_of(case), *map(_text, cell)])

    def tidy(self) -> None:
        """Write the file again, in order, without what was measured twice."""
        with self.path.open("w", newline="") as lines:
            table = csv.writer(lines, lineterminator="\n")
            table.writerow(["part", "metric", *_SETTING, *Cell._fields])
            for key in sorted(self.cells):
                table.writerow([*key, *map(_text, self.cells[key])])


def key_of(case: Any) -> Key:
    """What names a cell: its part, metric and setting, as words."""
    setting = (getattr(case.setting, name) for name in _SETTING)
    words = ("" if value is None else str(value) for value in setting)
    return (case.part, case.metric, *words)


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.5g}"


def is_wrong(part: str, cell: Cell) -> bool:
    """Whether a cell misses its promise by more than two standard errors, and no note says so."""
    if not np.isfinite(cell.answer) or cell.noted > 0.5:
        return False
    answered = max(1.0, cell.draws * (1 - cell.refused))
    if part == "nulls":
        return bool(cell.answer > 0.06 + 2 * np.sqrt(0.06 * 0.94 / answered))
    return bool(cell.answer < 0.93 - 2 * np.sqrt(0.93 * 0.07 / answered))
