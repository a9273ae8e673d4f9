"""The page about models: it is about the model given, in words that everybody knows."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("skops", reason="models are saved with skops")
pd = pytest.importorskip("pandas", reason="the tables are pandas data frames")

from toprank.metrics import precision_at  # noqa: E402
from toprank.models import ModelError, fit_table  # noqa: E402
from toprank.models.fit import fit_rows  # noqa: E402
from toprank.report import build, describe  # noqa: E402
from toprank.report.money import gains  # noqa: E402
from toprank.report.shipped import fit_shipped  # noqa: E402
from toprank.report.table import Table  # noqa: E402


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(5)
    n = 700
    frame = pd.DataFrame(
        {
            "who": [f"</td><b id=injected>{i}" for i in range(n)],
            "age": rng.normal(45, 12, n).round(),
            "<script>": rng.choice(["Oslo", "</script>", "Rome"], n),
        }
    )
    wish = (frame.age - 45) / 12 + (frame["<script>"] == "Oslo") + rng.logistic(size=n)
    frame["bought"] = np.where(wish > 2.5, "yes", "no")
    frame["old"] = (wish + 3 * rng.normal(size=n)).round(2)
    return frame[:400], frame[400:].reset_index(drop=True)


@pytest.fixture(scope="module")
def models(tables):
    settings = {"id": "who", "drop": ("old",)}
    return {
        kind: fit_table(tables[0], "bought", model=kind, p=p, **settings)
        for kind, p in (("pnorm", 4), ("trees", 2), ("proper", None))
    }


@pytest.fixture(scope="module")
def described(models, tables):
    money = {"value_positive": 10.0, "cost": 3.0}
    return describe(models, tables[1], k=30, today="old", files={"pnorm": "a/b.toprank"}, **money)


@pytest.mark.parametrize("kind", ["pnorm", "trees", "proper"])
def test_the_page_is_about_the_model_given(kind, models, tables):
    test = tables[1]
    front = describe(models[kind], test, k=30).to_dict()["front"]
    scores, positive = models[kind].score(test), (test.bought == "yes").to_numpy()
    found = front["models"][0]
    expected = precision_at(positive, scores, 30)
    assert found["figures"]["precision"]["value"] == pytest.approx(expected, abs=1e-6)
    order = np.argsort(-scores, kind="stable")
    assert [one["id"] for one in found["list"]] == [test.who[j] for j in order]
    assert [one["positive"] for one in found["list"]] == [bool(positive[j]) for j in order]
    assert all(one["reasons"] for one in found["list"][:30])
    assert found["columns"]["named"][0]["column"] == "age"


def test_rows_that_the_model_has_learned_from_are_said(models, tables):
    for place, said in ((0, 1), (1, 0)):
        front = describe(models["proper"], tables[place], k=30).to_dict()["front"]
        assert sum("has learned from" in note for note in front["notes"]) == said


def test_the_front_page_counts_in_words(described):
    said = described.to_dict()["front"]["said"]
    assert re.match(
        r"Of the first 30 on the list, [\d.]+ are “bought = yes” \(\d+%\)\. Taken", said["headline"]
    )
    assert re.search(r"Other rows like these would give between \d+ and \d+", said["certainty"])
    assert "chance of such a difference by luck" in said["against"]
    assert "would gain" in said["money"] or "would lose" in said["money"]
    assert not re.search(r"\bp\b", " ".join(said.values()))


def test_several_models_and_the_order_of_today_stand_side_by_side(described):
    front = described.to_dict()["front"]
    assert [one["name"] for one in front["models"]] == ["pnorm", "trees", "proper", "today"]
    assert front["models"][0]["facts"]["File"] == "a/b.toprank"
    assert front["models"][2]["facts"]["What it is"] == "logistic regression"
    pairs = {tuple(line["names"]) for line in front["comparison"]}
    assert len(pairs) == 6
    for line in front["comparison"]:
        clear = line["low"] > 0 or line["high"] < 0
        assert clear == (line["by_luck"] < 0.05), line


def test_a_list_is_level_with_itself(models, tables):
    same = tables[1].assign(again=models["pnorm"].score(tables[1]))
    front = describe(models["pnorm"], same, k=30, today="again").to_dict()["front"]
    assert "finds as many of the first 30 as “today”" in front["said"]["against"]
    assert "cannot tell the two apart" in front["said"]["against"]


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_in_the_table_breaks_out_of_the_page(described):
    elements = Elements(described.html).found
    assert [tag for tag, _ in elements].count("script") == 2
    assert "b" not in {tag for tag, _ in elements}
    for tag, attributes in elements:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
        assert attributes.get("href", "#").startswith("#"), tag


def test_no_rounding_errors_are_shown(described):
    shown = described.html.split("<script>")[0]
    assert not re.search(r"\de-\d\d", shown)
    assert json.loads(json.dumps(described.to_dict(), allow_nan=False)) == described.to_dict()


def test_without_rows_the_page_shows_what_the_cards_say(models):
    page = describe(models, files={"pnorm": "a/b.toprank"})
    assert "Of the first 10% of the list" in page.to_dict()["verdict"]["headline"]
    assert "a/b.toprank" in page.html and "logistic regression" in page.html
    assert "right among the first 10%" in page.html


def test_the_page_says_that_few_rows_were_no_choice_of_p(tables):
    few = tables[0].drop(columns="old")
    few["bought"] = np.where(few.age > np.sort(few.age)[-9], "yes", "no")
    page = describe(fit_table(few, "bought", id="who", model="trees"))
    assert "p = 4 was taken without a comparison" in page.html


def test_the_number_of_rows_to_take_is_where_the_gain_is_largest():
    rows = np.array([1, 10, 100, 1000])
    curve = {"x": rows, "y": [1.0, 0.8, 0.4, 0.1], "low": [0.5] * 4, "high": [1.0] * 4}
    found = gains(curve, 10.0, 2.0)
    assert (found["best"], found["best_gain"]) == (100, 200.0)
    assert gains(curve, 1.0, 2.0)["best"] == 0


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda t: t.assign(bought="yes"), {}, "All rows are positive"),
        (lambda t: t.drop(columns="age"), {}, "age"),
        (lambda t: t, {"today": "who"}, "expected numbers to order by"),
        (lambda t: t, {"groups": "nowhere"}, "no column 'nowhere'"),
    ],
)
def test_rows_of_no_use_are_refused_in_a_sentence(models, tables, change, options, said):
    with pytest.raises(ModelError, match=said):
        describe(models["pnorm"], change(tables[1]), **options)


@pytest.mark.more  # half a minute: an ensemble, as `toprank fit` makes it
def test_a_table_s_front_page_is_about_what_fit_would_fit(tables):
    settings = {"model": "trees", "p": 2.0}
    data = build(
        tables[0], "bought", id="who", k=20, ps=(1,), cv=2, fit=settings, today="old"
    ).to_dict()
    front = data["front"]
    assert front["models"][0]["facts"]["What it is"].startswith("boosted trees")
    assert "that “toprank fit” would write" in front["how"]
    assert front["rows"] == 400 and data["verdict"]["headline"] == front["said"]["headline"]
    assert "old" not in {one["name"] for one in data["table"]["columns"]}
    assert [one["name"] for one in front["models"]] == ["the model", "today"]


@pytest.mark.more
def test_weights_and_groups_are_those_of_the_rows(models, tables):
    test = tables[1].assign(times=np.arange(300) % 3, home=np.arange(300) // 3)
    front = describe(models["pnorm"], test, k=30, weight="times", groups="home").to_dict()["front"]
    value = precision_at(
        (test.bought == "yes").to_numpy(),
        models["pnorm"].score(test),
        30,
        sample_weight=test.times.to_numpy(),
    )
    assert front["models"][0]["figures"]["precision"]["value"] == pytest.approx(value, abs=1e-6)


def test_a_table_is_read_as_its_owner_says(tables):
    table = tables[0].assign(zip=np.arange(400) % 7 + 10_000)
    read = Table.read(table, "bought", "yes", id="who", time=None, as_text=("zip",), clip=("age",))
    kinds = {column.name: column for column in read.schema.columns}
    assert kinds["zip"].kind == "category" and kinds["age"].clip is not None


def test_the_model_of_a_page_is_fitted_once_per_part(tables, monkeypatch):
    fitted = []

    def count(*rows, **options):
        fitted.append(len(rows[2]))
        return fit_rows(*rows, **options)

    monkeypatch.setattr("toprank.report.shipped.fit_rows", count)
    frame = tables[0].drop(columns="old")
    read = Table.read(frame, "bought", "yes", id="who", time=None)
    shown = fit_shipped(frame, read, {"model": "proper"}, 0)
    assert fitted == [320] * 5 and len(shown.rows) == 400
    assert np.all(np.isfinite(shown.subject.scores))


def test_models_of_different_things_or_none_are_refused(models, tables):
    with pytest.raises(ModelError, match="There is no model to describe"):
        describe({})
    other = fit_table(tables[0], "bought", positive="no", p=1, model="pnorm", drop=("old", "who"))
    with pytest.raises(ModelError, match="different things: 'bought' = 'no' and 'bought' = 'yes'"):
        describe({"a": models["pnorm"], "b": other})


def test_the_headline_says_that_a_model_was_not_measured(models):
    bare = models["pnorm"]
    card = {**bare.card, "metrics": {**bare.card["metrics"], "intervals": []}}
    found = describe(replace(bare, card=card)).to_dict()["verdict"]["headline"]
    assert found.endswith("at the top of the list; it was not measured.")


@pytest.mark.parametrize(
    ("cost", "advice"),
    [
        (1000.0, "No number of rows from the top of this list pays for itself."),
        (0.0, "It pays to take all rows: the list is not needed for that."),
    ],
)
def test_money_that_no_list_or_no_order_earns_is_said_so(cost, advice, models, tables):
    last = np.argmin(models["proper"].score(tables[1]))
    rows = tables[1].assign(bought=tables[1].bought.where(np.arange(300) != last, "yes"))
    made = describe(models["proper"], rows, k=30, value_positive=10.0, cost=cost)
    assert advice in made.html


@pytest.mark.more
def test_lists_of_luck_and_of_ties_are_called_that(models, tables):
    rng = np.random.default_rng(0)
    random = tables[1].assign(bought=rng.permutation(tables[1].bought))
    assert "may be no better than luck" in describe(models["pnorm"], random, k=30).html
    same = tables[1].assign(age=40.0, **{"<script>": "Rome"})
    assert "their order means nothing" in describe(models["pnorm"], same, k=30).html


def test_a_top_of_more_than_half_of_the_rows_is_cut_and_said(models, tables):
    front = describe(models["proper"], tables[1], k=280).to_dict()["front"]
    assert front["k"] == 150
    assert front["notes"] == [
        "The top has 150 rows instead of 280: no more than half of the 300 rows that were scored."
    ]


def test_groups_and_periods_of_weighted_rows_are_refused(models, tables):
    rows = tables[1].assign(times=2)
    with pytest.raises(ModelError, match="by_group= and by= count rows"):
        describe(models["proper"], rows, k=30, weight="times", by_group="<script>")


@pytest.mark.more
def test_rows_are_scored_in_parts_alike(models, tables, monkeypatch):
    whole = describe(models["trees"], tables[1], k=30).to_dict()["front"]["models"][0]["list"]
    monkeypatch.setattr("toprank.report.subjects._CHUNK", 70)
    parts = describe(models["trees"], tables[1], k=30).to_dict()["front"]["models"][0]["list"]
    assert parts == whole
