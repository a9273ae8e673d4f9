"""Trials of Optuna that are stopped by a metric of the top of the list."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PNormPushCV, PushTrees
from toprank.inference import interval
from toprank.interop.optuna import RoundPruner, keep_interval, score_folds

optuna = pytest.importorskip("optuna", reason="searches by Optuna need Optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)


class PruneFrom(optuna.pruners.BasePruner):
    """Prunes every trial that has reported so many times."""

    def __init__(self, reports):
        self.reports = reports

    def prune(self, study, trial):
        return len(trial.intermediate_values) >= self.reports


def rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int)


def study(pruner=None, direction="maximize"):
    return optuna.create_study(direction=direction, pruner=pruner or optuna.pruners.NopPruner())


def run(found, objective, n_trials=1):
    found.optimize(objective, n_trials)
    return found.trials[-1]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_report_every_round_and_stop_where_the_pruner_says(backend):
    pytest.importorskip(backend)
    (X, y), later = rows(), rows(1)
    trees = PushTrees(n_estimators=8, backend=backend, calibration="training")
    kept = {}

    def objective(trial):
        given = {"eval_set": later, "eval_metric": "partial_auc", "callbacks": [RoundPruner(trial)]}
        kept["trees"] = PushTrees(**trees.get_params()).fit(X, y, **given)
        return kept["trees"].validation_scores_[-1]

    whole = run(study(), objective)
    assert whole.state.name == "COMPLETE" and len(whole.intermediate_values) == 8
    np.testing.assert_allclose(
        list(whole.intermediate_values.values()), kept["trees"].validation_scores_, rtol=1e-5
    )
    cut = run(study(PruneFrom(3)), objective)
    assert cut.state.name == "PRUNED" and sorted(cut.intermediate_values) == [0, 1, 2]
    sparse = run(study(), lambda trial: (
        trees.fit(X, y, eval_set=later, callbacks=[RoundPruner(trial, every=4)]).n_iter_
    ))  # fmt: skip
    assert sorted(sparse.intermediate_values) == [3, 7]


def test_a_fit_that_holds_no_rows_out_and_a_study_that_minimises_are_refused():
    X, y = rows()
    found = study()
    trees = PushTrees(n_estimators=3)
    with pytest.raises(ValueError, match="no rows are held out"):
        found.optimize(lambda trial: trees.fit(X, y, callbacks=[RoundPruner(trial)]), 1)
    with pytest.raises(ValueError, match="direction='maximize'"):
        RoundPruner(study(direction="minimize").ask())
    with pytest.raises(ValueError, match="minimize, maximize"):
        score_folds(optuna.create_study(directions=["minimize", "maximize"]).ask(), trees, X, y)
    with pytest.raises(ValueError, match="every=0"):
        RoundPruner(found.ask(), every=0)


@pytest.mark.parametrize(
    "ranker",
    [
        make_pipeline(StandardScaler(), PNormPush()),
        PNormPushCV((1, 4), alphas=(1e-2,), cv=2, test_size=None),
    ],
    ids=["pipeline", "cv"],
)
def test_folds_report_their_running_mean_and_stop_where_the_pruner_says(ranker):
    X, y = rows()

    def objective(trial):
        return score_folds(trial, ranker, X, y, metric="precision_at", k=0.1, cv=3)

    whole = run(study(), objective)
    scores = whole.user_attrs["fold_scores"]
    assert len(scores) == 3 and whole.value == pytest.approx(np.mean(scores))
    assert whole.user_attrs["standard_error"] == pytest.approx(np.std(scores, ddof=1) / 3**0.5)
    np.testing.assert_allclose(list(whole.intermediate_values.values()),
                               np.cumsum(scores) / [1, 2, 3])  # fmt: skip
    cut = run(study(PruneFrom(2)), objective)
    assert cut.state.name == "PRUNED" and len(cut.intermediate_values) == 2


def test_weights_and_groups_reach_the_folds_and_risks_are_negated():
    X, y = rows()
    groups = np.arange(len(y)) // 3
    found = study()
    weighted = score_folds(
        found.ask(), PNormPush(), X, y, groups=groups, sample_weight=1.0 + y, cv=3
    )
    assert weighted > score_folds(found.ask(), PNormPush(), X, y, groups=groups, cv=3)
    assert score_folds(found.ask(), PNormPush(), X, y, metric="misranking_error", cv=3) < 0


def test_an_objective_can_be_tried_by_hand_and_an_interval_kept():
    X, y = rows()
    by_hand = optuna.trial.FixedTrial({})
    assert 0 < score_folds(by_hand, PNormPush(), X, y, cv=3) <= 1
    trial = study().ask()
    found = interval("average_precision", y, X[:, 0])
    assert keep_interval(trial, found) == found.estimate
    assert trial.user_attrs["low"] == found.low < found.high == trial.user_attrs["high"]


@pytest.mark.more
def test_a_search_with_the_median_pruner_stops_hopeless_trials():
    X, y = rows(n=600)
    later = rows(1, n=600)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=3)
    sampler = optuna.samplers.TPESampler(seed=0)
    found = optuna.create_study(direction="maximize", pruner=pruner, sampler=sampler)

    def objective(trial):
        rate = trial.suggest_float("learning_rate", 1e-4, 0.3, log=True)
        trees = PushTrees(n_estimators=30, learning_rate=rate, calibration="training")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trees.fit(X, y, eval_set=later, callbacks=[RoundPruner(trial)])
        return trees.validation_scores_[trees.n_iter_ - 1]

    found.optimize(objective, 12)
    states = {one.state.name for one in found.trials}
    assert states == {"COMPLETE", "PRUNED"} and found.best_value > 0.5
