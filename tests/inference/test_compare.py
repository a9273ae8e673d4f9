"""Paired comparisons: symmetry, agreement with known tests, and honest p-values."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from toprank.inference import Comparisons, bootstrap, by_groups, compare
from toprank.inference.bootstrap import WeightedMetric
from toprank.inference.paired import Shifts
from toprank.inference.sample import Sample
from toprank.metrics import METRICS

SETTINGS = {
    "partial_auc": {"max_fpr": 0.2},
    "tpr_at_fpr": {"fpr": 0.1},
    "precision_at_recall": {"recall": 0.5},
    "recall_at_precision": {"precision": 0.4},
    "pnorm_risk": {"p": 4, "normalize": True},
    "precision_at": {"k": 30},
    "recall_at": {"k": 0.1},
    "lift_at": {"k": 30},
    "enrichment_factor": {"k": 0.07},
    "ndcg_at": {"k": 30},
    "margin_error": {"theta": 0.25},
    "value_at": {"k": 30, "benefit": 2.0, "cost": 0.5},
}
EXTREME = ("ranking_margin", "max_height", "positives_at_top")
NAMES = [name for name in METRICS if name not in EXTREME]


def data(n=300, high=60, gain=0.0, seed=0, digits=1):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < high
    common = rng.normal(size=n) + y
    a, b = common + rng.normal(size=(2, n))
    return y, np.round(a + gain * y, digits), np.round(b, digits)


def call(name, y, a, b, **options):
    return compare(name, y, a, b, n_resamples=99, **SETTINGS.get(name, {}), **options)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_the_difference_is_that_of_the_metrics(name):
    y, a, b = data()
    result = call(name, y, a, b)
    expected = [METRICS[name].function(y, s, **SETTINGS.get(name, {})) for s in (a, b)]
    assert result.estimates == pytest.approx(tuple(expected))
    assert result.difference == pytest.approx(expected[0] - expected[1])
    assert result.low <= result.difference <= result.high
    assert 0 < result.p_value <= 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_trading_the_rankers_turns_the_sign_and_nothing_else(name):
    y, a, b = data()
    one, other = call(name, y, a, b), call(name, y, b, a)
    assert other.difference == pytest.approx(-one.difference)
    if "bootstrap" in one.method or "swaps" in one.method:
        return
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert other.p_value == pytest.approx(one.p_value)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_much_better_ranker_is_recognised(name):
    y, a, b = data(n=2000, high=400, gain=2.0, digits=6)
    settings = {**SETTINGS.get(name, {})}
    if name == "top_is_positive":
        return
    result = compare(name, y, a, b, n_resamples=200, **settings)
    assert result.p_value < 0.05
    better = result.difference > 0
    assert better == METRICS[name].higher_is_better


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_ranker_does_not_differ_from_itself(name):
    y, a, _ = data()
    stretched = a if name in ("margin_error", "push_risk") else np.exp(a)
    result = call(name, y, a, stretched)
    assert result.difference == 0
    assert result.p_value == 1
    assert result.low <= 0 <= result.high
    assert result.note


def test_the_auc_is_compared_by_delongs_test():
    y, a, b = data()
    kernels = [np.sign(s[y][:, None] - s[~y][None, :]) / 2 + 0.5 for s in (a, b)]
    gap = kernels[0] - kernels[1]
    expected = np.sqrt(gap.mean(1).var(ddof=1) / 60 + gap.mean(0).var(ddof=1) / 240)
    result = compare("auc", y, a, b)
    assert result.standard_error == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("digits", [1, 6])  # with ties and without
def test_average_precisions_are_compared_by_swaps_in_standard_errors(digits):
    y, a, b = data(n=30, high=7, digits=digits)
    found = compare("average_precision", y, a, b, n_resamples=40)
    a, b = (a, b) if found.difference >= 0 else (b, a)
    rng, n = np.random.default_rng(0), len(y)
    order = np.lexsort((b, a, y))  # whatever the order of the rows
    y, (a, b) = y[order], (rankdata(one[order]) for one in (a, b))
    jitter = rng.permutation(n) / (4 * n)
    swaps = [np.zeros(n, dtype=bool), *(rng.random((40, n)) < 0.5)]

    def precisions(ranks):
        above = [ranks >= ranks[row] for row in np.flatnonzero(y)]
        return np.array([np.sum(y & one) / np.sum(one) for one in above])

    def difference(swap):
        apart = 0.0
        for moved in (jitter, -jitter) if digits == 1 else (jitter,):
            one, other = np.where(swap, b, a) + moved, np.where(swap, a, b) + moved
            apart = apart + precisions(one) - precisions(other)
        return abs(np.mean(apart)), np.var(apart)

    gaps, variances = np.array([difference(swap) for swap in swaps]).T
    seen, *swapped = gaps / np.sqrt(variances + np.mean(variances) / 4)
    assert found.p_value == pytest.approx((1 + np.sum(np.array(swapped) >= seen - 1e-9)) / 41)


def test_precision_is_compared_over_the_rows_that_moved():
    y = np.array([1, 1, 0, 0, 1, 1, 0, 0, 0, 0], dtype=bool)
    a = np.array([9, 8, 1, 1, 7, 6, 2, 3, 0, 0.0])  # its first four rows: all positive
    b = np.array([1, 1, 9, 8, 7, 6, 2, 3, 0, 0.0])  # two of four
    result = compare("precision_at", y, a, b, k=4)
    assert result.difference == pytest.approx(0.5)
    # of two rows that moved up both are positive, of two that moved down neither: with any labels
    # that are equally likely on both sides, this or its opposite comes at most 2 times of 16
    assert result.p_value == pytest.approx(2 / 16)
    assert -0.5 <= result.low < result.high <= 0.5 + 1e-12


@pytest.mark.parametrize("name", [*EXTREME, "tpr_at_fpr", "pnorm_risk", "push_risk"])
def test_extremes_are_not_compared(name):
    y, a, b = data()
    settings = {"tpr_at_fpr": {"fpr": 0.0}, "pnorm_risk": {"p": np.inf}, "push_risk": {"p": np.inf}}
    with pytest.raises(ValueError, match="extreme row"):
        compare(name, y, a, b, **settings.get(name, {}))


def test_several_rankers_are_compared_with_holms_correction():
    y, a, b = data(n=1000, high=200, gain=0.4)
    results = compare("auc", y, {"good": a, "poor": b, "same": b, "worse": -b})
    assert isinstance(results, Comparisons)
    assert len(results) == 6
    raw = np.array([pair.p_value for pair in results])
    adjusted = np.array([pair.adjusted_p_value for pair in results])
    order = np.argsort(raw)
    expected = np.minimum(1, np.maximum.accumulate(raw[order] * (6 - np.arange(6))))
    assert adjusted[order] == pytest.approx(expected)
    assert results["poor", "same"].p_value == 1
    assert results["good", "worse"].adjusted_p_value < 1e-6
    assert "good - poor" in str(results)
    with pytest.raises(KeyError, match="nobody"):
        results["nobody", "good"]


def test_rankers_that_cannot_be_told_apart_have_corrected_p_values_of_one():
    y, a, b = data(seed=6)
    results = compare("auc", y, {"a": a, "b": b, "other": data(seed=7)[1]})
    assert min(3 * pair.p_value for pair in results) > 1
    assert [pair.adjusted_p_value for pair in results] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_random_signs_give_the_share_of_all_signs_that_reach_as_far(seed):
    rng = np.random.default_rng(seed)
    worth, shift = rng.normal(size=9), np.array([1.0, -1.0, 0.5, -0.5, 2.0, -1.0, -1.0, 0.0, 0.0])
    shifts = Shifts(worth, shift, 1.0, False, 1.0, 7)
    moved = shift != 0
    pulls = shift[moved] * (worth[moved] - np.median(worth[moved]))
    every = np.abs(np.array(list(product((-1, 1), repeat=7))) @ pulls)
    exact = np.mean(every >= abs(np.sum(pulls)) * (1 - 1e-9))
    found = shifts._sign_flip_p_value(20_000, np.random.default_rng(0))
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_lists_are_compared_list_by_list():
    rng = np.random.default_rng(0)
    lists = np.repeat(np.arange(40), 25)
    y = rng.random(1000) < 0.3
    a, b = rng.normal(size=(2, 1000)) + y
    result = compare("precision_at", y, a, b, k=5, lists=lists)
    values = [
        [METRICS["precision_at"].function(y[lists == one], s[lists == one], 5) for one in range(40)]
        for s in (a, b)
    ]
    from scipy.stats import ttest_rel

    assert result.p_value == pytest.approx(ttest_rel(*values).pvalue)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["auc", "average_precision", "precision_at", "ranking_risk"])
def test_copies_in_groups_are_not_evidence(name):
    y, a, b = data(n=100, high=30, gain=0.3)
    copies = np.repeat(np.arange(100), 16)
    settings = {"k": 160} if name == "precision_at" else {}
    naive = compare(name, y[copies], a[copies], b[copies], **settings)
    honest = compare(name, y[copies], a[copies], b[copies], groups=copies, **settings)
    assert honest.standard_error > 3 * naive.standard_error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"s_b": None}, "nothing to compare"),
        ({"s_b": None, "s_a": {"one": np.arange(300.0)}}, "at least two"),
        ({"s_b": np.arange(5.0)}, "inconsistent numbers"),
        ({"level": 0}, "level"),
        ({"metric": "nonsense"}, "Unknown metric"),
        ({"metric": "precision_at", "k": 0}, "k=0"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, words):
    y, a, b = data()
    given = {"metric": "auc", "s_a": a, "s_b": b, **arguments}
    with pytest.raises(ValueError, match=words):
        compare(given.pop("metric"), y, given.pop("s_a"), given.pop("s_b"), **given)


def test_a_function_is_given_the_labels_as_they_came():
    y, a, b = data()
    words = np.where(y == 1, "yes", "no")

    def mean_of_yes(labels, scores):
        return float(np.mean(scores[labels == "yes"]))

    found = compare(mean_of_yes, words, a, b, n_resamples=100)
    assert found.difference == pytest.approx(np.mean(a[y == 1]) - np.mean(b[y == 1]))
    assert found.standard_error > 0


def test_groups_too_many_to_leave_out_one_by_one_are_compared_by_their_influences(monkeypatch):
    y, a, b = data()
    groups = np.arange(300) // 3
    by_turns = compare("auc", y, a, b, groups=groups)
    monkeypatch.setattr(by_groups, "_MOST_ENTRIES", 1)
    by_influences = compare("auc", y, a, b, groups=groups)
    assert by_influences.method == "paired influences of the groups"
    assert by_influences.difference == by_turns.difference
    assert by_influences.standard_error == pytest.approx(by_turns.standard_error, rel=0.1)


def test_one_positive_is_too_few_to_compare():
    y, a, b = data(high=1)
    with pytest.raises(ValueError, match="at least two positives"):
        compare("auc", y, a, b)


@pytest.mark.more
@pytest.mark.sampled(3)
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("auc", {}),
        ("partial_auc", {"max_fpr": 0.1}),
        ("pnorm_risk", {"p": 4, "normalize": True}),
        ("average_precision", {}),
        ("precision_at", {"k": 20}),
        ("ndcg_at", {"k": 20}),
        ("tpr_at_fpr", {"fpr": 0.1}),
    ],
)
def test_equal_rankers_are_seldom_told_apart(name, settings):
    chances = []
    for seed in range(400):
        y, a, b = data(n=200, high=40, seed=seed, digits=9)
        chances.append(compare(name, y, a, b, n_resamples=199, **settings).p_value)
    chances = np.array(chances)
    for level, most in ((0.05, 0.09), (0.2, 0.27), (0.5, 0.58)):
        assert np.mean(chances <= level) <= most
    if name in ("auc", "partial_auc", "pnorm_risk", "average_precision"):
        assert np.mean(chances <= 0.5) >= 0.42


def test_one_of_several_comparisons_says_what_holm_made_of_it():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    a, b = (rng.normal(size=200) + y for _ in range(2))
    found = compare("auc", y, {"a": a, "b": b, "both": a + b})
    first, *_ = sorted(found, key=lambda one: one.p_value)
    assert first.adjusted_p_value == pytest.approx(3 * first.p_value)
    said = f"{first.p_value:.3g}, {first.adjusted_p_value:.3g} after Holm"
    assert said in str(first) and said in first._repr_html_()


def test_a_comparison_over_a_single_list_is_refused():
    y, s = [1, 0, 0, 1], np.arange(4.0)
    with pytest.raises(ValueError, match="1 list with a positive; a comparison needs two"):
        compare("precision_at", y, s, -s, lists=np.zeros(4), k=1)


TOP = [
    ("precision_at", {"k": 7}),
    ("recall_at", {"k": 7}),
    ("lift_at", {"k": 7}),
    ("ndcg_at", {"k": 7}),
]


@pytest.mark.parametrize(("metric", "settings"), TOP)
def test_what_rounding_leaves_of_shares_of_a_tie_tells_no_rankers_apart(metric, settings):
    # both find positives only; the first has them all in one tie, of which 7 / 10 are listed
    y = np.repeat([1, 0], [10, 100])
    tied, apart = y * 1.0, np.random.default_rng(0).random(110) + 5 * y
    ends = set()
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(110)
        one = compare(metric, y[rows], tied[rows], apart[rows], **settings)
        other = compare(metric, y[rows], apart[rows], tied[rows], **settings)
        assert "No row tells the rankers apart" in one.note
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
        ends.add((round(one.low, 9), round(one.high, 9)))
    assert len(ends) == 1 and max(ends)[1] > 0.1


@pytest.mark.parametrize(
    ("metric", "settings"),
    [("precision_at", {"k": 20}), ("partial_auc", {"max_fpr": 0.5}), ("average_precision", {})],
)
def test_a_row_of_weight_two_is_compared_as_two_rows(metric, settings):
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [10, 30])
    a, b = rng.normal(size=(2, 40)) + y
    count = rng.integers(0, 4, 40)
    weighted = compare(metric, y, a, b, sample_weight=count, **settings)
    rows = np.repeat(np.arange(40), count)
    repeated = compare(metric, y[rows], a[rows], b[rows], **settings)
    assert weighted.p_value == repeated.p_value
    assert (weighted.low, weighted.high) == pytest.approx((repeated.low, repeated.high))
    plain, ones = (
        compare(metric, y, a, b, sample_weight=w, **settings) for w in (None, np.ones(40))
    )
    assert ones == plain


def test_groups_of_which_none_changes_a_step_leave_a_comparison():
    y, group = np.repeat([1, 0], [20, 180]), np.arange(200) % 10
    a, b = 3 * y + 0.3 * np.random.default_rng(0).normal(size=(2, 200))
    found = compare("tpr_at_fpr", y, a, b, fpr=0.1, groups=group)
    assert found.difference == 0 and found.p_value == 1 and found.low < 0 < found.high


def test_a_near_perfect_ranker_with_few_errors_is_named_in_a_comparison():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 270])
    misses = np.concatenate((rng.random(30) < 0.95, rng.random(270) < 0.05)) + 0.1 * rng.random(300)
    promotes = np.concatenate((np.ones(30), rng.random(270) < 0.1)) + 0.1 * rng.random(300)
    assert "rare ones that the sample has missed" in compare("auc", y, misses, promotes).note
    poor = rng.normal(size=(2, 300)) + y
    assert compare("auc", y, *poor).note == ""


@pytest.mark.parametrize("name", ["dcg", "aver"])
def test_sums_over_places_of_equal_rankers_in_ties_are_rarely_told_apart(name):
    rng, rejected, excluded = np.random.default_rng(3), 0, 0
    y = np.arange(40) < 20
    for _ in range(60):
        common = rng.normal(size=40)
        a, b = (np.round(y + common / 2 + rng.normal(size=40) * 0.75**0.5) for _ in range(2))
        found = compare(name, y, a, b, n_resamples=60)
        rejected += found.p_value <= 0.05
        excluded += not found.low <= 0 <= found.high
    assert rejected <= 8 and excluded <= rejected  # a fifth of them were


def test_copies_of_rows_in_a_tie_stay_tied_and_those_of_a_row_alone_take_places_of_their_own():
    y, s = np.array([1, 0, 1, 1, 0]), np.array([5.0, 5.0, 3.0, 2.0, 1.0])
    for name, discount in (("dcg", lambda k: 1 / np.log1p(k)), ("aver", lambda k: 1 / k)):
        sample = Sample.of(y, s)
        resampled = WeightedMetric(sample, METRICS[name], {})
        weight = np.array([2.0, 1.0, 2.0, 0.0, 1.0])
        wanted = 2 * discount(3) + discount(4) + discount(5)
        assert resampled(weight) == pytest.approx(wanted)
        assert resampled(np.ones(5)) == pytest.approx(METRICS[name].function(y, s))


@pytest.mark.parametrize("name", ["dcg", "recall_at_precision"])
def test_rows_that_both_rankers_tie_are_resampled_as_one_row_of_their_number(name, monkeypatch):
    y, a, b = data(n=3000, high=600, digits=0)
    how = {"n_resamples": 400, **SETTINGS.get(name, {})}
    short = compare(name, y, a, b, **how)
    monkeypatch.setattr(bootstrap, "_LONG_RUNS", np.inf)
    row_by_row = compare(name, y, a, b, **how)
    assert "bootstrap" in short.method and short.method == row_by_row.method
    assert short.estimates == row_by_row.estimates
    assert short.standard_error != row_by_row.standard_error  # other random numbers
    assert short.standard_error == pytest.approx(row_by_row.standard_error, rel=0.15)
