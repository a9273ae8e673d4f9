"""The sections about what is done with the list: promises, sure places, periods and groups."""

import numpy as np
import pytest

pytest.importorskip("skops", reason="models are saved with skops")
pd = pytest.importorskip("pandas", reason="the tables are pandas data frames")

from toprank.inference import period_interval, top_groups  # noqa: E402
from toprank.models import ModelError, fit_table  # noqa: E402
from toprank.report import build, describe  # noqa: E402
from toprank.report.decisions import promise_results  # noqa: E402
from toprank.report.subjects import LabelledRows  # noqa: E402
from toprank.select import membership, select  # noqa: E402


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(8)
    n = 900
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n),
            "visits": rng.poisson(3, n),
            "<b>region": rng.choice(["north", "</td><i>south"], n),
            "day": pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
            "home": rng.integers(0, 200, n),
        }
    )
    wish = (frame.age - 45) / 6 + frame.visits - 3 + rng.logistic(size=n)
    frame["bought"] = np.where(wish > 3.0, "yes", "no")
    return frame[:400], frame[400:].reset_index(drop=True)


@pytest.fixture(scope="module")
def model(tables):
    return fit_table(tables[0], "bought", p=2, drop=("day", "home", "<b>region"))


@pytest.fixture(scope="module")
def described(model, tables):
    parts = {"by_group": "<b>region", "by": "day", "per_entity": "home"}
    return describe(model, tables[1], k=20, train=tables[0], **parts)


def test_the_page_shows_the_figures_of_the_library(described, model, tables):
    test = tables[1]
    front = described.to_dict()["front"]
    y, s = (test.bought == "yes").to_numpy(), model.score(test)
    days = test.day.str[:10].to_numpy(dtype="datetime64[D]")
    expected = period_interval("precision_at", y, s, days, entities=test.home, k=20)
    assert front["periods"]["mean"] == pytest.approx(expected.estimate, rel=1e-5)
    assert front["periods"]["names"] == list(map(str, expected.periods))
    groups = top_groups(y, s, test["<b>region"].to_numpy(), 20)
    assert front["groups"]["lines"][0]["precision"][0] == pytest.approx(
        groups.groups[0].precision[0], rel=1e-5
    )
    chosen = select(s, calibration=(y, s), fdr=0.1)
    assert front["promises"][0]["rows"] == len(chosen)
    train = tables[0]
    same = membership(
        model.ranker, model.numbers(train), train.bought == "yes", model.numbers(test), k=20
    )
    shown = [one["sure"] for one in front["models"][0]["list"]]
    order = np.argsort(-s, kind="stable")
    assert shown == pytest.approx(same.probability[order[: len(shown)]], abs=1e-5)


def test_every_part_has_its_section_and_words_of_the_table_are_escaped(described):
    page = described.html
    for name in ("promises", "periods", "groups"):
        assert f'<section id="{name}"' in page
    assert "of the first 20 would still be there" in page and "In the list, of refits" in page
    assert "<i>south" not in page and "&lt;/td&gt;&lt;i&gt;south" in page
    assert "region" in page and "<b>region" not in page


def test_parts_that_are_not_asked_for_are_not_there(model, tables):
    page = describe(model, tables[1], k=20).html
    assert '<section id="promises"' in page
    assert '<section id="periods"' not in page and '<section id="groups"' not in page


def test_rows_that_were_learned_from_vouch_for_nothing(model, tables):
    assert '<section id="promises"' not in describe(model, tables[0], k=20).html


def test_too_few_labels_are_said_with_how_many_would_do(tables):
    rng = np.random.default_rng(0)
    y = np.arange(8) < 4
    rows = LabelledRows(y, np.array(list("abcdefgh"), dtype=object), None)
    found = promise_results(rng.normal(size=8) + y, rows)
    assert [one["rows"] for one in found] == [None] * 3 and all(one["needed"] for one in found)
    weighted = LabelledRows(y, rows.names, None, weight=np.full(8, 0.5))
    assert promise_results(rng.normal(size=8), weighted) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"per_entity": "home"}, "needs by=, the column of periods"),
        ({"by": "moon"}, "moon"),
        ({"by_group": "moon"}, "moon"),
        ({"by": "bought"}, "needs at least 4"),
    ],
)
def test_parts_that_cannot_be_are_refused(model, tables, options, said):
    with pytest.raises(ModelError, match=said):
        describe(model, tables[1], k=20, **options)


def test_the_training_table_is_the_one_that_was_learned_from(model, tables):
    with pytest.raises(ModelError, match="give the table that it was fitted to"):
        describe(model, tables[1], k=20, train=tables[1])


@pytest.mark.more
def test_the_page_of_a_table_has_them_too(tables):
    frame = tables[0]
    made = build(
        frame, "bought", k=20, ps=(2,), cv=3, fit={"model": "pnorm", "p": 2}, by_group="<b>region"
    )
    assert made.to_dict()["front"]["groups"]["column"] == "<b>region"
    assert made.to_dict()["front"]["promises"]
    with pytest.raises(ModelError, match="needs fit="):
        build(frame, "bought", by_group="<b>region")


def test_groups_of_weighted_rows_are_refused_before_the_fit(tables, monkeypatch):
    def never(*_):
        raise AssertionError("fitted first")

    monkeypatch.setattr("toprank.report.builder.fit_shipped", never)
    with pytest.raises(ModelError, match="count rows, and these rows have weights"):
        build(tables[0].assign(n=2), "bought", fit={}, weight="n", by_group="<b>region")


@pytest.mark.parametrize("wish", ["fdr", "precision_at_least", "recall_at_least"])
def test_the_options_that_the_page_names_are_those_of_select(wish):
    import inspect

    from toprank.cli.select import select
    from toprank.report.decisions import _option

    option = _option({wish: 0.8}).split()[0]
    assert option.removeprefix("--") in inspect.signature(select).parameters
