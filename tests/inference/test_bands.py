"""Bands around ROC, lift and precision-recall curves."""

import numpy as np
import pytest
from scipy.stats import norm

from toprank.inference import interval, lift_band, precision_recall_band, roc_band
from toprank.metrics import lift_at, tpr_at_fpr

BANDS = [roc_band, lift_band, precision_recall_band]


def data(n=400, high=80, separation=1.5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < high
    return y, rng.normal(size=n) + separation * y


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_the_band_holds_the_curve(band, kind):
    y, s = data()
    result = band(y, s, kind=kind)
    assert np.all(result.low <= result.estimate + 1e-12)
    assert np.all(result.estimate <= result.high + 1e-12)
    assert np.all(result.low >= 0)
    assert kind in str(result)
    if band is not lift_band:
        assert np.all(result.high <= 1)


@pytest.mark.parametrize("band", BANDS)
def test_a_band_for_all_points_is_wider_than_one_for_each(band):
    y, s = data()
    each, together = (band(y, s, kind=kind) for kind in ("pointwise", "simultaneous"))
    middle = slice(60, 140)
    assert np.mean((together.high - together.low)[middle]) > np.mean((each.high - each.low)[middle])


def test_the_curves_are_the_metrics():
    y, s = data()
    rates = np.array([0.05, 0.1, 0.5])
    assert roc_band(y, s, fpr=rates).estimate == pytest.approx([tpr_at_fpr(y, s, r) for r in rates])
    assert lift_band(y, s, top=rates).estimate == pytest.approx([lift_at(y, s, r) for r in rates])


def test_every_curve_ends_where_it_must():
    y, s = data()
    assert roc_band(y, s, fpr=[1.0]).low[0] == 1
    assert lift_band(y, s, top=[1.0]).high[0] == 1
    assert precision_recall_band(y, s, recall=[1.0]).estimate[0] > 0


@pytest.mark.more
def test_points_and_whole_curves_are_covered():
    rates = np.linspace(0.02, 0.98, 49)
    truth = norm.sf(norm.isf(rates) - 1.5)
    at_points, whole = [], []
    for seed in range(300):
        y, s = data(n=200, high=60, seed=seed)
        each = roc_band(y, s, fpr=rates)
        at_points.append((each.low <= truth) & (truth <= each.high))
        together = roc_band(y, s, kind="simultaneous", fpr=rates)
        whole.append(np.all((together.low <= truth) & (truth <= together.high)))
    assert np.min(np.mean(at_points, axis=0)) > 0.92
    assert np.mean(whole) > 0.93


def test_lift_and_precision_are_covered_at_once():
    separation, share = 1.5, 0.3
    thresholds = np.linspace(-2, 3.5, 60)
    tpr, fpr = norm.sf(thresholds - separation), norm.sf(thresholds)
    top = share * tpr + (1 - share) * fpr
    lift, precision = tpr / top, share * tpr / top
    covered = []
    for seed in range(150):
        y, s = data(n=200, high=60, separation=separation, seed=seed)
        one = lift_band(y, s, kind="simultaneous", top=top)
        two = precision_recall_band(y, s, kind="simultaneous", recall=tpr)
        slack = 2e-3  # the band of the lift is read from a grid
        covered.append(
            np.all((one.low <= lift + slack) & (lift <= one.high + slack))
            and np.all((two.low <= precision + slack) & (precision <= two.high + slack))
        )
    assert np.mean(covered) > 0.92


@pytest.mark.parametrize("band", BANDS)
def test_what_is_not_a_band_is_refused(band):
    y, s = data()
    with pytest.raises(ValueError, match="Unknown kind"):
        band(y, s, kind="everywhere")
    with pytest.raises(ValueError, match="level"):
        band(y, s, level=2)
    name = {"roc_band": "fpr", "lift_band": "top", "precision_recall_band": "recall"}[band.__name__]
    with pytest.raises(ValueError, match="from 0 to 1"):
        band(y, s, **{name: [0.5, 1.5]})


def test_there_is_no_precision_where_nothing_is_found():
    with pytest.raises(ValueError, match="recall contains 0"):
        precision_recall_band(*data(), recall=[0.0, 0.5])


@pytest.mark.more
@pytest.mark.parametrize(("positives", "negatives", "separation"), [(20, 980, 1.0), (10, 190, 2.0)])
def test_precision_at_every_recall_is_covered_with_few_positives(positives, negatives, separation):
    recall = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    fpr = norm.sf(norm.isf(recall) + separation)
    share = positives / (positives + negatives)
    truth = share * recall / (share * recall + (1 - share) * fpr)
    covered = []
    for seed in range(200):
        y, s = data(positives + negatives, positives, separation, seed)
        band = precision_recall_band(y, s, recall=recall)
        covered.append((band.low <= truth) & (truth <= band.high))
    assert np.min(np.mean(covered, axis=0)) >= 0.91  # it was 0.75 with the slope of the curve


def test_precision_where_every_positive_must_be_found_has_no_lower_end_above_the_share():
    y, s = data(n=400, high=20)
    band = precision_recall_band(y, s, recall=[0.95, 1.0])
    assert band.low == pytest.approx([0.05 * 0.95 / (0.05 * 0.95 + 0.95), 0.05])


@pytest.mark.parametrize(("positives", "negatives", "separation"), [(100, 20, 2), (20, 20, 1)])
def test_the_curve_is_covered_where_hardly_a_negative_lies_above(positives, negatives, separation):
    rng = np.random.default_rng(0)
    y = np.arange(positives + negatives) < positives
    rates = np.array([0.25, 1.0, 2.0, 5.0]) / negatives
    truth = norm.sf(norm.isf(rates) - separation)
    covered = []
    for _ in range(60):
        band = roc_band(y, rng.normal(size=len(y)) + separation * y, fpr=rates)
        covered.append((band.low <= truth) & (truth <= band.high))
    assert np.min(np.mean(covered, axis=0)) > 0.9  # it was 0.52 with the slope of the curve


def test_a_point_of_the_curve_is_the_interval_of_the_metric():
    y, s = data(n=60, high=25)
    band = roc_band(y, s, fpr=[0.0, 0.03, 0.2, 1.0])
    for fpr, low, high in zip(band.x[1:], band.low[1:], band.high[1:], strict=True):
        found = interval("tpr_at_fpr", y, s, fpr=fpr)
        assert (found.low, found.high) == pytest.approx((low, high))
    assert band.low[0] == 0 and band.low[-1] == band.high[-1] == 1


def test_a_million_rows_have_a_band():
    y, s = data(n=1_000_000, high=1000)
    band = roc_band(y, s)
    assert np.all(np.diff(band.low) >= -1e-12) and np.all(band.low <= band.high)


def test_a_lift_of_no_rows_is_refused():
    with pytest.raises(ValueError, match="top contains 0, where there is no row"):
        lift_band([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], top=[0.0, 0.5])


@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_a_lift_band_allows_for_the_share_of_positives_that_was_drawn(kind):
    rng, top, missed = np.random.default_rng(3), np.array([0.01, 0.033]), np.zeros(2)
    for _ in range(100):
        y = rng.random(1000) < 0.1
        band = lift_band(y, rng.normal(size=1000) + 4 * y, kind=kind, top=top)
        missed += (band.low > 10.09) | (band.high < 10.05)  # all are positive: E[1000 / positives]
    assert np.all(missed <= 10)
