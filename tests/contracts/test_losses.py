"""What every margin loss promises, run over the registry and over losses of a user's own."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toprank.losses import (
    LOSSES,
    TRAINABLE_LOSSES,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    SmoothedHinge,
    SquaredHinge,
    ZeroOne,
    check_convex,
    from_callable,
    get_loss,
)


# A user's own loss, sqrt(1 + r^2) - r, as functions of this module so that it pickles.
def hyperbola(r):
    return np.where(r > 0, 1.0 / (np.hypot(1.0, r) + np.abs(r)), np.hypot(1.0, r) - r)


def hyperbola_slope(r):
    return -hyperbola(r) / np.hypot(1.0, r)


def hyperbola_curvature(r):
    return np.hypot(1.0, r) ** -3


HYPERBOLA = (hyperbola, hyperbola_slope, hyperbola_curvature)
WIDTHS = (2.0, 0.5, 1e-3)
ALL = {name: cls() for name, cls in LOSSES.items()}
ALL |= {f"smoothed_hinge_{width:g}": SmoothedHinge(width) for width in WIDTHS}
ALL["from_callable"] = from_callable(*HYPERBOLA)
CONVEX = {name: loss for name, loss in ALL.items() if loss.trainable}
#: What a loss is multiplied by to bound the 0-1 loss from above; one unless named.
BOUND = {"logistic": 1.0 / np.log(2.0)}

STEP = 1e-5
margins = st.floats(-30.0, 30.0)

each_loss = pytest.mark.parametrize("name", ALL)
each_convex_loss = pytest.mark.parametrize("name", CONVEX)


def knots(loss):
    return [knot for knot, _ in loss.pieces] + ([loss.bend[0]] if loss.bend else [])


def at(function, r):
    return float(function(np.array([r]))[0])


def difference(function, r):
    """The slope of the chord around r."""
    return (at(function, r + STEP) - at(function, r - STEP)) / (2 * STEP)


def test_the_registry_is_keyed_by_the_names_of_its_losses():
    assert {name: cls.name for name, cls in LOSSES.items()} == {name: name for name in LOSSES}
    assert set(TRAINABLE_LOSSES) == set(LOSSES) - {"zero_one"}


@each_loss
@given(r=margins)
def test_slope_is_the_difference_quotient_of_value(name, r):
    loss = ALL[name]
    assume(all(abs(r - knot) > 2 * STEP for knot in knots(loss)))
    expected = difference(loss.value, r)
    bend = at(loss.curvature, r) * STEP
    assert at(loss.slope, r) == pytest.approx(
        expected, abs=1e-9 * (1 + at(loss.value, r)) + 1e-6 * bend
    )


@each_loss
@given(r=margins)
def test_curvature_is_the_difference_quotient_of_slope(name, r):
    loss = ALL[name]
    assume(all(abs(r - knot) > 2 * STEP for knot in knots(loss)))
    expected = difference(loss.slope, r)
    assert at(loss.curvature, r) == pytest.approx(
        expected, rel=1e-8, abs=1e-9 * (1 + abs(at(loss.slope, r)))
    )


@each_loss
@given(r=st.lists(margins, min_size=1, max_size=5))
def test_derivative_counts_its_orders_from_the_value(name, r):
    loss, r = ALL[name], np.array(r)
    for order, function in enumerate((loss.value, loss.slope, loss.curvature)):
        np.testing.assert_array_equal(loss.derivative(order, r), function(r))


@each_loss
@given(r=margins)
def test_log_value_is_the_logarithm_of_value(name, r):
    loss = ALL[name]
    value = at(loss.value, r)
    if value == 0:
        assert at(loss.log_value, r) == -np.inf
    else:
        assert at(loss.log_value, r) == pytest.approx(np.log(value), rel=1e-13, abs=1e-13)


@given(r=st.floats(-1e4, 1e4))
def test_log_of_the_exponential_loss_is_exact_where_the_loss_overflows(r):
    assert at(Exponential().log_value, r) == -r


@given(r=st.one_of(st.floats(-1e4, 1e4), st.floats(37.0, 39.0)))
@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double is no longer than double here"
)
def test_log_of_the_logistic_loss_is_right_where_the_loss_underflows(r):
    expected = np.log(np.logaddexp(np.longdouble(0), -np.longdouble(r)))
    assert at(Logistic().log_value, r) == pytest.approx(float(expected), rel=1e-14, abs=1e-15)


@each_loss
@pytest.mark.parametrize("r", [-1e4, -1e3, 1e3, 1e4])
def test_extreme_margins_give_numbers_without_a_warning(name, r):
    loss = ALL[name]
    outcome = [at(f, r) for f in (loss.value, loss.slope, loss.curvature, loss.log_value)]
    assert not np.any(np.isnan(outcome))
    if name != "exponential":
        assert np.all(np.isfinite(outcome[:3]))


@each_loss
@given(r=margins, further=st.floats(0.0, 30.0))
def test_loss_is_non_negative_and_never_grows_with_the_margin(name, r, further):
    loss = ALL[name]
    assert at(loss.value, r) >= 0
    assert at(loss.slope, r) <= 0
    assert at(loss.value, r + further) <= at(loss.value, r) * (1 + 1e-12)


@each_convex_loss
@given(left=margins, right=margins, part=st.floats(0.0, 1.0))
def test_loss_lies_below_its_chords(name, left, right, part):
    loss = CONVEX[name]
    chord = part * at(loss.value, left) + (1 - part) * at(loss.value, right)
    between = at(loss.value, part * left + (1 - part) * right)
    assert between <= chord * (1 + 1e-12) + 1e-13


@each_convex_loss
@given(left=margins, further=st.floats(0.0, 30.0))
def test_slope_never_falls_and_curvature_is_never_negative(name, left, further):
    loss = CONVEX[name]
    assert at(loss.slope, left + further) >= at(loss.slope, left) * (1 + 1e-12) - 1e-13
    assert at(loss.curvature, left) >= 0


@pytest.mark.parametrize("name", LOSSES)
@given(r=margins)
def test_loss_bounds_the_zero_one_loss_from_above(name, r):
    scale = BOUND.get(name, 1.0)
    assert scale * at(ALL[name].value, r) >= at(ZeroOne().value, r) * (1 - 1e-15)


def test_logistic_loss_bounds_the_zero_one_loss_only_after_division_by_log_two():
    assert at(Logistic().value, 0.0) < 1.0


@each_loss
def test_loss_pickles(name):
    loss = ALL[name]
    again = pickle.loads(pickle.dumps(loss))
    r = np.linspace(-3, 3, 25)
    np.testing.assert_array_equal(again.value(r), loss.value(r))
    assert repr(again) == repr(loss)


class TestEdges:
    """The conventions stated at the top of the module, at the very edge and one bit aside."""

    def test_a_tie_costs_one_and_any_lead_costs_nothing(self):
        tie = np.array([0.0, -0.0, np.nextafter(0, -1), np.nextafter(0, 1)])
        assert ZeroOne().value(tie).tolist() == [1.0, 1.0, 1.0, 0.0]
        assert ZeroOne().slope(tie).tolist() == [0.0, 0.0, 0.0, 0.0]

    @pytest.mark.parametrize(
        "loss", [Hinge(), SquaredHinge(), *map(SmoothedHinge, WIDTHS)], ids=repr
    )
    def test_value_and_slope_vanish_at_margin_one(self, loss):
        assert at(loss.value, 1.0) == 0.0
        assert at(loss.slope, 1.0) == 0.0

    def test_hinge_takes_its_right_hand_slope_at_the_kink(self):
        around = np.array([np.nextafter(1, 0), 1.0, np.nextafter(1, 2)])
        assert Hinge().slope(around).tolist() == [-1.0, 0.0, 0.0]

    @pytest.mark.parametrize("width", WIDTHS)
    def test_smoothed_hinge_joins_its_pieces_smoothly(self, width):
        loss, joint = SmoothedHinge(width), 1.0 - width
        around = np.array([joint - 1e-12, joint, joint + 1e-12])
        np.testing.assert_allclose(loss.value(around), width / 2, atol=1e-11)
        np.testing.assert_allclose(loss.slope(around), -1.0, atol=1e-8)


@each_loss
@given(r=st.lists(margins, min_size=1, max_size=5), width=st.floats(1e-6, 2.0))
def test_smoothed_loss_lies_below_by_at_most_half_the_width(name, r, width):
    loss, r = ALL[name], np.array(r)
    if not loss.trainable:
        with pytest.raises(TypeError, match="no smooth version"):
            loss.smoothed(width)
        return
    smooth = loss.smoothed(width)
    gap = loss.value(r) - smooth.value(r)
    rounding = 1e-14 * (1 + np.max(np.abs(r)))
    assert smooth.smooth
    assert np.all(gap >= -rounding) and np.all(gap <= width / 2 + rounding)


@pytest.mark.parametrize("width", [1e-3, 1e-6])
def test_narrow_smoothed_hinge_keeps_its_digits_far_from_the_kink(width):
    r = np.array([-1e4, -123.456])
    loss = SmoothedHinge(width)
    np.testing.assert_allclose(loss.value(r), 1 - r - width / 2, rtol=1e-14)
    np.testing.assert_array_equal(loss.slope(r), -1.0)
    np.testing.assert_array_equal(loss.curvature(r), 0.0)


class TestCheckConvex:
    @each_convex_loss
    def test_every_trainable_loss_passes(self, name):
        check_convex(CONVEX[name])

    @pytest.mark.parametrize(
        ("functions", "complaint"),
        [
            ((lambda r: -np.exp(r), lambda r: -np.exp(r)), "non-negative"),
            ((lambda r: 1 / (1 + np.exp(r)), lambda r: -0.25 / np.cosh(r / 2) ** 2), "convex"),
            ((lambda r: np.exp(r), lambda r: np.exp(r)), "non-increasing"),
            ((lambda r: (1 - r) ** 2, lambda r: 2 * (r - 1)), "non-increasing"),
            ((hyperbola, lambda r: 1.01 * hyperbola_slope(r)), "slope.* must be the derivative"),
            ((hyperbola, lambda r: np.zeros_like(r)), "slope.* must be the derivative"),
            ((hyperbola, hyperbola_slope, lambda r: -hyperbola_curvature(r)), "curvature >= 0"),
            (
                (hyperbola, hyperbola_slope, lambda r: 2 * hyperbola_curvature(r)),
                "curvature.* must be the derivative",
            ),
            ((lambda r: np.full_like(r, np.nan), hyperbola_slope), "finite"),
        ],
        ids=[
            "negative",
            "concave",
            "increasing",
            "rises again",
            "slope 1% off",
            "slope zero",
            "curvature negative",
            "curvature doubled",
            "NaN",
        ],
    )
    def test_what_is_no_margin_loss_is_refused(self, functions, complaint):
        with pytest.raises(ValueError, match=complaint):
            from_callable(*functions, check=True)

    def test_nothing_is_checked_unless_asked(self):
        from_callable(np.exp, np.exp)


class TestGetLoss:
    @pytest.mark.parametrize("name", LOSSES)
    def test_a_name_gives_its_loss(self, name):
        assert type(get_loss(name)) is LOSSES[name]

    def test_a_loss_object_is_taken_as_it_is(self):
        loss = SmoothedHinge(0.25)
        assert get_loss(loss) is loss

    @pytest.mark.parametrize("functions", [HYPERBOLA[:2], HYPERBOLA])
    def test_a_tuple_of_callables_is_a_loss(self, functions):
        loss = get_loss(functions)
        assert at(loss.value, 0.0) == 1.0
        assert loss.has_curvature == (len(functions) == 3)

    def test_a_loss_without_curvature_says_which_solver_needs_none(self):
        with pytest.raises(TypeError, match="lbfgs"):
            get_loss(HYPERBOLA[:2]).curvature(np.zeros(1))

    @pytest.mark.parametrize("wrong", ["expnential", None, 3, (), (np.exp,), (np.exp, "x"), np.exp])
    def test_anything_else_is_refused_with_the_names_that_work(self, wrong):
        with pytest.raises(ValueError, match=r"expected one of .*'exponential', 'hinge'"):
            get_loss(wrong)

    def test_a_subclass_that_forgets_its_value_is_told(self):
        class Forgetful(Loss):
            pass

        with pytest.raises(TypeError, match="Forgetful must define value"):
            Forgetful().value(np.zeros(1))
