"""Drift of columns and scores against what a model remembers of its training rows."""

import numpy as np
import pytest
from scipy.stats import kstest

from toprank.models import DriftWatch, ModelError, fit_table
from toprank.models.bins import Bins, _chance, population_stability_index
from toprank.models.monitor import SCORES, Limits, monitor_model

pd = pytest.importorskip("pandas", reason="tables need the extra models")
pytest.importorskip("skops", reason="models are saved with skops")


def table(rng, n):
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "few": rng.poisson(1.0, n),
            "flag": rng.random(n) < 0.25,
            "city": rng.choice(["Rome", "Oslo", "Bern", "Lima"], n, p=[0.5, 0.3, 0.195, 0.005]),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.uniform(0, 90, n), "D"),
            "words": [f"call {i} back" for i in np.random.default_rng(n).integers(0, 200, n)],
        }
    )
    frame.loc[rng.random(n) < 0.2, "x"] = np.nan
    frame["y"] = frame.x.fillna(0) + frame.few + rng.normal(size=n) > 2.5
    return frame


@pytest.fixture(scope="module")
def frame():
    return table(np.random.default_rng(0), 1_500)


@pytest.fixture(scope="module")
def model(frame):
    return fit_table(frame, "y", p=2)


def watched(model, frame, pieces=1, against=None):
    watch = DriftWatch(model, against)
    for part in np.array_split(np.arange(len(frame)), pieces):
        watch.add(frame.iloc[part])
    return watch


def test_the_training_rows_themselves_have_not_moved(model, frame):
    watch = watched(model, frame)
    assert watch.rows == len(frame)
    assert {one.name for one in watch.columns()} == set(model.schema.names)
    for one in watch.columns():
        if one.kind == "text":  # what is frequent was found on a half of these very rows
            assert not one.passes(0.25)
        else:
            assert one.psi == pytest.approx(0.0, abs=1e-9) and one.p_value > 0.99
    # scores are compared with those of rows that the model had not seen
    assert watch.scores().psi < 0.05 and not watch.scores().passes(0.0)


def test_pieces_count_as_the_whole(model, frame):
    moved = frame.assign(x=frame.x + 1)
    whole, parts = watched(model, moved), watched(model, moved, pieces=7)
    assert whole.columns() == parts.columns()


def test_the_index_is_that_of_its_definition(model, frame):
    """PSI = sum (b - a) log(b / a), by hand for a column of categories without rare ones."""
    counts = {"Rome": 300, "Oslo": 300, "Bern": 390, "": 0}
    rows = frame.iloc[:990].assign(city=["Rome"] * 300 + ["Oslo"] * 300 + ["Bern"] * 390)
    found = next(one for one in watched(model, rows).columns() if one.name == "city")
    then = frame.city.value_counts()
    then = np.array([then["Rome"], then["Oslo"], then["Bern"], then["Lima"]]) + 0.5
    now = np.array([counts["Rome"], counts["Oslo"], counts["Bern"], 0]) + 0.5
    a, b = then / then.sum(), now / now.sum()
    assert found.psi == pytest.approx(np.sum((b - a) * np.log(b / a)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("x", lambda f: f.x + 1),
        ("x", lambda f: np.nan),
        ("few", lambda f: f.few + 1),
        ("flag", lambda f: ~f.flag),
        ("city", lambda f: f.city.replace("Rome", "Lima")),
        ("city", lambda f: None),
        ("day", lambda f: f.day + pd.Timedelta(days=60)),
        ("words", lambda f: None),
    ],
)
def test_a_column_that_moves_is_found_and_the_others_are_not(model, frame, column, change):
    watch = watched(model, frame.assign(**{column: change(frame)}))
    among = len(watch.columns())
    assert [one.name for one in watch.columns() if one.passes(0.25, among)] == [column]
    assert watch.columns()[0].name == column


@pytest.mark.more
def test_p_values_are_uniform_where_nothing_has_changed(model):
    rng = np.random.default_rng(1)
    found = {name: [] for name in ("x", "city", "flag")}
    for _ in range(60):
        watch = DriftWatch(model, table(rng, 400))
        watch.add(table(rng, 300))
        for one in watch.columns():
            if one.name in found:
                found[one.name].append(one.p_value)
    # half a row in every bin makes the smallest bins a little too quiet
    for name, values in found.items():
        assert kstest(values, "uniform", alternative="less").pvalue > 1e-4 or name == "city"
        assert np.mean(np.array(values) < 0.01) < 0.05


def test_the_cut_off_parts_the_share_that_was_asked_for(model, frame):
    scores = model.score(frame)
    cut, share = DriftWatch(model, frame).cut_off(0.05)
    assert share == pytest.approx(np.mean(scores > cut)) and share == pytest.approx(0.05, abs=2e-3)
    cut, share = DriftWatch(model).cut_off(0.05)  # of unseen rows: so it holds for new ones
    assert share == pytest.approx(0.05, abs=2e-3)
    new = model.score(table(np.random.default_rng(5), 4_000))
    assert np.mean(new > cut) == pytest.approx(0.05, abs=0.015)


def test_tied_scores_give_the_share_that_is_above(frame):
    stump = fit_table(frame[["flag", "y"]], "y", model="rankboost", p=1)
    cut, share = DriftWatch(stump, frame).cut_off(0.1)
    assert share == pytest.approx(np.mean(stump.score(frame) > cut))


def test_another_table_may_be_the_standard(model, frame):
    moved = frame.assign(x=frame.x + 1)
    watch = watched(model, moved, against=moved)
    assert watch.scores().name == SCORES and watch.scores().psi == pytest.approx(0.0, abs=1e-9)


def test_what_does_not_match_is_refused(model, frame):
    with pytest.raises(ModelError, match="'x'"):
        DriftWatch(model).add(frame.drop(columns="x"))
    with pytest.raises(ModelError, match="'x'"):
        DriftWatch(model, frame.drop(columns="x"))
    with pytest.raises(ModelError, match="card"):
        DriftWatch(model.with_card({}))


@pytest.mark.more
def test_trees_raise_no_alarm_where_nothing_has_changed():
    """Their scores of their own training rows are far apart: each new table looked like drift."""
    rng = np.random.default_rng(0)

    def draw(n):
        made = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
        return made.assign(y=made.a + 1.5 * rng.normal(size=n) > 1.5)

    trees = fit_table(draw(500), "y", model="trees", p=4)
    assert trees.card["reference"]["scores_from"] == "out of fold"
    for _ in range(5):
        assert alarms(trees, draw(500)) == []
    assert any("score" in one for one in alarms(trees, draw(500).assign(a=lambda f: f.a + 1)))
    own = {**trees.card["reference"], "scores_from": "training"}
    old = trees.with_card({**trees.card, "reference": own})
    found = findings(old, draw(500).assign(a=lambda f: f.a + 1))
    assert [one for one in found.alarms if "score" in one or "alert" in one] == []
    assert "reference table" in found.notes[0]


def findings(model, frame, limit=0.25, volume=2.0):
    rows = frame.drop(columns="y")
    parts = [(rows, model.score(rows))]
    return monitor_model(model, parts, lambda: None, Limits(limit, volume, None))


def alarms(model, frame, limit=0.25, volume=2.0):
    return findings(model, frame, limit, volume).alarms


@pytest.mark.more
@pytest.mark.filterwarnings("ignore:column 'city'")  # most words of a small table are new
def test_words_that_were_frequent_by_chance_are_no_drift():
    """Of 200 equally rare words some are seen three times of 300: they will be rarer."""
    rng = np.random.default_rng(1)

    def draw(n):
        made = pd.DataFrame({"city": [f"c{j}" for j in rng.integers(0, 200, n)]})
        return made.assign(y=rng.random(n) < 0.3)

    model = fit_table(draw(300), "y", p=1)
    values = []
    for _ in range(30):
        watch = DriftWatch(model, draw(300))
        watch.add(draw(300))
        values.append(watch.columns()[0].p_value)
    assert np.mean(np.array(values) < 0.05) <= 0.15


def test_a_few_rows_of_a_new_kind_are_no_certain_drift(model, frame):
    """One row in twelve with a missing value that none of 1,500 had: it happens."""
    assert frame.city.notna().all()
    watch = watched(model, frame.iloc[:12].assign(city=[None] + ["Rome"] * 6 + ["Oslo"] * 5))
    city = next(one for one in watch.columns() if one.name == "city")
    assert city.p_value > 1e-3


def test_the_change_of_volume_allows_for_the_rows_of_both_tables(model):
    watch = DriftWatch(model)
    watch.rows = 100_000
    low, high = watch.volume_change(10_000, 0.1, 0.95)
    assert low < 1 < high
    assert low < 0.9 and high > 1.1  # although 100,000 rows know their own share well
    assert watch.volume_change(50_000, 0.1, 0.95)[0] > 2
    assert watch.volume_change(0, 0.0, 0.95) == (0.0, float("inf"))


def test_less_than_half_a_row_without_a_value_is_no_drift():
    words = Bins.of("words", {"kind": "text", "missing": 0.004}, [])
    words.add(np.array(["call back", "no answer", "call back"], dtype=object))
    found = words.drift(rows_before=100)  # 0.4 rows of training have none: shares are rounded
    assert found.psi > 0.1 and found.p_value == 1.0 and not found.passes(limit=0.1)


@pytest.mark.parametrize(
    ("rows", "new", "shares"),
    [(10_000, 100, [0.1] * 10), (10_000, 100, [0.07] * 10 + [0.3]), (2_000, 60, [0.1] * 10)],
)
def test_the_chance_of_a_large_index_is_right_far_out(rows, new, shares):
    """Of few new rows and many columns: chi-squared tails gave 1 in 100,000 for 1 in 10,000."""
    then = rows * np.array(shares)
    rng = np.random.default_rng(3)
    now = rng.multinomial(new, shares, 100_000).astype(float)
    index = population_stability_index(np.broadcast_to(then, now.shape), now)
    rank = np.argsort(-index)
    for far, share in ((100, 1e-3), (10, 1e-4)):
        found = _chance(then, now[rank[far]], float(index[rank[far]]), 0.0)
        assert share / 3 < found < 3 * share
