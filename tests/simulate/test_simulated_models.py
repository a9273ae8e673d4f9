"""The simulated models are what they say, by their own formulas and by counting."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from toprank.bounds import bayes_ranking_error, exact_ranking_regret
from toprank.losses.proper import PROPER_LOSSES
from toprank.metrics import auc, max_height, ranking_risk
from toprank.simulate import (
    BipartiteModel,
    RegressionModel,
    heteroscedastic,
    linear_bipartite,
    power_eta,
    rare_reversal,
    regression,
)

BIPARTITE = [
    linear_bipartite(3, prevalence=0.2),
    power_eta(0.5),
    power_eta(1.0),
    rare_reversal(0.2),
]
REGRESSION = [regression(2), regression(2, noise=0.7), heteroscedastic(3)]


@pytest.mark.parametrize("model", BIPARTITE + REGRESSION)
def test_a_seed_or_a_generator_fixes_the_sample(model):
    X, y = model.sample(50, random_state=4)
    again, labels = model.sample(50, random_state=np.random.default_rng(4))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (50, X.shape[1]) and y.shape == (50,)


@pytest.mark.parametrize("model", BIPARTITE)
def test_labels_are_positive_as_often_as_eta_says(model):
    X, y = model.sample(40_000, random_state=0)
    eta = model.eta(X)
    for low, high in [(0.0, 0.3), (0.3, 0.7), (0.7, 1.0)]:
        here = (eta >= low) & (eta <= high)
        if np.any(here):
            assert abs(np.mean(y[here] - eta[here])) < 4.5 / np.sqrt(4 * np.sum(here))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("loss", [None, *sorted(set(PROPER_LOSSES) - {"spherical"})])
def test_the_prevalence_asked_for_is_the_mean_of_eta(prevalence, loss):
    inverse_link = expit if loss is None else PROPER_LOSSES[loss]().inverse_link
    model = linear_bipartite(2, signal=1.5, prevalence=prevalence, inverse_link=inverse_link)
    X, _ = model.sample(200_000, random_state=0)
    assert np.mean(model.eta(X)) == pytest.approx(prevalence, abs=0.003)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
def test_the_noise_assumption_holds_with_the_constant_given(alpha):
    model = power_eta(alpha)
    eta = np.sort(model.eta(model.sample(20_000, random_state=0)[0]))
    centres = np.quantile(eta, np.linspace(0, 1, 101))
    for t in (1e-3, 1e-2, 0.1, 0.5, 1.0):
        within = np.searchsorted(eta, centres + t) - np.searchsorted(eta, centres - t)
        most = np.max(within) / len(eta)
        assert most <= model.noise_constant * t**model.noise_exponent + 0.02
        if t < 0.1:  # and not with one much smaller
            assert most >= 0.7 * model.noise_constant * t**model.noise_exponent


def test_the_uniform_eta_has_a_bayes_error_of_one_sixth_over_one_half():
    # E min(u(1-v), v(1-u)) over two uniforms is 1/12, and p = 1/2
    X, _ = power_eta(1.0).sample(20_000, random_state=0)
    assert bayes_ranking_error(X[:, 0]) == pytest.approx(1 / 6, abs=0.005)


def test_the_illustration_of_rudin_has_a_good_auc_and_a_terrible_top():
    epsilon = 0.1
    X, y = rare_reversal(epsilon).sample(50_000, random_state=0)
    assert auc(y, X[:, 0]) == pytest.approx((1 - epsilon) ** 2, abs=0.01)
    assert max_height(y, X[:, 0]) == np.sum(y)  # R_max = I, the worst possible value
    np.testing.assert_array_equal(rare_reversal(epsilon).eta(X), y)
    assert np.mean(np.abs(X) > 1) == pytest.approx(epsilon, abs=0.01)


def test_a_small_sample_of_the_illustration_misses_its_ends_as_often_as_said():
    epsilon, n = 0.05, 20
    rng = np.random.default_rng(0)
    model = rare_reversal(epsilon)
    missed = np.mean([np.all(np.abs(model.sample(n, rng)[0]) <= 1) for _ in range(2000)])
    assert missed == pytest.approx((1 - epsilon) ** n, abs=0.04)


@pytest.mark.parametrize("model", REGRESSION)
def test_the_excess_risk_is_the_risk_less_the_least_one(model):
    X, _ = model.sample(60, random_state=1)
    scores = X[:, 0] + 0.3 * np.round(X[:, 1])
    m, sigma = model.m(X), model.sigma(X)
    risk, least = 0.0, 0.0
    for i in range(len(X)):
        for j in range(len(X)):
            if i == j:
                continue
            spread = np.hypot(sigma[i], sigma[j])
            apart = m[i] - m[j]
            above = ndtr(apart / spread) if spread > 0 else 0.5 * (1 + np.sign(apart))
            least += min(above, 1 - above)
            if scores[i] == scores[j]:
                risk += 0.5
            else:
                risk += 1 - above if scores[i] > scores[j] else above
    pairs = len(X) * (len(X) - 1)
    assert model.bayes_risk(X) == pytest.approx(least / pairs, abs=1e-12)
    assert model.excess_risk(X, scores) == pytest.approx((risk - least) / pairs, abs=1e-12)


@pytest.mark.more
def test_the_least_risk_is_what_the_best_scores_have_on_drawn_labels():
    model = heteroscedastic(2, noise=1.0)
    X, y = model.sample(3000, random_state=0)
    assert ranking_risk(y, model.m(X)) == pytest.approx(model.bayes_risk(X), abs=0.01)
    worse = X[:, 0]
    excess = ranking_risk(y, worse) - ranking_risk(y, model.m(X))
    assert model.excess_risk(X, worse) == pytest.approx(excess, abs=0.02)


def test_without_noise_the_risk_is_the_share_of_pairs_in_the_wrong_order():
    model = regression(3)
    X, y = model.sample(300, random_state=0)
    assert model.bayes_risk(X) == 0.0
    assert model.excess_risk(X, X[:, 0]) == pytest.approx(ranking_risk(y, X[:, 0]), abs=1e-12)
    assert model.excess_risk(X, np.zeros(300)) == pytest.approx(0.5)


def test_memory_stays_bounded_however_the_rows_are_cut(monkeypatch):
    model = heteroscedastic(2)
    X, _ = model.sample(50, random_state=0)
    whole = model.excess_risk(X, X[:, 0])
    monkeypatch.setattr("toprank.simulate.models._PAIRS_AT_ONCE", 120)
    assert model.excess_risk(X, X[:, 0]) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("model", BIPARTITE)
def test_no_scores_beat_eta(model):
    X, _ = model.sample(500, random_state=0)
    eta = model.eta(X)
    assert exact_ranking_regret(eta, eta) == 0.0
    assert exact_ranking_regret(eta, -eta) > 0.0
    assert exact_ranking_regret(eta, np.zeros(500)) > 0.0


def test_models_of_ones_own_take_any_functions():
    own = BipartiteModel(lambda rng, n: rng.random((n, 2)), lambda X: X.mean(axis=1))
    X, y = own.sample(10, 0)
    assert X.shape == (10, 2) and set(y) <= {0, 1}
    line = RegressionModel(lambda rng, n: rng.random((n, 1)), lambda X: X[:, 0], lambda X: X[:, 0])
    assert line.bayes_risk(line.sample(100, 0)[0]) > 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: linear_bipartite(prevalence=0.0), "prevalence"),
        (lambda: linear_bipartite(inverse_link=lambda v: 0.2 + 0 * v), "No intercept"),
        (lambda: linear_bipartite(0), "at least one"),
        (lambda: linear_bipartite().sample(0), "at least one"),
        (lambda: power_eta(0.0), "noise_exponent"),
        (lambda: rare_reversal(1.0), "epsilon"),
        (lambda: regression(noise=-1.0), "standard deviation"),
        (lambda: regression(noise=np.nan), "standard deviation"),
        (lambda: heteroscedastic(noise=0.0), "not positive"),
        (lambda: regression(1).excess_risk(np.zeros((3, 1)), [1.0, np.nan, 0.0]), "finite"),
        (lambda: regression(1).excess_risk(np.zeros((3, 1)), [1.0]), "shape"),
        (lambda: regression(1).bayes_risk(np.zeros((1, 1))), "at least two"),
    ],
)
def test_what_makes_no_model_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
