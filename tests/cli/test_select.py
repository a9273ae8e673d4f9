"""`toprank select`: a list with a guarantee, from two tables and a model."""

import json

import numpy as np
import pandas as pd
import pytest


def customers(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "customer": [f"s{seed}-{i:04d}" for i in range(n)],
            "age": rng.normal(40, 10, n).round(1),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "joined": pd.date_range("2025-01-01", periods=n, freq="h").astype(str),
            "income": rng.lognormal(10, 1, n).round(2),
        }
    )
    chance = table.age / 10 + (table.city == "Oslo") + rng.normal(0, 0.3, n)
    table["bought"] = np.where(chance > 5.2, "yes", "no")
    return table


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("select")
    new, known = customers(500, 1), customers(800, 2)
    new.drop(columns="bought").to_csv(folder / "new.csv", index=False)
    known.to_csv(folder / "known.csv", index=False)
    known.rename(columns={"bought": "label"}).to_csv(folder / "renamed.csv", index=False)
    return folder, new


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "wish",
    [["--fdr", "0.3"], ["--precision", "0.5"], ["--recall", "0.8"], ["--positives", "20"]],
    ids=lambda wish: wish[0],
)
def test_the_list_is_the_first_rows_with_ids_and_reasons(invoke, model, tables, tmp_path, wish):
    folder, new = tables
    out = tmp_path / "list.csv"
    arguments = [model, folder / "new.csv", "--calibration", folder / "known.csv", *wish]
    answer = invoke("select", *arguments, "-o", out)
    assert answer.exit_code == 0, answer.output
    assert "Assumes that" in answer.stdout and "Calibration: 800 rows" in answer.stdout
    listed = pd.read_csv(out)
    assert list(listed)[:3] == ["customer", "score", "rank"] and "reasons" in listed
    ranked = tmp_path / "ranked.csv"
    invoke("rank", model, folder / "new.csv", "--top", len(listed), "-o", ranked)
    assert 20 <= len(listed) < 500
    pd.testing.assert_frame_equal(listed, pd.read_csv(ranked))
    bought = new.set_index("customer").bought[listed.customer] == "yes"
    assert bought.sum() >= 20


def test_the_answer_is_json_for_machines(invoke, model, tables):
    folder, _ = tables
    arguments = [model, folder / "new.csv", "-c", folder / "renamed.csv", "--target", "label"]
    answer = invoke("select", *arguments, "--positives", "20", "--confidence", "0.9", "--json")
    found = json.loads(answer.stdout)
    assert found["positives_at_least"] == 20 and found["confidence"] == 0.9
    assert found["chosen"] == len(found["list"]) > 20
    assert "at least 20 positives" in found["guarantee"]


def test_rows_of_the_training_are_refused(invoke, model, train, tables):
    folder, _ = tables
    answer = invoke("select", model, folder / "new.csv", "-c", train, "--fdr", "0.3")
    assert answer.exit_code == 2
    assert "has learned from these rows" in answer.stderr


def test_an_empty_list_is_written_with_its_columns_and_why(invoke, model, tables, tmp_path):
    folder, _ = tables
    out = tmp_path / "list.csv"
    arguments = [model, folder / "new.csv", "-c", folder / "known.csv", "--precision", "0.97"]
    answer = invoke("select", *arguments, "-o", out)
    assert answer.exit_code == 0, answer.output
    assert "No row of 500 could be chosen" in answer.stdout
    assert len(pd.read_csv(out)) == 0 and "score" in pd.read_csv(out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give one of --fdr, --precision, --recall, --positives; none came"),
        (["--fdr", "0.1", "--recall", "0.5"], "--fdr and --recall came"),
        (["--fdr", "2"], "--fdr 2: expected a share between 0 and 1"),
        (["--positives", "0"], "--positives 0: expected a count of at least 1"),
        (["--positives", "400"], "cannot support --positives 400 with --confidence 0.95"),
        (["--fdr", "0.1", "--target", "nothing"], "nothing"),
        (["--recall", "0.5", "--confidence", "95"], "expected a probability"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(invoke, words, model, tables, options, says):
    folder, _ = tables
    arguments = [model, folder / "new.csv", "-c", folder / "known.csv"]
    answer = invoke("select", *arguments, *options)
    assert answer.exit_code == 2
    assert says in words(answer.stderr)


def test_too_few_labels_are_refused_with_how_many_would_do(invoke, words, model, tables, tmp_path):
    folder, _ = tables
    customers(25, 3).to_csv(tmp_path / "few.csv", index=False)
    arguments = [model, folder / "new.csv", "-c", tmp_path / "few.csv", "--recall", "0.9"]
    answer = invoke("select", *arguments)
    assert answer.exit_code == 2
    assert "labelled rows with that share would" in words(answer.stderr)


def test_the_tables_that_are_read_are_not_written_over(invoke, model, tables):
    folder, _ = tables
    arguments = [model, folder / "new.csv", "-c", folder / "known.csv", "--fdr", "0.3"]
    for name in ("new.csv", "known.csv"):
        answer = invoke("select", *arguments, "-o", folder / name)
        assert answer.exit_code == 2 and "is read by this command" in answer.stderr


def test_rank_says_how_sure_the_first_rows_are(invoke, model, train, tables):
    folder, _ = tables
    answer = invoke("rank", model, folder / "new.csv", "--top", 20, "--sure", train, "--json")
    assert answer.exit_code == 0, answer.output
    sure = [row["sure"] for row in json.loads(answer.stdout)]
    assert len(sure) == 20 and 0 < min(sure) <= sure[-1] < sure[0] <= 1
    plain = json.loads(invoke("rank", model, folder / "new.csv", "--top", 20, "--json").stdout)
    assert "sure" not in plain[0]
    assert [row["score"] for row in plain] == [row["score"] for row in json.loads(answer.stdout)]


def test_how_sure_is_told_from_the_training_table_alone(invoke, words, model, train, tables):
    folder, _ = tables
    answer = invoke("rank", model, folder / "new.csv", "--sure", folder / "known.csv")
    assert answer.exit_code == 2
    assert "does not hold the rows that the model has learned from" in words(answer.stderr)
    answer = invoke("rank", model, folder / "new.csv", "--sure", train, "--all")
    assert answer.exit_code == 2 and "--sure is for the first rows" in words(answer.stderr)


def test_answers_in_two_places_and_tables_from_one_stream_are_refused(
    invoke, model, train, words, tmp_path
):
    wish = ("select", model, train, "--calibration", train, "--precision", 0.5)
    refused = invoke(*wish, "--json", "-o", tmp_path / "list.csv")
    assert refused.exit_code == 2
    assert "give --json or --output, not both" in words(refused.stderr)
    refused = invoke("select", model, "-", "--calibration", "-", "--precision", 0.5)
    assert refused.exit_code == 2
    assert "DATA and --calibration cannot both be standard input" in words(refused.stderr)
