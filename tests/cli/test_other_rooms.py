"""`toprank report` and `toprank reproduce` hand over to their rooms."""

import json

import pytest


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
