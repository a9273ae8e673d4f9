"""Tables of columns of any kind in blocks of rows: Parquet files, or whatever hands over tables.

Rankers take numbers, and their sources refuse words and dates. Here a block holds an Arrow table as
the files have it. `toprank.models.fit_table_blocks` describes such a table in passes, learns how
its columns become numbers, and has these written once, to be swept over like any other matrix.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import Frame
from toprank._extras import require
from toprank._files import Stamp
from toprank._numerics import FloatArray
from toprank.blocks.batches import BatchSource, as_table
from toprank.blocks.columns import TableColumns
from toprank.blocks.memory import ArraySource
from toprank.blocks.parquet import ParquetSource
from toprank.blocks.parquet_files import ParquetPart
from toprank.blocks.source import Block, BlockSource, LocalSource, Partial, State, Sweep

if TYPE_CHECKING:
    import pyarrow as pa

#: From a table to its numbers, which rows are positive, and their weights; picklable.
Prepare: TypeAlias = "Callable[[pa.Table], tuple[FloatArray, NDArray[np.bool_], FloatArray | None]]"


class TableSource(Protocol):
    """Tables in blocks: a `BlockSource` whose X are Arrow tables, and which can write numbers."""

    names: list[str]

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        """Merge ``sweep.local(block, state)`` over all blocks, in their order."""
        ...

    def numbers(
        self, prepare: Prepare, n_rows: int, n_features: int
    ) -> AbstractContextManager[BlockSource]:
        """Prepare every block once, and return the source of the numbers; gone at the end."""
        ...


class MappedRows(ArraySource):
    """A matrix in a file that is let go of, block by block: it takes disk, not memory."""

    origin: LocalSource | None = None  #: what its numbers were made of

    def identity(self) -> bytes:
        return b"" if self.origin is None else self.origin.identity()

    def _check_files_first(
        self, function: Callable[[Block], Partial]
    ) -> Callable[[Block], Partial]:
        checked = super()._check_files_first(function)
        held = getattr(self._arrays[0], "_mmap", None)
        if held is None or not hasattr(mmap, "MADV_DONTNEED"):
            return checked

        def call_then_release(block: Block) -> Partial:
            try:
                return checked(block)
            finally:
                held.madvise(mmap.MADV_DONTNEED)  # the pages are read again when they are needed

        return call_then_release


class LocalTables(LocalSource):
    """Tables that this process reads; a base of those from files and from batches."""

    names: list[str]

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> FloatArray:
        """Return the scores as an array; ``score`` takes an Arrow table."""
        return np.concatenate([np.asarray(part) for part in self.map(lambda b: score(b.X))])

    @contextmanager
    def numbers(self, prepare: Prepare, n_rows: int, n_features: int) -> Iterator[BlockSource]:
        """Write the numbers of every block to a file, and return its rows as a source."""
        _check_disk(8 * n_rows * n_features)
        with tempfile.TemporaryDirectory(prefix="toprank-") as folder:
            path = Path(folder) / "numbers.npy"
            positive = np.empty(n_rows, dtype=bool)
            weight: FloatArray | None = None
            header = {"descr": "<f8", "fortran_order": False, "shape": (n_rows, n_features)}
            at = 0
            with path.open("wb") as file:
                np.lib.format.write_array_header_1_0(file, header)
                for Z, y, w in self.map(lambda block: prepare(block.X)):
                    if at + len(y) > n_rows:  # fewer rows are seen by the source itself
                        raise RuntimeError(
                            f"A pass brought more rows than the {n_rows} of an earlier one: every "
                            "pass must bring the same rows in the same order."
                        )
                    file.write(np.ascontiguousarray(Z, dtype="<f8").tobytes())
                    positive[at : at + len(y)] = y
                    if w is not None:
                        weight = np.empty(n_rows) if weight is None else weight
                        weight[at : at + len(y)] = w
                    at += len(y)
            X = np.lib.format.open_memmap(path, mode="r")
            source = MappedRows(X, positive, weight, None, self.n_jobs, checked=True)
            source.origin = self
            source.stamps = [Stamp.of(path)]
            yield source


def _check_disk(size: int) -> None:
    """Raise OSError with the ways out where the disk has no room for so many bytes."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"The numbers of the table take {size / 1e9:.1f} GB, and '{folder}' has "
            f"{free / 1e9:.1f} GB left. Name another folder in the environment variable TMPDIR, "
            "leave columns out, or fit on a cluster."
        )


class ParquetTables(ParquetSource, LocalTables):
    """Row groups of Parquet files as Arrow tables, whatever their columns hold."""

    def __init__(
        self,
        parts: Sequence[ParquetPart],
        schema: pa.Schema,
        names: Sequence[str],
        block_rows: int | None = None,
        n_jobs: int | None = None,
    ):
        types = {name: schema.field(name).type for name in names}
        columns = TableColumns(tuple(names), None, None, np.dtype(np.float64), types)
        super().__init__(parts, columns, block_rows, n_jobs)
        self.names = list(names)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The row groups that have rows: (number of the file, number of the group)."""
        return [
            (file, group)
            for file, part in enumerate(self.parts)
            for group, rows in enumerate(part.row_groups)
            if rows
        ]

    def read_group(self, file: int, group: int) -> pa.Table:
        """Return one row group as a table."""
        arrow = require("pyarrow", "frames")
        part = self.parts[file]
        stored = [name for name in self.names if name not in part.keys]
        with part.open_pass() as opened:
            batches = opened.read_row_group(group, columns=stored).combine_chunks().to_batches()
        for batch in batches:
            batch.validate(full=True)
        whole = [part.add_keys(batch, self.names) for batch in batches]
        return self._table(arrow.Table.from_batches(whole), f"{part.path}, row group {group}")

    def _block(self, index: int, batch: object, features: bool, where: str) -> Block:
        arrow = require("pyarrow", "frames")
        return Block(index, self._table(arrow.Table.from_batches([batch]), where))

    def _table(self, table: object, where: str) -> Frame:
        return with_times(self.columns.take(table, self.names, where))

    def _empty(self) -> Block:
        return _without_rows(self.columns)

    write_scores = LocalTables.write_scores  # type: ignore[assignment]


class BatchTables(BatchSource, LocalTables):
    """Tables that a function hands over at every pass, as Arrow tables of one size."""

    def __init__(
        self, open_pass: Callable[[], Iterable[object]], what: str, block_rows: int | None = None
    ):
        begun = iter(open_pass())
        first = next(begun, None)
        if hasattr(begun, "close"):
            begun.close()
        if first is None:
            raise ValueError(f"{what}: a pass brought no rows, and no names of columns either.")
        schema = as_table(first).schema
        types = {name: schema.field(name).type for name in schema.names}
        columns = TableColumns(tuple(schema.names), None, None, np.dtype(np.float64), types)
        super().__init__(open_pass, columns, what, block_rows, None)
        self.names = list(schema.names)

    def _block(self, index: int, table: object, features: bool) -> Block:
        return Block(index, with_times(table))

    def _empty(self) -> Block:
        return _without_rows(self.columns)

    write_scores = LocalTables.write_scores


def _without_rows(columns: TableColumns) -> Block:
    arrow = require("pyarrow", "frames")
    return Block(0, with_times(arrow.schema(columns.types.items()).empty_table()))


def with_times(table: Frame) -> Frame:
    """Dates as times of day zero, which other libraries hold without an object for each."""
    pyarrow = require("pyarrow", "frames")
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_date(field.type):
            times = table.column(place).cast(pyarrow.timestamp("ms"))
            table = table.set_column(place, field.name, times)
    return table
