"""What a text table looks like: its encoding, its delimiter, its decimal sign."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from toprank.cli.failures import Failure

_DELIMITERS = ",;\t|"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_POINT = re.compile(r"[+-]?\d*\.\d+")
_COMMA = re.compile(r"[+-]?\d*,\d+")
_ROWS = 200  # enough to tell the delimiters apart
Opener = Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Reading:
    """What the user says of the text; None where the file is to say it."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """How to read one text table."""

    encoding: str
    delimiter: str
    decimal: str


def dialect_of(name: str, sample: bytes, whole: bool, reading: Reading, hint: str = "") -> Dialect:
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
    delimiter = reading.delimiter or _delimiter(text, hint)
    return Dialect(encoding, delimiter, reading.decimal or _decimal(text, delimiter))


def _encoding(sample: bytes, given: str | None) -> str:
    if given is None:
        return _MARKS.get(sample[:2], "utf-8")
    try:
        found = codecs.lookup(given).name
        io.TextIOWrapper(io.BytesIO(), encoding=found)  # refuses codecs such as base64
    except LookupError:
        raise Failure(
            f"there is no encoding '{given}'; latin-1, cp1252 and utf-16 are among those there are."
        ) from None
    if sample.startswith(codecs.BOM_UTF8) and found != "utf-8":
        raise Failure(f"the file says that it is UTF-8; leave out --encoding {given}.")
    return found


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [row for _, row in zip(range(_ROWS), rows, strict=False) if row]
    except csv.Error:  # a field beyond the limits of the module: another delimiter
        return []


def _delimiter(text: str, hint: str) -> str:
    """The delimiter that cuts the most rows into as many fields as there are names."""

    def fit(delimiter: str) -> tuple[float, int, bool]:
        rows = _rows(text, delimiter)
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
    fields = [field.strip() for row in _rows(text, delimiter)[1:] for field in row]
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


def find_ragged_line(name: str, opener: Opener, dialect: Dialect) -> Failure | None:
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
