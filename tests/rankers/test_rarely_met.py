"""What rankers meet rarely, each in a small case."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from toprank import PNormPush, PushEnsemble, PushRanker, PushTrees, rankers
from toprank.blocks import from_arrays
from toprank.folds import Scoring
from toprank.metrics import auc, average_precision
from toprank.pairs import Rows
from toprank.rankers.base import LinearRanker
from toprank.rankers.ensemble.weighing import measure_interval
from toprank.rankers.held_out import TopMetric
from toprank.rankers.trees.kept_rounds import _compared


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] + rng.logistic(size=120) > 1).astype(int)


@pytest.mark.parametrize("p", [2.0, 4.0])
def test_a_weight_of_the_bottoms_sum_is_one_of_its_mean_times_the_power_of_the_classes(rows, p):
    X, y = rows
    both = {"p": p, "end": "both", "alpha": 1e-2, "tol": 1e-9}
    sums = PushRanker(**both, balance=0.5, balance_of="sums").fit(X, y)
    more = (np.sum(y == 0) / np.sum(y == 1)) ** (p - 1)
    means = PushRanker(**both, balance=0.5 * more).fit(X, y)
    np.testing.assert_allclose(sums.coef_, means.coef_, rtol=1e-6)


def test_the_largest_height_has_no_sums_to_balance(rows):
    with pytest.raises(ValueError, match=r"balance_of='sums' has no meaning with price='max'"):
        PushRanker(price="max", end="both", balance_of="sums").fit(*rows)


def test_labels_of_other_rows_are_refused(rows):
    X, y = rows
    ranker = PNormPush().fit(X, y)
    with pytest.raises(ValueError, match="y has 119 labels, expected one per row of X: 120"):
        ranker._positives(y[:-1], 120)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("binary_logloss", "measures probabilities"),
        ("rank of rows", "expected one of auc|expected"),
    ],
)
def test_a_metric_that_orders_no_rows_is_refused_by_name(rows, metric, said):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    X, y = rows
    with pytest.raises(ValueError, match=said):
        PushTrees(2).fit(X, y, eval_set=(X, y), eval_metric=metric)


def test_every_ranker_is_listed_before_it_is_imported():
    assert set(rankers.__all__) <= set(dir(rankers))


def test_a_linear_ranker_of_ones_own_without_a_task_says_what_it_lacks(rows):
    class Mine(LinearRanker):
        pass

    with pytest.raises(TypeError, match="Mine must define _task"):
        Mine()._task()


def test_rows_of_one_class_have_no_interval_and_no_standard_error(rows):
    X, _ = rows
    none = Rows(X, np.zeros(120, dtype=bool), None, None)
    assert measure_interval(Scoring("auc"), none, X[:, 0], 0.95) is None
    assert np.isnan(TopMetric("auc", None, none).standard_error(X[:, 0]))


def test_categories_are_the_same_as_numbers_truth_values_and_words(rows):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    _, y = rows
    colour = pd.DataFrame({"colour": np.random.default_rng(1).integers(0, 2, size=120) + y})
    trees = PushTrees(2, n_estimators=3, categorical_features=[0], min_child_samples=5)
    of_numbers = trees.fit(colour, y).decision_function(colour)
    assert np.ptp(of_numbers) > 0
    np.testing.assert_array_equal(trees.decision_function(colour.astype(str)), of_numbers)
    truth = colour > 1
    of_truth = trees.fit(truth, y).decision_function(truth)
    np.testing.assert_array_equal(of_truth, trees.fit(1 * truth, y).decision_function(1 * truth))


def test_trees_score_rows_in_memory_as_they_score_an_array(rows):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    X, y = rows
    trees = PushTrees(2, n_estimators=3).fit(X, y)
    found = from_arrays(X, y).write_scores(trees.block_score())
    np.testing.assert_allclose(found, trees.decision_function(X), rtol=1e-12)


def test_a_booster_of_named_columns_scores_an_array_by_their_places(rows):
    xgboost = pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")
    X, y = rows
    data = xgboost.DMatrix(X, y, feature_names=list("abc"))
    given = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 2)
    settings = {"n_estimators": 2, "backend": "xgboost", "calibration": "training"}
    trees = PushTrees(2, **settings, init_scale=1.0)
    found = trees.fit(X, y, init_model=given).decision_function(X)
    start = given.predict(data, output_margin=True)
    again = trees.fit(X, y, init_score=start).decision_function(X, init_score=start)
    assert np.ptp(found - again) < 1e-5 < np.ptp(start)


def test_a_callback_of_xgboost_is_called_as_it_is(rows):
    xgboost = pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")
    seen = []

    class Count(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            seen.append(epoch)
            return False

    trees = PushTrees(2, n_estimators=3, backend="xgboost", calibration="training")
    trees.fit(*rows, callbacks=[Count()])
    assert seen == [0, 1, 2]


def test_kept_trees_are_those_of_the_same_metric_also_where_it_is_a_function():
    assert _compared(auc) == _compared(auc) != _compared(average_precision)
    assert _compared(1) == _compared(1.0) != _compared("1")


def test_members_that_know_no_blocks_score_them_as_they_score_an_array(rows):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    X, y = np.round(rows[0]), rows[1]
    by_category = PushTrees(2, n_estimators=3, categorical_features=[0], min_child_samples=5)
    members = [("logistic", LogisticRegression()), ("trees", by_category), ("push", PNormPush())]
    ensemble = PushEnsemble(members, cv=2, random_state=0).fit(X, y)
    found = ensemble.score_blocks(from_arrays(X, y, block_rows=50))
    np.testing.assert_allclose(found, ensemble.decision_function(X), rtol=1e-9)
