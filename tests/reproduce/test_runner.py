"""The page: what is written, what is kept, what is missing, and that it comes out again."""

import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from toprank import reproduce
from toprank.reproduce import NAMES, run, runner
from toprank.reproduce.experiment import distribution_cell, exact_cell, power_of_ten
from toprank.reproduce.page import Bullets, Grid, Paragraph, Section, to_html, to_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture
def small(monkeypatch):
    """Quick runs that are quicker still."""
    settings = {
        "one-dimension": {"sizes": [10, 50], "repeats": 20, "test_rows": 2000},
        "table3": {"repeats": 2, "rounds": 10},
    }
    for name, quick in settings.items():
        monkeypatch.setitem(runner._KNOWN, name, replace(runner._KNOWN[name], quick=quick))


@pytest.fixture
def away(monkeypatch):
    """No network, no folder of data."""

    def refuse(*args, **kwargs):
        raise ConnectionError("no network in the tests")

    monkeypatch.setattr(runner, "fetch", refuse)
    monkeypatch.delenv(runner.FOLDER_VARIABLE, raising=False)


def test_every_experiment_has_a_name_and_every_name_an_experiment():
    assert set(NAMES) == set(runner._KNOWN)
    assert len(NAMES) == len(set(NAMES)) == 28


def test_a_run_writes_page_pictures_and_numbers(tmp_path, small):
    seen = []
    report = run(
        ["figure8", "table1", "one-dimension"],
        tmp_path,
        quick=True,
        n_jobs=1,
        progress=lambda *now: seen.append(now),
    )
    assert list(report.results) == ["table1", "figure8", "one-dimension"]
    text = report.markdown.read_text()
    assert text.index("Table 1") < text.index("Figure 8") < text.index("Section 10.1")
    for picture in re.findall(r"\]\((images/[^)]+)\)", text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert seen[-1] == ("one-dimension", 4, 4)
    assert not list(tmp_path.rglob("*.part"))
    kept = json.loads((tmp_path / "results" / "table1.json").read_text())
    assert kept == report.results["table1"]
    assert report.html.read_text().count("data:image/png;base64,") == 2


def test_the_html_page_is_well_formed_and_whole(tmp_path):
    report = run(["table1", "figure3"], tmp_path, n_jobs=1)
    tags, void = [], {"meta", "img"}

    class Checker(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in void:
                tags.append(tag)
            assert not any(k in ("src", "href") and v.startswith("http") for k, v in attrs)

        def handle_endtag(self, tag):
            assert tags.pop() == tag

    Checker().feed(report.html.read_text())
    assert tags == []


@pytest.mark.more
def test_two_runs_and_any_number_of_processes_agree_to_the_last_byte(tmp_path, small):
    names = ["one-dimension", "table3"]
    for folder, jobs in (("a", 1), ("b", 2)):
        run(names, tmp_path / folder, quick=True, seed=3, n_jobs=jobs)
    for file in ("reproduce.md", "results/one-dimension.json", "results/table3.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.more
def test_another_seed_gives_other_numbers(tmp_path, small):
    one, other = (
        run("one-dimension", tmp_path / str(seed), quick=True, seed=seed, n_jobs=1)
        for seed in (0, 1)
    )
    assert one.results["one-dimension"]["rows"] != other.results["one-dimension"]["rows"]


def test_a_result_that_is_there_is_not_computed_again(tmp_path, monkeypatch):
    run("table1", tmp_path, n_jobs=1)
    path = tmp_path / "results" / "table1.json"
    kept = json.loads(path.read_text())
    kept["claims"][0]["detail"] = "kept"
    path.write_text(json.dumps(kept))
    assert run("table1", tmp_path, n_jobs=1).results["table1"]["claims"][0]["detail"] == "kept"
    fresh = run("table1", tmp_path, n_jobs=1, again=True).results["table1"]
    assert fresh["claims"][0]["detail"] != "kept"


@pytest.mark.parametrize("change", [{"seed": 1}, {"version": "0"}, {"settings": {"rounds": 1}}])
def test_a_result_of_another_making_is_computed_again(tmp_path, change):
    run("table1", tmp_path, n_jobs=1)
    path = tmp_path / "results" / "table1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"claims": []} | change))
    assert run("table1", tmp_path, n_jobs=1).results["table1"]["claims"]


def test_what_does_not_agree_stands_at_the_head_of_the_page(tmp_path):
    results = run("table1", tmp_path, n_jobs=1).results
    results["table1"]["cells"][0]["verdict"] = "different"
    results["table1"]["claims"][0]["holds"] = False
    (_, listed) = runner._differences(results)
    assert [item.split(":")[0] for item in listed.items] == ["`table1`"] * 3
    assert "original order at 0-1 is out of range" in listed.items[1]
    assert "not borne out: All 9 numbers" in listed.items[2]
    assert runner._summary(results)[0][1:] == ["8 of 9 agree", "0 of 1"]


@pytest.mark.parametrize("broken", ["", "{", "[1]", "\x00"])
def test_a_broken_result_file_is_replaced(tmp_path, broken):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table1.json").write_text(broken)
    assert run("table1", tmp_path, n_jobs=1).results["table1"]["cells"]


def test_missing_data_are_said_to_be_missing_and_the_rest_is_run(tmp_path, away):
    report = run(["table1", "table5"], tmp_path, quick=True, n_jobs=1)
    text = report.markdown.read_text()
    assert "not run: the data set housing is not here" in text
    assert 'toprank.datasets.fetch("housing")' in text
    assert "not_run" in report.results["table5"]
    assert not (tmp_path / "results" / "table5.json").exists()
    assert report.results["table1"]["cells"]


def test_data_come_from_a_folder_and_from_the_environment(tmp_path, away, monkeypatch):
    with gzip.open(tmp_path / "pima.csv.gz", "wt") as file:
        file.write("a,b,y\n1,2,0\n3,4,1\n")
    X, y = runner.load_data("pima", tmp_path)
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [0, 1]
    monkeypatch.setenv(runner.FOLDER_VARIABLE, str(tmp_path))
    assert runner.load_data("pima")[1].tolist() == [0, 1]
    with pytest.raises(runner.DataMissing, match="housing is not here"):
        runner.load_data("housing", tmp_path)


def test_a_file_whose_last_column_is_no_label_is_refused(tmp_path):
    with gzip.open(tmp_path / "pima.csv.gz", "wt") as file:
        file.write("a,y\n1,0\n3,7\n")
    with pytest.raises(ValueError, match="labels 0 and 1"):
        runner.load_data("pima", tmp_path)


def test_all_names_every_experiment():
    assert runner._check_names("all") == runner._check_names(["table1", "all"]) == NAMES
    assert list(runner._check_names("table1")) == ["table1"]


@pytest.mark.parametrize(("names", "said"), [("table9", "unknown experiment 'table9'"), ([], "no")])
def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path, names, said):
    with pytest.raises(ValueError, match=f"{said}.*colt-limits"):
        run(names, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_names_run_once_and_in_the_order_of_the_papers(tmp_path):
    report = run(["figure3", "table1", "figure3"], tmp_path, n_jobs=1)
    assert list(report.results) == ["table1", "figure3"]


@pytest.mark.parametrize(
    ("ours", "printed", "verdict"),
    [
        (33.0, "33", "equal"),
        (156_638.0, "1.56e5", "cut"),
        (3125.0, "3.13e3", "equal"),
        (3136.0, "3.13e3", "cut"),
        (3140.1, "3.13e3", "different"),
        (17160.174, "17160.17", "equal"),
        (17160.16, "17160.17", "different"),
    ],
)
def test_a_printed_number_is_compared_at_its_digits(ours, printed, verdict):
    assert exact_cell("row", "column", ours, printed)["verdict"] == verdict


def test_a_cell_is_inside_or_outside_the_central_range():
    values = np.arange(1000.0)
    cell = distribution_cell("row", "column", values, 500.0)
    assert (cell["verdict"], cell["percentile"]) == ("inside", 50.05)
    assert distribution_cell("row", "column", values, 4.0)["verdict"] == "outside"
    assert distribution_cell("row", "column", values, 996.0)["verdict"] == "outside"
    assert distribution_cell("row", "column", values, 993.0)["verdict"] == "inside"


def test_the_power_of_ten_is_one_for_the_whole_row():
    assert power_of_ten([5.9e10, 5.5e10, 5.4e10], [6.5, 5.9, 5.5]) == 1e10
    assert power_of_ten([0.84], [0.83]) == 1.0


def test_markup_is_escaped_in_html_and_kept_in_markdown(tmp_path):
    section = Section("a", "A < B", [Paragraph("`x < y` & **bold**"), Bullets(["p > 1"])])
    grid = [Grid(["", "n"], [["a|b", "1"]])]
    html = to_html("T", grid, [section], tmp_path)
    assert "<code>x &lt; y</code> &amp; <b>bold</b>" in html
    assert '<h2 id="a">A &lt; B</h2>' in html
    assert "## A < B" in to_markdown("T", [], [section])


QUICK = ["table1", "table2", "figure1", "figure3", "figure4", "figure8"]


@pytest.mark.parametrize("name", QUICK)
def test_the_committed_page_comes_out_again(name, tmp_path):
    _compare_with_docs(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in runner._KNOWN if name not in QUICK])
def test_the_committed_page_comes_out_again_slowly(name, tmp_path):
    _compare_with_docs(name, tmp_path)


def _compare_with_docs(name, folder):
    """The section of the page: the same words, and numbers that another machine may round."""
    report = run(name, folder, n_jobs=1, data_folder=_data_that_does_not_ship(folder))
    if "not_run" in report.results[name]:
        pytest.skip(f"needs a network: {report.results[name]['not_run']}")
    title = runner._KNOWN[name].title
    fresh, committed = (
        _section(text, title)
        for text in (report.markdown.read_text(), (DOCS / "evidence" / "reproduce.md").read_text())
    )
    assert NUMBER.sub("#", fresh).split() == NUMBER.sub("#", committed).split()
    numbers = [
        [float(x.replace(",", "")) for x in NUMBER.findall(text)] for text in (fresh, committed)
    ]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=2e-3)


def _data_that_does_not_ship(folder):
    """Housing and pima from ../shared/data, where it lies beside the checkout."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    place = folder / "data"
    place.mkdir()
    for name in ("housing", "pima"):
        if (beside / f"{name}.csv.gz").is_file():
            (place / f"{name}.csv.gz").write_bytes((beside / f"{name}.csv.gz").read_bytes())
    return place


def _section(page, title):
    start = page.index(f"## {title}\n")
    end = page.find("\n## ", start + 1)
    return page[start : end if end > 0 else None].strip()


def test_the_old_name_of_what_run_returns_warns_and_is_the_same_class():
    with pytest.warns(DeprecationWarning, match=r"reproduce\.Reproduction.*goes away"):
        assert reproduce.Report is reproduce.Reproduction
    with pytest.raises(AttributeError, match="no attribute 'Paper'"):
        _ = reproduce.Paper
