"""Callbacks of scikit-learn 1.9: told of every fit and its steps, and asked whether to stop."""

import pickle
import runpy
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import (
    AdaBoostRanker,
    IRPush,
    LabelRanker,
    PairRanker,
    PNormPush,
    PNormPushCV,
    ProperRanker,
    PushEnsemble,
    PushTrees,
    RankBoost,
)
from toprank.blocks import from_arrays
from toprank.metrics import auc, scorer
from toprank.models import load_ranker, save_ranker
from toprank.rankers import callbacks
from toprank.rankers.common import fits

try:
    from sklearn.callback import ScoringMonitor
except ImportError:
    ScoringMonitor = None

needs_callbacks = pytest.mark.skipif(ScoringMonitor is None, reason="scikit-learn before 1.9")


class Diary:
    """Writes down what it is told, and asks to stop after so many steps."""

    def __init__(self, steps=np.inf):
        self.steps = steps
        self.lines = []

    def setup(self, estimator, context):
        self.lines.append("setup")

    def teardown(self, estimator, context):
        self.lines.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.lines.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.lines.append(f"end {context.task_name}")
        return sum(line.startswith("end") for line in self.lines) >= self.steps


def rows(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0.5).astype(int)


MEMBERS = [("a", LogisticRegression()), ("b", PNormPush())]
RANKERS = {
    "PNormPush": (PNormPush(), "iteration"),
    "max": (PNormPush(np.inf, solver="lbfgs"), "iteration"),
    "positive": (PNormPush(positive=True), "iteration"),
    "IRPush": (IRPush(solver="coordinate", max_iter=3), "iteration"),
    "ProperRanker": (ProperRanker(solver="lbfgs"), "iteration"),
    "PairRanker": (PairRanker(), "iteration"),
    "RankBoost": (RankBoost(4), "round"),
    "AdaBoostRanker": (AdaBoostRanker(4), "round"),
    "PushTrees": (PushTrees(n_estimators=4, calibration="training"), "round"),
    "PushTrees, XGBoost": (
        PushTrees(n_estimators=4, calibration="training", backend="xgboost"),
        "round",
    ),
    "PushEnsemble": (PushEnsemble(MEMBERS, cv=2), "a, fold 1 of 2"),
    "PNormPushCV": (PNormPushCV((1, 4), alphas=(0.1,), cv=2, test_size=None), None),
}


def ranker(name):
    found, step = RANKERS[name]
    if "XGBoost" in name:
        pytest.importorskip("xgboost")
    return clone(found), step


@needs_callbacks
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RANKERS)
def test_a_fit_and_its_steps_are_told_in_order_and_change_nothing(name):
    found, step = ranker(name)
    X, y = rows()
    diary = Diary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = clone(found).fit(X, y)
        found.set_callbacks(diary).fit(X, y)
    score = "decision_function" if hasattr(found, "decision_function") else "predict"
    np.testing.assert_array_equal(getattr(found, score)(X), getattr(alone, score)(X))
    assert diary.lines[:2] == ["setup", "begin fit"]
    assert diary.lines[-2:] == ["end fit", "teardown"]
    steps = diary.lines[2:-2]
    assert (step is None and not steps) or (f"begin {step}" in steps and f"end {step}" in steps)
    assert not [name for name in vars(found) if name.startswith("_callback")]


@needs_callbacks
@pytest.mark.parametrize("name", ["PNormPush", "RankBoost", "PushTrees", "PushTrees, XGBoost"])
def test_a_callback_stops_a_fit_which_keeps_what_it_has(name):
    found, _ = ranker(name)
    X, y = rows()
    found.set_callbacks(Diary(steps=2)).fit(X, y)  # and no warning says that it stopped early
    assert found.n_iter_ == 2 and np.ptp(found.decision_function(X)) > 0
    whole = clone(found).set_callbacks().fit(X, y)
    assert whole.n_iter_ > 2


@needs_callbacks
def test_a_callback_stops_a_fit_in_fewer_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 300)), np.arange(50) % 3 == 0
    found = PNormPush().set_callbacks(Diary(steps=2)).fit(X, y)
    assert found.n_iter_ == 2 and found.coef_.shape == (1, 300)
    assert np.ptp(found.decision_function(X)) > 0


@needs_callbacks
@pytest.mark.parametrize(
    "name",
    ["PNormPush", "ProperRanker", "max", "PushTrees", "PushTrees, XGBoost"],
)
def test_a_monitor_scores_the_ranker_as_it_was_after_each_step(name):
    found, _ = ranker(name)
    X, y = rows()
    monitor = ScoringMonitor(scoring=scorer("average_precision"))
    weight = np.ones(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.set_callbacks(monitor).fit(X, y, sample_weight=weight)
    log = [line["score"] for line in monitor.get_logs().data]  # the whole fit comes first
    assert len(log) > 2 and np.all(np.isfinite(log))
    assert log[0] == pytest.approx(scorer("average_precision")(found, X, y))
    assert len({round(value, 6) for value in log}) > 1


@needs_callbacks
def test_callbacks_come_through_pipelines_searches_and_folds():
    X, y = rows()

    class Travelling(Diary):
        max_propagation_depth = None

    diary = Travelling()
    pipeline = make_pipeline(StandardScaler(), PNormPush())
    search = GridSearchCV(pipeline, {"pnormpush__p": [1, 4]}, cv=2).set_callbacks(diary).fit(X, y)
    assert diary.lines.count("setup") == 1 and diary.lines.count("end iteration") > 5
    assert search.best_estimator_.predict(X).shape == y.shape
    auto = PushTrees("auto", ps=(4,), cv=2, n_estimators=3, calibration="training")
    diary = Diary()
    auto.set_callbacks(diary).fit(X, y)  # the folds are part of this fit, and none of their own
    assert diary.lines.count("setup") == 1


@needs_callbacks
@pytest.mark.more
def test_a_ranker_with_callbacks_can_be_copied_and_is_kept_without_them(tmp_path):
    X, y = rows()
    kept = PNormPush().set_callbacks(Diary()).fit(X, y)
    assert pickle.loads(pickle.dumps(kept)).n_iter_ == kept.n_iter_
    save_ranker(kept, tmp_path / "ranker")
    again = load_ranker(tmp_path / "ranker")
    np.testing.assert_array_equal(again.decision_function(X), kept.decision_function(X))
    assert not hasattr(again, "_skl_callbacks") and hasattr(kept, "_skl_callbacks")


@needs_callbacks
def test_a_failed_fit_closes_its_callbacks():
    diary = Diary()
    with pytest.raises(ValueError, match="NaN"):
        PNormPush().set_callbacks(diary).fit([[np.nan]] * 4, [0, 1, 0, 1])
    assert diary.lines == ["setup", "begin fit", "teardown"]


@needs_callbacks
def test_blocks_are_told_of_and_rankers_fitted_again_to_other_rows_are_not():
    X, y = rows()
    diary = Diary()
    PNormPush().set_callbacks(diary).fit_blocks(from_arrays(X, y))
    assert diary.lines[-2:] == ["end fit", "teardown"] and "end iteration" in diary.lines
    ensemble = PushEnsemble(MEMBERS, cv=2).fit(X, y)
    diary = Diary()
    ensemble.set_callbacks(diary).refit_members(X, y)
    assert diary.lines == []


@needs_callbacks
def test_a_fit_that_calls_another_is_told_of_once():
    class OnBlocks(PNormPush):
        @fits
        def fit(self, X, y):  # as the fit to a tensor on a GPU does
            return self.fit_blocks(from_arrays(X, y))

    diary = Diary()
    found = OnBlocks().set_callbacks(diary).fit(*rows())
    told = [diary.lines.count(line) for line in ("setup", "begin fit", "end fit", "teardown")]
    assert told == [1, 1, 1, 1] and diary.lines[-2:] == ["end fit", "teardown"]
    assert diary.lines.count("end iteration") == found.n_iter_
    assert not [name for name in vars(found) if name.startswith("_callback")]


def test_label_rankers_take_callbacks_too():
    if ScoringMonitor is None:
        with pytest.raises(AttributeError) as error:
            LabelRanker().set_callbacks()
        assert "needs scikit-learn 1.9" in str(error.value.__cause__)
        assert not hasattr(PNormPush(), "set_callbacks")
        return
    X, y = rows()
    diary = Diary()
    LabelRanker(n_estimators=3).set_callbacks(diary).fit(X, np.column_stack([y, 1 - y]))
    assert diary.lines.count("end round") == 3


@needs_callbacks
def test_a_monitor_scores_pairs_after_each_step():
    X, y = rows()

    def by_hand(ranker, X, y):
        return auc(y, ranker.predict(X))

    monitor, found = ScoringMonitor(scoring={"score": by_hand}), PairRanker()
    found.set_callbacks(monitor).fit(X, y)
    log = [line["score"] for line in monitor.get_logs().data]
    assert len(log) > 2 and log[0] == log[-1] == by_hand(found, X, y)


@needs_callbacks
def test_a_monitor_scores_trees_that_start_from_scores():
    X, y = rows()
    start = 3.0 * X[:, 0]

    def by_hand(trees, X, y):
        return auc(y, trees.decision_function(X, init_score=start))

    monitor = ScoringMonitor(scoring={"score": by_hand})
    trees = PushTrees(n_estimators=3, calibration="training").set_callbacks(monitor)
    trees.fit(X, y, init_score=start)
    log = [line["score"] for line in monitor.get_logs().data]
    assert len(log) == 4 and log[0] == log[-1] == by_hand(trees, X, y)


def test_without_callbacks_in_scikit_learn_the_method_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # as before 1.9

    class Ranker(runpy.run_path(callbacks.__file__)["TakesCallbacks"]):
        pass

    assert not hasattr(Ranker(), "set_callbacks")
    with pytest.raises(AttributeError) as refused:
        Ranker().set_callbacks()
    assert "Ranker.set_callbacks needs scikit-learn 1.9 or newer" in str(refused.value.__cause__)
