"""Errors that are not normal (Clémençon, Lugosi & Vayatis 2006, Remark 5)."""

import numpy as np
import pytest

from toprank.simulate import heteroscedastic, regression
from toprank.simulate.error_laws import ERROR_LAWS


@pytest.mark.parametrize("name", sorted(ERROR_LAWS))
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (1.0, 0.0)])
def test_the_chance_is_that_of_draws(name, a, b):
    law, rng = ERROR_LAWS[name], np.random.default_rng(0)
    apart = a * law.draw(rng, 200_000) - b * law.draw(rng, 200_000)
    for x in (0.0, 0.3, 2.0):
        assert float(law.chance(np.array(x), a, b)) == pytest.approx(np.mean(apart > x), abs=4e-3)


@pytest.mark.parametrize("name", sorted(ERROR_LAWS))
def test_nearly_equal_scales_and_no_error_at_all(name):
    law = ERROR_LAWS[name]
    x = np.linspace(0, 5, 11)
    np.testing.assert_allclose(law.chance(x, 1.0, 1.0 - 1e-5), law.chance(x, 1.0, 1.0), atol=1e-5)
    np.testing.assert_allclose(law.chance(x, 1.0, 0.999), law.chance(x, 1.0, 1.0), atol=1e-3)
    assert law.chance(np.array([0.0, 1.0]), 0.0, 0.0).tolist() == [0.5, 0.0]


@pytest.mark.parametrize("errors", sorted(ERROR_LAWS))
def test_the_best_ranking_is_by_m_and_its_risk_is_met(errors):
    model = heteroscedastic(2, noise=0.7, errors=errors)
    X, y = model.sample(700, random_state=0)
    assert model.excess_risk(X, model.m(X)) == 0.0
    s = model.m(X)
    misranked = np.mean((y[:, None] - y) * (s[:, None] - s) < 0)
    assert model.bayes_risk(X) == pytest.approx(misranked, abs=0.03)
    other = X[:, 0]
    risk = np.mean((y[:, None] - y) * (other[:, None] - other) < 0)
    assert model.bayes_risk(X) + model.excess_risk(X, other) == pytest.approx(risk, abs=0.03)


def test_an_unknown_law_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        regression(errors="uniform")
