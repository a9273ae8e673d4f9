"""Score intervals of shares of pairs: near 1, with few positives, and with long tails."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from toprank.inference import compare, interval
from toprank.inference.sample import Sample, VarianceEstimate
from toprank.inference.score_interval import _below_heavy_errors, score_interval
from toprank.inference.shares import newcombe
from toprank.metrics import average_precision
from toprank.metrics.expansion import PairShare, TopRows
from toprank.metrics.left_out_expansions import average_precision_expansion
from toprank.simulate import ScoreSetting, coverage

KIN = [("auc", {}), ("misranking_error", {}), ("partial_auc", {"max_fpr": 0.1})]


def one_swap(n=5000, positives=20):
    """Perfect scores, and the same with the two rows at the border swapped."""
    y = np.repeat([0, 1], [n - positives, positives])
    perfect = np.arange(float(n))
    swapped = perfect.copy()
    border = n - positives
    swapped[[border - 1, border]] = perfect[[border, border - 1]]
    return y, perfect, swapped


@pytest.mark.parametrize(("name", "settings"), KIN)
def test_one_swapped_pair_hardly_moves_the_interval_of_a_perfect_ranking(name, settings):
    y, perfect, swapped = one_swap()
    first, second = (interval(name, y, s, **settings) for s in (perfect, swapped))
    assert first.low == pytest.approx(second.low, abs=0.002)
    assert first.high == pytest.approx(second.high, abs=0.002)
    assert "no spread" in first.note


def test_the_interval_shrinks_steadily_towards_perfect_separation():
    y, perfect, _ = one_swap(n=500, positives=10)
    lows = []
    for steps in range(12):
        s = perfect.copy()
        s[490] = perfect[490 - steps] - 0.5  # one positive falls below as many negatives
        lows.append(interval("auc", y, s).low)
    assert np.all(np.diff(lows) < 0)
    assert np.max(-np.diff(lows)) < 0.003


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [  # Newcombe (1998, II), Table II, method 10
        ((56, 48), (70, 80), 0.0524, 0.3339),
        ((9, 3), (10, 10), 0.1705, 0.8090),
        ((10, 0), (10, 10), 0.6075, 1.0000),
    ],
)
def test_differences_of_shares_have_the_ends_of_newcombes_table(hits, trials, low, high):
    assert newcombe(hits, trials, 0.95) == pytest.approx((low, high), abs=5e-5)


def test_newcombes_method_five_is_the_floor():
    # 45 and 90 rows without an error: (1 - u)^2 = z^2 V(u), solved apart
    low, high = score_interval(1.0, VarianceEstimate(0.0, 1.0), PairShare(), (45.0, 90.0), 0.95)
    alike = (1 - low) / (2 - low) + low / (1 + low)
    variance = low * (1 - low) * (1 + (67.5 - 1) * alike) / (45 * 90)
    assert high == 1
    assert 1 - low == pytest.approx(norm.ppf(0.975) * np.sqrt(variance), rel=1e-9)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.02, 0.5, 0.93, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("units", [(2.0, 2.0), (3.0, 4e6), (1e9, 1e9)])
@pytest.mark.parametrize("variance", [0.0, 1e-12, 1e-3, 0.2])
def test_ends_are_in_order_within_zero_and_one(share, units, variance):
    spread = VarianceEstimate(variance, 1.0)
    ends = [score_interval(share, spread, PairShare(), units, level) for level in (0.5, 0.999)]
    (low, high), (lowest, highest) = ends
    assert 0 <= lowest <= low <= share <= high <= highest <= 1
    turned = score_interval(1 - share, spread, PairShare(), units, 0.5)
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_an_error_is_one_less_the_area():
    y, _, s = one_swap(n=300, positives=15)
    s = s + 40 * np.random.default_rng(0).normal(size=300)
    area, error = interval("auc", y, s), interval("misranking_error", y, s)
    assert (error.low, error.high) == pytest.approx((1 - area.high, 1 - area.low), abs=1e-12)


def test_delongs_method_is_the_normal_law():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [80, 25])
    a, b = rng.normal(size=(2, 105)) + y
    one = interval("auc", y, a, method="delong")
    reach = norm.ppf(0.975) * one.standard_error
    assert (one.low, one.high) == pytest.approx((one.estimate - reach, one.estimate + reach))
    pair = compare("auc", y, a, b, method="delong")
    z = pair.difference / pair.standard_error
    assert pair.p_value == pytest.approx(2 * norm.sf(abs(z)))
    assert pair.standard_error == pytest.approx(compare("auc", y, a, b).standard_error)
    perfect = interval("auc", y, y.astype(float), method="delong")
    assert (perfect.low, perfect.high) == (1, 1)
    assert "certainty" in perfect.note


def test_delongs_method_is_refused_where_it_is_not_defined():
    y, s, other = one_swap(n=60, positives=10)
    with pytest.raises(ValueError, match="has no interval by method='delong'"):
        interval("partial_auc", y, s, max_fpr=0.1, method="delong")
    with pytest.raises(ValueError, match="AUC and metrics like it"):
        compare("average_precision", y, s, other, method="delong")
    with pytest.raises(ValueError, match="independent rows"):
        compare("auc", y, s, other, method="delong", groups=np.arange(60) // 3)
    with pytest.raises(ValueError, match="Unknown method"):
        compare("auc", y, s, other, method="magic")


def scores(rng, law, y, separation):
    noise = rng.standard_t(3, size=len(y)) if law == "t3" else rng.normal(size=len(y))
    return noise + separation * y


@pytest.mark.more
@pytest.mark.parametrize(
    ("law", "positives", "n", "separation", "area"),
    [("normal", 20, 1000, 3.0, 0.98305), ("t3", 20, 1000, 3.0, 0.92957)],
)
def test_the_auc_is_covered_with_twenty_positives_and_long_tails(
    law, positives, n, separation, area
):
    rng = np.random.default_rng(0)
    y = np.arange(n) < positives
    found = [interval("auc", y, scores(rng, law, y, separation)) for _ in range(400)]
    covered = np.mean([one.low <= area <= one.high for one in found])
    assert covered >= 0.935
    assert np.mean([one.high - one.low for one in found]) < 0.16


@pytest.mark.more
def test_average_precision_is_covered_with_twenty_positives():
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 20
    value = 0.0803  # of an endless list with two positives in a hundred
    found = [interval("average_precision", y, rng.normal(size=1000) + y) for _ in range(300)]
    covered = np.mean([one.low <= value <= one.high for one in found])
    assert covered >= 0.925
    assert np.mean([one.high - one.low for one in found]) < 0.27


@pytest.mark.parametrize(("negatives", "bound"), [(5, 0.0), (10, 0.0), (15, 0.5), (20, 1.0)])
def test_a_part_of_the_curve_as_narrow_as_one_row_is_not_bounded_from_below(negatives, bound):
    pairs = PairShare(1.0, 0.1, wide=True)
    assert pairs.bound_from_below((8.0, float(negatives))) == pytest.approx(bound)
    y = np.arange(8 + negatives) < 8
    found = interval("partial_auc", y, y.astype(float), max_fpr=0.1, standardize=False)
    assert (found.low == 0) == (bound == 0)
    assert found.high == pytest.approx(0.1)


def test_the_upper_end_of_a_part_of_the_curve_believes_two_hits_and_the_lower_end_many_errors():
    units, share = (200.0, 200.0), 0.05
    soon = PairShare(of_negatives=0.1, wide=True, errors_to_trust=20.0)
    slow = replace(soon, hits_to_trust=None)

    def ends(hits, pairs):
        return score_interval(share, VarianceEstimate(share**2 / hits, 99.0), pairs, units, 0.95)

    for hits in (2.0, 8.0, 30.0):
        assert ends(hits, soon)[0] == ends(hits, slow)[0]
        assert share < ends(hits, soon)[1] <= ends(hits, slow)[1]
    assert ends(30.0, soon)[1] - share < 0.65 * (ends(30.0, slow)[1] - share)
    # one hit shows no spread, and no jump leads away from it
    few = replace(slow, of_negatives=0.01), replace(soon, of_negatives=0.01)
    first = [ends(1.0, pairs)[1] for pairs in few]
    assert first[0] == first[1] == pytest.approx(ends(1.0001, few[1])[1], rel=1e-3)
    # what is as narrow as the place of one row may hold no hit
    one_row = replace(slow, of_negatives=0.005), replace(soon, of_negatives=0.005)
    assert ends(8.0, one_row[0]) == ends(8.0, one_row[1])
    spread = VarianceEstimate(share**2 / 8, 9.0)
    # few groups do not show how far groups differ: the fewer, the less does it go by their variance
    trusts = (slow, *(replace(soon, groups_to_trust=most) for most in (1e9, 10.0, 1.0, 0.0)))
    over = [score_interval(share, spread, one, units, 0.95, True)[1] for one in trusts]
    assert over[0] == pytest.approx(over[1]) and over[1:] == sorted(over[1:], reverse=True)
    assert over[3] < 0.8 * over[0]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.45, 0.7, 0.97])
def test_of_all_pairs_the_end_that_is_nearer_to_zero_or_one_believes_sooner(share):
    units, spread = (200.0, 200.0), VarianceEstimate(1e-5, 99.0)
    both = replace(PairShare(), hits_to_trust=None)
    (low, high), (lowest, highest) = (
        score_interval(share, spread, pairs, units, 0.95) for pairs in (PairShare(), both)
    )
    assert (low > lowest) == (share < 0.5) and (high < highest) == (share > 0.5)
    assert low == lowest or high == highest


def test_an_area_of_one_half_is_where_neither_end_believes_sooner():
    spread = VarianceEstimate(1e-4, 99.0)
    ends = np.array(
        [
            score_interval(0.5 + by, spread, PairShare(), (90.0, 90.0), 0.95)
            for by in (-1e-6, 0, 1e-6)
        ]
    )
    assert np.max(np.abs(np.diff(ends, axis=0))) < 1e-5  # no jump
    assert PairShare().sooner(0.5, (90.0, 90.0)) == (0, 0)
    assert PairShare().sooner(0.75, (90.0, 90.0)) == (0, 1)


@pytest.mark.more
def test_near_perfect_areas_miss_at_their_upper_end_about_as_often_as_they_may():
    found = coverage("auc", ScoreSetting(200, 0.5, "near-perfect"), draws=800)
    assert found.covered > 0.935
    assert found.above == 0  # no sample is good enough, so that the upper end has more of the risk
    assert 0.018 < found.below < 0.055


@pytest.mark.parametrize("units", [(3.0, 3.0), (5.0, 45.0), (200.0, 200.0)])
def test_a_value_that_no_sample_leaves_out_below_is_left_out_above_with_more_of_the_risk(units):
    perfect = score_interval(1.0, VarianceEstimate(0.0, 1.0), PairShare(), units, 0.95)[0]
    halves = replace(PairShare(), hits_to_trust=None)  # both ends by the model
    spread, reach = VarianceEstimate(0.0, 1.0), norm.ppf(0.96)
    for share in np.linspace(max(perfect, 0.5), 0.999, 7):
        high = score_interval(share, spread, halves, units, 0.95)[1]
        alike = high / (1 + high) + (1 - high) / (2 - high)
        rows = (units[0] + units[1]) / 2
        variance = high * (1 - high) * (1 + (rows - 1) * alike) / (units[0] * units[1])
        assert high - share == pytest.approx(reach * np.sqrt(variance), rel=1e-7)


@pytest.mark.parametrize("units", [(2.0, 2.0), (5.0, 45.0), (200.0, 200.0)])
@pytest.mark.parametrize("variance", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("pairs", [PairShare(), PairShare(of_negatives=0.4, wide=True)])
@pytest.mark.more
def test_where_the_other_tail_is_spent_ends_grow_with_the_level_and_have_no_jump(
    units, variance, pairs
):
    def ends(share, level):
        spread = VarianceEstimate(variance * share * (1 - share), 9.0)
        return score_interval(share, spread, pairs, units, level)

    shares, levels = np.linspace(0, 1, 101), (0.3, 0.5, 0.8, 0.9, 0.93, 0.95, 0.96, 0.99)
    low, high = np.moveaxis([[ends(u, level) for u in shares[::10]] for level in levels], -1, 0)
    assert np.all(np.diff(low, axis=0) <= 1e-12) and np.all(np.diff(high, axis=0) >= -1e-12)
    moved = np.diff([ends(u, 0.95) for u in shares[1:-1]], axis=0)
    assert np.max(np.abs(moved)) < 0.07


@pytest.mark.more
@pytest.mark.parametrize(
    ("law", "width"),
    [("normal", 0.107), ("t3", 0.16), ("ties", 0.1), ("near-perfect", 0.08), ("random", 0.055)],
)
def test_a_partial_area_is_covered_and_narrow_where_half_the_rows_are_positive(law, width):
    found = coverage("partial_auc", ScoreSetting(200, 0.5, law), draws=400, max_fpr=0.1)
    assert found.covered > 0.915  # two standard errors below 0.935
    assert found.width < width


def test_the_whole_curve_is_bounded_by_any_rows():
    assert PairShare().bound_from_below((2.0, 2.0)) == 1
    y = np.arange(12) < 4
    s = np.random.default_rng(0).normal(size=12) + y
    assert "as wide" not in interval("auc", y, s).note
    assert "as wide as 0.8 negatives" in interval("partial_auc", y, s, max_fpr=0.1).note


def test_average_precision_allows_for_errors_that_the_sample_has_missed():
    rng = np.random.default_rng(2)
    y = np.arange(80) < 40
    s = rng.standard_t(3, size=80) + 2 * y
    top = average_precision_expansion(Sample.of(y, s).ranked).top
    worse, better = (average_precision(np.r_[y, one], np.r_[s, 99.0]) for one in (False, True))
    assert top.error == pytest.approx(average_precision(y, s) - worse, abs=0.005)
    assert top.hit == pytest.approx(better - average_precision(y, s), abs=0.005)
    pairs, units = PairShare(wide=True, shortfall=3.0), (40.0, 40.0)
    # none seen: (1 - u)^2 = z^2 w sqrt(u) (1 - u) at errors of w = 0.45 of the heaviest
    top = TopRows(error=0.08)
    low, high = score_interval(1.0, VarianceEstimate(0.0, 1.0), pairs, units, 0.95, top=top)
    assert high == 1.0
    assert 1 - low == pytest.approx(1.959964**2 * 0.45 * 0.08 * np.sqrt(low), rel=1e-6)

    def lower_end(variance, heaviest):
        spread = VarianceEstimate(variance, 30.0)
        return score_interval(0.8, spread, pairs, units, 0.95, top=TopRows(heaviest))[0]

    assert lower_end(1e-6, 0.1) > 0.78  # so many errors, all light
    assert lower_end(0.003, 0.1) < lower_end(0.003, 1e-9) - 0.01
    assert lower_end(0.05, 0.1) == lower_end(0.05, 1e-9)  # what was seen is more
    ends = [lower_end(variance, 0.1) for variance in np.linspace(1e-4, 0.02, 400)]
    assert np.max(np.abs(np.diff(ends))) < 0.02  # no jump where one law takes over from the other


@pytest.mark.parametrize(
    ("positives", "share", "separation", "truth"),
    [(20, 0.1, 6.0, 0.9023), (40, 0.1, 6.0, 0.9020), (200, 0.5, 4.0, 0.9583)],
)
def test_average_precision_is_covered_where_few_samples_show_the_tails(
    positives, share, separation, truth
):
    setting = ScoreSetting(positives, share, "t3", separation=separation)
    found = coverage("average_precision", setting, draws=150, truth=truth)
    assert found.covered > 0.92 and found.noted > 0.8
    assert found.reason == ""


@pytest.mark.more
def test_average_precision_of_long_tails_is_covered_where_half_the_rows_are_positive():
    found = coverage("average_precision", ScoreSetting(40, 0.5, "t3"), draws=600)
    assert found.covered > 0.915  # two standard errors below 0.935


@pytest.mark.more
@pytest.mark.parametrize("law", ["random", "normal"])
def test_a_risk_of_ten_positives_among_many_negatives_is_covered(law):
    setting = ScoreSetting(10, 0.01, law)
    assert coverage("pnorm_risk", setting, draws=400, p=4, normalize=True).covered > 0.91


def test_average_precision_takes_half_of_its_bias_off_and_allows_for_few_rows():
    rng = np.random.default_rng(1)
    y = np.arange(40) < 20
    found, old = (
        interval("average_precision", y, s, method=method)
        for s in [rng.normal(size=40) + y]
        for method in ("score", "projection")
    )
    assert found.bias == pytest.approx(old.bias / 2, rel=1e-6)
    spread, units = VarianceEstimate(0.006, 30.0), (20.0, 20.0)
    plain, wider = (
        score_interval(0.6, spread, PairShare(wide=True, shortfall=more), units, 0.95)
        for more in (0.0, 3.0)
    )
    ratio = (wider[1] - wider[0]) / (plain[1] - plain[0])
    assert 1.01 < ratio < np.sqrt(1 + 3 / 20)


@pytest.mark.more
@pytest.mark.parametrize(("law", "separation"), [("random", 0.0), ("normal", 0.5)])
def test_average_precision_covers_where_half_the_rows_are_positive(law, separation):
    found = coverage(
        "average_precision", ScoreSetting(20, 0.5, law, separation=separation), draws=600
    )
    assert found.covered > 0.915  # two standard errors below 0.935


def test_a_variance_far_above_that_of_independent_rows_has_the_freedom_of_as_many_equal_groups():
    spread = VarianceEstimate(0.01, 9.0, alike_freedom=4.0)
    assert [spread.freedom_over_groups(times) for times in (0.0, 1.0, 5.0)] == [9.0, 9.0, 5.0]
    assert spread.freedom_over_groups(1e12) == pytest.approx(4.0)
    assert VarianceEstimate(0.01, 3.0, alike_freedom=4.0).freedom_over_groups(5.0) == 3.0
    assert VarianceEstimate(0.01, 3.0).freedom_over_groups(5.0) == 3.0
    fewer, known = replace(spread, alike_freedom=1.0), replace(spread, alike_freedom=None)
    for variance in (0.001, 0.01):
        ends = [
            score_interval(
                0.7, replace(one, variance=variance), PairShare(), (50.0, 50.0), 0.95, True
            )
            for one in (fewer, spread, known)
        ]
        widths = [high - low for low, high in ends]
        assert widths == sorted(widths, reverse=True)
        assert (widths[0] > widths[2]) == (variance == 0.01)


def test_over_groups_the_model_adds_freedom_only_where_its_variance_is_near_the_one_seen():
    units, level = (30.0, 300.0), 0.95

    def width(variance, pairs):
        spread = VarianceEstimate(variance, 3.0)
        low, high = score_interval(0.8, spread, pairs, units, level, over_groups=True)
        return high - low

    helped, alone = PairShare(), PairShare(freedom_over_groups=None)
    near, far = 0.8 * 0.2 / 60, 0.8 * 0.2 / 3
    assert width(near, helped) < 0.9 * width(near, alone)
    assert width(1e-6, helped) < 0.7 * width(1e-6, alone)  # the model's own, and the normal law
    assert width(far, helped) == pytest.approx(width(far, alone), rel=0.01)


@pytest.mark.parametrize(
    ("name", "settings"), [("average_precision", {}), ("pnorm_risk", {"p": 4, "normalize": True})]
)
def test_rows_that_stand_for_others_tell_less_than_as_many_that_do_not(name, settings):
    rng = np.random.default_rng(3)
    widths = np.zeros(2)
    for _ in range(12):
        y, s, how = ScoreSetting(40, 0.5, weighted=True).draw(rng)
        for number, weights in enumerate(({}, how)):
            found = interval(name, y, s, **weights, **settings)
            widths[number] += found.high - found.low
    plain, weighted = widths
    assert plain < weighted < 1.25 * plain
    scaled = how | {"sample_weight": 0.01 * how["sample_weight"]}
    ends = interval(name, y, s, **scaled, **settings)
    assert (ends.low, ends.high) == pytest.approx((found.low, found.high), rel=1e-9)
    assert "leave-one-out" in found.method


def test_equal_weights_of_rows_that_stand_for_others_are_none():
    y, s, _ = ScoreSetting(40, 0.5).draw(np.random.default_rng(3))
    plain, equal = (
        interval("average_precision", y, s, **weights)
        for weights in ({}, {"sample_weight": np.full(80, 3.0), "weights": "sampling"})
    )
    assert (equal.low, equal.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


@pytest.mark.parametrize("lightest", [1.0, 1e-7])
def test_light_rows_that_stand_for_others_make_no_bias(lightest):
    rng = np.random.default_rng(1)
    y, s, how = ScoreSetting(100, 0.5, "near-perfect", weighted=True).draw(rng)
    weight = np.where(how["sample_weight"] == 1, lightest, how["sample_weight"])
    found = interval("average_precision", y, s, sample_weight=weight, weights="sampling")
    assert abs(found.bias) < 1e-3
    assert found.low < found.estimate < found.high


def test_one_row_that_makes_the_risk_of_rows_that_stand_for_others_does_not_lift_its_interval():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, s, how = ScoreSetting(10, 0.1, "near-perfect", weighted=True).draw(rng)
        found = interval("pnorm_risk", y, s, p=4, normalize=True, **how)
        assert found.low <= found.estimate <= found.high


def test_errors_lighter_than_the_variance_shows_are_believed_the_less():
    # of 0.05 the heaviest errors weigh 0.45 times as much, and what they take has the variance
    # 0.0225 * 0.2: the sample shows 2 times that, 0.009
    low = _below_heavy_errors(0.8, VarianceEstimate(0.009, 7.0), TopRows(0.05), 0.95)
    squared = t.ppf(0.975, 7.0) ** 2 * 0.0225 / 2
    assert (0.8 - low) ** 2 == pytest.approx(squared * np.sqrt(low / 0.8) * (1 - low), rel=1e-9)
    none = _below_heavy_errors(1.0, VarianceEstimate(0.0, 7.0), TopRows(0.05), 0.95)
    assert 1 - none == pytest.approx(norm.ppf(0.975) ** 2 * 0.0225 * np.sqrt(none), rel=1e-6)


def test_errors_that_were_missed_take_less_from_a_smaller_share():
    # one of ten positives found, and a heavy error would take half of it: what is left is not 0
    for share in (1e-9, 0.01, 0.1, 0.4):
        spread = VarianceEstimate(share**2 / 4, 9.0)
        low = _below_heavy_errors(share, spread, TopRows(share / 2), 0.95)
        assert 0 < low < share / 2
    # over groups they take from any share alike: (u - low)^2 = z^2 0.4 w (1 - low), or nothing left
    spread = VarianceEstimate(0.0, 9.0)
    low = _below_heavy_errors(0.8, spread, TopRows(0.05), 0.95, over_groups=True)
    assert (0.8 - low) ** 2 == pytest.approx(norm.ppf(0.975) ** 2 * 0.02 * (1 - low), rel=1e-9)
    assert _below_heavy_errors(0.1, spread, TopRows(0.05), 0.95, over_groups=True) == 0


def test_errors_among_tied_positives_are_much_alike_and_count_in_full():
    # a binary classifier: an error takes a tenth, and one list in seven shows none of any kind
    y = np.repeat([1, 0], [10, 90])
    perfect = average_precision_expansion(Sample.of(y, y * 1.0).ranked)
    assert perfect.top.error == pytest.approx(1 - 10 / (10 + 9 / 9.1), rel=0.02)
    assert perfect.top.tied_error == pytest.approx(perfect.top.error, rel=0.1)
    assert interval("average_precision", y, y * 1.0).low < 0.75
    # where no two are tied, nothing is
    untied = average_precision_expansion(Sample.of(y, np.arange(100.0, 0, -1)).ranked)
    assert untied.top.tied_error == 0


@pytest.mark.more
def test_the_average_precision_of_a_binary_classifier_is_covered():
    rng = np.random.default_rng(0)
    y, truth, missed = np.repeat([1, 0], [10, 90]), 0.827, 0
    for _ in range(400):
        hit = np.concatenate((rng.random(10) < 0.9, rng.random(90) < 0.01))
        found = interval("average_precision", y, hit * 1.0)
        missed += not found.low <= truth <= found.high
    assert missed < 0.05 * 400


@pytest.mark.more
@pytest.mark.parametrize(
    ("positives", "separation", "truth"), [(10, 1.0, 0.0419), (20, 1.0, 0.0419), (40, 1.5, 0.1157)]
)
def test_neither_end_of_a_small_average_precision_misses_far_more_often_than_the_other(
    positives, separation, truth
):
    """One in a hundred positive: lower ends never missed while errors took from any share alike."""
    setting = ScoreSetting(positives, 0.01, "normal", separation=separation)
    found = coverage("average_precision", setting, draws=600, truth=truth)
    assert found.covered > 0.92
    assert found.above > 0


@pytest.mark.parametrize("metric", ["auc", "misranking_error"])
def test_an_auc_says_where_rows_unlike_those_seen_may_be_missing(metric):
    rng = np.random.default_rng(0)
    for positives, negatives, kind in ((10, 90, "10 positives"), (90, 14, "14 negatives")):
        y = np.repeat([1, 0], [positives, negatives])
        s = rng.normal(size=len(y)) + y
        assert f"Of {kind}, others unlike those seen" in interval(metric, y, s).note
        assert "unlike" not in interval("average_precision", y, s).note
        assert "unlike" not in interval("partial_auc", y, s, max_fpr=0.5).note
    y = np.repeat([1, 0], [15, 85])
    assert interval(metric, y, rng.normal(size=100) + y).note == ""


def test_a_part_of_the_curve_within_the_first_tie_is_named():
    y = np.repeat([1, 0], [10, 90])
    s = np.r_[np.full(8, 2), 1, 0, np.full(18, 2), np.full(36, 1), np.zeros(36)]
    assert (
        "0.2 of the negatives share the first tie"
        in interval("partial_auc", y, s, max_fpr=0.1).note
    )
    assert "first tie" not in interval("partial_auc", y, s, max_fpr=0.3).note
    assert "first tie" not in interval("auc", y, s).note


def test_the_variance_of_a_weighted_mean_is_that_of_many_samples():
    rng = np.random.default_rng(0)
    weight = np.array([1.0, 1, 1, 2, 2, 3, 4, 4] + [1.0] * 8)
    positive = np.arange(16) < 8
    seen, freedom = [], []
    for _ in range(4_000):
        values = np.where(positive, rng.normal(size=16), 0.0)
        sample = Sample.of(positive, values, weight, weights="sampling")
        spread = sample.spread_of_rows(values)
        seen.append(spread.variance)
        freedom.append(spread.plain_freedom)
    shares = weight[:8] / weight[:8].sum()
    truth = np.sum(shares**2)
    assert np.mean(seen) == pytest.approx(truth, rel=0.03)
    # a chi-squared of so many degrees of freedom has that spread: those of eight equal rows are 7
    assert 2 * truth**2 / np.var(seen) == pytest.approx(np.mean(freedom), rel=0.2)
    assert np.mean(freedom) < 6


def test_equal_sampling_weights_leave_the_variance_as_it_is():
    rng = np.random.default_rng(1)
    positive, values = np.arange(12) < 5, rng.normal(size=12)
    plain = Sample.of(positive, values).spread_of_rows(values)
    alike = Sample.of(positive, values, np.full(12, 2.5), weights="sampling")
    assert alike.spread_of_rows(values).variance == pytest.approx(plain.variance, rel=1e-12)
    assert alike.spread_of_rows(values).freedom == pytest.approx(plain.freedom, rel=1e-9)
