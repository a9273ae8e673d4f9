"""How a text table is written: its encoding, its delimiter and its decimal sign."""

from __future__ import annotations

import codecs
import csv
import io
import re
from contextlib import suppress
from itertools import islice

from toprank.cli.io.source import Reading, TextDialect
from toprank.cli.terminal import Failure

_DELIMITERS = ",;\t|"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ROWS = 200  # enough to tell the delimiters apart
POINT = re.compile(r"[+-]?\d*\.\d+")
COMMA = re.compile(r"[+-]?\d*,\d+")


def find_dialect(
    name: str,
    sample: bytes,
    whole: bool,
    reading: Reading,
    hint: str = "",
    before: Reading | None = None,
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
    before : Reading, optional
        How the training table was read, for what neither the user nor the file says.
    """
    before = before or Reading()
    encoding = _encoding(sample, reading.encoding, before.encoding)
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(sample, final=whole)
    except UnicodeError as error:  # some encodings leave no way to replace what is wrong
        raise not_in(name, encoding, error) from error
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
    delimiter = reading.delimiter or _delimiter(text, hint, before.delimiter)
    decimal = reading.decimal or _decimal(text, delimiter, before.decimal)
    marked = sample.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return TextDialect(encoding, delimiter, decimal, marked)


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


def _encoding(sample: bytes, given: str | None, before: str | None) -> str:
    if given is None:
        own = _MARKS.get(sample[:2], "utf-8")
        if before is None or own != "utf-8" or not _may_be(sample, before):
            return own
        return before
    try:
        found = codecs.lookup(given).name
        io.TextIOWrapper(io.BytesIO(), encoding=found)  # refuses codecs such as base64
    except LookupError:
        raise Failure(f"there is no encoding '{given}'; try latin-1, cp1252 or utf-16.") from None
    if sample.startswith(codecs.BOM_UTF8) and found != "utf-8":
        raise Failure(f"the file says that it is UTF-8; leave out --encoding {given}.")
    return found


def _may_be(sample: bytes, encoding: str) -> bool:
    """Whether a text in another encoding than UTF-8 is in this one, as the training table was."""
    if sample.startswith(codecs.BOM_UTF8) or (b"\0" in sample) != encoding.startswith("utf-16"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return True
    return sample.isascii() and encoding != "utf-8"  # letters may follow that are not UTF-8


def _split_rows(text: str, delimiter: str) -> list[list[str]]:
    """The first rows; those before a field that is longer than the module allows."""
    rows = []
    with suppress(csv.Error):
        for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), _ROWS):
            rows += [row] if row else []
    return rows


def _delimiter(text: str, hint: str, before: str | None) -> str:
    """The delimiter that cuts the most rows into as many fields as there are names.

    That of the training table, where it cuts the rows alike.
    """
    rows = _split_rows(text, before) if before is not None else []
    if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows):
        return str(before)

    def fit(delimiter: str) -> tuple[float, int, bool]:
        rows = _split_rows(text, delimiter)
        width = len(rows[0]) if rows else 1
        if width == 1:
            return 0.0, 1, delimiter == hint
        alike = sum(len(row) == width for row in rows) / len(rows)
        return round(alike, 1), width, delimiter == hint

    return max(_DELIMITERS, key=fit)


def _decimal(text: str, delimiter: str, before: str | None) -> str:
    """A comma where numbers are written with commas and none with a point.

    Where both occur, or none, that of the training table.
    """
    if delimiter == ",":
        return "."
    fields = [field.strip() for row in _split_rows(text, delimiter)[1:] for field in row]
    commas = any(COMMA.fullmatch(field) for field in fields)
    points = any(POINT.fullmatch(field) for field in fields)
    if commas == points and before is not None:
        return before
    return "," if commas and not points else "."


def not_in(name: str, encoding: str, error: UnicodeError) -> Failure:
    """Say that a text is not in its encoding."""
    return Failure(f"{name} is not {encoding.upper()} ({error}). Try another --encoding.")
