"""Intervals of a share of trials that count a part of the chance of what was seen."""

import numpy as np
import pytest
from scipy.stats import binom

from toprank.inference.shares import binomial_interval, binomial_upper_end, clopper_pearson


@pytest.mark.parametrize("trials", [1, 7, 200])
@pytest.mark.parametrize("counted", [0.5, 0.7, 1.0])
def test_the_end_is_where_the_counted_chance_is_the_tail(trials, counted):
    hits = np.arange(trials)
    end = binomial_upper_end(hits / trials, trials, 0.95, counted)
    reached = binom.cdf(hits - 1, trials, end) + counted * binom.pmf(hits, trials, end)
    np.testing.assert_allclose(reached, 0.025, rtol=1e-8)
    assert binomial_upper_end(np.array(1.0), trials, 0.95, counted) == 1


def test_all_of_the_chance_is_clopper_and_pearsons():
    share = np.linspace(0, 1, 12)
    ends = binomial_interval(share, 11, 0.9, counted=1.0)
    np.testing.assert_allclose(ends, clopper_pearson(share, 11, 0.9), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("trials", [2, 5, 20, 80])
def test_covers_nearly_the_level_at_every_share(trials):
    hits, share = np.arange(trials + 1), np.linspace(0.001, 0.999, 500)
    low, high = binomial_interval(hits / trials, trials, 0.95)
    held = (low <= share[:, None]) & (share[:, None] <= high)
    assert np.min(np.sum(held * binom.pmf(hits, trials, share[:, None]), axis=1)) > 0.937


@pytest.mark.parametrize("level", [1e-9, 0.3, 0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("trials", [0.3, 1.0, 12.7, 1e6, 1e12])
def test_holds_the_share_at_every_level_and_size(level, trials):
    share = np.array([0.0, 1e-9, 0.2, 0.5, 1 - 1e-9, 1.0])
    low, high = binomial_interval(share, trials, level)
    assert np.all((low >= 0) & (low <= share) & (share <= high) & (high <= 1))
