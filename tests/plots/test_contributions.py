"""PairContributionDisplay and DiscountDisplay: Figures 1, 3 and 4 of Rudin (2009)."""

import json

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from matplotlib import pyplot  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from toprank import IRPush, PNormPush, PushRanker  # noqa: E402
from toprank.losses import get_loss  # noqa: E402
from toprank.metrics import push_risk  # noqa: E402
from toprank.plots import DiscountDisplay, PairContributionDisplay  # noqa: E402

SQUARES = (lambda r: np.maximum(2 - r, 0) ** 2, lambda r: -2 * np.maximum(2 - r, 0))
LIST = np.array([1, 1, 0] * 6 + [0, 0])


def double_loop(y, f, g, loss, outer="negatives", weight=None):
    """c_ik = g(S) l_ik / S, from the definition; rows are positives, highest first."""
    weight = np.ones(len(y)) if weight is None else weight
    order = np.argsort(-f, kind="stable")
    y, f, weight = y[order], f[order], weight[order]
    losses = get_loss(loss).value(np.subtract.outer(f[y == 1], f[y == 0]))
    if outer == "negatives":
        S = weight[y == 1] @ losses
        return weight[y == 1][:, None] * losses * (weight[y == 0] * g(S) / S)
    S = losses @ weight[y == 0]
    return weight[y == 0] * losses * (weight[y == 1] * g(S) / S)[:, None]


def test_the_list_of_the_paper_is_the_one_drawn_here(shared):
    kept = json.loads((shared / "golden" / "pair_contributions_list.json").read_text())
    np.testing.assert_array_equal(np.array(kept["y"]) > 0, LIST == 1)
    assert kept["f_times_20"] == list(range(20, 0, -1))


@pytest.mark.parametrize("p", [1, 2, 4, 8])
def test_figure_1_shows_the_contribution_of_every_pair(p):
    f = np.arange(20, 0, -1) / 20
    display = PairContributionDisplay.from_predictions(LIST, f, p=p)
    expected = double_loop(LIST, f, lambda S: S**p, "exponential")
    assert display.contributions.shape == (12, 8)
    np.testing.assert_allclose(display.contributions, expected / expected.sum())
    risk = push_risk(LIST, f, p=p)
    np.testing.assert_allclose(display.contributions * risk, expected)
    # the upper left corner is the lowest positive and the highest negative: the worst pair
    drawn = display.mesh_.get_array().reshape(12, 8)
    assert np.unravel_index(np.argmax(drawn), drawn.shape) == (11, 0)
    assert display.ax_.get_ylim() == (0.5, 12.5) and display.ax_.get_title() == f"p = {p}"


def test_larger_p_moves_the_contributions_to_the_highest_negatives():
    f = np.arange(20, 0, -1) / 20
    first = [
        PairContributionDisplay.from_predictions(LIST, f, p=p).contributions[:, 0].sum()
        for p in (1, 2, 4, 8, np.inf)
    ]
    assert np.all(np.diff(first) > 0) and first[-1] == pytest.approx(1)


def test_figure_4_shares_the_price_of_each_positive_among_the_negatives():
    f = np.arange(20, 0, -1) / 20
    display = PairContributionDisplay.from_predictions(LIST, f, price="log1p")
    expected = double_loop(LIST, f, np.log1p, "exponential", "positives")
    np.testing.assert_allclose(display.contributions, expected / expected.sum())
    assert display.ax_.get_title() == "IR Push"


@given(st.integers(0, 10**6))
def test_any_price_loss_end_and_weight_follows_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    y = np.arange(n) % 3 == 0
    f, weight = rng.normal(size=n), rng.integers(1, 4, size=n).astype(float)
    price, g = [("power", lambda S: S**3), ("exponential", np.exp), ("identity", lambda S: S)][
        int(rng.integers(3))
    ]
    loss = ["exponential", "logistic", "squared_hinge", SQUARES][int(rng.integers(4))]
    end = ["top", "bottom"][int(rng.integers(2))]
    display = PairContributionDisplay.from_predictions(
        y, f, price=price, p=3, loss=loss, end=end, sample_weight=weight, colorbar=False
    )
    outer = "negatives" if end == "top" else "positives"
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        expected = double_loop(y, f, g, loss, outer, weight)
    if np.all(np.isfinite(expected)):
        np.testing.assert_allclose(
            display.contributions, expected / expected.sum(), atol=1e-9, rtol=1e-6
        )
    pyplot.close("all")


def test_a_long_list_is_drawn_in_cells_that_sum_the_pairs():
    rng = np.random.default_rng(1)
    y, f = (np.arange(90) % 3 == 0).astype(int), rng.normal(size=90)
    fine = PairContributionDisplay.from_predictions(y, f, p=2, max_cells=1000)
    coarse = PairContributionDisplay.from_predictions(y, f, p=2, max_cells=7)
    assert fine.contributions.shape == (30, 60) and coarse.contributions.shape == (7, 7)
    rows, columns = (
        np.asarray(e[:-1] - 0.5, int) for e in (coarse.positive_edges, coarse.negative_edges)
    )
    summed = np.add.reduceat(np.add.reduceat(fine.contributions, rows, 0), columns, 1)
    np.testing.assert_allclose(coarse.contributions, summed)


def test_far_scores_and_a_hard_push_stay_finite():
    f = 1e4 * np.arange(20, 0, -1.0)
    shares = PairContributionDisplay.from_predictions(LIST, f, p=1000).contributions
    assert np.all(np.isfinite(shares)) and shares.sum() == pytest.approx(1)
    separated = PairContributionDisplay.from_predictions(LIST, 10.0 * LIST, loss="hinge")
    assert np.all(separated.contributions == 0)


def test_an_estimator_brings_its_own_risk():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    for ranker, risk in (
        (make_pipeline(StandardScaler(), PNormPush(8)), {"p": 8}),
        (PushRanker("exponential", loss="logistic"), {"price": "exponential", "loss": "logistic"}),
        (IRPush(), {"price": "log1p"}),
    ):
        ranker.fit(X, y)
        display = PairContributionDisplay.from_estimator(ranker, X, y)
        same = PairContributionDisplay.from_predictions(y, ranker.decision_function(X), **risk)
        np.testing.assert_allclose(display.contributions, same.contributions)


def test_both_ends_and_no_cells_are_refused():
    with pytest.raises(ValueError, match="one end"):
        PairContributionDisplay.from_predictions([0, 1], [0, 1], end="both")
    with pytest.raises(ValueError, match="at least one cell"):
        PairContributionDisplay.from_predictions([0, 1], [0, 1], max_cells=0)


def test_figure_3_has_the_discounts_from_the_top_down():
    display = DiscountDisplay.of_the_paper([1, 3, 10])
    dcg, aver, ir = (line.get_ydata() for line in display.lines_)
    np.testing.assert_allclose(dcg, 1 / np.log([2, 4, 11]))
    np.testing.assert_allclose(aver, [1, 1 / 3, 1 / 10])
    np.testing.assert_allclose(ir, -np.log([2, 4, 11]))
    assert np.all(dcg > aver) and np.all(aver > ir)
    with pytest.raises(ValueError, match="positive numbers"):
        DiscountDisplay.of_the_paper([0, 1])


def test_a_risk_beyond_every_float_has_no_shares():
    from toprank.plots.contributions import _shares
    from toprank.prices import get_price

    log_s = np.array([800.0, 1.0])
    price = get_price("exponential")
    with pytest.raises(ValueError, match="beyond the range of floats"):
        _shares(price, log_s, np.zeros(2))
