"""Regret bounds hold wherever the truth is known, and known-eta quantities equal their loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from toprank.bounds import (
    balanced_regret,
    bayes_ranking_error,
    exact_ranking_regret,
    gini_mean_difference,
    low_noise_constant,
    pairwise_distribution,
    pairwise_regret,
    plug_in_regret,
    ranking_error,
    ranking_regret,
    surrogate_regret,
)
from toprank.losses.proper import PROPER_LOSSES, balanced, from_bayes_risk, get_proper_loss
from toprank.metrics import misranking_error
from toprank.simulate import power_eta

LOSSES = sorted(PROPER_LOSSES)
MARGIN = sorted(set(PROPER_LOSSES) - {"spherical"})


@st.composite
def populations(draw, max_rows=12):
    """Few rows with eta, scores with ties, and weights: any discrete distribution."""
    n = draw(st.integers(2, max_rows))
    eta = draw(hnp.arrays(float, n, elements=st.sampled_from([0, 0.1, 0.25, 0.5, 0.6, 0.99, 1])))
    scores = draw(hnp.arrays(float, n, elements=st.integers(-3, 3).map(float)))
    weight = draw(hnp.arrays(float, n, elements=st.integers(0, 3).map(float)))
    mass = float(weight @ eta)
    if not 0 < mass < weight.sum():
        eta = np.resize([0.2, 0.7], n)
        weight = np.ones(n)
    return eta, scores, weight


def pairs_of(eta, weight):
    """Every ordered pair: its probability, and the eta of both rows."""
    share = weight / weight.sum()
    p = share @ eta
    n = len(eta)
    return p, [(i, j, share[i] * share[j]) for i in range(n) for j in range(n)]


def error_by_loop(eta, scores, weight):
    p, pairs = pairs_of(eta, weight)
    total = 0.0
    for i, j, mass in pairs:
        wrong = (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j])
        total += mass * eta[i] * (1 - eta[j]) * wrong
    return total / (p * (1 - p))


def bayes_by_equation_3(eta, weight):
    p, pairs = pairs_of(eta, weight)
    least = sum(m * min(eta[i] * (1 - eta[j]), eta[j] * (1 - eta[i])) for i, j, m in pairs)
    return least / (2 * p * (1 - p))


def regret_by_theorem_11(eta, scores, weight):
    p, pairs = pairs_of(eta, weight)
    total = 0.0
    for i, j, mass in pairs:
        wrong = (scores[i] - scores[j]) * (eta[i] - eta[j]) < 0
        total += mass * abs(eta[i] - eta[j]) * (wrong + 0.5 * (scores[i] == scores[j]))
    return total / (2 * p * (1 - p))


@given(populations())
def test_the_ranking_error_is_its_double_sum(population):
    eta, scores, weight = population
    error = ranking_error(eta, scores, sample_weight=weight)
    assert error == pytest.approx(error_by_loop(eta, scores, weight), abs=1e-12)


@given(populations())
def test_the_bayes_error_is_equation_3(population):
    eta, _, weight = population
    error = bayes_ranking_error(eta, sample_weight=weight)
    assert error == pytest.approx(bayes_by_equation_3(eta, weight), abs=1e-12)


@given(populations())
def test_the_regret_is_theorem_11(population):
    eta, scores, weight = population
    regret = exact_ranking_regret(eta, scores, sample_weight=weight)
    assert regret == pytest.approx(regret_by_theorem_11(eta, scores, weight), abs=1e-12)


@given(populations())
def test_the_gini_form_of_the_bayes_risk_agrees_with_equation_3(population):
    eta, _, weight = population
    p, pairs = pairs_of(eta, weight)
    gini = gini_mean_difference(eta, sample_weight=weight)
    assert gini == pytest.approx(sum(m * abs(eta[i] - eta[j]) for i, j, m in pairs), abs=1e-12)
    assert -1e-12 <= gini <= 2 * p * (1 - p) + 1e-12
    bayes = bayes_ranking_error(eta, sample_weight=weight)
    assert 2 * p * (1 - p) * bayes == pytest.approx(p * (1 - p) - gini / 2, abs=1e-12)


def test_gini_reaches_twice_p_one_minus_p_when_labels_are_certain():
    assert gini_mean_difference([0, 0, 0, 1]) == pytest.approx(2 * 0.25 * 0.75)
    assert gini_mean_difference([0.3, 0.3, 0.3]) == 0.0


def test_labels_instead_of_probabilities_give_the_error_of_the_sample():
    y, scores = np.array([0, 1, 1, 0, 1]), [0.1, 0.5, 0.2, 0.2, 0.2]
    assert ranking_error(y, scores) == misranking_error(y, scores)
    assert ranking_error(2 * y - 1, scores) == misranking_error(y, scores)
    assert ranking_error(y == 1, scores) == misranking_error(y, scores)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
@given(population=populations(), spread=st.sampled_from([0.1, 0.5, 2.0]))
def test_theorem_13_is_never_violated(loss, population, spread):
    eta, scores, weight = population
    composite = get_proper_loss(loss)
    f = spread * scores + (0.5 if loss == "spherical" else 0.0)
    regret = surrogate_regret(composite, eta, f, sample_weight=weight)
    bound = ranking_regret(loss, regret, weight @ eta / weight.sum()).value
    for ranked in (f, composite.truncate(f)):
        actual = exact_ranking_regret(eta, ranked, sample_weight=weight)
        assert actual <= bound * (1 + 1e-9) + 1e-12


@given(population=populations(), p_scale=st.sampled_from([0.3, 1.0]))
def test_corollary_12_is_never_violated(population, p_scale):
    eta, scores, weight = population
    estimate = np.clip(0.5 + p_scale * scores / 6, 0, 1)
    p = weight @ eta / weight.sum()
    regret = exact_ranking_regret(eta, estimate, sample_weight=weight)
    for q in (1.0, 1.5, 2.0):
        error = np.average(np.abs(estimate - eta) ** q, weights=weight)
        assert regret <= plug_in_regret(error, p, q=q).value + 1e-12


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@given(population=populations())
def test_the_balanced_bounds_29_and_30_are_never_violated(loss, population):
    eta, scores, weight = population
    even = balanced(get_proper_loss(loss), weight @ eta / weight.sum())
    regret = surrogate_regret(even, eta, scores, sample_weight=weight)
    actual = exact_ranking_regret(eta, scores, sample_weight=weight)
    assert actual <= balanced_regret(loss, regret).value + 1e-12


@pytest.mark.parametrize("loss", MARGIN)
@given(population=populations())
def test_the_pairwise_reduction_is_never_violated(loss, population):
    eta, scores, weight = population
    probability, pair_eta = pairwise_distribution(eta, sample_weight=weight)
    apart = scores[:, None] - scores[None, :]
    composite = get_proper_loss(loss)
    # of a pair that ties, half is ranked wrongly; sign(0) = -1 in the paper counts it by a coin
    z = np.sum(probability * composite.conditional_regret(pair_eta, apart))
    actual = exact_ranking_regret(eta, scores, sample_weight=weight)
    assert actual <= pairwise_regret(loss, z).value * (1 + 1e-9) + 1e-12


@given(populations())
def test_the_distribution_of_pairs_is_equations_15_to_17(population):
    eta, scores, weight = population
    probability, pair_eta = pairwise_distribution(eta, sample_weight=weight)
    p, pairs = pairs_of(eta, weight)
    for i, j, mass in pairs:
        a, b = eta[i] * (1 - eta[j]), eta[j] * (1 - eta[i])
        assert probability[i, j] == pytest.approx(mass * (a + b) / (2 * p * (1 - p)), abs=1e-12)
        if a + b > 0:
            assert pair_eta[i, j] == pytest.approx(a / (a + b))
    assert np.sum(probability * pair_eta) == pytest.approx(0.5)  # equation 17
    # equation 22: the 0-1 error over pairs is the ranking error
    above = (scores[:, None] < scores) + 0.5 * (scores[:, None] == scores)
    error = np.sum(probability * (pair_eta * above + (1 - pair_eta) * (1 - above)))
    assert error == pytest.approx(ranking_error(eta, scores, sample_weight=weight), abs=1e-12)


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.9])
def test_theorems_14_and_15_hold_with_the_constant_derived_from_the_assumption(alpha, sharp):
    model = power_eta(alpha)
    X, _ = model.sample(4000, random_state=0)
    eta = model.eta(X)
    p = alpha / (1 + alpha)
    # the sample's own constant of NA(alpha), which may exceed the model's a little
    constant = low_noise_constant(alpha, 1.1 * model.noise_constant)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1, 0.5):
        estimate = np.clip(eta + size * rng.standard_normal(len(eta)), 0, 1)
        regret = exact_ranking_regret(eta, estimate)
        known = {"noise_exponent": alpha, "noise_constant": constant, "sharp": sharp}
        for q in (2.0, 3.0):
            error = np.mean(np.abs(estimate - eta) ** q)
            assert regret <= plug_in_regret(error, p, q=q, **known).value
        scores = get_proper_loss("squared").link(estimate)
        z = surrogate_regret("squared", eta, scores)
        assert regret <= ranking_regret("squared", z, p, **known).value


def test_the_sharper_exponent_gives_a_smaller_bound():
    arguments = ("logistic", 1e-4, 0.5, 0.5, 4.0)
    assert ranking_regret(*arguments, sharp=True).value < ranking_regret(*arguments).value


def test_the_formulas_are_those_of_the_paper():
    assert ranking_regret("exponential", 0.01, 0.25).value == pytest.approx(
        1 / (np.sqrt(2) * 0.25 * 0.75) * 0.1
    )
    assert ranking_regret("squared", 0.01, 0.25).value == pytest.approx(0.1 / (2 * 0.25 * 0.75))
    assert ranking_regret("spherical", 0.01, 0.25).value == pytest.approx(
        np.sqrt(2) / (0.25 * 0.75) * 0.1
    )
    e = 1.5 / 2.5
    assert ranking_regret("logistic", 0.01, 0.25, 0.5, 3.0).value == pytest.approx(
        3 / (0.25 * 0.75) * (2 / 4) ** e * 0.01**e
    )
    assert plug_in_regret(0.02, 0.25, q=3, noise_exponent=0.5, noise_constant=2).value == (
        pytest.approx(2 / (0.25 * 0.75) * 0.02 ** (1.5 / 3.5))
    )
    assert balanced_regret("exponential", 0.04).value == pytest.approx(3 / np.sqrt(2) * 0.2)
    assert balanced_regret("logistic", 0.04).value == pytest.approx(2 * 0.2)
    assert pairwise_regret("exponential", 0.04).value == pytest.approx(np.sqrt(0.08))
    assert pairwise_regret("logistic", 0.04).value == pytest.approx(np.sqrt(0.08))


def test_a_bound_says_what_it_states_and_when_it_is_vacuous():
    bound = ranking_regret("logistic", 1e-4, 0.5)
    assert not bound.vacuous and "Theorem 13" in bound.statement
    assert any("1" in assumption for assumption in bound.assumes)
    low_noise = ranking_regret("logistic", 1e-4, 0.5, noise_exponent=0.5, noise_constant=3)
    assert "Theorem 15" in low_noise.statement
    assert any("NA(0.5)" in assumption for assumption in low_noise.assumes)
    assert ranking_regret("logistic", 1.0, 0.5).vacuous
    assert ranking_regret("logistic", 0.0, 0.5).value == 0.0


ZERO_ONE = from_bayes_risk(lambda q: np.minimum(q, 1 - q), lambda q: np.where(q < 0.5, 1.0, -1.0))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ranking_regret("logistic", -0.1, 0.5), "surrogate_regret"),
        (lambda: ranking_regret("logistic", np.nan, 0.5), "surrogate_regret"),
        (lambda: ranking_regret("logistic", 0.1, 0.0), "prevalence"),
        (lambda: ranking_regret("logistic", 0.1, 1.0), "negatives"),
        (lambda: ranking_regret("logistic", 0.1, 0.5, 0.5), "noise_constant"),
        (lambda: ranking_regret("logistic", 0.1, 0.5, 1.0, 2.0), "noise_exponent"),
        (lambda: ranking_regret("hinge", 0.1, 0.5), "Unknown proper loss"),
        (lambda: ranking_regret(ZERO_ONE, 0.1, 0.5), "not strongly proper"),
        (lambda: plug_in_regret(0.1, 0.5, q=0.5), "q="),
        (
            lambda: plug_in_regret(0.1, 0.5, noise_exponent=0.5, noise_constant=2, sharp=True),
            "sharp exponent",
        ),
        (lambda: low_noise_constant(0.5, 0.5), "constant"),
        (lambda: balanced_regret("squared", 0.1), "exponential and the logistic"),
        (lambda: pairwise_regret("spherical", 0.1), "one half"),
        (lambda: ranking_error([0.2, 1.2], [0, 1]), "probabilities"),
        (lambda: ranking_error([0.0, 0.0], [0, 1]), "no pair"),
        (lambda: ranking_error([1, 1], [0, 1]), "no pair"),
        (lambda: ranking_error([0.2, 0.3], [0, np.inf]), "finite"),
        (lambda: ranking_error([0.2, 0.3], [0, 1, 2]), "finite"),
        (lambda: ranking_error([0.2, 0.3], [0, 1], sample_weight=[-1, 2]), "0 or more"),
        (lambda: ranking_error([[0.2, 0.3]], [0, 1]), "shape"),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
