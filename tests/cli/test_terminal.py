"""What every command does alike: help, exit codes, streams, completion, and what it escapes."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.cli import exit_codes
from toprank.cli.app import app
from toprank.cli.terminal import names, safe, say

COMMANDS = [command.name for command in app.registered_commands]
PRINT_RESULTS = [name for name in COMMANDS if name != "export"]


def test_the_commands_are_those_of_the_design():
    assert {
        *("fit", "rank", "evaluate", "compare", "report", "demo", "reproduce", "bounds"),
        *("check", "choose-p", "diff", "monitor", "show", "export", "select"),
    } == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(invoke, words, command):
    answer = invoke(command, "--help")
    text = words(answer.stdout)
    assert answer.exit_code == 0 and "Example" in text and f"toprank {command} " in text
    assert ("--json" in text) == (command in PRINT_RESULTS)
    assert invoke(command, "-h").stdout == answer.stdout


def test_a_command_with_a_slip_is_answered_with_the_right_one(invoke, words):
    answer = invoke("evalute", "x")
    assert answer.exit_code == 2 and "evaluate" in words(answer.stderr)


def test_asking_for_help_does_not_load_the_library():
    code = (
        "import sys; from typer.testing import CliRunner; from toprank.cli.app import app\n"
        "for one in ([], ['fit'], ['rank'], ['choose-p'], ['demo'], ['report']):\n"
        "    assert CliRunner().invoke(app, [*one, '--help']).exit_code == 0\n"
        "print([m for m in ('sklearn', 'numpy', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_card_is_shown_without_scikit_learn_and_the_process_leaves_at_once(model):
    code = (
        "import atexit, sys; sys.argv = ['toprank', 'show', sys.argv[1]]\n"
        "from toprank.cli.__main__ import run\n"
        "class Last:\n    def __del__(self, say=print):\n        say('taken down')\n"
        "sys.last = Last()\n"
        "slow = 'sklearn', 'scipy', 'pandas', 'pyarrow', 'toprank.cli.fit'\n"
        "atexit.register(lambda: print([one for one in slow if one in sys.modules]))\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("[]\n"), done.stdout + done.stderr


def test_a_process_with_work_left_ends_as_python_ends_it():
    code = (
        "import sys, threading, time; sys.argv = ['toprank', sys.argv[1]]\n"
        "from toprank.cli.__main__ import run\n"
        "threading.Thread(target=lambda: (time.sleep(0.5), print('done'))).start()\n"
        "run()"
    )
    for word, status in (("--version", 0), ("no-such-command", 2)):
        done = subprocess.run(
            [sys.executable, "-c", code, word], capture_output=True, text=True, check=False
        )
        assert done.returncode == status and "done" in done.stdout.splitlines()


@pytest.mark.more
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell):
    def complete(words, place):
        variables = {"bash": "complete_bash", "zsh": "complete_zsh", "fish": "complete_fish"}
        env = os.environ | {
            "_TOPRANK_COMPLETE": variables[shell],
            "COMP_WORDS": words,
            "COMP_CWORD": str(place),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        done = subprocess.run(
            [sys.executable, "-m", "toprank.cli"],
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
        return done.stdout

    assert "evaluate" in complete("toprank ev", 1)
    assert "smooth-margin" in complete("toprank fit --model smo", 3)


@given(st.text())
def test_nothing_that_is_shown_can_steer_a_terminal(text):
    shown = safe(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


def test_what_is_said_stays_on_stderr_and_on_its_lines(capsys):
    say("first \x1b[31m\nsecond \r line")
    out, err = capsys.readouterr()
    assert out == "" and err == "toprank: first \\x1b[31m\n  second \n   line\n"


def test_many_names_are_cut_short():
    assert names("abc") == "a, b, c"
    assert names(range(100), most=3) == "0, 1, 2 and 97 more"


ESCAPE = "\x1b[31mred"


@pytest.mark.more
def test_names_and_values_of_the_data_are_shown_as_text(frame, tmp_path, invoke):
    table, model = tmp_path / "t.csv", tmp_path / "m"
    hostile = frame.rename(columns={"age": f"age{ESCAPE}[bold]", "customer": f"id{ESCAPE}"})
    hostile[f"id{ESCAPE}"] = [f"{ESCAPE}{i}" for i in range(len(frame))]
    hostile["city"] = hostile.city.replace("Oslo", f"Oslo{ESCAPE}")
    hostile.to_csv(table, index=False)
    fitted = invoke("fit", table, "-y", "bought", "--id", f"id{ESCAPE}", "--p", 2, "-o", model)
    assert fitted.exit_code == 0, fitted.output
    answers = [
        fitted,
        invoke("rank", model, table, "--top", "40"),
        invoke("rank", model, table, "--top", "40", "--json"),
        invoke("evaluate", model, table),
        invoke("monitor", model, table),
        invoke("show", model),
        invoke("fit", table, "-y", f"{ESCAPE}y", "-o", model),
        invoke("fit", table, "-y", "city", "-o", model),
        invoke("rank", model, tmp_path / f"no{ESCAPE}"),
    ]
    for answer in answers:
        assert "\x1b" not in answer.output, answer.output
        assert "Traceback" not in answer.output
    assert "\\x1b[31mred[bold]" in fitted.stdout  # no markup either
    assert [answer.exit_code for answer in answers[-3:]] == [2, 2, 2]


def test_a_fault_of_toprank_itself_is_told_from_bad_input(train, invoke, words, monkeypatch):
    def fail(*_, **__):
        raise KeyError("inner")

    monkeypatch.setattr("toprank.models.fit_table", fail)
    arguments = ["fit", train, "-y", "bought", "-o", train.with_name("never")]
    answer = invoke(*arguments)
    assert answer.exit_code == exit_codes.FAULT and "--traceback" in words(answer.stderr)
    assert "Traceback" not in answer.output and not train.with_name("never").exists()
    shown = invoke("--traceback", *arguments)
    assert isinstance(shown.exception, KeyError)


def test_running_out_of_memory_is_said(train, invoke, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("toprank.models.fit_table", fail)
    answer = invoke("fit", train, "-y", "bought", "-o", train.with_name("never"))
    assert answer.exit_code == 2 and "not enough memory" in answer.stderr


def test_warnings_of_the_library_become_notes(train, invoke, monkeypatch):
    def warn(*_, **__):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("the solver stopped early", RuntimeWarning, stacklevel=2)
            warnings.warn("an argument will change", FutureWarning, stacklevel=2)
        raise ValueError("enough")

    monkeypatch.setattr("toprank.models.fit_table", warn)
    arguments = ["fit", train, "-y", "bought", "-o", train.with_name("never")]
    answer = invoke(*arguments)
    assert answer.stderr == "toprank: note: the solver stopped early\ntoprank: enough\n"
    assert invoke(*arguments, "-q").stderr == "toprank: enough\n"


def test_ctrl_c_in_a_command_is_one_line_and_leaves_the_old_file(
    train, invoke, tmp_path, monkeypatch
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    path = tmp_path / "model"
    path.write_bytes(b"old")
    monkeypatch.setattr("toprank.models.fit_table", interrupt)
    answer = invoke("fit", train, "-y", "bought", "-o", path)
    assert answer.exit_code == 130
    assert (
        answer.stderr == "toprank: interrupted; no file is half-written.\n" and answer.stdout == ""
    )
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def wait_until_idle(pid):
    """Until a process has used no processor time for two seconds, one after the other."""
    process, used, quiet = psutil.Process(pid), -1.0, 0
    while quiet < 2:
        quiet = quiet + 1 if used == (used := sum(process.cpu_times()[:2])) else 0
        time.sleep(1.0)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_a_real_interrupt_ends_with_130(tmp_path):
    code = (
        "import signal, sys; sys.argv = ['toprank', *sys.argv[1:]]\n"
        # a job in the background, as this one may be, is started deaf to interrupts
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from toprank.cli import main\nprint('ready', flush=True)\nmain()"
    )
    arguments = ["fit", "-", "-y", "y", "-o", str(tmp_path / "model")]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout.readline() == b"ready\n"
    wait_until_idle(running.pid)  # until it waits for the table
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130 and out == b""
    assert err == b"toprank: interrupted; no file is half-written.\n"
    assert not (tmp_path / "model").exists()


@pytest.mark.more
@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX")
def test_a_reader_that_leaves_is_no_error(model, train):
    code = (
        "import sys, subprocess\n"
        "run = subprocess.Popen([sys.executable, '-m', 'toprank.cli', 'rank', *sys.argv[1:]],\n"
        "    stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "run.stdout.close()\n"
        "print(run.stderr.read().decode(), end='')\n"
        "sys.exit(run.wait())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model), str(train), "--all", "-o", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "" and done.returncode == exit_codes.PIPE_CLOSED


@pytest.mark.more
def test_progress_is_drawn_on_terminals_only(model, train, invoke):
    answer = invoke("evaluate", model, train, "--json")
    assert answer.stderr == "" and json.loads(answer.stdout)


def test_the_command_line_can_be_called_twice_in_one_process(monkeypatch, capsys):
    from toprank.cli import main

    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["toprank", "bounds", "--help"])
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
