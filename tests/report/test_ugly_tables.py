"""Tables as they come: few rows, one column, many columns, times, and tables of no use."""

import json

import numpy as np
import pytest

pytest.importorskip("skops", reason="models are saved with skops")
pd = pytest.importorskip("pandas", reason="the tables are pandas data frames")

from toprank.report import build  # noqa: E402
from toprank.report.shipped import fit_shipped  # noqa: E402
from toprank.report.table import Table  # noqa: E402


def table(n, d=2, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n) > np.quantile(X[:, 0], 1 - share)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(y=y.astype(int))


def built(frame, **kwargs):
    report = build(frame, "y", **({"ps": (1, 16), "cv": 3} | kwargs))
    json.dumps(report.to_dict(), allow_nan=False)
    assert len(report.html) < 6_000_000
    return report.to_dict()


def test_a_dozen_rows_get_a_short_top_and_a_warning():
    data = built(table(12))
    assert data["k"] == 6
    assert any("6 rows instead of 50" in note for note in data["notes"])
    assert "only" in data["verdict"]["certainty"]


def test_two_positives_are_two_folds():
    frame = table(30).assign(y=0)
    frame.loc[[3, 17], "y"] = 1
    data = built(frame, cv=5)
    assert any("2 folds instead of 5" in note for note in data["notes"])


def test_a_single_positive_is_refused_with_the_reason():
    frame = table(30).assign(y=0)
    frame.loc[3, "y"] = 1
    with pytest.raises(ValueError, match="single row"):
        built(frame)


def test_one_column_that_separates_the_classes_is_enough():
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60) >= 40})
    data = built(frame, k=10)
    assert data["chosen"]["figures"]["precision"]["value"] == 1.0
    # merged place by place, folds of unequal shares of positives do not meet to the row
    assert data["chosen"]["figures"]["auc"]["value"] > 0.99


def test_a_column_that_says_nothing_gives_a_list_of_ties():
    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "y": np.arange(60) % 3 == 0})
    data = built(frame, k=10)
    assert data["pushes"][0]["tied_at_cut"] > 10


def test_a_column_that_some_folds_never_see_does_no_harm():
    frame = table(60).assign(rare=np.nan, word=None)
    frame.loc[5, "rare"], frame.loc[6, "rare"] = 1.0, 2.0
    frame.loc[[7, 8], "word"] = ["once", "twice"]
    data = built(frame, k=10)
    assert {"rare", "word"} <= {one["name"] for one in data["table"]["columns"]}


def test_a_sample_that_supports_no_push_says_so():
    data = built(table(16, 1), ps=(64,), k=4)
    assert data["support"]["p"] is None
    assert "supports none" in data["choice"]["verdict"]


@pytest.mark.more
def test_many_columns_are_summed_beyond_the_first_twelve():
    data = built(table(200, 60))
    found = data["pushes"][0]["features"]
    assert len(found["columns"]) == 12 and found["others"] == 48
    parts = sum(one["adds"] for one in found["columns"]) + found["others_add"]
    assert parts == pytest.approx(found["total"], rel=1e-4)


def test_folds_in_the_order_of_time_leave_the_first_rows_unscored():
    frame = table(120).assign(when=pd.date_range("2024-01-01", periods=120, freq="D"))
    data = built(frame, time="when", cv=3)
    assert data["table"]["scored"] == 90 < data["table"]["rows"]
    assert any("follow time" in note for note in data["notes"])
    assert min(map(int, data["items"])) >= 30
    assert "in the order of time" in data["made"]["folds"]
    assert "when" not in {one["name"] for one in data["table"]["columns"]}


def test_an_infinite_push_can_be_on_the_slider():
    data = built(table(80), ps=(1, np.inf))
    assert data["labels"] == ["strength 1", "strength ∞"] and data["ps"] == [1.0, None]
    assert "p" in data["support"]


@pytest.mark.more
def test_polars_and_arrow_tables_give_the_same_report():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame = table(90)
    expected = built(frame, k=10)["pushes"]
    assert built(polars.from_pandas(frame), k=10)["pushes"] == expected
    assert built(pyarrow.Table.from_pandas(frame), k=10)["pushes"] == expected


@pytest.mark.parametrize(
    ("change", "kwargs", "said"),
    [
        (lambda f: f.assign(y=1), {}, "one value only"),
        (lambda f: f.assign(y=np.arange(len(f))), {}, "different values"),
        (lambda f: f.assign(y=np.where(f.y, "b", "a")), {}, "which belongs at the top"),
        (lambda f: f.drop(columns="y"), {}, "no such column"),
        (lambda f: f.iloc[:0], {}, "no rows"),
        (lambda f: f[["y"]], {}, "no column to rank by"),
        (lambda f: f.assign(y=f.y.where(f.index > 3)), {}, "missing in 4 of 60 rows"),
        (lambda f: f, {"id": "y"}, "is the target already"),
        (lambda f: f, {"id": "nobody"}, "no such column"),
        (lambda f: f, {"k": 0}, "k=0"),
        (lambda f: f, {"k": 0.5}, "k=0.5"),
        (lambda f: f, {"cv": 1}, "cv=1"),
        (lambda f: f, {"ps": (0.5,)}, "0.5"),
        (lambda f: f.to_numpy(), {}, "expected a data frame"),
    ],
)
def test_a_table_or_a_wish_of_no_use_is_a_value_error_that_says_why(change, kwargs, said):
    with pytest.raises(ValueError, match=said):
        built(change(table(60)), **kwargs)


@pytest.mark.slow
def test_a_hundred_thousand_rows_make_a_small_page():
    data = build(table(100_000, 12, share=0.02), "y", ps=(1, 16, 64), cv=3)
    assert len(data.html) < 1_000_000


@pytest.mark.more
def test_strengths_are_fitted_to_a_sample_of_many_rows_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr("toprank.report.builder.MOST_ROWS", 120)
    frame = table(400)
    data = built(frame, k=20)
    said = "Every strength of the push was fitted to 120 rows drawn from the 400, class by class."
    assert said in data["notes"]


@pytest.mark.more
def test_the_strength_that_rests_on_one_negative_has_no_support_of_its_own():
    report = build(table(200), "y", ps=(np.inf,), cv=3, k=20)
    assert any(
        "Strength \u221e rests on the highest negative" in n for n in report.to_dict()["notes"]
    )
    assert "These rows cannot tell; the notes at the top say why." in report.html


@pytest.mark.more
def test_the_first_rows_are_told_from_all_by_flags_and_words_too():
    rng = np.random.default_rng(0)
    n = 240
    flag = rng.random(n) < 0.4
    notes = [f"call {a} about {b} or {c}" for a, b, c in rng.integers(0, 40, (n, 3))]
    frame = pd.DataFrame({"flag": flag, "note": notes, "x": rng.normal(size=n)})
    frame["y"] = (frame.x + 2 * flag + rng.normal(size=n) > 1.5).astype(int)
    found = {one["what"] for one in _typical(built(frame, k=20))}
    assert {"median", "yes", "text"} <= found


def _typical(data):
    """What the columns of the first rows hold, wherever the page keeps it."""
    if isinstance(data, dict):
        if {"what", "in_top", "in_all"} <= set(data):
            yield data
        for value in data.values():
            yield from _typical(value)
    elif isinstance(data, list):
        for value in data:
            yield from _typical(value)


@pytest.mark.more
@pytest.mark.parametrize(
    ("role", "held"),
    [("time", "the last ones in time"), ("groups", "whole groups drawn at random")],
)
def test_the_page_says_which_rows_were_held_out(role, held, monkeypatch):
    monkeypatch.setattr("toprank.report.shipped._FEW_ROWS", 100)
    frame = table(300).assign(place=np.arange(300) // 3)
    read = Table.read(frame, "y", "1", **{"id": None, "time": None, role: "place"})
    shown = fit_shipped(frame, read, {"model": "proper"}, 0)
    assert held in shown.how
    places = shown.frame.place
    if role == "time":
        assert places.min() >= frame.place.drop(shown.frame.index).max()
    else:
        assert set(places.value_counts()) == {3}
