"""Smoothed forests: shares of leaves drawn towards those of the nodes above them."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from toprank import PNormPush, PushEnsemble
from toprank.models.ranker_files import load_ranker, save_ranker
from toprank.pairs import Rows
from toprank.rankers.ensemble.converted import ForestRanker
from toprank.rankers.ensemble.out_of_fold import fit_group, of_one_fit
from toprank.rankers.ensemble.plan import TableShape, auto_members


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(240, 5))
    X[::11, 2] = np.nan
    y = (0.5 * X[:, 0] + rng.logistic(size=240) > 1).astype(int)
    return X, y


def shrunk_by_hand(trees, x, strength):
    """One row down scikit-learn's trees, a step at a time."""
    total = 0.0
    for tree in trees:
        share = tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1)
        node, value = 0, share[0]
        while tree.children_left[node] >= 0:
            right = x[tree.feature[node]] > tree.threshold[node]
            child = (tree.children_right if right else tree.children_left)[node]
            n = tree.n_node_samples[node]
            value += (share[child] - share[node]) * n / (n + strength)
            node = child
        total += value / len(trees)
    return total


@pytest.mark.parametrize("strength", [0.5, 10.0, 300.0])
@pytest.mark.parametrize("kind", ["extra", "random"])
def test_a_shrunk_forest_is_its_steps_added_up(monkeypatch, kind, strength):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32).astype(np.float64)
    y = X[:, 0] + rng.normal(size=150) > 0.5
    grown = []
    import sklearn.ensemble as library

    name = {"extra": "ExtraTreesClassifier", "random": "RandomForestClassifier"}[kind]

    class Kept(getattr(library, name)):
        def fit(self, *rows):
            super().fit(*rows)
            grown.extend(tree.tree_ for tree in self.estimators_)
            return self

    monkeypatch.setattr(library, name, Kept)
    forest = ForestRanker(kind, n_estimators=6, shrinkage=strength, random_state=0).fit(X, y)
    shares = np.array([shrunk_by_hand(grown, x, strength) for x in X])
    np.testing.assert_allclose(forest._sums(X), shares, rtol=1e-12)
    parts = forest.explain(X)
    np.testing.assert_allclose(parts.sum(axis=1), forest.decision_function(X), atol=1e-9)


def test_smoothings_are_the_forests_that_would_be_grown_with_them(monkeypatch, noisy):
    X, y = noisy
    plain = ForestRanker(n_estimators=5, min_samples_leaf=1, random_state=0)
    tried = (10.0, 300.0)
    many = clone(plain).set_params(smoothings=tried).fit(X, y)
    alone = [clone(plain).set_params(shrinkage=s).fit(X, y) for s in (0.0, *tried)]
    expected = np.column_stack([one.decision_function(X) for one in alone])
    monkeypatch.setattr("toprank.rankers.ensemble.flat_forest._FEW_WALKS", -1)
    np.testing.assert_allclose(many.smoothed_scores(X), expected, rtol=1e-12)
    with monkeypatch.context() as patch:  # few rows, before anything was compiled
        patch.setattr("toprank.rankers.ensemble.flat_forest._FEW_WALKS", 50_000)
        patch.delitem(sys.modules, "numba", raising=False)
        np.testing.assert_allclose(many.smoothed_scores(X), expected, rtol=1e-12)
    for one, other in zip(many.separate_smoothings(), alone, strict=True):
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        assert one.get_params() == other.get_params()
        assert set(vars(one)) == set(vars(other))  # nothing of it goes into a file


def test_much_shrinkage_gives_every_row_the_share_of_all(noisy):
    X, y = noisy
    forest = ForestRanker(n_estimators=5, shrinkage=1e12, random_state=0).fit(X, y)
    np.testing.assert_allclose(forest._sums(X), y.mean(), atol=1e-6)


def test_weights_of_any_size_smooth_alike(noisy):
    X, y = noisy
    forest = ForestRanker(n_estimators=5, shrinkage=30.0, random_state=0)
    scores = [clone(forest).fit(X, y, np.full(240, w)).decision_function(X) for w in (1.0, 0.25)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


def forest_with(**given):
    forest = ForestRanker(n_estimators=20, min_samples_leaf=1, random_state=0, **given)
    return [("forest", forest)]


@pytest.mark.more
@pytest.mark.parametrize("weighted", [False, True])
def test_the_smoothing_of_least_log_loss_is_a_further_member(noisy, weighted):
    X, y = noisy
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 240) if weighted else None
    tried = (1.0, 10.0, 100.0)
    ensemble = PushEnsemble(forest_with(smoothings=tried), cv=3, random_state=0)
    ensemble.fit(X, y, weight)
    assert ensemble.oof_members_ == ["forest", "forest, smoothed"]
    losses, columns = [], []
    for one in tried:
        alone = PushEnsemble(forest_with(shrinkage=one), cv=3, random_state=0).fit(X, y, weight)
        columns.append(alone.oof_scores_[:, 0])
        odds = np.where(y == 1, 1, -1) * alone.oof_scores_[:, 0]
        losses.append(np.average(np.log1p(np.exp(-odds)), weights=weight))
    best = int(np.argmin(losses))
    assert best > 0  # leaves of one row of such labels are worth little
    np.testing.assert_allclose(ensemble.oof_scores_[:, 1], columns[best], rtol=1e-9)
    assert dict(ensemble._templates)["forest, smoothed"].shrinkage == tried[best]


def test_a_forest_and_the_smoothed_one_are_one_fit(monkeypatch, noisy):
    X, y = noisy
    forest = forest_with()[0][1]
    smooth = clone(forest).set_params(shrinkage=30.0)
    given = [("forest", forest), ("bayes", GaussianNB()), ("forest, smoothed", smooth)]
    fits, original = [], ForestRanker._grow
    monkeypatch.setattr(ForestRanker, "_grow", lambda *a: fits.append(1) or original(*a))
    groups = of_one_fit(given)
    assert [[name for name, _ in group] for group in groups] == [
        ["forest", "forest, smoothed"],
        ["bayes"],
    ]
    models = dict(fit_group(groups[0], Rows(X, y)))
    assert len(fits) == 1
    for name, one in (given[0], given[2]):
        alone = clone(one).fit(X, y).decision_function(X)
        np.testing.assert_array_equal(models[name].decision_function(X), alone)


@pytest.mark.more
def test_smoothed_members_are_refitted_replaced_and_saved(noisy, tmp_path):
    X, y = np.nan_to_num(noisy[0]), noisy[1]
    given = [*forest_with(smoothings=(30.0, 100.0)), ("push", PNormPush(4))]
    ensemble = PushEnsemble(given, cv=3, p=4, random_state=0).fit(X, y)
    scores = ensemble.decision_function(X)
    assert "forest, smoothed" in ensemble.weights_
    ensemble.refit_members(X, y)
    np.testing.assert_allclose(ensemble.decision_function(X), scores)
    ensemble.partial_refit(X, y, [("forest", ForestRanker(n_estimators=3, random_state=1))])
    assert "forest, smoothed" in ensemble.weights_  # the trees of the former one
    scores = ensemble.decision_function(X)
    save_ranker(ensemble, tmp_path / "model")
    again = load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), scores)


def test_extra_trees_of_auto_try_smoothings():
    members = dict(auto_members("best", None, 0, table=TableShape(30)))
    assert members["extra trees"].smoothings == members["extra trees, wide"].smoothings
    assert len(members["extra trees"].smoothings) == 4
    assert members["random forest"].smoothings == ()
