"""Intervals of the TPR at an FPR."""

import numpy as np
import pytest
from scipy.stats import binom

from toprank.inference import compare, curve_points, interval, precision_recall_band, roc_band
from toprank.inference.bootstrap import compare_resampled
from toprank.inference.result import MetricRequest, Verdict
from toprank.inference.sample import Sample
from toprank.inference.shares import binomial_interval
from toprank.metrics import METRICS


def ends(y, s, level=0.95, fpr=0.1):
    found = interval("tpr_at_fpr", y, s, fpr=fpr, level=level)
    return found.low, found.high


def data(positives, negatives, separation, seed=0):
    y = np.arange(positives + negatives) < positives
    return y, np.random.default_rng(seed).normal(size=len(y)) + separation * y


@pytest.mark.parametrize("trials", [2, 4, 5, 8, 20])
def test_covers_nearly_the_level_at_every_tpr_where_the_threshold_is_known(trials):
    share, hits = np.linspace(0.001, 0.999, 500), np.arange(trials + 1)
    labels = [0, 1, 0, 1, 0]
    found = []
    for count in hits:
        # so many negatives that the threshold lies among those of score 3
        weight = [1e7, count, 2e7, trials - count, 7e7]
        result = interval(
            "tpr_at_fpr", labels, [5.0, 4.0, 3.0, 2.0, 1.0], fpr=0.2, sample_weight=weight
        )
        found.append((result.low, result.high))
    low, high = np.array(found).T
    held = (low <= share[:, None]) & (share[:, None] <= high)
    assert np.min(np.sum(held * binom.pmf(hits, trials, share[:, None]), axis=1)) > 0.937


def test_an_end_has_more_of_the_risk_where_the_other_cannot_miss(monkeypatch):
    in_order = float(binomial_interval(np.array(1.0), 10, 0.95)[0])
    several, nearly_all, none = data(10, 90, 0.0), data(10, 90, 2.0), data(10, 90, -9.0)
    now = [ends(*each) for each in (several, nearly_all, none)]
    monkeypatch.setattr(curve_points, "WITHOUT_OTHER_TAIL", 1.0)
    before = [ends(*each) for each in (several, nearly_all, none)]
    assert before[0][1] < in_order and now[0][1] == before[0][1]
    assert before[1][1] > in_order and in_order <= now[1][1] < before[1][1]
    assert now[2] == before[2] and before[2][0] == 0


@pytest.mark.parametrize(("positives", "negatives"), [(4, 20), (20, 20), (10, 400)])
def test_intervals_of_a_tpr_grow_with_the_level(positives, negatives):
    for separation in (0.0, 1.0, 2.5):
        y, s = data(positives, negatives, separation)
        levels = (0.3, 0.37, 0.38, 0.5, 0.8, 0.9, 0.92, 0.95, 0.96, 0.99, 0.9999)
        low, high = np.array([ends(y, s, level) for level in levels]).T
        assert np.all(np.diff(low) <= 2e-4) and np.all(np.diff(high) >= -2e-4)


def test_a_threshold_that_moves_past_positives_needs_half_of_the_chance_of_those_seen():
    y, s = data(200, 400, 1.0)
    flat = np.where(y, 9.0, s)
    parts = [
        float(curve_points._part_of_seen(Sample.of(y, scores), np.array(0.1)))
        for scores in (s, flat)
    ]
    assert parts == pytest.approx([0.5, 0.7])


def test_the_band_of_the_curve_rises_in_whatever_order_it_is_asked_for():
    y, s = data(40, 1000, 1.0)
    rates = np.linspace(0, 1, 51)
    band = roc_band(y, s, fpr=rates)
    assert np.all(np.diff(band.low) >= 0) and np.all(np.diff(band.high) >= 0)
    assert np.all((band.low <= band.estimate) & (band.estimate <= band.high))
    order = np.random.default_rng(1).permutation(51)
    shuffled = roc_band(y, s, fpr=rates[order])
    np.testing.assert_array_equal(shuffled.low, band.low[order])
    np.testing.assert_array_equal(shuffled.high, band.high[order])


def test_a_precision_at_a_recall_has_the_ends_of_the_band_and_the_other_way_round():
    rng = np.random.default_rng(4)
    y = np.arange(200) < 40
    s = rng.normal(size=200) + y
    x = np.linspace(0, 1, 2001)[1:]
    band = precision_recall_band(y, s, recall=x)
    found = interval("precision_at_recall", y, s, recall=0.3, n_resamples=20)
    assert found.low == band.low[np.searchsorted(x, 0.3)]
    assert found.high == pytest.approx(np.max(band.high[x >= 0.3]), abs=0.01)
    assert found.standard_error > 0 and not found.note
    for precision in (0.3, 0.6):
        found = interval("recall_at_precision", y, s, precision=precision, n_resamples=20)
        ends = [x[one >= precision].max(initial=0.0) for one in (band.low, band.high)]
        assert (found.low, found.high) == pytest.approx(ends, abs=0.002)


@pytest.mark.parametrize(
    ("metric", "at", "law", "truth"),
    [
        ("precision_at_recall", {"recall": 0.2}, (40, 80), 0.859),
        ("recall_at_precision", {"precision": 0.5}, (20, 200), 0.0974),
    ],
)
def test_points_of_the_precision_recall_curve_are_covered(metric, at, law, truth):
    rng, covered = np.random.default_rng(6), 0
    y = np.arange(law[1]) < law[0]
    for _ in range(80):
        found = interval(metric, y, rng.normal(size=len(y)) + y, n_resamples=20, **at)
        covered += found.low <= truth <= found.high
    assert covered >= 74  # the bootstrap covers 64% and 80%


@pytest.mark.parametrize("recall", [0.3, 0.6])
def test_the_standard_error_of_a_precision_is_how_far_it_strays(recall):
    found = [
        interval("precision_at_recall", *data(400, 3000, 1.5, seed), recall=recall)
        for seed in range(150)
    ]
    strayed = np.std([one.estimate for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(strayed, rel=0.2)


def test_a_precision_of_few_rows_or_a_large_tie_at_the_threshold_is_resampled():
    expand = METRICS["precision_at_recall"].expansion
    y, s = data(400, 3000, 1.5)
    for scores, recall, known in ((s, 0.5, True), (s, 0.2, False), (np.round(s), 0.5, False)):
        assert (expand(Sample.of(y, scores).ranked, recall) is not None) == known
        found = interval("precision_at_recall", y, scores, recall=recall, n_resamples=20)
        assert found.standard_error > 0
    groups = np.arange(3400) % 50
    found = interval("precision_at_recall", y, s, recall=0.5, groups=groups, n_resamples=20)
    assert "bootstrap" in found.method


def test_precisions_at_a_recall_are_compared_by_influences_as_resamples_compare_them():
    rng = np.random.default_rng(5)
    y = np.arange(3400) < 400
    common, own = rng.normal(size=3400) + 1.2 * y, rng.normal(size=(2, 3400))
    a, b = common + own[0] + 0.5 * y, common + own[1]
    found = compare("precision_at_recall", y, a, b, recall=0.5)
    assert found.method == "paired influences of the rows"
    samples = (Sample.of(y, s) for s in (a, b))
    how = {"recall": 0.5}
    asked = (MetricRequest(METRICS["precision_at_recall"], how, one, 0.95) for one in samples)
    resampled = compare_resampled(Verdict(("a", "b"), "", 0.95), *asked)
    assert found.standard_error == pytest.approx(resampled.standard_error, rel=0.25)
    assert found.difference == pytest.approx(resampled.difference)
