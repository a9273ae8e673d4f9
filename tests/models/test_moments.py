"""Sums of many columns at once are the exact ones, rounded once."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from toprank.models import moments
from toprank.models.moments import Moments, as_float, exact_sum, exact_sums

SMALLEST, LARGEST = 5e-324, np.finfo(float).max


@pytest.mark.parametrize("span", [0, 3, 100])
@pytest.mark.parametrize("n", [1, 7, 300, 5000])
def test_every_line_of_a_matrix_is_added_up_without_rounding(n, span):
    rng = np.random.default_rng(n)
    lines = rng.normal(size=(5, n)) * 10.0 ** rng.integers(-span, span + 1, size=(5, n))
    lines[1] = np.round(lines[1])
    lines[2] = 0.0
    expected = [float(sum(map(Fraction, line.tolist()))) for line in lines]
    assert [as_float(total) for total in exact_sums(lines)] == expected


def test_neither_the_largest_nor_the_smallest_numbers_are_lost():
    lines = np.array([[LARGEST, SMALLEST, -LARGEST, 0.0], [SMALLEST, SMALLEST, 1.0, -1.0]])
    assert [as_float(total) for total in exact_sums(lines)] == [SMALLEST, 2 * SMALLEST]


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_together_have_the_moments_of_each_however_the_rows_are_cut(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 300)) * 10.0 ** rng.integers(-50, 50, size=300)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 7] = np.nan
    w = rng.exponential(size=len(X)) if weighted else None

    def of(rows):
        columns = ((str(j), X[rows, j]) for j in range(X.shape[1]))
        return Moments.of_columns(columns, None if w is None else w[rows])

    first, second, whole = of(slice(123)), of(slice(123, None)), of(slice(None))
    assert [*whole] == [str(j) for j in range(X.shape[1])]
    for j in range(X.shape[1]):
        assert whole[str(j)] == Moments.of(X[:, j], w)
        assert whole[str(j)] == first[str(j)].merge(second[str(j)])


def test_mean_and_variance_are_rounded_once():
    x = np.random.default_rng(1).normal(size=50).tolist()
    mean = sum(map(Fraction, x)) / len(x)
    found = Moments.of(np.array(x))
    assert found.mean == float(mean)
    assert found.variance == float(sum((Fraction(v) - mean) ** 2 for v in x) / len(x))


def test_numbers_of_two_hundred_sizes_do_not_take_a_round_for_each(monkeypatch):
    lines = 10.0 ** np.random.default_rng(2).uniform(-100, 100, size=(3, 4000))
    left = []
    monkeypatch.setattr(moments, "exact_sum", lambda rest: left.append(rest) or exact_sum(rest))
    assert exact_sums(lines) == [exact_sum(line) for line in lines]
    assert len(left) == len(lines)


@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_that_are_left_out_change_no_sum_and_no_order_of_columns(weighted):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6_000, 8)) * 10.0 ** rng.integers(-50, 50, size=8)
    X[rng.random(X.shape) < np.array([0, 0.99, 0.1, 0.5, 1, 0.4, 0.9, 0])] = np.nan
    w = rng.exponential(size=len(X)) if weighted else None
    whole = Moments.of_columns(((name, X[:, j]) for j, name in enumerate("hgfedcba")), w)
    assert [*whole] == list("hgfedcba")
    for j, name in enumerate("hgfedcba"):
        parts = [
            Moments.of(X[rows, j], None if w is None else w[rows])  # so short that gaps stay
            for rows in np.split(np.arange(len(X)), 6)
        ]
        merged = parts[0]
        for part in parts[1:]:
            merged = merged.merge(part)
        assert whole[name] == Moments.of(X[:, j], w) == merged


def test_a_column_of_gaps_takes_no_memory_for_their_sums():
    numbers = np.full(400_000, np.nan)
    numbers[::100] = 1.5
    tracemalloc.start()
    try:
        assert Moments.of(numbers).mean == 1.5
        assert Moments.of_columns([("x", numbers)])["x"].missing == 396_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < numbers.nbytes / 2
