"""The objective in scores against the formulas written naively, and what it must not notice."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.losses import TRAINABLE_LOSSES, SmoothedHinge, from_callable, get_loss
from toprank.objective import build_objective
from toprank.prices import from_callable as price_from_callable

ENDS = ("top", "bottom", "both")
HYPERBOLA = from_callable(
    lambda r: np.hypot(1.0, r) - r,
    lambda r: r / np.hypot(1.0, r) - 1.0,
    lambda r: np.hypot(1.0, r) ** -3,
)
SQUARE = price_from_callable(lambda s: s**2, lambda s: 2 * s, lambda s: 2 + 0 * s)
LOSSES = {name: get_loss(name) for name in TRAINABLE_LOSSES}
LOSSES |= {"smoothed_hinge": SmoothedHinge(0.5), "custom": HYPERBOLA}
#: price, p
PRICES = {
    "identity": ("identity", 1.0),
    "power": ("power", 4.0),
    "steep power": ("power", 40.0),
    "exponential": ("exponential", 1.0),
    "log1p": ("log1p", 1.0),
    "max": ("max", 1.0),
    "infinite power": ("power", np.inf),
    "custom": (SQUARE, 1.0),
}
COMBINATIONS = [
    (price, loss, end)
    for price, loss, end in product(PRICES, LOSSES, ENDS)
    if price != "log1p" or loss == "exponential"
]
each_objective = pytest.mark.parametrize(("price", "loss", "end"), COMBINATIONS)


def objective(y, w=None, *, price="power", loss="exponential", end="top", balance=0.7):
    g, p = PRICES[price]
    return build_objective(y, w, price=g, p=p, loss=LOSSES[loss], end=end, balance=balance)


def sample(seed=0, n=9, spread=1.0):
    """Labels of both classes, scores and weights."""
    rng = np.random.default_rng(seed)
    y = np.append([True, False, False], rng.random(n - 3) < 0.5)
    return y, spread * rng.standard_normal(n), rng.uniform(0.2, 3.0, n), rng


def naive_heights(y, f, w, loss):
    """Heights of the negatives and reverse heights of the positives, by the double loop."""
    value = LOSSES[loss].value
    pos, neg = np.flatnonzero(y), np.flatnonzero(~y)
    down = [sum(w[i] * value(f[i : i + 1] - f[k])[0] for i in pos) for k in neg]
    up = [sum(w[k] * value(f[i : i + 1] - f[k])[0] for k in neg) for i in pos]
    return np.array(down), np.array(up)


def naive_objective(y, f, w, price, loss, end, balance):
    """F as DESIGN's section 2 writes it."""
    down, up = naive_heights(y, f, w, loss)
    w_pos, w_neg = w[y], w[~y]
    total_pos, total_neg = w_pos.sum(), w_neg.sum()
    name, p = PRICES[price]
    p = 1.0 if name == "identity" else p
    if name == "log1p":
        ends = {"top": w_pos @ np.log1p(up), "bottom": w_neg @ np.log1p(down)}
        return ends[end] if end != "both" else ends["top"] + balance * ends["bottom"]
    if name == "exponential" or name is SQUARE:
        g = np.exp if name == "exponential" else np.square
        ends = {"top": w_neg @ g(down), "bottom": w_pos @ g(up)}
        risk = ends[end] if end != "both" else ends["top"] + balance * ends["bottom"]
        return np.log(risk) if name == "exponential" else risk
    down, up = down / total_pos, up / total_neg
    if name == "max" or p == np.inf:
        norm = {"top": down.max(), "bottom": up.max(), "both": max(down.max(), up.max())}[end]
    else:
        ends = {"top": w_neg @ down**p / total_neg, "bottom": w_pos @ up**p / total_pos}
        risk = ends[end] if end != "both" else ends["top"] + balance * ends["bottom"]
        norm = risk ** (1 / p)
    return np.log(norm) if loss == "exponential" else norm


@pytest.mark.sampled(4)
@each_objective
def test_value_is_the_formula_of_the_design(price, loss, end):
    for seed in range(3):
        y, f, w, _ = sample(seed)
        F = objective(y, w, price=price, loss=loss, end=end, balance=0.7)
        expected = naive_objective(y, f, w, price, loss, end, 0.7)
        assert F.value(f) == pytest.approx(expected, rel=1e-11, abs=1e-12)
        assert F.value_grad(f)[0] == pytest.approx(expected, rel=1e-11, abs=1e-12)


@pytest.mark.sampled(5)
@each_objective
def test_form_is_the_one_that_is_convex(price, loss, end):
    form = objective(sample()[0], price=price, loss=loss, end=end).form
    if price in ("log1p", "custom"):
        assert form == "sum"
    elif price == "exponential":
        assert form == "log"
    else:
        assert form == ("log" if loss == "exponential" else "root")


def away_from_corners(y, f, loss):
    """Whether no margin lies so near a knot of the loss that a difference would cross it."""
    margins = f[y][:, None] - f[~y][None, :]
    return np.all(np.abs(margins - 1.0) > 1e-4) or not LOSSES[loss].pieces


@pytest.mark.sampled(4)
@each_objective
def test_gradient_is_the_difference_quotient_of_the_value(price, loss, end):
    for seed in range(3):
        y, f, w, rng = sample(seed)
        assert away_from_corners(y, f, loss)
        F = objective(y, w, price=price, loss=loss, end=end)
        value, gradient = F.value_grad(f)
        for _ in range(3):
            v, h = rng.standard_normal(len(f)), 1e-6
            quotient = (F.value(f + h * v) - F.value(f - h * v)) / (2 * h)
            assert gradient @ v == pytest.approx(quotient, rel=1e-6, abs=1e-7 * (1 + abs(value)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("price", "loss", "end"), [c for c in COMBINATIONS if c[0] not in ("max", "infinite power")]
)
def test_hessian_map_is_the_difference_quotient_of_the_gradient(price, loss, end):
    for seed in range(3):
        y, f, w, rng = sample(seed)
        F = objective(y, w, price=price, loss=loss, end=end)
        times = F.hessian_map(f)
        v, h = rng.standard_normal(len(f)), 1e-6
        quotient = (F.value_grad(f + h * v)[1] - F.value_grad(f - h * v)[1]) / (2 * h)
        size = 1 + np.max(np.abs(quotient))
        np.testing.assert_allclose(times(v), quotient, rtol=1e-5, atol=1e-7 * size)
        u = rng.standard_normal(len(f))
        assert u @ times(v) == pytest.approx(v @ times(u), rel=1e-9, abs=1e-10 * size)
        assert v @ times(v) >= -1e-9 * size
        both = times(np.stack([u, v], axis=1))
        np.testing.assert_allclose(both[:, 1], times(v), rtol=1e-9, atol=1e-11 * size)


@pytest.mark.sampled(7)
@each_objective
@given(seed=st.integers(0, 2**32), spread=st.sampled_from([0.3, 2.0]), part=st.floats(0.0, 1.0))
def test_objective_lies_below_its_chords(price, loss, end, seed, spread, part):
    y, f, w, rng = sample(seed, spread=spread)
    other = spread * rng.standard_normal(len(f))
    F = objective(y, w, price=price, loss=loss, end=end)
    ends = np.array([F.value(f), F.value(other)])
    chord = part * ends[0] + (1 - part) * ends[1]
    between = F.value(part * f + (1 - part) * other)
    assert between <= chord + 1e-10 * (1 + np.max(np.abs(ends)))


@pytest.mark.sampled(5)
@each_objective
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_a_weight_is_a_repetition_and_weight_zero_an_absent_row(price, loss, end, seed):
    y, f, _, rng = sample(seed)
    count = rng.integers(0, 4, len(f))
    count[:2] = np.maximum(count[:2], 1)
    rows = np.repeat(np.arange(len(f)), count)
    weighted = objective(y, count.astype(float), price=price, loss=loss, end=end)
    repeated = objective(y[rows], price=price, loss=loss, end=end)
    value, gradient = weighted.value_grad(f)
    value_again, by_copy = repeated.value_grad(f[rows])
    gathered = np.bincount(rows, weights=by_copy, minlength=len(f))
    assert value == pytest.approx(value_again, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient, gathered, rtol=1e-9, atol=1e-11 * (1 + abs(value)))
    assert np.all(gradient[count == 0] == 0)


@pytest.mark.sampled(5)
@each_objective
@pytest.mark.parametrize("extreme", [-1e300, 1e4])
def test_absent_row_is_not_noticed_however_extreme_its_score(price, loss, end, extreme):
    y, f, w, _ = sample()
    value, gradient = objective(y, w, price=price, loss=loss, end=end).value_grad(f)
    y, w, f = np.append(y, [True, False]), np.append(w, [0, 0]), np.append(f, [extreme] * 2)
    longer = objective(y, w, price=price, loss=loss, end=end).value_grad(f)
    assert longer[0] == value
    np.testing.assert_array_equal(longer[1], np.append(gradient, [0, 0]))


@pytest.mark.sampled(4)
@each_objective
def test_order_of_the_rows_and_a_common_shift_change_nothing(price, loss, end):
    y, f, w, rng = sample()
    value, gradient = objective(y, w, price=price, loss=loss, end=end).value_grad(f)
    order = rng.permutation(len(f))
    moved = objective(y[order], w[order], price=price, loss=loss, end=end)
    value_again, gradient_again = moved.value_grad(f[order] + 0.75)
    assert value_again == pytest.approx(value, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient_again, gradient[order], rtol=1e-9, atol=1e-12)
    assert np.sum(gradient) == pytest.approx(0.0, abs=1e-12 * (1 + np.abs(gradient).sum()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("price", "loss"), [c[:2] for c in COMBINATIONS if c[2] == "top"])
def test_bottom_of_the_reversed_list_is_the_top_of_the_list(price, loss):
    y, f, w, _ = sample()
    value, gradient = objective(y, w, price=price, loss=loss, end="top").value_grad(f)
    turned = objective(~y, w, price=price, loss=loss, end="bottom").value_grad(-f)
    assert turned[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(turned[1], -gradient, rtol=1e-12, atol=1e-15)


@given(seed=st.integers(0, 2**32), p=st.floats(1.0, 1000.0), spread=st.floats(0.0, 1e4))
def test_exponential_loss_factorises_into_two_log_sums(seed, p, spread):
    """Fact 1: (1/p) log R = LSE_i(log w_i - f_i) + (1/p) LSE_k(log w_k + p f_k)."""
    y, f, w, _ = sample(seed, spread=spread)
    F = build_objective(y, w, p=p)
    log_w = np.log(w)
    expected = np.logaddexp.reduce(log_w[y] - f[y]) - np.log(w[y].sum())
    expected += (np.logaddexp.reduce(log_w[~y] + p * f[~y]) - np.log(w[~y].sum())) / p
    assert F.value(f) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    terms = -f[y] + log_w[y], p * f[~y] + log_w[~y]
    softmax = [np.exp(t - np.logaddexp.reduce(t)) for t in terms]
    gradient = F.value_grad(f)[1]
    np.testing.assert_allclose(gradient[y], -softmax[0], atol=1e-9)
    np.testing.assert_allclose(gradient[~y], softmax[1], atol=1e-9)


@pytest.mark.parametrize("balance", [0.0, 0.5, 2.0])
def test_both_ends_weigh_the_bottom_by_the_balance(balance):
    y, f, w, _ = sample()
    top, bottom = (build_objective(y, w, p=4, end=end).value(f) for end in ("top", "bottom"))
    both = build_objective(y, w, p=4, end="both", balance=balance).value(f)
    assert both == pytest.approx(np.log(np.exp(4 * top) + balance * np.exp(4 * bottom)) / 4)


@pytest.mark.sampled(7)
@each_objective
@pytest.mark.parametrize("level", [1.0, 0.1, 1e-3])
def test_smoothed_objective_lies_below_and_comes_near(price, loss, end, level):
    y, f, w, _ = sample()
    F = objective(y, w, price=price, loss=loss, end=end)
    smooth = F.smoothed(level)
    assert smooth.smooth
    for scores in (f, 0 * f):  # among ties every height is the highest
        assert smooth.value(scores) <= F.value(scores) + 1e-12 * (1 + abs(F.value(scores)))
    if level == 1e-3:
        # half the width per pair, and log(K)/p for the power that stands for the max
        reach = 0.01 * max(1.0, abs(F.value(f))) * F.scale
        assert smooth.value(f) >= F.value(f) - reach


class TestExtremes:
    """Warnings are errors here, so a warning that leaks from NumPy fails the test too."""

    @pytest.mark.sampled(7)
    @each_objective
    @pytest.mark.parametrize("size", [1e4, 1e16, 1e300])
    def test_extreme_scores_give_numbers_or_infinity_and_never_nan(self, price, loss, end, size):
        for ranked in ("right", "wrong", "mixed", "tied"):
            y, f, w, _ = sample()
            shape = {"right": 2 * y - 1.0, "wrong": 1 - 2.0 * y, "mixed": np.sign(f), "tied": 0 * f}
            f = size * (shape[ranked] + (1.0 if ranked == "tied" else 0.0))
            F = objective(y, w, price=price, loss=loss, end=end)
            value, gradient = F.value_grad(f)
            assert not np.isnan(value) and np.all(np.isfinite(gradient))
            assert not np.isnan(F.value(f))
            if value == np.inf:
                assert not np.any(gradient)
            if F.smooth and F.has_curvature:
                assert np.all(np.isfinite(F.hessian_map(f)(np.ones(len(f)))))

    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("loss", ["exponential", "logistic", "hinge", "squared_hinge"])
    def test_steep_push_of_distant_scores_is_finite(self, loss, end):
        y, f, w, rng = sample(n=40)
        f = rng.uniform(-1e4, 1e4, 40)
        F = build_objective(y, w, p=1000.0, loss=loss, end=end)
        value, gradient = F.value_grad(f)
        assert np.isfinite(value) and np.all(np.isfinite(gradient)) and np.any(gradient)

    def test_hinge_that_vanishes_everywhere_is_zero_with_no_slope(self):
        y = np.array([True, False])
        value, gradient = build_objective(y, loss="hinge", p=8).value_grad(np.array([2.0, 0.0]))
        assert value == 0.0 and gradient.tolist() == [0.0, 0.0]


class TestRefusals:
    @pytest.mark.parametrize("loss", [name for name in LOSSES if name != "exponential"])
    def test_ir_push_takes_the_exponential_loss_only(self, loss):
        with pytest.raises(ValueError, match="Use loss='exponential'"):
            objective(sample()[0], price="log1p", loss=loss)

    def test_unknown_end_is_refused_with_the_ends_that_work(self):
        with pytest.raises(ValueError, match=r"Unknown end 'middle'.*'top', 'bottom', 'both'"):
            build_objective(sample()[0], end="middle")
