"""U-statistics of order m (Clémençon, Lugosi & Vayatis 2006, Remark 2)."""

from itertools import combinations

import numpy as np
import pytest

from toprank.inference import permutation_risk, u_statistic, u_statistic_of_order
from toprank.metrics import ranking_risk

RNG = np.random.default_rng(0)
X = RNG.normal(size=12)


def test_order_two_is_the_u_statistic_of_pairs():
    one = u_statistic_of_order(lambda z: (z[:, 0] - z[:, 1]) ** 2 / 2, X, 2)
    other = u_statistic(lambda a, b: (a - b) ** 2 / 2, X)
    assert one.value == pytest.approx(other.value)
    assert one.complete and one.n_tuples == 66
    assert one.variance == pytest.approx(other.variance, rel=0.5)


def test_order_three_is_the_triple_loop():
    kernel = lambda z: np.max(z, axis=1) - np.median(z, axis=1)  # noqa: E731
    expected = np.mean([max(t) - np.median(t) for t in combinations(X, 3)])
    found = u_statistic_of_order(kernel, X, 3)
    assert found.value == pytest.approx(expected)
    left = [u_statistic_of_order(kernel, np.delete(X, i), 3).value for i in range(12)]
    assert found.variance == pytest.approx(11 / 12 * np.sum((left - np.mean(left)) ** 2))


def test_drawn_tuples_come_near_all_of_them():
    Z = RNG.normal(size=40)
    kernel = lambda z: np.median(z, axis=1)  # noqa: E731
    everything = u_statistic_of_order(kernel, Z, 3)
    drawn = u_statistic_of_order(kernel, Z, 3, most_tuples=5000)
    assert not drawn.complete and drawn.n_tuples == 5000
    assert drawn.value == pytest.approx(everything.value, abs=0.05)
    assert drawn.standard_error == pytest.approx(everything.standard_error, rel=0.3)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_share_of_pairs_is_the_ranking_risk_whatever_m(m):
    y, s = RNG.integers(0, 4, size=11).astype(float), np.round(RNG.normal(size=11), 1)
    assert permutation_risk(y, s, m).value == pytest.approx(ranking_risk(y, s))


def test_other_losses_are_their_definitions():
    y, s = RNG.normal(size=9), RNG.normal(size=9)
    triples = [list(t) for t in combinations(range(9), 3)]
    order = np.mean([not np.array_equal(np.argsort(y[t]), np.argsort(s[t])) for t in triples])
    top = np.mean([np.argmax(y[t]) != np.argmax(s[t]) for t in triples])
    assert permutation_risk(y, s, 3, loss="order").value == pytest.approx(order)
    assert permutation_risk(y, s, 3, loss="top").value == pytest.approx(top)
    own = permutation_risk(y, s, 3, loss=lambda a, b: np.argmax(a, 1) != np.argmax(b, 1))
    assert own.value == pytest.approx(top)
    assert permutation_risk(y, np.zeros(9), 3, loss="top").value == pytest.approx(2 / 3)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="one less than the rows"):
        u_statistic_of_order(lambda z: z[:, 0], X, 12)
    with pytest.raises(ValueError, match="one number per tuple"):
        u_statistic_of_order(lambda z: 1.0, X, 2)
    with pytest.raises(ValueError, match="expected one of"):
        permutation_risk(X, X, 2, loss="nothing")
