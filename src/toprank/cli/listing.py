"""A ranked list as it leaves the command: files by their ending, stdout, or a table to read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from toprank._extras import require
from toprank._files import replacing
from toprank._json import plain
from toprank.cli.options import check_output
from toprank.cli.terminal import cells, console, safe, short_number, table

#: Signs that start a formula, also in the width of Chinese and Japanese letters.
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: A place where a cell starts, then spaces and quotes, then a sign.
_FORMULA = re.compile(rf"(?:\A|(?<=[,;|\t\r\n]))(?=[ \"]*[{_SIGNS}])")
_START = re.compile(r"\A(?=[\x00-\x1f])")
_NUMBER = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", re.ASCII)
_ENDINGS = ("csv", "tsv", "parquet", "jsonl", "feather", "arrow", "gz")


def check_listing(output: Path | None, read: Iterable[Path]) -> None:
    """Refuse an output that cannot be written; "-" is stdout."""
    if output is not None and str(output) != "-":
        check_output(output, _ENDINGS, [path for path in read if str(path) != "-"])
        _format(output)


def write_listing(rows: Any, output: Path, excel_safe: bool = False) -> None:
    """Write an Arrow table to a file, whole or not at all, or to stdout as CSV."""
    if str(output) == "-":
        _write_csv(rows, _Stdout(), ",", excel_safe)
        sys.stdout.flush()
        return
    kind = _format(output)
    with replacing(output) as file:
        if kind == "parquet":
            require("pyarrow.parquet", "frames").write_table(rows, file)
        elif kind in ("feather", "arrow"):
            require("pyarrow.feather", "frames").write_feather(rows, file)
        else:
            _write_text(rows, file, kind, output.suffix.lower() == ".gz", excel_safe)


def _format(output: Path) -> str:
    """The ending that says the format, below .gz if there is one."""
    suffix = output.suffix.lower()
    if suffix != ".gz":
        return suffix.lstrip(".")
    below = output.with_suffix("")
    check_output(below, ("csv", "tsv", "jsonl"))
    return below.suffix.lower().lstrip(".")


def _write_text(rows: Any, file: IO[bytes], kind: str, packed: bool, excel_safe: bool) -> None:
    below = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) if packed else file
    text = io.TextIOWrapper(below, encoding="utf-8", newline="")
    if kind == "jsonl":
        for row in _records(rows):
            text.write(json.dumps(plain(row)) + "\n")
    else:
        _write_csv(rows, text, "\t" if kind == "tsv" else ",", excel_safe)
    text.flush()
    text.detach()
    if packed:
        below.close()


def _write_csv(rows: Any, text: Any, delimiter: str, excel_safe: bool) -> None:
    def row(values: Iterable[Any]) -> Iterable[Any]:
        return map(without_formulas, values) if excel_safe else values

    # the module quotes only the line breaks that it ends lines with: a lone return is one too
    writer = csv.writer(_Lines(text), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(row(rows.schema.names))
    for record in _records(rows):
        writer.writerow(row(record.values()))


def without_formulas(value: Any) -> Any:
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
    if _NUMBER.fullmatch(text):
        return text
    return _START.sub("'", _FORMULA.sub("'", text))


def _records(rows: Any) -> Iterable[dict[str, Any]]:
    for batch in rows.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


class _Lines:
    """Lines of a CSV writer, which end in a return and a line feed, without the return."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def write(self, line: str) -> Any:
        return self.text.write(line[:-2] + "\n")


class _Stdout:
    """Lines to a pipe as they are; on a terminal nothing of the data may act."""

    def __init__(self) -> None:
        self.escapes = sys.stdout.isatty()

    def write(self, line: str) -> int:
        return sys.stdout.write(safe(line[:-1]) + "\n" if self.escapes else line)


def show_listing(rows: Any) -> None:
    """Print the list as a table."""
    names = rows.schema.names
    kinds = require("pyarrow", "frames").types
    texts = [field.name for field in rows.schema if not kinds.is_floating(field.type)]
    drawn = table(names, left=[name for name in texts if name != "rank"])
    for row in _records(rows):
        shown = (short_number(value) if name not in texts else value for name, value in row.items())
        drawn.add_row(*cells(*("" if value is None else value for value in shown)))
    console().print(drawn)
