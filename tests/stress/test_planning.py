"""A plan is a finite number that is right for any value, or a refusal that says what to plan."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import norm

from toprank.inference.auc_models import (
    MODELS,
    auc_covariance,
    auc_difference_variance,
    auc_variance,
)
from toprank.inference.planning import (
    comparison_power,
    expected_half_width,
    sample_size,
)

UGLY_SHARES = st.one_of(
    st.sampled_from([1e-100, 1e-20, 1e-9, 0.5, 1 - 1e-9, 1 - 2.0**-53]), st.floats(1e-6, 1 - 1e-6)
)
COUNTS = st.sampled_from([2, 3, 50, 10**6, 10**12, 10**15])
LEVELS = st.sampled_from([1e-300, 0.5, 0.95, 1 - 1e-9, 1 - 2.0**-53])
SPREADS = st.sampled_from([5e-324, 1e-200, 1e-8, 0.3, 1.0, 20.0, 1e8, 1e200, 1e308])


@given(
    metric=st.sampled_from(["auc", "misranking_error"]),
    value=UGLY_SHARES,
    rows=st.tuples(COUNTS, COUNTS),
    level=LEVELS,
    model=st.sampled_from(sorted(MODELS)),
    spread=SPREADS,
)
def test_any_area_has_a_half_width(metric, value, rows, level, model, spread):
    plan = expected_half_width(
        metric,
        value=value,
        positives=rows[0],
        negatives=rows[1],
        level=level,
        model=model,
        spread=spread,
    )
    assert 0 <= plan.half_width <= 0.5
    assert f"{value:g}" in str(plan)


@given(
    value=st.one_of(UGLY_SHARES, st.sampled_from([0, 0.0, 5e-324, 1])),
    k=COUNTS,
    level=LEVELS,
    fraction=st.sampled_from([None, 1e-15, 0.07, 1.0]),
    local_precision=st.sampled_from([None, 0.0, 5e-324, 0.5, 1.0]),
)
def test_any_precision_has_a_half_width(value, k, level, fraction, local_precision):
    plan = expected_half_width(
        "precision_at",
        value=value,
        k=k,
        level=level,
        fraction=fraction,
        local_precision=local_precision,
    )
    assert 0 <= plan.half_width <= 0.5
    assert plan.list_length is None or plan.list_length >= k


@given(
    metric=st.sampled_from(["auc", "misranking_error"]),
    value=st.floats(0.01, 0.99),
    difference=st.sampled_from([5e-324, 1e-300, 1e-17, 1e-12, -1e-12, 1e-9, 1e-3, -1e-3]),
    correlation=st.sampled_from([-1, 0, 0.5, 0.999999, 1 - 2.0**-53, 1]),
    rows=st.tuples(COUNTS, COUNTS),
    spread=SPREADS,
)
def test_any_difference_has_a_power(metric, value, difference, correlation, rows, spread):
    power = comparison_power(
        metric,
        value=value,
        difference=difference,
        correlation=correlation,
        positives=rows[0],
        negatives=rows[1],
        spread=spread,
    ).power
    assert 0 <= power <= 1  # two rows of each class never show anything


def by_definition(value, difference, correlation, m, n, spread):
    """Variance of a difference of two AUCs from normal quadrants by adaptive quadrature."""
    values = value, value + difference
    cuts = ndtri(values)

    def quadrant(a, b, r):
        if r > 1 - 1e-12:
            return ndtr(min(a, b))
        root = np.sqrt(1 - r * r)
        inside = [x for x in (b / r, b / r - root, b / r + root) if x < a] if abs(r) > 0.1 else []
        return quad(
            lambda z: norm.pdf(z) * ndtr((b - r * z) / root),
            -12,
            a,
            points=[*inside, -3.0],
            epsabs=1e-15,
            epsrel=1e-13,
            limit=200,
        )[0]

    part = spread**2 / (1 + spread**2)
    total = 0.0
    for share, weight in ((1.0, 1), (1 - part, m - 1), (part, n - 1)):
        for i, j, r in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, correlation), (1, 0, correlation)):
            sign = 1 if i == j else -1
            pair = quadrant(cuts[i], cuts[j], r * share) - values[i] * values[j]
            total += sign * weight * pair
    return total / (m * n)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spread", [1.0, 7.0])
@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.9999])
@pytest.mark.parametrize("difference", [0.05])
def test_the_variance_of_a_difference_is_that_of_its_definition(difference, correlation, spread):
    given = 0.8, difference, correlation, 30, 70, spread
    got = auc_difference_variance(*given)
    assert got == pytest.approx(by_definition(*given), rel=1e-9)
    apart = [auc_covariance(a, a, 1.0, 30, 70, spread) for a in (0.8, 0.8 + difference)]
    shared = auc_covariance(0.8, 0.8 + difference, correlation, 30, 70, spread)
    assert got == pytest.approx(sum(apart) - 2 * shared, rel=1e-9)


# ---- what went wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("difference", [1e-17, 1e-15, 1e-12, -1e-13])
def test_rankers_that_hardly_differ_are_not_told_apart_for_certain(difference):
    rows = {"positives": 100, "negatives": 100}
    found = comparison_power("auc", value=0.85, difference=difference, correlation=1, **rows)
    assert found.power == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("error", [1e-20, 1e-17, 1e-9])
def test_an_error_too_small_to_take_from_one_has_a_plan(model, error):
    m, n = 10**9, 10**12
    got = expected_half_width(
        "misranking_error", value=error, positives=m, negatives=n, model=model
    ).half_width
    variance = auc_variance(1 - error, m, n, model, rest=error)
    reach = 1.959963984540054 * np.sqrt(variance) / error
    wanted = (expit(logit(error) + reach) - expit(logit(error) - reach)) / 2
    assert got == pytest.approx(wanted, rel=1e-9)
    if model == "exponential":  # Hanley and McNeil's, in fractions
        a = 1 - Fraction(error)
        first, second = a / (2 - a) - a**2, 2 * a**2 / (1 + a) - a**2
        exact = (a * (1 - a) + (m - 1) * first + (n - 1) * second) / (m * n)
        assert variance == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("spread", "like"), [(1e200, 1e8), (1e-200, 1e-8), (1e308, 1e8)])
def test_a_spread_whose_square_is_no_float_is_that_of_one_class_alone(spread, like):
    rows = {"value": 0.85, "positives": 50, "negatives": 500}
    far = expected_half_width("auc", spread=spread, **rows).half_width
    assert far == pytest.approx(expected_half_width("auc", spread=like, **rows).half_width)


def test_a_narrow_interval_keeps_its_digits():
    rows = {"positives": 10**15, "negatives": 10**15}
    got = expected_half_width("auc", value=0.5, **rows).half_width
    error = np.sqrt(auc_variance(0.5, 10**15, 10**15))
    assert got == pytest.approx(1.959963984540054 * error, rel=1e-12)


def test_a_plan_of_a_fraction_or_a_half_float_prints():
    for value in (Fraction(17, 20), np.float32(0.85), np.float16(0.85)):
        plan = sample_size("auc", value=value, half_width=0.1, prevalence=0.5)
        assert isinstance(plan.value, float) and str(plan).startswith("auc of 0.85")
        assert sample_size("precision_at", value=value, half_width=0.2).k > 5
    plan = comparison_power("precision_at", value=Fraction(1, 2), difference=Fraction(1, 4), k=9)
    assert "0.5 against 0.75" in str(plan)


def test_a_long_list_is_as_long_as_its_fraction_says():
    assert expected_half_width("precision_at", value=0, k=7 * 10**9, fraction=0.07).list_length == (
        10**11
    )


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"metric": "auc", "value": 5e-324, "positives": 9, "negatives": 9}, "and from 1e-100"),
        ({"metric": "auc", "value": 0.8, "positives": 10**300, "negatives": 9}, "at most 1e[+]15"),
        ({"metric": "precision_at", "value": 0.8, "k": 10**30}, "at most 1e[+]15"),
        ({"metric": "precision_at", "value": 0.8, "k": 9, "fraction": 5e-324}, "from 1e-15"),
    ],
)
def test_numbers_that_nobody_plans_for_are_refused(asked, complaint):
    with pytest.raises(ValueError, match=complaint):
        expected_half_width(**asked)
