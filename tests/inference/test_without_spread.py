"""Samples that show no spread, or hold a single row of a class."""

import numpy as np
import pytest

from toprank.inference import compare, interval
from toprank.metrics import Metric, f_skew, pnorm_risk
from toprank.metrics.left_out_expansions import least_average_precision

Y = np.repeat([0, 1], [40, 12])
PERFECT = np.arange(52.0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("metric", "settings"),
    [
        ("auc", {}),
        ("misranking_error", {}),
        ("partial_auc", {"max_fpr": 0.2}),
        ("tpr_at_fpr", {"fpr": 0.1}),
        ("average_precision", {}),
        ("margin_error", {"theta": 0.0}),
        ("bedroc", {}),
    ],
)
def test_a_perfect_ranker_beats_its_reverse(metric, settings):
    result = compare(metric, Y, Y.astype(float), -Y.astype(float), **settings)
    assert result.p_value == pytest.approx(2.0**-11)  # twelve disjoint pairs agree
    assert result.low <= result.difference <= result.high
    assert abs(result.low) <= 1
    assert abs(result.high) <= 1
    assert result.low * result.high > 0
    assert "no spread" in result.note


def test_groups_that_agree_count_in_twos():
    groups = np.arange(52) % 10
    result = compare("auc", Y, Y.astype(float), -Y.astype(float), groups=groups)
    assert result.p_value == pytest.approx(2.0**-4)


def test_lists_that_agree_are_a_sign_test():
    y, s = np.tile([1, 1, 0, 0, 0], 10), np.tile([5.0, 4, 3, 2, 1], 10)
    lists = np.repeat(np.arange(10), 5)
    result = compare("precision_at", y, s, -s, k=2, lists=lists)
    assert result.p_value == pytest.approx(2.0**-9)
    assert 0.3 < result.low < result.high == 1.0
    money = compare("value_at", y, s, -s, k=2, lists=lists)
    assert money.p_value == pytest.approx(2.0**-9)
    assert money.low == pytest.approx(2 * result.low) and money.high == 2.0
    found = interval("value_at", y, s, k=2, lists=lists)
    assert found.low == pytest.approx(2 * 0.025**0.1) and found.high == 2.0
    assert "Every list has the same value" in found.note


@pytest.mark.parametrize(
    ("metric", "settings"),
    [
        ("value_at", {"k": 1, "benefit": 5.0, "cost": 1.0}),
        ("value_at", {"k": 1, "benefit": np.full(30, 5.0), "cost": np.ones(30)}),
        ("lift_at", {"k": 1}),
        ("precision_at", {"k": 1}),
    ],
)
@pytest.mark.parametrize("lists", [2, 3, 5, 6])
def test_an_interval_of_lists_that_agree_leaves_out_0_where_their_sign_test_does(
    metric, settings, lists
):
    y, a, b = (
        np.tile(one, lists) for one in ([1, 0, 0, 0, 0], [5.0, 4, 3, 2, 1], [3.0, 5, 4, 2, 1])
    )
    settings = {name: one[: len(y)] if np.ndim(one) else one for name, one in settings.items()}
    found = compare(metric, y, a, b, lists=np.repeat(np.arange(lists), 5), **settings)
    assert found.p_value == 2.0 ** (1 - lists)
    assert (found.low > 0) == (found.p_value < 0.05)


def test_a_sum_without_bounds_has_an_interval_that_its_sign_test_allows():
    y = np.repeat([1, 0], 4)
    metric = Metric(lambda y, s, sample_weight: float(np.sign(s[0])))
    found = compare(metric, y, np.ones(8), -np.ones(8))
    assert found.p_value == 0.125 and (found.low, found.high) == (0.0, 2.0)


def test_a_ranker_is_as_good_as_itself():
    noisy = np.random.default_rng(0).normal(size=52) + Y
    for metric in ("auc", "bedroc", "average_precision"):
        same = compare(metric, Y, noisy, noisy)
        assert same.difference == 0
        assert same.p_value == 1
        assert "No row tells the rankers apart" in same.note


@pytest.mark.parametrize("rows", [(1, 30), (30, 1), (1, 1), (2, 7)])
def test_average_precision_of_a_few_rows_has_an_interval_and_no_warning(rows):
    positives, negatives = rows
    y = np.repeat([1, 0], rows)
    s = np.arange(positives + negatives, 0.0, -1.0)
    result = interval("average_precision", y, s)
    assert result.estimate == 1
    assert 0 <= result.low < 0.9
    assert result.high == 1
    if min(rows) == 1:
        assert "does not show how far" in result.note


def test_a_difference_at_k_stays_within_what_is_possible():
    y = np.r_[1, np.zeros(97, int)]
    s = np.random.default_rng(1).normal(size=98)
    s[0] = 9.0
    result = compare("recall_at", y, s, -s, k=10)
    assert -1 <= result.low <= result.difference == 1 == result.high


@pytest.mark.more
def test_a_function_of_your_own_sees_the_named_class_as_positive():
    noisy = np.random.default_rng(0).normal(size=52) + Y
    names = np.where(Y == 1, "a", "b")
    wanted = f_skew(Y, noisy)
    assert interval("f_skew", names, noisy, pos_label="a").estimate == pytest.approx(wanted)
    pair = compare(f_skew, names, noisy, -noisy, pos_label="a")
    assert pair.estimates[0] == pytest.approx(wanted)


def test_rows_without_a_group_are_refused():
    with pytest.raises(ValueError, match="every row must be in a known group"):
        interval("auc", Y, PERFECT, groups=[None, *["a"] * 51])


@pytest.mark.parametrize("p", [64, 1000])
def test_risks_of_a_large_power_are_numbers_or_ask_for_their_logarithm(p):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 60])
    a, b = rng.normal(size=(2, 260)) + y
    for settings in ({"log": True}, {"normalize": True}):
        assert compare("pnorm_risk", y, a, b, p=p, **settings).p_value <= 1
    if p == 64:
        assert compare("pnorm_risk", y, a, b, p=p).p_value <= 1
        return
    assert pnorm_risk(y, a, p) == np.inf
    for refused in (
        lambda: interval("pnorm_risk", y, a, p=p),
        lambda: compare("pnorm_risk", y, a, b, p=p),
    ):
        with pytest.raises(ValueError, match="log=True"):
            refused()


@pytest.mark.parametrize(("positives", "negatives"), [(20, 30), (6, 25), (4, 3)])
def test_a_list_in_reverse_has_an_interval_though_rounding_alone_is_its_spread(
    positives, negatives
):
    rows = positives + negatives
    found = interval("average_precision", np.arange(rows) < positives, np.arange(rows))
    least, _ = least_average_precision(positives / rows, positives)
    assert found.low == pytest.approx(least) and found.high > found.estimate + 0.05
    assert "no spread" in found.note


def test_only_resamples_that_agree_are_said_to_agree():
    y, s = np.repeat([1, 0], [3, 9]), np.arange(12.0)[::-1]

    def half(y, s, sample_weight):
        return float(np.sum(sample_weight[s > 10]) < 2)

    metric = Metric(half, values=(0.0, 1.0))
    found = interval(metric, y, s, n_resamples=50)
    assert found.estimate == 1 and found.standard_error > 0
    assert "Every resample" not in found.note and "largest there is" in found.note
    assert "12 trials" in interval(Metric(lambda y, s: 1.0, values=(0, 1)), Y, PERFECT).note
