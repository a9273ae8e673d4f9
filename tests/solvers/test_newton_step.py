"""A kept Hessian learns from steps: along them, and, where it is told to, everywhere."""

import numpy as np
import pytest

from toprank.solvers.newton_step import KeptHessian


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
