"""`toprank evaluate`: every metric of a model on labelled rows, with its interval."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.options import (
    Data,
    Json,
    Level,
    Model,
    Quiet,
    Resamples,
    choose_resamples,
    parse_ks,
    reads,
)
from toprank.cli.terminal import (
    Failure,
    Step,
    cells,
    console,
    print_json,
    progress,
    safe,
    short_number,
    table,
)

if TYPE_CHECKING:
    from toprank.metrics.registry import Entry as SummaryEntry
    from toprank.models import TableModel
    from toprank.models.rows import Measurement, ScoredRows

_REPEATS = 30  # of scoring one row, to time it


@reads
def evaluate(
    model: Model,
    data: Data,
    k: Annotated[
        str, typer.Option(help="Lengths of the top, with commas: counts (100) or shares (0.01).")
    ] = "0.01,0.05,0.1",
    level: Level = 0.95,
    resamples: Resamples = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Measure how good the top of the list is: every metric, each with its interval.

    The table has a column of labels, named as in training; weights and groups are used where the
    model was trained with them and the table has them. Also says how long one row takes.
    """
    tops = parse_ks(k)
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model, score_labelled_table

    loaded = load_model(model)
    with open_table(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        rows, first = score_labelled_table(loaded, source, step)
        found = _measure_all(rows, tops, level, resamples, step)
    one_row = _latency(loaded, first)
    answer = {
        "model": str(model),
        "data": str(data),
        "rows": len(rows),
        "positives": int(rows.y.sum()),
        "level": level,
        "metrics": [line.as_dict() for line in found],
        "one_row_milliseconds": one_row,
    }
    if as_json:
        print_json(answer)
    else:
        _show_evaluation(answer, found)


@dataclass(frozen=True)
class MetricRow:
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


def _measure_all(
    rows: ScoredRows,
    tops: Sequence[int | float],
    level: float,
    resamples: int | None,
    step: Step,
) -> list[MetricRow]:
    """Every metric of the rows, with its interval.

    Parameters
    ----------
    rows : ScoredRows
    tops : sequence of int or float
        The lengths of the top.
    level : float
        Confidence level.
    resamples : int or None
        How often the bootstrap draws; None leaves it to the number of rows.
    step : callable
        Called with the metric that is being measured.
    """
    from toprank.metrics import summary
    from toprank.models.rows import measure

    if rows.y.all() or not rows.y.any():
        only = "positive" if rows.y.all() else "negative"
        raise Failure(f"all rows are {only}; a ranking is measured on rows of two classes.")
    short = [k for k in tops if isinstance(k, int) and k > len(rows)]
    if short:
        raise Failure(f"--k {short[0]}: there are only {len(rows)} rows.")
    entries = list(summary(rows.y, rows.scores, tops, sample_weight=rows.weight))
    options = {"level": level, "n_resamples": choose_resamples(resamples, len(rows))}
    measured = measure(rows, [(entry.name, entry.settings) for entry in entries], **options)
    found = []
    for done, entry in enumerate(entries):
        step(f"Measuring {entry.label}", done, len(entries))
        found.append(_metric_row(entry, next(measured)))
    return found


def _metric_row(entry: SummaryEntry, measured: Measurement) -> MetricRow:
    what = (entry.label, entry.name, entry.settings, entry.value)
    one = measured.interval
    if one is None:  # a metric that has no interval on these rows: the value stays
        return MetricRow(*what, note=f"no interval: {measured.why_not}")
    return MetricRow(
        *what, one.low, one.high, one.standard_error, one.method, " ".join(one.note.split())
    )


def _latency(model: TableModel, row: Any) -> float:
    """Milliseconds that scoring one row takes: the median of several runs, after a first one."""
    from toprank.models import ModelWarning

    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
        for _ in range(1 + _REPEATS):
            start = time.perf_counter()
            model.score(row)
            times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[1:])


def _show_evaluation(answer: dict[str, Any], found: list[MetricRow]) -> None:
    screen = console()
    share = f"{100 * answer['level']:g}% interval"
    screen.print(
        f"\n{safe(answer['model'])} on {safe(answer['data'])}: {answer['rows']} rows, "
        f"{answer['positives']} positives.",
        soft_wrap=True,
    )
    drawn = table(["metric", "value", share, ""], left=["metric", share, ""])
    notes: list[str] = []
    for line in found:
        if line.note and line.note not in notes:
            notes.append(line.note)
        mark = f"[{notes.index(line.note) + 1}]" if line.note else ""
        span = (
            f"{short_number(line.low)} to {short_number(line.high)}" if line.low is not None else ""
        )
        drawn.add_row(*cells(line.label, short_number(line.value), span, mark))
    screen.print(drawn)
    for place, text in enumerate(notes, 1):
        screen.print(f"[{place}] {safe(text)}", style="dim")
    screen.print(f"Scoring one row takes {answer['one_row_milliseconds']:.3g} milliseconds.")
