"""From the record to numbers: means over splits, and paired differences with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.tuning import corrected_difference

from .data import TEST_SHARE
from .store import Store

#: Rows tested over rows trained on, when nothing is thinned: the larger the more cautious.
TEST_TO_TRAIN = TEST_SHARE / (1 - TEST_SHARE)
SIGNIFICANT = 0.05
UP, DOWN = "▲", "▼"
#: With fewer splits no difference is called clear.
FEWEST_SPLITS = 3

Values = dict[int, dict[str, float]]


@dataclass(frozen=True)
class Gap:
    """A paired difference of means over the splits that both finished."""

    mean: float
    half: float
    p_value: float
    splits: int

    @property
    def mark(self) -> str:
        # splits that all give the same difference of a few rows say nothing of its spread
        if self.p_value >= SIGNIFICANT or self.half == 0 or self.splits < FEWEST_SPLITS:
            return ""
        return UP if self.mean > 0 else DOWN

    def __str__(self) -> str:
        return f"{signed(self.mean)} ± {short(self.half)}{self.mark}"


def signed(x: float) -> str:
    return f"{x:+.3f}".replace("0.", ".", 1)


def short(x: float) -> str:
    return f"{x:.3f}".removeprefix("0") if x < 1 else f"{x:.3f}"


def select(store: Store, *first: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The cells whose key begins like this, by the rest of their key."""
    n = len(first)
    return {
        tuple(cell["key"][n:]): cell for cell in store if tuple(cell["key"][:n]) == tuple(first)
    }


def by_split(cells: Iterable[tuple[int, dict[str, Any]]]) -> Values:
    """Values of the splits that gave any."""
    return {number: cell["values"] for number, cell in cells if "failed" not in cell["values"]}


def mean(values: Values, metric: str) -> float | None:
    found = [of[metric] for of in values.values() if metric in of]
    return float(np.mean(found)) if found else None


def gap(ours: Values, theirs: Values, metric: str) -> Gap | None:
    """Ours less theirs; None with fewer than two splits in common."""
    both = sorted(set(ours) & set(theirs))
    common = [split for split in both if metric in ours[split] and metric in theirs[split]]
    if len(common) < 2:
        return None
    differences = [ours[split][metric] - theirs[split][metric] for split in common]
    found = corrected_difference(differences, TEST_TO_TRAIN)
    return Gap(found.mean, found.high - found.mean, found.p_value, len(common))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def tally(gaps: Iterable[Gap | None]) -> str:
    """How many of the differences are clear, either way."""
    known = [g for g in gaps if g is not None]
    up, down = (sum(g.mark == mark for g in known) for mark in (UP, DOWN))
    return f"{up} {UP} {down} {DOWN} of {len(known)}"


def costs(cells: Iterable[dict[str, Any]], what: str) -> float | None:
    found = [cell["costs"][what] for cell in cells if what in cell["costs"]]
    return float(np.median(found)) if found else None


def cross(
    rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str], corner: str
) -> str:
    """A table of rows by columns."""
    body = ([row, *(cell(row, column) for column in columns)] for row in rows)
    return markdown([corner, *columns], body)
