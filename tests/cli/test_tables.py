"""Tables in every format: what is found out, what is said, and rows some at a time."""

import gzip
import io
import os
import sys
import threading
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from toprank.cli.io import source as source_module
from toprank.cli.io import text as text_table
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.terminal import Failure


def read(path, **reading):
    with open_table(path, Reading(**reading), quiet=True) as source:
        return source.read()


def in_chunks(path, types=None):
    with open_table(path, quiet=True) as source:
        return list(source.chunks(source.columns, types or {}))


@pytest.fixture
def text(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5, 1.5, None]})


def as_csv(table):
    out = io.BytesIO()
    pa.csv.write_csv(table, out)
    return out.getvalue()


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


WRITERS = {
    "csv": lambda t, p: p.write_bytes(as_csv(t)),
    "csv.gz": lambda t, p: p.write_bytes(gzip.compress(as_csv(t))),
    "tsv": lambda t, p: p.write_bytes(as_csv(t).replace(b",", b"\t")),
    "parquet": parquet.write_table,
    "feather": feather.write_feather,
    "arrow": feather.write_feather,
    "arrows": write_stream,
}


@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](TABLE, path)
    assert read(path).to_pydict() == TABLE.to_pydict()
    parts = in_chunks(path)
    assert pa.concat_tables([part.rows for part in parts]).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_come_in_chunks_in_their_order(tmp_path, ending, monkeypatch):
    monkeypatch.setattr(source_module, "_CELLS", 1)  # chunks of a thousand rows
    monkeypatch.setattr(text_table, "_BLOCK", 10_000)
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](pa.table({"a": range(5_000), "b": [str(i) for i in range(5_000)]}), path)
    parts = in_chunks(path)
    assert len(parts) >= 5 and all(part.rows.num_rows <= 1_000 for part in parts)
    assert pa.concat_tables([part.rows for part in parts]).column("a").to_pylist() == [*range(5000)]
    assert [part.start for part in parts][1] == parts[0].rows.num_rows
    assert parts[-1].total is None or 0 < parts[-1].done <= parts[-1].total
    with open_table(path) as source:
        assert source.count_rows() == 5_000


def test_the_content_says_the_format_not_the_name(tmp_path):
    path = tmp_path / "table.csv"
    parquet.write_table(TABLE, path)
    assert read(path).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(text, delimiter):
    lines = ["name,note,n", '"Smith, J.","a; b | c",1', "Lee,plain,2"]
    path = text("\n".join(line if delimiter == "," else swap(line, delimiter) for line in lines))
    assert read(path).column_names == ["name", "note", "n"]
    assert read(path).column("n").to_pylist() == [1, 2]


def swap(line, delimiter):
    """Another delimiter outside quotes."""
    parts = line.split('"')
    return '"'.join(p if i % 2 else p.replace(",", delimiter) for i, p in enumerate(parts))


def test_a_delimiter_may_be_named(text):
    path = text("a:b\n1:2\n")
    assert read(path).column_names == ["a:b"]
    assert read(path, delimiter=":").to_pydict() == {"a": [1], "b": [2]}


def test_decimal_commas_are_read_where_no_number_has_a_point(text):
    assert read(text("a;b\n1,5;x\n2;y\n")).column("a").to_pylist() == [1.5, 2.0]
    assert read(text("a;b\n1,5;2.5\n")).column("a").to_pylist() == ["1,5"]
    assert read(text("a;b\n1,5;2.5\n"), decimal=",").column("a").to_pylist() == [1.5]
    assert read(text("a;b\n1,5;x\n"), decimal=".").column("a").to_pylist() == ["1,5"]


def test_words_for_missing_values_may_be_named(text):
    path = text("a,b\n1,?\n?,2\nNA,3\n")
    assert read(path).column("a").to_pylist() == ["1", "?", None]
    assert read(path, missing=("?",)).to_pydict() == {"a": [1, None, None], "b": [None, 2, 3]}


def test_a_type_holds_for_the_whole_column(text, monkeypatch):
    monkeypatch.setattr(text_table, "_BLOCK", 1_000)
    path = text("a\n" + "1\n" * 2_000 + "x\n")
    assert read(path).column("a").to_pylist()[-1] == "x"


def test_types_that_are_given_do_not_hang_on_the_first_rows(text, monkeypatch):
    monkeypatch.setattr(text_table, "_BLOCK", 1_000)
    path = text("a,b\n" + "1,1\n" * 2_000 + "1.5,0007\n")
    parts = in_chunks(path, {"a": pa.float64(), "b": pa.string()})
    last = parts[-1].rows.to_pylist()[-1]
    assert last == {"a": 1.5, "b": "0007"}


def test_an_encoding_may_be_named(text):
    path = text("a,b\n1,é\n".encode("latin-1"))
    assert read(path, encoding="latin-1").column("b").to_pylist() == ["é"]
    with pytest.raises(Failure, match="no encoding 'klingon'"):
        read(path, encoding="klingon")


def test_what_is_not_utf8_is_named_by_line_and_byte(text):
    path = text("a,b\n1,x\n2,é\n".encode("latin-1"))
    with pytest.raises(Failure, match=r"line 3 holds the byte 0xe9 \(byte 10"):
        read(path)
    with pytest.raises(Failure, match="line 3"):
        in_chunks(path)


@pytest.mark.more
@given(st.text(max_size=40), st.binary(max_size=3), st.text(max_size=40))
def test_the_first_byte_that_cannot_be_read_is_the_one_python_names(tmp_path_factory, a, bad, b):
    from toprank.cli.io.text import find_undecodable_byte

    data = a.encode() + bad + b.encode()
    failure = find_undecodable_byte("it", lambda: io.BytesIO(data), "utf-8")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        assert f"byte {error.start} of" in str(failure)
        assert f"line {data[: error.start].count(10) + 1} " in str(failure)
    else:
        assert failure is None


def test_lines_are_counted_as_an_editor_counts_them(text):
    path = text('a,b\n1,"two\nlines"\n\n2,3\n4\n')
    with pytest.raises(Failure, match=r"line 6: 1 field"):
        read(path)


def test_a_quotation_mark_left_open_is_named(text, monkeypatch):
    monkeypatch.setattr(text_table, "_BLOCK", 1_000)
    path = text('a,b\n1,2\n3,"x\n' + "4,5\n" * 1_000)
    with pytest.raises(Failure, match=r"line 3: .* quotation mark left open"):
        read(path)


def test_columns_without_a_name_are_left_out_with_a_note(text, capsys):
    with open_table(text(",a,b\n0,1,2\n1,3,4\n")) as source:
        assert source.read().column_names == ["a", "b"]
    assert "without a name" in capsys.readouterr().err
    with pytest.raises(Failure, match="no column names"):
        read(text(",,\n1,2,3\n"))


def test_dates_are_times_of_day_zero(text):
    table = read(text("a\n2026-01-31\n"))
    assert str(table.schema.field("a").type) == "timestamp[ms]"


@pytest.mark.skipif(os.name != "posix", reason="named pipes are those of POSIX")
def test_a_pipe_with_a_name_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(as_csv(TABLE),))
    writer.start()
    assert read(path).to_pydict() == TABLE.to_pydict()
    writer.join()


def test_standard_input_is_a_table_of_any_format(monkeypatch):
    out = io.BytesIO()
    parquet.write_table(TABLE, out)
    for content in (as_csv(TABLE), out.getvalue()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with open_table("-") as source:
            assert source.name == "standard input"
            assert source.read().to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize(
    "content",
    [
        "<!DOCTYPE html>\n<html><p>Please, sign in</p></html>",
        "<html>",
        "\ufeff  <HTML lang='en'>\n",
    ],
)
def test_a_web_page_saved_as_csv_is_called_one(text, content):
    with pytest.raises(Failure, match=r"is a web page.*download the table itself"):
        read(text(content))


@pytest.mark.parametrize("content", ['{"a": 1}\n{"a": 2}\n', '[{"a": 1}]', "[\n {}\n]"])
def test_json_saved_as_csv_is_called_that(text, content):
    with pytest.raises(Failure, match="holds JSON"):
        read(text(content))


def test_names_that_only_look_like_markup_are_names(text):
    assert read(text("<5,{x}\n1,2\n")).column_names == ["<5", "{x}"]


def test_check_takes_the_option_that_it_proposes_for_rows_without_a_label(tmp_path, invoke):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{j % 7},{'' if j == 3 else j % 2}\n" for j in range(40)))
    assert "--skip-unlabelled" in invoke("check", path, "-y", "y").stdout
    assert "--skip-unlabelled" not in invoke("check", path, "-y", "y", "--skip-unlabelled").stdout


def test_standard_input_is_kept_in_a_folder_where_files_need_a_name(monkeypatch):
    """As on systems without /proc."""
    own = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: path.parts[1:2] != ("proc",) and own(path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_csv(TABLE))))
    with open_table("-") as source:
        kept = source.file
        assert kept.parent.name.startswith("toprank-")
        assert source.read().to_pydict() == TABLE.to_pydict()
    assert not kept.parent.exists()


@pytest.mark.parametrize(
    ("content", "reading", "message"),
    [
        ("<?xml version='1.0'?><rows/>", {}, "holds XML; expected a table as CSV"),
        ("\ufeffa,b\n1,2\n", {"encoding": "latin-1"}, "says that it is UTF-8; leave out --enc"),
        ("a,b\n1,2\n", {"encoding": "utf-16"}, "is not UTF-16"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, "there is no encoding 'klingon'"),
    ],
)
def test_a_text_that_is_another_one_is_named(text, content, reading, message):
    with pytest.raises(Failure, match=message):
        read(text(content), **reading)


def test_a_long_text_does_not_hide_the_delimiter(text):
    long = "x" * 140_000
    assert read(text(f'a;b\n1;"{long}"\n2;y\n'))["b"].to_pylist() == [long, "y"]


def test_names_that_come_again_get_numbers_that_are_free(text):
    table = read(text("x,x.2,x,x\n1,2,3,4\n"), rename_duplicates=True)
    assert table.to_pydict() == {"x": [1], "x.2": [2], "x.3": [3], "x.4": [4]}


def test_files_are_asked_for_where_folders_and_addresses_are_given(tmp_path, invoke, words):
    for place, said in ((tmp_path, "is a folder"), ("s3://b/m", "'s3://b/m' is an address")):
        refused = invoke("show", place)
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


def test_a_list_is_written_like_its_table_where_that_can_be(tmp_path):
    from toprank.cli.io.dialect import TextDialect
    from toprank.cli.listing import write_listing

    rows, path = pa.table({"who": ["Łódź"], "score": [1.5]}), tmp_path / "list.csv"
    write_listing(rows, path, dialect=TextDialect("latin-1", ",", ","))
    # Latin 1 has no Ł, and a comma cannot be both
    assert path.read_bytes().decode("utf-8-sig").splitlines() == ["who,score", "Łódź,1.5"]


@pytest.mark.more
def test_cells_of_several_kinds_are_the_words_that_the_sheet_shows(tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in (
        ("code", "when", "n", None),
        (7.0, datetime(2024, 5, 1), 1, None),
        ("A7", "soon", 2.5, None),
        (None, None, None, None),
        (None, datetime(2024, 5, 1, 12), 3, None),
    ):
        book.active.append(row)
    book.create_sheet("second").append(["x"])
    book.save(tmp_path / "t.xlsx")
    with open_table(tmp_path / "t.xlsx") as source:
        found = source.read().to_pydict()
    assert found == {
        "code": ["7", "A7", None],
        "when": ["2024-05-01", "soon", "2024-05-01 12:00:00"],
        "n": [1.0, 2.5, 3.0],
    }
    assert "the first of 2 sheets, 'first', is read" in capsys.readouterr().err


def test_a_list_longer_than_a_sheet_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    from toprank.cli.listing import write_listing

    monkeypatch.setattr("toprank.cli.io.excel._MOST_ROWS", 3)
    with pytest.raises(Failure, match="a sheet holds 2 rows at most"):
        write_listing(TABLE, tmp_path / "list.xlsx")
    assert not list(tmp_path.iterdir())
