"""LiftDisplay: the right curve and band, between a random and a perfect order."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from sklearn.linear_model import LogisticRegression  # noqa: E402

from toprank.inference import lift_band  # noqa: E402
from toprank.metrics import lift_at  # noqa: E402
from toprank.plots import LiftDisplay  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [360, 40])
    return y, rng.normal(size=400) + 1.5 * y


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_curve_is_the_lift_and_the_band_is_that_of_the_inference_room(rows):
    top = [0.01, 0.1, 1.0]
    display = LiftDisplay.from_predictions(*rows, top=top, level=0.9)
    np.testing.assert_allclose(display.line_.get_ydata(), [lift_at(*rows, k) for k in top])
    band = lift_band(*rows, 0.9, top=top)
    np.testing.assert_allclose(display.low, band.low)
    np.testing.assert_allclose(display.high, band.high)
    assert display.band_ in display.ax_.collections and display.figure_ is display.ax_.figure


def test_the_picture_starts_at_ten_rows_and_stays_below_the_perfect_order(rows):
    display = LiftDisplay.from_predictions(*rows)
    assert display.top[0] == pytest.approx(10 / 400) and display.top[-1] == 1.0
    ceiling = 1 / np.maximum(display.top, 0.1)
    assert np.all(display.lift <= ceiling + 1e-12)
    perfect = LiftDisplay.from_predictions(rows[0], rows[0])
    np.testing.assert_allclose(perfect.lift, ceiling)


def test_no_level_draws_no_band(rows):
    display = LiftDisplay.from_predictions(*rows, level=None)
    assert display.band_ is None and not display.ax_.collections


def test_several_curves_share_one_random_and_one_perfect_order_named_last(rows):
    y, s = rows
    first = LiftDisplay.from_predictions(y, s, name="a")
    LiftDisplay.from_predictions(y, -s, name="b", ax=first.ax_, lw=3)
    size = "(n = 400, 40 positive)"
    assert texts(first.ax_) == [f"a {size}", f"b {size}", "random order", "perfect order"]
    a, b = first.ax_.lines[0], first.ax_.lines[-1]
    assert a.get_color() != b.get_color() and a.get_linestyle() != b.get_linestyle()
    assert b.get_linewidth() == 3


def test_a_weight_is_a_repetition_count(rows):
    y, s = rows
    count = np.arange(400) % 3
    weighted = LiftDisplay.from_predictions(y, s, sample_weight=count)
    repeated = LiftDisplay.from_predictions(np.repeat(y, count), np.repeat(s, count))
    np.testing.assert_allclose(weighted.lift, repeated.lift)
    np.testing.assert_allclose(weighted.low, repeated.low)
    assert weighted.n_rows == repeated.n_rows == count.sum()


def test_an_estimator_ranks_for_the_class_asked_for(rows):
    y, s = rows
    model = LogisticRegression().fit(s[:, None], y)
    display = LiftDisplay.from_estimator(model, s[:, None], y)
    assert texts(display.ax_)[0].startswith("LogisticRegression (n = 400")
    np.testing.assert_allclose(display.lift, LiftDisplay.from_predictions(y, s).lift)
    other = LiftDisplay.from_estimator(model, s[:, None], y, pos_label=0)
    assert other.prevalence == pytest.approx(0.9)


def test_a_list_of_three_rows_can_be_drawn():
    display = LiftDisplay.from_predictions([0, 1, 0], [0.1, 0.9, 0.5])
    assert display.lift[0] == 3.0 and display.lift[-1] == 1.0
    display.figure_.canvas.draw()


def test_a_curve_of_ones_own_has_no_size_and_huge_numbers_no_place():
    curve = {"top": np.array([0.1, 1.0]), "prevalence": 0.2, "name": "mine"}
    display = LiftDisplay(lift=np.array([3.0, 1.0]), **curve)
    assert display.plot().line_.get_label() == "mine"
    with pytest.raises(ValueError, match=r"as large as 1e\+305 cannot be drawn"):
        LiftDisplay(lift=np.array([1e305, 1.0]), **curve).plot()
