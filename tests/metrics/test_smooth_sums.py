"""Sums by powers, and the metrics of long lists that are made of them."""

import math

import numpy as np
import pytest

from toprank.metrics import METRICS, summary
from toprank.metrics.differences import Differences
from toprank.metrics.order import RankedList
from toprank.metrics.smooth_sums import FEW, PowerSums
from toprank.metrics.sorted_classes import SortedClasses

FUNCTIONS = {
    "exponential": lambda x: np.exp(-x),
    "reciprocal": lambda x: 1 / x,
    "discount": lambda x: 1 / np.log(x + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("start", [0.5, 7.0, 3e6])
@pytest.mark.parametrize("down", [False, True])
def test_sums_of_a_smooth_function_are_those_of_its_values(name, start, down):
    function, rng = FUNCTIONS[name], np.random.default_rng(0)
    widths = [0.0, 1e-6, 0.02, 0.3, 30.0]
    sets = [np.sort(start + width * rng.random(2 * FEW) ** 2) for width in widths]
    sets = [points[::-1] if down else points for points in sets]
    found = PowerSums.of([None, *sets]).sum_of(function)
    assert np.isnan(found[0])
    assert np.isfinite(found[1:3]).all() == (function(start) > 0)  # not where it vanishes
    for points, summed in zip(sets, found[1:], strict=True):
        if np.isfinite(summed):
            assert summed == pytest.approx(math.fsum(function(points)), rel=1e-15, abs=0)


def test_powers_serve_where_points_are_close_and_not_where_they_are_far_apart():
    close, far = 1 + 1e-3 * np.arange(2000) / 2000, 1 + np.arange(2000.0)
    sums = PowerSums.of([close, far, 1e3 * far])
    assert sums.known
    assert np.isfinite(sums.sum_of(FUNCTIONS["reciprocal"])).tolist() == [True, False, False]
    kink = sums.sum_of(lambda x: np.abs(x - close[700]))
    assert np.isnan(kink[0])
    assert np.isnan(sums.sum_of(FUNCTIONS["exponential"])[2])  # zero but at one end
    assert not PowerSums.of([]).known


def test_differences_are_those_of_the_sums():
    sums = np.array([0.0, 1.0, 1.0, 4.0, 9.0])
    held, wanted = Differences(sums), np.diff(sums)
    for key in (slice(None), slice(1, 3), slice(2, 1), slice(9), slice(None, None, -1), -1, 2):
        assert np.all(held[key] == wanted[key])
    assert held[np.array([3, 0])].tolist() == [5.0, 1.0]
    assert (held > 0).tolist() == [True, False, True, True]
    assert np.dot(held, held) == 35
    assert (held + held).tolist() == (2 * wanted).tolist()
    assert np.clip(held, 0, 2).tolist() == [1, 0, 2, 2]
    assert held.shape == wanted.shape
    with pytest.raises(IndexError):
        held[4]


def metrics_by_hand(y, s, alpha, k):
    """Metrics of a list without ties between the classes or among the positives."""
    labels = y[np.argsort(-s, kind="stable")]
    places = np.flatnonzero(labels) + 1.0
    n, m = len(y), int(y.sum())
    discounts = np.exp(-alpha * np.arange(1, n + 1) / n)
    first, last = math.fsum(discounts[:m]), math.fsum(discounts[n - m :])
    found = np.arange(1, m + 1)
    gains = 1 / np.log(1 + np.arange(1, n + 1))
    return {
        "dcg": math.fsum(1 / np.log(places + 1)),
        "aver": math.fsum(1 / places),
        "average_precision": math.fsum(found / places) / m,
        f"bedroc(alpha={alpha})": (math.fsum(discounts[labels]) - last) / (first - last),
        f"ndcg_at(k={k})": math.fsum(gains[:k][labels[:k]]) / math.fsum(gains[: min(k, m)]),
        f"precision_at(k={k})": labels[:k].mean(),
        f"recall_at(k={k})": labels[:k].sum() / m,
        "auc": 1 - (places - found).sum() / m / (n - m),
        "f_skew": math.fsum(np.exp(-s[y])) - math.fsum(np.exp(s[~y])),
        "ranking_margin": s[y].min() - s[~y].max(),
        "pnorm_risk(p=4.0, normalize=True)": np.mean(((m - np.cumsum(labels)[~labels]) / m) ** 4)
        ** 0.25,
    }


@pytest.mark.more
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
@pytest.mark.parametrize("alpha", [0.5, 20.0])
def test_a_summary_of_a_long_list_is_that_of_the_formulas(share, alpha):
    rng = np.random.default_rng(3)
    n = 150_000
    y = rng.random(n) < share
    s = rng.permutation(n) / n + 0.3 * y  # no two alike
    s = np.where(y, s, s + 1e-9)
    k = 40_000
    found = summary(y, s, alpha=alpha, top=k).as_dict()
    for name, value in metrics_by_hand(y, s, alpha, k).items():
        assert found[name] == pytest.approx(value, rel=2e-12), name


@pytest.mark.more
@pytest.mark.parametrize("digits", [2, 5])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_long_list_with_ties_has_the_metrics_of_its_weighted_rows(digits, share):
    rng = np.random.default_rng(4)
    n = 100_000
    y = rng.random(n) < share
    s = np.round(rng.normal(size=n) + y, digits)
    given = {"top": [0.01, 0.5]}
    found = summary(y, s, **given).as_dict()
    halves = np.full(n, 0.5)  # two of half the weight: nothing is a count
    twice = summary(np.tile(y, 2), np.tile(s, 2), sample_weight=np.tile(halves, 2), **given)
    for name, value in twice.as_dict().items():
        assert found[name] == pytest.approx(value, rel=1e-10), name


def test_long_lists_keep_sums_alone():
    rng = np.random.default_rng(5)
    y, s = rng.random(200_000) < 0.5, rng.normal(size=200_000)
    joined = RankedList.joined(SortedClasses.of(y, s))
    full = RankedList.rank(y, s)
    assert isinstance(joined.positive, Differences)
    assert joined.last_positive == np.flatnonzero(np.asarray(joined.positive))[-1]
    assert joined.first_negative == np.flatnonzero(np.asarray(joined.negative))[0]
    for name, settings in {
        "positives_at_top": {"negatives": 5},
        "pnorm_risk": {"p": 3.0},
        "precision_at": {"k": 70_000},
        "bedroc": {"alpha": 1e-9},
    }.items():
        wanted = METRICS[name].of(full, **settings)
        assert METRICS[name].of(joined, **settings) == pytest.approx(wanted, rel=1e-12)
