"""The members of "auto": linear ones with gaps and categories, forests, CatBoost as arrays."""

import os
import signal
import sqlite3
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from toprank import PNormPush, PushEnsemble
from toprank.blocks.threads import Stopped, is_stopped, stop_where
from toprank.interop.sql import to_sql
from toprank.rankers.ensemble import converted
from toprank.rankers.ensemble.columns import LinearColumns
from toprank.rankers.ensemble.converted import CatBoostRanker, ForestRanker
from toprank.rankers.ensemble.flat_forest import FlatForest, mean_values
from toprank.rankers.ensemble.out_of_fold import Budget, Run
from toprank.rankers.ensemble.plan import EFFORTS, TableShape, auto_folds, auto_members
from toprank.rankers.ensemble.prepared import PreparedRanker


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 240
    table = pd.DataFrame({"age": rng.normal(40, 10, n), "city": rng.choice(["Oslo", "Rome"], n)})
    table["income"] = np.where(rng.random(n) < 0.1, np.nan, rng.exponential(1, n))
    odds = 0.1 * (table.age - 40) + (table.city == "Rome") + rng.normal(size=n)
    return table, (odds > 1.2).astype(int).to_numpy()


def small_auto(**settings):
    members = auto_members("fast", "from_dtype", 0)
    for _, member in members:
        if "n_estimators" in member.get_params():
            member.set_params(n_estimators=5)
    return PushEnsemble(members, cv=2, quality="fast", **settings)


def test_columns_are_standardised_filled_marked_and_opened():
    numbers = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, np.nan], [2.0, 1.0]])
    columns = LinearColumns.learn(numbers, {1: np.array(["a", "b"])}, None)
    made = columns.make(numbers)
    np.testing.assert_array_equal(columns.owner, [0, 0, 1, 1])
    spread = np.std([1.0, 3.0, 2.0])
    np.testing.assert_allclose(made[:, 0], [-1 / spread, 1 / spread, 0, 0])
    np.testing.assert_array_equal(made[:, 1:], [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]])


def test_a_linear_member_explains_its_columns_exactly(frame):
    table, y = frame
    ranker = PreparedRanker(PNormPush()).fit(table, y)
    parts = ranker.explain(table)
    assert parts.shape == (len(y), 4)
    np.testing.assert_allclose(parts.sum(axis=1), ranker.decision_function(table), atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "library", "tried"),
    [
        ("extra", ExtraTreesClassifier, "sqrt"),
        ("extra", ExtraTreesClassifier, 3),
        ("random", RandomForestClassifier, "sqrt"),
    ],
)
def test_a_forest_in_arrays_is_the_forest_of_scikit_learn(kind, library, tried):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).astype(np.float32).astype(np.float64)
    y = (X[:, 0] + rng.normal(size=150) > 0.5).astype(int)
    weight = rng.integers(1, 4, 150).astype(float)
    ours = ForestRanker(kind, n_estimators=7, max_features=tried, random_state=3).fit(X, y, weight)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    grown = library(7, min_samples_leaf=2, max_features=tried, random_state=seed)
    theirs = grown.fit(X, y, weight)
    np.testing.assert_allclose(ours._sums(X), theirs.predict_proba(X)[:, 1], atol=1e-12)
    np.testing.assert_allclose(ours.explain(X).sum(axis=1), ours.decision_function(X), atol=1e-9)
    assert ours._forest.find_fault(4) == ""
    share = ours.predict_proba(X)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    np.testing.assert_allclose(share[:, 1], expit(ours.decision_function(X)))
    # a tenth of the rarer class is added to both shares: none is called impossible
    added = 0.1 * min(np.average(y, weights=weight), np.average(1 - y, weights=weight))
    np.testing.assert_allclose(share[:, 1], (ours._sums(X) + added) / (1 + 2 * added), atol=1e-9)


@pytest.mark.parametrize(("kind", "max_samples"), [("extra", 1000), ("extra", 60), ("random", 60)])
def test_a_forest_that_is_grown_in_pieces_is_the_one_of_a_single_fit(
    monkeypatch, kind, max_samples
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y, weight = X[:, 0] + rng.normal(size=150) > 0.5, rng.integers(1, 4, 150).astype(float)
    forest = ForestRanker(kind, n_estimators=7, max_samples=max_samples, random_state=3)
    whole = clone(forest).fit(X, y, weight)
    monkeypatch.setattr(converted, "_ROWS_AT_ONCE", 300)
    in_pieces = forest.fit(X, y, weight)
    for name in ("left", "right", "feature", "threshold", "value"):
        np.testing.assert_array_equal(
            getattr(in_pieces._forest, name), getattr(whole._forest, name)
        )


@pytest.mark.parametrize("kind", ["extra", "random", "catboost"])
def test_a_fit_that_nobody_waits_for_any_more_ends_after_a_few_trees(monkeypatch, kind):
    if kind == "catboost":
        pytest.importorskip("catboost")
    monkeypatch.setattr(converted, "_ROWS_AT_ONCE", 150)
    X = np.random.default_rng(0).normal(size=(150, 4))
    member = CatBoostRanker(500) if kind == "catboost" else ForestRanker(kind, n_estimators=500)
    asked = []

    def nobody_waits():
        asked.append(None)
        return len(asked) > 3

    with pytest.raises(Stopped), stop_where(nobody_waits):
        member.fit(X, X[:, 0] > 0.5)
    assert len(asked) < 9


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_catboost_in_threads(monkeypatch):
    pytest.importorskip("catboost")
    rounds = []

    def interrupt_at_the_fifth():
        rounds.append(None)
        if len(rounds) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return is_stopped()

    monkeypatch.setattr(converted, "is_stopped", interrupt_at_the_fifth)
    X = np.random.default_rng(0).normal(size=(150, 4))
    ensemble = PushEnsemble([("cat", CatBoostRanker(20_000))], cv=3, n_jobs=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ensemble.fit(X, X[:, 0] > 0.5)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(rounds) < 10_000


def test_the_value_of_a_split_is_the_mean_of_the_rows_below_it():
    left, right = np.array([1, -1, 3, -1, -1]), np.array([2, -1, 4, -1, -1])
    value, count = np.array([0.0, 1.0, 0.0, 2.0, 5.0]), np.array([0, 6, 0, 3, 1])
    means = mean_values(left, right, value, count)
    np.testing.assert_allclose(means, [1.7, 1.0, 2.75, 2.0, 5.0])
    assert value[0] == 0.0  # what was given is left alone


def test_a_gap_goes_to_the_left_of_every_split():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    X[::3, 0] = np.nan
    forest = ForestRanker(n_estimators=5, random_state=0).fit(X, np.arange(100) % 3 == 0)
    lowest = np.where(np.isnan(X), -1e30, X)
    np.testing.assert_array_equal(forest.decision_function(X), forest.decision_function(lowest))


def test_catboost_in_arrays_is_catboost():
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[::9, 1] = np.nan
    y = (np.nan_to_num(X).sum(axis=1) > 0).astype(int)
    ours = CatBoostRanker(20, random_state=3).fit(X, y)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    theirs = catboost.CatBoostClassifier(
        n_estimators=20, depth=6, nan_mode="Min", random_seed=seed, verbose=0, thread_count=1,
        allow_writing_files=False,
    ).fit(X, y)  # fmt: skip
    raw = theirs.predict(X, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(ours.decision_function(X), raw, atol=1e-9)
    np.testing.assert_allclose(ours.explain(X).sum(axis=1), raw, atol=1e-9)
    connection = sqlite3.connect(":memory:")
    pd.DataFrame(X, columns=list("abcd")).to_sql("rows", connection, index=False)
    query = to_sql(ours, list("abcd"), table="rows", dialect="sqlite")
    scores = pd.read_sql(query, connection).iloc[:, -1]
    np.testing.assert_allclose(scores, raw, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"left": [0, -1, -1]}, "a node lies before its parent"),
        ({"right": [3, -1, -1]}, "a node lies before its parent, or nowhere"),
        ({"right": [2, 2, -1]}, "a leaf has a child"),
        ({"feature": [5, 0, 0]}, "a split names a column that does not exist"),
        ({"value": [0.0, np.nan, 1.0]}, "a number is not finite"),
        ({"roots": [7]}, "a tree begins nowhere"),
        ({"value": [0.0, 1.0]}, "its arrays are not of one length"),
        ({"feature": [0.0, 0.0, 0.0]}, "its nodes are not whole numbers"),
        ({"value": [0, -1, 1]}, "its values are not numbers"),
    ],
)
def test_arrays_that_are_no_trees_are_seen(change, fault):
    sound = {"roots": [0], "left": [1, -1, -1], "right": [2, -1, -1], "feature": [0, 0, 0]}
    sound |= {"threshold": [0.5, 0.0, 0.0], "value": [0.0, -1.0, 1.0]}
    assert FlatForest(*(np.array(v) for v in sound.values())).find_fault(2) == ""
    arrays = [np.array(v) for v in {**sound, **change}.values()]
    assert fault in FlatForest(*arrays).find_fault(2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_tables_with_gaps_and_categories_are_ranked_and_explained(frame, library):
    table, y = frame
    table = library(table.to_dict(orient="list"))
    ensemble = small_auto().fit(table, y)
    scores = ensemble.decision_function(table)
    assert np.all(np.isfinite(scores))
    np.testing.assert_allclose(ensemble.explain(table).sum(axis=1), scores, atol=1e-8)
    assert np.abs(ensemble.explain(table)[:, 1]).max() > 0  # the city counts


@pytest.mark.more
def test_a_category_never_seen_is_a_missing_value(frame):
    table, y = frame
    ensemble = small_auto().fit(table, y)
    new = table.head(3).assign(city=["Paris", "Paris", "Paris"])
    assert np.all(np.isfinite(ensemble.decision_function(new)))


@pytest.mark.more
def test_a_member_without_explain_is_named(frame):
    table, y = frame
    ensemble = PushEnsemble([("forest", ExtraTreesClassifier(3))], cv=2, random_state=0)
    ensemble.fit(table[["age"]], y)
    with pytest.raises(ValueError, match=r"The member 'forest' .ExtraTreesClassifier. has no expl"):
        ensemble.explain(table[["age"]])


def test_better_qualities_are_more_work_and_few_rows_get_more_folds():
    def trees_of(quality):
        members = [member.get_params() for _, member in auto_members(quality, None, 0)]
        return sum(member.get("n_estimators", 0) for member in members)

    assert trees_of("fast") < trees_of("good") < trees_of("best")
    assert [auto_folds(quality, 10_000) for quality in EFFORTS] == [3, 4, 5]
    assert auto_folds("fast", 500) == 5


@pytest.mark.parametrize(
    ("n_columns", "tried"), [(1, None), (4, None), (6, 3), (30, 15), (300, 32), (2_000, None)]
)
def test_wide_extra_trees_try_half_of_the_columns(n_columns, tried):
    members = dict(auto_members("good", None, 0, table=TableShape(n_columns)))
    wide = members.get("extra trees, wide")
    assert (wide and wide.max_features) == tried
    assert members["extra trees"].max_features == "sqrt"


@pytest.mark.more
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_last_fit_of_a_forest_has_more_trees_than_the_folds(frame, n_jobs):
    table, y = frame
    X = table[["age"]]
    forest = ForestRanker(n_estimators=4, last_estimators=9, random_state=0)
    both = [("forest", forest), ("plain", clone(forest).set_params(last_estimators=None))]
    ensemble = PushEnsemble(both, cv=2, n_jobs=n_jobs, random_state=0).fit(X, y)
    scores = dict(zip(ensemble.oof_members_, ensemble.oof_scores_.T, strict=True))
    np.testing.assert_array_equal(scores["forest"], scores["plain"])  # folds have four of both
    alone = PushEnsemble(both[:1], cv=2, n_jobs=n_jobs, random_state=0).fit(X, y)
    nine = clone(forest).set_params(n_estimators=9).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(alone.members_[0][1].decision_function(X), nine)
    alone.refit_members(X, y)
    np.testing.assert_array_equal(alone.members_[0][1].decision_function(X), nine)
    assert forest.n_estimators == 4


def test_time_is_set_aside_for_the_trees_of_the_last_fit():
    budget = Budget(100.0, 1)
    run = Run("forest", np.zeros(2), np.zeros(2), seconds=[1.0, 1.0], last=3.0)
    budget.promise(run)
    assert budget.promised == pytest.approx(1.3 * 3.0)
    slow = Run("slow", np.zeros(2), np.zeros(2), seconds=[20.0])
    assert budget.allows(slow, 4)  # 60 of folds, 26 of the last fit, 3.9 promised
    slow.last = 2.0
    assert not budget.allows(slow, 4)


@pytest.mark.parametrize("has_catboost", [False, True])
@pytest.mark.parametrize(("n_positives", "rare"), [(249, True), (250, False)])
def test_where_positives_are_rare_wide_trees_stand_in_the_place_of_binary_ones(
    monkeypatch, n_positives, rare, has_catboost
):
    there = {"lightgbm", "catboost"} if has_catboost else {"lightgbm"}
    monkeypatch.setattr("toprank.rankers.ensemble.plan.is_installed", there.__contains__)
    table = TableShape(30, 1_000, n_positives)
    fast, good, best = (dict(auto_members(one, None, 0, table=table)) for one in EFFORTS)
    assert ("extra trees, wide" in fast, "trees, binary" in fast) == (False, True)
    assert ("extra trees, wide" in best, "trees, binary" in best) == (True, True)
    assert ("extra trees, wide" in good) == rare
    assert ("trees, binary" in good) == (not rare or not has_catboost)


@pytest.mark.parametrize(
    ("quality", "n_rows", "n_positives", "catboost", "forest", "wide", "last"),
    [
        ("good", 1_999, 99, 300, 480, 180, 480),
        ("good", 1_999, 100, 120, 480, 180, 480),
        ("good", 2_000, 99, 120, 480, 180, 480),
        ("good", 4_999, 199, 120, 480, 180, 480),
        ("good", 4_999, 200, 120, 160, 120, 160),
        ("good", 5_000, 199, 120, 160, 120, 160),
        ("good", 396, 99, 300, 160, None, None),
        ("fast", 500, 20, 45, 40, None, None),
        ("best", 500, 20, 1_000, 600, 600, None),
        ("best", 5_000, 20, 1_000, 300, 300, None),
    ],
)
def test_few_positives_in_few_rows_get_the_trees_that_their_quality_says(
    monkeypatch, quality, n_rows, n_positives, catboost, forest, wide, last
):
    monkeypatch.setattr("toprank.rankers.ensemble.plan.is_installed", lambda library: True)
    table = TableShape(30, n_rows, n_positives)
    members = dict(auto_members(quality, None, 0, table=table))
    assert members["CatBoost"].n_estimators == catboost
    assert members["extra trees"].n_estimators == forest
    assert members["extra trees"].last_estimators is None
    if wide is None:
        assert "extra trees, wide" not in members
    else:
        assert members["extra trees, wide"].n_estimators == wide
        assert members["extra trees, wide"].last_estimators == last


def test_few_rows_walk_down_the_trees_to_the_same_leaves_without_a_compiler(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[::9, 1] = np.nan
    y = np.nan_to_num(X).sum(axis=1) + rng.normal(size=300) > 1
    forest = ForestRanker(n_estimators=7, random_state=0).fit(X, y)._forest
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "numba", raising=False)
        few = [(forest.sums(part), forest.contributions(part)) for part in (X, X[:0])]
        assert "numba" not in sys.modules
    monkeypatch.setattr("toprank.rankers.ensemble.flat_forest._FEW_WALKS", -1)
    for part, (sums, contributions) in zip((X, X[:0]), few, strict=True):
        np.testing.assert_array_equal(sums, forest.sums(part))
        np.testing.assert_array_equal(contributions, forest.contributions(part))


def test_threads_give_the_scores_of_one(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 1
    members = [("push", PNormPush(2)), ("forest", ForestRanker(n_estimators=5, random_state=0))]
    ensemble = PushEnsemble(members, cv=2, random_state=0).fit(X, y)
    alone = ensemble.decision_function(X)
    monkeypatch.setattr("toprank.rankers.ensemble.scores._MANY_ROWS", 10)
    np.testing.assert_array_equal(ensemble.set_params(n_jobs=2).decision_function(X), alone)
