"""The first rows of a table with their reasons, read some rows at a time or held all at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.cli.clusters import open_cluster
from toprank.cli.io.source import Reading, Source
from toprank.cli.limits import ListLimits
from toprank.cli.memory import place_in_blocks
from toprank.cli.sure import SureTop
from toprank.cli.terminal import Step

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import AnyArray, JsonObject
    from toprank._numerics import FloatArray
    from toprank.cli.limited_rows import HeldTop, StayRows
    from toprank.models import Reason, TableModel
    from toprank.models.limited_top import LimitedTop
    from toprank.models.top_of_list import RunningTop


_AT_A_TIME = 10_000  # rows whose reasons are worked out together


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
    kept += [(name, carried_name(number)) for number, name in enumerate(names)]
    with open_cluster(cluster) as where:
        rows = from_tables(place, columns=wanted, cluster=where)
        return top_of_blocks(model, rows, k, kept)


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


def _beside(rows: pa.Table, carried: pa.Table | None) -> pa.Table:
    """A table with the carried columns too, under names that no column has."""
    for place, column in enumerate(carried.columns if carried is not None else ()):
        rows = rows.append_column(carried_name(place), column)
    return rows


def carried_name(place: int) -> str:
    """A name that no column of a table has, for the one carried along at this place."""
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
        id_name(name): kept.rows.column(carried_name(place)) for place, name in enumerate(names)
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
