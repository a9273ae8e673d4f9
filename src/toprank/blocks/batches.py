"""Rows that something else reads, pass after pass: a query, a CSV file in pieces, any reader.

A pass is opened anew by a function of the user's and hands over tables of any size; they are cut
to blocks of one size, so that the answer does not depend on how a database fills its buffers.
Every pass must bring the same rows in the same order: their number and their labels are checked.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._arrays import Frame
from toprank._extras import require
from toprank._files import path_on_disk, replace_file
from toprank._numerics import FloatArray
from toprank.blocks.columns import (
    Columns,
    TableColumns,
    batch_column,
    check_block_rows,
    rows_per_block,
)
from toprank.blocks.source import Block, LocalSource

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that a database hands over at once.
_FETCHED = 1 << 16


class BatchSource(LocalSource):
    """Tables that a function hands over at every pass, cut to blocks of one size."""

    reads_anew = True

    def __init__(
        self,
        open_pass: Callable[[], Iterable[Frame]],
        columns: TableColumns,
        what: str,
        block_rows: int | None,
        n_jobs: int | None,
    ):
        self.open_pass = open_pass
        self.columns = columns
        self.what = what
        self.n_jobs = n_jobs
        self.grouped = columns.group is not None
        self.n_features = len(columns.features)
        self.feature_names = np.array(columns.features, dtype=object)
        self.block_rows = block_rows or rows_per_block(self.n_features)
        #: Rows and checksum of the labels of the first pass that came to its end.
        self._seen: tuple[int, bytes] | None = None

    def name_of(self, index: int) -> str:
        return f"{self.what}, rows from number {index * self.block_rows} on"

    def read(self, *, features: bool = True) -> Generator[Block, None, None]:
        names = self.columns.names(features)
        rows, index, labels = 0, 0, hashlib.blake2b()
        for index, table in enumerate(self._tables(names), 1):
            block = self._block(index - 1, table, features)
            rows += block.n_rows
            if block.y is not None:
                held = block.y.astype(str) if block.y.dtype == object else block.y
                labels.update(np.ascontiguousarray(held).tobytes())
            yield block
        self._check_pass(rows, labels.digest())
        if index == 0:
            yield self._empty()

    def _empty(self) -> Block:
        empty = np.empty((0, self.n_features), dtype=self.columns.dtype)
        none = np.empty(0)
        weight, groups = (
            None if name is None else none for name in (self.columns.weight, self.columns.group)
        )
        return Block(0, empty, none, weight, groups)

    def _tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Tables of ``block_rows`` rows, the last one shorter."""
        arrow = require("pyarrow", "frames")
        waiting: list[pa.Table] = []
        for batch in self.open_pass():
            table = self.columns.take(as_table(batch), names, self.what)
            if table.num_rows:
                waiting.append(table)
            while sum(part.num_rows for part in waiting) >= self.block_rows:
                whole = arrow.concat_tables(waiting)
                yield whole.slice(0, self.block_rows)
                rest = whole.slice(self.block_rows)
                waiting = [rest] if rest.num_rows else []
        if waiting:
            yield arrow.concat_tables(waiting)

    def _block(self, index: int, table: Frame, features: bool) -> Block:
        where = self.name_of(index)
        (batch,) = table.combine_chunks().to_batches()
        names = self.columns.features if features else ()
        X = Columns(
            [batch_column(batch, name, where, self.columns.nulls) for name in names],
            batch.num_rows,
            self.columns.dtype,
        )
        named = (self.columns.target, self.columns.weight, self.columns.group)
        y, weight, groups = (
            None if name is None else batch_column(batch, name, where) for name in named
        )
        return Block(index, X, y, weight, groups)

    def _check_pass(self, rows: int, labels: bytes) -> None:
        seen = self._seen
        if seen is None:
            self._seen = rows, labels
        elif seen != (rows, labels):
            other = (
                f"{rows} rows where an earlier one brought {seen[0]}"
                if rows != seen[0]
                else "the same number of rows with other labels, or in another order"
            )
            raise RuntimeError(
                f"{self.what}: a pass brought {other}. Every pass must bring the same rows in the "
                "same order: add ORDER BY to a query, and read a table that nobody writes to."
            )

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> FloatArray | Path:
        """Return the scores as an array; with ``to``, write them to that Parquet file instead."""
        if to is None:
            with closing(self.map(lambda block: score(block.X))) as parts:
                return np.concatenate([np.asarray(part) for part in parts])
        path = path_on_disk(to, "to")
        if path.suffix != ".parquet":
            raise ValueError(f"to={str(to)!r}: expected the name of a .parquet file.")
        arrow, parquet = require("pyarrow", "frames"), require("pyarrow.parquet", "frames")
        schema = arrow.schema([("score", arrow.float64())])
        with (
            replace_file(path) as file,
            parquet.ParquetWriter(file, schema) as writer,
            closing(self.map(lambda block: score(block.X))) as parts,
        ):
            for scores in parts:
                writer.write_batch(arrow.record_batch([arrow.array(scores)], schema=schema))
        return path


def as_table(batch: object) -> pa.Table:
    """Return a batch, a data frame or anything that speaks Arrow as a table of pyarrow."""
    arrow = require("pyarrow", "frames")
    if isinstance(batch, arrow.Table):
        return batch
    if isinstance(batch, arrow.RecordBatch):
        return arrow.Table.from_batches([batch])
    if type(batch).__module__.partition(".")[0] == "pandas":
        return arrow.Table.from_pandas(batch, preserve_index=False)
    if hasattr(batch, "__arrow_c_stream__"):
        return arrow.table(batch)
    if hasattr(batch, "to_arrow"):
        return batch.to_arrow()
    raise TypeError(
        f"A pass brought a {type(batch).__name__}; expected tables or record batches of pyarrow, "
        "data frames of pandas or polars, or whatever else hands over Arrow data."
    )


def from_batches(
    open_pass: Callable[[], Iterable[Frame]],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    nulls: str = "refuse",
    block_rows: int | None = None,
    n_jobs: int | None = None,
    what: str = "the batches",
) -> BatchSource:
    """Rows that a function of yours reads anew at every pass, whatever it reads them from.

    For tables that no other function here reads: Arrow's IPC files, Delta and Iceberg tables by
    their own readers, datasets of Ray, a generator of your own.

    Parameters
    ----------
    open_pass : callable
        Takes nothing and returns an iterable of tables: record batches or tables of pyarrow, data
        frames of pandas or polars. It is called once for every pass, and must bring the same rows
        in the same order each time.
    target, columns, weight, group, nulls, block_rows, n_jobs
        As in `from_parquet`.
    what : str
        What messages call the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> table = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(malignant=y)
    >>> def in_pieces():
    ...     for first in range(0, len(table), 100):
    ...         yield table[first : first + 100]
    >>> source = blocks.from_batches(in_pieces, target="malignant")
    >>> PNormPush(p=4).fit_blocks(source).n_features_in_
    30
    """
    if not callable(open_pass):
        raise TypeError(
            f"open_pass is a {type(open_pass).__name__}; expected a function that starts a new "
            "pass, since a fit reads the rows several times: lambda: reader_of(file), not the "
            "reader itself."
        )
    check_block_rows(block_rows)
    require("pyarrow", "frames")
    begun = iter(open_pass())
    first = next(begun, None)
    if hasattr(begun, "close"):
        begun.close()  # a file or a connection is not to stay open until it is forgotten
    if first is None:
        raise ValueError(f"{what}: a pass brought no rows, and no names of columns either.")
    schema = as_table(first).schema
    chosen = TableColumns.choose(what, schema, target, columns, weight, group, nulls)
    return BatchSource(open_pass, chosen, what, block_rows, n_jobs)


def from_query(
    query: str,
    connect: Callable[[], object],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    block_rows: int | None = None,
    n_jobs: int | None = None,
) -> BatchSource:
    """Rows of a database: DuckDB, SQLite, or any other with a Python connection (PEP 249).

    Parameters
    ----------
    query : str
        A SELECT. End it with ORDER BY where the database does not promise an order.
    connect : callable
        Takes nothing and returns a new connection, which is closed after the pass: every pass,
        and the thread it runs in, has its own.
    target, columns, weight, group, block_rows, n_jobs
        As in `from_parquet`.

    Examples
    --------
    >>> import sqlite3, tempfile
    >>> from toprank import PNormPush, blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     def connect():
    ...         return sqlite3.connect(f"{folder}/leads.db")
    ...     con = connect()
    ...     _ = con.execute("create table leads (age real, visits real, bought integer)")
    ...     rows = [(20 + 7 * i % 50, i % 9, int(i % 9 > 5 or i % 7 == 0)) for i in range(300)]
    ...     _ = con.executemany("insert into leads values (?, ?, ?)", rows)
    ...     con.commit(); con.close()
    ...     source = blocks.from_query("select * from leads order by rowid", connect, "bought")
    ...     ranker = PNormPush(p=4).fit_blocks(source)
    >>> ranker.feature_names_in_.tolist()
    ['age', 'visits']
    """
    if not callable(connect) or hasattr(connect, "cursor"):  # SQLite's connections are callable
        raise TypeError(
            f"connect is a {type(connect).__name__}; expected a function that opens a connection, "
            "such as lambda: sqlite3.connect('leads.db'): every pass opens its own."
        )
    return from_batches(
        lambda: _fetch(query, connect),
        target,
        columns=columns,
        weight=weight,
        group=group,
        block_rows=block_rows,
        n_jobs=n_jobs,
        what="the query",
    )


def _fetch(query: str, connect: Callable[[], Any]) -> Iterator[pa.RecordBatch]:
    arrow = require("pyarrow", "frames")
    with closing(connect()) as connection:
        if hasattr(connection, "sql"):  # DuckDB: no number becomes a Python object
            answer = connection.sql(query)
            if hasattr(answer, "to_arrow_reader"):
                yield from answer.to_arrow_reader(_FETCHED)
                return
        cursor = connection.cursor()
        asked = cursor.execute(query)
        for reader in (asked, cursor):
            if hasattr(reader, "fetch_record_batch"):  # DuckDB before 2.0
                yield from reader.fetch_record_batch(_FETCHED)
                return
        names = [column[0] for column in cursor.description]
        types: list[pa.DataType | None] = [None] * len(names)
        while rows := cursor.fetchmany(_FETCHED):
            arrays = []
            for number, values in enumerate(zip(*rows, strict=True)):
                array = arrow.array(values, types[number])
                if types[number] is None and arrow.types.is_integer(array.type):
                    # whole numbers may turn into fractions further down
                    array = array.cast(arrow.float64())
                types[number] = array.type
                arrays.append(array)
            yield arrow.table(arrays, names)


def from_csv(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    block_rows: int | None = None,
    n_jobs: int | None = None,
) -> BatchSource:
    r"""Rows of a CSV file of any size, parsed anew at every pass.

    A pass over text takes many times a pass over Parquet: write the rows to Parquet where that can
    be done.

    Parameters
    ----------
    path : str or path
        A file, .gz, .bz2 and .zst included, with a line of names.
    target, columns, weight, group, block_rows, n_jobs
        As in `from_parquet`. Features become float64.
    delimiter, decimal : str
        Between fields, and in numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from toprank import PNormPush, blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "leads.csv"
    ...     lines = [f"{i % 9},{i % 5},{int(i % 9 > 5)}" for i in range(90)]
    ...     _ = file.write_text("visits,age,bought\n" + "\n".join(lines))
    ...     ranker = PNormPush(p=4).fit_blocks(blocks.from_csv(file, "bought"))
    >>> ranker.feature_names_in_.tolist()
    ['visits', 'age']
    """
    arrow, csv = require("pyarrow", "frames"), require("pyarrow.csv", "frames")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}.")
    parsed = csv.ParseOptions(delimiter=delimiter)

    def read(types: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
        options = csv.ConvertOptions(decimal_point=decimal, column_types=types)
        try:
            with csv.open_csv(file, parse_options=parsed, convert_options=options) as reader:
                yield from reader
        except arrow.ArrowInvalid as error:
            raise ValueError(
                f"{file} cannot be read: {error}. Check the delimiter and the decimal sign; "
                "features must be numbers in every row."
            ) from error

    first = next(read({}), None)
    if first is None:
        raise ValueError(f"{file} has no rows.")
    # the first piece may hold whole numbers where a later one has fractions
    types = {
        field.name: arrow.float64()
        for field in first.schema
        if arrow.types.is_integer(field.type) and field.name not in (target, weight, group)
    }
    return from_batches(
        lambda: read(types),
        target,
        columns=columns,
        weight=weight,
        group=group,
        block_rows=block_rows,
        n_jobs=n_jobs,
        what=str(file),
    )
