"""Regular, proper, calibrated: what is known of our losses, and witnesses against others."""

import numpy as np
import pytest
from scipy.special import expit, logit

from toprank.losses import LOSSES, from_callable, get_loss
from toprank.losses.proper import (
    PROPER_LOSSES,
    Logistic,
    Spherical,
    Squared,
    from_bayes_risk,
    from_link,
    get_proper_loss,
    is_calibrated,
    is_proper,
    is_regular,
    with_link,
)


@pytest.mark.parametrize("name", PROPER_LOSSES)
def test_the_paper_s_losses_are_regular_and_strictly_proper(name):
    loss = get_proper_loss(name)
    assert is_regular(loss) and is_proper(loss) and is_proper(loss, strictly=True)


def test_a_loss_with_straight_pieces_is_proper_but_not_strictly():
    cost = from_bayes_risk(lambda q: np.minimum(q, 1 - q), lambda q: np.where(q < 0.5, 1.0, -1.0))
    assert is_proper(cost)
    verdict = is_proper(cost, strictly=True)
    assert not verdict and "not strictly proper" in str(verdict)
    eta, q = verdict.witness
    assert cost.plug_in_risk(eta, q) == pytest.approx(cost.bayes_risk(eta))


@pytest.mark.parametrize(
    "c",
    [
        lambda y, q: np.abs(q - (y > 0)),
        lambda y, q: np.where(y > 0, 1 - q, q**2),
        lambda y, q: np.where(y > 0, (1 - q) ** 2, 3 * q**2),
    ],
)
def test_a_witness_shows_that_a_loss_is_not_proper(c):
    verdict = is_proper(c)
    eta, q = verdict.witness
    risk = [eta * c(1, at) + (1 - eta) * c(-1, at) for at in (np.array(q), np.array(eta))]
    assert not verdict and risk[0] < risk[1]


def test_a_witness_shows_that_a_loss_is_not_regular():
    assert is_regular(lambda y, q: -np.log(q if y > 0 else 1 - q))
    negative = is_regular(lambda y, q: q - 0.5)
    assert not negative and negative.witness == (1, 0.0)
    infinite = is_regular(lambda y, q: np.where((y > 0) & (q < 0.3), np.inf, 0.1))
    assert not infinite and infinite.witness[1] > 0
    with pytest.raises(ValueError, match="expected one loss per probability"):
        is_regular(lambda y, q: 1.0)


def test_margin_losses_are_calibrated_and_the_perceptron_s_is_not():
    for name in LOSSES:
        assert is_calibrated(get_loss(name)), name
    perceptron = from_callable(lambda r: np.maximum(-r, 0), lambda r: -1.0 * (r < 0))
    verdict = is_calibrated(perceptron)
    assert not verdict and "not calibrated" in str(verdict) and verdict.witness[0] > 0.5
    turned = from_callable(np.exp, np.exp)
    assert not is_calibrated(turned)


@pytest.mark.parametrize("slope", [None, lambda q: 1 / (q * (1 - q))])
def test_the_loss_of_the_log_odds_is_the_logistic_one(slope):
    own, v = from_link(logit, slope), np.linspace(-12, 12, 25)
    for y in (-1, 1):
        np.testing.assert_allclose(own.loss(y, v), Logistic().loss(y, v), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own.slope(y, v), Logistic().slope(y, v), rtol=1e-9, atol=1e-12)
    assert own.strong_properness == pytest.approx(4.0, rel=1e-5)
    assert own.has_curvature == (slope is not None)


def test_any_increasing_link_gives_a_proper_loss_with_that_link():
    def link(q):
        return q**3 + np.arcsin(np.sqrt(q))

    own, q = from_link(link), np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(own.link(q), link(q), rtol=1e-12)
    np.testing.assert_allclose(own.inverse_link(link(q)), q, rtol=1e-9)
    assert is_proper(own, strictly=True) and is_regular(own) and own.convex


def test_a_link_too_steep_to_integrate_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        from_link(lambda q: np.where(q > 0.5, np.inf, q))


def test_a_loss_behind_a_link_of_your_own_stays_proper():
    brier = with_link(Squared(), logit, expit, lambda v: expit(v) * expit(-v))
    v = np.linspace(-5, 5, 21)
    for y in (-1, 1):
        np.testing.assert_allclose(brier.loss(y, v), 4 * (expit(v) - (y > 0)) ** 2, rtol=1e-12)
        step = 1e-6
        slope = (brier.loss(y, v + step) - brier.loss(y, v - step)) / (2 * step)
        np.testing.assert_allclose(brier.slope(y, v), slope, rtol=1e-6, atol=1e-8)
    assert is_proper(brier, strictly=True)
    assert brier.strong_properness == Squared().strong_properness
    with pytest.raises(TypeError, match="inverse_slope"):
        with_link(Spherical(), logit, expit).slope(1, 0.0)
    with pytest.raises(ValueError, match="strictly increasing"):
        with_link(Squared(), lambda q: -q, lambda v: -v)
