"""A kept Hessian learns from steps: along them, and, where it is told to, everywhere."""

import numpy as np
import pytest

from toprank.solvers.newton_step import Factor, KeptHessian, Patience


@pytest.mark.parametrize("steady", [True, False])
def test_a_hessian_that_shrinks_does_so_in_every_direction(steady):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 5)) * (1.0 if steady else np.logspace(0, -5, 5))
    matrix, step = A.T @ A, rng.normal(size=5)
    target = matrix @ rng.normal(size=5)
    kept = KeptHessian(matrix.copy())
    before = kept.solve(target)
    kept.shrink(step, 0.6 * matrix @ step)
    np.testing.assert_allclose(kept.matrix, 0.6 * matrix, rtol=1e-12)
    np.testing.assert_allclose(0.6 * kept.solve(target), before, rtol=1e-6)
    kept.learn(step, 0.6 * matrix @ step)  # which it foresees
    np.testing.assert_allclose(0.6 * kept.solve(target), before, rtol=1e-6)


@pytest.mark.parametrize("seen", [1.2, 0.0, -1.0, np.nan])
def test_a_hessian_does_not_grow_or_turn(seen):
    matrix, step = np.diag([1.0, 2.0]), np.array([1.0, 1.0])
    kept = KeptHessian(matrix.copy())
    kept.shrink(step, seen * matrix @ step)
    assert kept.matrix.tolist() == matrix.tolist()
    assert kept.solve(step) == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize("kind", ["steady", "badly conditioned", "without a factor"])
def test_a_factor_answers_as_the_hessian_that_it_is_of(kind):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(9, 5)) * np.logspace(0, 3, 5)
    if kind == "badly conditioned":
        A[:, 1] = A[:, 0] + 1e-4 * A[:, 1]
    matrix, step = A.T @ A, rng.normal(size=5)
    scale = matrix.diagonal() ** -0.5
    scaled = matrix * scale * scale[:, None]
    both = np.linalg.cholesky(scaled) + np.triu(scaled, 1)
    if kind == "without a factor":
        np.fill_diagonal(both, np.nan)
    factor, damping = Factor(both, scale), 0.1 * matrix.diagonal()
    np.testing.assert_allclose(factor.matrix, matrix, rtol=1e-12)
    np.testing.assert_allclose(factor.diagonal(), matrix.diagonal(), rtol=1e-12)
    kept, plain = KeptHessian(factor), KeptHessian(matrix.copy())
    target = matrix @ rng.normal(size=5)
    for change in (2.0, 0.5):
        for given in (None, damping):
            want = plain.solve(target, given)
            np.testing.assert_allclose(kept.solve(target, given), want, rtol=1e-4)
        for one in (kept, plain):
            one.shrink(step, 0.7 * matrix @ step)
            one.learn(step, change * matrix @ step)
    np.testing.assert_allclose(kept.matrix, plain.matrix, rtol=1e-9, atol=1e-9)


def test_a_factor_of_what_is_no_number_gives_no_step():
    factor = Factor(np.full((2, 2), np.nan), np.ones(2))
    assert np.isnan(KeptHessian(factor).solve(np.ones(2))).all()


def test_patience_ends_a_walk_in_circles_and_no_other():
    patience = Patience(np.inf, np.inf, 3)
    assert not patience.ends(5.0, 1.0)  # the first point is lower than none
    circle = [(5.0, 2.0), (5.0 + 1e-15, 3.0), (5.0 - 1e-15, 1.5)]  # values differ by rounding
    assert [patience.ends(*point) for point in circle] == [False, False, True]
    patience = Patience(5.0, 1.0, 3)
    walk = [(5.0, 2.0), (5.0, 2.0), (4.9, 2.0), (4.9, 0.9), (4.9, 2.0), (5.0, 1.0)]
    assert not any(patience.ends(*point) for point in walk)
