"""`toprank evaluate`: how good a model is on labelled rows, each number with its interval."""

from __future__ import annotations

import re
import statistics
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.clusters import Cluster, open_cluster
from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.memory import Memory, parse_memory
from toprank.cli.metric_row import MetricRow
from toprank.cli.options import (
    Data,
    Hidden,
    Json,
    Level,
    Model,
    Propensity,
    Quiet,
    Resamples,
    Unlabelled,
    choose_resamples,
    metric_names,
    parse_hidden,
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
    worker_threads,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import BoolArray, FloatArray, JsonObject
    from toprank.inference import TopGroups
    from toprank.metrics.registry import Entry as SummaryEntry
    from toprank.models import TableModel
    from toprank.models.rows import Measurement, ScoredRows

_REPEATS = 30  # of scoring one row, to time it
#: The numbers that people act on.
_USUAL = ("precision_at", "recall_at", "lift_at", "auc", "average_precision", "positives_at_top")


@reads
def evaluate(
    model: Model,
    data: Data,
    k: Annotated[
        str | None,
        typer.Option(
            help="Lengths of the top, with commas: counts of these rows (100) or shares (0.01).",
            show_default="that of the model, or 0.1",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Metric to measure; may be repeated.",
            autocompletion=metric_names,
            show_default="the six that people act on",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of periods, such as days: each is a list of its own, and the intervals "
            "are those of the mean over periods. Dates with hours are cut to days."
        ),
    ] = None,
    per_entity: Annotated[
        str | None,
        typer.Option(help="With --by: column of entities, each once in the list of a period."),
    ] = None,
    by_group: Annotated[
        str | None,
        typer.Option(
            help="Column of groups: also the share, precision and recall of each in the first "
            "rows, with intervals and a test of whether they are the same."
        ),
    ] = None,
    propensity: Propensity = None,
    unlabelled: Unlabelled = None,
    hidden: Hidden = None,
    every: Annotated[bool, typer.Option("--all", help="Measure every metric there is.")] = False,
    level: Level = 0.95,
    resamples: Resamples = None,
    memory: Memory = None,
    cluster: Cluster = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Measure how good the top of the list is: six numbers, each with its interval.

    The table has a column of labels, named as in training; weights and groups are used where the
    model was trained with them and the table has them. Says if the model has learned from these
    rows, and how long one row takes.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model, score_labelled_blocks, score_labelled_table
    from toprank.models.card import depth_notes

    if every and metric:
        raise Failure("give --metric or --all, not both.")
    if by is not None and every:
        raise Failure("--by measures the usual metrics, or those of --metric; leave out --all.")
    if per_entity is not None and by is None:
        raise Failure("--per-entity needs --by, the column of periods.")
    if propensity is not None and (by is not None or by_group is not None):
        raise Failure("--propensity weighs rows, and --by and --by-group count them; not both.")
    if unlabelled is not None and (by or by_group or propensity or every or cluster):
        raise Failure(
            "--unlabelled corrects metrics of one list: leave out --by, --by-group, --propensity, "
            "--all and --cluster."
        )
    share = parse_hidden(hidden, unlabelled)
    loaded = load_model(model)
    tops = [_own_top(loaded)] if k is None else parse_ks(k)
    with open_table(data, reading, quiet) as source, progress("Scoring", quiet) as step:
        if cluster is None:
            allowed = parse_memory(memory)
            with worker_threads(-1):
                scored = score_labelled_table(
                    loaded, source, step, memory=allowed, unlabelled=unlabelled
                )
        else:
            with open_cluster(cluster) as where:
                scored = score_labelled_blocks(loaded, source, where)
        rows = scored.rows
        if scored.sampled and (by or by_group or propensity):
            raise Failure(
                "--by, --by-group and --propensity need all rows in memory: give more --memory."
            )
        _check_two_classes(rows, tops)
        wanted = None if every else _list_metrics(metric or _USUAL, tops)
        if by is None:
            seen = _read_propensity(source, propensity)
            more: dict[str, object] = {"label_propensity": seen}
            if scored.unlabelled is not None:
                more = {"unlabelled": scored.unlabelled, "hidden": share}
            found = _measure_all(rows, wanted, tops, level, resamples, step, more)
            found += _share_row(rows, level, scored.unlabelled, share)
        else:
            from toprank.cli.list_parts import measure_periods

            found = measure_periods(rows, wanted or [], source, (by, per_entity), level, step)
        parts = _measure_groups(rows, source, by_group, tops, level)
    one_row = _latency(loaded, scored.first)
    said = [text for text in (scored.sampled, scored.seen) if text]
    notes = [*said, *depth_notes(tops, len(rows))]
    notes += _tie_notes(rows, tops)
    answer = {
        "model": str(model),
        "data": str(data),
        "rows": len(rows),
        "positives": int(rows.y.sum()),
        "level": level,
        "metrics": [line.as_dict() for line in found],
        "notes": notes,
        "one_row_milliseconds": one_row,
        **({} if by_group is None else {"groups": [one.as_dict() for one in parts]}),
    }
    if as_json:
        print_json(answer)
    else:
        _show_evaluation(answer, found)
        for one in parts:
            _show_groups(one)


def _measure_groups(
    rows: ScoredRows, source: Source, column: str | None, tops: Sequence[int | float], level: float
) -> list[TopGroups]:
    """The groups in the first rows, for each length of the top; nothing where none are named."""
    if column is None:
        return []
    from toprank.cli.list_parts import measure_groups

    return [measure_groups(rows, source, column, top, level) for top in tops]


def _own_top(model: TableModel) -> int | float:
    """The length of the top that a model was chosen by, if that is a share; a tenth if not."""
    chosen_by = str(model.card.get("chosen_by", ""))
    found = re.search(r"\bk=(0?\.\d+)", chosen_by)
    return float(found.group(1)) if found else 0.1


def _check_two_classes(rows: ScoredRows, tops: Sequence[int | float]) -> None:
    if rows.y.all() or not rows.y.any():
        only = "positive" if rows.y.all() else "negative"
        raise Failure(f"all rows are {only}; a ranking is measured on rows of two classes.")
    short = [k for k in tops if isinstance(k, int) and k > len(rows)]
    if short:
        raise Failure(f"--k {short[0]}: there are only {len(rows)} rows.")


def _list_metrics(
    names: Sequence[str], tops: Sequence[int | float]
) -> list[tuple[str, dict[str, object]]]:
    """The metrics by name with their settings: those at the top once for each length."""
    from toprank.metrics.registry import METRICS
    from toprank.models.rows import metric_settings

    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise Failure(f"--metric: '{unknown[0]}' is not one of: {', '.join(sorted(METRICS))}.")
    return [
        (name, metric_settings(name, top))
        for top in tops
        for name in names
        if METRICS[name].takes_k
    ] + [(name, metric_settings(name)) for name in names if not METRICS[name].takes_k]


def _tie_notes(rows: ScoredRows, tops: Sequence[int | float]) -> list[str]:
    """What to say where all of the first rows have one score."""
    import numpy as np

    tied = int(np.count_nonzero(rows.scores == np.max(rows.scores)))
    lengths = [k if isinstance(k, int) else max(1, round(k * len(rows))) for k in tops]
    if tied < 2 or tied < min(lengths):
        return []
    return [f"{tied} rows share the highest score: in which order they come is left to chance."]


def _measure_all(
    rows: ScoredRows,
    wanted: Sequence[tuple[str, dict[str, object]]] | None,
    tops: Sequence[int | float],
    level: float,
    resamples: int | None,
    step: Step,
    more: dict[str, Any],
) -> list[MetricRow]:
    """The metrics of the rows, each with its interval.

    Parameters
    ----------
    rows : ScoredRows
    wanted : sequence of (name, settings) or None
        Which; None for all there are.
    tops : sequence of int or float
        The lengths of the top.
    level : float
        Confidence level.
    resamples : int or None
        How often the bootstrap draws; None leaves it to the number of rows.
    step : callable
        Called with the metric that is being measured.
    more : dict
        ``label_propensity``, the probability that the label of each row was seen; or
        ``unlabelled`` and ``hidden``, as `toprank.inference.interval` takes them.
    """
    from toprank.metrics import summary
    from toprank.metrics.registry import METRICS, Entry
    from toprank.models.rows import measure

    weighed: dict[str, Any] = {"sample_weight": rows.weight}
    weighed["label_propensity"] = more.get("label_propensity")
    if wanted is None:
        entries = list(summary(rows.y, rows.scores, tops, **weighed))
    else:
        known: tuple[BoolArray, FloatArray] = (rows.y, rows.scores)
        entries = [
            Entry(name, given, METRICS[name].function(*known, **weighed, **given))
            for name, given in wanted
        ]
    options: dict[str, Any] = {"level": level, **more}
    options |= {"n_resamples": choose_resamples(resamples, len(rows))}
    measured = measure(rows, [(entry.name, entry.settings) for entry in entries], **options)
    found = []
    for done, entry in enumerate(entries):
        step(f"Measuring {entry.label}", done, len(entries))
        corrected = "unlabelled" in more and METRICS[entry.name].hidden is not None
        found.append(_metric_row(entry, next(measured), corrected))
    return found


def _share_row(
    rows: ScoredRows, level: float, unlabelled: BoolArray | None, hidden: object
) -> list[MetricRow]:
    """The share of positives among the rows without a label, where it is estimated."""
    from toprank.inference import hidden_share

    if unlabelled is None or hidden is not None:
        return []
    try:
        one = hidden_share(rows.y, rows.scores, unlabelled=unlabelled, level=level)
    except ValueError:  # the metrics say why
        return []
    value = (one.estimate, one.low, one.high)
    return [MetricRow(one.metric, "hidden_share", {}, *value, method=one.method, note=one.note)]


def _read_propensity(source: Source, column: str | None) -> FloatArray | None:
    """The probability that the label of each row was seen; None where no column is named."""
    if column is None:
        return None
    from toprank.models import frames
    from toprank.models.columns import Unreadable, as_numbers

    source.check_columns({column: "--propensity"})
    try:
        values = as_numbers(frames.column(source.read([column]), column))
    except Unreadable as error:
        raise Failure(f"--propensity {column}: {error}.") from error
    if not ((values > 0) & (values <= 1)).all():
        raise Failure(f"--propensity {column}: expected probabilities above 0, up to 1.")
    return values


def _metric_row(entry: SummaryEntry, measured: Measurement, corrected: bool) -> MetricRow:
    what = (entry.label, entry.name, entry.settings, float(entry.value))
    one = measured.interval
    if one is None:  # a metric that has no interval on these rows: the value stays
        return MetricRow(*what, note=f"no interval: {measured.why_not}")
    if corrected:
        what = (*what[:3], one.estimate)
    return MetricRow(
        *what, one.low, one.high, one.standard_error, one.method, " ".join(one.note.split())
    )


def _latency(model: TableModel, row: pa.Table) -> float:
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


def _show_groups(found: TopGroups) -> None:
    """Print the groups in the first rows as a table."""
    head, *body = found.lines()
    k = found.list_length
    top = f"{100 * k:g}% of the rows" if isinstance(k, float) else f"{k} rows"
    span = f"each with its {100 * found.level:g}% interval"
    console().print(f"\nGroups in the first {top}, {span}:", soft_wrap=True)
    drawn = table(head, left=[head[0]])
    for row in body:
        drawn.add_row(*cells(*row))
    console().print(drawn)


def _show_evaluation(answer: JsonObject, found: list[MetricRow]) -> None:
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
    for text in answer["notes"]:
        screen.print(f"Note: {safe(text)}", style="bold")
    screen.print(f"Scoring one row takes {answer['one_row_milliseconds']:.3g} milliseconds.")
