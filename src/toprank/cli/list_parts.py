"""Parts of a labelled table: its periods, each a list of its own, and groups in the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toprank.cli.io.source import Source
from toprank.cli.metric_row import MetricRow
from toprank.cli.terminal import Failure, Step
from toprank.inference import TopGroups, period_interval, top_groups
from toprank.metrics.metric import call_label
from toprank.models.errors import ModelError
from toprank.models.list_columns import read_entities, read_group_words, read_periods
from toprank.models.rows import ScoredRows


def measure_periods(
    rows: ScoredRows,
    wanted: Sequence[tuple[str, dict[str, Any]]],
    source: Source,
    columns: tuple[str, str | None],
    level: float,
    step: Step,
) -> list[MetricRow]:
    """The metrics of each period, their mean, and its interval over the periods."""
    by, entity = columns
    source.check_columns({by: "--by", **({} if entity is None else {entity: "--per-entity"})})
    if rows.weight is not None:
        raise Failure("--by does not take weights of rows; the model was trained with them.")
    known = source.read([name for name in columns if name is not None])
    try:
        times = read_periods(known, by)
    except ModelError as error:
        raise Failure(f"--by {error}") from error
    whose = None if entity is None else read_entities(known, entity)
    found = []
    for done, (name, settings) in enumerate(wanted):
        label = call_label(name, settings)
        step(f"Measuring {label}", done, len(wanted))
        try:
            one = period_interval(
                name, rows.y, rows.scores, times, entities=whose, level=level, **settings
            )
        except ValueError as error:
            raise Failure(f"--by {by}: {error}") from error
        ends = (one.low, one.high, one.standard_error)
        shown = f"{label}, mean of {len(one.values)}"
        found.append(MetricRow(shown, name, settings, one.estimate, *ends, one.method, one.note))
    return found


def measure_groups(
    rows: ScoredRows, source: Source, column: str, top: int | float, level: float
) -> TopGroups:
    """Share, precision and recall of each group in the first rows."""
    source.check_columns({column: "--by-group"})
    words = read_group_words(source.read([column]), column)
    if rows.weight is not None:
        raise Failure("--by-group does not take weights of rows; the model was trained with them.")
    try:
        return top_groups(rows.y, rows.scores, words, top, level=level)
    except ValueError as error:
        raise Failure(f"--by-group {column}: {error}") from error
