"""Excel workbooks: the first sheet as a table, and a list as a workbook."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING

from toprank._extras import require
from toprank._text import visible
from toprank.cli.io.source import Batches, Source
from toprank.cli.terminal import Failure, note

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


#: Rows that a sheet can hold, the names of the columns among them.
_MOST_ROWS = 1_048_576
#: Letters that a cell can hold.
_LONGEST = 32_767


def is_workbook(path: Path) -> bool:
    """Whether a zip archive is a workbook of Excel."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


class ExcelTable(Source):
    """The first sheet of a workbook; its first row holds the names of the columns."""

    @cached_property
    def _table(self) -> pa.Table:
        pyarrow = require("pyarrow", "frames")
        rows = self._rows()
        head = next(rows, ())
        names = ["" if name is None else str(name) for name in head]
        while names and not names[-1]:
            names.pop()
        cells: list[list[object]] = [[] for _ in names]
        for row in rows:
            if any(value is not None for value in row):
                for place, column in enumerate(cells):
                    column.append(row[place] if place < len(row) else None)
        return pyarrow.Table.from_arrays([_as_array(column) for column in cells], names=names)

    def _rows(self) -> Iterator[Sequence[object]]:
        openpyxl = require("openpyxl", "excel")
        try:
            book = openpyxl.load_workbook(self.file, read_only=True, data_only=True)
        except Exception as error:  # whatever a damaged archive brings its reader to raise
            raise Failure(f"{self.name} could not be read as a workbook: {error}.") from error
        try:
            sheets = book.worksheets
            if not sheets:
                raise Failure(f"{self.name} has no sheet with cells.")
            if len(sheets) > 1:
                text = (
                    f"{self.name}: the first of {len(sheets)} sheets, '{sheets[0].title}', is read."
                )
                note(text, self.quiet)
            yield from sheets[0].iter_rows(values_only=True)
        finally:
            book.close()

    def _names(self) -> Sequence[str]:
        return list(self._table.column_names)

    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        table = self._table.select(columns)
        for name, kind in types.items():
            if name in columns:
                place = columns.index(name)
                words = [None if v is None else _as_word(v) for v in table.column(name).to_pylist()]
                table = table.set_column(
                    place, name, [require("pyarrow", "frames").array(words, kind)]
                )
        return table

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        whole, pyarrow = self._table.select(columns), require("pyarrow", "frames")
        as_text = {n: k for n, k in types.items() if n in columns and pyarrow.types.is_string(k)}
        table = self._whole(columns, as_text)
        for start in range(0, whole.num_rows, rows):
            yield table.slice(start, rows), min(start + rows, whole.num_rows), whole.num_rows

    def _carried(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        table = self._table.select(columns)
        for start in range(0, table.num_rows, rows):
            yield table.slice(start, rows)


def _as_array(values: list[object]) -> pa.Array:
    """The cells of a column as one type; as words where they have several."""
    pyarrow = require("pyarrow", "frames")
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) == 2:
        values = [float(v) if isinstance(v, int | float) else None for v in values]
    elif len(kinds) > 1 or not kinds <= {str, bool, int, float, datetime}:
        values = [None if value is None else _as_word(value) for value in values]
    return pyarrow.array(values)


def _as_word(value: object) -> str:
    """A cell as it is shown: whole numbers without a point, days without a time."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == value.min.time():
        return value.date().isoformat()
    return str(value)


def write_workbook(names: Iterable[str], rows: Iterable[Iterable[object]], file: IO[bytes]) -> None:
    """Write a list as a workbook of one sheet; no cell is a formula."""
    openpyxl = require("openpyxl", "excel")
    cell_of = require("openpyxl.cell", "excel").WriteOnlyCell
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("list")

    def cell(value: object) -> object:
        if value is None or isinstance(value, bool | int | float | datetime | date):
            exact = not isinstance(value, int) or abs(value) < 10**15
            value = value if exact else str(value)  # a sheet has floats for numbers
        if not isinstance(value, str):
            return value
        made = cell_of(sheet, value=_without_controls(value)[:_LONGEST])
        made.data_type = "s"  # also where it starts with "=": a text, never a formula
        return made

    sheet.append([cell(str(name)) for name in names])
    for number, row in enumerate(rows, 2):
        if number > _MOST_ROWS:
            sheet.close()  # left open, it would complain when it is forgotten
            raise Failure(f"a sheet holds {_MOST_ROWS - 1} rows at most; write .csv or .parquet.")
        sheet.append([cell(value) for value in row])
    book.save(file)


def _without_controls(text: str) -> str:
    """The text with control characters, which a workbook cannot hold, written out."""
    return "".join(c if c >= " " or c in "\t\n\r" else visible(c) for c in text)
