"""p="auto": what is compared, on which rows, and what follows from it."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from toprank import PushTrees
from toprank.metrics import auc
from toprank.rankers.trees import auto, libraries
from toprank.rankers.trees.auto import quick_plan
from toprank.rankers.trees.libraries import bins_once
from toprank.rankers.trees.plan import TreePlan, TreeRows
from toprank.rankers.trees.row_folds import about_so_many

BACKENDS = {"lightgbm": "_lightgbm_data", "xgboost": "_xgboost_data"}


def rows(n=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[::7, 1] = np.nan
    return X, X[:, 0] + rng.logistic(size=n) > 1.0, rng.integers(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_fold_is_binned_once_and_scored_as_if_it_were_not(backend, weighted, monkeypatch):
    pytest.importorskip(backend)
    X, y, weight = rows()
    make, made = getattr(libraries, BACKENDS[backend]), []

    def count(library, given, *rest):
        made.append(len(given.y))
        return make(library, given, *rest)

    monkeypatch.setattr(libraries, BACKENDS[backend], count)
    settings = {"n_estimators": 4, "subsample": 0.7, "random_state": 0, "calibration": "training"}
    trees = PushTrees("auto", backend=backend, ps=(None, 1.0, 8.0), **settings)
    once = trees.fit(X, y, weight if weighted else None).choice_.fold_scores
    assert once.shape == (3, 3)
    assert len([n for n in made if n]) == 3 + 1  # the folds, and all rows for the p chosen
    monkeypatch.setattr(auto, "bins_once", nullcontext)
    anew = trees.fit(X, y, weight if weighted else None).choice_.fold_scores
    np.testing.assert_array_equal(once, anew)


def test_the_choice_is_the_default_and_its_trees_are_those_of_the_p_it_found():
    X, y, weight = rows()
    found = PushTrees(n_estimators=6).fit(X, y, weight)
    given = PushTrees(found.p_, n_estimators=6).fit(X, y, weight)
    assert [one.p for one in found.choice_.candidates] == [2.0, 4.0, 16.0]
    assert found.choice_.metric == "average_precision"  # precision_at hangs on the first rows
    assert found.p_ == found.choice_.p
    np.testing.assert_array_equal(found.predict_proba(X), given.predict_proba(X))


def test_p_can_be_chosen_without_growing_the_trees():
    X, y, weight = rows()
    trees = PushTrees(n_estimators=6)
    choice = trees._choose(X, y, weight)
    np.testing.assert_array_equal(choice.fold_scores, trees.fit(X, y, weight).choice_.fold_scores)
    assert trees._choose(X[:12], y[:12]) is None  # three positives
    with pytest.raises(ValueError, match="one or more numbers"):
        trees.set_params(ps=())._choose(X, y)


def test_every_fold_is_scored_by_trees_that_have_not_seen_it():
    X, y, _ = rows()
    fold = np.arange(len(y)) % 4
    settings = {"n_estimators": 5, "metric": "auc", "calibration": "training"}
    choice = PushTrees(ps=(2.0,), cv=PredefinedSplit(fold), **settings).fit(X, y).choice_
    expected = []
    for j in range(4):
        trees = PushTrees(2, **settings, learning_rate=0.03).fit(X[fold != j], y[fold != j])
        expected.append(auc(y[fold == j], trees.decision_function(X[fold == j])))
    np.testing.assert_allclose(choice.fold_scores[0], expected, rtol=1e-12)


def test_neither_the_order_of_the_rows_nor_their_repetition_moves_the_choice():
    X, y, weight = rows()
    trees = PushTrees(n_estimators=6, subsample=1.0, max_bins=400)
    of_weights = trees.fit(X, y, weight).choice_.fold_scores
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weight))
    np.testing.assert_allclose(
        trees.fit(X[mixed], y[mixed]).choice_.fold_scores, of_weights, rtol=1e-9
    )


def test_a_users_folds_are_of_the_rows_as_they_were_given():
    X, y, weight = rows()
    there = np.flatnonzero(weight)
    folds = [(there[there % 2 == j], there[there % 2 != j]) for j in (0, 1)]
    trees = PushTrees(n_estimators=4, cv=folds)
    by_list = trees.fit(X, y, weight).choice_.fold_scores
    by_splitter = trees.set_params(cv=PredefinedSplit(np.arange(len(y)) % 2))
    np.testing.assert_array_equal(
        by_list[:, ::-1], by_splitter.fit(X, y, weight).choice_.fold_scores
    )


@pytest.mark.parametrize(
    ("settings", "n", "p"),
    [
        ({}, 12, 4.0),  # three positives show nothing
        ({"ps": (1.0, 3.0, 100.0)}, 12, 3.0),
        ({"ps": (None,)}, 12, None),
        ({"price": "log1p"}, 240, 4.0),  # which takes no p
    ],
)
def test_where_nothing_can_be_compared_p_is_4_or_the_nearest(settings, n, p):
    X, y, _ = rows()
    trees = PushTrees(n_estimators=3, **settings).fit(X[:n], y[:n])
    assert trees.choice_ is None and trees.p_ == p


def test_one_group_with_both_classes_is_fitted_without_a_comparison():
    X, y, _ = rows()
    groups = np.repeat(np.arange(12), 20)
    y = np.where(groups == 0, y, groups % 2 == 0)  # the folds without group 0 have no pair
    trees = PushTrees(n_estimators=3).fit(X, y, groups=groups)
    assert trees.choice_ is None and trees.p_ == 4


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ps": ()}, "one or more numbers from 1 to infinity, or None"),
        ({"ps": (0.5,)}, "one or more numbers from 1 to infinity"),
        ({"cv": 1}, r"int in the range \[2, inf\)"),
    ],
)
def test_what_cannot_be_compared_is_refused(settings, says):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=says):
        PushTrees(n_estimators=3, **settings).fit(X, y)


def test_many_rows_are_thinned_whole_groups_at_a_time(monkeypatch):
    X, y, _ = rows()
    given = TreeRows(X, y, groups=np.arange(len(y)) // 4)
    drawn = about_so_many(given, 120)
    assert 80 < drawn.sum() < 160
    assert (np.unique(given.groups[drawn], return_counts=True)[1] == 4).all()
    assert about_so_many(given, 240).all()
    absent = np.arange(len(y)) % 3 == 0
    np.testing.assert_array_equal(about_so_many(TreeRows(X, y, 1.0 - absent), 160), ~absent)


@pytest.mark.parametrize("cv", [3, PredefinedSplit(np.arange(240) // 80)])
def test_folds_of_many_rows_hold_about_as_many_as_p_is_chosen_on(cv, monkeypatch):
    X, y, weight = rows()
    seen = []
    monkeypatch.setattr(auto, "CHOSEN_ON", 80)
    monkeypatch.setattr(auto, "tested_over_trained", lambda folds: seen.append(folds) or 0.5)
    assert PushTrees(n_estimators=3, cv=cv).fit(X, y, weight).choice_ is not None
    tested = np.concatenate([test for _, test in seen[0]])
    assert 50 < len(tested) < 110 and len(np.unique(tested)) == len(tested)
    assert (weight[tested] > 0).all()
    for train, test in seen[0]:
        assert set(train) == set(tested) - set(test)


def test_too_few_positives_are_not_compared_on_a_users_folds():
    X, y, _ = rows()
    y &= np.cumsum(y) <= 9
    trees = PushTrees(n_estimators=3, cv=PredefinedSplit(np.cumsum(y) % 2)).fit(X, y)
    assert trees.choice_ is None and trees.p_ == 4


def test_the_trees_that_p_is_chosen_by_take_fewer_and_larger_steps():
    plan = TreePlan(400, 0.03, 15, None, 1, 1.0, 1.0, 1.0, 1.0, 255, 0, 1)
    for rounds, rate, quick in [
        (400, 0.03, (100, 0.1)),
        (200, 0.03, (100, 0.06)),
        (40, 0.03, (40, 0.03)),
        (1000, 0.3, (100, 0.3)),
    ]:
        found = quick_plan(replace(plan, n_estimators=rounds, learning_rate=rate))
        assert (found.n_estimators, found.learning_rate) == (quick[0], pytest.approx(quick[1]))


def test_other_rows_weights_starts_or_settings_are_binned_anew():
    made = []
    X, y, weight = rows()
    plan = TreePlan(3, 0.1, 15, None, 1, 1.0, 1.0, 1.0, 1.0, 255, 0, 1)
    variants = [
        TreeRows(X, y),
        TreeRows(X[::-1], y),
        TreeRows(X, ~y),
        TreeRows(X, y, weight),
        TreeRows(X, y, start=np.zeros(len(y))),
    ]

    def make(*given):
        made.append(given)
        return given

    with bins_once():
        for given in variants:
            for _ in range(2):
                libraries._binned_once(None, make, given, plan)
        libraries._binned_once(None, make, given, replace(plan, max_bins=63))
    assert len(made) == len(variants) + 1
    libraries._binned_once(None, make, given, plan)
    libraries._binned_once(None, make, given, plan)
    assert len(made) == len(variants) + 3  # nothing is kept outside
