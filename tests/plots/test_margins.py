"""MarginDisplay: the distribution of the margins of all pairs, and its scale."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


from toprank import PNormPush, RankBoost  # noqa: E402
from toprank.inference import interval  # noqa: E402
from toprank.plots import MarginDisplay  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [30, 20])
    return rng.normal(size=(50, 2)) + y[:, None], y


def test_the_curve_is_the_share_of_the_pairs_with_at_most_this_margin(rows):
    X, y = rows
    display = MarginDisplay.from_predictions(y, X[:, 0])
    margins = np.subtract.outer(X[y == 1, 0], X[y == 0, 0]).ravel()
    shares = [np.mean(margins <= theta + 1e-12) for theta in display.thetas]
    np.testing.assert_allclose(display.shares, shares)
    assert display.shares[0] > 0 and display.shares[-1] == 1.0
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["20 × 30 pairs", "tie: misranked to the left"]


def test_the_band_is_the_interval_of_the_margin_error(rows):
    X, y = rows
    display = MarginDisplay.from_predictions(y, X[:, 0], [0.0, 0.5], norm=2.0, level=0.8)
    for j, theta in enumerate((0.0, 1.0)):
        one = interval("margin_error", y, X[:, 0], theta=theta, level=0.8)
        assert (display.low[j], display.high[j]) == (one.low, one.high)
        assert display.shares[j] == pytest.approx(one.estimate)
    assert MarginDisplay.from_predictions(y, X[:, 0], level=None).band_ is None


def test_margins_of_an_estimator_are_divided_by_its_coefficients(rows):
    X, y = rows
    ranker = PNormPush(2).fit(X, y)
    display = MarginDisplay.from_estimator(ranker, X, y)
    assert display.norm == pytest.approx(np.abs(ranker.coef_).sum())
    boosted = RankBoost(5).fit(X, y)
    boosted = MarginDisplay.from_estimator(boosted, X, y, ax=display.ax_)
    # a combination of {0, 1} weak rankers with weights that sum to one
    assert -1 <= boosted.thetas[0] <= boosted.thetas[-1] <= 1
    assert MarginDisplay.from_estimator(ranker, X, y, norm=1.0).norm == 1.0


def test_a_single_positive_has_a_curve_and_no_band():
    display = MarginDisplay.from_predictions([0, 0, 1], [0.0, 1.0, 0.5])
    assert display.band_ is None and display.shares[-1] == 1.0


def test_a_curve_of_ones_own_needs_no_sizes():
    display = MarginDisplay(thetas=[0, 1], shares=[0.2, 1.0], name="mine").plot(ls=":")
    assert display.ax_.get_legend().get_texts()[0].get_text() == "mine"
