"""The picture of a metric against p."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from sklearn.exceptions import NotFittedError  # noqa: E402

from toprank import IRPush, PNormPushCV  # noqa: E402
from toprank.inference import interval  # noqa: E402
from toprank.plots import PushPathDisplay  # noqa: E402
from toprank.tuning import choose_p  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    y = np.arange(150) % 3 == 0
    return rng.normal(size=(150, 2)) + y[:, None] * [1.0, 0.3], y.astype(int)


@pytest.fixture(scope="module")
def ranker(rows):
    return PNormPushCV((1, 4, np.inf), alphas=(0.1, 1.0), cv=3).fit(*rows)


def test_the_path_is_the_mean_of_the_best_alpha_of_each_p(ranker):
    display = PushPathDisplay.from_estimator(ranker)
    lines = [line for line in ranker.choice_.table() if line["p"] is not None]
    np.testing.assert_allclose(display.line_.get_ydata(), [line["mean"] for line in lines])
    without = ranker.choice_.table()[0]["mean"]
    np.testing.assert_allclose(display.baseline_.get_ydata(), without)
    assert display.figure_ is display.ax_.figure


def test_p_stands_at_its_logarithm_and_infinity_beyond(ranker):
    ax = PushPathDisplay.from_estimator(ranker).ax_
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "4", "∞"]
    np.testing.assert_allclose(ax.get_xticks(), [0, 2, 4])


def test_the_choice_gets_a_ring_only_if_it_pushes():
    display = PushPathDisplay(ps=[1, 2, 4], values=[0.1, 0.3, 0.2], chosen=2).plot()
    assert display.chosen_.get_xydata().tolist() == [[1.0, 0.3]]
    assert PushPathDisplay(ps=[1, 2], values=[0.1, 0.3]).plot().chosen_ is None


def test_scores_of_several_p_are_drawn_with_their_intervals(rows):
    X, y = rows
    scores = {8: X[:, 0], 1: X[:, 0] + X[:, 1]}
    display = PushPathDisplay.from_predictions(
        y, scores, metric_kwargs={"k": 20}, baseline=X[:, 1], name="two"
    )
    first = interval("precision_at", y, scores[1], k=20)
    assert display.values[0] == first.estimate and display.low[0] == first.low
    assert display.ax_.get_ylabel() == "precision_at(k=20), held out"
    with pytest.raises(ValueError, match="empty"):
        PushPathDisplay.from_predictions(y, {})


def test_several_paths_share_the_axes_and_are_told_apart():
    one = PushPathDisplay(ps=[1, 4], values=[0.1, 0.3], name="a").plot()
    two = PushPathDisplay(ps=[1, 16], values=[0.2, 0.3], name="b").plot(one.ax_)
    assert two.ax_ is one.ax_
    assert one.line_.get_color() != two.line_.get_color()
    assert one.line_.get_linestyle() != two.line_.get_linestyle()
    assert [tick.get_text() for tick in two.ax_.get_xticklabels()] == ["1", "4", "16"]
    assert [text.get_text() for text in two.ax_.get_legend().get_texts()] == ["a", "b"]


def test_what_choose_p_found_can_be_drawn(rows):
    choice = choose_p(IRPush(), *rows, cv=3)
    with pytest.raises(ValueError, match="no p to draw"):
        PushPathDisplay.from_choice(choice)


def test_an_unfitted_ranker_and_a_p_of_zero_are_refused():
    with pytest.raises(NotFittedError):
        PushPathDisplay.from_estimator(PNormPushCV())
    with pytest.raises(ValueError, match="positive numbers"):
        PushPathDisplay(ps=[0, 1], values=[1, 2]).plot()
