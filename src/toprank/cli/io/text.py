"""CSV and TSV files, plain or packed with gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any

from toprank._extras import require
from toprank.cli.failures import Failure
from toprank.cli.io.dialect import Dialect, dialect_of, find_ragged_line, find_undecodable_byte
from toprank.cli.io.source import Source
from toprank.cli.terminal import note

_SAMPLE = 1 << 18
_BLOCK = 1 << 23  # bytes at a time; a row must fit
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bz2"}
_UNPACK: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open}
_WRONG_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (\w+)\S*: invalid value '(.*)'"
)
_DATE = "a date such as 2026-01-31"
_WANTED = {"double": "a number", "timestamp": _DATE, "date32": _DATE}


class TextSource(Source):
    """A table as text, read by Arrow; what Arrow refuses is looked up line by line."""

    def _names(self) -> Sequence[str]:
        with self._reader(None, {}) as (reader, _):
            return list(reader.schema.names)

    def _whole(self, columns: list[str]) -> Any:
        # these types hold for the whole column, where those of a stream come from the first block
        csv = require("pyarrow.csv", "frames")
        with self._stream() as (stream, _):
            table = csv.read_csv(stream, **self._options(columns, {}))
        self._check_decoded(table.schema)
        return table

    def _batches(
        self, columns: list[str], types: Mapping[str, Any], rows: int
    ) -> Iterator[tuple[Any, float, float | None]]:
        table, total = require("pyarrow", "frames").Table, self.file.stat().st_size
        with self._reader(columns, types) as (reader, file):
            for batch in reader:
                whole = table.from_batches([batch])
                self._check_decoded(whole.schema)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), min(file.tell(), total), total

    @cached_property
    def _packing(self) -> str | None:
        with self.file.open("rb") as stream:
            return _PACKED.get(stream.read(2))

    def _open(self) -> IO[bytes]:
        """The bytes of the text, unpacked."""
        if self._packing is None:
            return self.file.open("rb")
        stream: IO[bytes] = _UNPACK[self._packing](self.file)
        return stream

    @cached_property
    def _dialect(self) -> Dialect:
        with self._open() as stream:
            sample = stream.read(_SAMPLE)
            whole = not stream.read(1)
        tabs = re.search(r"\.(tsv|tab)(\.\w+)?$", self.file.name.lower())
        found = dialect_of(self.name, sample, whole, self.reading, "\t" if tabs else ",")
        if found.decimal == "," and self.reading.decimal is None:
            note(f"{self.name}: 1,5 is read as one and a half (if not: --decimal .).", self.quiet)
        return found

    @contextmanager
    def _stream(self) -> Iterator[tuple[Any, Any]]:
        """The text for Arrow, and the file below it, whose position is the progress."""
        pyarrow = require("pyarrow", "frames")
        with pyarrow.OSFile(str(self.file)) as file:
            if self._packing is None:
                yield file, file
            else:
                yield pyarrow.CompressedInputStream(file, self._packing), file

    @contextmanager
    def _reader(
        self, columns: list[str] | None, types: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any]]:
        csv = require("pyarrow.csv", "frames")
        options = self._options(columns, types)
        with self._stream() as (stream, file), csv.open_csv(stream, **options) as reader:
            yield reader, file

    def _options(self, columns: list[str] | None, types: Mapping[str, Any]) -> dict[str, Any]:
        csv, look = require("pyarrow.csv", "frames"), self._dialect
        encoding = "utf8" if look.encoding == "utf-8" else look.encoding
        return {
            "read_options": csv.ReadOptions(block_size=_BLOCK, encoding=encoding),
            "parse_options": csv.ParseOptions(delimiter=look.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                include_columns=columns,
                column_types=dict(types),
                null_values=[*csv.ConvertOptions().null_values, *self.reading.missing],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                decimal_point=look.decimal,
            ),
        }

    def _check_decoded(self, schema: Any) -> None:
        """Arrow reads text that is not UTF-8 as bytes."""
        binary = require("pyarrow", "frames").types.is_binary
        if any(binary(field.type) for field in schema):
            failure = find_undecodable_byte(self.name, self._open, self._dialect.encoding)
            if failure is not None:
                raise failure

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, FileNotFoundError):  # it went while it was read
            return super()._failure(error)
        failure = self._packing_failure()
        failure = failure or find_undecodable_byte(self.name, self._open, self._dialect.encoding)
        failure = failure or find_ragged_line(self.name, self._open, self._dialect)
        return failure or self._wrong_value(error) or super()._failure(error)

    def _wrong_value(self, error: Exception) -> Failure | None:
        found = _WRONG_VALUE.match(str(error))
        if found is None:
            return None
        place, kind, value = found.groups()
        wanted = _WANTED.get(kind, kind)
        column = self._names()[int(place)]
        return Failure(
            f"{self.name}: column '{column}' holds '{value}', expected {wanted}. If the word "
            f"stands for a missing value, add --missing '{value}'."
        )

    def _packing_failure(self) -> Failure | None:
        if self._packing is None:
            return None
        try:
            with self._open() as stream:
                while stream.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            return Failure(
                f"{self.name} is not a whole {self._packing} file ({error}); was it cut short?"
            )
        return None
