"""Scores of a table of any length: rows are read, scored and let go, some at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.cli.failures import Failure
from toprank.cli.source import Source
from toprank.cli.tables import check_exists
from toprank.cli.terminal import Step, note, safe
from toprank.models import ModelWarning, TableModel, frames, kinds, load

_SAID = 20


def load_model(path: Path) -> TableModel:
    """The model in a file; Failure if there is none."""
    check_exists(path)
    return load(path)


@dataclass(frozen=True)
class Scored:
    """Some rows and their scores."""

    rows: Any
    scores: FloatArray


def scored(
    model: TableModel, source: Source, step: Step, also: Sequence[str] = ()
) -> Iterator[Scored]:
    """Read a table and score it, some rows at a time.

    Parameters
    ----------
    model : TableModel
    source : Source
    step : callable
        Told how far the reading is.
    also : sequence of str
        Columns that are wanted besides those that the model reads.
    """
    absent = [c for c in model.schema.columns if c.name not in source.columns]
    _refuse([f"column '{c.name}' ({c.kind}) is missing" for c in absent], source)
    there = [name for name in (*also, *model.schema.names) if name in source.columns]
    told = source.quiet
    for chunk in source.chunks(list(dict.fromkeys(there)), _types(model, also)):
        if not chunk.start:
            _refuse(model.check(chunk.rows).problems, source)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ModelWarning)
            scores = model.score(chunk.rows)
        if caught and not told:  # once, not for every chunk
            note(f"{source.name}: {caught[0].message}", source.quiet)
            told = True
        step("Ranking", chunk.done, chunk.total)
        yield Scored(chunk.rows, scores)


def _refuse(problems: Sequence[str], source: Source) -> None:
    """Say, column by column, why a table cannot be ranked."""
    if problems:
        more = [f"and {len(problems) - _SAID} more"] if len(problems) > _SAID else []
        # a name with a line break must not look like another line
        lines = "\n".join([*map(safe, problems[:_SAID]), *more])
        raise Failure(f"{source.name} does not match the model:\n{lines}")


def _types(model: TableModel, also: Sequence[str]) -> dict[str, Any]:
    """Types for columns of text: a guess from the first rows could fail further down.

    Columns that are only carried along stay as they are written. Only dates that Arrow reads are
    left to it, with or without a zone.
    """
    pyarrow = require("pyarrow", "frames")
    types = dict.fromkeys(also, pyarrow.string())
    for column in model.schema.columns:
        if column.kind == "number":
            types[column.name] = pyarrow.float64()
        elif column.kind != "date" or column.date_format is not None:
            types[column.name] = pyarrow.string()
    return types


@dataclass(frozen=True)
class Labelled:
    """The scores of a table, and what is known of its rows."""

    scores: FloatArray
    positive: NDArray[np.bool_]
    weight: FloatArray | None
    groups: Any
    first: Any

    @property
    def known(self) -> dict[str, Any]:
        """What the functions of `toprank.inference` are told of the rows."""
        return {"sample_weight": self.weight, "groups": self.groups}


def labelled(model: TableModel, source: Source, step: Step) -> Labelled:
    """Score a table whose rows all have labels; weight and groups are those of the training."""
    schema = model.schema
    source.check_columns({schema.target: "the target of the model"})
    weight, groups = (_if_there(name, source) for name in (schema.weight, schema.groups))
    # as in training, the type of a column of text is that of all its rows
    known = source.read([schema.target, *filter(None, (weight, groups))])
    scores, first = [], None
    for part in scored(model, source, step):
        first = part.rows.slice(0, 1) if first is None else first
        scores.append(part.scores)
    return Labelled(
        np.concatenate(scores),
        model.labels(known),
        None if weight is None else kinds.as_numbers(frames.column(known, weight)),
        None if groups is None else kinds.as_words(frames.column(known, groups)).astype(str),
        first,
    )


def _if_there(name: str | None, source: Source) -> str | None:
    return name if name in source.columns else None
