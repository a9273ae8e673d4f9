"""From scores to probabilities: zero is one half, whatever the link."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from sklearn.linear_model import LogisticRegression

from toprank import IRPush, PNormPush, PushRanker
from toprank.prices import Power
from toprank.rankers.common import _Curve, logistic

RANKERS = [
    PNormPush(),
    PNormPush(p=16),
    PNormPush(loss="logistic"),
    PNormPush(link="p_classification"),
    PNormPush(p=1, link="p_classification", solver="coordinate"),
    IRPush(),
    PushRanker(end="both"),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
class TestEveryLink:
    def test_a_score_of_zero_is_a_probability_of_one_half(self, ranker, overlapping):
        X, y = overlapping
        fit = ranker.fit(X, y)
        on_the_line = -fit.intercept_ * fit.coef_ / (fit.coef_ @ fit.coef_.T)
        np.testing.assert_allclose(fit.decision_function(on_the_line), 0.0, atol=1e-12)
        np.testing.assert_allclose(fit.predict_proba(on_the_line), 0.5, atol=1e-12)

    def test_the_class_predicted_is_the_more_probable_one(self, ranker, overlapping):
        X, y = overlapping
        fit = ranker.fit(X, y)
        probability = fit.predict_proba(X)
        np.testing.assert_array_equal(fit.predict(X), np.argmax(probability, axis=1))
        np.testing.assert_array_equal(fit.decision_function(X) > 0, probability[:, 1] > 0.5)

    def test_the_score_is_linear_in_the_features(self, ranker, overlapping):
        X, y = overlapping
        fit = ranker.fit(X, y)
        expected = (X @ fit.coef_.T).ravel() + fit.intercept_
        np.testing.assert_allclose(fit.decision_function(X), expected, atol=1e-12)

    def test_the_intercept_is_right_where_features_lie_far_from_zero(self, ranker, overlapping):
        X, y = overlapping
        far = X + np.array([1e6, 0.0, -1e4, 0.0])
        fit = ranker.fit(far, y)
        expected = (far @ fit.coef_.T).ravel() + fit.intercept_
        np.testing.assert_allclose(fit.decision_function(far), expected, atol=1e-8)

    def test_probabilities_rise_with_the_score_and_sum_to_one(self, ranker, overlapping):
        X, y = overlapping
        fit = ranker.fit(X, y)
        order = np.argsort(fit.decision_function(X))
        probability = fit.predict_proba(X)
        assert np.all(np.diff(probability[order, 1]) >= 0)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(fit.predict_log_proba(X)), probability, rtol=1e-10)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_p_classification_uses_the_papers_offset_and_slope(p, weighted, overlapping):
    X, y = overlapping
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    fit = PNormPush(p=p, link="p_classification").fit(X, y, weight)
    f = X @ fit.coef_[0]
    w = np.ones(len(y)) if weight is None else weight
    above = logsumexp(-f[y == 1], b=w[y == 1])
    below = logsumexp(p * f[y == 0], b=w[y == 0])
    b = (above - below) / (1 + p)
    np.testing.assert_allclose(fit.intercept_, b, rtol=1e-9)
    expected = expit((1 + p) * (f + b))
    np.testing.assert_allclose(fit.predict_proba(X)[:, 1], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("ranker", "p"),
    [
        (PushRanker("identity", p=4.0, link="p_classification"), 1.0),
        (PushRanker(Power(3.0), p=4.0, link="p_classification"), 3.0),
    ],
    ids=["identity", "Power(3)"],
)
def test_p_classification_takes_p_from_the_price_that_was_fitted(ranker, p, overlapping):
    X, y = overlapping
    expected = PNormPush(p=p, link="p_classification").fit(X, y)
    np.testing.assert_allclose(ranker.fit(X, y).intercept_, expected.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ranker.predict_proba(X), expected.predict_proba(X), rtol=1e-6)


def test_the_f_skew_vanishes_at_the_offset_of_p_classification(overlapping):
    X, y = overlapping
    fit = PNormPush(p=1, link="p_classification").fit(X, y)
    f = fit.decision_function(X)
    assert np.sum(np.exp(-f[y == 1])) == pytest.approx(np.sum(np.exp(f[y == 0])), rel=1e-9)


@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(p=np.inf),
        PNormPush(loss="logistic"),
        IRPush(),
        PushRanker(end="bottom"),
        PushRanker(end="both"),
        PushRanker("exponential"),
        PushRanker("log1p"),
        PushRanker("max"),
    ],
    ids=repr,
)
def test_p_classification_is_refused_where_it_does_not_belong(ranker, overlapping):
    ranker.set_params(link="p_classification")
    with pytest.raises(ValueError, match=r"p_classification.*power price.*link='logistic'"):
        ranker.fit(*overlapping)


def test_the_logistic_link_is_platts_curve_through_the_scores(overlapping):
    X, y = overlapping
    fit = PNormPush(p=1).fit(X, y)
    f = X @ fit.coef_[0]
    plus, minus = np.sum(y == 1), np.sum(y == 0)
    target = np.where(y == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))
    curve = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    curve.fit(np.concatenate([f, f])[:, None], np.repeat([1, 0], len(y)), np.r_[target, 1 - target])
    np.testing.assert_allclose(
        fit.predict_proba(X)[:, 1], curve.predict_proba(f[:, None])[:, 1], atol=1e-6
    )


def test_the_logistic_link_counts_weights_as_repetitions(overlapping):
    X, y = overlapping
    count = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = PNormPush(tol=1e-10).fit(X, y, count)
    repeated = PNormPush(tol=1e-10).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("ranker", [PNormPush(), PNormPush(p=64), IRPush()], ids=repr)
def test_the_logistic_link_stays_finite_and_rises_where_the_classes_separate(ranker, separable):
    X, y = separable
    fit = ranker.fit(X, y)
    probability = fit.predict_proba(X)[:, 1]
    assert np.all((probability > 0) & (probability < 1))
    assert probability[y == 1].min() > 0.5 > probability[y == 0].max()
    assert np.isfinite(fit.predict_log_proba(X)).all()


@pytest.mark.parametrize("slope", [0.0, 1.0, 40.0, 1e4, 1e100])
def test_the_likelihood_of_a_curve_and_its_derivatives_hold_at_any_slope(slope):
    u = np.linspace(-3.0, 3.0, 201)
    weight = np.where(np.arange(201) % 7 == 0, 0.0, np.logspace(-300, 2, 201))
    curve, coef = _Curve(u, u + np.sin(9 * u) > 0.3, weight), np.array([slope, -0.3])
    z = slope * u - 0.3
    high, low = np.logaddexp(0.0, -z), np.logaddexp(0.0, z)
    value, gradient = curve.value_grad(coef)
    want = curve.weight @ (curve.target * high + (1.0 - curve.target) * low)
    assert value == pytest.approx(want, rel=1e-13)
    miss = curve.weight * (expit(z) - curve.target)
    np.testing.assert_allclose(gradient, [miss @ u, np.sum(miss)], rtol=0, atol=1e-15)
    bend = curve.weight * expit(z) * expit(-z)
    hessian = [[bend @ u**2, bend @ u], [bend @ u, np.sum(bend)]]
    np.testing.assert_allclose(curve.hessian(coef), hessian, rtol=0, atol=1e-15)


def test_scores_that_rank_backwards_get_a_flat_but_rising_curve(overlapping):
    X, y = overlapping
    fit = PNormPush(p=np.inf, alpha=10.0).fit(-(X[:, :1] ** 3), y)
    order = np.argsort(fit.decision_function(-(X[:, :1] ** 3)))
    assert np.all(np.diff(fit.predict_proba(-(X[:, :1] ** 3))[order, 1]) >= 0)


def test_without_any_information_the_probability_is_that_of_the_class():
    y = np.repeat([0, 1], [30, 10])
    probability = PNormPush().fit(np.ones((40, 2)), y).predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(probability[0, 1], 0.25, atol=0.03)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_through_bins_of_many_scores_is_that_through_all(weighted, monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3000)
    positive = scores + rng.logistic(size=3000) > 2
    weight = rng.integers(0, 3, 3000).astype(float) if weighted else None
    exact = logistic(scores, positive, weight)
    monkeypatch.setattr("toprank.objective.sums.EXACT_SCORES_UP_TO", 100)
    binned = logistic(scores, positive, weight)
    assert binned.slope == pytest.approx(exact.slope, rel=1e-3)
    assert binned.offset == pytest.approx(exact.offset, rel=1e-3)
