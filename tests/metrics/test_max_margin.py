"""The largest margin, and the distribution of margins, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.metrics import margin_distribution, max_margin, ranking_margin


@st.composite
def games(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-1, 2, (draw(st.integers(1, 8)), draw(st.integers(1, 5)))).astype(float)


@given(games(), st.booleans())
def test_no_combination_beats_it_and_no_weights_undercut_it(M, signed):
    best = max_margin(M, signed=signed)
    rng = np.random.default_rng(0)
    coef = rng.dirichlet(np.full(M.shape[1], 0.5), 50)
    if signed:
        coef *= rng.choice([-1, 1], coef.shape)
    assert np.all(np.min(coef @ M.T, axis=1) <= best + 1e-9)
    edges = rng.dirichlet(np.ones(len(M)), 50) @ M
    assert np.all(np.max(np.abs(edges) if signed else edges, axis=1) >= best - 1e-9)


def test_it_is_found_where_it_is_known():
    assert max_margin(np.eye(4)) == pytest.approx(0.25)
    assert max_margin([[1.0], [1.0]]) == pytest.approx(1.0)
    assert max_margin([[1, -1], [-1, 1]]) == pytest.approx(0.0)
    assert max_margin([[-1.0]]) == pytest.approx(-1.0)
    assert max_margin([[-1.0]], signed=True) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e20, 1e300])
def test_it_grows_with_the_matrix_however_small_or_large(size):
    assert max_margin(size * np.array([[2.0, -1.0], [-1.0, 1.0]])) == pytest.approx(size / 5)
    assert max_margin(np.zeros((2, 3))) == 0


def test_a_matrix_with_holes_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        max_margin([[np.nan, 1.0]])


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 4.0))
def test_the_distribution_counts_the_pairs(seed, norm):
    rng = np.random.default_rng(seed)
    y = np.r_[1, 0, rng.integers(0, 2, 12)]
    s = rng.integers(0, 6, 14) / 2.0
    w = rng.integers(1, 4, 14).astype(float)
    margins = (s[y == 1][:, None] - s[y == 0][None, :]) / norm
    mass = w[y == 1][:, None] * w[y == 0][None, :]
    thetas, shares = margin_distribution(y, s, norm=norm, sample_weight=w)
    assert thetas[0] == pytest.approx(ranking_margin(y, s, norm=norm))
    assert shares[-1] == pytest.approx(1.0)
    for theta in (-1.1, -0.3, 0.05, 0.7):  # none of them a margin up to rounding
        if np.min(np.abs(margins - theta)) > 1e-9:
            _, share = margin_distribution(y, s, [theta], norm=norm, sample_weight=w)
            assert share[0] == pytest.approx(np.sum(mass[margins <= theta]) / mass.sum())
