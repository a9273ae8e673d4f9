"""Sums of many columns at once are the exact ones, rounded once."""

from fractions import Fraction

import numpy as np
import pytest

from toprank.models.moments import Moments, as_float, exact_sums

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
