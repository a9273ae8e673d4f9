"""A table in a file, its names, all rows or some at a time; Parquet and Arrow files."""

from __future__ import annotations

import difflib
import io
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from toprank._extras import require
from toprank._files import Stamp
from toprank.cli.terminal import Failure, names, note

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from toprank._arrays import JsonObject


_CELLS = 2_000_000  # values of a chunk
#: Some rows, how much is read, and how much there is.
Batches: TypeAlias = "Iterator[tuple[pa.Table, float, float | None]]"
_NAMELESS = re.compile(r"\s*|__index_level_\d+__")


@dataclass(frozen=True)
class Reading:
    """What the user, or a model, says of the text; None where the file is to say it."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    rename_duplicates: bool = False

    @classmethod
    def remembered(cls, card: Mapping[str, object]) -> Reading:
        """How the training table of a model was read; what a strange card says is not believed."""
        known = card.get("reading")
        if not isinstance(known, dict):
            return cls()
        encoding, delimiter = known.get("encoding"), known.get("delimiter")
        missing = known.get("missing")
        words = missing if isinstance(missing, list) else []
        one_sign = isinstance(delimiter, str) and len(delimiter) == 1 and " " < delimiter < "\x7f"
        return cls(
            encoding if isinstance(encoding, str) and _is_encoding(encoding) else None,
            delimiter if one_sign or delimiter == "\t" else None,
            decimal if (decimal := known.get("decimal")) in (".", ",") else None,
            tuple(word for word in words if isinstance(word, str)),
            known.get("rename_duplicates") is True,
        )


def _is_encoding(name: str) -> bool:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=name)  # refuses codecs such as base64
    except (LookupError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class TextDialect:
    """How one text table is written; `marked` if a byte order mark stands first."""

    encoding: str
    delimiter: str
    decimal: str
    marked: bool = False


@dataclass(frozen=True)
class Chunk:
    """Some rows as an Arrow table, the number of rows before them, and how far the reading is.

    `carried` are the columns that are wanted as the file has them: text letter for letter.
    """

    rows: pa.Table
    start: int
    done: float
    total: float | None
    carried: pa.Table = None  # where none are wanted


class Source(ABC):
    """A table in a file; `toprank.cli.io.tables.open_table` makes the right one."""

    def __init__(self, name: str, file: Path, reading: Reading, quiet: bool = False) -> None:
        self.name, self.file, self.reading, self.quiet = name, file, reading, quiet
        self._stamp = Stamp.of(file)
        self._model_reading = Reading()

    @property
    def place(self) -> Path | str | None:
        """Where blocks of rows can be read from, for `toprank.blocks.from_tables`; None if not."""
        return None

    def remember(self, reading: Reading) -> None:
        """Read text as the training table was read, where the user and the file say nothing."""
        self._model_reading = reading

    @property
    def dialect(self) -> TextDialect | None:
        """How the text of the table is written; None for other formats."""
        return None

    def describe_reading(self) -> JsonObject:
        """How the text is read, as the card of a model remembers it; nothing for other formats."""
        return {}

    @abstractmethod
    def _names(self) -> Sequence[str]:
        """All column names, as they stand in the file."""

    @abstractmethod
    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """All rows."""

    @abstractmethod
    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        """Tables of about so many rows, the amount read, and the amount there is."""

    #: What a message adds where the table itself can rename columns.
    _how_to_rename = ""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; those without a name are left out."""
        with self._explain_errors():
            found = [str(name) for name in self._names()]
        twice = [name for name, count in Counter(found).items() if count > 1 and name.strip()]
        if twice:
            raise Failure(
                f"{self.name} has several columns of the same name: {names(map(repr, twice))}. "
                f"Rename them{self._how_to_rename}."
            )
        kept = tuple(name for name in found if not _NAMELESS.fullmatch(name))
        if not kept:
            raise Failure(f"{self.name} has no column names in its first line.")
        left_out = len(found) - len(kept)
        if left_out:
            note(f"{self.name}: columns without a name are left out: {left_out}.", self.quiet)
        return kept

    def check_columns(self, wanted: Mapping[str, str]) -> None:
        """Refuse, with near names, unless the columns are there; the values name the options."""
        for column, option in wanted.items():
            if column not in self.columns:
                raise Failure(
                    f"{self.name} has no column '{column}' ({option}); {self._hint(column)}"
                )

    def check_width(self, most: int) -> None:
        """Refuse a table with more columns than the user expects."""
        if len(self.columns) > most:
            raise Failure(
                f"{self.name} has {len(self.columns)} columns, at most {most} are allowed; are "
                f"rows and columns exchanged? If not: --max-columns {len(self.columns)}."
            )

    def _hint(self, column: str) -> str:
        plain = column.strip().lower()
        same = [name for name in self.columns if name.strip().lower() == plain]
        near = list(dict.fromkeys(same + difflib.get_close_matches(column, self.columns)))
        if near:
            return f"did you mean {' or '.join(map(repr, near))}?"
        return f"it has: {names(self.columns)}."

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, pa.DataType] | None = None
    ) -> pa.Table:
        """All rows as an Arrow table, with all columns or some; `types` are those of text."""
        wanted = list(self.columns if columns is None else columns)
        with self._explain_errors():
            table = self._whole(wanted, types or {})
        self._check_unchanged()
        if not table.num_rows:
            raise self._without_rows()
        return _with_times(table)

    def _carried(self, columns: list[str], rows: int) -> Iterator[pa.Table] | None:
        """Tables of the same rows as those of `_batches`, their values as the file has them.

        None where `_batches` leaves values as they are, whatever the types asked for.
        """
        return None

    def chunks(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], carried: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Rows in order, some at a time.

        Parameters
        ----------
        columns : sequence of str
            The columns to read.
        types : mapping
            The Arrow types of columns of text.
        carried : sequence of str
            Columns that are wanted as the file has them too, whatever they are read as.
        """
        start = 0
        rows = max(1_000, min(200_000, _CELLS // max(1, len(columns))))
        own = self._carried(list(carried), rows) if carried else None
        # one reading where that serves: which columns are read says where batches of Parquet end
        both = columns if own is not None else dict.fromkeys([*columns, *carried])
        batches = self._batches(list(both), types, rows)
        while True:
            with self._explain_errors():
                table, done, total = next(batches, (None, 0.0, None))
                if table is None:
                    break
                beside = table.select(list(carried)) if own is None else next(own, None)
            if carried and (beside is None or beside.num_rows != table.num_rows):
                self._check_unchanged()
                raise RuntimeError(f"Two readings of {self.name} were cut at different rows.")
            if table.num_rows:
                read = _with_times(table.select(list(columns)))
                yield Chunk(read, start, done, total, beside if carried else None)
                start += table.num_rows
        self._check_unchanged()
        if not start:
            raise self._without_rows()

    def _check_unchanged(self) -> None:
        """Refuse rows of a file that was written to in the meantime: some may be halves."""
        with suppress(FileNotFoundError):  # one that was removed could be read to its end
            if Stamp.of(self.file) != self._stamp:
                raise Failure(
                    f"{self.name} was changed while it was read; wait until it is complete, or "
                    "read a copy."
                )

    def count_rows(self) -> int:
        """How many rows there are."""
        first = self.columns[:1]
        as_text = dict.fromkeys(first, require("pyarrow", "frames").string())
        return sum(chunk.rows.num_rows for chunk in self.chunks(first, as_text))

    def _without_rows(self) -> Failure:
        return Failure(f"{self.name} has column names but no rows.")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Say in a sentence what the libraries say of a file that they cannot read."""
        pyarrow = require("pyarrow", "frames")
        try:
            yield
        except (pyarrow.ArrowException, UnicodeError, OSError, EOFError, zlib.error) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Failure:
        first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        return Failure(f"{self.name} could not be read: {first}.")


def _with_times(table: pa.Table) -> pa.Table:
    from toprank.blocks.tables import with_times  # here, because --help need not wait for it

    return with_times(table)


def _validate(table: pa.Table) -> pa.Table:
    """Return the table, its values checked: Arrow would believe the lengths in a damaged file."""
    table.validate(full=True)
    return table


def _check_complete(rows: int, file: pq.ParquetFile) -> None:
    """Arrow takes the end of a file that was cut for the end of its rows."""
    announced = file.metadata.num_rows
    if rows != announced:
        raise OSError(
            f"it has {rows} of the {announced} rows that it announces; it may have been cut short"
        )


class ParquetTable(Source):
    """A Parquet file; row groups are decoded page by page, so that their size does not matter."""

    @property
    def place(self) -> Path | str | None:
        return self.file

    def _names(self) -> Sequence[str]:
        with self._open() as file:
            return list(file.schema_arrow.names)

    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        with self._open() as file:
            table = _validate(file.read(columns=columns))
            _check_complete(table.num_rows, file)
            return table

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        table = require("pyarrow", "frames").Table
        with self._open() as file:
            total, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(rows, columns=columns):
                done += batch.num_rows
                yield _validate(table.from_batches([batch])), done, total
            _check_complete(done, file)

    def count_rows(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        parquet = require("pyarrow.parquet", "frames")
        with parquet.ParquetFile(self.file, pre_buffer=False, buffer_size=1 << 20) as file:
            yield file


class ArrowTable(Source):
    """An Arrow file: record batches with a table of contents at the end."""

    def _names(self) -> Sequence[str]:
        with self._open() as reader:
            return list(reader.schema.names)

    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        with self._open() as reader:
            return _validate(reader.read_all().select(columns))

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        table = require("pyarrow", "frames").Table
        with self._open() as reader:
            found, total = self._record_batches(reader)
            for done, batch in enumerate(found, 1):
                whole = _validate(table.from_batches([batch]).select(columns))
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), done, total

    def _record_batches(
        self, reader: pa.RecordBatchFileReader
    ) -> tuple[Iterator[pa.RecordBatch], int | None]:
        total = reader.num_record_batches
        return map(reader.get_batch, range(total)), total

    def _reader(self, stream: pa.OSFile) -> pa.RecordBatchFileReader:
        return require("pyarrow.ipc", "frames").open_file(stream)

    @contextmanager
    def _open(self) -> Iterator[pa.RecordBatchFileReader | pa.RecordBatchStreamReader]:
        pyarrow = require("pyarrow", "frames")
        with pyarrow.OSFile(str(self.file)) as stream, self._reader(stream) as reader:
            yield reader


class ArrowStreamTable(ArrowTable):
    """An Arrow stream: record batches one after another."""

    def _record_batches(
        self, reader: pa.RecordBatchStreamReader
    ) -> tuple[Iterator[pa.RecordBatch], int | None]:
        return iter(reader), None

    def _reader(self, stream: pa.OSFile) -> pa.RecordBatchStreamReader:
        return require("pyarrow.ipc", "frames").open_stream(stream)
