"""Rademacher averages against their definition, sign vector by sign vector."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from toprank.bounds import (
    rademacher_average,
    rkhs_rademacher,
    separate_pair_errors,
    vc_rademacher,
)


@given(
    arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-9, 9)),
    st.booleans(),
)
def test_few_points_are_averaged_over_every_sign_vector(table, absolute):
    m = table.shape[1]
    total = 0.0
    for signs in product((-1, 1), repeat=m):
        sums = [sum(s * v for s, v in zip(signs, row, strict=True)) / m for row in table]
        total += max(abs(x) for x in sums) if absolute else max(sums)
    average = rademacher_average(table, absolute=absolute)
    assert average.value == pytest.approx(total / 2**m, rel=1e-9, abs=1e-9)


def test_random_signs_agree_with_every_sign_vector():
    rng = np.random.default_rng(0)
    table = rng.random((5, 14)) < 0.5
    signs = np.array(list(product((-1.0, 1.0), repeat=14)))
    exact = np.mean(np.max(np.abs(signs @ table.T), axis=1)) / 14
    drawn = rademacher_average(table, n_draws=20_000, random_state=0)
    assert drawn.value == pytest.approx(exact, abs=0.004)
    assert "standard error" in drawn.statement
    assert drawn == rademacher_average(table, n_draws=20_000, random_state=0)


def test_many_functions_are_held_in_blocks():
    table = np.random.default_rng(0).choice([-1.0, 1.0], size=(30_000, 20))
    average = rademacher_average(table, n_draws=200, random_state=0)
    assert 0.5 < average.value < 1.0  # nearly any signs of 20 points are followed


def test_a_class_that_follows_any_signs_is_vacuous():
    everything = np.array(list(product((-1.0, 1.0), repeat=4)))
    average = rademacher_average(everything)
    assert average.value == 1.0 and average.vacuous
    assert not rademacher_average(everything[:1]).vacuous
    assert not rademacher_average(np.zeros((2, 3))).vacuous


def test_a_class_by_its_supremum():
    X = np.random.default_rng(0).normal(size=(10, 3))
    signs = np.array(list(product((-1.0, 1.0), repeat=10)))
    expected = np.mean(np.linalg.norm(signs @ X, axis=1)) * 1.5 / 10

    def ball(signs):
        return 1.5 * np.linalg.norm(signs @ X, axis=1) / 10

    average = rademacher_average(ball, n_points=10)
    assert average.value == pytest.approx(expected)
    # the same ball as a reproducing kernel Hilbert space with k(w, w) = |w|^2
    bound = rkhs_rademacher(radius=1.5, kernel_diagonal=np.sum(X**2, axis=1))
    assert average.value <= bound.value


def test_separate_pairs_are_row_i_with_row_m_plus_i():
    y = np.array([3.0, 1.0, 2.0, 1.0, 2.0, 2.0, 9.0])  # the seventh row has no partner
    scores = np.array([[5.0, 1.0, 4.0, 5.0, 1.0, 3.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]])
    # pairs (1st, 4th): 3 > 1; (2nd, 5th): 1 < 2; (3rd, 6th): tied labels are never misranked.
    # Of tied scores the first counts as the larger.
    expected = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(separate_pair_errors(y, scores), expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [  # (B/m) sqrt(sum k(w_i, w_i))
        (dict(radius=2.0, kernel_diagonal=[1.0, 4.0, 4.0]), 2.0 / 3 * 3.0),
        (dict(radius=0.5, kernel_diagonal=np.full(100, 0.25)), 0.5 / 100 * 5.0),
        (dict(radius=3.0, kernel_diagonal=2.0, n=401), 3.0 / 200 * sqrt(400.0)),
    ],
)
def test_the_ball_of_a_kernel(arguments, expected):
    assert rkhs_rademacher(**arguments).value == pytest.approx(expected, rel=1e-14)


def test_the_ball_of_a_kernel_says_when_it_says_nothing():
    assert rkhs_rademacher(radius=2.0, kernel_diagonal=1.0, n=3).vacuous
    assert not rkhs_rademacher(radius=2.0, kernel_diagonal=1.0, n=4).vacuous


@pytest.mark.parametrize(
    ("dimension", "n", "constant", "expected"),
    [(9, 90_000, 2.0, 0.02), (1, 100, 1.0, 0.1), (5, 500, 3.0, 0.3)],
)
def test_the_vapnik_chervonenkis_average(dimension, n, constant, expected):
    bound = vc_rademacher(vc_dimension=dimension, n=n, constant=constant)
    assert bound.value == pytest.approx(expected)
    assert any("unknown universal constant" in assumption for assumption in bound.assumes)
    assert vc_rademacher(vc_dimension=dimension, n=2, constant=5.0).vacuous


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rademacher_average(lambda s: s), "n_points is needed"),
        (lambda: rademacher_average(lambda s: s, n_points=3), "expected one finite number"),
        (lambda: rademacher_average([[1.0]], n_points=3), "n_points=3 is not needed"),
        (lambda: rademacher_average([[np.nan]]), "NaN"),
        (lambda: rademacher_average([[1.0]], n_draws=1), "n_draws=1"),
        (lambda: rademacher_average([[1e308] * 20] * 2), "rescale"),
        (lambda: separate_pair_errors([0, 1], [[0.1, 0.2, 0.3]]), "shape"),
        (lambda: separate_pair_errors([0], [0.1]), "at least two rows"),
        (lambda: rkhs_rademacher(radius=0.0, kernel_diagonal=1.0, n=9), "radius=0.0"),
        (lambda: rkhs_rademacher(radius=1.0, kernel_diagonal=1.0), "together with n"),
        (lambda: rkhs_rademacher(radius=1.0, kernel_diagonal=[1.0], n=9), "without n"),
        (lambda: rkhs_rademacher(radius=1.0, kernel_diagonal=[-1.0]), "not negative"),
        (lambda: vc_rademacher(vc_dimension=3, n=9, constant=0.0), "constant=0.0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
