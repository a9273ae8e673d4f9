"""Every way of judging stumps agrees with the double loop over pairs, round by round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import RankBoost

ROUNDS = 12


def naive_rounds(X, pairs, pair_weight, selection, rounds):
    """RankBoost by its definition: every stump, every pair, exp of every margin."""
    stumps = []
    for j in range(X.shape[1]):
        values = np.unique(X[~np.isnan(X[:, j]), j])
        lost = np.isnan(X[:, j])
        for t in [*((values[1:] + values[:-1]) / 2), np.inf]:
            for missing in (0, 1) if lost.any() else (0,):
                if t < np.inf or missing:
                    stumps.append((j, t, missing, np.where(lost, missing, X[:, j] > t)))
    if not stumps:
        return [], np.zeros(len(X))
    win, lose = pairs.T
    M = np.column_stack([h[win].astype(int) - h[lose].astype(int) for *_, h in stumps])
    f, history = np.zeros(len(X)), []
    for _ in range(rounds):
        d = pair_weight * np.exp(-(f[win] - f[lose]))
        d /= d.sum()
        plus, minus, zero = (np.array([d[m == s].sum() for m in M.T]) for s in (1, -1, 0))
        if selection == "slope":
            value, gains = np.abs(plus - minus), np.abs(plus - minus)
        else:
            value, gains = 2 * np.sqrt(plus * minus) + zero, np.abs(np.sqrt(plus) - np.sqrt(minus))
        if gains.max() <= 1e-11:
            break
        best = int(np.argmax(gains >= gains.max() - 1e-11))
        a, b = plus[best], minus[best]
        if min(a, b) <= 1e-12 * max(a, b):
            a, b = a + 0.5 / pair_weight.sum(), b + 0.5 / pair_weight.sum()
        step = 0.5 * np.log(a / b)
        f = f + step * stumps[best][3]
        history.append((*stumps[best][:3], value[best], step))
    return history, f


def assert_same(fit, history, X):
    lost = np.isnan(X).any(axis=0)
    assert fit.n_iter_ == len(history)
    for mine, (column, threshold, missing, criterion, step) in zip(
        fit.history_, history, strict=True
    ):
        assert mine["feature"] == column
        assert mine["threshold"] == pytest.approx(threshold)
        assert not lost[column] or mine["missing"] == missing
        assert mine["criterion"] == pytest.approx(criterion, abs=1e-12)
        assert mine["step"] == pytest.approx(step, abs=1e-10)


@st.composite
def tables(draw, grades=2):
    n = draw(st.integers(6, 18))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(2, 6)), (n, draw(st.integers(1, 3)))).astype(float)
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.integers(0, grades, n)
    y[:2] = [0, grades - 1]
    weight = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    return X, y, weight, rng


SILENT = pytest.mark.filterwarnings("ignore:No weak ranker")  # chance may leave nothing to learn


def pairs_of(y, groups=None):
    groups = np.zeros(len(y)) if groups is None else groups
    return np.argwhere((y[:, None] > y[None, :]) & (groups[:, None] == groups[None, :]))


@SILENT
@given(tables(), st.sampled_from(["loss", "slope"]))
def test_two_classes_by_histograms_are_the_double_loop(table, selection):
    X, y, weight, _ = table
    pairs = pairs_of(y)
    history, f = naive_rounds(X, pairs, weight[pairs].prod(axis=1), selection, ROUNDS)
    fit = RankBoost(ROUNDS, selection=selection).fit(X, y, sample_weight=weight)
    assert_same(fit, history, X)
    np.testing.assert_allclose(fit.decision_function(X) - fit.intercept_, f, atol=1e-9)


@SILENT
@given(tables(grades=4), st.sampled_from(["loss", "slope"]), st.booleans())
def test_grades_in_groups_are_the_double_loop(table, selection, grouped):
    X, y, weight, rng = table
    groups = rng.integers(0, 3, len(y)) if grouped else np.zeros(len(y))
    groups[:2] = 0
    pairs = pairs_of(y, groups)
    history, _ = naive_rounds(X, pairs, weight[pairs].prod(axis=1), selection, ROUNDS)
    fit = RankBoost(ROUNDS, selection=selection, target="graded").fit(
        X, y, groups=groups if grouped else None, sample_weight=weight
    )
    assert_same(fit, history, X)
    f, norm = fit.predict(X), np.abs(fit.coef_).sum() or 1.0
    margins = f[pairs[:, 0]] - f[pairs[:, 1]]
    assert fit.margin_ == pytest.approx(margins.min() / norm, abs=1e-12)
    mass = weight[pairs].prod(axis=1)
    right = mass @ (1 + np.sign(margins)) / 2 / mass.sum()
    said = fit.score(X, y, weight, groups=groups if grouped else None)
    assert said == pytest.approx(right, abs=1e-9)


@SILENT
@given(tables(), st.sampled_from(["loss", "slope"]))
def test_listed_pairs_are_the_double_loop_with_repeats_and_cycles(table, selection):
    X, y, weight, rng = table
    pairs = rng.integers(0, len(y), (30, 2))
    pairs = np.vstack([pairs[pairs[:, 0] != pairs[:, 1]], [[0, 1], [1, 2], [2, 0], [0, 1]]])
    history, f = naive_rounds(X, pairs, weight[pairs].prod(axis=1), selection, ROUNDS)
    fit = RankBoost(ROUNDS, selection=selection, target="graded").fit(
        X, None, pairs=pairs, sample_weight=weight
    )
    assert_same(fit, history, X)
    np.testing.assert_allclose(fit.predict(X), f, atol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("selection", ["loss", "slope"])
def test_long_runs_of_histograms_and_of_listed_pairs_stay_together(selection):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) + rng.normal(size=200) > 0).astype(int)
    weight = rng.integers(0, 4, 200).astype(float)
    fast = RankBoost(300, selection=selection).fit(X, y, sample_weight=weight)
    listed = RankBoost(300, selection=selection).fit(X, y, pairs=pairs_of(y), sample_weight=weight)
    for mine, other in zip(fast.history_, listed.history_, strict=True):
        for name in ("feature", "threshold", "missing"):
            assert mine[name] == other[name]
        assert mine["criterion"] == pytest.approx(other["criterion"], abs=1e-12)
        assert mine["step"] == pytest.approx(other["step"], abs=1e-10)
        assert mine["objective"] == pytest.approx(other["objective"], abs=1e-10)


@pytest.mark.parametrize("size", [7, 90])
@pytest.mark.parametrize("selection", ["loss", "slope"])
def test_small_and_large_groups_are_their_listed_pairs(size, selection):
    rng = np.random.default_rng(size)
    X = rng.normal(size=(360, 4)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.round(2 * np.nan_to_num(X[:, 0]) + rng.normal(size=360))
    groups, weight = np.arange(360) // size, rng.integers(0, 4, 360).astype(float)
    booster = RankBoost(60, selection=selection, target="graded")
    by_group = booster.fit(X, y, groups=groups, sample_weight=weight).history_
    pairs = pairs_of(y, groups)
    listed = booster.fit(X, None, pairs=pairs, sample_weight=weight).history_
    for mine, other in zip(by_group, listed, strict=True):
        for name in ("feature", "threshold", "missing"):
            assert mine[name] == other[name]
        assert mine["criterion"] == pytest.approx(other["criterion"], abs=1e-12)
        assert mine["step"] == pytest.approx(other["step"], abs=1e-10)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0, 64.0])
@pytest.mark.parametrize("selection", ["loss", "slope"])
def test_the_push_takes_the_closed_step_to_the_minimum_of_its_loss(p, selection, overlapping):
    X, y = overlapping
    fit = RankBoost(15, p=p, selection=selection, n_thresholds=7).fit(X, y)
    scores = np.zeros(len(y))

    def risk(f):
        return np.log(np.sum(np.exp(-f[y == 1]))) + np.log(np.sum(np.exp(p * f[y == 0]))) / p

    start = risk(scores)
    for record in fit.history_:
        h = (X[:, record["feature"]] > record["threshold"]).astype(float)
        here = risk(scores + record["step"] * h)
        assert here <= min(risk(scores + (record["step"] + e) * h) for e in (-1e-4, 1e-4))
        if selection == "loss":
            assert record["criterion"] == pytest.approx(np.exp(here - risk(scores)), abs=1e-12)
        scores = scores + record["step"] * h
        assert record["objective"] == pytest.approx(here - start, abs=1e-10)


@pytest.mark.parametrize("p", [2.0, 16.0])
def test_the_push_chooses_the_stump_that_lowers_its_loss_most(p, overlapping):
    X, y = overlapping
    fit = RankBoost(5, p=p, n_thresholds=7).fit(X, y)
    edges = {
        (r["feature"], r["threshold"]) for r in RankBoost(200, n_thresholds=7).fit(X, y).history_
    } | {(r["feature"], r["threshold"]) for r in fit.history_}
    u, v = np.ones((y == 1).sum()), np.ones((y == 0).sum())
    for record in fit.history_:
        best = np.inf
        for j, t in edges:
            h = X[:, j] > t
            p1, n1 = u[h[y == 1]].sum() / u.sum(), v[h[y == 0]].sum() / v.sum()
            alpha = np.log(p1 * (1 - n1) / ((1 - p1) * n1)) / (1 + p)
            value = np.log(p1 * np.exp(-alpha) + 1 - p1)
            best = min(best, value + np.log(n1 * np.exp(p * alpha) + 1 - n1) / p)
        assert np.log(record["criterion"]) <= best + 1e-12
        h = X[:, record["feature"]] > record["threshold"]
        u = u * np.exp(-record["step"] * h[y == 1])
        v = v * np.exp(p * record["step"] * h[y == 0])


def test_equally_good_stumps_go_to_the_lowest_column_then_threshold():
    y = np.array([0, 1, 0, 1, 0, 1])
    column = np.array([0.0, 1.0, 2.0, 2.0, 3.0, 4.0])
    X = np.column_stack([np.zeros(6), column[::-1][::-1], column, column])
    first = RankBoost(1).fit(X, y).history_[0]
    assert first["feature"] == 1
    assert first["threshold"] == 0.5  # no worse than 3.5, by symmetry


def test_the_number_of_threads_does_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 9))
    y = (X[:, 0] + rng.normal(size=len(X)) > 1).astype(int)
    one, three = (RankBoost(40, n_jobs=n).fit(X, y) for n in (1, 3))
    assert one.history_ == three.history_
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
