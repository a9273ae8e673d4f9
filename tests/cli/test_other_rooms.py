"""`toprank report` and `toprank reproduce` hand over to their rooms."""

import html
import json

import pytest


@pytest.mark.more
def test_report_writes_one_page(train, tmp_path, invoke, words, model):
    path = tmp_path / "report.html"
    path.write_text("old")
    answer = invoke("report", train, "-y", "bought", "--id", "customer", "--top", 30, "-o", path)
    assert answer.exit_code == 0, answer.output
    page = path.read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>") and "customer" in page
    assert "Report:" in words(answer.stdout) and [f.name for f in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "report.pdf"], "should end in one of: .htm, .html"),
        (["--id", "costumer"], "did you mean 'customer'?"),
        (["--positive", "maybe"], "never has that value"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    train, model, tmp_path, invoke, words, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    answer = invoke("report", train, "-y", "bought", *options)
    assert answer.exit_code == 2 and message in words(answer.stderr), answer.output
    assert list(tmp_path.iterdir()) == []


def test_reproduce_writes_a_page(tmp_path, invoke):
    answer = invoke("reproduce", "table1", "--quick", "-o", tmp_path / "page", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert list(found["results"]) == ["table1"] and (tmp_path / "page" / "reproduce.html").exists()


def test_reproduce_knows_its_experiments(tmp_path, invoke, words):
    assert "table1" in invoke("reproduce", "--names").stdout.split()
    unknown = invoke("reproduce", "table99")
    assert unknown.exit_code == 2 and "no experiment 'table99'" in words(unknown.stderr)
    file = tmp_path / "file"
    file.touch()
    answer = invoke("reproduce", "table1", "-o", file)
    assert answer.exit_code == 2 and "is a file" in words(answer.stderr)


def test_report_about_a_model_names_it_and_measures_it(train, tmp_path, invoke, model):
    path = tmp_path / "report.html"
    answer = invoke(
        "report", model, train, "--top", 30, "--value-positive", 9, "-o", path, "--json"
    )
    assert answer.exit_code == 0, answer.output
    front = json.loads(answer.stdout)["front"]
    assert front["models"][0]["facts"]["File"] == str(model)
    assert front["rows"] == 300 and front["models"][0]["money"]["value"] == 9
    assert str(model) in path.read_text()


def test_report_about_a_model_needs_no_table(tmp_path, invoke, model):
    answer = invoke("report", model, "-o", tmp_path / "report.html")
    assert answer.exit_code == 0, answer.output
    assert "Of the first 10% of the list" in answer.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["{model}", "{train}", "-y", "bought"], "--target belongs to a table to learn from"),
        (["{train}", "{model}"], "name the models first"),
        (["{train}", "{train}"], "named by --test"),
        (["{train}"], "--target is missing"),
        (["{model}", "--cost", 3], "--cost needs --value-positive"),
        (["{model}", "--value-positive", 3], "--value-positive needs a table with labels"),
        (["{model}", "{train}", "--today", "nowhere"], "no column 'nowhere' (--today)"),
        (["{model}", "{train}", "{train}"], "name one table to measure the models on"),
        (["{model}", "--value-positive", -1], "--value-positive -1: expected a number from 0 on"),
    ],
)
def test_what_belongs_to_tables_is_not_asked_of_models(
    train, model, tmp_path, invoke, words, options, said
):
    given = [str(one).format(train=train, model=model) for one in options]
    answer = invoke("report", *given, "-o", tmp_path / "report.html")
    assert answer.exit_code == 2 and said in words(answer.stderr), answer.stderr


def test_report_learns_what_fit_learns_with_the_same_options(
    frame, tmp_path, invoke, monkeypatch, model
):
    table, given = tmp_path / "t.csv", {}
    frame.assign(bought=frame.bought.where(frame.index > 4)).to_csv(table, index=False)

    def build(rows, target, **options):
        given.update(options, rows=rows.num_rows)
        raise ValueError("seen enough")

    monkeypatch.setattr("toprank.report.build", build)
    names = ["--as-text", "age", "--clip", "income", "--tidy", "city", "--as-number", "age"]
    command = ["report", table, "-y", "bought", *names, "-o", tmp_path / "report.html"]
    assert "missing in 5 of 300 rows" in invoke(*command).stderr.replace("\n", " ")
    invoke(*command, "--skip-unlabelled", "--model", "auto")
    assert given["rows"] == 295 and given["fit"] == {"model": "auto"}
    assert given["as_text"] == given["as_number"] == ("age",)
    assert given["clip"] == ("income",) and given["tidy"] == ("city",)


@pytest.mark.more
def test_report_measures_the_model_of_one_table_on_another(frame, tmp_path, invoke, model):
    """The page is of the model that `fit` writes; today's order is measured, not learned from."""
    learn, test = tmp_path / "learn.csv", tmp_path / "test.csv"
    frame = frame.assign(sorted_now=range(len(frame)))
    frame[::2].to_csv(learn, index=False)
    frame[1::2].to_csv(test, index=False)
    page = tmp_path / "report.html"
    options = ("--id", "customer", "--today", "sorted_now", "--as-text", "city", "--top", 20)
    answer = invoke(
        *("report", learn, "--test", test, "-y", "bought", *options, "-o", page, "--json")
    )
    assert answer.exit_code == 0, answer.output
    made = json.loads(answer.stdout)
    assert made["front"]["rows"] == 150
    fitted, today = made["front"]["models"]
    columns = {one["column"] for one in fitted["columns"]["named"]}
    assert "age" in columns and "sorted_now" not in columns
    assert today["list"][0]["id"] == "c0299"
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert "This is the model that 'toprank fit' writes" in text and str(test) in text


@pytest.mark.more
def test_report_on_another_table_says_which_sample_it_takes(frame, tmp_path, invoke, model):
    learn, parts = tmp_path / "learn.csv", tmp_path / "parts"
    frame.to_csv(learn, index=False)
    parts.mkdir()
    frame.to_parquet(parts / "0.parquet")
    page = tmp_path / "report.html"
    answer = invoke(
        *("report", learn, "--test", parts, "-y", "bought", "--id", "customer", "--drop", "joined"),
        *("-o", page, "--memory", "60kB"),
    )
    assert answer.exit_code == 0, answer.output
    assert "easured on a sample of" in page.read_text(encoding="utf-8")
