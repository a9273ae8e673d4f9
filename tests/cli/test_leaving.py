"""How the command line leaves, and what it says of packed and of odd text."""

import gzip
import io
import signal
import threading

import pytest
from typer.testing import CliRunner

from toprank import cli
from toprank.cli import __main__ as program
from toprank.cli.app import app
from toprank.cli.exit_codes import INTERRUPTED, INTERRUPTED_NOTE
from toprank.cli.io.tables import open_table
from toprank.cli.io.text import find_undecodable_byte
from toprank.cli.terminal import Failure


class Left(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def ends(monkeypatch):
    """The codes that the process was ended with; signals and the collector stay as they are."""
    codes = []

    def leave(code):
        codes.append(code)
        raise Left

    monkeypatch.setattr("os._exit", leave)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    monkeypatch.setattr("gc.set_threshold", lambda *given: None)
    return codes


def test_an_interrupt_before_a_command_is_told_and_ends_at_once(ends, monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run_app", interrupted)
    with pytest.raises(Left):
        cli.main()
    assert ends == [INTERRUPTED] and INTERRUPTED_NOTE in capsys.readouterr().err


def test_an_interrupt_that_numba_hides_is_an_interrupt(monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("toprank.reproduce.run", interrupted)
    done = CliRunner().invoke(app, ["reproduce", "one-dimension", "-q", "-o", str(tmp_path / "r")])
    assert done.exit_code == INTERRUPTED and INTERRUPTED_NOTE in done.stderr


class Gone(io.StringIO):
    def flush(self):
        raise BrokenPipeError


def test_nobody_who_reads_is_no_reason_to_stay(ends, monkeypatch):
    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(Left):
        cli._leave_at_once()
    assert ends == [INTERRUPTED]


@pytest.mark.parametrize(("code", "left"), [(None, [0]), (0, [0]), (3, [3]), ("a message", [])])
def test_the_program_ends_with_its_code_and_leaves_messages_to_python(
    ends, monkeypatch, code, left
):
    def run():
        raise SystemExit(code)

    monkeypatch.setattr(program, "main", run)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    with pytest.raises(Left if left else SystemExit):
        program.run()
    assert ends == left


def test_the_program_waits_for_threads_and_for_output_that_cannot_be_written(ends, monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert program._leave(0) is None
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr("sys.stdout", Gone())
    assert program._leave(0) is None
    assert ends == []


def test_a_wrong_number_in_a_whole_packed_file_is_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 50 + b"odd,2\n"))
    pa = pytest.importorskip("pyarrow")
    with (
        pytest.raises(Failure, match=r"column 'x' holds 'odd', expected"),
        open_table(path) as source,
    ):
        source.read(["x"], {"x": pa.float64()})


def test_text_without_the_mark_of_its_encoding_is_refused():
    found = find_undecodable_byte("t.csv", lambda: io.BytesIO(b"x,y\n1,2\n"), "utf-16")
    assert "t.csv" in str(found) and "utf-16" in str(found).lower()
