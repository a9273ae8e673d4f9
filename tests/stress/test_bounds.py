"""Every bound of any arguments is a number, infinite only where it says that it says nothing."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from toprank import bounds

#: Arguments that make a bound, from which one or more are then replaced.
CALLS = {
    "pnorm_push": {
        "epsilon": 0.1,
        "theta": 0.1,
        "n_pos": 100,
        "n_neg": 100,
        "p": 2.0,
        "log_covering_number": 3.0,
    },
    "pnorm_push_2006": {
        "epsilon": 0.1,
        "theta": 0.1,
        "n_pos": 100,
        "n_neg": 100,
        "p": 2.0,
        "log_covering_number": 3.0,
    },
    "margin": {"delta": 0.05, "theta": 0.1, "n": 10**7, "pair_fraction": 0.2, "n_weak": 50},
    "margin_cover": {
        "epsilon": 0.1,
        "theta": 0.1,
        "n": 1000,
        "pair_fraction": 0.2,
        "log_covering_number": 3.0,
    },
    "margin_sample_size": {
        "epsilon": 0.1,
        "probability": 0.05,
        "theta": 0.1,
        "pair_fraction": 0.2,
        "log_covering_number": 3.0,
    },
    "excess_ranking_risk": {"delta": 0.05, "n": 1000, "rademacher": 0.1},
    "excess_convex_risk": {
        "delta": 0.05,
        "n": 1000,
        "rademacher": 0.1,
        "loss": "exponential",
        "score_bound": 2.0,
    },
    "u_statistic": {"deviation": 0.1, "n": 1000},
    "ranking_regret": {"loss": "logistic", "surrogate_regret": 0.01, "prevalence": 0.3},
    "balanced_regret": {"loss": "logistic", "surrogate_regret": 0.01},
    "pairwise_regret": {"loss": "logistic", "surrogate_regret": 0.01},
    "plug_in_regret": {"error": 0.01, "prevalence": 0.3},
    "low_noise_constant": {"noise_exponent": 0.5, "constant": 2.0},
    "ranking_risk_from_convex": {"loss": "exponential", "excess": 0.01},
    "vc_rademacher": {"vc_dimension": 5, "n": 1000, "constant": 1.0},
    "rkhs_rademacher": {"radius": 2.0, "kernel_diagonal": 1.0, "n": 1000},
}
UGLY = (
    *(0, -1, 1, 2, 10, 1e6, 1e300, 1e-300, 5e-324, 0.5, 1 - 1e-16, np.inf, -np.inf, np.nan),
    *(-0.5, 10**30, 1e16, True, None, "x", [1.0, 2.0], np.float32(0.25), np.int8(3)),
)


def asked(name, arguments):
    """Evaluate a bound; the refusals that are allowed say what was wrong."""
    try:
        found = getattr(bounds, name)(**arguments)
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 15, (name, arguments, error)
        return False
    value = np.asarray(getattr(found, "value", found), dtype=np.float64)
    assert not np.any(np.isnan(value)), (name, arguments)
    if not np.all(np.isfinite(value)):
        assert getattr(found, "vacuous", False), (name, arguments, found)
    assert str(found)
    return True


def attack(name, rng, mixtures):
    base = CALLS[name]
    assert asked(name, base), name
    tried = 1
    for key in base:
        for value in UGLY:
            asked(name, {**base, key: value})
            tried += 1
    for _ in range(mixtures):
        drawn = {
            key: UGLY[rng.integers(len(UGLY))] if rng.random() < 0.5 else value
            for key, value in base.items()
        }
        asked(name, drawn)
        tried += 1
    return tried


@pytest.mark.parametrize("name", CALLS)
def test_a_bound_of_ugly_arguments_is_a_number_or_a_refusal(name, record_property):
    record_property("cases", attack(name, np.random.default_rng(0), 100))


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_bounds_of_many_ugly_arguments_are_numbers_or_refusals(name, record_property):
    record_property("cases", attack(name, np.random.default_rng(1), 20_000))


@pytest.mark.parametrize("n", [2, 3, 1000, 10**9])
@pytest.mark.parametrize("deviation", [1e-12, 1e-3, 0.3])
def test_hoeffdings_bound_is_its_formula_to_the_last_digits(n, deviation):
    with localcontext() as context:
        context.prec = 50
        exact = min(Decimal(1), 2 * (-2 * Decimal(n // 2) * Decimal(deviation) ** 2).exp())
        got = bounds.u_statistic(deviation=deviation, n=n).value
        slack = Decimal("1e-12") * exact + Decimal("1e-300")
        assert abs(Decimal(got) - exact) <= slack
