"""A ranked list, shown or written: CSV as its table is, Excel, Parquet, Arrow, JSON lines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from toprank._extras import require
from toprank._files import replace_file
from toprank._text import plain
from toprank.cli.io.excel import write_workbook
from toprank.cli.io.source import TextDialect
from toprank.cli.options import check_output
from toprank.cli.terminal import cells, console, safe, short_number, table

if TYPE_CHECKING:
    import pyarrow as pa


#: Signs that start a formula, also in the width of Chinese and Japanese letters.
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: A place where a cell starts, then spaces and quotes, then a sign.
_FORMULA = re.compile(rf"(?:\A|(?<=[,;|\t\r\n]))(?=[ \"]*[{_SIGNS}])")
_CONTROL_FIRST = re.compile(r"\A(?=[\x00-\x1f])")
_NUMBER_TEXT = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", re.ASCII)
_ENDINGS = ("csv", "tsv", "xlsx", "parquet", "jsonl", "feather", "arrow", "gz")


def check_listing(output: Path | None, read: Iterable[Path]) -> None:
    """Refuse an output that cannot be written; "-" is stdout."""
    if output is not None and str(output) != "-":
        check_output(output, _ENDINGS, [path for path in read if str(path) != "-"])
        _file_format(output)


def write_listing(
    rows: pa.Table, output: Path, excel_safe: bool = False, dialect: TextDialect | None = None
) -> None:
    """Write an Arrow table to a file, whole or not at all, or to stdout as CSV.

    Parameters
    ----------
    rows : pyarrow.Table
    output : Path
        Its ending says the format; "-" is stdout.
    excel_safe : bool, default=False
        Whether texts that a spreadsheet would run get an apostrophe.
    dialect : TextDialect, optional
        How text is to be written: as the table was that the list is of.
    """
    dialect = _listing_dialect(rows, excel_safe, dialect)
    if str(output) == "-":
        _write_csv(rows, _Stdout(), dialect, excel_safe)
        sys.stdout.flush()
        return
    kind = _file_format(output)
    with replace_file(output) as file:
        if kind == "parquet":
            require("pyarrow.parquet", "frames").write_table(rows, file)
        elif kind in ("feather", "arrow"):
            require("pyarrow.feather", "frames").write_feather(rows, file)
        elif kind == "xlsx":
            write_workbook(rows.schema.names, map(dict.values, iterate_rows(rows)), file)
        else:
            _write_text(rows, file, kind, output.suffix.lower() == ".gz", excel_safe, dialect)


def _listing_dialect(rows: pa.Table, excel_safe: bool, dialect: TextDialect | None) -> TextDialect:
    """How a list is written: like its table, where that can be; UTF-8 where it cannot."""
    dialect = dialect or TextDialect("utf-8", ",", ".")
    if dialect.delimiter == dialect.decimal:
        dialect = replace(dialect, decimal=".")
    plain_text = True
    for word in _words_of(rows):
        if not word.isascii():
            plain_text = False
            try:
                word.encode(dialect.encoding)
            except UnicodeError:
                dialect = replace(dialect, encoding="utf-8", marked=True)
    # without the mark, spreadsheets take UTF-8 for the machine's old encoding
    marked = dialect.marked or (excel_safe and not plain_text)
    return replace(dialect, marked=marked and dialect.encoding == "utf-8")


def _words_of(rows: pa.Table) -> Iterator[str]:
    kinds = require("pyarrow", "frames").types
    yield from rows.schema.names
    for field in rows.schema:
        if kinds.is_string(field.type) or kinds.is_large_string(field.type):
            yield from (word for word in rows.column(field.name).to_pylist() if word is not None)


def _file_format(output: Path) -> str:
    """The ending that says the format, below .gz if there is one."""
    suffix = output.suffix.lower()
    if suffix != ".gz":
        return suffix.lstrip(".")
    below = output.with_suffix("")
    check_output(below, ("csv", "tsv", "jsonl"))
    return below.suffix.lower().lstrip(".")


def _write_text(
    rows: pa.Table, file: IO[bytes], kind: str, packed: bool, excel_safe: bool, dialect: TextDialect
) -> None:
    if kind == "jsonl":
        dialect = TextDialect("utf-8", ",", ".")
    below = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) if packed else file
    encoding = "utf-8-sig" if dialect.marked else dialect.encoding
    text = io.TextIOWrapper(below, encoding=encoding, newline="")
    if kind == "jsonl":
        for row in iterate_rows(rows):
            text.write(json.dumps(plain(row)) + "\n")
    else:
        tabs = kind == "tsv"
        _write_csv(rows, text, replace(dialect, delimiter="\t") if tabs else dialect, excel_safe)
    text.flush()
    text.detach()
    if packed:
        below.close()


def _write_csv(rows: pa.Table, text: LineWriter, dialect: TextDialect, excel_safe: bool) -> None:
    def row(values: Iterable[object]) -> Iterable[object]:
        values = map(without_formulas, values) if excel_safe else values
        return values if dialect.decimal == "." else map(_with_comma, values)

    # the module quotes only the line breaks that it ends lines with: a lone return is one too
    writer = csv.writer(
        _LinesWithoutReturn(text), delimiter=dialect.delimiter, lineterminator="\r\n"
    )
    writer.writerow(row(rows.schema.names))
    for record in iterate_rows(rows):
        writer.writerow(row(record.values()))


def _with_comma(value: object) -> object:
    """A number as text with a decimal comma; anything else as it is."""
    return str(value).replace(".", ",") if isinstance(value, float) else value


def without_formulas(value: object) -> object:
    r"""Return the value of a cell with an apostrophe before what would be run as a formula.

    A spreadsheet runs a cell that starts with a sign such as ``=``. A text can bring such a cell
    along in its middle too: where a table with commas is opened with semicolons, as in half of
    Europe, the quotes around a cell do not count, and ``a;=1+1`` is two cells. Numbers stay
    numbers, also those that come as text.

    Examples
    --------
    >>> from toprank.cli.listing import without_formulas
    >>> without_formulas("=1+1"), without_formulas("a;@b"), without_formulas("-1.5")
    ("'=1+1", "a;'@b", '-1.5')
    """
    if value is None or isinstance(value, bool | int | float | Decimal):
        return value
    text = str(value)
    if _NUMBER_TEXT.fullmatch(text):
        return text
    return _CONTROL_FIRST.sub("'", _FORMULA.sub("'", text))


def iterate_rows(rows: pa.Table) -> Iterable[dict[str, object]]:
    """The rows of an Arrow table as dictionaries, some at a time."""
    for batch in rows.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


class LineWriter(Protocol):
    """What the writer of CSV needs of a file."""

    def write(self, line: str, /) -> int: ...


class _LinesWithoutReturn:
    """Lines of a CSV writer, which end in a return and a line feed, without the return."""

    def __init__(self, text: LineWriter) -> None:
        self.text = text

    def write(self, line: str) -> int:
        return self.text.write(line[:-2] + "\n")


class _Stdout:
    """Lines to a pipe as they are; on a terminal nothing of the data may act."""

    def __init__(self) -> None:
        self.escapes = sys.stdout.isatty()

    def write(self, line: str) -> int:
        return sys.stdout.write(safe(line[:-1]) + "\n" if self.escapes else line)


def show_listing(rows: pa.Table) -> None:
    """Print the list as a table."""
    names = rows.schema.names
    kinds = require("pyarrow", "frames").types
    texts = [field.name for field in rows.schema if not kinds.is_floating(field.type)]
    drawn = table(names, left=[name for name in texts if name != "rank"])
    for row in iterate_rows(rows):
        shown = (short_number(value) if name not in texts else value for name, value in row.items())
        drawn.add_row(*cells(*("" if value is None else value for value in shown)))
    console().print(drawn)
