"""Conformal p-values and the lists they give, against the definitions word by word."""

import numpy as np
import pytest

from toprank.select import select
from toprank.select.calibration import from_scores
from toprank.select.conformal import (
    conformal_p_values,
    select_by_fdr,
    select_under_shift,
)


def rows(seed, n=40, m=30, levels=12, share=0.4):
    """Few distinct scores, so that ties are everywhere; positives score higher."""
    rng = np.random.default_rng(seed)
    y = rng.random(n + m) < share
    y[:2] = [True, False]
    s = np.round(levels * (0.25 * rng.random(n + m) + 0.75 * y * rng.random(n + m)))
    return from_scores(y[:n], s[:n]), s[n:], rng


def benjamini_hochberg(p, q):
    order = np.sort(p)
    passed = np.flatnonzero(order <= q * np.arange(1, len(p) + 1) / len(p) * (1 + 1e-12))
    return passed[-1] + 1 if len(passed) else 0


def by_definition(known, new, q):
    above = [np.sum(~known.positive & (known.scores >= s)) for s in new]
    p = (1 + np.array(above)) / (known.n_rows + 1)
    length = benjamini_hochberg(p, q)
    return p, p <= (np.sort(p)[length - 1] if length else -1)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fdr", [0.1, 0.3, 0.7])
def test_the_list_is_that_of_benjamini_and_hochberg(seed, fdr):
    known, new, _ = rows(seed, n=60 if seed % 2 else 20)
    p, chosen = by_definition(known, new, fdr)
    np.testing.assert_allclose(conformal_p_values(known, new), p)
    np.testing.assert_array_equal(select_by_fdr(known, new, fdr), chosen)


def pruned(known, new, q, w, v):
    """Algorithm 1 of Jin & Candes on weighted p-values, pruned without random numbers."""
    m, total = len(new), np.sum(w)
    above = np.array([np.sum(w[~known.positive & (known.scores >= s)]) for s in new])
    p = (above + v) / (total + v)
    sizes = np.zeros(m)
    for j in range(m):
        auxiliary = (above + v[j] * (new[j] >= new)) / (total + v[j])
        auxiliary[j] = 0.0
        sizes[j] = benjamini_hochberg(auxiliary, q)
    passed = p <= q * sizes / m * (1 + 1e-12)
    longest = max((r for r in range(1, m + 1) if np.sum(passed & (sizes <= r)) >= r), default=0)
    return p, passed & (sizes <= longest)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fdr", [0.2, 0.5])
def test_under_shift_the_list_is_that_of_the_pruned_algorithm(seed, fdr):
    known, new, rng = rows(seed, n=50, m=25)
    w, v = rng.gamma(2.0, size=50), rng.gamma(2.0, size=25)
    p, chosen = pruned(known, new, fdr, w, v)
    np.testing.assert_allclose(conformal_p_values(known, new, (w, v)), p)
    found, passed = select_under_shift(known, new, fdr, (w, v))
    np.testing.assert_array_equal(found, chosen)
    assert passed >= np.sum(chosen)


@pytest.mark.parametrize("seed", range(5))
def test_equal_ratios_are_no_shift(seed):
    known, new, _ = rows(seed, n=60)
    ratios = (np.full(60, 2.5), np.full(30, 2.5))
    np.testing.assert_array_equal(
        select_under_shift(known, new, 0.4, ratios)[0], select_by_fdr(known, new, 0.4)
    )


def test_a_common_factor_of_the_ratios_changes_nothing():
    known, new, rng = rows(3, n=60)
    w, v = rng.gamma(2.0, size=60), rng.gamma(2.0, size=30)
    once = select_under_shift(known, new, 0.4, (w, v))[0]
    scaled = select_under_shift(known, new, 0.4, (1e6 * w, 1e6 * v))[0]
    np.testing.assert_array_equal(once, scaled)
    assert 0 < np.sum(once) < 30


def test_random_pruning_keeps_at_least_as_many_rows():
    known, new, rng = rows(5, n=80, m=60)
    ratios = (rng.gamma(0.5, size=80), rng.gamma(0.5, size=60))
    steady = select_under_shift(known, new, 0.4, ratios)[0]
    drawn = select_under_shift(known, new, 0.4, ratios, np.random.default_rng(0))[0]
    assert np.all(drawn[steady])


def test_with_random_ties_a_list_may_end_inside_a_tie_and_the_seed_says_where():
    rng = np.random.default_rng(0)
    y, s = rng.random(3000) < 0.5, rng.integers(0, 3, 3000)
    y |= s == 2  # the upper tie is pure, the middle one is not
    y &= s > 0
    known, new = (y[:1500], s[:1500]), s[1500:]
    whole = select(new, calibration=known, fdr=0.1)
    assert set(new[whole.rows]) == {2}
    part = select(new, calibration=known, fdr=0.1, ties="random")
    again = select(new, calibration=known, fdr=0.1, ties="random")
    other = select(new, calibration=known, fdr=0.1, ties="random", random_state=1)
    assert len(whole) < len(part) < np.sum(new >= 1)
    np.testing.assert_array_equal(part.rows, again.rows)
    assert set(part.rows) != set(other.rows)
    assert np.all(np.diff(part.scores) <= 0)


def test_a_list_that_falls_to_the_pruning_says_so():
    rng = np.random.default_rng(0)
    signal, noise = rng.normal(size=(2, 3000))
    noise[2000:] += 1.0
    y, s, w = signal + 0.2 * rng.normal(size=3000) > 1, signal + 0.5 * noise, np.exp(noise)
    given = {"calibration": (y[:2000], s[:2000]), "likelihood_ratio": (w[:2000], w[2000:])}
    lists = [select(s[2000:], fdr=0.1, random_state=seed, **given) for seed in range(20)]
    fallen = [one for one in lists if not len(one)]
    assert 0 < len(fallen) < 20
    assert "random_state" in fallen[0].notes[0]
    assert all(np.all(np.diff(one.scores) <= 0) for one in lists)


def test_rows_of_no_weight_keep_their_ratio_and_count_for_nothing():
    known, new, rng = rows(4, n=60)
    counts, w, v = rng.integers(0, 3, 60), rng.gamma(2.0, size=60), rng.gamma(2.0, size=30)
    given = {"fdr": 0.4, "random_state": 3}
    once = select(
        new,
        calibration=(known.positive, known.scores),
        sample_weight=counts,
        likelihood_ratio=(w, v),
        **given,
    )
    many = np.repeat(np.arange(60), counts)
    again = select(
        new,
        calibration=(known.positive[many], known.scores[many]),
        likelihood_ratio=(w[many], v),
        **given,
    )
    np.testing.assert_array_equal(once.rows, again.rows)
    np.testing.assert_allclose(once.p_values, again.p_values)
