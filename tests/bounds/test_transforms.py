"""The psi-transform against a grid over all predictions, and its inverse."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.bounds import psi_transform, ranking_risk_from_convex
from toprank.losses import TRAINABLE_LOSSES, Exponential, from_callable, get_loss

CLOSED = {  # Bartlett, Jordan & McAuliffe 2006, Table 1, in the library's scale
    "exponential": lambda x: 1 - sqrt(1 - x**2),
    "hinge": abs,
    "squared_hinge": lambda x: x**2,
    "logistic": lambda x: log(2) + sum(q * log(q) for q in ((1 + x) / 2, (1 - x) / 2) if q > 0),
}


class NameKept(Exponential):
    """A user's loss that only borrows the name of a registered one."""

    def value(self, r):
        return 2.0 * super().value(r)


def test_every_trainable_loss_has_a_closed_form_here():
    assert set(CLOSED) == set(TRAINABLE_LOSSES)


@pytest.mark.parametrize("loss", TRAINABLE_LOSSES)
@pytest.mark.parametrize("x", [0.0, 1e-3, 0.3, 0.7, 0.99, 1.0])
def test_psi_is_the_definition(loss, x):
    alpha = np.linspace(-20, 20, 400_001)
    rho, l = (1 + x) / 2, get_loss(loss)  # noqa: E741
    risk = rho * l.value(alpha) + (1 - rho) * l.value(-alpha)
    wrong = np.min(risk[alpha * (2 * rho - 1) <= 0])
    assert psi_transform(loss, x) == pytest.approx(wrong - np.min(risk), abs=1e-8)
    assert psi_transform(loss, x) == pytest.approx(CLOSED[loss](x), abs=1e-12)


@pytest.mark.parametrize("loss", TRAINABLE_LOSSES)
@pytest.mark.parametrize("x", [0.0, 1e-6, 0.3, 0.9, 1.0])
def test_your_own_loss_is_minimised_numerically(loss, x):
    known = get_loss(loss)
    mine = from_callable(known.value, known.slope)
    assert psi_transform(mine, x) == pytest.approx(CLOSED[loss](x), abs=1e-9)


def test_a_loss_that_borrows_a_name_is_not_mistaken_for_it():
    assert psi_transform(NameKept(), 0.6) == pytest.approx(2 * 0.2)


@given(st.sampled_from(sorted(TRAINABLE_LOSSES)), st.floats(1e-100, 1.0))
def test_the_inverse_undoes_psi(loss, x):
    bound = ranking_risk_from_convex(loss=loss, excess=psi_transform(loss, x))
    assert bound.value == pytest.approx(x, rel=1e-7)


@given(st.sampled_from(sorted(TRAINABLE_LOSSES)), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_psi_is_convex_and_rises_from_zero(loss, a, b):
    psi = [psi_transform(loss, x) for x in (min(a, b), (a + b) / 2, max(a, b))]
    assert 0.0 <= psi[0] <= psi[1] <= psi[2]
    assert psi[1] <= (psi[0] + psi[2]) / 2 + 1e-12


@pytest.mark.parametrize(
    ("loss", "excess", "expected"),
    [
        ("exponential", 0.2, 0.6),  # sqrt(1 - 0.8^2)
        ("hinge", 0.25, 0.25),
        ("squared_hinge", 0.0625, 0.25),
        ("exponential", 0.0, 0.0),
    ],
)
def test_excess_ranking_risk_by_hand(loss, excess, expected):
    bound = ranking_risk_from_convex(loss=loss, excess=excess)
    assert bound.value == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert not bound.vacuous


def test_a_large_excess_says_nothing():
    bound = ranking_risk_from_convex(loss="logistic", excess=log(2))
    assert bound.value == 1.0 and bound.vacuous and "says nothing" in bound.statement


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-5, 5)), min_size=1, max_size=5))
def test_the_ranking_regret_never_exceeds_the_bound(pairs):
    # pairs with probability rho that the first row is better, and a function's value f
    rho, f = np.array(pairs).T
    regret = np.mean(np.abs(2 * rho - 1) * ((f > 0) != (rho > 0.5)))
    loss = get_loss("exponential")
    risk = np.mean(rho * loss.value(f) + (1 - rho) * loss.value(-f))
    excess = max(0.0, risk - np.mean(2 * np.sqrt(rho * (1 - rho))))
    bound = ranking_risk_from_convex(loss="exponential", excess=excess)
    assert regret <= bound.value + 1e-7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: psi_transform("hinge", 1.5), "x=1.5"),
        (lambda: psi_transform("hinge", -0.5), "x=-0.5"),
        (lambda: psi_transform("zero_one", 0.5), "does not fall at 0"),
        (
            lambda: psi_transform(from_callable(lambda r: r**2, lambda r: 2 * r), 0.5),
            "does not fall at 0",
        ),
        (lambda: ranking_risk_from_convex(loss="hinge", excess=-1.0), "excess=-1.0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
