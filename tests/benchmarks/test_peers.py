"""The harness repeats itself, goes on where it stopped, and its pages are made from the record."""

import importlib
import json
import multiprocessing
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FAST = ("LogisticRegression", "PNormPush(p=4)", "RankBoost(p=1)")
pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="cells run in forked processes"
)


@pytest.fixture(scope="module")
def peers():
    """The package benchmarks.peers, which lies in the checkout and is not installed."""
    sys.path.insert(0, str(ROOT))
    try:
        names = ("__main__", "cells", "data", "harness", "pages", "rankers", "store", "tables")
        names += ("full", "full_page", "marks", "toppush", "when")
        yield {name: importlib.import_module(f"benchmarks.peers.{name}") for name in names}
    finally:
        sys.path.remove(str(ROOT))


def quick(peers, folder, **changes):
    settings = {"sets": ("ionosphere",), "rankers": FAST, "n_splits": 2, "train_rows": 100}
    plan = peers["harness"].Plan(**{**settings, **changes})
    store = peers["store"].Store(folder / "peers.jsonl")
    peers["harness"].run(plan, folder, store)
    return store


def values(store):
    return {key: cell["values"] for key, cell in store.cells.items()}


@pytest.mark.more
def test_two_runs_agree_to_the_last_digit(peers, tmp_path):
    first, second = (quick(peers, tmp_path / name) for name in ("a", "b"))
    assert values(first) == values(second)
    assert len(first.cells) == 1 + 2 * len(FAST)
    for cell in first:
        if cell["key"][0] == "cell":
            assert "failed" not in cell["values"]
            assert cell["costs"]["fit_s"] >= 0


@pytest.mark.more
def test_finished_cells_are_not_run_again_and_the_missing_ones_are(peers, tmp_path, monkeypatch):
    quick(peers, tmp_path, n_splits=1)
    path = tmp_path / "peers.jsonl"
    kept = path.read_text()
    path.write_text(kept + '{"key": ["cell", "ionos')  # cut short while it was written
    asked = []
    measured = peers["harness"].measured

    def watched(ranker, *rest):
        asked.append(ranker.name)
        return measured(ranker, *rest)

    monkeypatch.setattr(peers["harness"], "measured", watched)
    store = quick(peers, tmp_path, n_splits=2)
    assert sorted(asked) == sorted(FAST)  # those of the second split only
    again = peers["store"].Store(path)
    assert values(again) == values(store)


@pytest.mark.more
def test_a_ranker_that_is_missing_crashes_or_never_ends_is_a_row_and_no_failure(peers, tmp_path):
    Ranker, measured = peers["rankers"].Ranker, peers["cells"].measured
    data = peers["data"].load("ionosphere", tmp_path)
    ((train, test),) = peers["data"].splits(data, 1)

    class Stubborn:
        def fit(self, X, y):
            while len(y) > 40:
                pass

    class Broken:
        def fit(self, X, y):
            raise ValueError("no such luck")

    def why(make, **facts):
        ranker = Ranker("x", "linear", "toprank", make, **facts)
        return measured(ranker, data, train, test, 1.0).values["failed"]

    assert Ranker("x", "linear", "no_such_module", Broken).missing.startswith("not installed")
    assert why(Broken) == "ValueError: no such luck"
    assert why(Stubborn) == "no result in 1 s of processor time"
    assert why(Broken, longest=10) == "takes at most 10 rows in one list"


@pytest.mark.slow
def test_every_ranker_that_is_installed_gives_finite_metrics_on_a_small_set(peers, tmp_path):
    rankers = [r.name for r in peers["rankers"].RANKERS.values() if not (r.missing or r.slow)]
    store = quick(peers, tmp_path, rankers=tuple(rankers), n_splits=1)
    cells = {cell["key"][2]: cell["values"] for cell in store if cell["key"][0] == "cell"}
    assert set(cells) == set(rankers)
    failed = {name: of["failed"] for name, of in cells.items() if "failed" in of}
    assert failed == {}
    assert all(0.5 < of["AUC"] <= 1 for name, of in cells.items() if "TopPush" not in name)


@pytest.mark.more
def test_the_page_shows_the_mean_and_the_corrected_interval_of_the_difference(peers, tmp_path):
    from toprank.tuning import corrected_difference

    store = quick(peers, tmp_path)
    page = peers["pages"].peers(store, None)
    found = {
        name: np.array(
            [
                cell["values"]["AUC"]
                for cell in store
                if cell["key"][0] == "cell" and cell["key"][2] == name
            ]
        )
        for name in FAST
    }
    paired = corrected_difference(found["PNormPush(p=4)"] - found["LogisticRegression"], 0.5)
    half = paired.high - paired.mean
    shown = f"({paired.mean:+.3f} ± {half:.3f}".replace("0.", ".")
    assert shown in page.split("## AUC\n")[1]


def test_the_splits_keep_groups_whole_and_thin_the_classes_in_proportion(peers):
    rng = np.random.default_rng(0)
    data = peers["data"].Data(
        "x", rng.normal(size=(3000, 2)), (np.arange(3000) % 10 == 0).astype(int)
    )
    for train, test in peers["data"].splits(data, 3, train_rows=500):
        assert not set(train) & set(test)
        assert len(train) == 500
        assert data.y[train].mean() == pytest.approx(0.1, abs=0.002)
    grouped = peers["data"].Data("x", data.X, data.y, np.arange(3000) // 30)
    for train, test in peers["data"].splits(grouped, 3):
        assert not set(grouped.groups[train]) & set(grouped.groups[test])


@pytest.mark.more
def test_the_protocol_of_toppush_chooses_in_the_folds_and_measures_on_the_test_rows(peers):
    data = peers["data"].load("ionosphere", ROOT)
    ((train, test),) = peers["data"].splits(data, 1)
    grid = peers["toppush"].Grid((1, 4), (1e-1, 1e-3))
    (values, _), (again, _) = (
        peers["toppush"].one_split(data, train, test, grid, 0) for _ in range(2)
    )
    assert values == again
    pushes = {name: of for name, of in values.items() if name.startswith("p =")}
    best = max(pushes, key=lambda name: pushes[name]["folds"])
    assert values[peers["toppush"].BY_METRIC] == {**pushes[best], "p": best}
    assert all(of["alpha"] in grid.penalties and 0 <= of["test"] <= 1 for of in values.values())


def test_positives_are_thinned_one_level_inside_the_other(peers):
    y = (np.arange(6000) % 3 == 0).astype(int)
    data = peers["data"].Data("x", np.zeros((6000, 1)), y)
    (cut,) = peers["data"].splits(data, 1, train_rows=6000)
    cells = list(peers["when"]._thinner_positives(data, *cut, 0))
    assert [level for _, _, _, level, *_ in cells] == [1.0, 0.25, 0.0625]
    for (*_, train, test), (*_, fewer, fewest) in pairwise(cells):
        for rows, kept in ((train, fewer), (test, fewest)):
            assert set(kept) < set(rows)
            assert (y[kept] == 0).sum() == (y[rows] == 0).sum()
            assert y[kept].sum() == pytest.approx(y[rows].sum() / 4, abs=1)


def test_a_class_that_is_rare_keeps_a_hundred_rows_when_others_are_thinned(peers):
    y = (np.arange(50_000) < 200).astype(int)
    kept = peers["full"].thinned(np.arange(50_000), y, 10_000, seed=[0, 0])
    assert (len(kept), y[kept].sum()) == (10_000, 100)
    few = (np.arange(50_000) < 30).astype(int)
    assert few[peers["full"].thinned(np.arange(50_000), few, 10_000, seed=[0, 0])].sum() == 30


def test_holm_and_the_critical_difference_are_those_of_the_books(peers):
    page = peers["full_page"]
    np.testing.assert_allclose(page.holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    # Demšar 2006, Section 3.2.2: four classifiers, fourteen sets
    assert page.critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)


def test_a_mark_changes_with_the_answers_of_a_ranker_of_ours_and_the_version_of_a_peer(peers):
    from sklearn import __version__
    from sklearn.linear_model import LogisticRegression

    def mark(family, penalty):
        make = lambda: LogisticRegression(C=penalty)  # noqa: E731
        return peers["marks"].mark_of(peers["rankers"].Ranker("x", family, "sklearn", make))

    assert mark("ours", 1.0) == mark("ours", 1.0) != mark("ours", 1e-3)
    assert mark("default", 1.0) == mark("default", 1e-3) == f"sklearn {__version__}"


def test_cells_of_earlier_code_are_named_and_the_last_line_of_a_key_counts(peers, tmp_path):
    store = peers["store"].Store(tmp_path / "full.jsonl")
    for name, mark in (
        ("pima", None),
        ("wdbc", "a"),
        ("wdbc", "b"),
        ("magic", "a"),
        ("cover", "b"),
    ):
        store.add(("full", name, "PushEnsemble", 0), {"of": mark}, {}, mark)
    again = peers["store"].Store(store.path)
    assert again.cells == store.cells
    assert again.cells["full", "wdbc", "PushEnsemble", 0]["values"] == {"of": "b"}
    assert peers["marks"].earlier(again, "PushEnsemble") == ({"magic": 1}, 1)
    assert peers["marks"].earlier(again, "CatBoost") == ({}, 0)
    named, before = peers["full_page"]._earlier_code(again, ["PushEnsemble", "CatBoost"])
    assert "PushEnsemble on magic (1)" in named and "PushEnsemble (1)." in before


def test_a_tuned_peer_is_loaded_without_its_search_and_named_where_it_was_not_run(peers):
    tuned = [one for one in peers["full"].RANKERS.values() if one.family == "tuned"]
    assert [type(one.loader()).__name__ for one in tuned if one.library == "sklearn"] == [
        "Pipeline", "HistGradientBoostingClassifier", "RandomForestClassifier",
        "ExtraTreesClassifier",
    ]  # fmt: skip
    page, split = peers["full_page"], {0: {}}
    results = {("pima", one.name): split for one in tuned[1:]}
    results |= {(name, page.OURS): split for name in ("pima", "hiv")}
    (said,) = page._not_tuned(results)
    assert said.endswith(" hiv (all); pima (LogisticRegression).")
    assert not page._not_tuned({**results, ("pima", tuned[0].name): split, ("hiv", page.OURS): {}})


def test_a_tuned_peer_that_is_not_beaten_is_named(peers):
    page = peers["full_page"]
    first, second = page.SHOWN[:2]
    results = {
        (name, ranker): {0: {first: value - step * number, second: value}}
        for number, name in enumerate("abcdefg")
        for ranker, value, step in (
            (page.OURS, 0.5, 0), ("LightGBM, tuned", 0.4, 0.01), ("CatBoost, tuned", 0.53, 0.01)
        )
    }  # fmt: skip
    both = f": CatBoost (3 : 3, {first}), CatBoost (0 : 7, {second})."
    assert page._not_beaten(results).endswith(both)
    few = {key: value for key, value in results.items() if key[0] in "abc"}
    assert f": LightGBM (3 : 0, {first}), CatBoost (0 : 3, {first})," in page._not_beaten(few)
    assert page._not_beaten({}) == ""


def test_the_first_page_says_where_the_ensemble_stands_among_tuned_peers(peers):
    page = peers["full_page"]
    first, second = page.SHOWN[:2]
    plain = {page.OURS: 0.9, "LightGBM": 0.7}
    results = {
        (name, ranker): {0: {first: value, second: value}}
        for name in "abcdef"
        for ranker, value in {**plain, "CatBoost, tuned": 0.8}.items()
    }
    said = page._among_tuned(results, list(plain))
    assert said.startswith("With 1 tuned peers beside them (6 sets, fewer splits)")
    assert said.endswith("of PushEnsemble are 1.0 and 1.0 among 3, the best in both. ")
    for values in results.values():
        values[0][second] = -values[0][second]
    assert page._among_tuned(results, list(plain)).endswith("are 1.0 and 3.0 among 3. ")
    assert page._among_tuned({k: v for k, v in results.items() if k[1] in plain}, [*plain]) == ""


def test_settings_that_a_search_chose_are_kept_as_plain_numbers(peers, tmp_path):
    from scipy import stats
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import RandomizedSearchCV

    space = {"C": stats.loguniform(0.1, 1), "class_weight": [None, "balanced"]}
    search = RandomizedSearchCV(LogisticRegression(), space, n_iter=2, random_state=0)
    Ranker, wrapped = peers["rankers"].Ranker, peers["rankers"].standardised
    data = peers["data"].load("ionosphere", tmp_path)
    for make, chosen in ((lambda: wrapped(search), True), (LogisticRegression, False)):
        ranker = Ranker("x", "tuned", "sklearn", make)
        found = peers["cells"].fit_and_measure(ranker, data, np.arange(60), np.arange(60, 200))
        assert (found.settings is not None) == chosen
        store = peers["store"].Store(tmp_path / "full.jsonl")
        store.add(("full", "x", "LightGBM, tuned", 0), found.values, {}, "a", found.settings)
        (cell,) = peers["store"].Store(store.path)
        assert cell.get("settings") == found.settings and cell["values"] == found.values
        said = peers["full_page"]._settings_kept(store, ["LightGBM, tuned"])
        assert len(said) == chosen
    k = int(data.y[60:200].sum())
    assert found.values["precision at the number of positives"] * k == pytest.approx(
        round(found.values["precision at the number of positives"] * k)
    )


def test_a_metric_of_later_days_is_shown_where_every_ranker_has_it(peers):
    page, outdated = peers["full_page"], peers["full"].outdated
    since, rankers = page.SINCE, [page.OURS, "CatBoost"]
    whole = dict.fromkeys(peers["cells"].METRICS, 0.25)
    before = {name: value for name, value in whole.items() if name != since}
    common = {(s, r): {0: before, 1: whole} for s in "ab" for r in rankers}
    common["a", "CatBoost"] = {0: whole, 1: before}
    table, splits = page._metric_since(["a", "b"], rankers, common, since)
    assert "|  | b |" in table and splits.endswith(": b (1).")
    assert page._metric_since(["a"], rankers, common, since) == []
    assert peers["tables"].mean(common["b", page.OURS], since) == 0.25
    assert peers["tables"].gap(common["b", page.OURS], common["a", "CatBoost"], since) is None
    assert outdated({"values": before, "mark": "m"}, "m") and outdated({"values": whole}, "m")
    assert not outdated({"values": whole, "mark": "m"}, "m")
    assert not outdated({"values": {"failed": "why"}, "mark": "m"}, "m")


@pytest.mark.more
def test_the_pages_in_the_docs_are_those_of_the_record(peers, tmp_path):
    record = ROOT / "benchmarks" / "peers" / "record"
    if not (record / "peers.jsonl").is_file():
        pytest.skip("the record of the benchmarks is not in this checkout")
    pytest.importorskip("matplotlib", reason="the pages have pictures")
    peers["__main__"].main(["pages", "--docs", str(tmp_path)])
    for name in ("peers.md", "full_size.md", "when_it_helps.md"):
        written, committed = (docs / "evidence" / name for docs in (tmp_path, ROOT / "docs"))
        assert written.read_text() == committed.read_text()


@pytest.mark.more
def test_a_recorded_cell_comes_out_again(peers, tmp_path):
    """No result is written by hand: one row of the record is measured anew."""
    path = ROOT / "benchmarks" / "peers" / "record" / "peers.jsonl"
    if not path.is_file():
        pytest.skip("the record of the benchmarks is not in this checkout")
    recorded = peers["store"].Store(path)
    rows = peers["pages"].caps(peers["pages"].cells_of(recorded))["rows"]
    store = quick(
        peers,
        tmp_path,
        sets=("spambase",),
        rankers=("LogisticRegression", "PNormPush(p=4)"),
        n_splits=1,
        train_rows=rows,
    )
    for key, cell in store.cells.items():
        if key[0] == "cell":
            said = recorded.cells[key]["values"]
            found = {name: cell["values"][name] for name in said}  # it may be older than a metric
            # the last digits are the machine's
            assert found == pytest.approx(said, abs=2e-3), json.dumps(said)
