"""`toprank bounds` and `toprank choose-p`."""

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

import pandas as pd
from typer.testing import CliRunner

from toprank.bounds import LinearClass, pnorm_push, pnorm_push_sample_size
from toprank.cli.app import app

FAST = ["--ps", "1,4", "--alphas", "0.1,1", "--folds", "3"]


def invoke(*arguments, columns="120"):
    return CliRunner(env={"COLUMNS": columns, "TERM": "dumb"}).invoke(app, list(arguments))


def words(text):
    return " ".join(text.replace("│", " ").split())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = np.arange(180) % 3 == 0
    frame = pd.DataFrame(rng.normal(size=(180, 2)) + y[:, None], columns=["a", "b"])
    frame["patient"] = np.arange(180) // 3
    frame["day"] = pd.date_range("2026-01-01", periods=180).astype(str)
    frame["outcome"] = np.where(y, "ill", "well")
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def plain(table):
    frame = pd.read_csv(table).drop(columns=["patient", "day"])
    path = table.with_name("plain.parquet")
    frame.to_parquet(path)
    return path


def test_bounds_prints_what_the_theorem_says():
    options = ["--positives", "1000", "--negatives", "9000", "--features", "10"]
    answer = invoke("bounds", *options, "--ps", "1,64", "--json")
    assert answer.exit_code == 0
    first, last = json.loads(answer.stdout)
    case = {"theta": 0.1, "log_covering_number": LinearClass(10, 1.0, 1.0)}
    excess = pnorm_push(probability=0.05, n_pos=1000, n_neg=9000, p=1, **case)
    rows = pnorm_push_sample_size(epsilon=0.1, probability=0.05, prevalence=0.1, p=1, **case)
    assert first["excess"] == excess.value and first["rows_needed"] == rows.value
    assert last["vacuous"] and not first["vacuous"] and first["assumes"]
    shown = invoke("bounds", *options)
    assert shown.exit_code == 0 and "says nothing" in shown.stdout and "726,912" in shown.stdout


def test_bounds_that_say_nothing_are_said_to():
    answer = invoke("bounds", "--positives", "5", "--negatives", "5", "--features", "3")
    assert "says nothing for any of these p" in words(answer.stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ps", "1,two"], "not a list of numbers"),
        (["--ps", ","], "no power was given"),
        (["--theta", "-1"], "theta"),
        (["--ps", "0.5"], "p="),
    ],
)
def test_bad_options_of_bounds_are_usage_errors(options, message):
    sizes = ["--positives", "10", "--negatives", "10", "--features", "3"]
    answer = invoke("bounds", *sizes, *options)
    assert answer.exit_code == 2 and message in words(answer.stderr)


def test_choose_p_says_how_hard_to_push(plain, tmp_path):
    picture = tmp_path / "path.png"
    answer = invoke(
        "choose-p", str(plain), "-y", "outcome", "--positive", "ill", *FAST, "-o", str(picture)
    )
    assert answer.exit_code == 0, answer.stderr
    text = words(answer.stdout)
    assert "180 rows, 60 positives, 2 features" in text
    assert "Push with" in text or "Do not push" in text
    assert "With 60 positives and 120 negatives" in text
    assert "never saw" in text and picture.read_bytes()[:4] == b"\x89PNG"


def test_choose_p_prints_json(table):
    options = ["--positive", "ill", "--group", "patient", "--metric", "auc", "--no-support"]
    frame = pd.read_csv(table).drop(columns="day")
    path = table.with_name("grouped.csv")
    frame.to_csv(path, index=False)
    answer = invoke("choose-p", str(path), "-y", "outcome", *options, *FAST, "--json")
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["metric"] == "auc" and found["support"] is None and len(found["table"]) == 3
    assert 0.5 < found["score"] <= 1 and found["held_out"]["low"] <= found["held_out"]["high"]


def test_choose_p_goes_forward_in_time(table):
    frame = pd.read_csv(table).drop(columns="patient")
    path = table.with_name("timed.csv")
    frame.to_csv(path, index=False)
    options = ["--time", "day", "--gap", "3", "--positive", "ill", "--k", "5", "--json"]
    answer = invoke("choose-p", str(path), "-y", "outcome", *options, *FAST)
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout)["metric"] == "precision_at(k=5)"


@pytest.mark.more
def test_choose_p_takes_the_tables_that_fit_takes(table):
    rng = np.random.default_rng(0)
    frame = pd.read_csv(table)
    mixed = frame.assign(city=rng.choice(["Rome", "Oslo"], len(frame)), leak=frame.outcome)
    mixed.loc[::7, "a"] = np.nan
    path = table.with_name("mixed.csv")
    mixed.to_csv(path, index=False)
    options = ["--positive", "ill", "--id", "patient", "--drop", "leak", "--groups", "day"]
    answer = invoke("choose-p", str(path), "-y", "outcome", *options, *FAST, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert 0.1 < json.loads(answer.stdout)["score"] < 1


@pytest.mark.more
def test_choose_p_takes_numbers_as_they_are_and_times_that_are_numbers(table):
    given = ("-y", "outcome", "--positive", "ill", "--drop", "day", "--no-scale", "--time")
    answer = invoke("choose-p", str(table), *given, "patient", *FAST, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert 0 <= json.loads(answer.stdout)["score"] <= 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-y", "outcome"], 2, "add --positive 'ill' or --positive 'well'"),
        (["-y", "outcome", "--positive", "ill", "--no-scale"], 2, "not numbers: day"),
        (["-y", "result"], 2, "has no column 'result'"),
        (["-y", "outcome", "--positive", "dead"], 2, "never has that value"),
        (["-y", "a"], 2, "expected two. Pass --positive to name"),
        (["-y", "outcome", "--time", "day", "--group", "patient"], 2, "not both"),
        (["-y", "outcome", "--time", "patient", "--metric", "speed"], 2, "is not one of"),
        (["-y", "outcome", "--positive", "ill", "--gap", "3", "--group", "day"], 2, "needs --time"),
        (["-y", "outcome", "--group", "day", "--metric", "auc", "--k", "3"], 2, "not take k"),
        (["-y", "outcome", "--positive", "ill", "--group", "day", "--rule", "any"], 2, "rule"),
        (["-y", "outcome", "--group", "day", "-o", "path.gif"], 2, "should end in"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(table, options, code, message):
    answer = invoke("choose-p", str(table), *options, *FAST)
    assert answer.exit_code == code and message in words(answer.stderr)
    assert "Traceback" not in answer.output


def test_files_that_are_not_there_or_not_tables(tmp_path):
    assert invoke("choose-p", str(tmp_path / "no.csv"), "-y", "y").exit_code == 2
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"not a table")
    answer = invoke("choose-p", str(broken), "-y", "y")
    assert answer.exit_code == 2 and "could not be read" in words(answer.stderr)
