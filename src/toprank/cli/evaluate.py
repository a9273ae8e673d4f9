"""`toprank evaluate`: how good a model is on labelled rows, each number with its interval."""

from __future__ import annotations

import re
import statistics
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toprank._text import counted
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

    from toprank._arrays import FloatArray, JsonObject
    from toprank.cli.scoring import LabelledScores
    from toprank.inference import TopGroups
    from toprank.models import TableModel
    from toprank.models.rows import ScoredRows

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
    from toprank.cli.list_metrics import list_metrics, measure_list
    from toprank.cli.list_parts import measure_periods
    from toprank.cli.scoring import load_model

    if every and metric:
        raise Failure("give --metric or --all, not both.")
    if by is not None and every:
        raise Failure("--by measures the usual metrics, or those of --metric; leave out --all.")
    _check_columns(by, per_entity, by_group, propensity)
    if unlabelled is not None and (by or by_group or propensity or every or cluster):
        others = "--by, --by-group, --propensity, --all and --cluster"
        raise Failure(f"--unlabelled corrects metrics of one list: leave out {others}.")
    share = parse_hidden(hidden, unlabelled)
    loaded = load_model(model)
    tops = [_own_top(loaded)] if k is None else parse_ks(k)
    with open_table(data, reading, quiet) as source, progress("Scoring", quiet) as step:
        scored = _score(loaded, source, step, (memory, cluster), unlabelled)
        rows = scored.rows
        if scored.sampled and (by or by_group or propensity):
            raise Failure(
                "--by, --by-group and --propensity need all rows in memory: give more --memory."
            )
        _check_two_classes(rows, tops)
        wanted = None if every else list_metrics(metric or _USUAL, tops)
        if by is None:
            more: dict[str, object] = {"label_propensity": _read_propensity(source, propensity)}
            if scored.unlabelled is not None:
                more = {"unlabelled": scored.unlabelled, "hidden": share}
            found = measure_list(rows, wanted, tops, level, resamples, step, more)
        else:
            found = measure_periods(rows, wanted or [], source, (by, per_entity), level, step)
        parts = _measure_groups(rows, source, by_group, tops, level)
    answer = {
        "model": str(model),
        "data": str(data),
        "rows": len(rows),
        "positives": int(rows.y.sum()),
        "level": level,
        "metrics": [line.as_dict() for line in found],
        "notes": _notes(scored, tops),
        "one_row_milliseconds": _latency(loaded, scored.first),
        **({} if by_group is None else {"groups": [one.as_dict() for one in parts]}),
    }
    if as_json:
        print_json(answer)
    else:
        _show_evaluation(answer, found)
        for one in parts:
            _show_groups(one)


def _check_columns(
    by: str | None, per_entity: str | None, by_group: str | None, propensity: str | None
) -> None:
    """Refuse columns of periods, entities, groups and propensities that exclude each other."""
    if per_entity is not None and by is None:
        raise Failure("--per-entity needs --by, the column of periods.")
    if propensity is not None and (by is not None or by_group is not None):
        raise Failure("--propensity weighs rows, and --by and --by-group count them; not both.")


def _score(
    model: TableModel,
    source: Source,
    step: Step,
    where: tuple[str | None, str | None],
    unlabelled: str | None,
) -> LabelledScores:
    """Score the rows here, within the memory allowed, or where the workers of a cluster are."""
    from toprank.cli.scoring import score_labelled_blocks, score_labelled_table

    memory, cluster = where
    if cluster is not None:
        with open_cluster(cluster) as workers:
            return score_labelled_blocks(model, source, workers)
    allowed = parse_memory(memory)
    with worker_threads(-1):
        return score_labelled_table(model, source, step, memory=allowed, unlabelled=unlabelled)


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
        raise Failure(
            f"--k {short[0]}: the table has {counted(len(rows), 'row')}; give a smaller count, or "
            "a share such as 0.1."
        )


def _notes(scored: LabelledScores, tops: Sequence[int | float]) -> list[str]:
    """What to say of the rows as a whole: a sample, rows seen before, depths, ties."""
    from toprank.models.card import depth_notes

    said = [text for text in (scored.sampled, scored.seen) if text]
    return [*said, *depth_notes(tops, len(scored.rows)), *_tie_notes(scored.rows, tops)]


def _tie_notes(rows: ScoredRows, tops: Sequence[int | float]) -> list[str]:
    """What to say where all of the first rows have one score."""
    import numpy as np

    tied = int(np.count_nonzero(rows.scores == np.max(rows.scores)))
    lengths = [k if isinstance(k, int) else max(1, round(k * len(rows))) for k in tops]
    if tied < 2 or tied < min(lengths):
        return []
    return [f"{tied} rows share the highest score: in which order they come is left to chance."]


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
        f"\n{safe(answer['model'])} on {safe(answer['data'])}: "
        f"{counted(answer['rows'], 'row')}, {counted(answer['positives'], 'positive')}.",
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
