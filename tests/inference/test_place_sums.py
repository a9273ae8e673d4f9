"""Intervals of sums over the positives of a discount of their place: `dcg` and `aver`."""

import numpy as np
import pytest

from toprank.inference import interval
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
