"""The first hour of a new user, on a table as people have them: every command, one after another.

Semicolons, a decimal comma, a byte order mark, zip codes, amounts with signs, dates day first,
several spellings of one word, ids of 18 figures, and a column that is filled in afterwards.
"""

import re

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.more

FIT = [
    *("-y", "Gekauft", "--id", "Nr", "--drop", "Erste Prämie", "--as-text", "PLZ"),
    *("--as-number", "Umsatz", "--tidy", "Segment", "-q"),
]


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables to learn from, to measure on and to rank."""
    rng, n = np.random.default_rng(3), 420
    age, sales = rng.normal(45, 12, n).round(), rng.lognormal(6, 1, n)
    segment = rng.choice(["Retail", " Retail", "B2B"], n)
    wish = (age - 45) / 12 + 2 * (segment == "B2B") + rng.logistic(size=n)
    bought = wish > np.quantile(wish, 0.8)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    table = pd.DataFrame(
        {
            "Nr": [str(10**17 + j) for j in range(n)],
            "PLZ": [f"{code:05d}" for code in rng.integers(1000, 99_000, n)],
            "Alter": np.where(rng.random(n) < 0.1, "", age.astype(int).astype(str)),
            "Umsatz": [f"{german(value)} €" for value in sales],
            "Segment": segment,
            "Seit": days.strftime("%d.%m.%Y"),
            "Erste Prämie": [german(500.0 + j) if bought[j] else "" for j in range(n)],
            "Gekauft": np.where(bought, "ja", "nein"),
        }
    )
    made = tmp_path_factory.mktemp("hour")
    parts = {"train": table[:260], "test": table[260:], "new": table[260:].iloc[:, :6]}
    for name, part in parts.items():
        part.to_csv(made / f"{name}.csv", sep=";", index=False, encoding="utf-8-sig")
    return made


@pytest.fixture
def run(invoke, folder, monkeypatch):
    monkeypatch.chdir(folder)

    def call(*arguments, code=0):
        answer = invoke(*arguments)
        assert answer.exit_code == code, answer.output
        return answer.output

    return call


@pytest.fixture
def model(run, folder):
    if not (folder / "m").exists():
        run("fit", "train.csv", *FIT, "--p", "4", "-o", "m")
    return "m"


def test_a_look_at_the_table_finds_what_is_wrong_with_it(run, words):
    said = words(run("check", "train.csv", "-y", "Gekauft", code=1))
    for option in ("--drop 'Erste Prämie'", "--id Nr", "--as-text PLZ", "--as-number Umsatz"):
        assert option in said
    assert said.index("Erste Prämie") < said.index("Segment")
    assert "more words" not in said and "(s)" not in said


def test_zip_codes_keep_their_zeros_in_lists_and_on_the_page(run, model, folder):
    run("rank", model, "new.csv", "--all", "--id", "PLZ", "-o", "all.csv", "-q")
    given = pd.read_csv(folder / "new.csv", sep=";", dtype=str)
    listed = pd.read_csv(folder / "all.csv", sep=";", dtype=str)
    assert sorted(listed.PLZ) == sorted(given.PLZ) and sorted(listed.Nr) == sorted(given.Nr)
    run("report", model, "test.csv", "-o", "page.html", "-q")
    page = re.sub("<[^>]+>", "", (folder / "page.html").read_text(encoding="utf-8"))
    shown = re.findall(r"PLZ = (\d+)", page)
    assert shown and set(shown) <= set(given.PLZ)


def test_every_command_runs_on_it_one_after_another(run, model, folder):
    assert "ja" in run("show", model)
    assert "auc" in run("evaluate", model, "test.csv")
    run("fit", "train.csv", *FIT, "--model", "proper", "-o", "m2")
    assert "m - m2" in run("compare", model, "m2", "test.csv").replace("−", "-")
    for name in (model, "m2"):
        run("rank", name, "new.csv", "--top", "20", "-o", f"{name}.csv", "-q")
    assert "Of the first 20" in run("diff", f"{model}.csv", "m2.csv")
    side = ["--value-positive", "100", "--cost", "12", "-o", "two.html"]
    assert "Of the first" in run("report", model, "m2", "test.csv", *side)
    page = (folder / "two.html").read_text(encoding="utf-8")
    page = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)
    assert "m2" in page and not re.search(r"\de-1\d|1 other columns", page)
    run("monitor", model, "new.csv", "--max-drift", "9")
    run("select", model, "new.csv", "-c", "test.csv", "--fdr", "0.7", "-o", "few.csv", "-q")
