"""Groups that were drawn whole: how few there may be, and what they are worth."""

import numpy as np
import pytest
from scipy import stats

from toprank.inference import compare, interval
from toprank.inference.intervals import allowance_for_groups
from toprank.inference.sample import Sample
from toprank.metrics import METRICS, auc
from toprank.simulate import ScoreSetting, coverage

SMOOTH = [
    ("auc", {}),
    ("partial_auc", {"max_fpr": 0.1}),
    ("average_precision", {}),
    ("pnorm_risk", {"p": 4, "normalize": True}),
]


def rows(rng, count=15, mean=40, rate=0.1, holding=1.0):
    """Groups of unequal sizes, each with its own level of the scores."""
    size = np.maximum(2, mean * np.exp(rng.normal(size=count) - 0.5)).astype(int)
    groups = np.repeat(np.arange(count), size)
    holds = rng.random(count) < holding
    y = holds[groups] & (rng.random(len(groups)) < rate)
    level, lift = rng.normal(size=(2, count)) / 2
    return groups, y, level[groups] + rng.normal(size=len(groups)) + (1.5 + lift[groups]) * y


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_trials_over_few_groups_are_worth_less_by_the_square_of_the_quantiles(level):
    groups, y, s = rows(np.random.default_rng(0))
    sample = Sample.of(y, s, groups=groups)
    freedom = sample.group_support.freedom
    normal, student = stats.norm.ppf((1 + level) / 2), stats.t.ppf((1 + level) / 2, freedom)
    assert allowance_for_groups(sample, level) == pytest.approx((normal / student) ** 2)
    assert allowance_for_groups(Sample.of(y, s), level) == 1
    every = stats.t.ppf((1 + level) / 2, 14)  # of the rows above a cut all groups tell
    assert allowance_for_groups(sample, level, True) == pytest.approx((normal / every) ** 2)


def test_a_precision_over_groups_of_which_few_hold_a_positive_is_not_as_wide_as_a_recall():
    groups, y, s = rows(np.random.default_rng(3), holding=0.3)
    precision, recall = (
        interval(name, y, s, groups=groups, k=0.05, n_resamples=200)
        for name in ("precision_at", "recall_at")
    )
    assert precision.low < precision.estimate < precision.high
    assert precision.high - precision.low < 0.8 < recall.high - recall.low


def test_the_spread_is_that_of_each_group_left_out():
    groups, y, s = rows(np.random.default_rng(0))
    left = np.array([auc(y[groups != one], s[groups != one]) for one in range(15)])
    expected = np.sqrt(14 / 15 * np.sum((left - left.mean()) ** 2))
    assert interval("auc", y, s, groups=groups).standard_error == pytest.approx(expected)
    gap = np.array([auc(y[groups != g], -s[groups != g]) for g in range(15)]) - left
    pair = compare("auc", y, -s, s, groups=groups)
    expected = np.sqrt(14 / 15 * np.sum((gap - gap.mean()) ** 2))
    assert pair.standard_error == pytest.approx(expected)


def test_degrees_of_freedom_are_of_the_groups_that_hold_the_rarer_class():
    groups = np.repeat(np.arange(40), 10)
    y = np.isin(groups, [3, 5, 8, 9]) & (np.arange(400) % 10 < 2)
    support = Sample.of(y, np.arange(400.0), groups=groups).group_support
    assert support.count == 40
    assert support.holding == (4, 40)
    assert support.freedom == pytest.approx(3)  # four equal groups
    y[groups == 3] = True  # one of them now holds 10 of 16
    support = Sample.of(y, np.arange(400.0), groups=groups).group_support
    assert support.holding == (4, 39)
    assert support.freedom == pytest.approx((4 + 16**2 / (100 + 3 * 4)) / 2 - 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "settings"), [*SMOOTH, ("precision_at", {"k": 20})])
def test_a_result_says_how_few_groups_carry_it(name, settings):
    groups, y, s = rows(np.random.default_rng(1))
    note = interval(name, y, s, groups=groups, **settings).note
    assert "of 15 groups hold a positive" in note
    assert "of 15 groups hold a positive" in compare(name, y, s, -s, groups=groups, **settings).note
    many, y, s = rows(np.random.default_rng(1), count=80, mean=10, rate=0.4)
    assert interval(name, y, s, groups=many, **settings).note == ""


def test_the_note_of_a_precision_counts_the_groups_that_its_interval_counts():
    groups, y, s = rows(np.random.default_rng(1), holding=0.3)
    precision, recall = (
        interval(name, y, s, groups=groups, k=20, n_resamples=99).note
        for name in ("precision_at", "recall_at")
    )
    assert "Each of the 15 tells of the rows above the cut" in precision
    assert "worth" not in precision and "worth" in recall  # of equal groups that hold a positive


@pytest.mark.parametrize(("name", "settings"), [*SMOOTH, ("precision_at", {"k": 20})])
@pytest.mark.parametrize("holding", [1, 2])
def test_two_groups_with_a_positive_are_refused_with_the_reason(name, settings, holding):
    groups = np.repeat(np.arange(30), 10)
    y = (groups < holding) & (np.arange(300) % 3 == 0)
    s = np.random.default_rng(0).normal(size=300) + y
    with pytest.raises(ValueError, match=f"{holding} of 30 group.* a positive, expected at least"):
        interval(name, y, s, groups=groups, **settings)
    with pytest.raises(ValueError, match="do not show how far groups differ"):
        compare(name, y, s, -s, groups=groups, **settings)


def test_a_perfect_ranking_of_few_groups_leaves_more_possible_than_one_of_rows():
    groups = np.repeat(np.arange(12), 20)
    y = np.arange(240) % 20 < 5
    s = y + np.arange(240) / 1000
    free, grouped = interval("auc", y, s), interval("auc", y, s, groups=groups)
    assert grouped.high == 1
    assert grouped.low < free.low
    s[0] = 0.9999  # one positive below one negative
    assert interval("auc", y, s, groups=groups).low == pytest.approx(grouped.low, abs=0.06)


def test_many_groups_take_the_sum_of_influences(monkeypatch):
    groups, y, s = rows(np.random.default_rng(2), count=60, mean=10, rate=0.3)
    one_by_one = {name: interval(name, y, s, groups=groups, **how) for name, how in SMOOTH}
    pair = compare("auc", y, s, s**3, groups=groups)
    monkeypatch.setattr("toprank.inference.by_groups._MOST_ENTRIES", 10)
    for name, settings in SMOOTH:
        summed = interval(name, y, s, groups=groups, **settings)
        assert summed.method != one_by_one[name].method
        assert summed.standard_error == pytest.approx(one_by_one[name].standard_error, rel=0.15)
    assert compare("auc", y, s, s**3, groups=groups).p_value == pytest.approx(pair.p_value)


@pytest.mark.more
@pytest.mark.parametrize(("name", "settings"), SMOOTH)
def test_fifteen_unequal_groups_are_covered_and_keep_the_level(name, settings):
    rng = np.random.default_rng(5)
    _, y, s = rows(rng, count=6000)
    truth = METRICS[name].function(y, s, **settings)
    covered, rejected = [], []
    for _ in range(200):
        groups, y, s = rows(rng)
        found = interval(name, y, s, groups=groups, **settings)
        covered.append(found.low <= truth <= found.high)
        a, b = s + rng.normal(size=(2, len(s))) / 2 + rng.normal(size=(2, 15))[:, groups] / 3
        rejected.append(compare(name, y, a, b, groups=groups, **settings).p_value <= 0.05)
    assert np.mean(covered) >= 0.905  # three standard errors below
    assert np.mean(rejected) <= 0.09


@pytest.mark.more
def test_average_precision_of_long_tails_is_covered_over_few_groups():
    setting = ScoreSetting(200, 0.5, "t3", groups=15, unequal=True)
    found = coverage("average_precision", setting, draws=300)
    assert found.covered > 0.91  # two standard errors below 0.935
    assert found.noted == 1


def test_many_groups_of_which_a_few_hold_most_rows_are_named():
    rng = np.random.default_rng(0)
    sizes = np.round(600 / np.arange(1, 31) / 3.995).astype(int)
    for times, named in ((sizes, True), (np.full(30, 20), False)):
        groups = np.repeat(np.arange(30), times)
        y = rng.random(len(groups)) < 0.3
        s = rng.normal(size=len(y)) + y
        note = interval("auc", y, s, groups=groups).note
        assert ("By their rows 30 groups are worth 10 of equal size" in note) == named
