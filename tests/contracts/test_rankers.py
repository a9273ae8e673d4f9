"""Every ranker is a scikit-learn binary classifier, with no exception asked for."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank.datasets import load_wdbc

RANKERS = [
    thing
    for thing in (getattr(toprank, name) for name in sorted(toprank.__all__))
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator)
]

#: Settings worth a run of their own, beside every ranker's defaults.
VARIANTS = {
    "PNormPush": [
        {"loss": "logistic"},
        {"loss": "hinge"},
        {"loss": "squared_hinge"},
        {"p": 1.0},
        {"p": np.inf},
        {"solver": "lbfgs"},
        {"solver": "coordinate"},
        {"link": "p_classification"},
    ],
    # a sum over the positives: with the default alpha L-BFGS stops short of scikit-learn's 1e-7
    "IRPush": [{"solver": "lbfgs", "alpha": 1.0}, {"solver": "coordinate"}],
    "PushRanker": [
        {"end": "bottom"},
        {"end": "both"},
        {"price": "exponential"},
        {"price": "max", "loss": "squared_hinge"},
        {"price": "log1p", "solver": "newton"},
    ],
}


def with_variants(ranker):
    settings = [{}, *VARIANTS.get(ranker.__name__, [])]
    return [ranker(**setting) for setting in settings]


def each_ranker():
    return [pytest.param(ranker(), id=ranker.__name__) for ranker in RANKERS]


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_wdbc(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_the_public_rankers_are_found():
    assert {"PNormPush", "IRPush", "PushRanker"} <= {ranker.__name__ for ranker in RANKERS}


@parametrize_with_checks([estimator for ranker in RANKERS for estimator in with_variants(ranker)])
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ranker", each_ranker())
def test_a_pipeline_scales_then_ranks(ranker):
    X, y = load_wdbc(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), clone(ranker)).fit(X, y)
    alone = clone(ranker).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(
        pipeline.decision_function(X),
        alone.decision_function(StandardScaler().fit_transform(X)),
    )


@pytest.mark.parametrize("ranker", each_ranker())
def test_a_grid_search_chooses_alpha_by_auc(ranker, wdbc):
    X, y = wdbc
    search = GridSearchCV(ranker, {"alpha": [1e-2, 1.0]}, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_score_ > 0.98
    assert search.best_estimator_.classes_.tolist() == np.unique(y).tolist()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ranker", each_ranker())
def test_calibration_turns_scores_into_probabilities(ranker, method, wdbc):
    X, y = wdbc
    calibrated = CalibratedClassifierCV(ranker, method=method, cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    assert probability.shape == (len(y), 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.95


@pytest.mark.parametrize("ranker", each_ranker())
def test_cross_validation_hands_weights_on_to_fit(ranker, wdbc):
    X, y = wdbc
    weight = np.where(np.arange(len(y)) % 2, 2.0, 1.0)
    scores = cross_val_score(ranker, X, y, cv=3, params={"sample_weight": weight})
    assert np.all(scores > 0.9)


@pytest.mark.parametrize("ranker", each_ranker())
def test_a_pickled_ranker_gives_the_same_scores(ranker, wdbc):
    X, y = wdbc
    fitted = clone(ranker).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("ranker", each_ranker())
def test_a_clone_has_the_parameters_but_not_the_fit(ranker, wdbc):
    fitted = clone(ranker).set_params(alpha=0.25).fit(*wdbc)
    copy = clone(fitted)
    assert copy.alpha == 0.25
    assert not hasattr(copy, "coef_")
    np.testing.assert_array_equal(copy.fit(*wdbc).coef_, fitted.coef_)


@pytest.mark.parametrize("ranker", each_ranker())
def test_fitting_leaves_the_parameters_as_they_were(ranker, wdbc):
    unfitted = clone(ranker)
    before = dict(unfitted.get_params())
    unfitted.fit(*wdbc)
    assert unfitted.get_params() == before
