"""BEDROC where its value follows from the definition of Truchon & Bayly (2007).

Robust initial enhancement (RIE) is the mean of e^(-alpha rank / n) over the positives, divided by
its expectation for random ranks; BEDROC is RIE brought to the range from 0 to 1.
"""

from itertools import combinations
from math import cosh, exp, log, sinh

import numpy as np
import pytest

from toprank.metrics import bedroc

ALPHAS = (0.5, 8.0, 20.0, 80.5)


def bedroc_of_rie(rie, alpha, share):
    """The paper's linear map from RIE to BEDROC, for a share of positives."""
    scale = share * sinh(alpha / 2) / (cosh(alpha / 2) - cosh(alpha / 2 - alpha * share))
    return rie * scale + 1 / (1 - exp(alpha * (1 - share)))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_extremes_of_rie_are_one_and_zero(alpha):
    share = 3 / 12
    largest = (1 - exp(-alpha * share)) / (share * (1 - exp(-alpha)))
    smallest = (1 - exp(alpha * share)) / (share * (1 - exp(alpha)))
    assert bedroc_of_rie(largest, alpha, share) == pytest.approx(1)
    assert bedroc_of_rie(smallest, alpha, share) == pytest.approx(0, abs=1e-12)
    y = np.repeat([1, 0], [3, 9])
    assert bedroc(y, -np.arange(12.0), alpha) == pytest.approx(1)
    assert bedroc(y, np.arange(12.0), alpha) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_random_ranks_have_rie_one_and_so_has_one_great_tie(alpha):
    n, actives = 9, 3
    values = []
    for chosen in combinations(range(n), actives):
        y = np.isin(np.arange(n), chosen)
        values.append(bedroc(y, -np.arange(n, dtype=float), alpha))
    wanted = bedroc_of_rie(1.0, alpha, actives / n)
    assert np.mean(values) == pytest.approx(wanted)
    assert bedroc(y, np.zeros(n), alpha) == pytest.approx(wanted)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_rare_positives_at_random_have_one_over_alpha_and_a_little_less(alpha):
    chance = bedroc([1, 0], [0.0, 0.0], alpha, sample_weight=[1, 10**7])
    assert chance == pytest.approx(1 / alpha + 1 / (1 - exp(alpha)), rel=1e-5)


@pytest.mark.parametrize(
    ("alpha", "part"), [(160.9, 0.01), (80.5, 0.02), (32.2, 0.05), (20.0, 0.08), (16.1, 0.1)]
)
def test_four_fifths_come_from_the_part_where_alpha_is_log_five_over_the_part(alpha, part):
    n = 10**6
    first = [1, part * n - 1, (1 - part) * n]
    within = bedroc([1, 0, 0], [1.0, 1.0, 0.0], alpha, sample_weight=first)
    anywhere = bedroc([1, 0, 0], [0.0, 0.0, 0.0], alpha, sample_weight=first)
    assert alpha == pytest.approx(log(5) / part, rel=0.01)
    assert part * within / anywhere == pytest.approx(0.8, abs=0.002)
