"""Weak rankers of every kind, and columns that nobody would like."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from toprank import AdaBoostRanker, RankBoost, SmoothMarginRanker
from toprank.metrics import auc


def unit(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


@pytest.mark.parametrize("selection", ["loss", "slope"])
@pytest.mark.parametrize("p", [1.0, 4.0])
def test_binary_columns_by_line_search_are_binary_columns_by_the_closed_step(
    overlapping, selection, p
):
    X, y = overlapping
    B = np.column_stack([x > t for x in X.T for t in np.quantile(x, [0.3, 0.6])]).astype(float)
    closed = RankBoost(25, weak_rankers="binary", selection=selection, p=p).fit(B, y)
    searched = RankBoost(25, weak_rankers="features", selection=selection, p=p).fit(B, y)
    assert [r["feature"] for r in closed.history_] == [r["feature"] for r in searched.history_]
    np.testing.assert_allclose(closed.coef_, searched.coef_, atol=1e-7)
    assert closed.coef_.shape == (1, B.shape[1])
    np.testing.assert_allclose(
        closed.decision_function(B), B @ closed.coef_[0] + closed.intercept_, atol=1e-12
    )


def test_features_go_to_the_minimum_of_the_loss(overlapping):
    X, y = overlapping
    Z = unit(X)
    fit = RankBoost(2000, weak_rankers="features", selection="slope").fit(Z, y)
    f = Z @ fit.coef_[0]
    u, v = np.exp(-f[y == 1]), np.exp(f[y == 0])
    slope = u @ Z[y == 1] / u.sum() - v @ Z[y == 0] / v.sum()
    assert np.max(np.abs(slope)) < 1e-8


def test_features_serve_groups_grades_and_listed_pairs(overlapping):
    X, y = overlapping
    Z, groups = unit(X), np.arange(len(y)) % 5
    pairs = np.argwhere((y[:, None] > y) & (groups[:, None] == groups))
    kwargs = {"weak_rankers": "features", "selection": "slope", "target": "graded"}
    grouped = RankBoost(40, **kwargs).fit(Z, y, groups=groups)
    listed = RankBoost(40, **kwargs).fit(Z, None, pairs=pairs)
    np.testing.assert_allclose(grouped.coef_, listed.coef_, atol=1e-8)


def test_a_list_may_hold_functions_and_fitted_estimators(overlapping):
    X, y = overlapping
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    fit = RankBoost(10, weak_rankers=[lambda X: X[:, 0] > 0, tree, lambda X: X[:, 1]]).fit(X, y)
    said = np.column_stack([X[:, 0] > 0, tree.predict(X), X[:, 1]])
    np.testing.assert_allclose(
        fit.decision_function(X), said @ fit.coef_[0] + fit.intercept_, atol=1e-12
    )
    stages = list(fit.staged_decision_function(X))
    np.testing.assert_allclose(stages[-1], fit.decision_function(X), atol=1e-12)
    binary = RankBoost(10, weak_rankers=[lambda X: X[:, 0] > 0, tree]).fit(X, y)
    assert "d_plus" in binary.history_[0]  # closed steps


def test_functions_may_read_columns_that_are_not_numbers(overlapping):
    pd = pytest.importorskip("pandas")
    X, y = overlapping
    frame = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "a", "b"), "size": X[:, 1]})
    fit = RankBoost(5, weak_rankers=[lambda t: t["kind"] == "a", lambda t: t["size"] > 0])
    assert fit.fit(frame, y).coef_.shape == (1, 2)
    assert auc(y, fit.decision_function(frame)) > 0.5


@pytest.mark.parametrize(
    ("weak", "match"),
    [
        ([lambda X: X], "shape"),
        ([lambda X: np.full(len(X), np.nan)], "NaN"),
        ([lambda X: np.full(len(X), "a")], "expected one number per row"),
        ([], "empty"),
        ("features", "needs columns in"),
        ("binary", "needs columns in"),
        ("nonsense", "weak_rankers"),
    ],
)
def test_weak_rankers_that_make_no_sense_are_refused(overlapping, weak, match):
    with pytest.raises(ValueError, match=match):
        RankBoost(weak_rankers=weak).fit(*overlapping)


def test_missing_values_go_to_the_better_side():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    x = rng.normal(size=200) + y
    for lost, better in ((y == 1, 1), (y == 0, 0)):
        X = np.where(lost & (rng.random(200) < 0.5), np.nan, x)[:, None]
        fit = RankBoost(5).fit(X, y)
        gone = fit.decision_function([[np.nan]])[0]
        scores = fit.decision_function(X)
        assert gone == (scores.max() if better else scores.min())


def test_whether_a_value_is_missing_can_be_all_there_is_to_know():
    y = np.repeat([0, 1], 20)
    X = np.where(y == 1, np.nan, 3.0)[:, None]
    fit = RankBoost(3).fit(X, y)
    assert auc(y, fit.decision_function(X)) == 1.0
    assert fit.decision_function([[np.inf]])[0] == fit.decision_function([[3.0]])[0]


def test_nan_in_a_column_that_had_none_goes_with_the_larger_side(overlapping):
    X, y = overlapping
    fit = RankBoost(1).fit(X, y)
    column, threshold, _ = fit.stumps_[0]
    larger = np.median(X[:, column])
    row = X[:1].copy()
    row[0, column] = np.nan
    like = X[:1].copy()
    like[0, column] = larger
    assert fit.decision_function(row) == fit.decision_function(like)
    assert (larger > threshold) == (np.mean(X[:, column] > threshold) > 0.5)


def test_infinities_are_the_largest_and_smallest_values(overlapping):
    X, y = overlapping
    Z = X.copy()
    Z[Z[:, 0] > 1.5, 0] = np.inf
    Z[Z[:, 0] < -1.5, 0] = -np.inf
    W = np.clip(X, [-1e6] * 4, [1e6] * 4)
    W[:, 0] = np.where(np.isposinf(Z[:, 0]), 1e6, np.where(np.isneginf(Z[:, 0]), -1e6, Z[:, 0]))
    ours, finite = RankBoost(30).fit(Z, y), RankBoost(30).fit(W, y)
    np.testing.assert_allclose(ours.decision_function(Z), finite.decision_function(W), atol=1e-12)


def test_ugly_columns_are_simply_not_used(overlapping):
    X, y = overlapping
    n = len(y)
    ugly = np.column_stack(
        [np.full(n, np.nan), np.zeros(n), np.full(n, np.inf), X[:, 0], np.full(n, 1e308)]
    )
    fit = RankBoost(10).fit(ugly, y)
    assert set(fit.stumps_["feature"]) == {3}
    np.testing.assert_array_equal(fit.feature_importances_ > 0, np.arange(5) == 3)


def test_nothing_to_learn_is_said_so():
    X, y = np.zeros((6, 2)), [0, 1, 0, 1, 0, 1]
    with pytest.warns(ConvergenceWarning, match="No weak ranker"):
        fit = RankBoost().fit(X, y)
    assert fit.n_iter_ == 0
    assert np.all(fit.decision_function(X) == fit.decision_function(X)[0])
    with pytest.warns(ConvergenceWarning, match="No weak ranker"):
        SmoothMarginRanker().fit(X, y)


def test_contradictory_pairs_take_no_step_and_say_so():
    X = np.arange(4.0)[:, None]
    pairs = [[0, 1], [1, 0], [2, 3], [3, 2]]
    with pytest.warns(ConvergenceWarning, match="No weak ranker"):
        fit = RankBoost(target="graded").fit(X, None, pairs=pairs)
    assert fit.n_iter_ == 0
    assert fit.stop_reason_


def test_the_bins_of_many_values_are_quantiles():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=5000)
    y = (x > np.quantile(x, 0.7)).astype(int)
    fit = RankBoost(3, max_bins=10).fit(x[:, None], y)
    assert fit.history_[0]["threshold"] == pytest.approx(np.quantile(x, 0.7), rel=1e-2)
    full = RankBoost(1).fit(x[:, None], y)
    assert np.mean(full.predict(x[:, None]) == y) > 0.995


def test_so_many_thresholds_are_so_many():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X.sum(axis=1) + rng.normal(size=400) > 0).astype(int)
    fit = RankBoost(400, n_thresholds=4).fit(X, y)
    for column in range(3):
        used = np.unique(fit.stumps_["threshold"][fit.stumps_["feature"] == column])
        assert len(used) <= 4
        shares = np.mean(X[:, [column]] <= used, axis=0)
        np.testing.assert_allclose(shares * 5, np.round(shares * 5), atol=0.02)


@pytest.mark.parametrize("booster", [RankBoost, AdaBoostRanker, SmoothMarginRanker])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_any_type_of_number_will_do(booster, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype is bool else 9, (60, 3)).astype(dtype)
    y = (X[:, 0] > 0).astype(int)
    assert booster(20).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_weights_of_any_size_give_the_same_ranking(overlapping, scale):
    X, y = overlapping
    weight = np.arange(len(y)) % 4 + 1.0
    plain, scaled = (
        RankBoost(30, n_thresholds=5).fit(X, y, sample_weight=w) for w in (weight, scale * weight)
    )
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    "booster", [RankBoost(30), RankBoost(30, p=4.0), AdaBoostRanker(30)], ids=str
)
def test_a_weight_is_a_number_of_repetitions(booster):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2))  # more values than bins
    y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    weight = rng.integers(0, 4, 500)
    weighted = booster.fit(X, y, sample_weight=weight).decision_function(X)
    rows = np.repeat(np.arange(500), weight)
    np.testing.assert_allclose(
        weighted, booster.fit(X[rows], y[rows]).decision_function(X), atol=1e-9
    )


def test_one_row_of_each_class_is_enough():
    for booster in (RankBoost(), AdaBoostRanker(), SmoothMarginRanker(), RankBoost(p=8.0)):
        fit = booster.fit([[0.0], [1.0]], [0, 1])
        low, high = fit.decision_function([[0.0], [1.0]])
        assert low < high
        assert np.isfinite([low, high]).all()


@pytest.mark.more
def test_very_long_runs_on_separable_data_stay_finite(separable):
    X, y = separable
    for booster in (RankBoost(1000), RankBoost(300, p=64.0), AdaBoostRanker(500)):
        scores = booster.fit(X, y).decision_function(X)
        assert np.isfinite(scores).all()
        assert auc(y, scores) == 1.0
    graded = RankBoost(1000, target="graded").fit(X, y)
    assert np.isfinite(graded.predict(X)).all()
