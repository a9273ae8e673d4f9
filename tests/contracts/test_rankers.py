"""Every ranker is a scikit-learn binary classifier, with no exception asked for."""

import inspect
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
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
    "RankBoost": [
        {"selection": "slope"},
        {"p": 4.0},
        {"n_thresholds": 4, "link": "logistic"},
        {"target": "graded"},
    ],
    "AdaBoostRanker": [{"constant": "reset"}],
    "SmoothMarginRanker": [{"target": "graded", "n_estimators": 50}],
    "LabelRanker": [{"method": "mh"}, {"method": "mr_pooled"}],
    # a sum over the positives: with the default alpha L-BFGS stops short of scikit-learn's 1e-7
    "IRPush": [{"solver": "lbfgs", "alpha": 1.0}, {"solver": "coordinate"}],
    # rows are drawn by default, and then a weight is no repetition
    "PushTrees": [{"subsample": 1.0}, {"backend": "xgboost", "subsample": 1.0}],
    "PushRanker": [
        {"end": "bottom"},
        {"end": "both"},
        {"price": "exponential"},
        {"price": "max", "loss": "squared_hinge"},
        {"price": "log1p", "solver": "newton"},
    ],
}


#: What a search varies, where it is not alpha.
SEARCHED = {
    "PNormPushCV": ("rule", ["best", "one_standard_error"]),
    "RankBoost": ("n_estimators", [20, 50]),
    "AdaBoostRanker": ("n_estimators", [20, 50]),
    "SmoothMarginRanker": ("n_estimators", [200, 300]),
    "LabelRanker": ("n_estimators", [20, 50]),
    "PushTrees": ("n_estimators", [20, 50]),
    "PushEnsemble": ("on_error", ["warn", "raise"]),
}

#: An ensemble of many members is checked with two. A forest draws rows, so that for its default
#: members a weight is no repetition; they have tests of their own.
FEW_MEMBERS = [("push", toprank.PNormPush()), ("logistic", toprank.ProperRanker())]
#: Smaller than the defaults, which level 2 runs scikit-learn's checks with.
QUICK = {
    "PushEnsemble": {"estimators": FEW_MEMBERS, "cv": 3, "quality": "fast"},
    "PNormPushCV": {"ps": (1, 4), "alphas": (0.01,), "cv": 3, "test_size": 0.2},
    "SmoothMarginRanker": {"n_estimators": 200},
    "LabelRanker": {"n_estimators": 10},
    "PushTrees": {"n_estimators": 20, "subsample": 1.0},
}
#: Their defaults draw rows.
DRAWING = ("PushEnsemble", "PushTrees")

# smooth margin ranking must warn where classes overlap; scikit-learn's random data do
NOT_SEPARATED = "ignore:The pairs were not separated:sklearn.exceptions.ConvergenceWarning"
# an ensemble must warn where its members know nothing; of scikit-learn's random labels none does
NO_BETTER = "ignore:No member ranks better than chance:UserWarning"


def quick(ranker):
    return ranker(**QUICK.get(ranker.__name__, {}))


def variants(ranker):
    """Other settings, and the defaults where level 1 checks smaller ones."""
    smaller = ranker.__name__ in QUICK and ranker.__name__ not in DRAWING
    defaults = [ranker()] if smaller else []
    given = VARIANTS.get(ranker.__name__, [])
    installed = (one for one in given if find_spec(one.get("backend", "sklearn")) is not None)
    return defaults + [ranker(**setting) for setting in installed]


def each_ranker():
    two_class = (ranker for ranker in RANKERS if is_classifier(ranker()))
    return [pytest.param(quick(ranker), id=ranker.__name__) for ranker in two_class]


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_wdbc(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_the_public_rankers_are_found():
    assert {"PNormPush", "IRPush", "PushRanker"} <= {ranker.__name__ for ranker in RANKERS}


@pytest.mark.sampled(11)
@pytest.mark.filterwarnings(NOT_SEPARATED, NO_BETTER)
@parametrize_with_checks([quick(ranker) for ranker in RANKERS])
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    check(estimator)


@pytest.mark.more
@pytest.mark.filterwarnings(NOT_SEPARATED)
@parametrize_with_checks([estimator for ranker in RANKERS for estimator in variants(ranker)])
def test_scikit_learn_finds_nothing_to_say_about_other_settings(estimator, check):
    check(estimator)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("ranker", each_ranker())
def test_a_pipeline_scales_then_ranks(ranker):
    X, y = load_wdbc(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), clone(ranker)).fit(X, y)
    alone = clone(ranker).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(
        pipeline.decision_function(X),
        alone.decision_function(StandardScaler().fit_transform(X)),
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("ranker", each_ranker())
def test_a_grid_search_chooses_a_parameter_by_auc(ranker, wdbc):
    X, y = wdbc
    name, values = SEARCHED.get(type(ranker).__name__, ("alpha", [1e-2, 1.0]))
    search = GridSearchCV(ranker, {name: values}, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_score_ > 0.98
    assert search.best_estimator_.classes_.tolist() == np.unique(y).tolist()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ranker", each_ranker())
def test_calibration_turns_scores_into_probabilities(ranker, method, wdbc):
    X, y = wdbc
    calibrated = CalibratedClassifierCV(ranker, method=method, cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    assert probability.shape == (len(y), 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.95


@pytest.mark.sampled(5)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ranker", each_ranker())
def test_a_clone_has_the_parameters_but_not_the_fit(ranker, wdbc):
    name, values = SEARCHED.get(type(ranker).__name__, ("alpha", [0.25]))
    fitted = clone(ranker).set_params(**{name: values[0]}).fit(*wdbc)
    copy = clone(fitted)
    assert copy.get_params()[name] == values[0]
    assert not hasattr(copy, "n_iter_")
    X, _ = wdbc
    np.testing.assert_array_equal(copy.fit(*wdbc).decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("ranker", each_ranker())
def test_fitting_leaves_the_parameters_as_they_were(ranker, wdbc):
    unfitted = clone(ranker)
    before = dict(unfitted.get_params())
    unfitted.fit(*wdbc)
    assert unfitted.get_params() == before
