"""`toprank rank`: the top of a list, with reasons, from a table of any length; and its files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank._extras import require
from toprank.cli.clusters import Cluster, open_cluster
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
from toprank.cli.listing import check_listing, iterate_rows, write_listing
from toprank.cli.memory import Memory, in_words, parse_memory, place_in_blocks, size_in_memory
from toprank.cli.options import Data, Json, Model, Quiet, Seed, parse_k, reads
from toprank.cli.sure import Sure, SureTop, read_refits
from toprank.cli.terminal import (
    Failure,
    Step,
    cells,
    console,
    note,
    print_json,
    progress,
    short_number,
    table,
    worker_threads,
)
from toprank.cli.wanted_list import WantedList

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import AnyArray, JsonObject
    from toprank._numerics import FloatArray
    from toprank.cli.limited_rows import HeldTop, StayRows
    from toprank.models import Reason, TableModel
    from toprank.models.limited_top import LimitedTop
    from toprank.models.top_of_list import RunningTop

_AT_A_TIME = 10_000  # rows whose reasons are worked out together


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
    if as_json and output is not None:
        raise Failure("give --json or --output, not both; an output may end in .jsonl.")
    wanted.check()
    check_listing(output, [model, data, *(path for path in (stay, sure) if path is not None)])
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
    if as_json:
        print_json(records(found))
    elif output is None:
        show_listing(found.listing)
    else:
        write_listing(found.listing, output, excel_safe, dialect)
    _say_what_was_left_out(found, per_group, output, quiet)


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
        rows = "1 row" if found.tied_out == 1 else f"{found.tied_out} rows"
        were = "was" if found.tied_out == 1 else "were"
        note(f"{rows} with the last score{whose} {were} left out.", quiet)
    if output is not None and str(output) != "-":
        note(f"wrote the first {len(found.scores)} of {found.n} rows to '{output}'.", quiet)


@dataclass(frozen=True)
class Ranked:
    """The first rows of a table.

    Attributes
    ----------
    listing : pyarrow.Table
        What names the rows, `score`, `rank`, `reasons` and `tied_at_the_cut`.
    scores : array
    reasons : list of lists of Reason
    tied_out : int
        How many rows with the last score were left out.
    n : int
        How many rows the table has.
    prices : str
        What the limits of the list cost, in words; empty if there are none.
    """

    listing: pa.Table
    scores: FloatArray
    reasons: list[list[Reason]]
    tied_out: int
    n: int
    prices: str = ""


def read_top(
    model: TableModel,
    source: Source,
    k: int | float,
    carried: Sequence[str],
    n_reasons: int,
    step: Step,
    *,
    per_group: str | None = None,
    per_entity: str | None = None,
    refits: SureTop | None = None,
    cluster: str | None = None,
) -> Ranked:
    """Rank a table and return its first rows.

    Parameters
    ----------
    model : TableModel
    source : Source
    k : int or float
        How many rows: a count or a share.
    carried : sequence of str
        Columns of the table that are wanted in the list, besides the model's id.
    n_reasons : int
    step : callable
        Called with how far the reading is.
    per_group, per_entity : str, optional
        Columns: k rows of each group are wanted, and one of each entity.
    refits : SureTop, optional
        Refits of the model, for the column `sure`.
    cluster : str, optional
        Where the rows are scored, as --cluster has it.
    """
    from toprank.cli.scoring import score_chunks
    from toprank.models.limited_top import LimitedTop
    from toprank.models.top_of_list import RunningTop

    source.remember(Reading.remembered(model.card))
    source.check_columns(dict.fromkeys(carried, "--id"))
    limits = {"--per-group": per_group, "--per-entity": per_entity}
    source.check_columns({name: option for option, name in limits.items() if name is not None})
    ids = [model.schema.id] if model.schema.id in source.columns else []
    limiting = [name for name in limits.values() if name is not None]
    names = list(dict.fromkeys([*ids, *carried, *limiting]))
    needed = model.schema.names if n_reasons or refits is not None else model.schema.names[:1]
    size = _rows_to_keep(source, k)
    if cluster is not None:
        top = _top_on_cluster(model, source, cluster, size or source.count_rows(), needed, names)
        reasons = _find_reasons(model, top.rows, n_reasons, step)
        return Ranked(_listing(top, names, reasons), top.scores, reasons, top.tied_out, top.n)
    kept = LimitedTop(size) if limiting else RunningTop(size)
    for chunk, scores in score_chunks(model, source, step, names):
        keys = {
            role: chunk.carried.column(name).to_pylist()
            for role, name in (("groups", per_group), ("entities", per_entity))
            if name is not None
        }
        kept.add(scores, _beside(chunk.rows.select(needed), chunk.carried), **keys)
        if refits is not None and size is not None:
            refits.add(chunk.rows, size)
    kept.settle()
    reasons = _find_reasons(model, kept.rows, n_reasons, step)
    more = None
    if refits is not None:
        more = {"sure": refits.shares(kept.rows.select(needed)), "tied_at_the_cut": kept.tied}
    listing = _listing(kept, names, reasons, more)
    return Ranked(listing, kept.scores, reasons, kept.tied_out, kept.n)


def _top_on_cluster(
    model: TableModel,
    source: Source,
    cluster: str,
    k: int,
    needed: Sequence[str],
    names: Sequence[str],
) -> RunningTop:
    """The first rows, scored where the workers of a cluster read them."""
    from toprank.blocks import from_tables
    from toprank.models.block_scores import top_of_blocks

    place = place_in_blocks(source)
    wanted = list(dict.fromkeys([*model.schema.names, *names]))
    kept = [(name, name) for name in needed]
    kept += [(name, _carried_name(number)) for number, name in enumerate(names)]
    with open_cluster(cluster) as where:
        rows = from_tables(place, columns=wanted, cluster=where)
        return top_of_blocks(model, rows, k, kept)


def _check_room(source: Source, memory: str | None) -> None:
    """Refuse to hold every row of a table that is too large for it."""
    size, allowed = size_in_memory(source), parse_memory(memory)
    if source.place is not None and size > allowed:
        raise Failure(
            f"--all holds every row of {source.name}, about {in_words(size)}, and "
            f"{in_words(allowed)} are allowed (--memory). Take the first rows with --top, or give "
            "more --memory."
        )


def read_held(
    model: TableModel,
    source: Source,
    k: int | float,
    carried: Sequence[str],
    n_reasons: int,
    step: Step,
    limits: ListLimits,
    stay: StayRows | None = None,
) -> Ranked:
    """Rank a table and choose rows of the whole list; other parameters as in `read_top`.

    Parameters
    ----------
    model, source, k, carried, n_reasons, step
        As in `read_top`.
    limits : ListLimits
        Limits that the list keeps.
    stay : StayRows, optional
        The earlier list whose rows stay.
    """
    from toprank.cli.limited_rows import CutTop, StayTop, row_chances
    from toprank.cli.scoring import score_chunks

    source.remember(Reading.remembered(model.card))
    source.check_columns({**dict.fromkeys(carried, "--id"), **limits.columns()})
    ids = [model.schema.id] if model.schema.id in source.columns else []
    shown = [name for name in (limits.per_entity, limits.limit_by) if name is not None]
    names = list(dict.fromkeys([*ids, *carried, *shown]))
    needed = model.schema.names if n_reasons else model.schema.names[:1]
    limited = limits.any or limits.per_entity is not None or not isinstance(k, int)
    kept: HeldTop
    if not limited and stay is not None and isinstance(k, int):
        kept = StayTop(k, stay)
    else:
        kept = CutTop(limits, k, source, stay)
    for chunk, scores in score_chunks(model, source, step, names):
        rows = _beside(chunk.rows.select(needed), chunk.carried)
        kept.add(scores, rows, row_chances(model, chunk.rows) if limited else None)
    kept.settle()
    reasons = _find_reasons(model, kept.rows, n_reasons, step)
    listing = _listing(kept, names, reasons, kept.extra_columns)
    return Ranked(listing, kept.scores, reasons, 0, kept.n, kept.said)


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
        return StayRows(_carried_name(0), EarlierList.read(before, name), noise)


def _beside(rows: pa.Table, carried: pa.Table | None) -> pa.Table:
    """A table with the carried columns too, under names that no column has."""
    for place, column in enumerate(carried.columns if carried is not None else ()):
        rows = rows.append_column(_carried_name(place), column)
    return rows


def _carried_name(place: int) -> str:
    return f"\0carried {place}"


def _rows_to_keep(source: Source, k: int | float) -> int | None:
    """How many rows to keep, None for all; a share needs to know how many there are."""
    if isinstance(k, int):
        return k
    return None if k == 1 else max(1, math.ceil(k * source.count_rows()))


def _find_reasons(model: TableModel, rows: pa.Table, n: int, step: Step) -> list[list[Reason]]:
    from toprank.models import ModelWarning

    total = rows.num_rows
    found: list[list[Reason]] = []
    for start in range(0, total if n else 0, _AT_A_TIME):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
            found += model.reasons(rows.slice(start, _AT_A_TIME), n)
        step("Finding the reasons", len(found), total)
    return found


def _listing(
    kept: RunningTop | LimitedTop | HeldTop,
    names: list[str],
    reasons: list[list[Reason]],
    more: Mapping[str, AnyArray] | None = None,
) -> pa.Table:
    from toprank.models.top_of_list import id_name

    columns: dict[str, AnyArray | pa.ChunkedArray | list[str]] = {
        id_name(name): kept.rows.column(_carried_name(place)) for place, name in enumerate(names)
    }
    if not columns:
        columns["row"] = kept.places + 1
    columns["score"] = kept.scores
    columns["rank"] = kept.ranks
    if reasons:
        columns["reasons"] = ["; ".join(map(str, one)) for one in reasons]
    last = {"tied_at_the_cut": kept.tied} if more is None else more
    return require("pyarrow", "frames").table({**columns, **last})


def records(found: Ranked) -> list[JsonObject]:
    """The list as plain values; a reason is its column, the value there and what it adds."""
    rows = found.listing.to_pylist()
    for row, reasons in zip(rows, found.reasons, strict=False):
        row["reasons"] = [one._asdict() for one in reasons]
    return rows


def show_listing(rows: pa.Table) -> None:
    """Print the list as a table."""
    names = rows.schema.names
    kinds = require("pyarrow", "frames").types
    texts = [field.name for field in rows.schema if not kinds.is_floating(field.type)]
    drawn = table(names, left=[name for name in texts if name != "rank"])
    for row in iterate_rows(rows):
        shown = (short_number(value) if name not in texts else value for name, value in row.items())
        drawn.add_row(*cells(*("" if value is None else value for value in shown)))
    console().print(drawn)
