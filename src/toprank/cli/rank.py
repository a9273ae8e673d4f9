"""`toprank rank`: the top of a list, with reasons, from a table of any length; and its files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from toprank._extras import require
from toprank._files import replace_file
from toprank._text import plain
from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.options import Data, Json, Model, Quiet, check_output, parse_k, reads
from toprank.cli.terminal import (
    Failure,
    Step,
    cells,
    console,
    note,
    print_json,
    progress,
    safe,
    short_number,
    table,
)

if TYPE_CHECKING:
    from toprank._numerics import FloatArray
    from toprank.models import Reason, TableModel
    from toprank.models.top_of_list import RunningTop

_AT_A_TIME = 10_000  # rows whose reasons are worked out together


@reads
def rank(
    model: Model,
    data: Data,
    top: Annotated[
        str, typer.Option("--top", help="How many rows: a count (100) or a share (0.01).")
    ] = "100",
    whole: Annotated[
        bool, typer.Option("--all", help="Every row, the highest score first.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, by its ending: .csv, .tsv, .jsonl (also with .gz), .parquet, "
            ".feather; - for CSV on stdout. Replaced if it is there.",
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry along, besides the model's id; may be repeated."),
    ] = None,
    reasons: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many reasons to give for each row.", show_default="3; 0 with --all"
        ),
    ] = None,
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe",
            help="Put an apostrophe before texts that a spreadsheet would run as a formula "
            "(CSV and TSV); numbers stay numbers.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Rank the rows of a table and keep the first ones, each with its reasons.

    The table is read some rows at a time, so that it may be longer than the memory; only the rows
    kept are held, all of them with --all. Rows of equal score stand in the order of the
    table, and `tied_at_the_cut` says where such rows were left out.
    """
    k = 1.0 if whole else parse_k(top, "--top")
    if as_json and output is not None:
        raise Failure("give --json or --output, not both; an output may end in .jsonl.")
    n_reasons = (0 if whole else 3) if reasons is None else reasons
    check_listing(output, [model, data])
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model

    loaded = load_model(model)
    with open_table(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        found = read_top(loaded, source, k, list(id or ()), n_reasons, step)
    if as_json:
        print_json(records(found))
    elif output is None:
        show_listing(found.listing)
    else:
        write_listing(found.listing, output, excel_safe)
    if found.tied_out:
        note(
            f"{found.tied_out} row(s) with the last score, {found.scores[-1]:.6g}, were left out.",
            quiet,
        )
    if output is not None and str(output) != "-":
        note(f"wrote the first {len(found.scores)} of {found.n} rows to '{output}'.", quiet)


@dataclass(frozen=True)
class Ranked:
    """The first rows of a table.

    Attributes
    ----------
    listing : pyarrow.Table
        What names the rows, `score`, `rank`, `reasons` and `tied_at_the_cut`.
    scores : array
    reasons : list of lists of Reason
    tied_out : int
        How many rows with the last score were left out.
    n : int
        How many rows the table has.
    """

    listing: Any
    scores: FloatArray
    reasons: list[list[Reason]]
    tied_out: int
    n: int


def read_top(
    model: TableModel,
    source: Source,
    k: int | float,
    carried: Sequence[str],
    n_reasons: int,
    step: Step,
) -> Ranked:
    """Rank a table and return its first rows.

    Parameters
    ----------
    model : TableModel
    source : Source
    k : int or float
        How many rows: a count or a share.
    carried : sequence of str
        Columns of the table that are wanted in the list, besides the model's id.
    n_reasons : int
    step : callable
        Called with how far the reading is.
    """
    from toprank.cli.scoring import score_chunks
    from toprank.models.top_of_list import RunningTop

    source.check_columns(dict.fromkeys(carried, "--id"))
    ids = [model.schema.id] if model.schema.id in source.columns else []
    names = list(dict.fromkeys([*ids, *carried]))
    needed = model.schema.names if n_reasons else model.schema.names[:1]
    kept = RunningTop(_rows_to_keep(source, k))
    for chunk, scores in score_chunks(model, source, step, names):
        kept.add(scores, _beside(chunk.rows.select(needed), chunk.carried))
    kept.settle()
    reasons = _find_reasons(model, kept.rows, n_reasons, step)
    return Ranked(_listing(kept, names, reasons), kept.scores, reasons, kept.tied_out, kept.n)


def _beside(rows: Any, carried: Any) -> Any:
    """A table with the carried columns too, under names that no column has."""
    for place, column in enumerate(carried.columns if carried is not None else ()):
        rows = rows.append_column(_carried_name(place), column)
    return rows


def _carried_name(place: int) -> str:
    return f"\0carried {place}"


def _rows_to_keep(source: Source, k: int | float) -> int | None:
    """How many rows to keep, None for all; a share needs to know how many there are."""
    if isinstance(k, int):
        return k
    return None if k == 1 else max(1, math.ceil(k * source.count_rows()))


def _find_reasons(model: TableModel, rows: Any, n: int, step: Step) -> list[list[Reason]]:
    from toprank.models import ModelWarning

    total = rows.num_rows
    found: list[list[Reason]] = []
    for start in range(0, total if n else 0, _AT_A_TIME):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
            found += model.reasons(rows.slice(start, _AT_A_TIME), n)
        step("Finding the reasons", len(found), total)
    return found


def _listing(kept: RunningTop, names: list[str], reasons: list[list[Reason]]) -> Any:
    from toprank.models.top_of_list import id_name

    columns: dict[str, Any] = {
        id_name(name): kept.rows.column(_carried_name(place)) for place, name in enumerate(names)
    }
    if not columns:
        columns["row"] = kept.places + 1
    columns["score"] = kept.scores
    columns["rank"] = range(1, len(kept.scores) + 1)
    if reasons:
        columns["reasons"] = ["; ".join(map(str, one)) for one in reasons]
    tied = (kept.scores == kept.cut) & (kept.tied_out > 0)
    return require("pyarrow", "frames").table({**columns, "tied_at_the_cut": tied})


def records(found: Ranked) -> list[dict[str, Any]]:
    """The list as plain values; a reason is its column, the value there and what it adds."""
    rows = found.listing.to_pylist()
    for row, reasons in zip(rows, found.reasons, strict=False):
        row["reasons"] = [one._asdict() for one in reasons]
    return rows


#: Signs that start a formula, also in the width of Chinese and Japanese letters.
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: A place where a cell starts, then spaces and quotes, then a sign.
_FORMULA = re.compile(rf"(?:\A|(?<=[,;|\t\r\n]))(?=[ \"]*[{_SIGNS}])")
_CONTROL_FIRST = re.compile(r"\A(?=[\x00-\x1f])")
_NUMBER_TEXT = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", re.ASCII)
_ENDINGS = ("csv", "tsv", "parquet", "jsonl", "feather", "arrow", "gz")


def check_listing(output: Path | None, read: Iterable[Path]) -> None:
    """Refuse an output that cannot be written; "-" is stdout."""
    if output is not None and str(output) != "-":
        check_output(output, _ENDINGS, [path for path in read if str(path) != "-"])
        _file_format(output)


def write_listing(rows: Any, output: Path, excel_safe: bool = False) -> None:
    """Write an Arrow table to a file, whole or not at all, or to stdout as CSV."""
    if str(output) == "-":
        _write_csv(rows, _Stdout(), ",", excel_safe)
        sys.stdout.flush()
        return
    kind = _file_format(output)
    with replace_file(output) as file:
        if kind == "parquet":
            require("pyarrow.parquet", "frames").write_table(rows, file)
        elif kind in ("feather", "arrow"):
            require("pyarrow.feather", "frames").write_feather(rows, file)
        else:
            _write_text(rows, file, kind, output.suffix.lower() == ".gz", excel_safe)


def _file_format(output: Path) -> str:
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
        for row in _iterate_rows(rows):
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
    writer = csv.writer(_LinesWithoutReturn(text), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(row(rows.schema.names))
    for record in _iterate_rows(rows):
        writer.writerow(row(record.values()))


def without_formulas(value: Any) -> Any:
    r"""Return the value of a cell with an apostrophe before what would be run as a formula.

    A spreadsheet runs a cell that starts with a sign such as ``=``. A text can bring such a cell
    along in its middle too: where a table with commas is opened with semicolons, as in half of
    Europe, the quotes around a cell do not count, and ``a;=1+1`` is two cells. Numbers stay
    numbers, also those that come as text.

    Examples
    --------
    >>> from toprank.cli.rank import without_formulas
    >>> without_formulas("=1+1"), without_formulas("a;@b"), without_formulas("-1.5")
    ("'=1+1", "a;'@b", '-1.5')
    """
    if value is None or isinstance(value, bool | int | float | Decimal):
        return value
    text = str(value)
    if _NUMBER_TEXT.fullmatch(text):
        return text
    return _CONTROL_FIRST.sub("'", _FORMULA.sub("'", text))


def _iterate_rows(rows: Any) -> Iterable[dict[str, Any]]:
    for batch in rows.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


class _LinesWithoutReturn:
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
    for row in _iterate_rows(rows):
        shown = (short_number(value) if name not in texts else value for name, value in row.items())
        drawn.add_row(*cells(*("" if value is None else value for value in shown)))
    console().print(drawn)
