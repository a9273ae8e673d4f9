"""PushTrees: what it learns, what it refuses, and how it stops, explains and continues."""

import pickle
from datetime import date, datetime
from decimal import Decimal

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from toprank import PushTrees
from toprank.metrics import auc, average_precision, precision_at
from toprank.rankers.trees.calibration import score_out_of_fold, thin_classes
from toprank.rankers.trees.plan import TreeRows
from toprank.simulate import linear_bipartite

BACKENDS = ["lightgbm", "xgboost"]
both = pytest.mark.parametrize("backend", BACKENDS)


def either(first):
    """Both libraries; level 1 takes the one that is named."""
    order = sorted(BACKENDS, key=lambda name: name != first)
    return lambda test: pytest.mark.sampled(2)(pytest.mark.parametrize("backend", order)(test))


def sample(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.logistic(size=n) > 2.5).astype(int)
    return X, y


@pytest.fixture(scope="module")
def train():
    return sample(1500, 0)


@pytest.fixture(scope="module")
def test():
    return sample(1500, 1)


@pytest.mark.sampled(5)
@both
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"p": 1.0},
        {"p": 64.0},
        {"p": None},
        {"p": np.inf, "loss": "squared_hinge"},
        {"loss": "logistic"},
        {"price": "log1p"},
        {"link": "p_classification"},
        {"subsample": 0.7, "colsample": 0.6},
    ],
)
def test_held_out_rows_are_ranked_well_under_every_setting(backend, settings, train, test):
    trees = PushTrees(backend=backend, n_estimators=40, random_state=0, **settings).fit(*train)
    scores = trees.decision_function(test[0])
    assert roc_auc_score(test[1], scores) > 0.72
    probability = trees.predict_proba(test[0])
    np.testing.assert_array_equal(probability[:, 1] > 0.5, scores > 0)
    np.testing.assert_array_equal(trees.predict(test[0]), (scores > 0).astype(int))


def test_both_libraries_rank_equally_well(train, test):
    settings = {"n_estimators": 40, "subsample": 1.0, "colsample": 1.0}
    fitted = (PushTrees(backend=backend, **settings).fit(*train) for backend in BACKENDS)
    quality = [auc(test[1], trees.decision_function(test[0])) for trees in fitted]
    assert abs(quality[0] - quality[1]) < 0.02


@either("lightgbm")
def test_a_seed_makes_it_deterministic(backend, train):
    trees = PushTrees(
        backend=backend, n_estimators=20, subsample=0.5, early_stopping=True, random_state=3
    )
    first, second = (clone(trees).fit(*train).decision_function(train[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@either("xgboost")
def test_contributions_sum_to_the_score(backend, train, test):
    trees = PushTrees(backend=backend, n_estimators=20).fit(*train)
    parts = trees.explain(test[0])
    assert parts.shape == (1500, 5)
    np.testing.assert_allclose(parts.sum(axis=1), trees.decision_function(test[0]), atol=1e-9)
    assert np.abs(parts[:, 3]).mean() < np.abs(parts[:, 0]).mean()


@both
@pytest.mark.parametrize("p", [4.0, None])
def test_staged_scores_end_at_the_score(backend, p, train, test):
    trees = PushTrees(p, backend=backend, n_estimators=15).fit(*train)
    stages = list(trees.staged_decision_function(test[0]))
    assert len(stages) == trees.n_iter_ == 15
    np.testing.assert_allclose(stages[-1], trees.decision_function(test[0]), atol=1e-5)
    assert roc_auc_score(test[1], stages[0]) < roc_auc_score(test[1], stages[-1])


@either("lightgbm")
def test_importances_are_shares_of_the_gain(backend, train):
    trees = PushTrees(backend=backend, n_estimators=20).fit(*train)
    assert trees.feature_importances_.sum() == pytest.approx(1.0)
    assert trees.feature_importances_.argmin() == 3


@either("xgboost")
def test_early_stopping_stops_on_the_named_metric_where_another_disagrees(backend):
    # one column orders the top of the list, the other the bulk: the AUC goes on improving after
    # the precision at the top has stopped
    rng = np.random.default_rng(4)
    n = 4000
    y = (rng.random(n) < 0.5).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.5 * y
    X[:, 1] += 0.7 * y
    settings = {"backend": backend, "n_estimators": 60, "early_stopping": True, "random_state": 0}
    settings |= {"n_iter_no_change": 60, "validation_fraction": 0.3}
    chosen = {}
    for metric, kwargs in (("auc", None), ("precision_at", {"k": 20})):
        named = {"metric": metric, "stop_by": metric, "metric_kwargs": kwargs}
        trees = PushTrees(**named, **settings).fit(X, y)
        assert trees.n_iter_ == np.argmax(trees.validation_scores_) + 1
        assert len(trees.validation_scores_) == 60
        chosen[metric] = trees.n_iter_
        assert trees.validation_standard_error_ >= 0
    assert chosen["precision_at"] < chosen["auc"]


@either("lightgbm")
def test_early_stopping_waits_as_long_as_it_is_told(backend, train):
    trees = PushTrees(
        backend=backend, n_estimators=200, early_stopping=True, n_iter_no_change=3, random_state=0
    ).fit(*train)
    assert len(trees.validation_scores_) == np.argmax(trees.validation_scores_) + 1 + 3


def easy_and_hard(n, seed):
    """Some positives are found by the first tree, the others by many."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 6 * y * (rng.random(n) < 0.4)
    X[:, 1:] += 0.9 * y[:, None]
    return X, y


@either("xgboost")
def test_a_metric_that_moves_in_steps_does_not_stop_the_rounds_by_luck(backend):
    train, test = easy_and_hard(3_000, 0), easy_and_hard(3_000, 1)
    settings = {"backend": backend, "n_estimators": 60, "random_state": 0, "early_stopping": True}
    settings |= {"p": 4, "metric_kwargs": {"k": 10}, "learning_rate": 0.1}
    stopped = PushTrees(**settings).fit(*train)
    by_steps = PushTrees(stop_by="precision_at", **settings).fit(*train)
    assert by_steps.n_iter_ < 10 < 20 <= stopped.n_iter_
    ranked = [average_precision(test[1], t.decision_function(test[0])) for t in (stopped, by_steps)]
    assert ranked[0] > ranked[1] + 0.05


def test_a_top_that_ties_is_said():
    X, y = sample(1500, 0)
    settings = {"n_estimators": 1, "max_leaves": 2, "metric_kwargs": {"k": 50}}
    with pytest.warns(ConvergenceWarning, match="share the highest score.*first 50 the order"):
        PushTrees(early_stopping=False, **settings).fit(X, y)


@either("lightgbm")
def test_risks_are_negated_so_that_larger_is_better(backend, train):
    trees = PushTrees(
        backend=backend, n_estimators=30, early_stopping=True, metric="pnorm_risk", random_state=0
    ).fit(*train)
    assert np.all(trees.validation_scores_ <= 0)
    assert trees.validation_scores_[trees.n_iter_ - 1] == trees.validation_scores_.max()


@either("xgboost")
def test_rows_to_stop_by_can_be_given(backend, train, test):
    trees = PushTrees(backend=backend, n_estimators=30, metric="auc")
    trees.fit(*train, eval_set=test)
    assert trees.validation_scores_.max() == pytest.approx(
        auc(test[1], trees.decision_function(test[0])), abs=1e-6
    )


@either("lightgbm")
def test_a_callable_metric_is_followed(backend, train):
    def bottom(y, s):
        return -float(np.mean(s[y]))

    trees = PushTrees(
        backend=backend, n_estimators=30, early_stopping=True, metric=bottom, n_iter_no_change=5
    ).fit(*train)
    assert trees.n_iter_ == np.argmax(trees.validation_scores_) + 1


@either("xgboost")
def test_missing_values_carry_information(backend):
    rng = np.random.default_rng(0)
    y = (rng.random(800) < 0.3).astype(int)
    X = rng.normal(size=(800, 2))
    X[(y == 1) & (rng.random(800) < 0.8), 0] = np.nan
    trees = PushTrees(backend=backend, n_estimators=20).fit(X[:400], y[:400])
    assert roc_auc_score(y[400:], trees.decision_function(X[400:])) > 0.85


def categories(seed):
    rng = np.random.default_rng(seed)
    colours = np.array(["red", "green", "blue", "grey", "black", "white"])
    colour = colours[rng.integers(0, 6, 900)]
    number = rng.normal(size=900)
    good = np.isin(colour, ["green", "grey", "white"])
    y = (2.5 * good + number + rng.logistic(size=900) > 3).astype(int)
    return {"colour": colour, "number": number}, y


@pytest.mark.sampled(5)
@both
@pytest.mark.parametrize("frame", ["pandas category", "pandas text", "polars"])
def test_columns_of_categories_are_found_by_their_type(backend, frame):
    columns, y = categories(0)
    if frame == "polars":
        X = pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical))
    else:
        X = pd.DataFrame(columns)
        if frame == "pandas category":
            X["colour"] = X["colour"].astype("category")
    trees = PushTrees(backend=backend, n_estimators=30).fit(X, y)
    assert trees.feature_names_in_.tolist() == ["colour", "number"]
    assert trees._columns.places == (0,)
    assert roc_auc_score(y, trees.decision_function(X)) > 0.8
    assert trees.feature_importances_[0] > 0.2


@either("lightgbm")
def test_the_codes_of_categories_do_not_depend_on_the_frame_they_come_in(backend):
    columns, y = categories(0)
    X = pd.DataFrame(columns)
    trees = PushTrees(backend=backend, n_estimators=30).fit(X, y)
    scores = trees.decision_function(X)
    few = X[X["colour"] == "red"].copy()
    few["colour"] = few["colour"].astype("category")  # whose codes would be all zero
    np.testing.assert_allclose(
        trees.decision_function(few), scores[(X["colour"] == "red").to_numpy()]
    )


@either("xgboost")
def test_a_category_never_seen_is_a_missing_value(backend):
    columns, y = categories(0)
    X = pd.DataFrame(columns)
    trees = PushTrees(backend=backend, n_estimators=30).fit(X, y)
    new, missing = X.head(20).copy(), X.head(20).copy()
    new["colour"] = "violet"
    missing["colour"] = None
    np.testing.assert_array_equal(trees.decision_function(new), trees.decision_function(missing))


def test_columns_of_categories_can_be_named_in_an_array():
    columns, y = categories(0)
    codes = np.unique(columns["colour"], return_inverse=True)[1]
    X = np.column_stack([codes, columns["number"]])
    by_place = PushTrees(n_estimators=20, categorical_features=[0]).fit(X, y)
    by_mask = PushTrees(n_estimators=20, categorical_features=[True, False]).fit(X, y)
    np.testing.assert_array_equal(by_place.decision_function(X), by_mask.decision_function(X))
    frame = pd.DataFrame(columns)
    by_name = PushTrees(n_estimators=20, categorical_features=["colour"]).fit(frame, y)
    np.testing.assert_allclose(by_place.decision_function(X), by_name.decision_function(frame))


def test_text_that_is_not_named_a_category_is_refused():
    columns, y = categories(0)
    with pytest.raises(ValueError, match="'colour' holds values that are not numbers"):
        PushTrees(categorical_features=None).fit(pd.DataFrame(columns), y)


def test_dates_are_refused_and_nullable_numbers_are_read():
    columns, y = categories(0)
    X = pd.DataFrame(columns)
    X["count"] = pd.array([1, None, 3] * 300, dtype="Int64")
    X["mixed"] = np.array([1, None, 2.5] * 300, dtype=object)
    trees = PushTrees(n_estimators=3).fit(X, y)
    assert trees._columns.places == (0,)
    assert np.isnan(trees._columns.numbers(X)[1::3, 2:]).all()
    X["day"] = pd.Timestamp("2026-01-01")
    with pytest.raises(ValueError, match="'day' holds dates or times"):
        PushTrees(n_estimators=3).fit(X, y)


@either("lightgbm")
def test_monotone_constraints_hold(backend, train):
    X, y = train
    trees = PushTrees(backend=backend, n_estimators=40, monotone_constraints=[1, 0, 0, 0]).fit(X, y)
    line = np.tile(X[:50], (40, 1))
    line[:, 0] = np.repeat(np.linspace(-3, 3, 40), 50)
    steps = np.diff(trees.decision_function(line).reshape(40, 50), axis=0)
    assert steps.min() >= -1e-6
    free = PushTrees(backend=backend, n_estimators=40).fit(X, y)
    assert np.diff(free.decision_function(line).reshape(40, 50), axis=0).min() < -1e-3


def test_monotone_constraints_can_be_named(train):
    X, y = train
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = PushTrees(n_estimators=10, monotone_constraints={"a": 1}).fit(frame, y)
    listed = PushTrees(n_estimators=10, monotone_constraints=[1, 0, 0, 0]).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(frame), listed.decision_function(X))


@either("xgboost")
def test_interaction_constraints_keep_columns_apart(backend, train):
    X, y = train
    trees = PushTrees(backend=backend, n_estimators=40, interaction_constraints=[[0, 1]])
    trees.fit(X, y)
    # without a tree that holds both, the effect of column 0 is the same at every column 2
    grid = np.array([[a, 0.3, c, 0.1] for a in (-1.0, 1.0) for c in (-1.0, 1.0)])
    low_low, low_high, high_low, high_high = trees.decision_function(grid)
    assert high_low - low_low == pytest.approx(high_high - low_high, abs=1e-5)


@either("lightgbm")
def test_a_row_of_weight_zero_is_absent(backend, train):
    X, y = train
    weight = np.ones(len(y))
    weight[::3] = 0
    kept = weight > 0
    settings = {"backend": backend, "n_estimators": 20}
    weighted = PushTrees(**settings).fit(X, y, weight)
    without = PushTrees(**settings).fit(X[kept], y[kept])
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X))


@either("xgboost")
def test_groups_confine_the_pairs(backend):
    # the first column says which group; across groups it ranks, within them it says nothing
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 20)
    rate = np.repeat(rng.uniform(0.05, 0.6, 100), 20)
    y = (rng.random(2000) < rate).astype(int)
    X = np.column_stack([rate, rng.normal(size=2000) + 0.7 * y])
    plain = PushTrees(backend=backend, n_estimators=20).fit(X, y)
    grouped = PushTrees(backend=backend, n_estimators=20).fit(X, y, groups=groups)
    assert plain.feature_importances_[0] > 0.3
    assert grouped.feature_importances_[0] < plain.feature_importances_[0]
    names = np.array([f"query {g}" for g in groups])
    again = PushTrees(backend=backend, n_estimators=20).fit(X, y, groups=names)
    np.testing.assert_array_equal(again.decision_function(X), grouped.decision_function(X))
    stopped = PushTrees(backend=backend, n_estimators=20, early_stopping=True, random_state=0)
    stopped.fit(X, y, groups=groups)
    assert stopped.validation_scores_.max() <= 1.0


@pytest.fixture(scope="module")
def production(train):
    X, y = train
    booster = lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(X, y), 10
    )
    return booster


@either("lightgbm")
def test_a_booster_in_production_is_continued(backend, train, test, production):
    trees = PushTrees(4, backend=backend, n_estimators=20, metric="auc")
    trees.fit(*train, init_model=production)
    assert trees.init_scale_ == pytest.approx(1 / 5)
    scores = trees.decision_function(test[0])
    base = production.predict(test[0], raw_score=True) / 5
    alone = trees._trees.scores(test[0])
    np.testing.assert_allclose(scores, base + alone + trees.intercept_[0], rtol=1e-6)
    np.testing.assert_allclose(trees.explain(test[0]).sum(axis=1), scores, atol=1e-6)
    result = trees.compare_with_start(*test)
    assert result.difference == pytest.approx(auc(test[1], scores) - auc(test[1], base))
    assert result.low < result.difference < result.high


@either("xgboost")
def test_scores_to_start_from_can_be_given(backend, train, test, production):
    start = {
        name: production.predict(X, raw_score=True)
        for name, (X, _) in (("train", train), ("test", test))
    }
    given = PushTrees(backend=backend, n_estimators=10).fit(*train, init_score=start["train"])
    model = PushTrees(backend=backend, n_estimators=10).fit(*train, init_model=production)
    np.testing.assert_allclose(
        given.decision_function(test[0], init_score=start["test"]),
        model.decision_function(test[0]),
        rtol=1e-6,
    )
    with pytest.raises(ValueError, match="pass init_score="):
        given.decision_function(test[0])
    with pytest.raises(ValueError, match="grown without"):
        model.decision_function(test[0], init_score=start["test"])


@pytest.mark.more
def test_any_classifier_can_be_started_from(train, test, tmp_path, production):
    import xgboost

    X, y = train
    path = tmp_path / "model.txt"
    production.save_model(path)
    starts = [
        LogisticRegression().fit(X, y),
        RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y),
        xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, y), 5),
        PushTrees(8.0, n_estimators=5).fit(X, y),
        str(path),
    ]
    for start in starts:
        trees = PushTrees(n_estimators=20).fit(X, y, init_model=start)
        assert roc_auc_score(test[1], trees.decision_function(test[0])) > 0.75
        again = pickle.loads(pickle.dumps(trees))
        np.testing.assert_array_equal(
            again.decision_function(test[0]), trees.decision_function(test[0])
        )
    with pytest.raises(TypeError, match="expected a fitted classifier"):
        PushTrees().fit(X, y, init_model=3)


def test_a_start_that_is_perfect_is_left_alone(train):
    X, y = train
    trees = PushTrees(n_estimators=3).fit(X, y, init_score=1000.0 * y)
    scores = trees.decision_function(X, init_score=1000.0 * y)
    assert scores[y == 1].min() > scores[y == 0].max()


@either("lightgbm")
def test_p_is_chosen_with_the_binary_objective_in_the_comparison(backend, train):
    X, y = train
    trees = PushTrees(backend=backend, n_estimators=8, ps=(8.0, None, 1.0), random_state=0)
    trees.fit(X, y)
    assert [c.p for c in trees.choice_.candidates] == [None, 1.0, 8.0]
    assert trees.choice_.fold_scores.shape == (3, 3)
    assert trees.p_ == trees.choice_.p
    chosen = clone(trees).set_params(p=trees.p_).fit(X, y)
    np.testing.assert_array_equal(chosen.decision_function(X), trees.decision_function(X))


def test_p_is_chosen_within_groups(train, production):
    X, y = train
    groups = np.repeat(np.arange(75), 20)
    start = production.predict(X, raw_score=True)
    trees = PushTrees(n_estimators=5, ps=(None, 4.0), cv=3, metric_kwargs={"k": 3})
    trees.fit(X, y, np.ones(1500), groups=groups, init_score=start)
    assert trees.choice_.fold_scores.shape == (2, 3) and "ndcg" in trees.choice_.metric
    frame = pd.DataFrame(X)
    frame.columns = [f"x{j}" for j in range(4)]
    trees.fit(frame, y, init_model=LogisticRegression().fit(frame, y))
    assert trees.p_ in (4.0, None)


def test_the_binary_objective_is_the_librarys_own(train):
    X, y = train
    settings = {"n_estimators": 10, "learning_rate": 0.1, "subsample": 1.0, "colsample": 1.0}
    trees = PushTrees(None, **settings).fit(X, y)
    params = {"objective": "binary", "verbose": -1, "num_threads": 1, "lambda_l2": 1.0}
    params |= {"min_data_in_leaf": 0, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 1.0}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 10)
    np.testing.assert_allclose(trees.predict_proba(X)[:, 1], booster.predict(X), rtol=1e-10)


@either("xgboost")
def test_columns_that_say_nothing_give_equal_scores(backend):
    y = np.arange(60) % 3 == 0
    trees = PushTrees(backend=backend, n_estimators=5).fit(np.ones((60, 2)), y)
    assert np.ptp(trees.decision_function(np.ones((5, 2)))) == 0
    assert trees.feature_importances_.sum() == 0


@pytest.mark.parametrize(
    ("convert", "gap"),
    [(Decimal, None), (Decimal, Decimal("nan")), (float, pd.NA), (int, None), (np.float32, np.nan)],
)
def test_objects_that_are_numbers_count_as_numbers(convert, gap):
    x = np.arange(200.0)
    told = PushTrees(4, n_estimators=5).fit(pd.DataFrame({"x": np.append(x[1:], np.nan)}), x > 150)
    held = pd.Series([*map(convert, x[1:].tolist()), gap], dtype=object)
    trees = PushTrees(4, n_estimators=5).fit(pd.DataFrame({"x": held}), x > 150)
    assert trees._columns.places == ()
    np.testing.assert_array_equal(
        trees.decision_function(pd.DataFrame({"x": held})),
        told.decision_function(pd.DataFrame({"x": np.append(x[1:], np.nan)})),
    )


@pytest.mark.parametrize(
    "day",
    [date(2026, 1, 1), datetime(2026, 1, 1), pd.Timestamp("2026-01-01"), np.datetime64("2026-01")],
)
def test_objects_that_are_dates_are_refused_as_columns_of_dates_are(day):
    y = np.arange(40) > 30
    for held in ([day] * 40, [None] * 5 + [day] * 35, [pd.NaT] + [day] * 39):
        frame = pd.DataFrame({"when": pd.Series(held, dtype=object)})
        with pytest.raises(ValueError, match="'when' holds dates or times; say what about them"):
            PushTrees(4, n_estimators=2).fit(frame, y)


def test_objects_that_are_numbers_and_words_are_categories():
    frame = pd.DataFrame({"x": pd.Series([1, "one"] * 20, dtype=object)})
    assert PushTrees(4, n_estimators=2).fit(frame, np.arange(40) > 30)._columns.places == (0,)


@pytest.mark.parametrize("column", [["a", "b"] * 20, [1.0, 2.0] * 20, [1, None] * 20])
def test_no_rows_are_refused_alike_whatever_the_columns_hold(column):
    frame = pd.DataFrame({"x": np.arange(40.0), "c": pd.Series(column, dtype=object)})
    trees = PushTrees(4, n_estimators=2).fit(frame, np.arange(40) > 30)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        trees.decision_function(frame[:0])


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"monotone_constraints": [1, 0]}, {}, "each of the 4 columns"),
        ({"monotone_constraints": {"a": 1}}, {}, "which X does not have"),
        ({"categorical_features": [7]}, {}, "columns 0 to 3"),
        ({"categorical_features": [0], "monotone_constraints": [1, 0, 0, 0]}, {}, "categories"),
        ({"metric": "accuracy", "early_stopping": True}, {}, "Unknown metric"),
        ({"link": "p_classification", "loss": "hinge"}, {}, "Use link='logistic'"),
        ({}, {"init_score": np.zeros(3)}, "inconsistent numbers of samples"),
        ({}, {"init_score": np.zeros(1500), "init_model": 1}, "give a model as init_model"),
        ({}, {"groups": np.arange(1500)}, "no pair to rank"),
        ({"categorical_features": [True]}, {}, r"is a mask of shape \(1,\), expected \(4,\)"),
    ],
)
def test_unusable_input_is_refused_in_words(settings, given, message, train):
    with pytest.raises(ValueError, match=message):
        PushTrees(n_estimators=3, **settings).fit(*train, **given)


def test_trees_that_started_from_nothing_have_nothing_to_compare_with(train):
    trees = PushTrees(n_estimators=3).fit(*train)
    with pytest.raises(ValueError, match="have no starting scores"):
        trees.compare_with_start(*train)


@pytest.mark.slow
@both
def test_one_list_of_a_million_rows_trains(backend):
    X, y = linear_bipartite(prevalence=0.02).sample(1_000_000, random_state=0)
    trees = PushTrees(backend=backend, n_estimators=3, early_stopping=False).fit(X, y)
    assert precision_at(y, trees.decision_function(X), 0.01) > 0.1


@either("lightgbm")
def test_several_sets_to_measure_on_come_as_a_list(backend, train, test):
    half = (test[0][::2], test[1][::2])
    trees = PushTrees(4, backend=backend, n_estimators=12)
    trees.fit(*train, eval_set=[half, test], eval_metric="auc")
    assert list(trees.evals_result_) == ["valid_0", "valid_1"]
    scores = list(trees.staged_decision_function(half[0]))
    expected = [auc(half[1], one) for one in scores]
    assert trees.evals_result_["valid_0"]["auc"] == pytest.approx(expected, abs=1e-3)
    settings = {"backend": backend, "n_estimators": 12, "metric": "auc"}
    alone = PushTrees(4, **settings).fit(*train, eval_set=[test])
    np.testing.assert_array_equal(alone.validation_scores_, trees.evals_result_["valid_1"]["auc"])


def test_functions_of_lightgbm_s_kind_are_metrics(train, test):
    def error(y, s):
        return "error", float(np.mean(s[y == 0] > 0)), False

    trees = PushTrees(n_estimators=5).fit(*train, eval_set=[test], eval_metric=error)
    assert np.all(trees.validation_scores_ <= 0) and list(trees.evals_result_["valid_0"]) == [
        "error"
    ]
    assert PushTrees(n_estimators=2).fit(*train, eval_set=test, eval_metric=["map"]).n_iter_ > 0

    def highest(y, s):
        return np.float32(np.max(s[y == 1]))

    trees = PushTrees(n_estimators=2).fit(*train, eval_set=test, eval_metric=highest)
    assert list(trees.evals_result_["valid_0"]) == ["highest"]
    assert trees.n_iter_ == np.argmax(trees.validation_scores_) + 1


@pytest.mark.more
@both
def test_a_scale_that_is_given_is_that_of_the_starting_scores(backend, train):
    X, y = train
    given = {"backend": backend, "n_estimators": 3}
    scaled = PushTrees(init_scale=0.5, **given).fit(X, y, init_score=2.0 * np.arange(1500) / 1500)
    plain = PushTrees(init_scale=1.0, **given).fit(X, y, init_score=np.arange(1500) / 1500)
    assert scaled.init_scale_ == 0.5
    np.testing.assert_allclose(
        scaled.decision_function(X, init_score=np.zeros(1500)),
        plain.decision_function(X, init_score=np.zeros(1500)),
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"eval_set": []}, "eval_set is empty"),
        ({"eval_set": [3]}, r"expected \(X, y\)"),
        ({"eval_metric": "binary_logloss"}, "measures probabilities"),
        ({"eval_metric": "speed"}, "expected one of"),
        ({"eval_metric": []}, "eval_metric is empty"),
        ({"eval_metric": 3}, "eval_metric=3: expected the name of a metric, or a function"),
        ({"eval_set": (np.zeros((3, 4)), [0, 1, 2])}, "labels other than the classes fitted"),
    ],
)
def test_sets_and_metrics_of_no_use_are_refused(given, said, train):
    with pytest.raises(ValueError, match=said):
        PushTrees(n_estimators=2).fit(*train, **({"eval_set": train} | given))


def test_lightgbm_s_callbacks_are_called(train, test, capsys):
    record = {}
    callbacks = [lightgbm.record_evaluation(record), lightgbm.early_stopping(2, verbose=False)]
    trees = PushTrees(n_estimators=80, metric="auc", learning_rate=1.0)
    trees.fit(*train, eval_set=test, callbacks=callbacks)
    np.testing.assert_array_equal(record["valid_0"]["auc"], trees.validation_scores_)
    assert len(trees.validation_scores_) == np.argmax(trees.validation_scores_) + 1 + 2


@either("xgboost")
def test_verbose_prints_the_rounds(backend, train, test, capsys):
    PushTrees(backend=backend, n_estimators=20, verbose=1).fit(*train, eval_set=test)
    said = capsys.readouterr().out
    assert "[10 of 20] average_precision of the rows held out: 0." in said and "[20 of 20]" in said
    PushTrees(backend=backend, n_estimators=3).fit(*train)
    assert capsys.readouterr().out == ""


def test_the_libraries_names_of_parameters_are_taken():
    trees = PushTrees(num_leaves=7, min_child_samples=5, colsample_bytree=0.5, reg_alpha=2.0)
    assert (trees.max_leaves, trees.min_samples_leaf, trees.colsample) == (7, 5, 0.5)
    assert trees.backend_params == {"lambda_l1": 2.0}
    assert PushTrees(backend="xgboost", reg_alpha=2.0).backend_params == {"reg_alpha": 2.0}
    again = clone(trees).set_params(num_leaves=9, lambda_l1=1.0)
    assert again.max_leaves == 9 and again.backend_params == {"lambda_l1": 1.0}
    assert PushTrees(early_stopping_rounds=5).early_stopping is True
    assert PushTrees(max_depth=-1, n_estimators=2).fit(*sample(300, 0)).n_iter_ == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scale_pos_weight": 3}, "each class normalised by itself"),
        ({"objective": "binary"}, "p=None is the binary one"),
        ({"num_leafs": 3}, "did you mean num_leaves"),
        ({"num_leaves": 3, "max_leaves": 4}, "are the same; give one"),
    ],
)
def test_what_has_no_counterpart_is_said(given, said):
    with pytest.raises(TypeError, match=said):
        PushTrees(**given)


@pytest.mark.more
@either("lightgbm")
def test_probabilities_are_those_of_rows_that_the_trees_have_not_seen(backend):
    train, test = sample(600, 0), sample(4000, 1)
    losses = {}
    for calibration in ("out_of_fold", "training"):
        trees = PushTrees(backend=backend, calibration=calibration, random_state=0).fit(*train)
        losses[calibration] = log_loss(test[1], trees.predict_proba(test[0])[:, 1])
    always = log_loss(test[1], np.full(len(test[1]), train[1].mean()))
    assert losses["out_of_fold"] < always < losses["training"]


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_are_calibrated_alike_in_any_order_and_number(grouped):
    X, y = sample(300, 0)
    groups = np.arange(300) // 10 if grouped else None
    seen = {}

    def score(train, test):
        for row in test.X[:, 0]:
            seen.setdefault(row, set()).add(len(seen_folds))
        seen_folds.append(1)
        return np.zeros(len(test))

    for rows in (np.arange(300), np.random.default_rng(0).permutation(np.repeat(range(300), 2))):
        seen_folds = []
        part = TreeRows(X[rows], y[rows] == 1, None, None if groups is None else groups[rows])
        assert score_out_of_fold(part, score) is not None
    assert len(seen) == 300 and all(len(folds) == 1 for folds in seen.values())


def test_probabilities_of_many_rows_are_fitted_to_some_that_weigh_as_much_as_all():
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 100
    rows = TreeRows(rng.normal(size=(1000, 2)), y, rng.integers(1, 4, 1000).astype(float))
    some = thin_classes(rows, 120)
    assert np.count_nonzero(some.y) == 100
    assert 100 <= np.count_nonzero(~some.y) <= 120
    for positive in (False, True):
        whole, part = rows.weight[rows.y == positive], some.weight[some.y == positive]
        assert np.sum(part) == pytest.approx(np.sum(whole))
    assert thin_classes(rows, 1000) is rows
