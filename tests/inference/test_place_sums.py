"""Intervals and comparisons of sums over the positives of a discount of their place."""

import numpy as np
import pytest

from toprank.inference import compare, interval
from toprank.inference.bootstrap import compare_resampled
from toprank.inference.paired_influences import compare_moves
from toprank.inference.result import MetricRequest, Verdict
from toprank.inference.sample import Sample
from toprank.metrics import METRICS, aver, dcg
from toprank.metrics.place_sums import aver_cut, dcg_cut

NAMES = ("dcg", "aver")


@pytest.mark.parametrize(
    ("positives", "rows", "apart", "truth"),
    [
        (10, 1000, 1.0, (2.55, 0.435)),  # the bootstrap covers 75% and 69%
        (20, 200, 0.0, (5.03, 0.59)),  # 81% and 73%
        (20, 200, 4.0, (10.12, 3.58)),  # 72%
    ],
)
def test_sums_over_places_are_covered(positives, rows, apart, truth):
    rng, covered = np.random.default_rng(3), np.zeros(2)
    y = np.arange(rows) < positives
    for _ in range(200):
        s = rng.normal(size=rows) + apart * y
        found = [interval(name, y, s) for name in NAMES]
        covered += [one.low <= value <= one.high for one, value in zip(found, truth, strict=True)]
    assert np.all(covered >= 186)


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_error_is_how_far_the_sum_strays(name):
    rng = np.random.default_rng(4)
    y = np.arange(200) < 20
    found = [interval(name, y, rng.normal(size=200) + y) for _ in range(400)]
    strayed = np.std([one.estimate for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(strayed, rel=0.12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tied", [False, True])
def test_a_list_in_order_is_not_certain_and_no_sum_lies_beyond_it(name, tied):
    y = np.arange(200) < 20
    found = interval(name, y, y + (0.0 if tied else 0.001) * np.arange(200))
    assert 0 < found.low < found.estimate - 0.1 and not found.note
    places = np.arange(1, 21)
    best = np.sum(1 / np.log1p(places)) if name == "dcg" else np.sum(1 / places)
    assert found.high <= best + 1e-9
    assert tied or found.estimate == found.high == pytest.approx(best)


def test_a_list_that_is_one_tie_has_the_least_sum():
    y = np.arange(50) < 10
    for cut_of, function in ((dcg_cut, dcg), (aver_cut, aver)):
        cut = cut_of(Sample.of(y, np.zeros(50)))
        assert cut.share == 0 and cut.report(0.0) == pytest.approx(function(y, np.zeros(50)))
        assert cut.report(1.0) == pytest.approx(function(y, -np.arange(50.0)))


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_weighted_rows_and_of_groups_hold_their_estimate(name):
    rng = np.random.default_rng(5)
    y = np.arange(60) < 15
    s, weight = np.round(rng.normal(size=60) + y, 1), rng.uniform(0.1, 3, 60)
    for how in ({"sample_weight": weight}, {"groups": np.arange(60) % 12}):
        for weights in ("counts", "sampling"):
            found = interval(name, y, s, weights=weights, n_resamples=50, **how)
            assert found.low < found.estimate < found.high
            wanted = METRICS[name].function(y, s, sample_weight=how.get("sample_weight"))
            assert found.estimate == pytest.approx(wanted)


def pair(n, positives, gains=(1.5, 1.0), seed=0):
    """Labels and the scores of two rankers that share most of their noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) < positives
    common, own = rng.normal(size=n), rng.normal(size=(2, n))
    return y, *(np.sqrt(0.7) * common + np.sqrt(0.3) * own + np.outer(gains, y))


def requests(name, y, a, b, weight=None, weights="counts"):
    samples = (Sample.of(y, s, weight, weights=weights) for s in (a, b))
    return [MetricRequest(METRICS[name], {}, sample, 0.95, n_resamples=200) for sample in samples]


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_error_of_a_difference_is_how_far_it_strays(name):
    found = [
        compare_moves(Verdict(("a", "b"), "", 0.95), *requests(name, *pair(500, 25, seed=seed)))
        for seed in range(300)
    ]
    strayed = np.std([one.difference for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(strayed, rel=0.2)
    truth = np.mean([one.difference for one in found])
    covered = [one.low <= truth <= one.high for one in found]
    assert 0.93 <= np.mean(covered) <= 0.99  # resamples cover 91% and 87%


@pytest.mark.parametrize("name", NAMES)
def test_a_difference_strays_as_far_as_resamples_say_in_a_long_list(name):
    asked = requests(name, *pair(5000, 500))
    verdict = Verdict(("a", "b"), "", 0.95)
    by_moves, resampled = compare_moves(verdict, *asked), compare_resampled(verdict, *asked)
    assert by_moves.difference == pytest.approx(resampled.difference)
    ratio = by_moves.standard_error / resampled.standard_error
    assert 0.85 < ratio < 1.3  # those that happen to stand first show resamples too little


@pytest.mark.parametrize("name", NAMES)
def test_rankers_that_order_rows_alike_do_not_differ(name):
    y, a, _ = pair(5000, 500)
    found = compare(name, y, a, np.exp(a))
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)
    assert "No row tells the rankers apart" in found.note


@pytest.mark.parametrize("name", NAMES)
def test_sums_over_places_are_resampled_where_the_first_rows_tie_or_come_in_groups(name):
    y, a, b = pair(400, 60)
    assert "influences" in compare(name, y, a, b, n_resamples=20).method
    assert "influences" in compare(name, y, a, np.maximum(b, 0.0), n_resamples=20).method
    assert "bootstrap" in compare(name, y, a, np.round(b), n_resamples=20).method
    groups = np.arange(400) % 40
    assert "bootstrap" in compare(name, y, a, b, groups=groups, n_resamples=20).method


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_rows_count_in_the_spread_of_a_difference(name):
    y, a, b = pair(2000, 200)
    verdict = Verdict(("a", "b"), "", 0.95)

    def error(*how):
        return compare_moves(verdict, *requests(name, y, a, b, *how)).standard_error

    assert error(np.ones(2000)) == pytest.approx(error())
    assert error(np.ones(2000), "sampling") == pytest.approx(error())
    weight = np.random.default_rng(1).integers(1, 4, 2000)
    assert error(weight, "sampling") > 1.1 * error(weight)


@pytest.mark.more
@pytest.mark.parametrize("name", NAMES)
def test_equal_rankers_of_many_rows_are_seldom_told_apart(name):
    rejected = sum(
        compare(name, *pair(5000, 50, (1.2, 1.2), seed)).p_value <= 0.05 for seed in range(200)
    )
    assert rejected <= 18
