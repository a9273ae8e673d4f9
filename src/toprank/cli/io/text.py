"""CSV and TSV files, plain or packed: how their text is written, and their rows."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypedDict

from toprank._extras import require
from toprank.cli.io.dialect import COMMA, POINT, find_dialect, not_in
from toprank.cli.io.source import Batches, Source, TextDialect
from toprank.cli.terminal import Failure, note

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from toprank._arrays import JsonObject


Opener = Callable[[], IO[bytes]]


def find_undecodable_byte(name: str, opener: Opener, encoding: str) -> Failure | None:
    """Say where the text is not in its encoding; None if it is throughout."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    seen, lines = 0, 1
    for chunk in chain(_blocks(opener), [b""]):  # nothing more: half a sign would be left
        pending = decoder.getstate()[0]
        data = pending + chunk
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line = lines + data[: error.start].count(b"\n")
            byte = seen - len(pending) + error.start
            return _bad_byte(name, encoding, line, byte, data[error.start])
        except UnicodeError as error:
            return not_in(name, encoding, error)
        seen += len(chunk)
        lines += chunk.count(b"\n") - pending.count(b"\n")
    return None


def _bad_byte(name: str, encoding: str, line: int, byte: int, value: int) -> Failure:
    remedy = (
        "Save it as UTF-8, or say how it was saved: --encoding latin-1 (or cp1252)."
        if encoding == "utf-8"
        else "Try another --encoding."
    )
    return Failure(
        f"{name} is not {encoding.upper()}: line {line} holds the byte 0x{value:02x} (byte {byte} "
        f"of the text, counted from 0). {remedy}"
    )


def _blocks(opener: Opener) -> Iterator[bytes]:
    with opener() as stream:
        while chunk := stream.read(1 << 20):
            yield bytes(chunk)


def find_ragged_line(name: str, opener: Opener, dialect: TextDialect) -> Failure | None:
    """Say which line has another number of fields than there are names; None if none has."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with opener() as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
        rows = csv.reader(text, delimiter=dialect.delimiter, strict=True)
        try:
            width, started = 0, 1
            for row in rows:
                if row and not width:
                    width = len(row)
                elif row and len(row) != width:
                    return _ragged_line(name, started, len(row), width, dialect.delimiter)
                started = rows.line_num + 1
        except csv.Error as error:
            return Failure(f"{name}, line {started}: {error}. Is a quotation mark left open there?")
    return None


def _ragged_line(name: str, line: int, fields: int, width: int, delimiter: str) -> Failure:
    sign = {"\t": "tab"}.get(delimiter, delimiter)
    return Failure(
        f"{name}, line {line}: {fields} field(s), but there are {width} column name(s). A field "
        f"that holds the delimiter ({sign}) must stand in double quotes; --delimiter names another."
    )


_SAMPLE = 1 << 18
_BLOCK = 1 << 23  # bytes at a time; a row must fit
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bz2"}
_UNPACK: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open}
_WRONG_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (\w+)\S*: invalid value '(.*)'"
)
_DATE = "a date such as 2026-01-31"
_WANTED = {"double": "a number", "timestamp": _DATE, "date32": _DATE}


class _CsvOptions(TypedDict):
    """What Arrow's reader of text is told."""

    read_options: pacsv.ReadOptions
    parse_options: pacsv.ParseOptions
    convert_options: pacsv.ConvertOptions


class TextTable(Source):
    """A table as text, read by Arrow; what Arrow refuses is looked up line by line."""

    _how_to_rename = ", or number them: --rename-duplicates"

    def _names(self) -> Sequence[str]:
        return self._new_names or self._own_names

    @cached_property
    def _own_names(self) -> list[str]:
        csv = require("pyarrow.csv", "frames")
        options = self._options(None, {}, as_they_are=True)
        with self._stream() as (stream, _), csv.open_csv(stream, **options) as reader:
            return list(reader.schema.names)

    @cached_property
    def _new_names(self) -> list[str] | None:
        """The names of columns, those that come again with a number; None if all may stay."""
        asked = self.reading.rename_duplicates or self._model_reading.rename_duplicates
        if not asked or len(set(self._own_names)) == len(self._own_names):
            return None
        taken, found = set(self._own_names), Counter[str]()
        new = []
        for name in self._own_names:
            found[name] += 1
            fresh = name
            while found[name] > 1 and (fresh := f"{name}.{found[name]}") in taken:
                found[name] += 1
            taken.add(fresh)
            new.append(fresh)
        return new

    def describe_reading(self) -> JsonObject:
        look = self.dialect
        return {
            "encoding": look.encoding,
            "delimiter": look.delimiter,
            "decimal": look.decimal,
            "missing": list(self._missing),
            "rename_duplicates": self._new_names is not None,
        }

    @property
    def _missing(self) -> tuple[str, ...]:
        return (*self.reading.missing, *self._model_reading.missing)

    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        # these types hold for the whole column, where those of a stream come from the first block
        csv = require("pyarrow.csv", "frames")
        with self._stream() as (stream, _):
            table = csv.read_csv(stream, **self._options(columns, types))
        self._check_decoded(table.schema)
        return table

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        table, total = require("pyarrow", "frames").Table, self.file.stat().st_size
        with self._reader(columns, types) as (reader, file):
            for batch in reader:
                whole = table.from_batches([batch])
                self._check_decoded(whole.schema)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), min(file.tell(), total), total

    def _carried(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        # a reading of its own: as text every word stays what it is, also those for missing values
        table, csv = require("pyarrow", "frames").Table, require("pyarrow.csv", "frames")
        as_text = dict.fromkeys(columns, require("pyarrow", "frames").string())
        options = self._options(columns, as_text)
        options["convert_options"].strings_can_be_null = False
        with self._stream() as (stream, _), csv.open_csv(stream, **options) as reader:
            for batch in reader:
                whole = table.from_batches([batch])
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows)

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
    def dialect(self) -> TextDialect:
        """How the text is written."""
        with self._open() as stream:
            sample = stream.read(_SAMPLE)
            whole = not stream.read(1)
        tabs = re.search(r"\.(tsv|tab)(\.\w+)?$", self.file.name.lower())
        hint, before = "\t" if tabs else ",", self._model_reading
        found = find_dialect(self.name, sample, whole, self.reading, hint, before)
        if found.decimal == "," and self.reading.decimal is None and before.decimal != ",":
            note(f"{self.name}: 1,5 is read as one and a half (if not: --decimal .).", self.quiet)
        return found

    @contextmanager
    def _stream(self) -> Iterator[tuple[pa.NativeFile, pa.OSFile]]:
        """The text for Arrow, and the file below it, whose position is the progress."""
        pyarrow = require("pyarrow", "frames")
        with pyarrow.OSFile(str(self.file)) as file:
            if self._packing is None:
                yield file, file
            else:
                yield pyarrow.CompressedInputStream(file, self._packing), file

    @contextmanager
    def _reader(
        self, columns: list[str] | None, types: Mapping[str, pa.DataType]
    ) -> Iterator[tuple[pacsv.CSVStreamingReader, pa.OSFile]]:
        csv = require("pyarrow.csv", "frames")
        options = self._options(columns, types)
        with self._stream() as (stream, file), csv.open_csv(stream, **options) as reader:
            yield reader, file

    def _options(
        self, columns: list[str] | None, types: Mapping[str, pa.DataType], as_they_are: bool = False
    ) -> _CsvOptions:
        csv, look = require("pyarrow.csv", "frames"), self.dialect
        encoding = "utf8" if look.encoding == "utf-8" else look.encoding
        names = None if as_they_are else self._new_names
        renamed = {} if names is None else {"column_names": names, "skip_rows_after_names": 1}
        return {
            "read_options": csv.ReadOptions(block_size=_BLOCK, encoding=encoding, **renamed),
            "parse_options": csv.ParseOptions(delimiter=look.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                include_columns=columns,
                column_types=dict(types),
                null_values=[*csv.ConvertOptions().null_values, *self._missing],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                decimal_point=look.decimal,
            ),
        }

    def _check_decoded(self, schema: pa.Schema) -> None:
        """Arrow reads text that is not UTF-8 as bytes."""
        binary = require("pyarrow", "frames").types.is_binary
        if any(binary(field.type) for field in schema):
            failure = find_undecodable_byte(self.name, self._open, self.dialect.encoding)
            if failure is not None:
                raise failure

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, FileNotFoundError):  # it went while it was read
            return super()._failure(error)
        failure = self._packing_failure()
        failure = failure or find_undecodable_byte(self.name, self._open, self.dialect.encoding)
        failure = failure or find_ragged_line(self.name, self._open, self.dialect)
        return failure or self._wrong_value(error) or super()._failure(error)

    def _wrong_value(self, error: Exception) -> Failure | None:
        found = _WRONG_VALUE.match(str(error))
        if found is None:
            return None
        place, kind, value = found.groups()
        wanted = _WANTED.get(kind, kind)
        column = self._names()[int(place)]
        what = f"{self.name}: column '{column}' holds '{value}', expected {wanted}"
        if kind == "double" and (remedy := self._number_remedy(value)):
            return Failure(f"{what}. {remedy}")
        return Failure(f"{what}. If the word stands for a missing value, add --missing '{value}'.")

    def _number_remedy(self, value: str) -> str:
        """What to do about a number that is written in another way."""
        look = self.dialect
        other = "," if look.decimal == "." else "."
        pattern = COMMA if look.decimal == "." else POINT
        if look.delimiter != other and pattern.fullmatch(value.strip()):
            return f"If its decimal sign is '{other}', add --decimal {other}"
        if re.search(r"[$€£¥%]|\d[.,' ]\d", value):
            return (
                "It is written with signs: fit the model with --as-number for this column, or take "
                "the signs out."
            )
        return ""

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
