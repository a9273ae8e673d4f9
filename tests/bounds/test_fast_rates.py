"""Noise conditions, Assumption 4, Theorems 5 and 11: inequalities that are seen to hold."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.naive_bayes import GaussianNB

from toprank import EmpiricalRanker, PNormPush
from toprank.bounds import (
    Chaos,
    bounded_density_constant,
    convex_excess_ranking_risk,
    degenerate_kernel,
    degenerate_moment,
    degenerate_process,
    exact_ranking_regret,
    excess_convex_risk,
    fast_excess_risk,
    fast_rate,
    local_radius,
    noise_condition,
    projection_variance,
    projection_variance_bound,
    ranking_risk_from_convex,
    regression_noise_condition,
)
from toprank.metrics import ranking_risk


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
def test_proposition_7_holds_for_every_ranker(alpha):
    rng = np.random.default_rng(0)
    for law in (rng.random(80), rng.beta(0.5, 3.0, 80)):
        c = noise_condition(law, alpha).constant
        for scores in (-law, rng.random(80), np.round(law, 1), law + 0.1 * rng.random(80)):
            variance, excess = projection_variance(scores, eta=law)
            assert variance <= projection_variance_bound(excess, alpha=alpha, constant=c) + 1e-12


def test_the_excess_is_the_ranking_regret_of_the_other_paper():
    rng = np.random.default_rng(1)
    eta, scores = rng.random(40), rng.random(40)
    p = eta.mean()
    expected = 2 * p * (1 - p) * exact_ranking_regret(eta, scores)
    assert projection_variance(scores, eta=eta)[1] == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_corollary_8_bounds_the_condition(alpha):
    eta = (np.arange(2000) + 0.5) / 2000
    assert noise_condition(eta, alpha).constant <= bounded_density_constant(alpha, density_bound=1)


def _variance_with_noise(m, sigma, scores):
    """Var(h_s) of Y = m(X) + sigma epsilon, by quadrature over epsilon."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    ours, best = scores[:, None] >= scores, m[:, None] >= m
    h = np.empty((len(m), len(nodes)))
    for place, node in enumerate(nodes):
        higher = ndtr((m[None, :] - (m + sigma * node)[:, None]) / sigma)  # P(Y' > y)
        h[:, place] = np.mean((ours.astype(float) - best) * (2 * higher - 1), axis=1)
    return float(np.mean(h**2 @ weights) - np.mean(h @ weights) ** 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sigma", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.9])
def test_proposition_9_is_false_as_printed_and_holds_as_corrected(sigma, alpha):
    m = (np.arange(200) + 0.5) / 200
    c = regression_noise_condition(m, np.full(200, sigma), alpha).constant
    delta = np.abs(m[:, None] - m) / (np.sqrt(2) * sigma)
    for scores in (-m, np.sin(9 * m)):
        wrong = (scores[:, None] - scores) * (m[:, None] - m) < 0
        excess = float(np.mean((2 * ndtr(delta) - 1) * wrong))
        variance = _variance_with_noise(m, sigma, scores)
        bound = projection_variance_bound(excess, alpha=alpha, constant=c, model="regression")
        assert variance <= bound
    if sigma == 100.0 and alpha == 0.5:
        reversed_excess = float(np.mean(2 * ndtr(delta) - 1))
        printed = (2 * ndtr(c) - 1) * reversed_excess**alpha
        assert _variance_with_noise(m, sigma, -m) == pytest.approx(0.112, abs=0.002)
        assert printed == pytest.approx(0.043, abs=0.001)


def test_noise_conditions_of_atoms_and_of_bad_input():
    failed = noise_condition([0.2, 0.2, 0.9], 0.5)
    assert failed.constant == np.inf and "fails" in str(failed)
    assert "c = " in str(noise_condition([0.2, 0.5, 0.9], 0.5))
    assert noise_condition([0.2, 0.2, 0.9], 0.0).constant == 1.0
    # a row of weight zero is not there
    assert noise_condition([0.2, 0.2, 0.9], 0.5, sample_weight=[1, 0, 1]).constant < np.inf
    for bad, says in (
        (lambda: noise_condition([0.2, 1.2], 0.5), "probabilities"),
        (lambda: noise_condition([0.2], 0.5), "pairs of rows"),
        (lambda: noise_condition([0.2, 0.4], 1.5), "alpha=1.5"),
        (lambda: regression_noise_condition([0.2, 0.4], 0.0, 0.5), "sigma"),
        (lambda: bounded_density_constant(1.0, density_bound=2), "alpha < 1"),
        (lambda: projection_variance([1.0, 2.0], eta=[0.1, 0.2, 0.3]), "scores has 2 rows, eta 3"),
        (lambda: projection_variance_bound(0.1, alpha=0.5, constant=1, model="x"), "unknown"),
    ):
        with pytest.raises(ValueError, match=says):
            bad()


def test_theorem_11_bounds_moments_and_tails_of_a_degenerate_process():
    """f(x, x') = a x x' + b (x^2 - 1)(x'^2 - 1) of normal x: degenerate, and chaotic."""
    rng = np.random.default_rng(0)
    n, draws = 60, 400
    kernels, sums = [], []
    for draw in range(draws):
        x = np.clip(rng.standard_normal(n), -3, 3)
        one, two = np.outer(x, x), np.outer(x**2 - np.mean(x**2), x**2 - np.mean(x**2))
        for f in (one, two):
            np.fill_diagonal(f, 0.0)
        sums.append(max(abs(one.sum()), abs(two.sum())))
        if draw == 0:
            kernels = [one, two]
    chaos = Chaos.of(kernels)
    sums = np.array(sums)
    for q in (2.0, 3.0, 4.0):
        assert np.mean(sums**q) ** (1 / q) <= degenerate_moment(chaos, q)
    t = float(np.quantile(sums, 0.9))
    assert degenerate_process(chaos, deviation=t).value >= np.mean(sums > t)
    # sharper constants make the event likely enough to be seen, and the form still right
    assert degenerate_moment(chaos, 2.0, constant=1.0) < degenerate_moment(chaos, 2.0)


def test_the_degenerate_part_has_no_mean_along_either_row():
    rng = np.random.default_rng(0)
    q = rng.random((30, 30))
    part = degenerate_kernel(q + q.T)
    np.testing.assert_allclose(part.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(part.mean(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_local_radius_solves_its_equation(alpha):
    rho = local_radius(lambda x: 3.0 * np.sqrt(x), n=5000, alpha=alpha)
    assert np.sqrt(5000) * rho**2 == pytest.approx(3.0 * np.sqrt(rho**alpha), rel=1e-9)
    with pytest.raises(ValueError, match="phi"):
        local_radius(lambda x: 0.5 * x, n=100, alpha=alpha)


def test_the_rate_is_that_of_the_corollary():
    case = {"delta": 0.05, "vc_dimension": 4, "constant": 1.0}
    for alpha, power in ((0.0, 0.5), (1.0, 1.0)):
        small, large = (fast_rate(n=n, alpha=alpha, **case).value for n in (10**4, 10**6))
        expected = (np.log(10**4 / 0.05) / np.log(10**6 / 0.05) * 100) ** power
        assert small / large == pytest.approx(expected)
    assert fast_rate(n=10, alpha=0.0, **case).vacuous
    chaos = Chaos(Z=1e4, U=1e3, M=50.0, F=2.0, n=10_000)
    plain = fast_excess_risk(delta=0.1, chaos=chaos, rho=0.01, constant=2.0)
    biased = fast_excess_risk(delta=0.1, chaos=chaos, rho=0.01, constant=2.0, approximation=0.1)
    assert biased.value == pytest.approx(plain.value + 0.2)


def test_the_assembled_bound_is_psi_inverse_of_both_errors():
    case = {"delta": 0.05, "n": 10**6, "rademacher": 1e-4, "loss": "logistic", "score_bound": 1.0}
    estimation = excess_convex_risk(**case).value
    expected = ranking_risk_from_convex(loss="logistic", excess=estimation + 0.02).value
    assert convex_excess_ranking_risk(**case, approximation=0.02).value == expected


def test_the_empirical_ranker_chooses_the_least_risk_and_says_how_sure():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, 0.5, 0.0] + rng.normal(size=400)
    fitted = PNormPush().fit(X[:200], y[:200] > 0)
    rankers = [("push", fitted), ("first", lambda X: X[:, 0]), ("wrong", lambda X: -X[:, 0])]
    chosen = EmpiricalRanker(rankers).fit(X[200:], y[200:])
    expected = ranking_risk(y[200:], fitted.decision_function(X[200:]))
    assert chosen.best_ == "push" and chosen.risks_["push"] == pytest.approx(expected)
    np.testing.assert_array_equal(chosen.decision_function(X), fitted.decision_function(X))
    assert 0 < chosen.excess_risk(0.05).value and "Corollary 3" in str(chosen.excess_risk())
    assert "Corollary 6" in str(chosen.fast_rate(alpha=0.5, constant=1.0))
    words = EmpiricalRanker([X[:, 0], -X[:, 0]]).fit(None, np.where(y > 0, "yes", "no"))
    assert words.best_ == "0"
    with pytest.raises(TypeError, match="array of scores"):
        words.decision_function(X)


@pytest.mark.slow
def test_corollary_3_holds_over_many_samples():
    """The chosen ranker's excess exceeds the bound in at most 5% of samples: here in none."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(8, 3))
    population = rng.normal(size=(4000, 3))
    truth = population @ [1.0, 0.5, 0.0] + rng.normal(size=4000)
    risks = np.array([ranking_risk(truth, population @ d) for d in directions])
    exceeded = 0
    for _ in range(300):
        rows = rng.integers(0, 4000, 200)
        X, y = population[rows], truth[rows]
        chosen = EmpiricalRanker([lambda X, d=d: X @ d for d in directions]).fit(X, y)
        excess = risks[int(chosen.best_)] - risks.min()
        exceeded += excess > chosen.excess_risk(0.05).value
    assert exceeded <= 15


@pytest.mark.parametrize(
    ("candidates", "says"),
    [
        ([], "empty"),
        (7, "list of rankers"),
        ([("a", len), ("a", len)], "called 'a'"),
        ([np.zeros(3)], "4 numbers, one per row"),
        ([np.array([1.0, np.nan, 0.0, 2.0])], "'0' gave NaN"),
        ([("words", np.array(list("abcd")))], "'words' gave scores of type"),
        ([("first", lambda X: X[:, 0])], "'first' scores rows, and X is None"),
    ],
)
def test_candidates_that_cannot_be_chosen_from(candidates, says):
    with pytest.raises((ValueError, TypeError), match=says):
        EmpiricalRanker(candidates).fit(None, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="call fit"):
        EmpiricalRanker([len]).decision_function(np.zeros((1, 1)))


def test_kernels_rows_and_weights_that_fit_nothing_are_refused():
    for kernels, said in (
        ([], "at least one"),
        ([np.ones((2, 3))], "square arrays"),
        ([np.ones((2, 2)), np.ones((3, 3))], "finite and of the same rows"),
        ([np.full((2, 2), np.nan)], "finite and of the same rows"),
    ):
        with pytest.raises(ValueError, match=said):
            Chaos.of(kernels)
    for weight in ([1.0], [-1.0, 1.0], [0.0, 0.0]):
        with pytest.raises(ValueError, match="sample_weight must be 2 numbers >= 0"):
            noise_condition([0.2, 0.7], alpha=0.5, sample_weight=weight)
    with pytest.raises(ValueError, match=r"finite numbers, one per row; got shape \(2, 1\)"):
        regression_noise_condition([[0.2], [0.7]], [1.0, 1.0], alpha=0.5)


def test_without_noise_the_variance_is_at_most_the_excess():
    assert projection_variance_bound(0.04, alpha=1.0, constant=1.0, model="noiseless") == 0.04


def test_candidates_with_probabilities_alone_are_ranked_by_them():
    X = np.arange(8.0)[:, None]
    y = np.array(["no", "yes"])[(X[:, 0] > 3).astype(int)]
    model = GaussianNB().fit(X, y)
    found = EmpiricalRanker([("bayes", model), ("down", lambda X: -X[:, 0])]).fit(X, y)
    assert found.best_ == "bayes"
    np.testing.assert_array_equal(found.decision_function(X), model.predict_proba(X)[:, 1])
    with pytest.raises(ValueError, match="y has 3 classes of words: expected two"):
        EmpiricalRanker([("bayes", model)]).fit(X[:3], ["a", "b", "c"])
