"""AdaBoost solves RankBoost's problem and RankBoost AdaBoost's (Rudin & Schapire 2009, Section 5).

Nine quantile thresholds a feature leave the classes inseparable, which the linear program confirms.
"""

import numpy as np
import pytest

from toprank import AdaBoostRanker, RankBoost
from toprank.metrics import auc, f_skew, max_margin


def load(shared, name, columns=None):
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(shared / "data" / f"{name}.csv.gz")
    return table.drop(columns="y").to_numpy(float)[:, :columns], table["y"].to_numpy()


def parts(y, f):
    return np.sum(np.exp(-f[y == 1])), np.sum(np.exp(f[y == 0]))


def check(X, y, rounds, tolerance):
    ranked = RankBoost(rounds, n_thresholds=9).fit(X, y)
    classified = AdaBoostRanker(rounds, n_thresholds=9).fit(X, y)
    f, g = ranked.decision_function(X), classified.decision_function(X)
    rank_plus, rank_minus = parts(y, f)
    ada_plus, ada_minus = parts(y, g)
    # Corollary 11: the constant makes AdaBoost's F-skew vanish; Corollary 13: so does b
    assert abs(classified.f_skew_[-1]) / (ada_plus + ada_minus) < tolerance
    assert rank_plus == pytest.approx(rank_minus, rel=1e-9)
    # Theorem 10: both objectives are the same
    assert rank_plus * rank_minus == pytest.approx(ada_plus * ada_minus, rel=tolerance)
    assert rank_plus + rank_minus == pytest.approx(ada_plus + ada_minus, rel=tolerance)
    # Theorems 12 and 14: so are AUC and misclassification error
    assert auc(y, f) == pytest.approx(auc(y, g), abs=tolerance)
    assert ranked.score(X, y) == pytest.approx(classified.score(X, y), abs=tolerance)


def separable(X, y):
    """Whether some combination of the thresholds ranks every pair rightly."""
    columns = []
    for x in X.T:
        edges = np.unique(np.quantile(x, np.arange(1, 10) / 10, method="inverted_cdf"))
        columns += [x > edge for edge in edges if edge < x.max()]
    H = np.unique(np.column_stack([*columns, y == 1]).astype(int), axis=0)
    high, low = H[H[:, -1] == 1, :-1], H[H[:, -1] == 0, :-1]
    # a common threshold b separates iff some f has f(high) - b >= m and b - f(low) >= m
    M = np.vstack(
        [np.column_stack([high, np.ones(len(high))]), np.column_stack([-low, -np.ones(len(low))])]
    )
    return max_margin(M, signed=True) > 1e-9


@pytest.mark.more
def test_on_pima(shared):
    X, y = load(shared, "pima")
    assert not separable(X, y)
    check(X, y, 6000, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "columns"), [("wdbc", 4), ("pima", None), ("spambase", None)])
def test_after_twenty_thousand_rounds(shared, name, columns):
    X, y = load(shared, name, columns)
    assert not separable(X, y)
    check(X, y, 20_000, 1e-3)


def test_with_the_constant_reset_the_skew_is_zero_in_every_round(overlapping):
    X, y = overlapping
    fit = AdaBoostRanker(200, constant="reset", n_thresholds=9).fit(X, y)
    assert np.all(fit.f_skew_ == 0.0)
    plus, minus = parts(y, fit.decision_function(X))
    assert plus == pytest.approx(minus, rel=1e-10)


def test_the_skew_of_each_round_is_that_of_the_scores(overlapping):
    X, y = overlapping
    weight = np.arange(len(y)) % 3 + 1.0
    for weak in ("stumps", "features"):
        Z = X if weak == "stumps" else (X - X.min(axis=0)) / np.ptp(X, axis=0)
        fit = AdaBoostRanker(30, weak_rankers=weak).fit(Z, y, sample_weight=weight)
        said = f_skew(y, fit.decision_function(Z), sample_weight=weight)
        assert fit.f_skew_[-1] == pytest.approx(said, rel=1e-9, abs=1e-9)


def test_adaboost_takes_the_largest_edge_and_the_step_to_the_minimum(overlapping):
    X, y = overlapping
    fit = AdaBoostRanker(40, n_thresholds=5).fit(X, y)
    sign, f = np.where(y == 1, 1.0, -1.0), np.zeros(len(y))
    stumps = [np.where(X[:, j] > t, 1.0, -1.0) for j, t, _ in fit.stumps_.tolist()]
    for record in fit.history_:
        d = np.exp(-sign * f)
        d /= d.sum()
        h = np.ones(len(y))
        if record["feature"] is not None:
            h = np.where(X[:, record["feature"]] > record["threshold"], 1.0, -1.0)
        edge = d @ (sign * h)
        assert record["edge"] == pytest.approx(edge, abs=1e-12)
        others = [abs(d @ (sign * other)) for other in [*stumps, np.ones(len(y))]]
        assert abs(edge) >= max(others) - 1e-11
        assert record["step"] == pytest.approx(np.arctanh(edge), abs=1e-10)
        f = f + record["step"] * h
    np.testing.assert_allclose(fit.decision_function(X), f, atol=1e-10)
    moved = [r["step"] for r in fit.history_ if r["feature"] is None]
    assert fit.constant_ == pytest.approx(sum(moved), abs=1e-10)


def test_the_intercept_is_that_of_corollary_13(overlapping):
    X, y = overlapping
    fit = RankBoost(30).fit(X, y)
    raw = fit.decision_function(X) - fit.intercept_
    plus, minus = parts(y, raw)
    assert fit.intercept_[0] == pytest.approx(0.5 * np.log(plus / minus))
    assert fit.f_skew_ == pytest.approx(plus - minus)
