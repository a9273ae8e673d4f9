"""Prices that are not convex: nothing is certified, several starts are tried, and it is said."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from toprank import PairRanker, PNormPush, PushRanker
from toprank.prices import bend_in_price, from_callable, get_price


def saturating():
    return (
        lambda s: (s / 4) ** 2 / (1 + (s / 4) ** 2),
        lambda s: (s / 8) / (1 + (s / 4) ** 2) ** 2,
    )


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    return X, (X @ [1.0, -1.0, 0.5] + rng.normal(size=60) > 1.0).astype(int)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_price_that_saturates_was_certified(rows, loss):
    ranker = PushRanker(price=saturating(), loss=loss)
    with pytest.warns(ConvergenceWarning, match="not convex: its slope falls from .* at height"):
        ranker.fit(*rows)
    assert ranker.optimality_gap_ == np.inf
    # no worse than one start at zero, nor than the minimiser of a convex price
    one = ranker._minimise_from(_problem(ranker, *rows), np.zeros(3))
    gentle = PNormPush(p=4, loss=loss).fit(*rows)
    assert ranker.objective_ <= one.value + 1e-12
    assert ranker.objective_ <= _problem(ranker, *rows).value(gentle.coef_[0]) + 1e-12


def _problem(ranker, X, y):
    from toprank.blocks import from_arrays
    from toprank.objective import problem_of
    from toprank.rankers.blockwise import look

    return problem_of(look(from_arrays(X, y), None, 0), ranker._task())


def test_the_better_minimum_is_found_from_another_start():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (rng.random(40) < 0.4).astype(int)
    ranker = PushRanker(price=saturating(), loss="logistic")
    from_zero = ranker._minimise_from(_problem(ranker, X, y), np.zeros(2))
    assert from_zero.converged  # and once was certified
    with pytest.warns(ConvergenceWarning, match="not convex"):
        ranker.fit(X, y)
    assert ranker.objective_ < from_zero.value - 0.1


def test_a_price_that_falls_is_named(rows):
    """Rudin 2009, Section 9.3: a price need not be monotone."""
    tent = (lambda s: s * np.exp(-s), lambda s: (1 - s) * np.exp(-s))
    with pytest.warns(ConvergenceWarning, match="not convex: it"):
        PushRanker(price=tent, loss="logistic").fit(*rows)


@pytest.mark.parametrize(
    ("price", "loss"),
    [
        ((np.square, lambda s: 2 * s), "logistic"),
        ((np.square, lambda s: 2 * s, lambda s: 2 + 0 * s), "squared_hinge"),
        # convex in log S, which is enough for the exponential loss
        ((np.log1p, lambda s: 1 / (1 + s)), "exponential"),
    ],
)
def test_convex_prices_keep_their_certificate(rows, price, loss):
    ranker = PushRanker(price=price, loss=loss, alpha=0.1).fit(*rows)
    assert ranker.optimality_gap_ < 1e-3 * ranker.objective_


def test_a_declared_price_is_believed(rows):
    believed = from_callable(*saturating(), convex=True)
    assert np.isfinite(PushRanker(price=believed, loss="logistic").fit(*rows).optimality_gap_)
    doubted = from_callable(np.square, lambda s: 2 * s, convex=False)
    with pytest.warns(ConvergenceWarning, match="declared not convex"):
        assert PushRanker(price=doubted).fit(*rows).optimality_gap_ == np.inf


def test_a_price_that_is_not_a_number_is_named(rows):
    with pytest.warns(ConvergenceWarning, match="its slope is not a number at height"):
        PushRanker(price=(np.square, lambda s: s * np.nan), loss="logistic").fit(*rows)


@pytest.mark.parametrize("price", ["power", "identity", "exponential"])
def test_named_prices_do_not_bend(price):
    assert get_price(price, 4.0).convex
    assert bend_in_price(get_price(price, 4.0), 0.01, 50.0, in_log=True) is None


def test_the_gap_without_a_penalty_is_finite(rows):
    """The docstring said that it is infinite."""
    assert PNormPush(alpha=0.0).fit(*rows).optimality_gap_ < 1e-6


@pytest.mark.more
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_pairs_under_a_price_that_saturates_were_certified(rows, kernel):
    X, y = rows
    ranker = PairRanker(price=saturating(), loss="logistic", kernel=kernel)
    with pytest.warns(ConvergenceWarning, match="not convex: its slope falls from .* at height"):
        ranker.fit(X, y + (X[:, 0] > 1))
    assert ranker.optimality_gap_ == np.inf
    convex = PairRanker(price=(np.square, lambda s: 2 * s), loss="logistic", kernel=kernel)
    assert np.isfinite(convex.fit(X, y + (X[:, 0] > 1)).optimality_gap_)


def test_pairs_of_two_classes_reach_the_minimum_of_the_two_class_ranker(rows):
    with pytest.warns(ConvergenceWarning, match="not convex"):
        pairs = PairRanker(price=saturating(), loss="logistic", alpha=1e-2).fit(*rows)
    with pytest.warns(ConvergenceWarning, match="not convex"):
        classes = PushRanker(price=saturating(), loss="logistic", alpha=1e-2).fit(*rows)
    assert pairs.objective_ == pytest.approx(classes.objective_, rel=1e-6)
