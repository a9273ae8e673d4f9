"""The work behind `toprank evaluate`: metrics with intervals, and the time a row takes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.cli.failures import Failure
from toprank.cli.options import resamples_of
from toprank.cli.scoring import Labelled
from toprank.cli.terminal import Step
from toprank.inference import interval
from toprank.metrics import summary
from toprank.models import ModelWarning, TableModel

_REPEATS = 30


@dataclass(frozen=True)
class Line:
    """One metric: its value, its interval where there is one, and what else to know."""

    label: str
    name: str
    settings: dict[str, Any]
    value: float
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    method: str = ""
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


def lines(
    rows: Labelled,
    tops: Sequence[int | float],
    level: float,
    resamples: int | None,
    step: Step,
) -> list[Line]:
    """Every metric of the rows, with its interval.

    Parameters
    ----------
    rows : Labelled
    tops : sequence of int or float
        The lengths of the top.
    level : float
        Confidence level.
    resamples : int or None
        How often the bootstrap draws; None leaves it to the number of rows.
    step : callable
        Told which metric is being measured.
    """
    one = set(rows.positive.tolist())
    if len(one) < 2:
        only = "positive" if one == {True} else "negative"
        raise Failure(f"all rows are {only}; a ranking is measured on rows of two classes.")
    short = [k for k in tops if isinstance(k, int) and k > len(rows.scores)]
    if short:
        raise Failure(f"--k {short[0]}: there are only {len(rows.scores)} rows.")
    entries = list(summary(rows.positive, rows.scores, tops, sample_weight=rows.weight))
    n_resamples = resamples_of(resamples, len(rows.scores))
    found = []
    for done, entry in enumerate(entries):
        step(f"Measuring {entry.label}", done, len(entries))
        found.append(_line(entry, rows, level, n_resamples))
    return found


def _line(entry: Any, rows: Labelled, level: float, n_resamples: int) -> Line:
    what = (entry.label, entry.name, entry.settings, entry.value)
    try:
        found = interval(
            entry.name,
            rows.positive,
            rows.scores,
            level=level,
            n_resamples=n_resamples,
            **rows.known,
            **entry.settings,
        )
    except ValueError as error:  # a metric that has no interval on these rows: the value stays
        return Line(*what, note=f"no interval: {error}")
    return Line(
        *what,
        found.low,
        found.high,
        found.standard_error,
        found.method,
        " ".join(found.note.split()),
    )


def latency(model: TableModel, row: Any) -> float:
    """Milliseconds that scoring one row takes: the median of several runs, after a first one."""
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # said when the rows were scored
        for _ in range(1 + _REPEATS):
            start = time.perf_counter()
            model.score(row)
            times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times[1:]))
