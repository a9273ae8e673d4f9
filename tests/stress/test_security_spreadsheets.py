"""With --excel-safe no cell of a list is a formula, in whatever country the list is opened."""

import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pyarrow = pytest.importorskip("pyarrow", reason="lists are Arrow tables")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from toprank.cli.app import app  # noqa: E402
from toprank.cli.listing import (  # noqa: E402
    without_formulas,
    write_listing,
)

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SIGNS = tuple("=+-@＝＋－＠")
texts = st.text(alphabet="=+-@\t\r\n;,|'\" ab1.e\0\x0b＝＋", max_size=12)


def is_formula(cell):
    """What a spreadsheet would run: a sign first, but for a plain number."""
    return cell.lstrip(' "').startswith(SIGNS) and not NUMBER.fullmatch(cell.strip(" "))


def careless(text, delimiter):
    """Cells as a program sees them that knows neither the delimiter nor the quotes of the list."""
    return [cell for line in re.split(r"[\r\n]", text) for cell in line.split(delimiter)]


@given(texts)
@example("=1+1")
@example("-2+3+cmd|' /C calc'!A0")
@example('a;"=1+1"')
@example("\t=1")
@example("x\r=1")
def test_no_text_starts_a_formula_wherever_cells_are_thought_to_start(text):
    told = str(without_formulas(text))
    assert not is_formula(told) and not told.startswith(("\t", "\r", "\n", "\0"))
    if not NUMBER.fullmatch(text.strip(" ")):
        for delimiter in ",;|\t":
            assert not any(map(is_formula, careless(told, delimiter)))
    # nothing is lost but for the apostrophes that were put in
    assert told.replace("'", "") == text.replace("'", "")


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.decimals()))
def test_numbers_stay_numbers(value):
    assert without_formulas(value) is value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_that_came_as_text_stay_as_they_are(value):
    for text in (repr(value), f"{value:+}", f"{value:e}"):
        assert without_formulas(text) == text


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ";"), ("tsv", ","), ("csv.gz", "\t")])
@given(
    ids=st.lists(texts, min_size=1, max_size=5),
    name=texts.filter(lambda s: s not in ("score", "rank")),
)
def test_a_list_opened_with_any_delimiter_has_no_formula(
    tmp_path_factory, ending, delimiter, ids, name
):
    path = tmp_path_factory.getbasetemp() / f"list-{ord(delimiter)}.{ending}"
    rows = pyarrow.table({name: ids, "score": [-1.5] * len(ids), "rank": range(1, len(ids) + 1)})
    write_listing(rows, path, excel_safe=True)
    data = path.read_bytes()
    if ending.endswith("gz"):
        import gzip

        data = gzip.decompress(data)
    right = "\t" if ending == "tsv" else ","
    text = data.decode("utf-8-sig")  # a spreadsheet needs the mark, and takes it off
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=right))
    assert len(read) == 1 + len(ids) and all(row[1] == "-1.5" for row in read[1:])
    assert not any(is_formula(row[0]) for row in read)
    # a number among the ids may stay one; all else is harmless in whatever cells it is cut
    for cell in careless(text, delimiter):
        # a line read as one cell may begin with a number, and end in more of them
        first = re.split(r"[,;|\t]", cell.strip('" '))[0].strip('" ')
        assert not is_formula(cell) or NUMBER.fullmatch(first), cell


def test_without_the_option_texts_are_written_as_they_are(tmp_path):
    rows = pyarrow.table({"id": ["=1+1", "-x"], "score": [0.5, -1.0]})
    write_listing(rows, tmp_path / "list.csv")
    assert (tmp_path / "list.csv").read_text() == "id,score\n=1+1,0.5\n-x,-1.0\n"


def test_every_command_that_writes_csv_has_the_option():
    from typer.main import get_command

    commands = get_command(app).commands
    of_text = {
        name
        for name, command in commands.items()
        if any(".csv" in (one.help or "") and "-o" in one.opts for one in command.params)
    }
    safe = {
        name
        for name, command in commands.items()
        if any("--excel-safe" in one.opts for one in command.params)
    }
    assert of_text == safe == {"rank", "select"}
