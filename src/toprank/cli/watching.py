"""The work behind `toprank monitor`: rows counted as they are read, and limits looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.cli.scoring import scored
from toprank.cli.source import Source
from toprank.cli.terminal import Step
from toprank.inference.shares import clopper_pearson
from toprank.models import Drift, DriftWatch, TableModel


@dataclass(frozen=True)
class Limits:
    """What is still in order."""

    drift: float
    volume_change: float
    precision: float | None


@dataclass(frozen=True)
class Share:
    """A share of rows with its exact (Clopper-Pearson) interval."""

    estimate: float
    low: float
    high: float
    rows: int

    @classmethod
    def of(cls, hits: Any, level: float) -> Share:
        """The share of true values."""
        share = float(np.mean(hits))
        low, high = clopper_pearson(share, len(hits), level)
        return cls(share, float(low), float(high), len(hits))


@dataclass(frozen=True)
class Watched:
    """What was seen, and which limits are passed.

    Attributes
    ----------
    rows : int
    scores : Drift
    columns : list of Drift
    cut_off : float
        Rows above it raise an alert.
    share_before : float
        Share of the training rows that did.
    alerts : Share
        Share of these rows that do.
    precision : Share or None
        Share of positives among the alerts that have a label.
    labelled : int
        Rows with a label.
    alarms : list of str
        Limits that are passed, in words.
    """

    rows: int
    scores: Drift
    columns: list[Drift]
    cut_off: float
    share_before: float
    alerts: Share
    precision: Share | None
    labelled: int
    level: float
    alarms: list[str] = field(default_factory=list)


def watch(
    model: TableModel,
    source: Source,
    against: Any,
    top: float,
    level: float,
    limits: Limits,
    step: Step,
) -> Watched:
    """Read and score a table, and look at the limits.

    Parameters
    ----------
    model : TableModel
    source : Source
    against : Table or None
        Rows to compare with, in place of the training rows.
    top : float
        Share of the training rows that raised an alert.
    level : float
        Confidence level of the intervals.
    limits : Limits
    step : callable
        Told how far the reading is.
    """
    drift = DriftWatch(model, against)
    scores = []
    for part in scored(model, source, step):
        drift.add(part.rows, part.scores)
        scores.append(part.scores)
    cut, before = drift.cut_off(top)
    above = np.concatenate(scores) > cut
    known, positive = _labels(model, source, above)
    precision = Share.of(positive, level) if len(positive) else None
    seen = (drift.scores(), drift.columns(), cut, before, Share.of(above, level), precision)
    return Watched(drift.rows, *seen, known, level, list(_alarms(limits, *seen)))


def _labels(model: TableModel, source: Source, above: Any) -> tuple[int, Any]:
    """How many rows have a label, and the labels of the alerts among them."""
    if model.target.column not in source.columns:
        return 0, np.empty(0, dtype=bool)
    rows = source.read([model.target.column])
    known = model.labelled(rows)
    return int(np.count_nonzero(known)), model.labels(rows.take(np.flatnonzero(known & above)))


def _alarms(
    limits: Limits,
    scores: Drift,
    columns: list[Drift],
    cut: float,
    before: float,
    alerts: Share,
    precision: Share | None,
) -> Iterator[str]:
    """The limits that are passed by more than the chance of few rows."""
    for one in (scores, *columns):
        if one.passes(limits.drift, among=len(columns) + 1):
            yield f"the drift of {one.name} is {one.psi:.3g}, allowed is {limits.drift:g}."
    if alerts.low > before * limits.volume_change or alerts.high < before / limits.volume_change:
        yield (
            f"{100 * alerts.estimate:.3g}% of the rows raise an alert, {100 * before:.3g}% did in "
            f"training: the factor may be {limits.volume_change:g}."
        )
    if limits.precision is not None and precision and precision.high < limits.precision:
        yield (
            f"the precision is {precision.estimate:.3g} (at most {precision.high:.3g}), asked is "
            f"{limits.precision:g}."
        )
