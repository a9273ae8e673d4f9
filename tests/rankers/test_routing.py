"""Metadata routing, set_output and the notebook's view of fitted rankers."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from toprank import PNormPush, PNormPushCV, ProperRanker, PushEnsemble, PushTrees, RankBoost
from toprank.metrics import scorer

TREES = PushTrees(n_estimators=3, calibration="training", subsample=1.0, colsample=1.0)
RANKERS = [PNormPush(), ProperRanker(), RankBoost(3), TREES]
SMALL_CV = PNormPushCV((1, 4), alphas=(0.1,), cv=2, test_size=None)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def rows(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0.5).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float), np.arange(n) // 4


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_weights_go_through_a_pipeline_and_a_search_to_fit_and_to_score(ranker):
    X, y, weight, groups = rows()
    asked = clone(ranker).set_fit_request(sample_weight=True)
    if not hasattr(ranker, "alpha"):
        asked.set_fit_request(groups=False)  # those of the splitter are not lists of their own
    last = type(ranker).__name__.lower()
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, asked)
    fitted = pipeline.fit(X, y, sample_weight=weight)
    direct = make_pipeline(StandardScaler(), clone(ranker))
    direct[-1].fit(direct[:1].fit_transform(X), y, sample_weight=weight)
    np.testing.assert_array_equal(fitted.decision_function(X), direct.decision_function(X))
    measure = scorer("average_precision").set_score_request(sample_weight=True)
    name = f"{last}__{'alpha' if hasattr(ranker, 'alpha') else 'n_estimators'}"
    search = GridSearchCV(pipeline, {name: [1, 2]}, scoring=measure, cv=GroupKFold(2))
    search.fit(X, y, sample_weight=weight, groups=groups)
    train, test = next(GroupKFold(2).split(X, y, groups))
    by_hand = clone(pipeline).set_params(**{name: 1})
    by_hand.fit(X[train], y[train], sample_weight=weight[train])
    value = measure(by_hand, X[test], y[test], sample_weight=weight[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(value)


def test_groups_and_propensities_are_cut_with_the_rows_they_belong_to():
    X, y, _, groups = rows()
    propensity = np.where(np.arange(len(y)) % 2, 0.5, 0.9)
    # metrics take propensities too, so that it must be said whether this one shall
    measure = scorer("auc").set_score_request(label_propensity=False)
    for ranker, given in (
        (clone(TREES).set_fit_request(groups=True), {"groups": groups}),
        (PNormPush().set_fit_request(label_propensity=True), {"label_propensity": propensity}),
        (clone(TREES).set_fit_request(label_propensity=True), {"label_propensity": propensity}),
    ):
        found = cross_validate(
            make_pipeline(StandardScaler(), ranker), X, y, params=given, cv=2,
            scoring=measure, return_estimator=True, return_indices=True, error_score="raise",
        )  # fmt: skip
        rows_of_first = found["indices"]["train"][0]
        part = {name: values[rows_of_first] for name, values in given.items()}
        model = make_pipeline(StandardScaler(), clone(ranker))
        model.fit(X[rows_of_first], y[rows_of_first], **part)
        np.testing.assert_array_equal(
            found["estimator"][0].decision_function(X), model.decision_function(X)
        )


def test_what_nobody_asked_for_is_refused_by_name():
    X, y, weight, _ = rows()
    pipeline = make_pipeline(StandardScaler(), PNormPush())
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        pipeline.fit(X, y, sample_weight=weight)


def test_a_ranker_that_splits_hands_groups_to_its_splitter():
    X, y, weight, groups = rows()
    ranker = clone(SMALL_CV).set_params(cv=GroupKFold(2)).set_fit_request(sample_weight=True)
    ranker.fit(X, y, sample_weight=weight, groups=groups)
    assert ranker.choice_.fold_scores.shape[1] == 2


@pytest.mark.parametrize("kind", ["default", "pandas", "polars"])
def test_frames_named_by_set_output_reach_the_ranker_with_their_names(kind):
    if kind == "polars":
        pytest.importorskip("polars")
    X, y, *_ = rows()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "x", "y")})
    prepare = make_column_transformer(
        (StandardScaler(), ["a", "b"]),
        (OneHotEncoder(sparse_output=False), ["c"]),
        verbose_feature_names_out=False,
    )
    pipeline = make_pipeline(prepare, PNormPush()).set_output(transform=kind).fit(frame, y)
    if kind != "default":
        assert list(pipeline[-1].feature_names_in_) == ["a", "b", "c_x", "c_y"]
    plain = make_pipeline(clone(prepare).set_output(transform="default"), PNormPush())
    np.testing.assert_allclose(
        pipeline.decision_function(frame), plain.fit(frame, y).decision_function(frame)
    )


def test_a_fitted_ranker_shows_its_interval_in_a_notebook():
    X, y, *_ = rows()
    members = [("a", LogisticRegression()), ("b", PNormPush())]
    for ranker in (PushEnsemble(members, cv=2), clone(SMALL_CV).set_params(test_size=0.3)):
        before = ranker._repr_html_()
        assert "sk-" in before and "interval" not in before.split("</style>")[-1].split("tool")[0]
        ranker.fit(X, y)
        shown = ranker._repr_html_()
        interval = ranker.score_interval_
        assert f"{interval.low:.4g} to {interval.high:.4g}" in shown
        bundle = ranker._repr_mimebundle_()
        assert f"{interval.low:.4g}" in bundle["text/html"]
