"""What the command line meets rarely, each in a small case: odd files, full disks, terminals."""

import io
import os
import traceback

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toprank.cli import memory, terminal
from toprank.cli.io import tables
from toprank.cli.io.excel import _as_array
from toprank.cli.io.source import _check_complete
from toprank.cli.io.tables import open_table
from toprank.cli.io.text import find_undecodable_byte
from toprank.cli.options import check_output
from toprank.cli.reproduce import _experiments
from toprank.cli.show import _show_metrics
from toprank.cli.terminal import Failure


def test_a_workbook_of_charts_alone_has_no_cells(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.create_chartsheet("picture").add_chart(openpyxl.chart.BarChart())
    book.remove(book.active)
    book.save(tmp_path / "charts.xlsx")
    with (
        pytest.raises(Failure, match="has no sheet with cells"),
        open_table(tmp_path / "charts.xlsx") as source,
    ):
        source.read()


def test_large_whole_numbers_among_words_have_no_point():
    assert _as_array([1e16, "A7", None, 2.5]).to_pylist() == [
        "10000000000000000",
        "A7",
        None,
        "2.5",
    ]


def test_a_file_that_announces_more_rows_than_it_has_was_cut(tmp_path):
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    with pq.ParquetFile(tmp_path / "t.parquet") as file:
        _check_complete(3, file)
        with pytest.raises(OSError, match="it has 2 of the 3 rows that it announces"):
            _check_complete(2, file)


def test_a_file_that_is_written_to_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,2\n" * 50)
    with open_table(path) as source:
        path.write_text("x,y\n" + "1,2\n" * 70)
        with pytest.raises(Failure, match="was changed while it was read"):
            source._check_unchanged()
        path.unlink()
        source._check_unchanged()  # one that is gone could be read to its end


class FullDisk(io.RawIOBase):
    def readinto(self, buffer):
        raise OSError(28, "No space left on device")


def test_standard_input_that_cannot_be_kept_says_where_to_make_room():
    with pytest.raises(Failure, match=r"could not be kept in .*No space left.*TMPDIR"):
        with tables._keep_copy(FullDisk(), "standard input"):
            pass


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\x00b\x00", "BOM"),  # no mark of the order of its bytes
        (b"\xff\xfea\x00b", "line 1"),  # half a sign at the end
        ("\ufeffa,b\n1,2\n".encode("utf-16-le"), None),
    ],
)
def test_text_in_two_bytes_per_sign_is_read_or_its_fault_named(data, said):
    found = find_undecodable_byte("'t.csv'", lambda: io.BytesIO(data), "utf-16")
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    ("value", "said"),
    [("1,5", "add --decimal ,"), ("$ 12", "--as-number"), ("twelve", "")],
)
def test_a_number_that_is_written_in_another_way_has_its_remedy(tmp_path, value, said):
    path = tmp_path / "t.csv"
    path.write_text("x;y\n1;2\n")
    with open_table(path) as source:
        assert said in source._number_remedy(value) and bool(said) == bool(
            source._number_remedy(value)
        )


def test_a_container_leaves_what_its_limit_leaves(tmp_path, monkeypatch):
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / name.lstrip("/"))
    assert memory.free_memory() > 600_000  # without a group, and without a limit below
    (group / "memory.max").write_text("1000000\n")
    (group / "memory.current").write_text("400000\n")
    assert memory.free_memory() == 600_000
    (group / "memory.current").write_text("2000000\n")
    assert memory.free_memory() == 0
    (group / "memory.max").write_text("max\n")
    assert memory.free_memory() > 600_000


def test_an_output_that_may_not_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    path = tmp_path / "list.csv"
    path.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Failure, match=r"--output: .* is protected against writing"):
        check_output(path)


def test_on_a_terminal_nothing_of_a_text_acts(monkeypatch, capsys):
    terminal.print_lines("a\x1b[31mb\n")
    assert capsys.readouterr().out == "a\x1b[31mb\n"  # into a pipe it goes as it is
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    terminal.print_lines("a\x1b[31mb\nc\n")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and shown.startswith("a") and shown.endswith("c\n")


def test_a_traceback_quotes_without_letting_it_act(capsys):
    try:
        raise ValueError("bad\x1b]0;title\x07")
    except ValueError as error:
        terminal.show_traceback(ValueError, error, error.__traceback__)
        plain = traceback.format_exc()
    shown = capsys.readouterr().err
    assert "\x1b" in plain and "\x1b" not in shown and "\x07" not in shown
    assert shown.startswith("Traceback") and "ValueError: bad" in shown


def test_errors_of_the_system_name_their_file():
    said = terminal._error_text(PermissionError(13, "Permission denied.", "a.csv"))
    assert said == "'a.csv': Permission denied."
    assert terminal._error_text(OSError(5, "Input/output error")) == "Input/output error."
    assert [terminal.short_number(one) for one in (None, float("nan"), 0.123456)] == [
        *("", "", "0.1235")
    ]


def test_the_shell_completes_the_names_of_experiments():
    assert _experiments("colt-w") == ["colt-wdbc", "colt-wdbc-benign"]
    assert _experiments("nothing") == []


def test_notes_of_metrics_are_shown_below_them(capsys):
    metrics = {"intervals": [], "notes": ["too few [rows]"], "rows": 0, "how": "on no rows"}
    _show_metrics(terminal.console(), metrics)
    assert capsys.readouterr().out == "too few [rows]\nNot measured.\n"
