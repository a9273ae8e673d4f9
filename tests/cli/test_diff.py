"""`toprank diff`, `rank --stay` and `evaluate --by`: lists through time on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from toprank.select import label_weights


@pytest.fixture(scope="module")
def days(frame, folder, invoke, model):
    """Two tables of the same customers, a day apart, and the lists of each."""
    rng = np.random.default_rng(3)
    before = frame.drop(columns="bought")
    after = before.copy()
    after.loc[0, "age"] = 99.0
    after.loc[5:20, "age"] += rng.normal(0, 3, 16)
    after = after.drop(index=[30, 31])
    new = before.iloc[[40]].assign(customer="c9999", age=95.0)
    after = pd.concat([after, new])
    paths = {}
    for name, table in (("monday", before), ("tuesday", after)):
        table.to_csv(folder / f"{name}.csv", index=False)
        done = invoke(
            "rank", model, folder / f"{name}.csv", "--top", 40, "-o", folder / f"{name}_list.csv"
        )
        assert done.exit_code == 0, done.output
        paths[name], paths[f"{name}_list"] = (
            folder / f"{name}.csv",
            folder / f"{name}_list.csv",
        )
    return paths


def test_two_lists_are_compared(invoke, days, words):
    done = invoke("diff", days["monday_list"], days["tuesday_list"], "--top", 20)
    assert done.exit_code == 0, done.output
    assert "turnover" in done.stdout and "Rank-biased overlap" in done.stdout
    found = json.loads(
        invoke("diff", days["monday_list"], days["tuesday_list"], "--top", 20, "--json").stdout
    )
    lists = [pd.read_csv(days[f"{day}_list"]).customer[:20] for day in ("monday", "tuesday")]
    assert set(found["entered"]) == set(lists[1]) - set(lists[0])
    assert set(found["left"]) == set(lists[0]) - set(lists[1])
    assert "c9999" in found["entered"] and "c0000" in found["entered"]


def test_every_move_has_its_reason(invoke, days, model, train, folder):
    asked = (
        *("diff", days["monday_list"], days["tuesday_list"], "--top", 20, "--model", model),
        *("--old-data", days["monday"], "--new-data", days["tuesday"]),
    )
    shown = invoke(*asked)
    assert shown.exit_code == 0 and "entered" in shown.stdout, shown.output
    moves = {one["name"]: one for one in json.loads(invoke(*asked, "--json").stdout)["moves"]}
    assert moves["c9999"]["why"] == "new row" and moves["c9999"]["old_place"] is None
    changed = moves["c0000"]
    assert changed["why"] == "its data" and changed["columns"][0].startswith("age: ")
    assert changed["by_model"] == 0
    assert changed["by_data"] == changed["old_place"] - changed["new_place"] > 0
    untouched = [one for name, one in moves.items() if name > "c0020" and name != "c9999"]
    assert all(one["why"] == "other rows" and not one["columns"] for one in untouched)
    # another model, the same table
    other = folder / "other"
    done = invoke("fit", train, "-y", "bought", "--id", "customer", "--drop", "age", "-o", other)
    assert done.exit_code == 0, done.output
    again = folder / "again.csv"
    invoke("rank", other, days["monday"], "--top", 40, "-o", again)
    done = invoke(
        *("diff", days["monday_list"], again, "--top", 20, "--model", other, "--json"),
        *("--old-model", model, "--old-data", days["monday"], "--new-data", days["monday"]),
    )
    moves = json.loads(done.stdout)["moves"]
    assert moves and all(one["why"] == "the model" and one["by_data"] == 0 for one in moves)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "m"), "the reasons need --old-data, --new-data, --model together"),
        (("--id", "custmer"), "did you mean 'customer'"),
        (("--id", "tied_at_the_cut"), "twice; each row must have its own name"),
    ],
)
def test_what_cannot_be_compared_is_refused(invoke, days, words, options, said):
    refused = invoke("diff", days["monday_list"], days["tuesday_list"], *options)
    assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.more
def test_rows_stay_unless_a_newcomer_is_ahead_by_more_than_noise(invoke, days, model, words):
    asked = ("rank", model, days["tuesday"], "--top", 40, "--reasons", 0, "--json")
    stayed = invoke(*asked, "--stay", days["monday_list"], "--noise", 100)
    assert stayed.exit_code == 0, stayed.output
    found = pd.DataFrame(json.loads(stayed.stdout))
    before = pd.read_csv(days["monday_list"])
    there = set(before.customer) & set(pd.read_csv(days["tuesday"]).customer)
    assert there <= set(found.customer) and len(found) == 40 and found.stays.any()
    assert "stay although newcomers score higher" in words(stayed.stderr)
    by_moves = invoke(*asked, "--stay", days["monday_list"], "-q")
    assert by_moves.exit_code == 0 and not by_moves.stderr
    within = invoke(
        *(*asked, "--stay", days["monday_list"], "--noise", 100, "--explore", 0.1),
        *("--per-entity", "city", "--most-per-entity", 20, "--limit-by", "city", "--at-least", 8),
    )
    assert within.exit_code == 0, within.output
    limited = pd.DataFrame(json.loads(within.stdout))
    assert (
        limited.drawn.sum() == 4
        and limited.stays.any()
        and not (limited.stays & limited.drawn).any()
    )
    assert limited.city[~limited.drawn].value_counts().between(8, 20).all()
    assert "rows of before stay, within a lead of 232.6" in words(within.stderr)
    for options, said in [
        (("--noise", 1), "--noise needs --stay"),
        (("--stay", days["monday_list"], "--per-group", "city"), "leave out --all and --per-group"),
        (("--stay", days["monday"]), "no column 'score' (--stay)"),
    ]:
        refused = invoke("rank", model, days["tuesday"], *options)
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"customer": "nobody"}, "no row of that list is in the table; are the ids the same?"),
        ({"score": "high"}, "--stay: the column 'score': expected numbers, got 'high'"),
        ({"score": None}, "--stay: some rows of that list have no score"),
        (None, "only 2 of its rows are in the table, too few to see how much scores move"),
    ],
)
def test_a_list_whose_rows_cannot_stay_is_refused(
    invoke, days, model, words, tmp_path, change, said
):
    before = pd.read_csv(days["monday_list"])
    there = before[before.customer.isin(pd.read_csv(days["tuesday"]).customer)]
    earlier = there[:2] if change is None else before.assign(**change)
    earlier.to_csv(tmp_path / "list.csv", index=False)
    refused = invoke("rank", model, days["tuesday"], "--stay", tmp_path / "list.csv")
    assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.more
def test_metrics_by_day(invoke, frame, folder, model, words):
    rng = np.random.default_rng(5)
    table = frame.assign(
        day=np.repeat(pd.date_range("2026-01-01", periods=10).astype(str), 30),
        home=rng.integers(0, 100, len(frame)),
    )
    path = folder / "by_day.csv"
    table.to_csv(path, index=False)
    done = invoke("evaluate", model, path, "--by", "day", "--k", 5, "--json", "-q")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)["metrics"][0]
    assert first["label"] == "precision_at(k=5), mean of 10"
    assert first["low"] <= first["value"] <= first["high"]
    asked = ("evaluate", model, path, "--by", "day", "--per-entity", "home")
    shown = invoke(*asked, "--metric", "precision_at", "--k", 5)
    assert shown.exit_code == 0 and "mean of 10" in words(shown.stdout), shown.output
    for options, said in [
        (("--per-entity", "home"), "--per-entity needs --by"),
        (("--by", "dya"), "did you mean 'day'"),
        (("--by", "bought"), "an interval over periods needs at least 4"),
        (("--by", "day", "--all"), "leave out --all"),
        (("--by", "income"), "have no period"),
    ]:
        refused = invoke("evaluate", model, path, *options)
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.more
def test_groups_in_the_first_rows(invoke, train, model, frame, words, tmp_path):
    asked = ("evaluate", model, train, "--by-group", "city", "--k", "30,0.2")
    shown = invoke(*asked, "--metric", "precision_at")
    assert shown.exit_code == 0, shown.output
    text = words(shown.stdout)
    assert "Groups in the first 30 rows" in text and "first 20% of the rows" in text
    assert "same in all? p" in text and "Oslo" in text
    found = json.loads(invoke(*asked, "--metric", "auc", "--json", "-q").stdout)["groups"]
    assert len(found) == 2 and sum(one["listed"] for one in found[0]["groups"]) == 30
    path = tmp_path / "one_shop.csv"
    frame.assign(shop="north").to_csv(path, index=False)
    for options, said in [
        (("--by-group", "ctiy"), "did you mean 'city'"),
        (("--by-group", "bought", "--k", "5"), ""),
        (("--by-group", "shop"), "--by-group shop: groups has 1 different values, expected from 2"),
    ]:
        answer = invoke("evaluate", model, path, *options)
        assert (answer.exit_code == 2) == bool(said) and said in words(answer.stderr)


@pytest.mark.more
def test_a_list_with_propensities_is_measured_as_all_rows(invoke, train, model, frame, folder):
    listed = folder / "explored.csv"
    done = invoke(
        *("rank", model, train, "--top", 150, "--explore", 0.6, "--reasons", 0, "-o", listed)
    )
    assert done.exit_code == 0, done.output
    seen = frame.merge(pd.read_csv(listed)[["customer", "propensity"]], on="customer")
    path = folder / "looked_at.csv"
    seen.to_csv(path, index=False)
    asked = ("evaluate", model, path, "--metric", "precision_at", "--k", 0.5, "--json", "-q")
    naive, weighted, truth = (
        json.loads(invoke(*arguments).stdout)["metrics"][0]
        for arguments in (
            asked,
            (*asked, "--propensity", "propensity"),
            (*asked[:2], train, *asked[3:]),
        )
    )
    assert abs(weighted["value"] - truth["value"]) < abs(naive["value"] - truth["value"])
    assert "count as" in weighted["note"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--propensity", "age"), "expected probabilities above 0, up to 1"),
        (("--propensity", "city"), "--propensity city: expected numbers"),
        (("--propensity", "age", "--by-group", "city"), "count them; not both"),
    ],
)
def test_what_is_no_propensity_is_refused(invoke, train, model, words, options, said):
    refused = invoke("evaluate", model, train, *options)
    assert refused.exit_code == 2 and said in words(refused.stderr), refused.output


@pytest.mark.more
def test_propensities_come_back_through_fit(invoke, train, model, frame, folder, words):
    listed, path = folder / "to_look_at.csv", folder / "to_learn_from.csv"
    asked = ("rank", model, train, "--top", 200, "--explore", 0.6, "--reasons", 0, "-o", listed)
    assert invoke(*asked).exit_code == 0
    seen = frame.merge(pd.read_csv(listed)[["customer", "propensity"]], on="customer")
    seen.to_csv(path, index=False)
    asked = ("fit", path, "-y", "bought", "--id", "customer", "--p", 4, "-o", folder / "next")
    done = invoke(*asked, "--propensity", "propensity", "--json", "-q")
    assert done.exit_code == 0, done.output
    card = json.loads(done.stdout)
    rows = label_weights(seen.propensity).effective_rows
    assert card["training"]["effective_rows"] == pytest.approx(rows) and rows < 200
    assert "propensity" not in card["importances"]
    assert any(f"200 rows count as {rows:.4g}" in note for note in card["warnings"])
    refused = invoke(*asked, "--propensity", "age")
    assert refused.exit_code == 2 and "expected probabilities above 0" in words(refused.stderr)
    unknown = invoke("check", path, "-y", "bought", "--propensity", "propensty")
    assert unknown.exit_code == 2 and "did you mean 'propensity'" in words(unknown.stderr)


@pytest.mark.more
def test_a_report_shows_periods_groups_promises_and_sure_places(
    invoke, train, model, frame, folder, words
):
    table = frame.assign(
        day=np.repeat(pd.date_range("2026-01-01", periods=10).astype(str), 30), age=frame.age + 0.5
    )
    path, page = folder / "days_to_report.csv", folder / "parts.html"
    table.to_csv(path, index=False)
    asked = ("report", model, path, "--top", 10, "-o", page)
    done = invoke(*asked, "--by", "day", "--by-group", "city", "--sure", train, "--json", "-q")
    assert done.exit_code == 0, done.output
    front = json.loads(done.stdout)["front"]
    assert len(front["periods"]["values"]) == 10 and front["groups"]["lines"]
    assert front["sure"]["refits"] in (20, 400) and len(front["promises"]) == 3
    for options, said in [
        (("--by", "dya"), "did you mean 'day'"),
        (("--by-group", "ctiy"), "did you mean 'city'"),
        (("--per-entity", "city"), "--per-entity needs --by"),
        (("--sure", path), "give the table that it was fitted to"),
    ]:
        refused = invoke(*asked, *options)
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output
    refused = invoke("report", train, "-y", "bought", "--sure", train, "-o", page)
    assert refused.exit_code == 2 and "--sure is for a model" in words(refused.stderr)
    refused = invoke("report", model, "--sure", train, "-o", page)
    assert refused.exit_code == 2 and "--sure needs a table with labels" in words(refused.stderr)


def test_lists_whose_rows_have_no_name_are_refused(invoke, days, words, tmp_path):
    before = pd.read_csv(days["monday_list"])
    before.assign(customer=before.customer.where(before.index != 2)).to_csv(
        tmp_path / "gap.csv", index=False
    )
    refused = invoke("diff", tmp_path / "gap.csv", days["tuesday_list"])
    assert refused.exit_code == 2, refused.output
    assert "some rows have no 'customer'; name another column by --id" in words(refused.stderr)


def test_tables_that_name_rows_twice_are_not_matched(invoke, days, model, frame, tmp_path, words):
    twice = tmp_path / "twice.csv"
    pd.concat([frame.drop(columns="bought")] * 2).to_csv(twice, index=False)
    arguments = ("--model", model, "--old-data", days["monday"], "--new-data", twice)
    done = invoke("diff", days["monday_list"], days["tuesday_list"], *arguments)
    assert done.exit_code == 2
    assert "names some rows twice" in words(done.output)
