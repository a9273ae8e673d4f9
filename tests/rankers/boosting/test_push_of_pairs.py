"""The push over grades, groups and listed pairs, against a double loop over the pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from toprank import RankBoost


def log_risk(f, pairs, weight, p):
    """log R^(1/p), R = sum_k w_k (sum_i w_i e^{-(f_i - f_k)})^p, pair by pair."""
    total = 0.0
    for k in {loser for _, loser in pairs}:
        height = sum(weight[i] * np.exp(f[k] - f[i]) for i, loser in pairs if loser == k)
        total += weight[k] * height**p
    return np.log(total) / p


def stumps_of(X):
    for column in range(X.shape[1]):
        values = np.unique(X[:, column])
        for threshold in (values[:-1] + values[1:]) / 2:
            yield column, threshold, (X[:, column] > threshold).astype(float)


def naive_rounds(X, pairs, weight, p, selection, rounds):
    """Figure 2's rounds by a search along every stump."""
    f, chosen = np.zeros(len(X)), []
    for _ in range(rounds):
        best = None
        for column, threshold, h in stumps_of(X):
            found = minimize_scalar(
                lambda a, f=f, h=h: log_risk(f + a * h, pairs, weight, p),
                bounds=(-8.0, 8.0),
                method="bounded",
                options={"xatol": 1e-10},
            )
            epsilon = 1e-6
            sides = (log_risk(f + s * epsilon * h, pairs, weight, p) for s in (1, -1))
            slope = abs(np.subtract(*sides)) / (2 * epsilon)
            merit = -found.fun if selection == "loss" else slope
            if best is None or merit > best[0] + 1e-7:
                best = merit, column, threshold, found.x, h
        f = f + best[3] * best[4]
        chosen.append((best[1], best[2], best[3]))
    return f, chosen


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 5, size=(24, 2)).astype(float)
    y = np.clip(np.round(0.4 * X[:, 0] - 0.3 * X[:, 1] + rng.normal(size=24)), -1, 1)
    return X, y, np.arange(24) % 3, rng.integers(1, 4, size=24).astype(float)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("selection", ["loss", "slope"])
@pytest.mark.parametrize("kind", ["grades", "groups", "listed"])
def test_the_push_over_any_pairs_is_the_double_loop(table, kind, selection):
    X, y, groups, weight = table
    pairs = [
        (i, k)
        for i in range(24)
        for k in range(24)
        if y[i] > y[k] and (kind != "groups" or groups[i] == groups[k])
    ]
    if kind == "listed":  # with repeats and a cycle
        pairs = [*pairs[::3], pairs[0], pairs[0][::-1]]
    fit = RankBoost(3, p=3.0, selection=selection, target="graded").fit(
        X,
        y,
        groups=groups if kind == "groups" else None,
        pairs=pairs if kind == "listed" else None,
        sample_weight=weight,
    )
    f, chosen = naive_rounds(X, pairs, weight, 3.0, selection, 3)
    got = [(r["feature"], r["threshold"], r["step"]) for r in fit.history_]
    np.testing.assert_allclose(got, chosen, atol=1e-5)
    shift = fit.decision_function(X) - f
    assert np.ptp(shift) < 1e-5
    start = log_risk(np.zeros(24), pairs, weight, 3.0)
    expected = log_risk(fit.decision_function(X), pairs, weight, 3.0) - start
    assert fit.objective_ == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("selection", ["loss", "slope"])
def test_one_group_or_all_pairs_listed_is_the_push_of_two_classes(overlapping, selection):
    X, y = overlapping
    pairs = np.argwhere(y[:, None] > y)
    kwargs = {"p": 4.0, "selection": selection, "n_thresholds": 9}
    closed = RankBoost(8, **kwargs).fit(X, y)
    for given in ({"groups": np.zeros(len(y))}, {"pairs": pairs}):
        other = RankBoost(8, **kwargs).fit(X, y, **given)
        for a, b in zip(closed.history_, other.history_, strict=True):
            assert (a["feature"], a["threshold"]) == (b["feature"], b["threshold"])
            for name in ("step", "objective", "criterion", "d_plus", "d_minus"):
                assert a[name] == pytest.approx(b[name], abs=1e-8), name
        np.testing.assert_allclose(other.coef_, closed.coef_, atol=1e-8)


def test_features_under_a_push_reach_the_minimum_of_the_pair_ranker(table):
    from toprank import PairRanker

    X, y, groups, weight = table
    Z = X / 4
    boosted = RankBoost(4000, p=2.0, selection="slope", weak_rankers="features", target="graded")
    boosted.fit(Z, y, groups=groups, sample_weight=weight)
    convex = PairRanker("power", "exponential", alpha=0.0, p=2.0, tol=1e-9)
    convex.fit(Z, y, groups=groups, sample_weight=weight)
    np.testing.assert_allclose(boosted.coef_[0], convex.coef_, atol=1e-5)


@pytest.mark.parametrize("far", [1.0, 300.0])
def test_heights_beyond_every_float_leave_finite_weights(far):
    """Scores of hundreds: e^(p f) overflows, its logarithm does not."""
    from toprank._numerics import log_of
    from toprank.pairs import Pairs, RelatedRows
    from toprank.rankers.boosting.pair_weights import weigh_pairs

    rng = np.random.default_rng(0)
    y, groups = np.arange(12) % 3, np.arange(12) // 6
    scores = far * rng.normal(size=12)
    listed = np.argwhere((y[:, None] > y) & (groups[:, None] == groups))
    graded = weigh_pairs(RelatedRows(np.zeros((12, 1)), y, None, groups), 7.0)
    pairs = Pairs(listed, 12)
    by_pair = weigh_pairs(RelatedRows(np.zeros((12, 1)), y, None, None, pairs), 7.0)
    value, v = graded.potentials(scores[graded.order])
    expected, u = by_pair.potentials(scores)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(v, u[graded.order], atol=1e-12)
    assert np.sum(v[v > 0]) <= 1 + 1e-12
    assert np.all(np.isfinite(log_of(np.abs(v) + 1e-300)))


def test_a_separable_push_takes_finite_steps(separable):
    X, y = separable
    fit = RankBoost(5, p=8.0).fit(X, y, groups=np.zeros(len(y)))
    assert np.all(np.isfinite(fit.coef_)) and fit.margin_ > 0
