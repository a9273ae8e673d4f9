"""One policy for labels: every entry that takes a table with a target puts the same label on top.

Each entry answers with the number of rows that it counts as positive, or with its refusal; the
refusals must be word for word the same, but that Python says "positive=" for "--positive".
"""

import json
import re
import sys

import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")
pytest.importorskip("pyarrow", reason="the command line reads tables with the extra frames")
pytest.importorskip("skops", reason="models are written with the extra models")

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from toprank.cli.app import app
from toprank.models import Target, fit_table, load
from toprank.report import build

N, N_TOP = 60, 18
#: (label that belongs at the top, the other)
PLAIN = [
    ("oui", "non"),
    ("yes", "no"),
    ("Yes", "No"),
    (" YES", "no "),
    ("y", "n"),
    ("t", "f"),
    ("T", "F"),
    ("true", "false"),
    (True, False),
    (1, 0),
    (1.0, 0.0),
    (1, -1),
    (1.0, -1.0),
    ("1", "0"),
    ("1.0", "0.0"),
    ("+1", "-1"),
    ("Pos", "neg"),
    ("pos", "NEG"),
    ("Positive", "negative"),
    ("+", "-"),
    pytest.param(pd.Categorical(["Pos", "neg"]), id="categories"),
]
#: Pairs of which nobody but the owner of the table knows the better one.
UNKNOWN = [
    ("alive", "dead"),
    ("good", "bad"),
    ("fraud", "ok"),
    ("ill", "well"),
    ("b", "a"),
    (2, 1),
    (1.5, 0.5),
    ("2", "1"),
    ("yes", "n"),
]


def labels_of(pair):
    top = np.arange(N) < N_TOP
    if isinstance(pair, pd.Categorical):
        return pd.Categorical(np.where(top, *pair), categories=pair.categories)
    return pd.Series(np.where(top, *pair), dtype=None if type(pair[0]) is not str else object)


def table_of(pair):
    x = np.random.default_rng(0).normal(size=N)
    x[:N_TOP] += 1.0
    other = np.random.default_rng(1).normal(size=N)
    return pd.DataFrame({"x": x.round(3), "other": other.round(3), "state": labels_of(pair)})


class Decided(Exception):
    """Ends an entry as soon as it has counted its positives."""


def run(*arguments):
    runner = CliRunner(env={"COLUMNS": "500", "TERM": "dumb"})
    return runner.invoke(app, [str(one) for one in arguments])


def of_target(frame, positive, folder, monkeypatch):
    target = Target.learn("state", np.asarray(frame.state), positive)
    return np.count_nonzero(target.of(np.asarray(frame.state)))


def of_fit_table(frame, positive, folder, monkeypatch):
    return fit_table(frame, "state", positive=positive, p=1).card["training"]["positives"]


def of_report(frame, positive, folder, monkeypatch):
    def count(table, *rest):
        raise Decided(int(np.count_nonzero(table.rows.y)))

    monkeypatch.setattr(sys.modules["toprank.report.builder"], "score_held_out", count)
    try:
        build(frame, "state", positive=positive)
    except Decided as decided:
        return decided.args[0]


def command(name, *options, kind):
    def entry(frame, positive, folder, monkeypatch):
        table = folder / f"table.{kind}"
        frame.to_csv(table, index=False) if kind == "csv" else frame.to_parquet(table)
        named = [] if positive is None else ["--positive", positive]
        written = [] if name == "choose-p" else ["-o", folder / "model"]
        done = run(name, table, "-y", "state", *named, *options, *written)
        if done.exit_code:
            raise ValueError(done.stderr.removeprefix("toprank: ").strip())
        if name == "choose-p":
            return int(re.search(r"rows, (\d+) positives", done.stdout)[1])
        return json.loads(done.stdout)["training"]["positives"]

    return entry


CHOOSE = ("choose-p", "--ps", "1", "--alphas", "1", "--folds", "2", "--no-support")
FIT = ("fit", "--p", "1", "--json", "-q")
ENTRIES = {
    "Target.learn": of_target,
    "fit_table": of_fit_table,
    "report.build": of_report,
    "toprank fit": command(*FIT, kind="parquet"),
    "toprank fit, CSV": command(*FIT, kind="csv"),
    "toprank choose-p": command(*CHOOSE, kind="parquet"),
    "toprank choose-p, CSV": command(*CHOOSE, kind="csv"),
}


def answer(entry, pair, positive, folder, monkeypatch):
    """The number of positives, or the refusal as the command line words it."""
    try:
        return ENTRIES[entry](table_of(pair), positive, folder, monkeypatch)
    except ValueError as error:
        return re.sub("positive= ?", "--positive ", str(error))


@pytest.mark.sampled(6)  # of seven entries: every pair is tried by one of them
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("pair", PLAIN, ids=str)
def test_a_pair_that_everybody_reads_in_one_way_is_decided(pair, entry, tmp_path, monkeypatch):
    assert answer(entry, pair, None, tmp_path, monkeypatch) == N_TOP


@pytest.mark.sampled(5)
@pytest.mark.parametrize("pair", UNKNOWN, ids=str)
def test_any_other_pair_is_refused_in_the_same_words(pair, tmp_path, monkeypatch):
    said = {name: answer(name, pair, None, tmp_path, monkeypatch) for name in ENTRIES}
    first = said["Target.learn"]
    assert "it is not clear which belongs at the top: add --positive " in str(first)
    assert said == dict.fromkeys(ENTRIES, first)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("entry", ENTRIES)
def test_one_label_in_two_spellings_is_no_pair(entry, tmp_path, monkeypatch):
    said = answer(entry, ("yes", "Yes"), None, tmp_path, monkeypatch)
    assert "'state' spells one label in several ways ('Yes' / 'yes')" in said
    assert said.endswith(("tidy='state'.", "--tidy 'state'."))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("pair", "positive"), [(("alive", "dead"), "Dead"), ((2, 1), "1.0")])
def test_the_label_that_is_named_is_on_top(pair, positive, entry, tmp_path, monkeypatch):
    assert answer(entry, pair, positive, tmp_path, monkeypatch) == N - N_TOP


@pytest.mark.parametrize(
    ("pair", "positive", "message"),
    [
        (("alive", "dead"), "ill", "--positive 'ill': 'state' never has that value; it has"),
        (("yes", "yes"), None, "'state' has one value only ('yes'); a ranking needs"),
        (("yes", None), None, "'state' is missing in 42 of 60 rows; leave these rows out"),
    ],
)
def test_what_cannot_be_a_target_is_refused_in_the_same_words(
    pair, positive, message, tmp_path, monkeypatch
):
    said = {name: answer(name, pair, positive, tmp_path, monkeypatch) for name in ENTRIES}
    assert said == dict.fromkeys(ENTRIES, said["Target.learn"]) and message in said["Target.learn"]


def test_more_than_two_labels_are_refused_in_the_same_words(tmp_path, monkeypatch):
    frame = table_of(("a", "b")).assign(state=["a", "b", "c"] * 20)
    monkeypatch.setitem(globals(), "table_of", lambda pair: frame)
    said = {name: answer(name, None, None, tmp_path, monkeypatch) for name in ENTRIES}
    assert said == dict.fromkeys(ENTRIES, said["Target.learn"])
    assert "has 3 different values ('a', 'b', 'c'), expected two" in said["Target.learn"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pair", [("Pos", "neg"), ("+", "-"), (1, -1)], ids=str)
def test_evaluate_compare_and_monitor_keep_the_label_of_the_model(pair, tmp_path):
    table, model = tmp_path / "table.parquet", tmp_path / "model"
    table_of(pair).to_parquet(table)
    assert run("fit", table, "-y", "state", "--p", 1, "-o", model).exit_code == 0
    (tmp_path / "other").write_bytes(model.read_bytes())
    assert load(model).target.positive == str(pair[0])
    found = json.loads(run("evaluate", model, table, "--k", "5", "--json").stdout)
    assert found["positives"] == N_TOP
    compared = run("compare", model, tmp_path / "other", table, "--metric", "auc")
    assert f"{N_TOP} positives" in compared.stdout
    watched = json.loads(run("monitor", model, table, "--top", 0.5, "--json").stdout)
    assert watched["precision"]["estimate"] < 0.5  # of the negatives it would be above
