"""Scores of a table of any length: rows are read and scored some at a time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.cli import terminal
from toprank.cli.io.source import Chunk, Reading, Source
from toprank.cli.io.tables import check_exists
from toprank.cli.memory import PER_SCORED_ROW, place_in_blocks, read_within
from toprank.cli.terminal import Failure, Step, note, safe
from toprank.models import ModelError, ModelWarning, TableModel, frames, load
from toprank.models.sketch import SeenRows

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client
    from pyspark.sql import SparkSession

    from toprank._arrays import BoolArray
    from toprank.models.block_rows import Sampling
    from toprank.models.rows import ScoredRows

#: Columns that a refusal names at most.
_MOST_NAMED = 20
#: Rows in memory that are scored at once.
_ROWS_AT_ONCE = 100_000
#: Endings of tables: a file with one of them in the place of a model is in the wrong place.
_TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".feather", ".arrow")


def load_model(path: Path) -> TableModel:
    """The model in a file; Failure if there is none."""
    check_exists(path)
    try:
        return load(path)
    except ModelError as error:
        if path.suffix.lower() not in _TABLES:
            raise
        raise Failure(
            f"'{path}' is no model: name first the model that 'toprank fit' wrote, then the table."
        ) from error


def import_skops() -> None:
    """Import skops without its walk through all of scikit-learn, and through torch by the way.

    The walk lists types that skops trusts by default. Models are written with it and read by a list
    of our own, so the command line can do without; in a process that others share skops is left as
    it is.
    """
    if not terminal.OWN_PROCESS or "skops.io" in sys.modules:
        return
    import sklearn.utils

    walk = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = lambda *_, **__: []
    try:
        require("skops.io", "models")
    finally:
        sklearn.utils.all_estimators = walk


def load_by_name(paths: Sequence[Path]) -> dict[str, TableModel]:
    """The models by the names of their files, or by the paths where those are the same."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise Failure("the same model is named twice; name different files.")
    return {name: load_model(path) for name, path in zip(names, paths, strict=True)}


def score_table(
    model: TableModel, source: Source, step: Step
) -> Iterator[tuple[pa.Table, FloatArray]]:
    """Read a table and score it; yield some rows at a time, and their scores."""
    for chunk, scores in score_chunks(model, source, step):
        yield chunk.rows, scores


def score_chunks(
    model: TableModel, source: Source, step: Step, carried: Sequence[str] = ()
) -> Iterator[tuple[Chunk, FloatArray]]:
    """Read a table and score it; yield some rows at a time, and their scores.

    Parameters
    ----------
    model : TableModel
    source : Source
    step : callable
        Called with how far the reading is.
    carried : sequence of str
        Columns that are wanted as the file has them.
    """
    _require_columns(model, source)
    warned = source.quiet
    for chunk in source.chunks(model.schema.names, _column_types(model), carried):
        if not chunk.start:
            _refuse_table(model.check(chunk.rows).problems, source)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ModelWarning)
            scores = model.score(chunk.rows)
        if caught and not warned:  # once, not for every chunk
            note(f"{source.name}: {caught[0].message}", source.quiet)
            warned = True
        step("Ranking", chunk.done, chunk.total)
        yield chunk, scores


def _require_columns(model: TableModel, source: Source) -> None:
    """Refuse a table that lacks a column of the model, read as its training table was."""
    source.remember(Reading.remembered(model.card))
    absent = [c for c in model.schema.columns if c.name not in source.columns]
    _refuse_table([f"column '{c.name}' ({c.kind}) is missing" for c in absent], source)


def _refuse_table(problems: Sequence[str], source: Source) -> None:
    """Say, column by column, why a table cannot be ranked."""
    if problems:
        more = [f"and {len(problems) - _MOST_NAMED} more"] if len(problems) > _MOST_NAMED else []
        # a name with a line break must not look like another line
        lines = "\n".join([*map(safe, problems[:_MOST_NAMED]), *more])
        raise Failure(f"{source.name} does not match the model:\n{lines}")


def _column_types(model: TableModel) -> dict[str, pa.DataType]:
    """Types for columns of text: a guess from the first rows could fail further down.

    Only dates that Arrow reads are left to it, with or without a zone.
    """
    pyarrow = require("pyarrow", "frames")
    types: dict[str, pa.DataType] = {}
    for column in model.schema.columns:
        if column.kind == "number" and column.decimal is None:
            types[column.name] = pyarrow.float64()
        elif column.kind != "date" or column.date_format is not None:
            types[column.name] = pyarrow.string()
    return types


def text_types(models: Iterable[TableModel]) -> dict[str, pa.DataType]:
    """Types for the columns that some model reads as text: a zip code keeps its zeros."""
    string = require("pyarrow", "frames").string()
    return {
        name: kind
        for model in models
        for name, kind in _column_types(model).items()
        if kind == string
    }


def score_sample(
    model: TableModel, source: Source, memory: str | None, cluster: str
) -> tuple[pa.Table, str]:
    """Rows of a table that the workers of a cluster read, and what is said where they are some.

    The columns are those that the model reads, and that of the labels where the table has it.
    """
    _require_columns(model, source)
    labels = [name for name in [model.target.column] if name in source.columns]
    names = list(dict.fromkeys([*model.schema.names, *labels]))
    rows, said = read_within(source, names, memory, "looked at", cluster)
    _refuse_table(model.check(rows).problems, source)
    return rows, said


def score_rows(
    model: TableModel, rows: pa.Table, step: Step
) -> Iterator[tuple[pa.Table, FloatArray]]:
    """Score rows in memory, some at a time."""
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # the check of all rows has said it
            yield part, model.score(part)
        step("Ranking", start + part.num_rows, rows.num_rows)


@dataclass(frozen=True)
class LabelledScores:
    """A table that was scored: its rows, its first row as it is, and what to say of it.

    `sampled` says how many of the rows were taken, where they are not all; `unlabelled` which rows
    have no label, where some have none.
    """

    rows: ScoredRows
    first: pa.Table
    seen: str
    sampled: str = ""
    unlabelled: BoolArray | None = None


def score_labelled_table(
    model: TableModel,
    source: Source,
    step: Step,
    target: str | None = None,
    memory: int | None = None,
    unlabelled: str | None = None,
) -> LabelledScores:
    """Score a table whose rows all have labels, in the column of the training or the one named.

    Rows whose label is `unlabelled`, or missing where that says so, have none.

    Weight and groups are those of the training, where the table has them. Of more rows than
    `memory`, in bytes, allows a sample is kept; without it all are.
    """
    # a list needs no metrics, and does not wait for them
    from toprank.models.rows import ScoredRows, read_groups, read_weight

    roles = find_roles(model, source, target)
    names = list(dict.fromkeys(filter(None, roles)))
    streams = source.place is not None  # the types of its columns are those of the file
    sampling, total = _sampling_of(source, roles[2], memory)
    parts, scores, first, seen = [], [], None, SeenRows(model)
    carried = names if streams else []
    for chunk, of_rows in score_chunks(model, source, step, carried):
        first = chunk.rows.slice(0, 1) if first is None else first
        seen.add(chunk.rows)
        if streams:
            drawn = sampling.rows(chunk.carried, chunk.start)
            parts.append(chunk.carried.take(drawn))
            of_rows = of_rows[drawn]
        scores.append(of_rows)
    if streams:
        known = require("pyarrow", "frames").concat_tables(parts, promote_options="permissive")
    else:
        # as in training, the type of a column of text is that of all its rows
        known = source.read(names)
    labels, weight, groups = roles
    open_rows = None
    if unlabelled is not None:
        from toprank.models.unlabelled import mark_unlabelled, read_unlabelled

        known, _ = mark_unlabelled(known, labels, unlabelled, model.target.positive)
        open_rows = read_unlabelled(known, labels)
    positive = model.target.of(frames.column(known, labels))
    described = (positive, read_weight(known, weight), read_groups(known, groups))
    scored = ScoredRows(None, *described, scores=np.concatenate(scores))
    sampled = ""
    if sampling.share < 1:
        sampled = (
            f"Measured on a sample of {len(scored)} of the {total} rows, which is what --memory "
            "allows."
        )
    return LabelledScores(scored, first, seen.note, sampled, open_rows)


def find_roles(
    model: TableModel, source: Source, target: str | None
) -> tuple[str, str | None, str | None]:
    """The columns of labels, weights and groups of a table; refused where there are no labels."""
    source.remember(Reading.remembered(model.card))
    labels = model.schema.target if target is None else target
    source.check_columns({labels: "the target of the model" if target is None else "--target"})
    weight, groups = (
        _name_if_present(name, source) for name in (model.schema.weight, model.schema.groups)
    )
    return labels, weight, groups


def _sampling_of(source: Source, groups: str | None, memory: int | None) -> tuple[Sampling, int]:
    """Which rows are kept within the memory, of how many."""
    from toprank.models.block_rows import Sampling

    if source.place is None or memory is None:
        return Sampling(1.0), 0
    total = source.count_rows()
    share = memory / (PER_SCORED_ROW * max(1, total))
    return Sampling(min(1.0, share), groups=groups), total


def score_labelled_blocks(
    model: TableModel, source: Source, cluster: Client | SparkSession
) -> LabelledScores:
    """As `score_labelled_table`, on the workers of a cluster; every score comes back."""
    from toprank.blocks import from_tables
    from toprank.models.block_scores import score_blocks

    roles = find_roles(model, source, None)
    columns = list(dict.fromkeys([*model.schema.names, *filter(None, roles)]))
    rows, seen = score_blocks(
        model, from_tables(place_in_blocks(source), columns=columns, cluster=cluster), *roles
    )
    chunk = next(source.chunks(model.schema.names, {}))
    return LabelledScores(rows, chunk.rows.slice(0, 1), seen.note)


def _name_if_present(name: str | None, source: Source) -> str | None:
    return name if name in source.columns else None
