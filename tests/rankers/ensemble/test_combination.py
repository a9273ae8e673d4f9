"""The weights of members where positives are few: means over halves of the folds."""

from math import comb

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from toprank import PNormPush, PushEnsemble
from toprank.rankers.ensemble.combination import ScoreColumns, halves_of


def few():
    return [
        ("linear", LogisticRegression()),
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ]


def rows(n_positives, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < n_positives).astype(int)
    return rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.5, 0.5, 0.0], y


def folds_of_thirds(n):
    third = np.arange(n) % 3
    return [(np.flatnonzero(third != k), np.flatnonzero(third == k)) for k in range(3)]


def weights(ensemble):
    return np.array(list(ensemble.weights_.values()))


@pytest.mark.parametrize("many", [1, 2, 3, 4, 5, 6, 7, 10])
def test_halves_are_different_and_hold_every_part_equally_often(many):
    parts = [np.arange(3 * k, 3 * k + 3) for k in range(many)]
    halves, size = halves_of(parts), (many + 1) // 2
    assert len({tuple(half) for half in halves}) == len(halves)
    assert len(halves) == (comb(many, size) if many <= 6 else many)
    assert np.ptp(np.bincount(np.concatenate(halves))) == 0
    assert {len(half) for half in halves} == {3 * size}
    assert halves_of([]) == []


def test_weights_of_few_positives_are_mean_shares_over_halves_of_the_folds():
    (X, y), alpha = rows(30), 0.01
    cv = folds_of_thirds(len(y))
    ensemble = PushEnsemble(few(), p=4.0, cv=cv).fit(X, y)
    columns = ScoreColumns.learn(ensemble.oof_scores_, None).make(ensemble.oof_scores_)
    assert ensemble.combination_ == f"push, p = 4, alpha = {alpha}, mean over halves"
    shares = []
    for first, second in ((0, 1), (1, 2), (2, 0)):
        half = np.concatenate([cv[first][1], cv[second][1]])
        found = PNormPush(4, alpha=alpha, positive=True).fit(columns[half], y[half]).coef_[0]
        shares.append(found / found.sum())
    mean = np.mean(shares, axis=0)
    np.testing.assert_allclose(weights(ensemble) / weights(ensemble).sum(), mean, atol=1e-5)

    def objective(length):
        scores, coef = columns @ mean * length, mean * length
        heights = np.exp(scores[y == 0][:, None] - scores[y == 1]).mean(axis=1)
        return np.log(np.mean(heights**4)) / 4 + alpha / 2 * coef @ coef

    best = minimize_scalar(objective, bounds=(0, 10), method="bounded", options={"xatol": 1e-9}).x
    np.testing.assert_allclose(weights(ensemble).sum(), best, rtol=1e-3)


@pytest.mark.parametrize("n_positives", [5, 20, 99, 100, 1_000])
def test_the_gap_says_whether_weights_are_the_minimum_or_means(n_positives):
    X, y = rows(n_positives, 3 * n_positives + 50, seed=n_positives)
    ensemble = PushEnsemble(few(), p=4.0, cv=3).fit(X, y)
    assert np.all(weights(ensemble) >= 0) and np.any(weights(ensemble) > 0)
    assert {row.name: row.weight for row in ensemble.member_table_} == ensemble.weights_
    if n_positives >= 100:
        assert ensemble.choice_.names[0] == "push, p = 4, alpha = 0.01"
        assert 0 <= ensemble.optimality_gap_ < 1e-4
    else:
        assert ensemble.combination_ == "push, p = 4, alpha = 0.01, mean over halves"
        assert 1e-6 < ensemble.optimality_gap_ < np.inf


@pytest.mark.more
def test_a_row_of_weight_two_is_the_row_twice_in_its_fold():
    X, y = rows(20)
    weight = np.where(np.arange(len(y)) % 5 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    members = [("push", PNormPush()), ("linear", PNormPush(1.0, alpha=0.1))]
    cv = folds_of_thirds(len(y))
    place = {row: np.flatnonzero(twice == row) for row in range(len(y))}
    repeated = [tuple(np.concatenate([place[r] for r in part]) for part in fold) for fold in cv]
    one = PushEnsemble(members, p=4.0, cv=cv).fit(X, y, weight)
    other = PushEnsemble(members, p=4.0, cv=repeated).fit(X[twice], y[twice])
    np.testing.assert_allclose(weights(one), weights(other), rtol=1e-4, atol=1e-6)
    # twenty rows of weight ten are two hundred positives, and their weights a minimum
    heavy = PushEnsemble(members, p=4.0, cv=cv).fit(X, y, np.full(len(y), 10.0))
    assert heavy.optimality_gap_ < 1e-4 < one.optimality_gap_
    (X, y), members = rows(100, 300), [("bayes", GaussianNB()), ("linear", GaussianNB())]
    light = PushEnsemble(members, p=4.0, cv=3).fit(X, y, np.full(len(y), 1 / 300))
    assert "halves" not in light.choice_.names[0]


@pytest.mark.more
def test_weights_do_not_depend_on_the_order_of_rows_whose_folds_are_given():
    X, y = rows(25)
    moved = np.random.default_rng(1).permutation(len(y))
    cv = folds_of_thirds(len(y))
    back = np.argsort(moved)
    there = [tuple(back[part] for part in fold) for fold in cv]
    members = [("push", PNormPush()), ("bayes", GaussianNB())]
    one = PushEnsemble(members, cv=cv).fit(X, y)
    other = PushEnsemble(members, cv=there).fit(X[moved], y[moved])
    np.testing.assert_allclose(weights(one), weights(other), rtol=1e-5, atol=1e-7)


def test_where_every_half_is_the_whole_weights_are_the_minimum():
    X, y = rows(12, 120)
    cv = [(np.arange(120), np.arange(120))] * 3
    assert PushEnsemble(few()[:2], p=4.0, cv=cv).fit(X, y).optimality_gap_ < 1e-6
