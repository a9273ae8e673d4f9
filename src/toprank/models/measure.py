"""How good a ranking is on rows that it never saw: metrics with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.inference import interval
from toprank.metrics.registry import METRICS
from toprank.models.plain import plain
from toprank.models.rows import TrainingRows
from toprank.tuning import Scoring

#: The metrics on every card, besides the one that the model was chosen by.
_ALWAYS = ("precision_at", "recall_at", "lift_at", "auc", "average_precision", "positives_at_top")


@dataclass(frozen=True)
class Measured:
    """Intervals of metrics on rows held out, and what could not be measured."""

    rows: int
    positives: int
    intervals: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def none(cls) -> Measured:
        """Nothing was measured."""
        return cls(0, 0, notes=["too few rows of one class, groups or times to hold some out"])


def measure(rows: TrainingRows, scores: FloatArray, scoring: Scoring) -> Measured:
    """Return the chosen metric and the usual ones, with 95% intervals."""
    depth = {"k": scoring.kwargs["k"]} if "k" in scoring.kwargs else {}
    wanted = {scoring.name: scoring.kwargs}
    for name in _ALWAYS:
        settings = {**METRICS[name].settings, **(depth if METRICS[name].takes_k else {})}
        wanted.setdefault(name, settings)
    intervals, notes = [], []
    for name, settings in wanted.items():
        try:
            found = interval(
                name,
                rows.positive,
                scores,
                groups=rows.groups,
                sample_weight=rows.weight,
                **settings,
            )
        except ValueError as error:
            notes.append(f"{name}: {error}")
        else:
            intervals.append(plain(found.as_dict()))
    found_positive = int(np.count_nonzero(rows.positive))
    return Measured(rows.n, found_positive, intervals, notes)
