"""The corrected resampled t-test."""

import numpy as np
import pytest
from scipy import stats

from toprank.tuning import corrected_difference


def test_it_is_the_formula_of_nadeau_and_bengio():
    d = np.array([0.02, -0.01, 0.03, 0.05, 0.01])
    found = corrected_difference(d, 0.25, level=0.9)
    error = np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert found.mean == pytest.approx(d.mean())
    assert found.standard_error == pytest.approx(error)
    assert found.p_value == pytest.approx(2 * stats.t.sf(d.mean() / error, 4))
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.95, 4) * error)


def test_it_is_wider_than_the_plain_test_and_becomes_it_without_overlap():
    d = np.random.default_rng(0).normal(0.1, 1, size=10)
    plain = stats.ttest_1samp(d, 0.0)
    assert corrected_difference(d, 1e-12).p_value == pytest.approx(plain.pvalue)
    assert corrected_difference(d, 0.25).p_value > plain.pvalue


@pytest.mark.parametrize(("d", "p"), [([0.0] * 5, 1.0), ([0.1] * 5, 0.0)])
def test_folds_that_all_say_the_same_leave_no_doubt(d, p):
    found = corrected_difference(d, 0.25)
    assert found.p_value == pytest.approx(p)
    assert found.low == found.high == pytest.approx(d[0])


@pytest.mark.parametrize("bad", [[0.1], [[0.1, 0.2]], [0.1, np.nan]])
def test_too_few_or_missing_differences_are_refused(bad):
    with pytest.raises(ValueError, match="two finite numbers"):
        corrected_difference(bad, 0.25)


def test_two_equal_settings_are_called_different_about_as_often_as_the_level_says():
    # ten folds of the same 200 rows: errors of a classifier that learned nothing from them
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(400):
        a, b = rng.random((2, 200)) < 0.3
        folds = np.array_split(rng.permutation(200), 10)
        d = [a[rows].mean() - b[rows].mean() for rows in folds]
        rejected += corrected_difference(d, 1 / 9).p_value < 0.05
    assert rejected / 400 < 0.07


def test_a_level_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="level=95: expected a number between 0 and 1"):
        corrected_difference([0.1, 0.2], 0.25, level=95)
