"""No name, value or file steers a terminal, a page or a picture, and no command phones out."""

import re
import socket
import unicodedata
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="models are written with the extra models")
pd = pytest.importorskip("pandas", reason="the table is a pandas data frame")

from typer.testing import CliRunner  # noqa: E402

from toprank._text import visible  # noqa: E402
from toprank.cli.app import app  # noqa: E402

#: Escape sequences of seven and eight bits, a bell, a return, a turned direction, markup.
HARM = "\x1b[31m\x9b2J\x07\r\u202e\u2066\u2028<script>alert(1)</script>[bold]&|$\\x`"
NAME = "\x1b]0;owned\x07\u202e<b>[red]"  # fit for a file name


def harmful(text):
    """Characters that act: controls but line feeds, and marks of direction."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return sorted({c for c in text if unicodedata.category(c) in kinds and c != "\n"})


@pytest.fixture(scope="module")
def offline():
    """Every way out of the process is closed."""

    def refuse(*_, **__):
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
            patch.setattr(socket, name, refuse)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shown")


@pytest.fixture(scope="module")
def invoke(offline):
    def call(*arguments):
        runner = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"})
        return runner.invoke(app, [str(one) for one in arguments])

    return call


@pytest.fixture(scope="module")
def table(folder):
    """A table in which nothing is harmless; the harm in a name is kept to one line."""
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame({f"x{HARM}": rng.normal(size=n).round(3), "z": rng.normal(size=n)})
    frame[f"city{HARM}"] = np.where(rng.random(n) < 0.5, f"Oslo{HARM}", "Rome")
    frame[f"id{HARM}"] = [f"{i}{HARM}" for i in range(n)]
    chance = frame.iloc[:, 0] + (frame.iloc[:, 2] == "Rome") + rng.normal(size=n)
    frame[f"y{HARM}"] = np.where(chance > 1, f"yes{HARM}", f"no{HARM}")
    path = folder / f"table{NAME}.parquet"
    frame.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def answers(invoke, table, folder):
    """What every command says about that table."""
    target, positive = f"y{HARM}", f"yes{HARM}"
    model, other = folder / f"model{NAME}", folder / f"other{NAME}"
    fitting = ["fit", table, "-y", target, "--positive", positive, "--id", f"id{HARM}", "--p", 2]
    page = folder / f"report{NAME}.html"
    numbers = folder / f"numbers{NAME}.csv"
    few = pd.read_parquet(table).iloc[:, :2].assign(y=lambda f: (f.iloc[:, 0] > 0).astype(int))
    few.columns = ["a", "b", f"y{NAME}"]
    few.to_csv(numbers, index=False)
    picture = ["-o", folder / f"path{NAME}.svg"]
    choosing = ["choose-p", numbers, "-y", f"y{NAME}", "--ps", "1,4", "--alphas", "1", "--folds", 2]
    return {
        "fit": invoke(*fitting, "-o", model),
        "fit --json": invoke(*fitting, "--drop", f"city{HARM}", "-o", other, "--json"),
        "rank": invoke("rank", model, table, "--top", 10),
        "rank --json": invoke("rank", model, table, "--top", 10, "--json"),
        "rank -o": invoke("rank", model, table, "-o", folder / f"list{NAME}.csv"),
        "evaluate": invoke("evaluate", model, table, "--resamples", 20),
        "compare": invoke("compare", model, other, table, "--resamples", 20),
        "monitor": invoke("monitor", model, table),
        "show": invoke("show", model),
        "show --json": invoke("show", model, "--json"),
        "report": invoke("report", table, "-y", target, "--positive", positive, "-o", page),
        "export": invoke("export", model, "--sql", folder / f"score{NAME}.sql"),
        "choose-p": invoke(*choosing, *picture),
        "reproduce": invoke("reproduce", "table1", "--quick", "-o", folder / f"again{NAME}"),
        "bounds": invoke("bounds", "--positives", 100, "--negatives", 900, "--features", 3),
    }


def _of(folder, name):
    (path,) = folder.glob(f"{name}*")
    return path


@pytest.fixture(scope="module")
def mistakes(invoke, table, folder, answers):
    """What commands say of mistakes in which the harm is quoted."""
    model = folder / f"model{NAME}"
    return {
        "no such command": invoke(HARM),
        "no such option": invoke("fit", f"--{HARM}"),
        "one file too many": invoke("rank", model, table, HARM),
        "no such file": invoke("rank", model, folder / NAME),
        "no such model": invoke("rank", folder / NAME, table),
        "no model": invoke("rank", table, table),
        "no number": invoke("rank", model, table, "--top", HARM),
        "no whole number": invoke("report", table, "-y", "y", "--top", HARM),
        "no such column": invoke("fit", table, "-y", f"{HARM}?", "-o", folder / "no"),
        "many values": invoke("fit", table, "-y", f"id{HARM}", "-o", folder / "no"),
        "no such folder": invoke("fit", table, "-y", "z", "-o", folder / NAME / "m"),
        "no such ending": invoke("rank", model, table, "-o", folder / f"x.{NAME}"),
        "no such metric": invoke("compare", model, model, table, "--metric", HARM),
        "no such experiment": invoke("reproduce", HARM),
        "no such kind": invoke("fit", table, "-y", "z", "--model", HARM, "-o", folder / "no"),
        "no such encoding": invoke("rank", model, _of(folder, "numbers"), "--encoding", HARM),
    }


def test_every_command_works_offline_on_a_hostile_table(answers):
    failed = {name: one.output for name, one in answers.items() if one.exit_code not in (0, 1)}
    assert failed == {}
    assert answers["monitor"].exit_code in (0, 1) and answers["fit"].exit_code == 0


def test_nothing_that_a_command_prints_acts_on_the_terminal(answers, mistakes, record_property):
    record_property("cases", len(answers) + len(mistakes))
    acted = {name: harmful(one.output) for name, one in (answers | mistakes).items()}
    assert {name: found for name, found in acted.items() if found} == {}


def test_mistakes_are_answered_in_words_and_with_exit_code_two(mistakes):
    wrong = {name: one.output for name, one in mistakes.items() if one.exit_code != 2}
    assert wrong == {}
    assert not any("Traceback" in one.output for one in mistakes.values())


def test_the_report_of_a_hostile_table_has_no_element_and_no_sign_of_its_own(answers, folder):
    page = (folder / f"report{NAME}.html").read_text(encoding="utf-8")
    assert harmful(page) == []
    scripts, tags = [], set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.add(tag)
            scripts.extend([attrs] if tag == "script" else [])

    Reader().feed(page)
    assert len(scripts) == 2, "the page's own data and script"
    assert "b" not in tags
    # as text it is there
    assert "alert(1)" in page


def test_an_exported_query_quotes_every_name(answers, folder):
    query = (folder / f"score{NAME}.sql").read_bytes().decode()
    names = re.findall(r'"(?:[^"]|"")*"', query)
    assert {f'"x{HARM}"', f'"city{HARM}"'} <= set(names)


def test_a_query_printed_on_a_terminal_acts_on_nothing(monkeypatch, capsys):
    import sys

    from toprank.cli.terminal import print_lines

    query = f'SELECT "x{HARM}"\nFROM t\n'
    print_lines(query)
    assert capsys.readouterr().out == query, "programs get it as it is"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_lines(query)
    assert harmful(capsys.readouterr().out) == []


def test_the_traceback_that_a_user_asks_for_acts_on_nothing(capsys):
    from toprank.cli.terminal import show_traceback

    try:
        raise ValueError(HARM)
    except ValueError as error:
        show_traceback(type(error), error, error.__traceback__)
    told = capsys.readouterr().err
    assert harmful(told) == [] and "test_security_shown" in told and "ValueError" in told


def test_the_picture_of_the_demo_is_named_without_acting(monkeypatch, invoke, tmp_path):
    from toprank.cli import demo

    monkeypatch.setattr("toprank.reproduce.demo.run_demo", lambda **_: None)
    for name in ("_show_demo", "_save_roc_curves"):
        monkeypatch.setattr(demo, name, lambda *_: None)
    answer = invoke("demo", "-o", tmp_path / f"{NAME}.png")
    assert answer.exit_code == 0 and "owned" in answer.output and harmful(answer.output) == []


def test_errors_and_warnings_of_models_act_on_nothing():
    from toprank.models import ModelError, ModelWarning

    for kind in (ModelError, ModelWarning):
        assert str(kind(HARM)) == visible(HARM) and harmful(str(kind(HARM))) == []
        assert kind().args == ("",)


def test_a_model_in_a_notebook_shows_names_as_text(answers, folder):
    from toprank.models import load

    shown = load(folder / f"model{NAME}")._repr_html_()
    assert harmful(shown) == [] and "<script" not in shown and "&lt;script" in shown


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font:UserWarning")
def test_a_picture_with_hostile_labels_is_well_formed_and_has_no_script(tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    from toprank.plots import TopRocDisplay

    y = np.array([HARM, "no"] * 20)
    display = TopRocDisplay.from_predictions(
        y, np.arange(40), pos_label=HARM, name="<script>]]>--><x>"
    )
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        display.figure_.savefig(tmp_path / "roc.svg")
    tree = ElementTree.parse(tmp_path / "roc.svg")
    names = {element.tag.rpartition("}")[2].lower() for element in tree.iter()}
    assert "script" not in names and "text" in names
    assert harmful((tmp_path / "roc.svg").read_text(encoding="utf-8")) == []
    matplotlib.pyplot.close("all")
