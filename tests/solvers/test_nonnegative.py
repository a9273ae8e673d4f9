"""Non-negative least squares against every support, and against SciPy's silent failures."""

from itertools import combinations

import numpy as np
import pytest
from scipy import optimize

from toprank.solvers import max_price
from toprank.solvers.max_price import is_minimum, non_negative_least_squares


def by_every_support(columns, target):
    """The least distance over all supports whose plain fit is non-negative."""
    columns = columns / np.linalg.norm(columns, axis=0)
    size = columns.shape[1]
    best = np.linalg.norm(target)
    for count in range(1, size + 1):
        for support in combinations(range(size), count):
            fit = np.linalg.lstsq(columns[:, support], target, rcond=None)[0]
            if np.all(fit >= 0):
                best = min(best, np.linalg.norm(columns[:, support] @ fit - target))
    return best


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("trust", [True, False])
def test_the_answer_is_the_nearest_point_of_the_cone(seed, trust, monkeypatch):
    if not trust:  # what SciPy answers is of no use: the active set must find it
        monkeypatch.setattr(optimize, "nnls", lambda a, b, maxiter: (np.ones(a.shape[1]), 0.0))
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(rng.integers(1, 6), rng.integers(1, 7)))
    columns *= 10.0 ** rng.integers(-9, 9, size=columns.shape[1])
    target = rng.normal(size=len(columns))
    found = non_negative_least_squares(columns, target)
    assert np.all(found >= 0)
    expected = by_every_support(columns, target)
    assert np.linalg.norm(columns @ found - target) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_active_set_agrees_with_a_checked_answer_of_scipy(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(40, 60)) + 0.5
    columns[:, 30:] = columns[:, :30] * (1 + 1e-9 * rng.normal(size=30))  # nearly twins
    target = rng.normal(size=40)
    unit = columns / np.linalg.norm(columns, axis=0)
    x = max_price._active_set(unit, target)
    assert is_minimum(unit, target, x)
    scipys, _ = optimize.nnls(unit, target)
    assert np.linalg.norm(unit @ x - target) <= np.linalg.norm(unit @ scipys - target) + 1e-9


def test_a_wrong_answer_of_scipy_to_two_columns_is_not_believed(monkeypatch):
    # as in scipy issue 25389; free of signs the fit is (-1, 3), so that the minimum is (0, 1.5)
    columns, target = np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    monkeypatch.setattr(optimize, "nnls", lambda a, b, maxiter: (np.array([0.8, 0.4]), 0.0))
    assert non_negative_least_squares(columns, target) == pytest.approx([0.0, 1.5])


def test_a_target_of_zeros_and_a_column_of_zeros_give_zeros():
    assert np.all(non_negative_least_squares(np.zeros((3, 2)), np.ones(3)) == 0)
    assert np.all(non_negative_least_squares(np.ones((3, 2)), np.zeros(3)) == 0)
