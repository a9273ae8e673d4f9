"""CSV and TSV files, plain or packed: how their text is written, and their rows."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

from toprank._extras import require
from toprank.cli.io.source import Batches, Reading, Source
from toprank.cli.terminal import Failure, note

_DELIMITERS = ",;\t|"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_POINT = re.compile(r"[+-]?\d*\.\d+")
_COMMA = re.compile(r"[+-]?\d*,\d+")
_ROWS = 200  # enough to tell the delimiters apart
Opener = Callable[[], IO[bytes]]


@dataclass(frozen=True)
class TextDialect:
    """How to read one text table."""

    encoding: str
    delimiter: str
    decimal: str


def find_dialect(
    name: str, sample: bytes, whole: bool, reading: Reading, hint: str = ""
) -> TextDialect:
    """Find out how a text is to be read.

    Parameters
    ----------
    name : str
        What messages call the file.
    sample : bytes
        Its first bytes.
    whole : bool
        Whether they are all there is.
    reading : Reading
        What the user says.
    hint : str
        The delimiter that the ending of the file's name promises, if any.
    """
    encoding = _encoding(sample, reading.encoding)
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(sample, final=whole)
    except UnicodeError as error:  # some encodings leave no way to replace what is wrong
        raise _not_in(name, encoding, error) from error
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise Failure(
            f"{name} holds binary data; expected a table as CSV, TSV, Parquet or Arrow (IPC)."
        )
    lines = text.splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines = lines[:-1]  # the last line is cut
    text = "".join(lines)
    if not text.strip():
        raise Failure(f"{name} is empty; expected a table with a line of column names.")
    _refuse_markup(name, text)
    delimiter = reading.delimiter or _delimiter(text, hint)
    return TextDialect(encoding, delimiter, reading.decimal or _decimal(text, delimiter))


def _refuse_markup(name: str, text: str) -> None:
    """Refuse a web page, XML or JSON, whatever the name of its file says."""
    start = text.lstrip()[:1000].lower()
    if re.match(r"<(!doctype\s+html|html|head|body|table)\b", start):
        raise Failure(
            f"{name} is a web page, not a table: perhaps the page that asks you to sign in. Open "
            "it in a browser, and download the table itself as CSV."
        )
    if re.match(r"<(\?xml|[a-z][\w:.-]*(\s[^<>]*)?/?>)", start):
        raise Failure(f"{name} holds XML; expected a table as CSV, TSV, Parquet or Arrow (IPC).")
    if re.match(r"(\[\s*)?\{\s*(\"[^\"]*\"\s*:|\})", start):
        raise Failure(
            f"{name} holds JSON; expected a table as CSV, TSV, Parquet or Arrow (IPC). "
            "With pandas: read_json(file, lines=True).to_csv(...), without lines for an array."
        )


def _encoding(sample: bytes, given: str | None) -> str:
    if given is None:
        return _MARKS.get(sample[:2], "utf-8")
    try:
        found = codecs.lookup(given).name
        io.TextIOWrapper(io.BytesIO(), encoding=found)  # refuses codecs such as base64
    except LookupError:
        raise Failure(f"there is no encoding '{given}'; try latin-1, cp1252 or utf-16.") from None
    if sample.startswith(codecs.BOM_UTF8) and found != "utf-8":
        raise Failure(f"the file says that it is UTF-8; leave out --encoding {given}.")
    return found


def _split_rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [row for _, row in zip(range(_ROWS), rows, strict=False) if row]
    except csv.Error:  # a field beyond the limits of the module: another delimiter
        return []


def _delimiter(text: str, hint: str) -> str:
    """The delimiter that cuts the most rows into as many fields as there are names."""

    def fit(delimiter: str) -> tuple[float, int, bool]:
        rows = _split_rows(text, delimiter)
        width = len(rows[0]) if rows else 1
        if width == 1:
            return 0.0, 1, delimiter == hint
        alike = sum(len(row) == width for row in rows) / len(rows)
        return round(alike, 1), width, delimiter == hint

    return max(_DELIMITERS, key=fit)


def _decimal(text: str, delimiter: str) -> str:
    """A comma where numbers are written with commas and none with a point."""
    if delimiter == ",":
        return "."
    fields = [field.strip() for row in _split_rows(text, delimiter)[1:] for field in row]
    commas = any(_COMMA.fullmatch(field) for field in fields)
    return "," if commas and not any(_POINT.fullmatch(field) for field in fields) else "."


def find_undecodable_byte(name: str, opener: Opener, encoding: str) -> Failure | None:
    """Say where the text is not in its encoding; None if it is throughout."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    seen, lines = 0, 1
    for chunk in _blocks(opener):
        pending = decoder.getstate()[0]
        data = pending + chunk
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            line = lines + data[: error.start].count(b"\n")
            byte = seen - len(pending) + error.start
            return _bad_byte(name, encoding, line, byte, data[error.start])
        except UnicodeError as error:
            return _not_in(name, encoding, error)
        seen += len(chunk)
        lines += chunk.count(b"\n") - pending.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return _bad_byte(name, encoding, lines, seen - len(error.object), error.object[0])
    except UnicodeError as error:
        return _not_in(name, encoding, error)
    return None


def _not_in(name: str, encoding: str, error: UnicodeError) -> Failure:
    return Failure(f"{name} is not {encoding.upper()} ({error}). Try another --encoding.")


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


class TextTable(Source):
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

    def _batches(self, columns: list[str], types: Mapping[str, Any], rows: int) -> Batches:
        table, total = require("pyarrow", "frames").Table, self.file.stat().st_size
        with self._reader(columns, types) as (reader, file):
            for batch in reader:
                whole = table.from_batches([batch])
                self._check_decoded(whole.schema)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), min(file.tell(), total), total

    def _carried(self, columns: list[str], rows: int) -> Iterator[Any]:
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
    def _dialect(self) -> TextDialect:
        with self._open() as stream:
            sample = stream.read(_SAMPLE)
            whole = not stream.read(1)
        tabs = re.search(r"\.(tsv|tab)(\.\w+)?$", self.file.name.lower())
        found = find_dialect(self.name, sample, whole, self.reading, "\t" if tabs else ",")
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
