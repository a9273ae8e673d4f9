"""What steps teach of an inverse Hessian, and in which form a grid reads its rows."""

import numpy as np
import pytest
from scipy import sparse

from toprank.tuning.rows import TuningRows
from toprank.tuning.together import InverseHessian


def hessian(size, seed=0):
    root = np.random.default_rng(seed).normal(size=(size, 2 * size))
    return root @ root.T / size


@pytest.mark.parametrize("size", [3, 40, 150])
def test_an_inverse_explains_every_step_it_has_learned_last(size):
    bent, rng = hessian(size), np.random.default_rng(1)
    inverse = InverseHessian.of(hessian(size, 2)).copy()
    for _ in range(4):
        step = rng.normal(size=size)
        inverse.learn(step, bent @ step)
        np.testing.assert_allclose(inverse.times(bent @ step), step, rtol=1e-8, atol=1e-8)


def test_small_and_large_inverses_learn_alike(monkeypatch):
    bent, rng = hessian(20), np.random.default_rng(1)
    steps = rng.normal(size=(5, 20))
    found = []
    for limit in (0, 128):
        monkeypatch.setattr("toprank.tuning.together._IN_PLACE_UP_TO", limit)
        inverse = InverseHessian.of(hessian(20, 2))
        for step in steps:
            inverse.learn(step, bent @ step)
        found.append(inverse.times(np.arange(20.0)))
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("size", [5, 150])
def test_what_a_copy_learns_the_original_does_not(size):
    first = InverseHessian.of(hessian(size))
    before = first.times(np.ones(size))
    first.copy().learn(np.ones(size), hessian(size, 3) @ np.ones(size))
    np.testing.assert_array_equal(first.times(np.ones(size)), before)


def test_a_step_along_which_the_gradient_does_not_rise_teaches_nothing():
    inverse = InverseHessian.of(np.eye(4))
    inverse.learn(np.ones(4), -np.ones(4))
    np.testing.assert_array_equal(inverse.times(np.ones(4)), np.ones(4))


def test_a_singular_hessian_has_an_inverse_all_the_same():
    flat = np.ones((4, 4))
    found = InverseHessian.of(flat).times(np.ones(4))
    np.testing.assert_allclose(flat @ found, np.ones(4), rtol=1e-6)


@pytest.mark.more
@pytest.mark.parametrize(("share", "thin"), [(0.05, True), (0.25, None), (0.9, False)])
def test_rows_are_read_in_the_lighter_form(share, thin):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 30)) < share, 1.0, 0.0)
    y = np.arange(200) % 2 == 0
    for given in (X, sparse.csr_array(X)):
        rows = TuningRows(given, y).in_lighter_form()
        kept = sparse.issparse(given) if thin is None else thin
        assert sparse.issparse(rows.X) is kept
        dense = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        np.testing.assert_array_equal(dense, X)
