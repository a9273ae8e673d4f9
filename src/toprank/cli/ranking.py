"""The work behind `toprank rank`: the first rows of a table, read some rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.cli.running_top import RunningTop
from toprank.cli.scoring import scored
from toprank.cli.source import Source
from toprank.cli.terminal import Step
from toprank.models import ModelWarning, Reason, TableModel

_OURS = ("score", "rank", "reasons", "tied_at_the_cut")
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
    """

    listing: Any
    scores: FloatArray
    reasons: list[list[Reason]]
    tied_out: int
    n: int


def top_of(
    model: TableModel,
    source: Source,
    k: int | float,
    carried: Sequence[str],
    n_reasons: int,
    step: Step,
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
        Told how far the reading is.
    """
    source.check_columns(dict.fromkeys(carried, "--id"))
    ids = [model.schema.id] if model.schema.id in source.columns else []
    names = list(dict.fromkeys([*ids, *carried]))
    needed = list(dict.fromkeys([*names, *(model.schema.names if n_reasons else ())]))
    kept = RunningTop(_count(source, k))
    for part in scored(model, source, step, names):
        kept.add(part.scores, part.rows.select(needed or model.schema.names[:1]))
    kept.settle()
    reasons = _reasons(model, kept.rows, n_reasons, step)
    return Ranked(_listing(kept, names, reasons), kept.scores, reasons, kept.tied_out, kept.n)


def _count(source: Source, k: int | float) -> int | None:
    """How many rows to keep, None for all; a share needs to know how many there are."""
    if isinstance(k, int):
        return k
    return None if k == 1 else max(1, int(np.ceil(k * source.count_rows())))


def _reasons(model: TableModel, rows: Any, n: int, step: Step) -> list[list[Reason]]:
    total = rows.num_rows
    found: list[list[Reason]] = []
    for start in range(0, total if n else 0, _AT_A_TIME):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # said when the rows were scored
            found += model.reasons(rows.slice(start, _AT_A_TIME), n)
        step("Finding the reasons", len(found), total)
    return found


def _listing(kept: RunningTop, names: list[str], reasons: list[list[Reason]]) -> Any:
    columns = {
        (f"{name} (id)" if name in _OURS else name): kept.rows.column(name) for name in names
    }
    if not columns:
        columns["row"] = kept.places + 1
    columns["score"] = kept.scores
    columns["rank"] = np.arange(1, len(kept.scores) + 1)
    if reasons:
        columns["reasons"] = ["; ".join(map(str, one)) for one in reasons]
    tied = (kept.scores == kept.cut) & (kept.tied_out > 0)
    return require("pyarrow", "frames").table({**columns, "tied_at_the_cut": tied})


def records(found: Ranked) -> list[dict[str, Any]]:
    """The list as plain values; a reason is its column, the value there and what it adds."""
    rows = found.listing.to_pylist()
    for row, reasons in zip(rows, found.reasons, strict=False):
        row["reasons"] = [one._asdict() for one in reasons]
    return rows
