"""`toprank evaluate`, `compare`, `monitor`, `show` and `export`."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from toprank.inference import compare, interval
from toprank.metrics import METRICS, register, summary
from toprank.models import fit_table, load


@pytest.fixture(scope="module")
def labels(frame):
    return (frame.bought == "yes").to_numpy()


@pytest.mark.more
def test_every_metric_has_its_interval(model, train, frame, labels, invoke):
    answer = invoke("evaluate", model, train, "--k", "20,0.1", "--all", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    scores = load(model).score(frame)
    expected = summary(labels, scores, (20, 0.1)).as_dict()
    assert {line["label"]: line["value"] for line in found["metrics"]} == pytest.approx(expected)
    assert found["rows"] == 300 and found["positives"] == 60
    assert found["one_row_milliseconds"] > 0
    by_label = {line["label"]: line for line in found["metrics"]}
    again = interval("precision_at", labels, scores, k=20)
    assert by_label["precision_at(k=20)"]["low"] == pytest.approx(again.low)
    assert by_label["precision_at(k=20)"]["high"] == pytest.approx(again.high)
    without = [label for label, line in by_label.items() if line["low"] is None]
    assert without == ["ranking_margin"] and "no interval" in by_label["ranking_margin"]["note"]


def test_six_numbers_are_shown_unless_others_are_asked_for(model, train, invoke):
    found = json.loads(invoke("evaluate", model, train, "--json").stdout)["metrics"]
    names = ["precision_at", "recall_at", "lift_at", "auc", "average_precision", "positives_at_top"]
    assert [line["name"] for line in found] == names
    options = ["--metric", "bedroc", "--metric", "ndcg_at", "--k", "20,0.2", "--json"]
    found = json.loads(invoke("evaluate", model, train, *options).stdout)["metrics"]
    assert [line["label"] for line in found] == ["ndcg_at(k=20)", "ndcg_at(k=0.2)", "bedroc"]
    assert all(line["low"] <= line["value"] <= line["high"] for line in found)


@pytest.mark.more
def test_rows_that_were_learned_from_are_noticed(
    model, other, train, frame, tmp_path, invoke, words
):
    said = "rows that the model has learned from"
    assert f"All of these rows are {said}" in words(invoke("evaluate", model, train).stdout)
    assert said in words(invoke("compare", model, other, train).stdout)
    new = tmp_path / "new.csv"
    frame.assign(age=frame.age + 0.013, income=frame.income + 7).to_csv(new, index=False)
    for answer in (invoke("evaluate", model, new), invoke("compare", model, other, new)):
        assert answer.exit_code == 0 and said not in answer.stdout + answer.stderr


@pytest.mark.more
def test_a_count_of_rows_is_said_as_a_share(model, train, invoke, words):
    text = words(invoke("evaluate", model, train, "--k", "30").stdout)
    assert "k = 30 is the first 10% of these 300 rows" in text


@pytest.mark.more
def test_a_metric_registered_from_outside_is_measured_and_compared(model, other, train, invoke):
    def share_in_reach(y_true, y_score, reach, sample_weight=None):
        weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
        near = weight * (y_score >= np.max(y_score) - reach)
        return float(np.sum(near[y_true]) / np.sum(near))

    register(share_in_reach, higher_is_better=True, values=(0, 1), settings={"reach": 1.0})
    try:
        answer = invoke("evaluate", model, train, "--all", "--json")
        found = json.loads(answer.stdout)["metrics"]
        (line,) = [one for one in found if one["name"] == "share_in_reach"]
        assert line["settings"] == {"reach": 1.0}
        assert 0 <= line["low"] <= line["value"] <= line["high"] <= 1
        answer = invoke("compare", model, other, train, "--metric", "share_in_reach")
        assert answer.exit_code == 0, answer.output
        assert "share_in_reach" in answer.stdout
    finally:
        del METRICS["share_in_reach"]


def test_the_metrics_are_shown_as_a_table(model, train, invoke, words):
    answer = invoke("evaluate", model, train, "--level", "0.9")
    text = words(answer.stdout)
    assert answer.exit_code == 0 and answer.stderr == ""
    assert "90% interval" in text and "300 rows, 60 positives" in text
    assert "Scoring one row takes" in text and "positives_at_top" in text


@pytest.mark.parametrize("groups", [None, pytest.param("home", marks=pytest.mark.more)])
def test_weights_and_groups_of_the_training_are_used(groups, frame, labels, tmp_path, invoke):
    table, path = tmp_path / "t.csv", tmp_path / "m"
    n = len(frame)
    weighted = frame.assign(times=np.arange(n) % 3, home=np.arange(n) // 3)
    weighted.to_csv(table, index=False)
    options = ["--drop", "customer", "--weight", "times", "--p", "2"]
    options += ["--groups", groups] if groups else ["--drop", "home"]
    assert invoke("fit", table, "-y", "bought", *options, "-o", path).exit_code == 0
    found = json.loads(invoke("evaluate", path, table, "--json").stdout)
    expected = interval(
        "auc",
        labels,
        load(path).score(frame),
        sample_weight=weighted.times,
        groups=weighted.home if groups else None,
    )
    auc = next(line for line in found["metrics"] if line["name"] == "auc")
    assert auc["value"] == pytest.approx(expected.estimate)
    assert auc["low"] == pytest.approx(expected.low)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "many"], "expected a count"),
        (["--k", "1000"], "the table has 300 rows"),
        (["--k", "0"], "--k"),
    ],
)
def test_a_top_that_cannot_be_is_refused(model, train, invoke, words, options, message):
    answer = invoke("evaluate", model, train, *options)
    assert answer.exit_code == 2 and message in words(answer.stderr)


def test_models_are_compared_pair_by_pair(model, other, train, frame, labels, tmp_path, invoke):
    third = tmp_path / "third"
    third.write_bytes(model.read_bytes())
    options = ["--metric", "auc", "--metric", "precision_at", "--k", "30"]
    answer = invoke("compare", model, other, third, train, *options, "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert [pair["metric"] for pair in found] == ["auc"] * 3 + ["precision_at(k=30)"] * 3
    scores = {
        "model": load(model).score(frame),
        "other": load(other).score(frame),
        "third": load(third).score(frame),
    }
    for pair, expected in zip(found, compare("auc", labels, scores), strict=False):
        assert tuple(pair["names"]) == expected.names
        assert pair["difference"] == pytest.approx(expected.difference)
        assert pair["adjusted_p_value"] == pytest.approx(expected.adjusted_p_value)
    assert found[1]["difference"] == 0 and found[1]["adjusted_p_value"] == 1


def test_the_comparison_is_shown_as_a_table(model, other, train, invoke, words):
    answer = invoke("compare", model, other, train)
    text = words(answer.stdout)
    assert answer.exit_code == 0 and "model − other" in text and "p (Holm)" in text
    assert "precision_at(k=0.1)" in text and "auc" in text


def test_what_cannot_be_compared_is_refused(model, other, train, frame, tmp_path, invoke, words):
    assert "at least two models" in words(invoke("compare", model, train).stderr)
    assert "named twice" in words(invoke("compare", model, model, train).stderr)
    wrong = invoke("compare", model, other, train, "--metric", "speed")
    assert wrong.exit_code == 2 and "is not one of" in words(wrong.stderr)
    extreme = invoke("compare", model, other, train, "--metric", "ranking_margin")
    assert extreme.exit_code == 2 and "one extreme row" in words(extreme.stderr)
    reverse = tmp_path / "reverse"
    fitted = invoke(
        "fit", train, "-y", "bought", "--positive", "no", "--p", "2", "--id", "customer",
        "-o", reverse,
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    apart = invoke("compare", model, reverse, train)
    assert apart.exit_code == 2 and "different things" in words(apart.stderr)


def test_the_rows_of_the_training_have_not_drifted(model, train, invoke, words):
    answer = invoke("monitor", model, train, "--min-precision", "0.3", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["alarms"] == [] and found["notes"] == []
    assert all(one["psi"] < 1e-9 for one in found["columns"])
    # scores are compared with those of rows that the model had not seen
    assert found["scores"]["psi"] < 0.05
    assert found["share_before"] == pytest.approx(0.1)
    assert found["alerts"]["estimate"] == pytest.approx(0.1, abs=0.03)
    alerts = round(300 * found["alerts"]["estimate"])
    assert found["precision"]["rows"] == alerts and found["labelled"] == 300
    shown = words(invoke("monitor", model, train).stdout)
    assert "No limit is passed" in shown
    assert f"Precision among {alerts} labelled alerts" in shown
    assert f"Expected of these {alerts} before their labels" in shown and "points off" in shown
    assert found["off_by"]["found"] == found["precision"]["estimate"] and found["retrain"] == []
    assert "No reason to retrain" in shown


@pytest.mark.parametrize(
    ("change", "options", "alarm"),
    [
        (lambda f: f.assign(age=f.age + 15), [], "the drift of age"),
        (lambda f: f.assign(city="Oslo"), [], "the drift of city"),
        (lambda f: f.assign(income=np.nan), [], "the drift of income"),
        (lambda f: f.assign(age=f.age + 15), ["--max-drift", "99"], "raise an alert"),
        (
            lambda f: f.assign(bought="no"),
            ["--min-precision", "0.5"],
            "the precision is 0 (at most",
        ),
    ],
)
def test_a_limit_that_is_passed_gives_exit_code_one(
    model, frame, tmp_path, invoke, words, change, options, alarm
):
    table = tmp_path / "t.csv"
    change(frame).to_csv(table, index=False)
    answer = invoke("monitor", model, table, *options)
    assert answer.exit_code == 1, answer.output
    assert "LIMIT PASSED" in words(answer.stdout) and alarm in words(answer.stdout)


def test_rows_may_be_compared_with_another_table(model, frame, tmp_path, invoke):
    table = tmp_path / "t.csv"
    frame.assign(age=frame.age + 15).to_csv(table, index=False)
    answer = invoke("monitor", model, table, "--reference", table, "--json")
    assert answer.exit_code == 0 and json.loads(answer.stdout)["scores"]["psi"] < 1e-9


def test_labels_may_be_missing_in_some_rows_or_all(model, frame, tmp_path, invoke, words):
    table = tmp_path / "t.csv"
    some = frame.bought.where(np.arange(300) < 150)
    frame.assign(bought=some).to_csv(table, index=False)
    found = json.loads(invoke("monitor", model, table, "--json").stdout)
    assert found["labelled"] == 150 and 0 < found["precision"]["rows"] < 30
    frame.drop(columns="bought").to_csv(table, index=False)
    answer = invoke("monitor", model, table)
    assert answer.exit_code == 0 and "the rows have no labels" in words(answer.stdout)
    assert "Precision to expect of all" in words(answer.stdout)


def test_few_rows_are_no_alarm(model, frame, tmp_path, invoke):
    table = tmp_path / "t.csv"
    frame.sample(12, random_state=0).to_csv(table, index=False)
    assert invoke("monitor", model, table).exit_code == 0


def test_show_prints_the_card(model, invoke, words):
    shown = words(invoke("show", model).stdout)
    assert "puts bought = yes at the top" in shown and "age number" in shown
    card = json.loads(invoke("show", model, "--json").stdout)
    assert card["schema"]["columns"]["city"] == "category"
    assert card["schema"]["roles"]["id"] == "customer"


def test_a_model_leaves_as_sql(other, tmp_path, invoke):
    answer = invoke("export", other, "--sql", "-", "--table", "customers")
    assert answer.exit_code == 0, answer.output
    assert "SELECT" in answer.stdout.upper() and "customers" in answer.stdout
    path = tmp_path / "score.sql"
    assert invoke("export", other, "--sql", path, "-q").output == ""
    assert path.read_text().strip()
    assert invoke("export", other).exit_code == 2


def test_a_model_leaves_as_onnx(other, train, tmp_path, invoke):
    pytest.importorskip("onnxruntime", reason="exports are checked by ONNX Runtime")
    path = tmp_path / "model.onnx"
    answer = invoke("export", other, "--onnx", path, "--check", train)
    assert answer.exit_code == 0, answer.output
    assert path.stat().st_size > 100 and "scores differ by" in answer.stderr


@pytest.mark.more
def test_the_same_rows_in_parquet_are_measured_alike(model, train, frame, tmp_path, invoke):
    table = tmp_path / "t.parquet"
    frame.assign(joined=pd.to_datetime(frame.joined)).to_parquet(table)
    values = [
        {line["label"]: line["value"] for line in json.loads(answer.stdout)["metrics"]}
        for answer in (invoke("evaluate", model, path, "--json") for path in (train, table))
    ]
    assert values[0] == values[1]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A model of many columns with weights and without an id, and its table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 35)), columns=[f"x{j}" for j in range(35)])
    frame["y"] = (frame.x0 + rng.normal(size=120) > 0.7).astype(int)
    frame["times"] = rng.integers(1, 3, 120)
    frame["day"] = np.arange(120) // 60
    place = tmp_path_factory.mktemp("wide")
    made = fit_table(frame, "y", weight="times", p=2, model="pnorm", drop=("day",))
    made.save(place / "m")
    frame.to_csv(place / "rows.csv", index=False)
    return place / "m", place / "rows.csv"


@pytest.mark.more
def test_many_columns_are_counted_and_not_all_shown(wide, invoke, words):
    assert "... and 5 more columns" in words(invoke("show", wide[0]).stdout)
    watched = invoke("monitor", *wide)
    assert "... and 15 columns that moved less" in words(watched.stdout), watched.output


@pytest.mark.more
def test_what_the_model_or_the_options_do_not_allow_is_refused(wide, model, train, invoke, words):
    for command, said in [
        (("evaluate", *wide, "--by", "day"), "--by does not take weights of rows"),
        (("evaluate", *wide, "--by-group", "day"), "--by-group does not take weights of rows"),
        (("evaluate", *wide, "--all", "--metric", "auc"), "give --metric or --all, not both"),
        (("evaluate", *wide, "--metric", "acu"), "--metric: 'acu' is not one of: "),
        (("rank", *wide, "--stay", wide[1]), "--stay needs --id, the column that names the rows"),
        (("choose-p", train, "-y", "bought", "--no-scale", "--drop", "city", "--drop", "customer",
          "--drop", "joined"), "--no-scale: values are missing in: income"),
    ]:  # fmt: skip
        refused = invoke(*command)
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.more
def test_a_model_that_tells_no_row_from_another_says_so(model, frame, tmp_path, invoke, words):
    same = frame.assign(age=40.0, city="Rome", joined="2025-02-01", income=10.0)
    same.to_csv(tmp_path / "same.csv", index=False)
    answer = invoke("evaluate", model, tmp_path / "same.csv")
    assert answer.exit_code == 0, answer.output
    assert "300 rows share the highest score" in words(answer.stdout + answer.stderr)


def test_members_of_an_ensemble_are_shown_with_what_each_brings(model, capsys, words):
    from toprank.cli.show import show_card

    members = [
        {"name": "trees", "weight": 0.75, "score": 0.8123, "loss_without": 0.02, "seconds": 3},
        {"name": "[red]odd", "note": "it took too long"},
        "no member",
    ]
    made = load(model)
    show_card(replace(made, card={**made.card, "members": members}), model)
    shown = words(capsys.readouterr().out)
    assert "trees 0.75 0.8123 0.02 3" in shown
    assert "[red]odd it took too long" in shown and "no member" not in shown


def test_the_shell_completes_the_names_of_metrics():
    from toprank.cli.options import metric_names

    assert metric_names("precision") == ["precision_at", "precision_at_recall"]
    assert metric_names("") == sorted(METRICS)
