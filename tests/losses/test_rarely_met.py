"""Losses and prices that lack something, and where a given one is not what it should be."""

import numpy as np
import pytest
from scipy.special import expit, logit

from toprank import prices
from toprank.losses import Loss, from_callable
from toprank.losses.composite import ProperLoss
from toprank.losses.construct import balanced, canonical
from toprank.losses.proper import CanonicalSquared, get_proper_loss, with_link
from toprank.prices import Exponential as Steep
from toprank.prices import Price, bend_in_price, get_price

R = np.array([-1.0, 0.5])


class Bare(Loss):
    """A loss that defines nothing."""

    smooth = False


class BarePrice(Price):
    """A price that defines nothing, and is no sum."""

    form = "root"


def test_a_loss_says_what_it_must_define():
    for name, ask in (("value", Bare().value), ("slope", Bare().slope)):
        with pytest.raises(TypeError, match=rf"Bare must define {name}\(r\)"):
            ask(R)
    with pytest.raises(TypeError, match=r"Bare has no curvature; use solver='lbfgs'"):
        Bare().curvature(R)
    with pytest.raises(TypeError, match="Bare is not smooth and offers no smooth version"):
        Bare().smoothed(0.1)


def test_a_price_says_what_it_must_define():
    for name in ("log_risk", "value_slope"):
        with pytest.raises(TypeError, match=f"BarePrice must define {name}"):
            getattr(BarePrice(), name)(R, R)
    with pytest.raises(TypeError, match="BarePrice has no curvature"):
        BarePrice().slope_change(R, R)
    assert repr(BarePrice()) == "BarePrice()"


def test_a_proper_loss_says_what_it_must_define():
    class Half(ProperLoss):
        pass

    for name in ("_bayes_risk", "_slope"):
        with pytest.raises(TypeError, match=f"Half must define {name}"):
            getattr(Half(), name)(np.array([0.5]))
    with pytest.raises(TypeError, match=r"Expected a ProperLoss or a callable c\(y, q\), got 3"):
        canonical(3)


def test_a_loss_of_functions_without_a_curvature_has_none():
    loss = from_callable(lambda r: np.exp(-r), lambda r: -np.exp(-r))
    with pytest.raises(TypeError, match="has no curvature"):
        loss.curvature(R)
    price = prices.from_callable(lambda s: s**2, lambda s: 2 * s)
    with pytest.raises(TypeError, match="has no curvature"):
        price.slope_change(R, R)


@pytest.mark.parametrize("name", ["logistic", "exponential", "squared"])
def test_a_balanced_loss_weighs_the_value_and_the_slope_of_each_label(name):
    base = get_proper_loss(name)
    loss = balanced(base, 0.2)
    sign, v = np.array([1.0, -1.0, 1.0]), np.array([0.3, -0.7, 0.1])
    value, slope = loss.value_slope(sign, v)
    np.testing.assert_allclose(value, loss.derivative(0, sign, v))
    np.testing.assert_allclose(slope, loss.derivative(1, sign, v))
    assert value[0] / base.derivative(0, sign, v)[0] > value[1] / base.derivative(0, sign, v)[1]


BRIER = with_link(CanonicalSquared(), logit, expit)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared", "spherical", BRIER])
def test_probabilities_of_both_labels_sum_to_one_and_their_logarithms_are_theirs(loss):
    loss = get_proper_loss(loss)
    v = loss.link([0.05, 0.5, 0.7])
    np.testing.assert_allclose(loss.inverse_link(v), [0.05, 0.5, 0.7])
    both = loss.probabilities(v)
    np.testing.assert_allclose(both.sum(axis=1), 1.0)
    np.testing.assert_allclose(both[:, 1], loss.inverse_link(v))
    np.testing.assert_allclose(np.exp(loss.log_probabilities(v)), both, rtol=1e-12)


@pytest.mark.parametrize("price", [prices.Power(4.0), prices.Power(4.0, root=True), Steep()])
def test_beyond_the_largest_float_a_price_has_no_curvature(price):
    log_s, log_w = np.array([np.inf, 0.0]), np.zeros(2)
    assert price.value_slope(log_s, log_w)[0] == np.inf
    assert price.slope_change(log_s, log_w)(np.ones(2)).tolist() == [0.0, 0.0]


def test_a_price_that_falls_or_is_no_number_is_told_with_the_height():
    falls = prices.from_callable(lambda s: -s, lambda s: -np.ones_like(s), convex=False)
    assert bend_in_price(falls, 0.01, 100.0) == "it falls at height 0.01"
    odd = prices.from_callable(lambda s: s, lambda s: np.where(s > 1, np.nan, 1.0), convex=False)
    assert bend_in_price(odd, 0.01, 100.0).startswith("its slope is not a number at height 1")
    assert bend_in_price(get_price("power", 4.0), 0.01, 100.0, in_log=True) is None
    with pytest.raises(ValueError, match="The price is not convex on heights from 0 to 100"):
        prices.from_callable(np.sqrt, lambda s: 0.5 / np.sqrt(s), check=True)
