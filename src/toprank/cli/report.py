"""`toprank report`: one page about the top of a list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.clusters import Cluster
from toprank.cli.io.folder import GivenPath
from toprank.cli.io.source import Reading
from toprank.cli.memory import Memory
from toprank.cli.options import (
    AsNumber,
    AsText,
    Clip,
    Drop,
    Jobs,
    Json,
    KeepTails,
    MaxColumns,
    Pool,
    Positive,
    Quiet,
    RowId,
    Seed,
    SkipUnlabelled,
    Tidy,
    check_output,
    reads,
)
from toprank.cli.report_pages import (
    TableLimits,
    WantedFit,
    WantedPage,
    describe_fit,
    describe_models,
    sort_files,
)
from toprank.cli.terminal import Failure, console, print_json, safe

if TYPE_CHECKING:
    from toprank.report import Report

_MONEY = "What it is worth"
_PARTS = "What the list is made of"


@reads
def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="One table to learn from; or models, and then a table with labels to measure them "
            "on.",
            metavar="TABLE | MODEL... [TEST]",
            parser=GivenPath.of,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-y", help="Column of the labels; for models it is known."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML file to write; replaced if it is there.")
    ] = Path("report.html"),
    test: Annotated[
        Path | None,
        typer.Option(help="Table with labels to measure on, none of whose rows was learned from."),
    ] = None,
    positive: Positive = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Which ranker to fit to a table, as in 'toprank fit'."),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(help="How much work --model auto is, as in 'toprank fit': fast, good, best."),
    ] = None,
    id: RowId = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates or numbers that orders the folds.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column that says how often a row counts.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of groups: rows with one value stay together.")
    ] = None,
    drop: Drop = None,
    as_text: AsText = None,
    as_number: AsNumber = None,
    clip: Clip = None,
    tidy: Tidy = None,
    pool: Pool = None,
    keep_tails: KeepTails = False,
    skip_unlabelled: SkipUnlabelled = False,
    top: Annotated[int, typer.Option(min=1, help="How many rows the top of the list has.")] = 50,
    value_positive: Annotated[
        float | None,
        typer.Option(help="What a positive brings when it is found.", rich_help_panel=_MONEY),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(help="What it costs to take one row of the list.", rich_help_panel=_MONEY),
    ] = None,
    today: Annotated[
        str | None,
        typer.Option(
            help="Column of numbers that rows are ordered by today, the highest first.",
            rich_help_panel=_MONEY,
        ),
    ] = None,
    by_group: Annotated[
        str | None,
        typer.Option(
            help="Column of groups: share, precision and recall of each in the first rows.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of periods, such as days: the precision of each one's own list.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    per_entity: Annotated[
        str | None,
        typer.Option(
            help="With --by: column of entities, each once in the list of a period.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    sure: Annotated[
        Path | None,
        typer.Option(
            "--sure",
            metavar="TRAIN",
            help="The first model's training table: how sure each place of its list is, by refits.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    max_columns: MaxColumns = 5_000,
    memory: Memory = None,
    cluster: Cluster = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Write one self-contained page: how good the top is, who is on it, how many rows to take.

    Of models the page shows how good they are on a table that they have not seen, side by side.
    Of a table it shows the model that 'toprank fit' would write, on rows held out. The page opens
    by double click, in any browser, without a network.

    With --cluster the workers read the tables, and send the rows that --memory allows: all of them,
    or a sample whose size the page tells.
    """
    asked = {"model": model, "quality": quality}
    kind = {name: value for name, value in asked.items() if value is not None}
    lists = {"drop": drop, "as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    lists["pool"] = pool
    models, table, test = sort_files(files, test)
    others = [path for path in (test, sure) if path is not None]
    check_output(output, ("html", "htm"), [*files, *others])
    _check_money(value_positive, cost)
    if per_entity is not None and by is None:
        raise Failure("--per-entity needs --by, the column of periods.")
    shown = {"value_positive": value_positive, "cost": cost, "today": today}
    shown |= {"by_group": by_group, "by": by, "per_entity": per_entity}
    columns = {"id": id, "weight": weight, "groups": groups}
    within = TableLimits(max_columns, memory, cluster)
    wanted = WantedPage(top, columns, shown, skip_unlabelled, within, reading, quiet)
    if models:
        learning = {"target": target, "time": time, "positive": positive, **lists, **kind}
        _refuse_options({**learning, "keep_tails": keep_tails})
        made = describe_models(models, test, sure, wanted)
    else:
        if target is None:
            raise Failure("--target is missing: name the column of the labels.")
        if sure is not None:
            raise Failure("--sure is for a model and the table that it was fitted to.")
        fit = WantedFit(target, positive, time, lists, kind, keep_tails, seed, jobs)
        made = describe_fit(table, test, fit, wanted)
    _hand_over(made, output, as_json, quiet)


def _hand_over(made: Report, output: Path, as_json: bool, quiet: bool) -> None:
    """Write the page, and say its headline."""
    made.save(output)
    if as_json:
        print_json({"file": str(output), **made.to_dict()})
    if as_json or quiet:
        return
    screen = console()
    screen.print(safe(made.to_dict()["verdict"]["headline"]), style="bold")
    screen.print(f"Report: {safe(output)}", soft_wrap=True)


def _refuse_options(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise Failure(f"{option} belongs to a table to learn from; a model knows its own.")


def _check_money(value: float | None, cost: float | None) -> None:
    for option, given in (("--value-positive", value), ("--cost", cost)):
        if given is not None and not given >= 0:
            raise Failure(f"{option} {given:g}: expected a number from 0 on.")
    if cost is not None and value is None:
        raise Failure("--cost needs --value-positive: what a positive brings when it is found.")
