"""What every price promises, run over the registry and over a price of a user's own."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toprank.prices import (
    PRICES,
    Exponential,
    Log1p,
    Max,
    Power,
    Price,
    check_convex,
    from_callable,
    get_price,
)


# A user's own price, S^2 + S^3, as functions of this module so that it pickles.
def cubic(s):
    return s**2 + s**3


def cubic_slope(s):
    return 2 * s + 3 * s**2


def cubic_curvature(s):
    return 2 + 6 * s


CUBIC = (cubic, cubic_slope, cubic_curvature)
CASES = {
    "identity": get_price("identity"),
    "power": get_price("power", 4.0),
    "power 2.5": Power(2.5),
    "power 1000": Power(1000.0),
    "identity, root": get_price("identity", root=True),
    "power, root": get_price("power", 4.0, root=True),
    "power 1000, root": Power(1000.0, root=True),
    "exponential": get_price("exponential"),
    "log1p": get_price("log1p"),
    "max": get_price("max"),
    "max, root": get_price("max", root=True),
    "custom": from_callable(*CUBIC),
}
SMOOTH = {name: price for name, price in CASES.items() if price.smooth}

each_price = pytest.mark.parametrize("name", CASES)
each_smooth_price = pytest.mark.parametrize("name", SMOOTH)


@st.composite
def rows(draw, directions=0):
    """Log heights, log weights and directions in log heights, for one to six outer rows."""
    n = draw(st.integers(1, 6))
    # thousandths: finite differences have nothing to say about ties closer than their step
    grid = st.integers(-2000, 2000).map(lambda j: j / 1000)
    drawn = [np.array(draw(st.lists(grid, min_size=n, max_size=n))) for _ in range(2 + directions)]
    return tuple(drawn)


def steepness(price):
    return getattr(price, "p", 1.0)


def step_for(price):
    """Short where the price bends sharply."""
    return 1e-5 / steepness(price) ** (2 / 3)


def test_every_price_of_the_registry_is_tested_here():
    assert {price.name for price in CASES.values()} >= set(PRICES)
    assert {name: cls.name for name, cls in PRICES.items()} == {name: name for name in PRICES}


@each_price
@given(rows(directions=1))
def test_slope_is_the_difference_quotient_of_value(name, drawn):
    price = CASES[name]
    log_s, log_w, z = drawn
    if not price.smooth:
        assume(np.sum(log_s == log_s.max()) == 1)
    h = step_for(price)
    above = price.value_slope(log_s + h * z, log_w)[0]
    below = price.value_slope(log_s - h * z, log_w)[0]
    value, slope = price.value_slope(log_s, log_w)
    assert slope @ z == pytest.approx((above - below) / (2 * h), rel=1e-6, abs=1e-6 * abs(value))


@each_smooth_price
@given(rows(directions=1))
def test_slope_change_is_the_difference_quotient_of_slope(name, drawn):
    price = SMOOTH[name]
    log_s, log_w, z = drawn
    h = step_for(price)
    above = price.value_slope(log_s + h * z, log_w)[1]
    below = price.value_slope(log_s - h * z, log_w)[1]
    change = price.slope_change(log_s, log_w)(z)
    size = steepness(price) * (1 + np.max(np.abs(price.value_slope(log_s, log_w)[1])))
    np.testing.assert_allclose(change, (above - below) / (2 * h), rtol=1e-5, atol=1e-6 * size)


@each_smooth_price
@given(rows(directions=2))
def test_slope_change_is_symmetric(name, drawn):
    log_s, log_w, z, other = drawn
    change = SMOOTH[name].slope_change(log_s, log_w)
    size = np.abs(other) @ np.abs(change(z)) + np.abs(z) @ np.abs(change(other))
    rounding = 1e-9 * size + 1e-14 * steepness(SMOOTH[name])
    assert other @ change(z) == pytest.approx(z @ change(other), rel=1e-9, abs=rounding)


PLAIN = {
    "identity": lambda s, w: np.sum(w * s),
    "power": lambda s, w: np.sum(w * s**4),
    "power 2.5": lambda s, w: np.sum(w * s**2.5),
    "exponential": lambda s, w: np.sum(w * np.exp(s)),
    "log1p": lambda s, w: np.sum(w * np.log1p(s)),
    "max": lambda s, w: np.max(s),
    "custom": lambda s, w: np.sum(w * (s**2 + s**3)),
}


@pytest.mark.parametrize("name", PLAIN)
@given(rows())
def test_log_risk_is_the_logarithm_of_the_papers_sum(name, drawn):
    log_s, log_w = drawn
    expected = np.log(PLAIN[name](np.exp(log_s), np.exp(log_w)))
    assert CASES[name].log_risk(log_s, log_w) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(rows())
def test_objective_of_each_price_is_the_one_the_module_states(drawn):
    log_s, log_w = drawn
    s, w = np.exp(log_s), np.exp(log_w)
    stated = {
        "power": np.log(np.sum(w * s**4)) / 4,
        "power, root": np.sum(w * s**4) ** 0.25,
        "exponential": np.log(np.sum(w * np.exp(s))),
        "log1p": np.sum(w * np.log1p(s)),
        "max": np.log(np.max(s)),
        "max, root": np.max(s),
        "custom": np.sum(w * (s**2 + s**3)),
    }
    for name, value in stated.items():
        got = CASES[name].value_slope(log_s, log_w)[0]
        assert got == pytest.approx(value, rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("p", [1.0, 4.0, 1000.0])
def test_powers_of_huge_and_tiny_heights_stay_finite(p):
    log_s = np.array([-1e4, 0.0, 1e4])
    assert Power(p).log_risk(log_s, np.zeros(3)) == p * 1e4
    value, slope = Power(p).value_slope(log_s, np.zeros(3))
    assert value == 1e4
    assert slope.tolist() == [0.0, 0.0, 1.0]


@each_price
@given(rows())
def test_row_of_weight_zero_is_an_absent_row(name, drawn):
    log_s, log_w = drawn
    price = CASES[name]
    value, slope = price.value_slope(np.append(log_s, 3.0), np.append(log_w, -np.inf))
    without, slope_without = price.value_slope(log_s, log_w)
    assert value == pytest.approx(without, rel=1e-14)
    np.testing.assert_allclose(slope, np.append(slope_without, 0.0), rtol=1e-12)


@each_price
def test_height_of_zero_is_priced_without_a_warning(name):
    price = CASES[name]
    log_s, log_w = np.array([-np.inf, 0.0]), np.zeros(2)
    value, slope = price.value_slope(log_s, log_w)
    assert np.isfinite(value) and np.isfinite(price.log_risk(log_s, log_w))
    assert slope[0] == 0.0 and slope[1] > 0.0


@each_price
def test_infinite_height_costs_infinity_and_is_never_nan(name):
    price = CASES[name]
    log_s, log_w = np.array([0.0, np.inf]), np.zeros(2)
    value, slope = price.value_slope(log_s, log_w)
    assert value == np.inf and price.log_risk(log_s, log_w) == np.inf
    assert not np.any(np.isnan(slope))


@each_price
@given(rows(directions=1), st.floats(0.0, 1.0))
def test_objective_lies_below_its_chords(name, drawn, part):
    """In log S for the log forms and log1p (the exponential loss is linear there), else in S."""
    log_s, log_w, other = drawn
    price = CASES[name]
    in_logs = price.name == "log1p" or (price.homogeneous and not price.root)
    if in_logs:
        between = part * log_s + (1 - part) * other
    else:
        between = np.log(part * np.exp(log_s) + (1 - part) * np.exp(other))
    ends = [price.value_slope(x, log_w)[0] for x in (log_s, other)]
    chord = part * ends[0] + (1 - part) * ends[1]
    assert price.value_slope(between, log_w)[0] <= chord + 1e-11 * (1 + abs(chord))


@pytest.mark.parametrize("root", [False, True])
@given(rows(), st.floats(1e-3, 1.0))
def test_smoothed_max_lies_below_by_at_most_the_stated_gap(root, drawn, level):
    log_s, log_w = drawn
    log_w = log_w - np.log(np.sum(np.exp(log_w)))  # the weights of a side sum to one
    price = Max(root=root)
    smooth = price.smoothed(level)
    assert smooth.smooth
    top, below = (g.value_slope(log_s, log_w)[0] for g in (price, smooth))
    if root:
        top, below = np.log(top), np.log(below)
    heaviest = log_w[log_s == log_s.max()].max()
    assert below - 1e-12 <= top <= below - level * heaviest + 1e-12


@each_price
def test_price_pickles(name):
    price = CASES[name]
    again = pickle.loads(pickle.dumps(price))
    log_s, log_w = np.array([0.5, -0.25]), np.array([0.0, 1.0])
    assert again.log_risk(log_s, log_w) == price.log_risk(log_s, log_w)
    assert repr(again) == repr(price)


class TestCheckConvex:
    @pytest.mark.parametrize("functions", [CUBIC, CUBIC[:2]])
    def test_a_convex_price_passes(self, functions):
        from_callable(*functions, check=True)

    @pytest.mark.parametrize("price", [Exponential(), Power(1.0, root=True), Power(4.0, root=True)])
    def test_built_in_prices_pass(self, price):
        check_convex(price)

    def test_the_ir_push_price_is_not_convex(self):
        with pytest.raises(ValueError, match="not convex"):
            check_convex(Log1p())

    @pytest.mark.parametrize(
        ("functions", "complaint"),
        [
            ((np.sqrt, lambda s: 0.5 / np.sqrt(s)), "convex"),
            ((lambda s: 10 + np.exp(-s), lambda s: -np.exp(-s)), "non-decreasing"),
            ((lambda s: s - 1, np.ones_like), "non-negative"),
            ((np.sqrt, lambda s: 2 * s), "slope.* must be the derivative"),
            ((cubic, lambda s: 1.01 * cubic_slope(s)), "slope.* must be the derivative"),
            ((lambda s: s * np.nan, cubic_slope), "finite"),
        ],
        ids=["concave", "decreasing", "negative", "slope of another g", "slope 1% off", "NaN"],
    )
    def test_what_is_no_convex_price_is_refused(self, functions, complaint):
        with pytest.raises(ValueError, match=complaint):
            from_callable(*functions, check=True)

    def test_nothing_is_checked_unless_asked(self):
        from_callable(np.sqrt, lambda s: 0.5 / np.sqrt(s))


class TestGetPrice:
    @pytest.mark.parametrize("root", [False, True])
    def test_identity_is_the_first_power_whatever_p(self, root):
        price = get_price("identity", 7.0, root=root)
        assert (price.p, price.root) == (1.0, root)

    @pytest.mark.parametrize("name", PRICES)
    def test_every_name_gives_a_price(self, name):
        assert isinstance(get_price(name, 2.0), Price)

    def test_infinite_p_is_the_max_price(self):
        assert isinstance(get_price("power", np.inf), Max)

    @pytest.mark.parametrize("p", [2, np.float32(2), np.int64(2)])
    def test_p_may_be_any_real_number_type(self, p):
        assert get_price("power", p).p == 2.0

    @pytest.mark.parametrize("p", [0.99, 0, -3.0, np.nan, -np.inf, "4", None, [4.0]])
    def test_what_is_no_push_is_refused_with_advice(self, p):
        with pytest.raises(ValueError, match=r"expected a number >= 1 or infinity.*Use p=1"):
            get_price("power", p)

    @pytest.mark.parametrize("wrong", ["powr", None, 4.0, (), (np.exp,), (np.exp, 1), np.exp])
    def test_anything_else_is_refused_with_the_names_that_work(self, wrong):
        with pytest.raises(ValueError, match=r"expected one of .*'exponential', 'identity'"):
            get_price(wrong)

    def test_a_price_object_keeps_its_parameters(self):
        assert get_price(Power(3.0), 8.0).p == 3.0
        custom = from_callable(*CUBIC)
        assert get_price(custom) is custom

    @pytest.mark.parametrize("functions", [CUBIC[:2], CUBIC])
    def test_a_tuple_of_callables_is_a_price(self, functions):
        price = get_price(functions)
        assert price.value_slope(np.zeros(1), np.zeros(1))[0] == 2.0
        assert price.has_curvature == (len(functions) == 3)

    def test_a_price_without_curvature_says_which_solver_needs_none(self):
        with pytest.raises(TypeError, match="lbfgs"):
            get_price(CUBIC[:2]).slope_change(np.zeros(1), np.zeros(1))
