"""Trees in a barrier stage of Spark."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from toprank import PushTrees
from toprank.rankers.trees.distributed import ready_to_ship
from toprank.rankers.trees.distributed_spark import _Task

FEATURES = list("abcd")
pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")


@pytest.fixture
def frame(binned):
    X, y, weight = binned
    return pd.DataFrame(X, columns=FEATURES).assign(label=y, weight=weight)


def trees(**settings):
    usual = {"backend": "xgboost", "n_estimators": 12, "random_state": 0, "subsample": 1.0, "p": 4}
    # a cluster takes its probabilities from the training rows
    return PushTrees(**usual | settings, calibration="training")


def dump(fitted):
    return fitted.booster_.get_dump(with_stats=True)


@pytest.mark.more
def test_a_barrier_stage_grows_the_trees_of_one_process(spark, frame):
    columns = {"features": FEATURES, "target": "label", "weight": "weight"}
    together = trees().fit_spark(spark.createDataFrame(frame), num_workers=2, **columns)
    alone = trees().fit(frame[FEATURES], frame["label"], frame["weight"])
    assert dump(together) == dump(alone)
    np.testing.assert_array_equal(together.feature_names_in_, FEATURES)
    np.testing.assert_array_equal(together.classes_, [0, 1])
    probability = together.predict_proba(frame[FEATURES])
    np.testing.assert_allclose(probability, alone.predict_proba(frame[FEATURES]), rtol=1e-9)


@pytest.mark.more
def test_p_is_chosen_on_a_sample_and_the_trees_are_grown_in_the_stage(spark, frame):
    settings = {"ps": (1.0, 4.0), "cv": 3}
    columns = {"features": FEATURES, "target": "label", "weight": "weight"}
    together = trees(p="auto", **settings).fit_spark(
        spark.createDataFrame(frame), num_workers=2, **columns
    )
    present = frame[frame["weight"] > 0]  # rows without a weight are not drawn
    alone = trees(p="auto", **settings).fit(present[FEATURES], present["label"], present["weight"])
    np.testing.assert_allclose(together.choice_.fold_scores, alone.choice_.fold_scores)
    assert together.p_ == alone.p_
    given = trees(p=together.p_).fit(frame[FEATURES], frame["label"], frame["weight"])
    assert dump(together) == dump(given)


@pytest.mark.more
def test_a_task_without_rows_and_a_global_metric_to_stop_by(spark, frame):
    settings = {"metric_kwargs": {"k": 30}, "n_iter_no_change": 3, "loss": "logistic"}
    train, test = frame[:800], frame[800:]
    # all rows to train on are in one partition, all rows to stop by in the other
    together = trees(**settings).fit_spark(
        spark.createDataFrame(train).coalesce(1),
        features=FEATURES,
        target="label",
        eval_data=spark.createDataFrame(test).coalesce(1),
        num_workers=2,
    )
    alone = trees(**settings).fit(
        train[FEATURES], train["label"], eval_set=(test[FEATURES], test["label"])
    )
    assert dump(together) == dump(alone)
    np.testing.assert_array_equal(together.validation_scores_, alone.validation_scores_)
    assert together.n_iter_ == alone.n_iter_


@pytest.mark.more
def test_what_cannot_be_fitted_is_said_in_its_own_words(spark, frame):
    data = spark.createDataFrame(frame.assign(label=1))
    for p in (4, "auto"):
        with pytest.raises(ValueError, match="one class only"):
            trees(p=p).fit_spark(data, features=FEATURES, target="label", num_workers=2)
        with pytest.raises(ValueError, match="no column 'z'"):
            trees(p=p).fit_spark(data, features=["z"], target="label")
    with pytest.raises(ValueError, match="num_workers=0"):
        trees().fit_spark(data, features=FEATURES, target="label", num_workers=0)


@pytest.mark.more
def test_columns_that_the_library_cannot_hold_were_not_told_on_spark(spark, frame):
    columns = {"features": FEATURES, "target": "label", "num_workers": 2}
    tiny = frame.assign(d=frame["d"] * 1e-40)
    with pytest.warns(ConvergenceWarning, match=r"column 3 first.*takes them for zero") as told:
        trees().fit_spark(spark.createDataFrame(tiny), **columns)
    ours = [warning for warning in told if warning.category is ConvergenceWarning]
    assert [warning.filename for warning in ours] == [__file__]
    huge = frame.copy()
    huge.loc[1199, "c"] = 1e60  # in one partition only
    with pytest.raises(ValueError, match="Column 2 of X has entries of up to 1e"):
        trees().fit_spark(spark.createDataFrame(huge), **columns)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_a_task_that_is_handed_no_batches_has_no_rows_of_the_same_columns(weight):
    roles = {"y": "label", "weight": weight, "groups": None, "start": None}
    task = _Task(ready_to_ship(trees()), FEATURES, roles, True)
    task.trees.init_model_ = None
    frame = task._frame(iter([]))
    held = frame.pop("__toprank_held").to_numpy(dtype=bool)
    assert len(held) == 0 and list(frame) == [*FEATURES, "label", *([weight] if weight else [])]
    (part,) = task._parts(1, frame[~held])
    assert part.index == 1 and part.n_rows == 0 and list(part.rows.X) == FEATURES
    assert len(part.rows.y) == 0 and (part.rows.weight is None) == (weight is None)
