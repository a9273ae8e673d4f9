"""A model at work: do scores and alerts look as in training, and which limits are passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.inference.shares import clopper_pearson
from toprank.models.drift import Drift, DriftWatch
from toprank.models.model import TableModel


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
class Findings:
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


def monitor_model(
    model: TableModel,
    parts: Iterable[tuple[Any, FloatArray]],
    read_labels: Callable[[], Any],
    limits: Limits,
    *,
    reference: Any = None,
    top: float = 0.1,
    level: float = 0.95,
) -> Findings:
    """Count scored rows as they come, and look at the limits.

    Parameters
    ----------
    model : TableModel
    parts : iterable of (table, array)
        Rows and their scores, some rows at a time.
    read_labels : callable
        Returns a table of the same rows with the column of the target; None if there is none.
    limits : Limits
    reference : table, optional
        Rows to compare with, in place of the training rows.
    top : float, default=0.1
        Share of the training rows that raised an alert.
    level : float, default=0.95
        Confidence level of the intervals.
    """
    drift, scores = DriftWatch(model, reference), []
    for rows, of_rows in parts:
        drift.add(rows, of_rows)
        scores.append(of_rows)
    cut, before = drift.cut_off(top)
    above = np.concatenate(scores) > cut
    known, positive = _labels(model, read_labels(), above)
    precision = Share.of(positive, level) if len(positive) else None
    seen = (drift.scores(), drift.columns(), cut, before, Share.of(above, level), precision)
    return Findings(drift.rows, *seen, known, level, list(_alarms(limits, *seen)))


def _labels(model: TableModel, rows: Any, above: Any) -> tuple[int, Any]:
    """How many rows have a label, and the labels of the alerts among them."""
    if rows is None:
        return 0, np.empty(0, dtype=bool)
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
