"""The urn behind the guarantees of precision, recall and numbers of positives."""

import numpy as np
import pytest
from scipy.stats import hypergeom, norm

from toprank.select import select
from toprank.select.prefixes import (
    cut_counts,
    lower_tail,
    most_negatives,
    positives_below,
    positives_to_pass,
    rows_needed,
    smallest_where,
)


def test_the_lower_tail_is_that_of_the_hypergeometric_law():
    rng = np.random.default_rng(0)
    total = rng.integers(1, 500, 400)
    marked, drawn = (rng.integers(0, total + 1) for _ in range(2))
    at_most = rng.integers(-1, drawn + 1)
    expected = hypergeom.cdf(at_most, total, marked, drawn)
    np.testing.assert_allclose(
        lower_tail(total, marked, drawn, at_most), expected, rtol=1e-9, atol=1e-13
    )


def test_the_tail_of_a_large_urn_is_found_without_summing_all_of_it():
    # 10^7 balls: the binomial law is near
    found = lower_tail(11_000_000, 1_000_000, 110_000, 9_700)
    deviation = (9_700.5 - 10_000) / np.sqrt(110_000 / 11 * (10 / 11) * 0.99)
    assert found == pytest.approx(norm.cdf(deviation), rel=0.1)
    assert 0 < lower_tail(11_000_000, 1_000_000, 110_000, 8_000)[0] < 1e-50


def test_the_smallest_number_that_holds_is_found_for_many_conditions_at_once():
    wanted = np.array([0, 1, 7, 100])
    found = smallest_where(lambda x: x >= wanted, np.full(4, 100, dtype=np.int64))
    np.testing.assert_array_equal(found, wanted)


def paths(n, m, rng, draws):
    """Orders in which n calibration rows and m new rows of one class come; True is new."""
    return rng.permuted(np.tile(np.arange(n + m) < m, (draws, 1)), axis=1)


@pytest.mark.parametrize("tied", [False, True])
def test_the_bounds_of_new_negatives_hold_together(tied):
    n, m, draws = 60, 90, 4000
    k = cut_counts(n, 0.5, tied)
    bounds = most_negatives(n, m, 0.5, 0.2, tied)
    new = paths(n, m, np.random.default_rng(1), draws)
    known = np.cumsum(~new, axis=1)
    above = np.stack([np.sum(new & (known < one), axis=1) for one in k], axis=1)
    wrong = np.mean(np.any(above > bounds, axis=1))
    assert 0.15 < wrong <= 0.2 + 3 * np.sqrt(0.16 / draws)
    alone = np.mean(above > bounds, axis=0)
    assert np.all(np.diff(alone) < 0.01)  # the first ones may fail most often
    assert alone[0] < 0.2 and alone[-1] < 0.01


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_so_many_calibration_positives_vouch_for_that_many_new_ones(share):
    n, m, wanted, draws = 80, 50, 3, 20_000
    j = positives_to_pass(wanted, n, m, 0.1)
    rng = np.random.default_rng(2)
    pooled = int(share * (n + m))
    new = rng.permuted(np.tile(np.arange(n + m) < m, (draws, 1)), axis=1)[:, :pooled]
    known = np.cumsum(~new, axis=1)
    enough = known[:, -1] >= j  # else there is a refusal
    held = np.sum(new & (known < j), axis=1) >= wanted
    assert np.mean(enough & ~held) <= 0.1 + 4 * np.sqrt(0.09 / draws)
    if share == 0.5:
        assert np.mean(enough & ~held) > 0.06  # no more is asked for than needed


@pytest.mark.parametrize("pooled", [40, 120])
def test_the_cut_for_a_recall_misses_too_many_positives_as_seldom_as_said(pooled):
    n, m, draws = 120, 120, 4000
    rng = np.random.default_rng(3)
    new = rng.permuted(np.tile(np.arange(n + m) < m, (draws, 1)), axis=1)[:, :pooled]
    found = np.sum(~new, axis=1)
    known = {a: positives_below(int(a), n, m, 0.7, 0.1) for a in np.unique(found)}
    k = np.array([known[a] for a in found])
    below = np.sum(new & (np.cumsum(~new, axis=1) < k[:, None]), axis=1)
    missed = below > 0.3 * np.sum(new, axis=1) + 1e-9
    assert np.mean(missed & (k > 0)) <= 0.1 + 4 * np.sqrt(0.09 / draws)


def test_the_number_of_rows_needed_is_found_within_a_hundredth():
    assert 1000 <= rows_needed(lambda rows: rows >= 1000, 30) <= 1010
    assert rows_needed(lambda rows: False, 30) is None


@pytest.mark.more
def test_more_labels_never_shorten_a_list_of_a_given_precision_by_much():
    rng = np.random.default_rng(4)
    y = rng.random(60_000) < 0.3
    s = rng.normal(size=60_000) + 2.5 * y
    new, labels = s[50_000:], y[50_000:]
    lengths = []
    for n in (500, 5_000, 50_000):
        chosen = select(new, calibration=(y[:n], s[:n]), precision_at_least=0.9)
        lengths.append(len(chosen))
        assert np.mean(labels[chosen.rows]) >= 0.9
    assert lengths[0] < lengths[1] < lengths[2]


def test_rare_positives_of_high_scores_get_a_list_of_a_given_precision():
    # of 5000 labelled rows 2% are positives; half of such tables had no list when all numbers of
    # negatives shared the chance of an error equally
    empty = 0
    for draw in range(40):
        rng = np.random.default_rng((2, draw))
        y = rng.random(7000) < 0.02
        s = rng.normal(size=7000) + 3.5 * y
        chosen = select(s[5000:], calibration=(y[:5000], s[:5000]), precision_at_least=0.8)
        empty += not len(chosen)
    assert empty <= 6
