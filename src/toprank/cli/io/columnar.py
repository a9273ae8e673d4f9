"""Parquet and Arrow (IPC, Feather) files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from toprank._extras import require
from toprank.cli.io.source import Source

Batches = Iterator[tuple[Any, float, float | None]]


def _sound(table: Any) -> Any:
    """The table, if it is one: what a damaged file says of lengths would be believed otherwise."""
    table.validate(full=True)
    return table


def _check_complete(rows: int, file: Any) -> None:
    """Arrow takes the end of a file that was cut for the end of its rows."""
    announced = file.metadata.num_rows
    if rows != announced:
        raise OSError(f"it has {rows} of the {announced} rows that it announces; was it cut short?")


class ParquetSource(Source):
    """A Parquet file; row groups are decoded page by page, so that their size does not matter."""

    def _names(self) -> Sequence[str]:
        with self._open() as file:
            return list(file.schema_arrow.names)

    def _whole(self, columns: list[str]) -> Any:
        with self._open() as file:
            table = _sound(file.read(columns=columns))
            _check_complete(table.num_rows, file)
            return table

    def _batches(self, columns: list[str], types: Mapping[str, Any], rows: int) -> Batches:
        table = require("pyarrow", "frames").Table
        with self._open() as file:
            total, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(rows, columns=columns):
                done += batch.num_rows
                yield _sound(table.from_batches([batch])), done, total
            _check_complete(done, file)

    def count_rows(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        parquet = require("pyarrow.parquet", "frames")
        with parquet.ParquetFile(self.file, pre_buffer=False, buffer_size=1 << 20) as file:
            yield file


class ArrowSource(Source):
    """An Arrow file: record batches with a table of contents at the end."""

    def _names(self) -> Sequence[str]:
        with self._open() as reader:
            return list(reader.schema.names)

    def _whole(self, columns: list[str]) -> Any:
        with self._open() as reader:
            return _sound(reader.read_all().select(columns))

    def _batches(self, columns: list[str], types: Mapping[str, Any], rows: int) -> Batches:
        table = require("pyarrow", "frames").Table
        with self._open() as reader:
            found, total = self._record_batches(reader)
            for done, batch in enumerate(found, 1):
                whole = _sound(table.from_batches([batch]).select(columns))
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), done, total

    def _record_batches(self, reader: Any) -> tuple[Iterator[Any], int | None]:
        total = reader.num_record_batches
        return map(reader.get_batch, range(total)), total

    def _reader(self, stream: Any) -> Any:
        return require("pyarrow.ipc", "frames").open_file(stream)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        pyarrow = require("pyarrow", "frames")
        with pyarrow.OSFile(str(self.file)) as stream, self._reader(stream) as reader:
            yield reader


class ArrowStreamSource(ArrowSource):
    """An Arrow stream: record batches one after another."""

    def _record_batches(self, reader: Any) -> tuple[Iterator[Any], int | None]:
        return iter(reader), None

    def _reader(self, stream: Any) -> Any:
        return require("pyarrow.ipc", "frames").open_stream(stream)
