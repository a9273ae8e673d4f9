"""`toprank rank`: the top of a list, with reasons, from a table of any length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank._text import counted
from toprank.cli.clusters import Cluster
from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.limits import (
    AtLeast,
    AtMost,
    Budget,
    Cost,
    Exclude,
    Explore,
    Include,
    LimitBy,
    ListLimits,
    MostPerEntity,
    Noise,
    Stay,
    Value,
)
from toprank.cli.listing import check_listing, show_listing, write_listing
from toprank.cli.memory import Memory, beyond_in_words, parse_memory, size_in_memory
from toprank.cli.options import Data, Json, Model, Quiet, Seed, parse_k, reads
from toprank.cli.ranked_rows import Ranked, carried_name, read_held, read_top, records
from toprank.cli.sure import Sure, SureTop, read_refits
from toprank.cli.terminal import (
    Failure,
    Step,
    note,
    print_json,
    progress,
    worker_threads,
)
from toprank.cli.wanted_list import WantedList

if TYPE_CHECKING:
    from toprank.cli.limited_rows import StayRows
    from toprank.models import TableModel


@reads
def rank(
    model: Model,
    data: Data,
    top: Annotated[
        str, typer.Option("--top", help="How many rows: a count (100) or a share (0.01).")
    ] = "100",
    whole: Annotated[
        bool, typer.Option("--all", help="Every row, the highest score first.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, by its ending: .csv, .tsv, .jsonl (also with .gz), .parquet, "
            ".feather, .xlsx; - for CSV on stdout. Replaced if it is there. Text is written as "
            "in the table: delimiter, decimal sign, encoding.",
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry along, besides the model's id; may be repeated."),
    ] = None,
    per_group: Annotated[
        str | None,
        typer.Option(help="Column of groups, such as branches: --top counts rows of each."),
    ] = None,
    per_entity: Annotated[
        str | None,
        typer.Option(help="Column of entities, such as customers: each stands in the list once."),
    ] = None,
    reasons: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many reasons to give for each row.", show_default="3; 0 with --all"
        ),
    ] = None,
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe",
            help="Put an apostrophe before texts that a spreadsheet would run as a formula "
            "(CSV and TSV); numbers stay numbers.",
        ),
    ] = False,
    most_per_entity: MostPerEntity = None,
    limit_by: LimitBy = None,
    at_most: AtMost = None,
    at_least: AtLeast = None,
    budget: Budget = None,
    cost: Cost = None,
    value: Value = None,
    include: Include = None,
    exclude: Exclude = None,
    explore: Explore = 0.0,
    seed: Seed = 0,
    sure: Sure = None,
    stay: Stay = None,
    noise: Noise = None,
    memory: Memory = None,
    cluster: Cluster = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Rank the rows of a table and keep the first ones, each with its reasons.

    The table is read some rows at a time, so that it may be longer than the memory; only the rows
    kept are held, all of them with --all. Rows of equal score stand in the order of the
    table, and `tied_at_the_cut` says where such rows were left out.

    With limits (caps and floors for groups, a budget, rows that must be in or out, a share drawn at
    random) all rows are held, and what each limit costs is said on stderr.
    """
    limits = ListLimits(
        per_entity,
        most_per_entity,
        limit_by,
        at_most,
        at_least,
        budget,
        cost,
        value,
        include,
        exclude,
        explore,
        seed,
    )
    wanted = WantedList(
        k=1.0 if whole else parse_k(top, "--top"),
        whole=whole,
        carried=list(id or ()),
        n_reasons=(0 if whole else 3) if reasons is None else reasons,
        per_group=per_group,
        per_entity=per_entity,
        limits=limits,
        sure=sure,
        stay=stay,
        noise=noise,
        memory=memory,
        cluster=cluster,
    )
    wanted.check()
    _check_written(output, as_json, (model, data, stay, sure))
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model

    loaded = load_model(model)
    refits = _fit_again(loaded, sure, reading, quiet)
    with (
        open_table(data, reading, quiet) as source,
        progress("Ranking", quiet) as step,
        worker_threads(-1),
    ):
        found = _read_wanted(wanted, loaded, source, refits, step, (reading, quiet))
        dialect = source.dialect
    if output is not None:
        write_listing(found.listing, output, excel_safe, dialect)
    elif as_json:
        print_json(records(found))
    else:
        show_listing(found.listing)
    _say_what_was_left_out(found, per_group, output, quiet)


def _check_written(output: Path | None, as_json: bool, read: Sequence[Path | None]) -> None:
    """Refuse an output that cannot be written, or that JSON on the terminal excludes."""
    if as_json and output is not None:
        raise Failure("give --json or --output, not both; an output may end in .jsonl.")
    check_listing(output, [path for path in read if path is not None])


def _fit_again(
    model: TableModel, train: Path | None, reading: Reading, quiet: bool
) -> SureTop | None:
    """Refits of a model to its training table; None where none is named."""
    if train is None:
        return None
    with open_table(train, reading, quiet) as source, progress("Fitting again", quiet) as step:
        return read_refits(model, source, step)


def _read_wanted(
    wanted: WantedList,
    model: TableModel,
    source: Source,
    refits: SureTop | None,
    step: Step,
    how: tuple[Reading, bool],
) -> Ranked:
    """The list that is wanted, in the way that it needs: some rows held, or all of them."""
    k, carried, n_reasons = wanted.k, wanted.carried, wanted.n_reasons
    before = None
    if wanted.stay is not None:
        before = _read_earlier(wanted.stay, model, source, carried, how, wanted.noise)
    if before is not None or wanted.limits.any:
        return read_held(model, source, k, carried, n_reasons, step, wanted.limits, before)
    if wanted.whole:
        source.remember(Reading.remembered(model.card))
        _check_room(source, wanted.memory)
    return read_top(
        model,
        source,
        k,
        carried,
        n_reasons,
        step,
        per_group=wanted.per_group,
        per_entity=wanted.per_entity,
        refits=refits,
        cluster=wanted.cluster,
    )


def _say_what_was_left_out(
    found: Ranked, per_group: str | None, output: Path | None, quiet: bool
) -> None:
    """Say what limits cost, which ties were cut, and where the list is."""
    if found.prices:
        note(found.prices, quiet)
    if found.tied_out:
        whose = " of their group" if per_group else f", {found.scores[-1]:.6g},"
        were = "was" if found.tied_out == 1 else "were"
        tied = counted(found.tied_out, "row")
        note(f"{tied} with the last score{whose} {were} left out.", quiet)
    if output is not None and str(output) != "-":
        note(f"wrote the first {len(found.scores)} of {found.n} rows to '{output}'.", quiet)


def _check_room(source: Source, memory: str | None) -> None:
    """Refuse to hold every row of a table that is too large for it."""
    size, allowed = size_in_memory(source), parse_memory(memory)
    if source.place is not None and size > allowed:
        raise Failure(
            f"--all holds every row of {source.name}, {beyond_in_words(size, allowed)}. Take the "
            "first rows with --top, or give more --memory."
        )


def _name_of_rows(model: TableModel, source: Source, carried: Sequence[str]) -> str:
    """The column that names the rows of a list: the first that is carried along."""
    source.remember(Reading.remembered(model.card))
    ids = [model.schema.id] if model.schema.id in source.columns else []
    names = [*ids, *carried]
    if not names:
        raise Failure("--stay needs --id, the column that names the rows in both lists.")
    return str(names[0])


def _read_earlier(
    path: Path,
    model: TableModel,
    source: Source,
    carried: Sequence[str],
    how: tuple[Reading, bool],
    noise: float | None,
) -> StayRows:
    """The rows of the list before, by the column that names them in both."""
    from toprank.cli.limited_rows import EarlierList, StayRows

    name = _name_of_rows(model, source, carried)
    with open_table(path, *how) as before:
        return StayRows(carried_name(0), EarlierList.read(before, name), noise)
