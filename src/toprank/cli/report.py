"""`toprank report`: one page about the top of a list."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from toprank._extras import require
from toprank.cli.clusters import Cluster
from toprank.cli.io.folder import GivenPath, place_of_files
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import check_exists, open_table
from toprank.cli.memory import Memory, jobs_within, read_within
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
    check_training,
    find_positive,
    keep_labelled,
    read_training,
    reads,
)
from toprank.cli.terminal import (
    Failure,
    console,
    print_json,
    progress,
    safe,
    worker_threads,
)

if TYPE_CHECKING:
    import pyarrow as pa

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
    fit = {"model": model, "quality": quality}
    fit = {name: value for name, value in fit.items() if value is not None}
    lists = {"drop": drop, "as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    lists["pool"] = pool
    models, table, test = _sort_files(files, test)
    others = [path for path in (test, sure) if path is not None]
    check_output(output, ("html", "htm"), [*files, *others])
    _check_money(value_positive, cost)
    if per_entity is not None and by is None:
        raise Failure("--per-entity needs --by, the column of periods.")
    money = {"value_positive": value_positive, "cost": cost, "today": today}
    money |= {"by_group": by_group, "by": by, "per_entity": per_entity}
    columns = {"id": id, "weight": weight, "groups": groups}
    if models:
        learning: dict[str, Any] = {
            "target": target,
            "time": time,
            "positive": positive,
            **lists,
            **fit,
        }
        learning["keep_tails"] = keep_tails
        _refuse_options(learning)
        options = columns | money | {"skip_unlabelled": skip_unlabelled, "train": sure}
        within = TableLimits(max_columns, memory, cluster)
        made = _describe_models(models, test, reading, top, options, within, quiet)
    else:
        if target is None:
            raise Failure("--target is missing: name the column of the labels.")
        if sure is not None:
            raise Failure("--sure is for a model and the table that it was fitted to.")
        roles = columns | {"time": time}
        used = roles | {"today": today, "by-group": by_group, "by": by, "per-entity": per_entity}
        named = (target, used, lists, max_columns)
        rows, sampled = _read_learned_table(table, reading, quiet, named, (memory, cluster))
        rows = keep_labelled(rows, target, skip_unlabelled)
        chosen = find_positive(rows, target, positive, target in (tidy or ()))
        fit.setdefault("model", "auto")  # as 'toprank fit' does
        given: dict[str, Any] = {"random_state": seed, "keep_tails": keep_tails, **roles}
        given |= {name: tuple(names or ()) for name, names in lists.items()}
        notes = (sampled,) if sampled else ()
        with worker_threads(jobs_within(jobs, rows.num_rows, rows.num_columns, memory)):
            if test is None:
                more: dict[str, Any] = {"fit": fit, "notes": notes}
                made = _build(rows, target, chosen, given | money | more, top, quiet)
            else:
                within = TableLimits(max_columns, memory, cluster)
                texts = dict.fromkeys((*given["as_text"], *given["as_number"]), _string_type())
                how = (within, None, texts)
                tested, also = _read_table(test, reading, quiet, {"target": target}, *how)
                tested = keep_labelled(tested, target, skip_unlabelled)
                more = columns | money | {"notes": (*notes, also) if also else notes}
                given |= {"positive": chosen, **fit}
                made = _fit_and_describe(rows, target, given, (tested, test, top, more), quiet)
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


def _string_type() -> pa.DataType:
    return require("pyarrow", "frames").string()


class TableLimits(NamedTuple):
    """What a table may take: columns, memory; and the cluster whose workers read it."""

    columns: int
    memory: str | None
    cluster: str | None


def is_model(path: Path) -> bool:
    """Whether a file is a model: a zip with a card, which no workbook has."""
    if str(path) == "-" or place_of_files(path) is not None:
        return False
    check_exists(path)
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "card.json" in archive.namelist()


def _sort_files(files: Sequence[Path], test: Path | None) -> tuple[list[Path], Path, Path | None]:
    """The models among the files, the table to learn from, and the table to measure on."""
    kinds = [is_model(path) for path in files]
    models = [path for path, known in zip(files, kinds, strict=True) if known]
    tables = [path for path, known in zip(files, kinds, strict=True) if not known]
    if not models:
        if len(files) > 1:
            raise Failure("name one table to learn from; a table to measure on is named by --test.")
        return [], files[0], test
    if len(tables) > 1 or (tables and test is not None):
        raise Failure("name one table to measure the models on.")
    if tables and kinds[-1]:
        raise Failure("name the models first, and then the table to measure them on.")
    return models, files[0], tables[0] if tables else test


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


def _read_learned_table(
    path: Path,
    reading: Reading,
    quiet: bool,
    named: tuple[str, Mapping[str, str | None], Mapping[str, Sequence[str] | None], int],
    within: tuple[str | None, str | None],
) -> tuple[pa.Table, str]:
    """The rows of a table to learn from, or some of many, and what to say of that.

    `within` are the memory allowed and the cluster whose workers read the table.
    """
    with open_table(path, reading, quiet) as source:
        check_training(source, *named)
        if source.place is not None or within[1] is not None:
            return read_within(source, None, within[0], "made from", within[1])
        return read_training(source, *named), ""


def _read_table(
    path: Path,
    reading: Reading,
    quiet: bool,
    named: Mapping[str, str | Sequence[str] | None],
    within: TableLimits,
    known: Reading | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> tuple[pa.Table, str]:
    """A table, whose columns are named by options, and what is said where it is a sample.

    `known` is what a model remembers of its own, `types` are those of columns of text.
    """
    with open_table(path, reading, quiet) as source:
        if known is not None:
            source.remember(known)
        source.check_width(within.columns)
        wanted: dict[str, str] = {}
        for option, name in named.items():
            for one in [name] if isinstance(name, str) else name or ():
                wanted[one] = f"--{option}"
        source.check_columns(wanted)
        here = {name: kind for name, kind in (types or {}).items() if name in source.columns}
        return read_within(source, None, within.memory, "measured on", within.cluster, here)


def _describe_models(
    paths: list[Path],
    test: Path | None,
    reading: Reading,
    k: int,
    options: dict[str, Any],
    within: TableLimits,
    quiet: bool,
) -> Report:
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_by_name, text_types
    from toprank.report import describe

    skip = options.pop("skip_unlabelled")
    models = load_by_name(paths)
    files = dict(zip(models, map(str, paths), strict=True))
    if test is None:
        given = {"--sure" if name == "train" else f"--{name}": options[name] for name in options}
        needs = [option.replace("_", "-") for option, value in given.items() if value]
        if needs:
            raise Failure(f"{needs[0]} needs a table with labels to measure the model on.")
        return describe(models, k=k, files=files)
    named = {name: options[name] for name in ("id", "weight", "groups", "today", "by")}
    named |= {name.replace("_", "-"): options[name] for name in ("by_group", "per_entity")}
    first = next(iter(models.values()))
    known = Reading.remembered(first.card)
    target = {"target": first.target.column}
    how = (within, known, text_types(models.values()))
    rows, sampled = _read_table(test, reading, quiet, {**named, **target}, *how)
    options["notes"] = (sampled,) if sampled else ()
    rows = keep_labelled(rows, first.target.column, skip)
    if options["train"] is not None:
        options["train"], _ = _read_table(options["train"], reading, quiet, target, *how)
    with progress("Scoring", quiet) as step:
        return describe(models, rows, k=k, files=files, data=str(test), progress=step, **options)


def _build(
    rows: pa.Table, target: str, positive: str, options: dict[str, Any], k: int, quiet: bool
) -> Report:
    from toprank.report import build

    with progress("Reading", quiet) as step:
        return build(rows, target, positive=positive, k=k, progress=step, **options)


def _fit_and_describe(
    rows: pa.Table,
    target: str,
    options: dict[str, Any],
    measured: tuple[pa.Table, Path, int, dict[str, Any]],
    quiet: bool,
) -> Report:
    """The model that `fit` writes of a table, measured on another one."""
    from toprank.models import fit_table
    from toprank.report import describe

    tested, test, k, how = measured
    today = [] if how["today"] is None else [how["today"]]
    options = options | {"drop": (*options["drop"], *today)}
    with progress("Fitting", quiet) as step:
        model = fit_table(rows, target, progress=step, **options)
    own = "This is the model that 'toprank fit' writes of the table to learn from."
    how = how | {"notes": (own, *how["notes"])}
    with progress("Scoring", quiet) as step:
        return describe(model, tested, k=k, data=str(test), progress=step, **how)
