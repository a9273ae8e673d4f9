"""Planned numbers of rows against simulation and against the smallest that brute force finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import binom, binomtest, multivariate_normal

from toprank.inference import compare, designs, interval
from toprank.inference.auc_models import (
    MODELS,
    _apart,
    _together,
    auc_covariance,
    auc_variance,
    both_negative,
)
from toprank.inference.designs import ComparisonPlan, smallest_plan_near
from toprank.inference.equal_shares import equal_shares_p_value
from toprank.inference.planning import (
    comparison_power,
    comparison_size,
    expected_half_width,
    sample_size,
)
from toprank.inference.shares import clopper_pearson


def wins(high, low):
    """Which positives rank above which negatives, in every draw of a simulation."""
    return (high[:, :, None] > low[:, None, :]).astype(float)


def paired_scores(rng, draws, count, means, scale, correlation):
    """Normal scores of two rankers, (2, draws, count)."""
    common, own = rng.normal(size=(draws, count)), rng.normal(size=(draws, count))
    other = correlation * common + np.sqrt(1 - correlation**2) * own
    return np.stack((means[0] + scale * common, means[1] + scale * other))


def delong(high, low):
    """Placements of the positives and the negatives, and the AUC, in every draw."""
    won = wins(high, low)
    return won.mean(axis=2), won.mean(axis=1), won.mean(axis=(1, 2))


# ---- the models of the AUC ---------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [-0.99, -0.4, 0.0, 0.5, 0.999])
@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (1.3, 1.3), (-2.0, 0.7), (3.0, 3.1)])
def test_the_normal_quadrant_is_that_of_scipy(a, b, correlation):
    normal = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    assert both_negative(a, b, correlation) == pytest.approx(normal.cdf([a, b]), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [(-1.2, 0.4), (0.3, 0.9), (2.0, -2.0)])
@pytest.mark.parametrize("correlation", [0.05, 0.6, 0.99])
def test_two_indicators_are_apart_by_what_they_do_not_share(a, b, correlation):
    whole = sum(_together(c, c, correlation) for c in (a, b)) - 2 * _together(a, b, correlation)
    assert _apart(a, b, correlation) == pytest.approx(whole, rel=1e-9)


def test_the_normal_quadrant_of_one_variable_is_its_own():
    assert both_negative(0.3, 0.8, 1.0) == pytest.approx(both_negative(0.3, 0.8, 1 - 1e-9))


@pytest.mark.parametrize(
    ("model", "spread"), [("binormal", 1), ("binormal", 2), ("exponential", 1)]
)
def test_the_variance_of_the_auc_is_that_of_simulated_scores(model, spread):
    rng = np.random.default_rng(0)
    value, m, n, draws = 0.8, 12, 20, 20_000
    if model == "binormal":
        high = ndtri(value) * np.sqrt(1 + spread**2) + spread * rng.normal(size=(draws, m))
        low = rng.normal(size=(draws, n))
    else:
        high = rng.exponential(value / (1 - value), size=(draws, m))
        low = rng.exponential(size=(draws, n))
    areas = wins(high, low).mean(axis=(1, 2))
    assert np.mean(areas) == pytest.approx(value, abs=0.003)
    assert auc_variance(value, m, n, model, spread) == pytest.approx(np.var(areas), rel=0.04)


@given(
    st.floats(0.01, 0.99), st.integers(2, 500), st.integers(2, 500), st.floats(0.1, 10),
    st.sampled_from(["binormal", "exponential"]),
)  # fmt: skip
def test_no_model_varies_more_than_any_scores_can(value, m, n, spread, model):
    assert auc_variance(value, m, n, model, spread) <= auc_variance(value, m, n, "any") * (1 + 1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.5])
def test_the_covariance_of_two_aucs_is_that_of_simulated_scores(correlation):
    rng = np.random.default_rng(1)
    values, m, n, draws = np.array([0.7, 0.85]), 12, 20, 20_000
    high = paired_scores(rng, draws, m, ndtri(values) * np.sqrt(5), 2.0, correlation)
    low = paired_scores(rng, draws, n, (0, 0), 1.0, correlation)
    areas = [wins(*pair).mean(axis=(1, 2)) for pair in zip(high, low, strict=True)]
    simulated = np.cov(areas)
    wanted = auc_covariance(*values, correlation, m, n, 2.0)
    assert wanted == pytest.approx(simulated[0, 1], abs=0.03 * np.sqrt(np.prod(np.diag(simulated))))


# ---- intervals ---------------------------------------------------------------------------------


def divided(rows, prevalence):
    """Positives and negatives among so many rows, each rounded up; two are needed of each."""
    return tuple(max(2, int(np.ceil(rows * p - 1e-9))) for p in (prevalence, 1 - prevalence))


def half_width_of(value, positives, negatives, model):
    plan = expected_half_width(
        "auc", value=value, positives=positives, negatives=negatives, model=model
    )
    return plan.half_width


@pytest.mark.more
@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", MODELS)
@given(
    value=st.floats(0.05, 0.98), half_width=st.floats(0.02, 0.3), prevalence=st.floats(0.02, 0.9)
)
def test_the_planned_rows_are_the_fewest_that_are_enough(model, value, half_width, prevalence):
    plan = sample_size(
        "auc", value=value, half_width=half_width, prevalence=prevalence, model=model
    )
    assert plan.half_width <= half_width
    assert plan.rows == plan.positives + plan.negatives
    fewer = plan.positives - 1, plan.negatives - 1
    if min(fewer) >= 2:
        assert half_width_of(value, *fewer, model) > half_width
    if plan.rows < 200:
        assert (plan.positives, plan.negatives) == next(
            counts
            for counts in map(lambda rows: divided(rows, prevalence), range(1, 250))
            if half_width_of(value, *counts, model) <= half_width
        )


def test_one_class_may_be_fixed():
    plan = sample_size("auc", value=0.85, half_width=0.03, positives=200)
    assert plan.positives == 200
    fewer = expected_half_width(
        "auc", value=0.85, positives=200, negatives=plan.negatives - 1
    ).half_width
    assert plan.half_width <= 0.03 < fewer
    mirrored = sample_size("auc", value=0.85, half_width=0.03, negatives=200)
    assert (mirrored.positives, mirrored.negatives) == (plan.negatives, 200)
    with pytest.raises(ValueError, match=r"out of reach: .* would leave 0\.038"):
        sample_size("auc", value=0.85, half_width=0.03, positives=100)


def test_the_error_needs_what_the_auc_needs():
    asked = {"half_width": 0.05, "prevalence": 0.3, "spread": 2.0}
    area = sample_size("auc", value=0.9, **asked)
    error = sample_size("misranking_error", value=0.1, **asked)
    assert (area.positives, area.negatives) == (error.positives, error.negatives)


@pytest.mark.parametrize(("value", "m", "n"), [(0.85, 80, 160), (0.95, 120, 480), (0.99, 75, 300)])
def test_intervals_of_simulated_samples_are_as_wide_as_planned(value, m, n):
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0], [m, n])
    separation = ndtri(value) * np.sqrt(2)
    found = [interval("auc", y, rng.normal(size=m + n) + separation * y) for _ in range(60)]
    widths = [(one.high - one.low) / 2 for one in found]
    plan = expected_half_width("auc", value=value, positives=m, negatives=n)
    assert plan.half_width == pytest.approx(np.mean(widths), rel=0.05)


@pytest.mark.parametrize(("value", "m", "n"), [(0.9, 50, 950), (0.9, 950, 50), (0.2, 66, 586)])
def test_exponential_scores_are_planned_with_the_classes_as_they_are(value, m, n):
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0], [m, n])
    mean = np.where(y, value / (1 - value), 1.0)
    found = [interval("auc", y, mean * rng.exponential(size=m + n)) for _ in range(150)]
    widths = [(one.high - one.low) / 2 for one in found]
    plan = expected_half_width("auc", value=value, positives=m, negatives=n, model="exponential")
    assert plan.half_width == pytest.approx(np.mean(widths), rel=0.06)


@pytest.mark.parametrize("model", MODELS)
def test_to_exchange_the_classes_and_turn_the_scores_changes_no_plan(model):
    for value in (0.7, 0.98):
        one = expected_half_width("auc", value=value, positives=30, negatives=400, model=model)
        other = half_width_of(1 - value, 400, 30, model)
        assert one.half_width == pytest.approx(other, rel=1e-9)


def exact_half_width(value, k, level):
    """The mean over the binomial number of positives of half the Clopper-Pearson length."""
    total = 0.0
    for hits in range(k + 1):
        ends = binomtest(hits, k).proportion_ci(level, method="exact")
        total += binom.pmf(hits, k, value) * (ends.high - ends.low) / 2
    return total


@pytest.mark.more
@pytest.mark.sampled(2)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("value", "half_width", "level"),
    [(0.5, 0.2, 0.9), (0.0, 0.1, 0.95), (1.0, 0.1, 0.95), (0.9, 0.15, 0.95), (0.03, 0.18, 0.99)],
)
def test_the_planned_k_is_the_smallest_whose_exact_interval_is_narrow_enough(
    value, half_width, level
):
    plan = sample_size("precision_at", value=value, half_width=half_width, level=level)
    widths = [exact_half_width(value, k, level) for k in range(1, plan.k + 1)]
    assert plan.half_width == pytest.approx(widths[-1], rel=1e-8)
    assert widths[-1] <= half_width
    assert all(width > half_width for width in widths[:-1])
    assert plan.rows == plan.k


def test_a_few_hundred_numbers_of_hits_stand_for_all():
    hits = np.arange(20_001)
    low, high = clopper_pearson(hits / 20_000, 20_000.0, 0.95)
    whole = np.dot(binom.pmf(hits, 20_000, 0.3), high - low) / 2
    plan = expected_half_width("precision_at", value=0.3, k=20_000)
    assert plan.half_width == pytest.approx(whole, rel=1e-9)


def test_an_interval_as_narrow_as_nobody_asks_for_is_planned_in_moments(monkeypatch):
    counted, real = [], clopper_pearson

    def count(share, *others):
        counted.append(np.size(share))
        return real(share, *others)

    monkeypatch.setattr(designs, "clopper_pearson", count)
    assert sample_size("precision_at", value=0.8, half_width=1e-6).k > 6e11
    assert sum(counted) < 50_000


@pytest.mark.more
def test_many_rows_are_planned_by_the_normal_approximation_in_the_limit():
    plan = sample_size("precision_at", value=0.3, half_width=1e-4)
    assert plan.k == pytest.approx(0.21 * (1.959964 / 1e-4) ** 2, rel=1e-3)


def test_a_fraction_of_the_list_says_how_long_it_must_be():
    plan = sample_size("precision_at", value=0.6, half_width=0.1, fraction=0.05)
    assert plan.list_length == 20 * plan.k
    assert f"the first {plan.k} rows of a list of {20 * plan.k}" in str(plan)


def test_a_cut_that_moves_with_the_sample_costs_the_variance_it_adds():
    rng = np.random.default_rng(3)
    draws, n, fraction = 4000, 500, 0.2
    scores = np.sort(rng.random((draws, n)), axis=1)[:, ::-1]
    k = int(fraction * n)
    precisions = (rng.random((draws, k)) < scores[:, :k] ** 3).mean(axis=1)
    value, local = np.mean(precisions), (1 - fraction) ** 3
    variance = (value * (1 - value) + (1 - fraction) * (value - local) ** 2) / k
    assert variance == pytest.approx(np.var(precisions), rel=0.06)
    plain = expected_half_width("precision_at", value=value, k=k)
    moving = expected_half_width(
        "precision_at", value=value, k=k, fraction=fraction, local_precision=local
    )
    inflation = np.sqrt(variance / (value * (1 - value) / k))
    assert inflation > 1.05
    assert moving.half_width / plain.half_width == pytest.approx(inflation, rel=0.02)


# ---- comparisons -------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_power_of_a_paired_comparison_is_that_of_simulated_tests(correlation):
    rng = np.random.default_rng(4)
    m, n, draws, values = 60, 100, 1500, np.array([0.8, 0.88])
    high = paired_scores(rng, draws, m, ndtri(values) * np.sqrt(2), 1.0, correlation)
    low = paired_scores(rng, draws, n, (0, 0), 1.0, correlation)
    (high_a, low_a, area_a), (high_b, low_b, area_b) = map(delong, high, low)
    variance = (high_b - high_a).var(axis=1, ddof=1) / m + (low_b - low_a).var(axis=1, ddof=1) / n
    found = np.mean(np.abs(area_b - area_a) / np.sqrt(variance) > 1.959964)
    plan = comparison_power(
        "auc", value=0.8, difference=0.08, correlation=correlation, positives=m, negatives=n
    )
    assert plan.power == pytest.approx(found, abs=0.05)


@pytest.mark.parametrize(
    ("value", "difference", "correlation", "m", "n"),
    [(0.99, 0.008, 0.5, 114, 1018), (0.95, 0.04, 0.5, 33, 700), (0.8, 0.02, 1.0, 9, 81)],
)
def test_the_power_near_one_and_of_few_rows_is_that_of_compare(
    value, difference, correlation, m, n
):
    rng = np.random.default_rng(6)
    y, draws = np.repeat([1, 0], [m, n]), 300
    means = ndtri([value, value + difference]) * np.sqrt(2)
    found = []
    for _ in range(draws):
        high, low = (
            paired_scores(rng, 1, *of, 1.0, correlation) for of in ((m, means), (n, (0, 0)))
        )
        scores = np.concatenate((high[:, 0], low[:, 0]), axis=1)
        found.append(compare("auc", y, *scores).p_value <= 0.05)
    plan = comparison_power(
        "auc", value=value, difference=difference, correlation=correlation, positives=m, negatives=n
    )
    assert plan.power == pytest.approx(np.mean(found), abs=0.06)


def test_rankers_near_one_need_the_rows_that_their_test_needs():
    asked = {"value": 0.95, "difference": 0.04, "correlation": 0.5, "prevalence": 0.02}
    plan = comparison_size("auc", **asked)  # the normal theory wants 44 positives; 32 are enough
    assert 28 < plan.positives < 36 and plan.power == pytest.approx(0.8, abs=0.02)


@pytest.mark.more
@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [{"prevalence": 0.2}, {"positives": 120}, {"negatives": 60}])
@pytest.mark.parametrize("value", [0.6, 0.9, 0.98])
def test_a_class_that_is_short_is_planned_for_or_refused_in_a_few_steps(rows, value):
    try:
        plan = comparison_size("auc", value=value, difference=(1 - value) / 2, **rows)
    except ValueError as error:
        assert "out of reach" in str(error)
        return
    assert plan.power >= 0.8


def test_a_search_from_a_size_that_is_near_finds_the_smallest_in_few_plans():
    made = []

    def plan(size):
        made.append(size)
        power = ndtr(0.1 * np.sqrt(size) - 2)
        about = {"metric": "auc", "value": 0.5, "level": 0.95, "supposed": "", "k": size}
        return ComparisonPlan(**about, difference=0.1, power=power)

    def excess(plan):
        return float(ndtri(plan.power) - ndtri(0.8))

    wanted = int(np.ceil(((ndtri(0.8) + 2) / 0.1) ** 2))
    for start in (1, wanted // 3, wanted, 40 * wanted):
        made.clear()
        assert smallest_plan_near(plan, excess, 2.8, start).k == wanted
        assert len(made) == len(set(made)) <= 15
    assert smallest_plan_near(plan, lambda plan: -1.0, 2.8, 5) is None
    assert smallest_plan_near(plan, lambda plan: 1.0, 2.8, 5).k == 1


@pytest.mark.more
def test_the_power_to_compare_precisions_is_that_of_simulated_tests():
    rng = np.random.default_rng(5)
    k, overlap, draws = 100, 0.5, 20_000
    apart = int(k * (1 - overlap))
    a, b = rng.binomial(apart, 0.45, draws), rng.binomial(apart, 0.65, draws)
    hits = range(apart + 1)  # the p-value that `compare` gives to each outcome
    p_value = np.array([[equal_shares_p_value(i, j, apart) for j in hits] for i in hits])
    found = np.mean(p_value[a, b] <= 0.05)
    plan = comparison_power("precision_at", value=0.5, difference=0.1, k=k, overlap=overlap)
    assert plan.power == pytest.approx(found, abs=0.015)
    assert plan.rows == 150


@pytest.mark.more
def test_a_planned_comparison_at_k_has_the_power_that_was_asked_for():
    plan = comparison_size("precision_at", value=0.3, difference=0.2, power=0.8)
    rng = np.random.default_rng(0)
    y = np.zeros(4 * plan.k, dtype=int)
    scores = np.zeros((2, len(y)))
    scores[0, : plan.k] = scores[1, plan.k : 2 * plan.k] = 1.0  # two lists without a common row
    found = []
    for _ in range(300):
        y[: plan.k], y[plan.k : 2 * plan.k] = (rng.random(plan.k) < share for share in (0.5, 0.3))
        found.append(compare("precision_at", y, *scores, k=plan.k).p_value <= 0.05)
    assert np.mean(found) >= 0.8 - 2 * np.sqrt(0.16 / 300)


@pytest.mark.parametrize(
    ("metric", "design"),
    [("auc", {"prevalence": 0.2}), ("auc", {"positives": 900}), ("precision_at", {})],
)
@pytest.mark.parametrize("difference", [0.04, -0.05])
def test_the_rows_of_a_comparison_are_the_fewest_with_the_power(metric, design, difference):
    plan = comparison_size(metric, value=0.8, difference=difference, **design)
    assert plan.power >= 0.8
    rows = (
        {"k": plan.k - 1}
        if metric == "precision_at"
        else {"positives": plan.positives - ("prevalence" in design)}
        | {"negatives": plan.negatives - 1}
    )
    assert comparison_power(metric, value=0.8, difference=difference, **rows).power < 0.8


@pytest.mark.more
def test_rankers_alike_are_easier_to_compare():
    sizes = [
        comparison_size("auc", value=0.8, difference=0.02, correlation=c, prevalence=0.1).rows
        for c in (-0.5, 0.0, 0.5, 0.9, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_lists_with_more_rows_in_common_are_easier_to_compare():
    lists = [
        comparison_size("precision_at", value=0.4, difference=0.02, overlap=o).k
        for o in (0.0, 0.3, 0.6, 0.9)
    ]
    assert lists == sorted(lists, reverse=True)


def test_lists_that_must_differ_are_told_apart_for_certain():
    assert comparison_power("precision_at", value=0.0, difference=0.999999, k=10).power == 1
    assert comparison_power("precision_at", value=0.9, difference=0.1, k=5, overlap=0).power < 1


# ---- printing and refusals ---------------------------------------------------------------------


def test_a_plan_prints_what_to_label_and_what_to_expect():
    plan = comparison_size("precision_at", value=0.5, difference=0.1, overlap=0.5)
    lines = str(plan).splitlines()
    assert lines[0] == "precision_at of 0.5 against 0.6"
    assert (
        lines[1].split()
        == f"label the first {plan.k} rows of each list, {plan.rows} in all".split()
    )
    assert lines[2].endswith("of a two-sided 5% test")
    assert repr(plan) == str(plan)


AUC = {"value": 0.8, "half_width": 0.05}
COMPARE = {"value": 0.8, "difference": 0.05}
REFUSED = [
    (sample_size, "ndcg_at", AUC, "no plan for 'ndcg_at'"),
    (sample_size, "auc", AUC, "Expected one of prevalence .* got 0 of them"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "positives": 5}, "got 2 of them"),
    (sample_size, "auc", AUC | {"prevalence": 0.0}, "prevalence=0.0"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "half_width": 0.5}, "between 0 and 1/2"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "value": 1.0}, "ends excluded"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "level": 95}, "not a confidence level"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "model": "normal"}, "Unknown model"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "spread": 0}, "spread=0"),
    (sample_size, "auc", AUC | {"prevalence": 0.1, "fraction": 0.1}, "does not take fraction"),
    (sample_size, "auc", AUC | {"positives": 2.5}, "positives=2.5"),
    (sample_size, "precision_at", AUC | {"prevalence": 0.1}, "does not take prevalence"),
    (sample_size, "precision_at", AUC | {"fraction": 1.5}, "fraction=1.5"),
    (sample_size, "precision_at", AUC | {"local_precision": 2}, "local_precision=2"),
    (sample_size, "precision_at", AUC | {"value": -0.1}, "value=-0.1"),
    (expected_half_width, "auc", {"value": 0.8, "positives": 9}, "negatives=None"),
    (expected_half_width, "auc", {"value": 0.8, "k": 9}, "does not take k"),
    (expected_half_width, "precision_at", {"value": 0.8}, "k=None"),
    (expected_half_width, "precision_at", {"value": 0.8, "k": 0}, "k=0"),
    (comparison_size, "auc", COMPARE | {"prevalence": 0.1, "power": 0.01}, "power=0.01"),
    (comparison_size, "auc", COMPARE | {"prevalence": 0.1, "difference": 0}, "not 0"),
    (comparison_size, "auc", COMPARE | {"prevalence": 0.1, "difference": 0.3}, "supposed to be"),
    (comparison_size, "auc", COMPARE | {"prevalence": 0.1, "correlation": 2}, "correlation=2"),
    (comparison_size, "auc", COMPARE | {"positives": 5}, "out of reach.* The 5 positives are too"),
    (sample_size, "auc", AUC | {"negatives": 5}, "out of reach.* The 5 negatives are too few"),
    (
        sample_size,
        "auc",
        AUC | {"prevalence": 0.5, "half_width": 1e-9},
        r"leave \S+ Ask for less[.]",
    ),
    (sample_size, "precision_at", AUC | {"half_width": 1e-9}, r"leave \S+ Ask for less[.]"),
    (
        sample_size,
        "precision_at",
        {"value": 1.0, "half_width": 0.05, "local_precision": 0.3},
        "or suppose a precision nearer to local_precision",
    ),
    (comparison_size, "precision_at", COMPARE | {"overlap": 1.0}, "overlap=1.0"),
    (comparison_size, "precision_at", COMPARE | {"difference": 0.2, "overlap": 0.9}, "cannot come"),
    (comparison_size, "precision_at", COMPARE | {"positives": 9}, "does not take positives"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("function", "metric", "keywords", "complaint"), REFUSED)
def test_a_plan_that_cannot_be_is_refused(function, metric, keywords, complaint):
    with pytest.raises(ValueError, match=complaint):
        function(metric, **keywords)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_next_to_no_difference_is_found_as_often_as_a_false_alarm(level):
    rows = {"positives": 100, "negatives": 900, "correlation": 0.7}
    plan = comparison_power("auc", value=0.85, difference=1e-9, level=level, **rows)
    assert plan.power == pytest.approx(1 - level, rel=1e-6)
