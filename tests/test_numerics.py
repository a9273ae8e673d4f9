"""Sums of exponentials, sorting by runs and long tails at their edges."""

import numpy as np
import pytest

from toprank import _numerics
from toprank._numerics import find_long_tail, log_sum_exp, softmax, sort_runs, stable_order


def test_no_terms_and_terms_of_nothing_have_no_mass():
    assert log_sum_exp(np.empty(0)) == -np.inf
    assert log_sum_exp(np.array([np.inf, 0.0])) == np.inf
    assert softmax(np.full(3, -np.inf)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 40])
def test_runs_are_sorted_as_the_whole_is(n, monkeypatch):
    monkeypatch.setattr(_numerics, "_RUN", 7)
    values = np.random.default_rng(n).integers(0, 5, n).astype(float)
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))
    wanted = np.sort(values)
    sort_runs(values)
    assert np.array_equal(values, wanted)


def test_a_column_that_is_mostly_one_number_has_the_tail_of_its_different_ones():
    assert find_long_tail(np.zeros(100)) is None
    assert find_long_tail(np.r_[np.zeros(5_000), 1.0]) is None  # a flag
    rare = np.r_[np.zeros(100_000), np.arange(1.0, 300.0), 1e6]
    tail = find_long_tail(rare)
    assert 0 < tail.low < tail.high < 300 and tail.farthest == 1e6
    weighted = find_long_tail(np.r_[0.0, np.arange(1.0, 300.0), 1e6], np.r_[100_000, np.ones(300)])
    assert (weighted.low, weighted.high) == (tail.low, tail.high)
