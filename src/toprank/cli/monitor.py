"""`toprank monitor`: whether today's rows still look like those of the training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.clusters import Cluster
from toprank.cli.exit_codes import LIMIT_PASSED
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.memory import Memory, read_within
from toprank.cli.options import Data, Json, Level, Model, Quiet, reads
from toprank.cli.terminal import cells, console, print_json, progress, safe, short_number, table

if TYPE_CHECKING:
    from toprank.models.monitor import Findings

_MOST_COLUMNS = 20


@reads
def monitor(
    model: Model,
    data: Data,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Table to compare with, in place of the training rows; the model must not have "
            "been fitted to it."
        ),
    ] = None,
    top: Annotated[
        float,
        typer.Option(min=0.0001, max=1, help="Share of unseen rows with an alert in training."),
    ] = 0.1,
    max_drift: Annotated[
        float,
        typer.Option(min=0, help="Largest drift (population stability index) of a column."),
    ] = 0.25,
    max_volume_change: Annotated[
        float,
        typer.Option(min=1, help="Largest factor by which alerts may be more, or fewer."),
    ] = 2.0,
    min_precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Smallest share of positives among labelled alerts."),
    ] = None,
    level: Level = 0.95,
    memory: Memory = None,
    cluster: Cluster = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Watch a model at work: drift of columns and scores, alerts, precision, when to retrain.

    Rows are compared with what the model remembers of its training rows, and scores with those of
    rows that it had not seen. A limit counts as passed when the number is beyond it and the change
    is more than the chance of few rows; the exit code is then 1. Where nothing has changed, drift
    and alerts pass a limit in at most 1% of tables.

    Before labels are there, the precision of the alerts is estimated from calibrated probabilities;
    where labels are, how far off that was is shown.

    With --cluster the workers read the table, and send the rows that --memory allows: all of them,
    or a sample whose size is told.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import (
        load_model,
        score_rows,
        score_sample,
        score_table,
        text_types,
    )
    from toprank.models.monitor import Limits, monitor_model

    loaded = load_model(model)
    limits = Limits(max_drift, max_volume_change, min_precision)
    against = None
    if reference is not None:
        with open_table(reference, reading, quiet) as source:
            source.remember(Reading.remembered(loaded.card))
            columns = [name for name in loaded.schema.names if name in source.columns]
            types = {n: kind for n, kind in text_types([loaded]).items() if n in columns}
            against, _ = read_within(source, columns, memory, "compared with", cluster, types)
    with open_table(data, reading, quiet) as source, progress("Reading", quiet) as step:
        source.remember(Reading.remembered(loaded.card))
        labels = [loaded.target.column] if loaded.target.column in source.columns else []
        sampled = ""
        if cluster is None:
            parts, read = score_table(loaded, source, step), source.read
        else:
            rows, sampled = score_sample(loaded, source, memory, cluster)
            parts, read = score_rows(loaded, rows, step), rows.select
        found = monitor_model(
            loaded,
            parts,
            lambda: read(labels) if labels else None,
            limits,
            reference=against,
            top=top,
            level=level,
        )
    if sampled:
        found.notes.append(sampled)
    if as_json:
        print_json(asdict(found))
    else:
        _show_findings(found, model, data)
    if found.alarms:
        raise typer.Exit(LIMIT_PASSED)


def _show_findings(found: Findings, model: Path, data: Path) -> None:
    screen = console()
    screen.print(f"\n{safe(model)} on {safe(data)}: {found.rows} rows.", soft_wrap=True)
    drawn = table(["", "kind", "drift", "missing", "before"], left=["", "kind"])
    for one in [found.scores, *found.columns[:_MOST_COLUMNS]]:
        shares = map(_percent, (one.missing, one.missing_before))
        drawn.add_row(*cells(one.name, one.kind, f"{one.psi:.3f}", *shares))
    screen.print(drawn)
    if len(found.columns) > _MOST_COLUMNS:
        screen.print(f"... and {len(found.columns) - _MOST_COLUMNS} columns that moved less")
    alerts, span = found.alerts, f"{100 * found.level:g}% interval"
    screen.print(
        f"Alerts (scores above {short_number(found.cut_off)}): {_percent(alerts.estimate)} of the "
        f"rows, {span} {_percent(alerts.low)} to {_percent(alerts.high)}; before "
        f"{_percent(found.share_before)}."
    )
    if found.precision is not None:
        hits = found.precision
        screen.print(
            f"Precision among {hits.rows} labelled alerts: {_percent(hits.estimate)}, {span} "
            f"{_percent(hits.low)} to {_percent(hits.high)}."
        )
    else:
        why = "no alert has a label" if found.labelled else "the rows have no labels"
        screen.print(f"Precision: not measured, {why}.", style="dim")
    _show_expected(found)
    for note in found.notes:
        screen.print(f"Note: {safe(note)}", style="dim")
    for alarm in found.alarms:
        screen.print(f"LIMIT PASSED: {safe(alarm)}", style="bold")
    if not found.alarms:
        screen.print("No limit is passed.", style="bold")
    for reason in found.retrain:
        screen.print(f"RETRAIN: {safe(reason)}", style="bold")
    if found.retrain:
        screen.print("Fit again to rows with labels: toprank fit NEWER --from MODEL -o NEXT.")
    elif found.expected is not None:
        screen.print("No reason to retrain.")


def _show_expected(found: Findings) -> None:
    """Print the precision that alerts should have, and how far off that was where labels are."""
    expected, off = found.expected, found.off_by
    if off is not None:
        points = 100 * (off.found - off.expected)
        console().print(
            f"Expected of these {off.rows} before their labels: {_percent(off.expected)}, "
            f"{_percent(off.low)} to {_percent(off.high)}; the labels are {points:+.3g} points off."
        )
    if expected is not None and (off is None or expected.rows > off.rows):
        console().print(
            f"Precision to expect of all {expected.rows} alerts: {_percent(expected.estimate)}, "
            f"{100 * found.level:g}% interval {_percent(expected.low)} to "
            f"{_percent(expected.high)}."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
