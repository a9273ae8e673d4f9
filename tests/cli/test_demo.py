"""`toprank demo` and the command line around it."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from typer.testing import CliRunner

import toprank
from toprank._files import replace_file
from toprank.cli import demo as demo_command
from toprank.cli import main, options
from toprank.cli.app import app
from toprank.reproduce import demo as demo_experiment
from toprank.reproduce.demo import MEASURES, run_demo

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def result():
    X, y = make_classification(n_samples=600, flip_y=0.2, random_state=0)
    return run_demo(X, y, powers=(1, 4), n_splits=3)


@pytest.fixture
def small(monkeypatch, result):
    """The command with a small experiment in place of the real one; records its options."""
    asked = {}

    def stand_in(*, n_splits, seed, on_fit):
        asked.update(n_splits=n_splits, seed=seed)
        on_fit("model", 0, 1)
        return result

    monkeypatch.setattr(demo_experiment, "run_demo", stand_in)
    return asked


def invoke(*arguments, columns="80"):
    return CliRunner(env={"COLUMNS": columns, "TERM": "dumb"}).invoke(app, arguments)


def words(text):
    """The words of an answer, without the frame that is drawn around it."""
    return " ".join(text.replace("│", " ").split())


def with_values(result, before, after):
    """The result with the measures of its first and last model replaced."""
    first, *middle, last = result.models
    models = (replace(first, values=before), *middle, replace(last, values=after))
    return replace(result, models=models)


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        (0.1, "p = 4 bought precision in the top 1% (50.0% → 60.0%), positives above every"),
        (0.1, "of the positives (50.0% → 60.0%), and cost nothing that is clear here."),
        (-0.1, "bought nothing, and cost precision in the top 1% (50.0% → 40.0%), positives"),
        (0.0, "bought nothing, and cost nothing that is clear here; without clear change: prec"),
    ],
)
def test_the_sentence_says_what_the_push_bought_and_what_it_cost(result, shift, expected):
    before = np.full((len(MEASURES), 3), 0.5)
    assert expected in demo_command._verdict_text(with_values(result, before, before + shift))


def test_the_command_prints_a_row_a_model_and_saves_a_picture(small, tmp_path):
    output = tmp_path / "roc.png"
    answer = invoke("demo", "--output", str(output), "--splits", "3", "--seed", "7")
    assert answer.exit_code == 0, answer.output
    for name in ("logistic regression", "P-Norm Push, p = 1", "P-Norm Push, p = 4"):
        assert name in answer.output
    assert "Compared with logistic regression" in answer.output
    assert output.read_bytes().startswith(PNG)
    assert [file.name for file in tmp_path.iterdir()] == ["roc.png"]
    assert small == {"n_splits": 3, "seed": 7}


def test_the_table_fits_eighty_columns_and_uses_more_where_there_are_more(small):
    narrow = invoke("demo", "--no-picture").stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.count("±") == 3 * 4 + 1  # three models, four columns, one note
    wide = invoke("demo", "--no-picture", columns="140").stdout
    assert "Positives above every negative" in wide


def test_nothing_of_the_progress_bar_reaches_a_pipe(small):
    answer = invoke("demo", "--no-picture")
    assert answer.stderr == "" and "\x1b" not in answer.stdout


@pytest.mark.more
def test_the_default_picture_lies_in_the_current_folder(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("demo").exit_code == 0
    assert (tmp_path / "toprank-demo.png").read_bytes().startswith(PNG)
    assert invoke("demo", "--no-picture", "-o", "other.png").exit_code == 0
    assert not (tmp_path / "other.png").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/roc.png", "is not a folder"),
        ("file/roc.png", "is not a folder"),
        ("folder.png", "is a folder"),
        ("roc.xyz", "should end in one of"),
        ("roc", "should end in one of"),
    ],
)
def test_a_picture_that_cannot_be_saved_is_refused_before_training(small, tmp_path, path, message):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    answer = invoke("demo", "--output", str(tmp_path / path), columns="400")
    assert answer.exit_code == 2
    assert message in words(answer.stderr) and "--output" in answer.stderr
    assert small == {}


def test_an_address_as_the_output_is_named_as_it_was_typed(small):
    answer = invoke("demo", "--output", "s3://bucket/roc.png", columns="400")
    assert answer.exit_code == 2
    assert "'s3://bucket/roc.png' is an address" in words(answer.stderr)
    assert small == {}


def test_a_folder_that_cannot_be_written_is_refused(small, tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "could not be written (Permission denied)")

    monkeypatch.setattr(options, "check_folder", refuse)
    answer = invoke("demo", "--output", str(tmp_path / "roc.png"), columns="400")
    assert answer.exit_code == 2
    assert "could not be written (Permission denied)" in words(answer.stderr)
    assert small == {}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "roc.png"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), replace_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    with replace_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_help_shows_an_example_and_the_version_is_the_package_s():
    assert "Example: toprank fit" in invoke("--help").output
    assert "toprank demo --output" in invoke("demo", "--help").output
    assert invoke("--version").output.strip() == f"toprank {toprank.__version__}"


@pytest.mark.parametrize("arguments", [["no-such-command"], ["demo", "--splits", "0"]])
def test_a_wrong_command_or_option_exits_with_two(arguments):
    assert invoke(*arguments).exit_code == 2


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_missing_library_is_asked_for_by_the_name_of_its_extra(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit, match=r"^toprank: .*pip install 'toprank\[cli\]'$"):
        main()


def test_a_missing_matplotlib_is_asked_for_before_training(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = invoke("demo")
    assert answer.exit_code == 2
    assert "pip install 'toprank[cli]'" in answer.stderr
    assert small == {}


@pytest.mark.more
def test_the_real_demo_runs_from_the_shell_into_a_pipe_of_any_encoding(tmp_path):
    output = tmp_path / "roc.png"
    answer = subprocess.run(
        [sys.executable, "-m", "toprank.cli", "demo", "--splits", "1", "--output", str(output)],
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert answer.returncode == 0, answer.stderr
    assert b"\x1b" not in answer.stdout + answer.stderr
    assert b"P-Norm Push, p = 64" in answer.stdout
    assert output.read_bytes().startswith(PNG)
    assert output.stat().st_size < 150_000


def test_the_demo_is_told_as_json(small, result):
    done = invoke("demo", "--json", "--no-picture")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["splits"] == result.n_splits
    assert [one["name"] for one in found["models"]] == [model.name for model in result.models]
    first = found["models"][0]["mean"]
    assert list(first) == [measure.name for measure in MEASURES]
    np.testing.assert_allclose(list(first.values()), result.models[0].means)
