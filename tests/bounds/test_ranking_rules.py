"""Proposition 1 for any rho+ and rho-, and Theorem 6 with both of its constants."""

from itertools import product

import numpy as np
import pytest

from toprank.bounds import (
    balanced_pairwise_regret,
    balanced_regret,
    best_ranking_rule,
    choose_centres,
    exact_ranking_regret,
    pairwise_regret,
    pairwise_surrogate_regret,
    pnorm_push,
    ranking_rule_risk,
    surrogate_regret,
)
from toprank.losses.proper import balanced, get_proper_loss

RNG = np.random.default_rng(0)


def chances(n):
    plus = np.triu(RNG.uniform(size=(n, n)), 1)
    minus = np.triu(RNG.uniform(size=(n, n)), 1) * (1 - plus)
    return plus + minus.T, minus + plus.T


def test_no_rule_is_better_than_proposition_1s():
    plus, minus = chances(3)
    weight = RNG.uniform(0.5, 2.0, size=3)
    rule, risk = best_ranking_rule(plus, minus, sample_weight=weight)
    assert ranking_rule_risk(rule, plus, minus, sample_weight=weight) == pytest.approx(risk)
    for signs in product((-1, 1), repeat=9):
        other = np.reshape(signs, (3, 3))
        assert ranking_rule_risk(other, plus, minus, sample_weight=weight) >= risk - 1e-15


def test_two_classes_have_their_rho():
    eta = np.array([0.1, 0.5, 0.9])
    plus = eta[:, None] * (1 - eta)
    rule, risk = best_ranking_rule(plus, plus.T)
    assert np.array_equal(rule == 1, eta[:, None] >= eta)
    assert risk == pytest.approx(np.mean(np.minimum(plus, plus.T)))


@pytest.mark.parametrize(
    ("plus", "match"),
    [
        (np.ones((2, 3)), "one \\(n, n\\)"),
        (np.full((2, 2), 0.9), "chances"),
        ([[0.0, 0.4], [0.3, 0.0]], "differs from"),
    ],
)
def test_what_is_no_chance_is_refused(plus, match):
    with pytest.raises(ValueError, match=match):
        best_ranking_rule(plus, plus)


def both_regrets(loss, eta, scores, weight=None):
    p = float(np.average(eta, weights=weight))
    of_rows = surrogate_regret(
        balanced(get_proper_loss(loss), p), eta, scores, sample_weight=weight
    )
    return of_rows, pairwise_surrogate_regret(loss, eta, scores, sample_weight=weight)


@pytest.mark.parametrize(("loss", "constant"), [("exponential", 2.25), ("logistic", 2.0)])
def test_theorem_6_corrected_and_its_constants_where_they_hold(loss, constant):
    largest = 0.0
    for _ in range(50):
        n = RNG.integers(2, 5)
        eta, weight = RNG.uniform(0.02, 0.98, size=n), RNG.uniform(0.1, 1.0, size=n)
        scores = RNG.normal(scale=RNG.uniform(0.1, 3.0), size=n)
        of_rows, of_pairs = both_regrets(loss, eta, scores, weight)
        assert of_pairs <= balanced_pairwise_regret(loss, of_rows).value + 1e-12
        if loss == "logistic" or of_rows <= 0.25:
            assert of_pairs <= constant * of_rows + 1e-12
            largest = max(largest, of_pairs / of_rows)
        # equations (29) and (30)
        ranking = exact_ranking_regret(eta, scores, sample_weight=weight)
        assert ranking <= pairwise_regret(loss, of_pairs).value + 1e-12
        assert ranking <= balanced_regret(loss, of_rows).value + 1e-12
    assert 1.0 < largest <= constant


def test_theorem_6_is_false_as_printed_for_the_exponential_loss():
    c = 2.0
    of_rows, of_pairs = both_regrets("exponential", [0.5, 0.5], [c, -c])
    assert of_rows == pytest.approx(np.cosh(c) - 1)
    assert of_pairs == pytest.approx(np.sinh(c) ** 2)
    assert of_pairs > 9 / 4 * of_rows
    # ours is reached
    assert of_pairs == pytest.approx(balanced_pairwise_regret("exponential", of_rows).value)


def test_theorem_6_is_about_two_losses():
    with pytest.raises(ValueError, match="Theorem 6 is about"):
        balanced_pairwise_regret("squared", 0.1)


def test_centres_of_large_risk_tighten_theorem_3():
    scores = np.concatenate([RNG.normal(size=(6, 4)), np.zeros((1, 4))])
    scores = np.vstack([scores, scores + 0.01])  # every ranker has a neighbour
    risks = np.concatenate([np.full(7, 0.05), np.full(7, 0.6)])
    centres, r_min = choose_centres(scores, risks, radius=0.05)
    assert r_min == 0.6 and np.array_equal(centres, np.arange(7, 14))
    near = np.max(np.abs(scores[:, None] - scores[centres]), axis=2) <= 0.05
    assert np.all(np.any(near, axis=1))
    sample = {"epsilon": 0.4, "theta": 1.0, "n_pos": 5000, "n_neg": 5000, "p": 3}
    sample["log_covering_number"] = np.log(len(centres))
    tight = pnorm_push(r_min=r_min, of_centres=True, **sample)
    loose = pnorm_push(r_min=risks.min(), **sample)
    assert tight.value < loose.value
    assert "choice of centres" in tight.statement
    assert any("centres" in text for text in tight.assumes)


def test_no_other_cover_has_centres_of_larger_risk():
    scores, risks = RNG.normal(size=(7, 2)), RNG.uniform(size=7)
    _, r_min = choose_centres(scores, risks, radius=1.0)
    near = np.max(np.abs(scores[:, None] - scores), axis=2) <= 1.0
    best = 0.0
    for chosen in product((False, True), repeat=7):
        chosen = np.array(chosen)
        if np.any(chosen) and np.all(np.any(near[:, chosen], axis=1)):
            best = max(best, risks[chosen].min())
    assert r_min == best


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rule": [[1, 1]]}, r"rule has shape \(1, 2\), expected \(2, 2\), each entry 1 or -1"),
        ({"rule": [[1, 0], [-1, 1]]}, "each entry 1 or -1"),
        ({"sample_weight": [1.0]}, "expected 2 numbers, none negative, not all 0"),
        ({"sample_weight": [0.0, 0.0]}, "expected 2 numbers, none negative, not all 0"),
    ],
)
def test_rules_and_weights_that_fit_no_pairs_are_refused(given, said):
    pairs = {"rho_plus": [[0, 0.9], [0.1, 0]], "rho_minus": [[0, 0.1], [0.9, 0]]}
    with pytest.raises(ValueError, match=said):
        ranking_rule_risk(**{"rule": [[1, 1], [-1, 1]], **pairs, **given})


def test_centres_of_no_rankers_or_no_radius_are_refused():
    with pytest.raises(ValueError, match=r"scores has shape \(2, 1\) and risks \(1,\)"):
        choose_centres([[0.0], [1.0]], [0.1], radius=1.0)
    with pytest.raises(ValueError, match="radius=0: expected a number above 0"):
        choose_centres([[0.0], [1.0]], [0.1, 0.2], radius=0)
