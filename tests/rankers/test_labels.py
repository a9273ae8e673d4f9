"""AdaBoost.MH and AdaBoost.MR: their objectives, their equivalence, scikit-learn's conventions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.metrics import coverage_error, label_ranking_loss
from sklearn.model_selection import cross_val_score

from toprank import LabelRanker

METHODS = ["mr", "mh", "mr_pooled"]


@pytest.fixture(scope="module")
def labelled():
    X, Y = make_multilabel_classification(150, 8, n_classes=4, random_state=3)
    X = X + np.random.default_rng(0).normal(scale=4.0, size=X.shape)
    return X, Y


def loss(method, Y, f, weight=None):
    """The objective by its definition."""
    weight = np.ones(len(Y)) if weight is None else weight
    if method == "mh":
        return np.sum(weight[:, None] * np.exp(-np.where(Y, 1, -1) * f))
    if method == "mr_pooled":
        spread = np.broadcast_to(weight[:, None], Y.shape)
        high = np.sum(spread[Y == 1] * np.exp(-f[Y == 1]))
        return high * np.sum(spread[Y == 0] * np.exp(f[Y == 0]))
    total = 0.0
    for w, y, s in zip(weight, Y, f, strict=True):
        if 0 < y.sum() < len(y):
            margins = s[y == 1][:, None] - s[y == 0][None, :]
            total += w * np.mean(np.exp(-margins))
    return total


@pytest.mark.parametrize("method", METHODS)
def test_every_round_takes_the_best_step_of_its_objective(method, labelled):
    X, Y = labelled
    weight = np.arange(len(X)) % 3 + 1.0
    fit = LabelRanker(8, method=method, n_thresholds=4).fit(X, Y, sample_weight=weight)
    f = np.zeros(Y.shape)
    start = loss(method, Y, f, weight)
    low = -1.0 if method == "mh" else 0.0
    used = {(r["label"], r["feature"], r.get("threshold")) for r in fit.history_}

    def along(label, feature, threshold):
        move = np.zeros(Y.shape)
        h = True if feature is None else X[:, feature] > threshold
        move[:, label] = np.where(h, 1.0, low)
        return move

    for record in fit.history_:
        move = along(record["label"], record["feature"], record.get("threshold"))
        before, here = (
            loss(method, Y, f, weight),
            loss(method, Y, f + record["step"] * move, weight),
        )
        assert record["criterion"] == pytest.approx(here / before, rel=1e-9)
        for nudge in (-1e-3, 1e-3):
            assert here <= loss(method, Y, f + (record["step"] + nudge) * move, weight)
        for other in used:
            for step in (-0.3, 0.1, 0.5):
                assert here <= loss(method, Y, f + step * along(*other), weight) * (1 + 1e-9)
        f = f + record["step"] * move
        assert record["objective"] == pytest.approx(np.log(here / start), abs=1e-9)
    np.testing.assert_allclose(fit.decision_function(X) - fit.intercept_, f, atol=1e-10)
    stages = list(fit.staged_decision_function(X))
    np.testing.assert_allclose(stages[-1], fit.decision_function(X), atol=1e-10)


@pytest.mark.more
def test_mh_and_pooled_mr_solve_each_others_problem(labelled):
    X, Y = labelled
    mh, mr = (
        LabelRanker(800, method=m, n_thresholds=2).fit(X, Y).decision_function(X)
        for m in ("mh", "mr_pooled")
    )
    assert loss("mr_pooled", Y, mr) == pytest.approx(loss("mr_pooled", Y, mh), rel=1e-3)
    assert loss("mh", Y, mr) == pytest.approx(loss("mh", Y, mh), rel=1e-3)
    assert label_ranking_loss(Y, mr) == pytest.approx(label_ranking_loss(Y, mh), abs=2e-3)


@pytest.mark.more
def test_pairs_within_examples_rank_the_labels_of_an_example_best(labelled):
    X, Y = labelled
    judged = {
        m: LabelRanker(300, method=m, n_thresholds=4).fit(X, Y).decision_function(X)
        for m in METHODS
    }
    losses = {m: label_ranking_loss(Y, f) for m, f in judged.items()}
    assert losses["mr"] < min(losses["mh"], losses["mr_pooled"])
    assert coverage_error(Y, judged["mr"]) <= coverage_error(Y, judged["mh"])


@pytest.mark.parametrize("method", METHODS)
def test_labels_come_and_go_as_an_indicator_matrix(method, labelled):
    X, Y = labelled
    fit = LabelRanker(40, method=method).fit(X, Y)
    said, scores, probability = fit.predict(X), fit.decision_function(X), fit.predict_proba(X)
    assert said.shape == scores.shape == probability.shape == Y.shape
    np.testing.assert_array_equal(said, scores > 0)
    np.testing.assert_array_equal(said, probability > 0.5)
    assert np.mean(said == Y) > 0.7
    again = LabelRanker(40, method=method).fit(X, sparse.csr_array(Y))
    np.testing.assert_array_equal(again.predict(X), said)


@pytest.mark.parametrize("method", METHODS)
def test_classes_are_ranked_and_the_first_is_predicted(method):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    fit = LabelRanker(60, method=method).fit(X, names)
    assert fit.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert fit.score(X, names) > 0.97
    np.testing.assert_allclose(fit.predict_proba(X).sum(axis=1), 1.0)
    assert cross_val_score(fit, X, names, cv=3).mean() > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_is_a_number_of_repetitions(method, labelled):
    X, Y = labelled
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    ranker = LabelRanker(20, method=method)
    weighted = ranker.fit(X, Y, sample_weight=weight).decision_function(X)
    np.testing.assert_allclose(weighted, ranker.fit(X[rows], Y[rows]).decision_function(X))


def test_missing_values_and_threads_do_no_harm(labelled):
    X, Y = labelled
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    one, two = (LabelRanker(20, n_jobs=n).fit(X, Y).decision_function(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.isfinite(one).all()


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.ones((6, 2), int), "no pair to rank"),
        (np.zeros(6), "one class only"),
        (np.arange(12).reshape(6, 2), "indicator matrix"),
    ],
)
def test_labels_without_a_pair_are_refused(y, match):
    with pytest.raises(ValueError, match=match):
        LabelRanker().fit(np.arange(12.0).reshape(6, 2), y)


@pytest.mark.parametrize("method", METHODS)
def test_weak_classifiers_of_ones_own_go_to_the_minimum_along_the_best(method):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), (rng.random((40, 3)) < 0.5).astype(int)
    own = [lambda Z, b=b: np.tanh(Z @ b) for b in rng.normal(size=(3, 3, 3))]
    fit = LabelRanker(4, method=method, weak_rankers=own).fit(X, Y)
    H = np.stack([np.eye(3)[[c] * 40] for c in range(3)] + [h(X) for h in own], axis=-1)
    sign = np.where(Y == 1, 1.0, -1.0)

    def loss(f):
        if method == "mh":
            return np.log(np.sum(np.exp(-sign * f)))
        up, down = np.where(Y == 1, np.exp(-f), 0.0), np.where(Y == 1, 0.0, np.exp(f))
        if method == "mr_pooled":
            return np.log(up.sum() * down.sum())
        pairs = np.maximum(Y.sum(axis=1) * (1 - Y).sum(axis=1), 1)
        return np.log(np.sum(up.sum(axis=1) * down.sum(axis=1) / pairs))

    f, start = np.zeros((40, 3)), loss(np.zeros((40, 3)))
    for record in fit.history_:
        along = [
            minimize_scalar(lambda a, j=j, f=f: loss(f + a * H[..., j]), method="brent")
            for j in range(6)
        ]
        best = int(np.argmin([found.fun for found in along]))
        assert record["feature"] == best
        assert record["step"] == pytest.approx(along[best].x, abs=1e-5)
        f = f + record["step"] * H[..., best]
        assert record["objective"] == pytest.approx(loss(f) - start, abs=1e-9)
    np.testing.assert_allclose(fit.decision_function(X), f + fit.intercept_, atol=1e-10)
    *_, last = fit.staged_decision_function(X)
    np.testing.assert_allclose(last, fit.decision_function(X), atol=1e-10)


@pytest.mark.more
def test_weak_classifiers_that_make_no_sense_are_refused():
    X, Y = make_multilabel_classification(30, 3, n_classes=3, random_state=1)
    with pytest.raises(ValueError, match=r"shape \(30,\), expected \(30, 3\)"):
        LabelRanker(weak_rankers=[lambda Z: Z[:, 0]]).fit(X, Y)
    with pytest.raises(ValueError, match="expected a function of X"):
        LabelRanker(weak_rankers=[3]).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        LabelRanker(weak_rankers=[lambda Z: np.full((30, 3), np.nan)]).fit(X, Y)
