"""Values that repeat, and rows that stand for several, as `toprank monitor` sees them."""

import numpy as np
import pytest

from toprank.models import DriftWatch, fit_table
from toprank.models.bins import Bins
from toprank.models.card import _SHARES, _frequent_texts, _quantiles
from toprank.models.monitor import Limits, monitor_model

pd = pytest.importorskip("pandas", reason="tables need the extra models")
pytest.importorskip("skops", reason="models are saved with skops")


def drift(then, now, weight=None):
    bins = Bins.of("x", {"kind": "number", **_quantiles(then, weight)}, list(_SHARES))
    bins.add(now)
    return bins.drift(len(then))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (np.repeat([1.0, 0.0], [950, 50]), np.zeros(300)),  # a flag that was mostly True
        (np.repeat([0.0, 3.0], [920, 80]), np.full(300, -999.0)),
        (np.append(np.full(920, 10.0), np.linspace(0, 9.9, 80)), np.linspace(0, 9.9, 300)),
        (np.repeat([1.0, 2.0, 4.0], 300), np.full(300, 3.0)),  # between values that repeat
    ],
)
def test_a_value_of_most_rows_that_goes_away_is_found(then, now):
    assert drift(then, now).passes(0.25, among=100)
    same = drift(then, then)
    assert same.psi == pytest.approx(0.0, abs=1e-12) and same.p_value > 0.99


def test_a_column_of_dates_most_of_which_are_one_day_is_watched_below_it():
    then = np.repeat(np.array(["2026-01-05", "2026-01-01"], "datetime64[us]"), [95, 5])
    bins = Bins.of("day", {"kind": "date", **_quantiles(then)}, list(_SHARES))
    bins.add(np.repeat(np.datetime64("2026-01-04", "us"), 200))
    assert bins.drift(100).passes(0.25)


def test_models_that_do_not_know_what_lay_below_a_value_are_read_as_before():
    known = _quantiles(np.repeat([1.0, 0.0], [950, 50]))
    del known["below"]
    bins = Bins.of("x", {"kind": "number", **known}, list(_SHARES))
    bins.add(np.zeros(300))
    assert bins.drift(1_000).psi == pytest.approx(0.0, abs=1e-12)


def test_ties_of_scores_in_single_precision_are_as_wide_as_those_in_double():
    scores = np.repeat(np.linspace(1.0, 2.0, 50, dtype=np.float32), 4)
    tie = 1e-9  # less than single precision tells apart
    assert _quantiles(scores, None, tie) == _quantiles(scores.astype(np.float64), None, tie)


def test_a_row_of_weight_three_is_three_rows():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200).round(1))
    weight = rng.integers(1, 4, 200)
    weighted = _quantiles(values, weight.astype(float))
    for name, found in _quantiles(np.repeat(values, weight)).items():
        assert weighted[name] == pytest.approx(found)


def test_rows_of_the_population_that_the_weights_describe_have_not_moved():
    rng = np.random.default_rng(1)

    def draw(n):
        made = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
        made["town"] = rng.choice(["Rome", "Oslo"], n)
        made["w"] = np.where(made.b > 0, 5, 1) * np.where(made.town == "Rome", 3, 1)
        return made.assign(y=made.a + 1.5 * rng.normal(size=n) > 1.5)

    model = fit_table(draw(500), "y", weight="w", p=4, alpha=1e-3)
    much = draw(4_000)
    new = much.iloc[rng.choice(4_000, 1_000, p=much.w / much.w.sum())].reset_index(drop=True)
    assert model.card["reference"]["rows"] < 500  # by Kish: fewer than there are
    for frame, alarmed in ((new, False), (draw(1_000), True)):
        rows = frame.drop(columns=["y", "w"])
        found = monitor_model(
            model, [(rows, model.score(rows))], lambda: None, Limits(0.25, 2.0, None)
        )
        assert bool(found.alarms) == alarmed


def test_the_share_of_alerts_before_is_exact_where_scores_repeat():
    """Between the quantiles that the card keeps, too: the cut-off lies between two values."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"r": rng.choice([1, 2, 3], 400, p=[0.85, 0.1, 0.05])})
    frame["y"] = 0.8 * frame.r + rng.normal(size=400) > 2.5
    model = fit_table(frame, "y", p=4, alpha=1e-3)
    cut, share = DriftWatch(model, frame).cut_off(0.07)
    assert share == pytest.approx(np.mean(model.score(frame) > cut))


def texts(rng, n, levels=200):
    return np.array([f"c{j}" for j in rng.integers(0, levels, n)], dtype=object)


@pytest.mark.parametrize("rows", [1_000, 40_000])
def test_texts_that_repeat_are_watched_for_new_ones(rows):
    rng = np.random.default_rng(3)
    entry = {"kind": "text", "missing": 0.0, **_frequent_texts(texts(rng, rows), None)}
    assert len(entry["texts"]) <= 501

    def found(now):
        bins = Bins.of("city", entry, [])
        bins.add(now)
        return bins.drift(rows)

    many = np.array([f"new {j}" for j in range(500)], dtype=object)
    half = np.where(rng.random(500) < 0.8, "new", texts(rng, 500))
    for now in (np.full(500, "new", dtype=object), many, half, np.full(500, "", dtype=object)):
        assert found(now).passes(0.25, among=100)
    usual = [found(texts(rng, 500)) for _ in range(40)]
    assert not any(one.passes(0.25) for one in usual)
    assert np.mean([one.p_value < 0.1 for one in usual]) < 0.3


def test_texts_of_which_none_repeats_are_not_kept():
    rng = np.random.default_rng(4)
    assert _frequent_texts(texts(rng, 500, levels=10**9), None) == {}
    long = np.array(["a very long text " * 9] * 100, dtype=object)
    assert _frequent_texts(long, None) == {}
    weight = rng.integers(1, 4, 400).astype(float)
    known = _frequent_texts(texts(rng, 400, levels=50), weight)
    assert known["rows"] < 200 and sum(known["texts"].values()) <= 1
