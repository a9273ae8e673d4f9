"""Boschloo's test of two equal shares: exact, never weaker than Fisher's, and its power."""

import numpy as np
import pytest
from scipy.stats import binom, boschloo_exact, hypergeom

from toprank.inference import compare
from toprank.inference.equal_shares import MOST_TRIALS, equal_shares_p_value, equal_shares_power


def fisher(a, b, trials):
    return min(1.0, 2 * hypergeom(2 * trials, a + b, trials).cdf(min(a, b)))


@pytest.mark.parametrize(("a", "b", "trials"), [(8, 2, 12), (14, 5, 30), (0, 4, 9), (3, 3, 7)])
def test_the_p_value_is_that_of_scipy(a, b, trials):
    expected = boschloo_exact([[a, b], [trials - a, trials - b]], n=64).pvalue
    found = equal_shares_p_value(a, b, trials)
    assert found == pytest.approx(min(1.0, expected), rel=2e-3)
    assert found == equal_shares_p_value(b, a, trials) <= fisher(a, b, trials)
    assert found == pytest.approx(equal_shares_p_value(trials - a, trials - b, trials))


@pytest.mark.parametrize("trials", [4, 10, pytest.param(25, marks=pytest.mark.more)])
def test_equal_shares_are_rejected_at_most_as_often_as_said_and_more_often_than_by_fisher(trials):
    hits = range(trials + 1)
    p = np.array([[equal_shares_p_value(i, j, trials) for j in hits] for i in hits])
    exact = np.array([[fisher(i, j, trials) for j in hits] for i in hits])
    rates = []
    for share in np.linspace(0.02, 0.98, 49):
        chance = binom.pmf(np.arange(trials + 1), trials, share)
        both = np.outer(chance, chance)
        rates.append((np.sum(both[p <= 0.05]), np.sum(both[exact <= 0.05])))
    new, old = np.array(rates).T
    assert np.max(new) <= 0.05 and np.all(new >= old - 1e-12)
    if trials >= 10:
        assert np.max(new) > 1.4 * np.max(old)


@pytest.mark.more
def test_the_power_is_that_of_the_test():
    trials, shares = 20, (0.6, 0.25)
    hits = range(trials + 1)
    p = np.array([[equal_shares_p_value(i, j, trials) for j in hits] for i in hits])
    a, b = (binom.pmf(np.arange(trials + 1), trials, share) for share in shares)
    expected = np.sum(np.outer(a, b)[p <= 0.05])
    assert equal_shares_power(*shares, trials, 0.05) == pytest.approx(expected)
    assert equal_shares_power(0.5, 0.5, 1, 0.05) == 0.0
    below, above = (equal_shares_power(0.4, 0.5, m, 0.05) for m in (MOST_TRIALS, MOST_TRIALS + 1))
    assert above == pytest.approx(below, abs=0.02)
    assert equal_shares_power(0.0, 1.0, MOST_TRIALS + 1, 0.05) == 1.0


def test_rankers_at_k_are_compared_by_it():
    y = np.repeat([1, 0, 1, 0, 1, 0], [8, 4, 2, 10, 30, 300])
    a = np.concatenate([np.full(12, 2.0), np.full(12, 1.0), np.zeros(330)])
    b = np.concatenate([np.full(12, 1.0), np.full(12, 2.0), np.zeros(330)])
    found = compare("precision_at", y, a, b, k=12)
    assert found.p_value == pytest.approx(equal_shares_p_value(8, 2, 12))


def test_many_rows_take_the_mid_p_value():
    trials = MOST_TRIALS + 1
    found = equal_shares_p_value(60, 90, trials)
    law = hypergeom(2 * trials, 150, trials)
    assert found == pytest.approx(2 * (law.cdf(60) - law.pmf(60) / 2))
    near = equal_shares_p_value(60, 90, MOST_TRIALS)
    assert found == pytest.approx(near, rel=0.15)
