"""A look at a table: what gives the answer away, what is read wrongly, and silence."""

import numpy as np
import pandas as pd
import pytest

from toprank.models import ModelError, ModelWarning, fit_table, load, look_at
from toprank.models.doubts import copied_rows


def honest(n=400, seed=0):
    """Nothing is wrong with it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(1),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "joined": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "spent": rng.lognormal(3, 1, n),
        }
    )
    frame.loc[::9, "spent"] = np.nan
    chance = frame.age / 10 + (frame.city == "Oslo") + rng.normal(size=n)
    frame["y"] = (chance > np.quantile(chance, 0.8)).astype(int)
    return frame


def said(frame, danger=None, **given):
    found = look_at(frame, "y", **given)
    return [concern for concern in found if danger is None or concern.danger == danger]


def the_only(found, column):
    (one,) = (concern for concern in found if column in concern.columns)
    return one


def test_an_honest_table_gets_no_word():
    assert said(honest()) == []


@pytest.mark.parametrize("name", ["ionosphere", "magic", "spambase", "wdbc"])
def test_no_honest_data_set_is_said_to_leak(name):
    from toprank import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    frame = pd.DataFrame(X).add_prefix("x").assign(y=y)
    assert [str(one) for one in said(frame) if one.danger < 3] == []


LEAKS = {
    "a copy": lambda y, rng: y,
    "a copy in words": lambda y, rng: np.where(y == 1, "paid", "open"),
    "a copy with noise": lambda y, rng: y + rng.normal(0, 0.01, len(y)),
    "nearly a copy": lambda y, rng: y + rng.normal(0, 0.27, len(y)),
    "a copy turned round": lambda y, rng: 3.0 - y,
    "codes out of order": lambda y, rng: np.where(y == 1, 2, rng.choice([1, 3], len(y))),
    "filled in one class": lambda y, rng: np.where(y == 1, rng.normal(size=len(y)), np.nan),
    "sometimes filled in one class": lambda y, rng: np.where(
        (y == 1) & (rng.random(len(y)) < 0.6), rng.normal(size=len(y)), np.nan
    ),
    "missing in one class": lambda y, rng: np.where(y == 1, np.nan, rng.normal(size=len(y))),
    "words in one class": lambda y, rng: np.where(y == 1, rng.choice(["a", "b"], len(y)), None),
    "dates in one class": lambda y, rng: (
        pd.Series(pd.Timestamp("2026-01-01"), range(len(y))).where(y == 1)
        + pd.to_timedelta(rng.integers(0, 9, len(y)), "D")
    ),
}


@pytest.mark.parametrize("how", LEAKS)
def test_a_column_that_gives_the_answer_away_comes_first_and_is_called_dangerous(how):
    frame = honest()
    frame["leak"] = LEAKS[how](frame.y.to_numpy(), np.random.default_rng(1))
    first = said(frame)[0]
    assert first.danger == 1 and first.columns == ("leak",) and first.option == "--drop leak"
    assert said(frame, drop=["leak"]) == []


def test_a_rare_sign_and_chance_are_no_leaks():
    frame, rng = honest(2000), np.random.default_rng(2)
    rare = np.flatnonzero(frame.y)[:12]
    frame["rare"] = np.nan
    frame.loc[rare, "rare"] = 1.0 + rng.random(12)
    frame["often missing"] = np.where(rng.random(2000) < 0.7, np.nan, rng.normal(size=2000))
    assert said(frame, danger=1) == []


def test_dates_after_the_event_are_seen_where_the_time_is_named():
    frame = honest()
    frame["paid"] = frame.joined + pd.to_timedelta(3, "D")
    assert the_only(said(frame, time="joined"), "paid").danger == 1
    assert said(frame, danger=1) == []


def test_a_label_that_reads_reversed_is_doubted():
    frame = honest().assign(y=lambda f: np.where(f.y == 1, "yes", "no"))
    doubted = the_only(look_at(frame, "y", positive="no"), "y")
    assert doubted.option == "--positive yes" and look_at(frame, "y") == []


def test_names_in_figures_ids_signs_spellings_tails_and_copies_are_found_with_their_options():
    frame, rng = honest(), np.random.default_rng(3)
    n = len(frame)
    frame["zip"] = rng.integers(1000, 9999, n)
    frame["case"] = np.arange(n)
    frame["customerId"] = rng.permutation(10**6)[:n]
    frame["account"] = 10**17 + rng.integers(0, 10**6, n)
    frame["paid"] = [f"${value:,.2f}" for value in rng.lognormal(6, 1, n)]
    frame["share"] = [f"{value:.1f} %".replace(".", ",") for value in rng.uniform(0, 100, n)]
    frame["kids"] = np.where(rng.random(n) < 0.1, "?", rng.integers(0, 30, n).astype(str))
    frame["kind"] = rng.choice(["Retail", " retail", "Bank"], n)
    frame["amount"] = np.where(np.arange(n) == 7, 1e7, rng.normal(size=n))
    frame["again"] = frame.age
    frame["same"] = 1.0
    found = said(frame)
    options = {
        "zip": "--as-text zip",
        "case": "--id case",
        "customerId": "--id customerId",
        "account": "--id account",
        "paid": "--as-number paid",
        "share": "--as-number share",
        "kids": "--missing '?'",
        "kind": "--tidy kind",
        "amount": "--keep-tails",
        "again": "--drop again",
        "same": "",
    }
    assert {name: the_only(found, name).option for name in options} == options
    assert len(found) == len(options) and found == sorted(found, key=lambda one: one.danger)


def test_constant_columns_are_told_gaps_or_none():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 10, 200)})
    frame["bought"] = (frame.age + rng.normal(0, 10, 200) > 50).astype(int)
    frame = frame.assign(country="NO", fee=5.0, seen="2024-01-01", empty=np.nan)
    frame["checked"] = np.where(frame.age > 40, 7, np.nan)
    frame["mark"] = np.where(frame.age > 40, "x", None)
    assert [concern.message for concern in look_at(frame, "bought")] == [
        "left out, because every value is the same: 'country', 'fee', 'seen'",
        "left out, because every value is missing: 'empty'",
        "left out, because every value that is not missing is the same: 'checked', 'mark'",
    ]


def test_copies_of_rows_and_rows_without_labels_are_told():
    frame = pd.concat([honest(), honest().head(40)])
    (copies,) = said(frame)
    assert "40 of 440 rows are copies" in copies.message
    frame = honest().assign(y=lambda f: f.y.where(f.index != 3))
    (gap,) = said(frame)
    assert gap.option == "--skip-unlabelled" and "1 of 400" in gap.message
    with pytest.raises(ModelError, match=r"leave these rows out \(skip_unlabelled"):
        fit_table(frame, "y")


def test_fit_table_warns_of_a_leak_and_notes_it_on_the_card():
    frame = honest().assign(premium=lambda f: np.where(f.y == 1, 5.0 + f.age, np.nan))
    with pytest.warns(ModelWarning, match=r"'premium'.*drop=\['premium'\]"):
        model = fit_table(frame, "y", p=2)
    assert model.card["look"][0]["danger"] == 1
    assert "(--drop premium)" in model.card["warnings"][0]


def mended(**given):
    """A table of amounts, zip codes and spellings, and a model that reads them as it is told."""
    frame, rng = honest(), np.random.default_rng(4)
    n = len(frame)
    frame["zip"] = [f"{value:05d}" for value in rng.choice(rng.integers(1, 9999, 20), n)]
    frame["paid"] = [f"{value:,.2f} €" for value in frame.spent.fillna(7)]
    frame["paid"] = [word.translate(str.maketrans(".,", ",.")) for word in frame.paid]
    frame["kind"] = rng.choice(["Retail", " retail", "Bank"], n)
    frame["amount"] = np.where(np.arange(n) == 7, 1e7, rng.normal(size=n))
    options = {"as_text": ["zip"], "as_number": ["paid"], "tidy": ["kind"], "clip": ["amount"]}
    return frame, fit_table(frame, "y", p=2, **{**options, **given})


def test_columns_are_read_as_they_are_asked_for_also_from_the_file(tmp_path):
    frame, model = mended()
    kinds = {column.name: column for column in model.schema.columns}
    assert kinds["zip"].kind == "category" and "00" in kinds["zip"].categories[0]
    assert kinds["paid"].kind == "number" and kinds["paid"].decimal == ","
    assert kinds["kind"].categories == ("bank", "retail")
    low, high = kinds["amount"].clip
    assert -4 < low < high < 4
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.schema == model.schema
    np.testing.assert_array_equal(again.score(frame), model.score(frame))
    values = model.schema.read(frame)[0]
    np.testing.assert_allclose(values["paid"], frame.spent.fillna(7), atol=0.005)
    spelled = frame.assign(kind=frame.kind.str.strip().str.upper())
    np.testing.assert_array_equal(model.score(spelled), model.score(frame))
    far = frame.assign(amount=frame.amount.where(frame.amount <= high, 1e9))
    np.testing.assert_array_equal(model.score(far), model.score(frame))


def test_a_clipped_column_is_clipped_in_other_languages_too():
    pytest.importorskip("onnxruntime")
    frame = honest()[["age", "spent", "y"]].assign(amount=lambda f: f.age**3)
    frame.loc[5, "amount"] = 1e9
    model = fit_table(frame, "y", p=2, clip=["amount"])
    export = model.to_onnx(check=frame)
    assert export.largest_difference < 1e-9
    import sqlite3

    with sqlite3.connect(":memory:") as base:
        frame.to_sql("t", base, index=False)
        rows = base.execute(model.to_sql("t", dialect="sqlite")).fetchall()
    base.close()
    np.testing.assert_allclose([row[-1] for row in rows], model.score(frame), atol=1e-9)


def test_wishes_that_cannot_be_met_are_refused(tmp_path):
    frame = honest()
    for given, message in (
        ({"clip": ["city"]}, r"clip='city': the column holds no numbers"),
        ({"as_number": ["city"]}, r"as_number='city': 'Bern' is no number"),
        ({"tidy": ["towns"]}, r"tidy='towns': the table has no such column"),
        ({"as_text": ["y"]}, r"as_text='y': that column is not a feature"),
    ):
        with pytest.raises(ModelError, match=message):
            fit_table(frame, "y", p=2, **given)


def test_labels_that_are_spelled_in_several_ways_are_never_taken_for_different_ones(tmp_path):
    rng, frame = np.random.default_rng(6), honest()
    spelled = np.where(frame.y == 1, rng.choice(["yes", "Yes", " YES"], 400), "no")
    messy = frame.assign(y=spelled)
    for given in ({}, {"positive": "yes"}):
        with pytest.raises(ModelError, match=r"' YES' / 'Yes' / 'yes'.*tidy='y'"):
            fit_table(messy, "y", p=2, **given)
    model = fit_table(messy, "y", p=2, tidy=["y"])
    np.testing.assert_array_equal(model.score(messy), fit_table(frame, "y", p=2).score(frame))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").labels(messy), frame.y == 1)


def test_a_date_that_equals_another_is_a_copy_where_both_are_missing_too():
    frame = honest()
    frame.loc[3, "joined"] = pd.NaT
    (copy,) = said(frame.assign(since=frame.joined))
    assert copy.columns == ("since",) and "'since' = 'joined'" in copy.message


def in_two_ways(form="%m/%d/%Y", n=400):
    """A table with a column of days, none of them above the twelfth, as words."""
    rng = np.random.default_rng(9)
    dates = [pd.Timestamp(2026, *rng.integers(1, 13, 2)).strftime(form) for _ in range(n)]
    dates[:2] = [pd.Timestamp(2026, 3, 4).strftime(form), pd.Timestamp(2026, 1, 2).strftime(form)]
    return honest(n).drop(columns="joined").assign(seen=dates)


@pytest.mark.parametrize("role", [{}, {"time": "seen"}])
def test_dates_that_are_read_month_first_by_custom_alone_are_told(role):
    frame = in_two_ways()
    model = fit_table(frame, "y", p=2, **role)
    (told,) = (one for one in model.card["look"] if one["columns"] == ["seen"])
    assert told["danger"] == 2 and told["option"] == ""
    for words in (
        "column 'seen' holds dates such as '01/02/2026'",
        "read month first (2026-01-02)",
        "day first (2026-02-01)",
        "write them as 2026-01-25",
    ):
        assert words in told["message"]
    assert f"{told['message']}." in model.card["warnings"]
    assert told["message"] in str(the_only(said(frame, **role), "seen"))


def test_dates_that_can_be_read_in_one_way_get_no_word():
    frame = in_two_ways()
    same = frame.seen.str.replace(r"^(..)/..", r"\1/\1", regex=True)
    settled = ["01/25/2026", *frame.seen[1:]], ["25/01/2026", *frame.seen[1:]]
    first = in_two_ways("%Y-%m-%d").seen, in_two_ways("%Y/%m/%d").seen, in_two_ways("%d %b %Y").seen
    for dates in (same, pd.to_datetime(frame.seen), *settled, *first):
        assert not [one for one in said(frame.assign(seen=dates)) if "seen" in one.columns]


def test_a_refit_reads_dates_as_its_model_does_and_doubts_them_no_more():
    frame = in_two_ways()
    known = fit_table(frame.assign(seen=["01/25/2026", *frame.seen[1:]]), "y", p=2)
    again = fit_table(frame, "y", from_model=known)
    assert not [one for one in again.card["look"] if "seen" in one["columns"]]
    with pytest.raises(
        ModelError, match=r"'seen': expected dates like 01/25/2026 \(month/day/year"
    ):
        again.score(frame.assign(seen="25/01/2026"))


def test_copies_are_found_whatever_the_sign_of_zero_and_the_bits_of_a_gap():
    rng = np.random.default_rng(6)
    other_gap = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    fine = rng.normal(size=200)
    coarse = rng.choice([0.0, 1.0, np.nan], 200)
    again = np.where(coarse == 0, -0.0, np.where(np.isnan(coarse), other_gap, coarse))
    columns = [np.tile(fine, 2), np.append(coarse, again)]
    place = copied_rows(columns)
    assert place is not None and len(np.unique(place)) == 200
    frame = pd.DataFrame({"x": fine, "a": coarse, "b": again, "y": fine + rng.normal(size=200) > 1})
    assert "'b' = 'a'" in str(the_only(said(frame), "b"))
