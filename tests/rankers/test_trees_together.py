"""Trees of several workers, here of a team of one: those of a fit, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from toprank import PushTrees
from toprank.interop.team import Team
from toprank.rankers.trees.distributed import (
    Part,
    grow_together,
    prepare,
    ready_to_ship,
    with_start,
)
from toprank.rankers.trees.distributed_dask import _name_columns
from toprank.rankers.trees.distributed_spark import _task_count

pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(200, 3)).astype(float)
    return X, (X[:, 0] + rng.normal(size=200) * 2 > 6).astype(int)


def trees(**settings):
    return PushTrees(2, n_estimators=3, backend="xgboost", calibration="training", **settings)


def no_comparison():
    raise AssertionError("p was given")


def grow(parts, held=None, init_model=None, **settings):
    ranker = trees(**settings)
    prepare(ranker, init_model, False, held is not None, no_comparison)
    ranker.n_features_in_ = 3
    parts = with_start(ranker, parts)
    return grow_together(ready_to_ship(ranker), parts, held, Team()).hand_to(ranker)


def test_a_team_of_one_grows_the_trees_of_a_fit(rows):
    X, y = rows
    found = grow([Part.of(0, X[:90], y[:90]), Part.of(1, X[90:], y[90:]), Part.of(2, X[:0], y[:0])])
    scores = trees().fit(X, y).decision_function(X)
    np.testing.assert_allclose(found.decision_function(X), scores, rtol=1e-6)


@pytest.mark.parametrize("n_positives", [5, 60])
def test_a_team_holds_out_the_rows_that_one_process_does_or_none(monkeypatch, rows, n_positives):
    monkeypatch.setattr("toprank.rankers.trees.estimator._MANY_ROWS", 200)
    X, y = rows[0], np.arange(200) < n_positives
    settings = {"early_stopping": "auto", "validation_fraction": 0.25, "subsample": 1.0}
    found = grow([Part.of(0, X[:90], y[:90]), Part.of(1, X[90:], y[90:])], **settings)
    assert hasattr(found, "validation_scores_") == (n_positives == 60)
    scores = trees(**settings).fit(X, y).decision_function(X)
    np.testing.assert_allclose(found.decision_function(X), scores, rtol=1e-6)


def test_parts_that_do_not_fit_together_are_refused(rows):
    X, y = rows
    whole = [Part.of(0, X, y)]
    with pytest.raises(ValueError, match="A part of X has 200 rows, that of y 199"):
        grow([Part.of(0, X, y[1:])])
    with pytest.raises(ValueError, match="There are no rows: every part of X is empty"):
        grow([Part.of(0, X[:0], y[:0])])
    with pytest.raises(ValueError, match="eval_set has labels other than the classes fitted"):
        grow(whole, [Part.of(0, X, y + 1)])
    with pytest.raises(ValueError, match="eval_set has 2 columns, X has 3"):
        grow(whole, [Part.of(0, X[:, :2], y)])
    with pytest.raises(ValueError, match="X has 3 features, but PushTrees is expecting 2"):
        grow(whole, init_model=trees().fit(X[:, :2], y))


def test_what_a_cluster_cannot_start_from_is_refused():
    with pytest.raises(ValueError, match="init_score holds the scores of the training rows alone"):
        prepare(trees(), None, True, True, no_comparison)


def test_every_worker_draws_the_same_numbers():
    drawn = [ready_to_ship(trees(random_state=np.random.RandomState(3))) for _ in range(2)]
    assert drawn[0].random_state == drawn[1].random_state
    assert ready_to_ship(trees(random_state=7)).random_state == 7
    assert isinstance(ready_to_ship(trees()).random_state, int)


def test_a_fit_to_rows_without_names_on_a_cluster_forgets_those_of_the_fit_before(rows):
    ranker = trees().fit(pd.DataFrame(rows[0], columns=list("abc")), rows[1])
    _name_columns(ranker, rows[0][:, :2])
    assert ranker.n_features_in_ == 2 and not hasattr(ranker, "feature_names_in_")


def test_a_stage_of_spark_has_as_many_tasks_as_asked_or_as_there_are_cores():
    context = SimpleNamespace(defaultParallelism=6)
    data = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))
    assert _task_count(data, None) == 6 and _task_count(data, 2) == 2
    with pytest.raises(ValueError, match="num_workers=0 is not a number of tasks"):
        _task_count(data, 0)
