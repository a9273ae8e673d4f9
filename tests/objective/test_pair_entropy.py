"""Section 11 of Rudin 2009: phi, its Bregman distance and the projection, as the paper has them."""

import numpy as np
import pytest
from scipy.optimize import minimize

from toprank.objective import PairEntropy

PRICES = [("power", 1.0), ("power", 2.0), ("power", 5.0), ("exponential", 1.0), ("log1p", 1.0)]
RNG = np.random.default_rng(0)


def risk(margins, price, p):
    heights = np.exp(-margins).sum(axis=0)
    g = {"power": heights**p / p, "exponential": np.exp(heights), "log1p": np.log1p(heights)}
    return g[price].sum()


def papers_phi(q, p):
    gamma = np.log(q / (p ** (1 / p) * q.sum(axis=0) ** ((p - 1) / p)))
    return float(np.sum(q * gamma))


@pytest.mark.parametrize(("price", "p"), PRICES)
def test_the_weights_are_the_slopes_of_the_risk_and_phi_is_its_conjugate(price, p):
    entropy, m = PairEntropy(price, p), RNG.normal(size=(4, 3))
    q, step = entropy.weights(m), 1e-6
    for i, k in np.ndindex(m.shape):
        up, down = m.copy(), m.copy()
        up[i, k] += step
        down[i, k] -= step
        slope = (risk(up, price, p) - risk(down, price, p)) / (2 * step)
        assert q[i, k] == pytest.approx(-slope, rel=1e-6)
    # Fenchel: phi(q) + R(m) = <q, -m> where q is the slope, and more elsewhere
    np.testing.assert_allclose(entropy.gradient(q), -m, atol=1e-10)
    assert entropy.value(q) + risk(m, price, p) == pytest.approx(float(np.sum(-q * m)), rel=1e-10)
    assert entropy.risk(q) == pytest.approx(risk(m, price, p), rel=1e-10)
    other = RNG.normal(size=(4, 3))
    assert entropy.value(q) + risk(other, price, p) > float(np.sum(-q * other))


@pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
def test_phi_is_the_papers_but_for_a_linear_term(p):
    entropy = PairEntropy("power", p)
    a, b = RNG.uniform(0.1, 2.0, size=(2, 3, 4))
    apart = papers_phi(a, p) - entropy.value(a)
    assert apart == pytest.approx((1 - np.log(p)) / p * a.sum(), rel=1e-10)
    # equation (11), and so B_phi
    slope = 1 / p + np.log(b / (p ** (1 / p) * b.sum(axis=0) ** ((p - 1) / p)))
    expected = papers_phi(a, p) - papers_phi(b, p) - np.sum(slope * (a - b))
    assert entropy.distance(a, b) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_the_projection_is_equation_12(p):
    entropy = PairEntropy("power", p)
    q, v = RNG.uniform(0.1, 2.0, size=(3, 4)), RNG.normal(size=(3, 4))
    moved = np.exp(v) * q
    expected = moved * moved.sum(axis=0) ** (p - 1) / q.sum(axis=0) ** (p - 1)
    np.testing.assert_allclose(entropy.project(q, v), expected, rtol=1e-12)
    # from constant weights I^(p-1) the projection of -M lambda is the paper's Q
    start = np.full((3, 4), 3.0 ** (p - 1))
    np.testing.assert_allclose(entropy.project(start, -v), entropy.weights(v), rtol=1e-12)


@pytest.mark.parametrize(("price", "p"), PRICES)
def test_the_projection_is_the_supremum_it_is_defined_by(price, p):
    entropy, m, v = PairEntropy(price, p), RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    q = entropy.weights(m)
    projected = entropy.project(q, v)
    np.testing.assert_allclose(projected, entropy.weights(m - v), rtol=1e-10)
    best = np.sum(v * projected) - entropy.distance(projected, q)
    for _ in range(20):
        other = projected * np.exp(0.3 * RNG.normal(size=(2, 2)))
        if price == "log1p" and np.any(other.sum(axis=0) >= 1):
            continue
        assert np.sum(v * other) - entropy.distance(other, q) <= best + 1e-12


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_theorem_10_at_the_minimiser_of_the_push(p):
    """Pythagoras: B(a, q) = B(a, q*) + B(q*, q) for balanced a and any q of the family."""
    entropy, M = PairEntropy("power", p), RNG.normal(size=(5, 4, 2))
    found = minimize(lambda b: np.log(entropy.risk(entropy.weights(M @ b))), np.zeros(2), tol=1e-12)
    best = entropy.weights(M @ found.x)
    columns = M.reshape(-1, 2)
    np.testing.assert_allclose(columns.T @ best.ravel(), 0.0, atol=1e-4 * best.sum())
    away = RNG.normal(size=20)
    away -= columns @ np.linalg.lstsq(columns, away, rcond=None)[0]
    balanced = best + 0.2 * best.min() * away.reshape(5, 4) / np.abs(away).max()
    for coef in RNG.normal(size=(5, 2)):
        q = entropy.weights(M @ coef)
        assert entropy.distance(balanced, q) == pytest.approx(
            entropy.distance(balanced, best) + entropy.distance(best, q), rel=1e-4
        )
        assert entropy.distance(np.zeros((5, 4)), q) == pytest.approx(entropy.risk(q), rel=1e-10)


def test_weights_of_zero_are_weights():
    entropy = PairEntropy("power", 3.0)
    q = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert np.isfinite(entropy.value(q))
    assert entropy.distance(q, q) == 0.0
    assert entropy.distance(np.ones((2, 2)), q) == np.inf
    np.testing.assert_allclose(entropy.project(q, np.zeros((2, 2))), q, rtol=1e-15)


def test_what_is_no_pair_weight_is_refused():
    with pytest.raises(ValueError, match="'max' has no entropy"):
        PairEntropy("max")
    with pytest.raises(ValueError, match="at least 1"):
        PairEntropy("power", 0.5)
    with pytest.raises(ValueError, match="one finite weight"):
        PairEntropy().value([[1.0, -1.0]])
    with pytest.raises(ValueError, match="less than 1"):
        PairEntropy("log1p").value([[0.6], [0.6]])
