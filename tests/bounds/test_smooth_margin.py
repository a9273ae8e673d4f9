"""Lemma 20 and Figure 2 of Rudin & Schapire (2009): each step gains enough."""

import numpy as np
import pytest

from toprank.bounds import smooth_margin_progress, smooth_margin_step
from toprank.rankers.boosting.stumps import Masses


def grid(n=60):
    r = np.linspace(0.005, 0.995, n)[:, None, None]
    g = r * np.linspace(0.0, 0.999, n)[None, :, None]
    d0 = 2 / 3 * (1 - r) * (1 - r * r) * np.linspace(0.0, 0.9999, n)[None, None, :]
    return r, g, d0


def test_lemma_20_holds_on_a_grid_of_its_whole_range():
    progress = smooth_margin_progress(*grid())
    assert np.all(progress > 0.5)
    assert progress.min() < 0.502  # and it is sharp: 1/2 is the limit as g -> r


def test_figure_2_lies_above_one_half():
    r = np.linspace(0.01, 0.85, 80)[:, None]
    g = np.linspace(0.0, 0.84, 80)[None, :]
    surface = smooth_margin_progress(r, g, 0.01)
    known = np.isfinite(surface)
    assert np.array_equal(known, np.broadcast_to(g < r, surface.shape))
    inside = known & (0.01 < 2 / 3 * (1 - r) * (1 - r * r))
    assert np.all(surface[inside] > 0.5)


def test_beyond_the_condition_the_lemma_fails_somewhere():
    """The condition is needed: with d0 close to 1 - r the gain falls below one half."""
    r = np.linspace(0.05, 0.95, 40)[:, None]
    progress = smooth_margin_progress(r, 0.5 * r, (1 - r) * 0.9999)
    assert np.nanmin(progress) < 0.5


@pytest.mark.parametrize(("r", "g", "d0"), [(0.4, 0.1, 0.2), (0.9, 0.3, 0.01), (0.2, 0.0, 0.0)])
def test_the_step_is_that_of_the_ranker_and_solves_equation_11(r, g, d0):
    plus, minus = (1 + r - d0) / 2, (1 - r - d0) / 2
    step = float(smooth_margin_step(r, g, d0))
    assert step == pytest.approx(Masses(plus, minus, d0).ascent(g, 5.0, 1.0))
    tau = plus * np.exp(-step) + minus * np.exp(step) + d0
    assert g * tau == pytest.approx(plus * np.exp(-step) - minus * np.exp(step), abs=1e-12)


def test_theorem_7_is_the_lemma_in_a_round():
    r, g, d0, norm = 0.5, 0.2, 0.1, 3.0
    step = float(smooth_margin_step(r, g, d0))
    plus, minus = (1 + r - d0) / 2, (1 - r - d0) / 2
    log_f = -g * norm
    after = -(log_f + np.log(plus * np.exp(-step) + minus * np.exp(step) + d0)) / (norm + step)
    progress = float(smooth_margin_progress(r, g, d0))
    assert after - g == pytest.approx(progress * step * (r - g) / (norm + step))
    assert after - g >= 0.5 * step * (r - g) / (norm + step)


def test_impossible_rounds_are_refused():
    with pytest.raises(ValueError, match="No round has such numbers"):
        smooth_margin_progress(0.5, 0.2, 0.9)
    with pytest.raises(ValueError, match="No round has such numbers"):
        smooth_margin_step(0.2, 0.5, 0.0)


def test_where_the_margin_meets_the_edge_the_limit_is_one_half():
    r = np.array([0.01, 0.3, 0.9])
    for gap in (1e-3, 1e-6, 1e-12, 1e-16):
        progress = smooth_margin_progress(r, r * (1 - gap), 0.005)
        assert np.all(progress[r * (1 - gap) < r] >= 0.5)
        assert np.nanmax(progress) < 0.5 + 5 * max(gap, 1e-9)
