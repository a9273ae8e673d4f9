"""A user's own price and loss, as objects or as callables, reach their built-in twin's minimum."""

import numpy as np
import pytest
from scipy.special import expit

from toprank import PNormPush, PushRanker
from toprank.losses import Logistic, Loss
from toprank.losses import from_callable as loss_from
from toprank.prices import Exponential, Power, Price
from toprank.prices import from_callable as price_from

LOGISTIC = (
    lambda r: np.logaddexp(0.0, -r),
    lambda r: -expit(-r),
    lambda r: expit(r) * expit(-r),
)
SQUARE = (lambda s: s**2, lambda s: 2 * s, lambda s: np.full_like(s, 2.0))


class Smooth(Loss):
    """log(1 + e^-r), written as a user would."""

    def value(self, r):
        return LOGISTIC[0](r)

    def slope(self, r):
        return LOGISTIC[1](r)

    def curvature(self, r):
        return LOGISTIC[2](r)


class Squared(Price):
    """The sum of squared heights, itself and not its root."""

    def log_risk(self, log_s, log_w):
        return np.log(np.exp(log_w) @ np.exp(2 * log_s))

    def value_slope(self, log_s, log_w):
        terms = np.exp(log_w + 2 * log_s)
        return float(terms.sum()), 2 * terms

    def slope_change(self, log_s, log_w):
        terms = np.exp(log_w + 2 * log_s)
        return lambda z: 4 * terms * z


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize(
    "loss", [LOGISTIC, loss_from(*LOGISTIC), Smooth(), Logistic()], ids=lambda x: type(x).__name__
)
def test_your_own_loss_reaches_the_minimum_of_its_built_in_twin(loss, solver, overlapping):
    twin = PNormPush(p=3, loss="logistic", tol=1e-8).fit(*overlapping)
    own = PNormPush(p=3, loss=loss, solver=solver, tol=1e-8).fit(*overlapping)
    assert own.objective_ == pytest.approx(twin.objective_, rel=1e-9)
    np.testing.assert_allclose(own.coef_, twin.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "coordinate"])
@pytest.mark.parametrize(
    "price", [SQUARE, price_from(*SQUARE, check=True), Squared()], ids=lambda x: type(x).__name__
)
def test_your_own_price_ranks_as_its_built_in_twin(price, solver, overlapping):
    # without a penalty the sum of squares and its root have the same minimiser
    settings = {"alpha": 0.0, "max_iter": 3000}
    twin = PNormPush(p=2, tol=1e-9, alpha=0.0).fit(*overlapping)
    own = PushRanker(price, solver=solver, **settings).fit(*overlapping)
    np.testing.assert_allclose(own.coef_, twin.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("name", "price"), [("power", Power(3.0)), ("exponential", Exponential())])
def test_a_price_object_is_the_same_as_its_name(name, price, overlapping):
    named = PushRanker(name, p=3.0).fit(*overlapping)
    given = PushRanker(price).fit(*overlapping)
    np.testing.assert_array_equal(named.coef_, given.coef_)


def test_your_own_price_and_loss_work_together(overlapping):
    own = PushRanker(SQUARE, loss=LOGISTIC, alpha=0.0).fit(*overlapping)
    twin = PNormPush(p=2, loss="logistic", alpha=0.0, tol=1e-9).fit(*overlapping)
    np.testing.assert_allclose(own.coef_, twin.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "ranker",
    [PNormPush(loss=LOGISTIC[:2]), PushRanker(SQUARE[:2])],
    ids=["loss", "price"],
)
class TestWithoutCurvature:
    def test_newton_is_refused_and_the_way_out_named(self, ranker, overlapping):
        ranker.set_params(solver="newton")
        with pytest.raises(ValueError, match=r"curvature.*solver='lbfgs'"):
            ranker.fit(*overlapping)

    @pytest.mark.parametrize("solver", ["auto", "lbfgs", "coordinate"])
    def test_the_other_solvers_do_without(self, ranker, solver, overlapping):
        ranker.set_params(solver=solver)
        assert np.isfinite(ranker.fit(*overlapping).coef_).all()


def test_a_loss_given_as_an_object_survives_cloning_and_pickling(overlapping):
    import pickle

    from sklearn.base import clone

    ranker = PNormPush(loss=Logistic())
    coef = clone(ranker).fit(*overlapping).coef_
    again = pickle.loads(pickle.dumps(ranker)).fit(*overlapping)
    np.testing.assert_array_equal(again.coef_, coef)
