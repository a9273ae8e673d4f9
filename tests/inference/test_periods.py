"""Metrics per period: against a loop over days, and whether intervals cover for alike days."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

from toprank.inference import period_interval
from toprank.inference.periods import error_of_mean
from toprank.metrics import auc, precision_at


def payments(days=20, per_day=60, seed=0):
    rng = np.random.default_rng(seed)
    day = rng.permutation(np.repeat(np.arange(days), per_day))
    card = rng.integers(0, 200, days * per_day)
    y = rng.random(days * per_day) < 0.1
    return y, rng.normal(size=days * per_day) + y, day, card


def test_each_day_is_a_list_with_each_card_once():
    y, s, day, card = payments()
    found = period_interval("precision_at", y, s, day, entities=card, k=5)
    expected = []
    for one in range(20):
        cards = {}
        for row in np.flatnonzero(day == one):
            score, hit = cards.get(card[row], (-np.inf, False))
            cards[card[row]] = (max(score, s[row]), hit or y[row])
        first = sorted(cards.values(), reverse=True)[:5]
        expected.append(np.mean([hit for _, hit in first]))
    assert found.values == pytest.approx(expected)
    assert found.estimate == pytest.approx(np.mean(expected))
    assert found.periods.tolist() == list(range(20)) and found.low < found.estimate < found.high
    whole = period_interval("auc", y, s, day)
    assert whole.values == pytest.approx([auc(y[day == d], s[day == d]) for d in range(20)])


def test_days_without_a_positive_count_for_precision_and_have_no_area():
    y, s, day, _ = payments()
    y = y & (day % 5 > 0)
    found = period_interval("precision_at", y, s, day, k=5)
    assert len(found.values) == 20 and found.values[0] == 0
    skipped = period_interval("auc", y, s, day)
    assert len(skipped.values) == 16 and "4 periods of one class only" in skipped.note


def test_hours_are_cut_to_days_and_short_days_taken_whole():
    y, s, day, _ = payments()
    hours = np.datetime64("2026-01-01T00") + day.astype("timedelta64[D]") + np.timedelta64(5, "h")
    hours[::2] += np.timedelta64(7, "h")
    by_hour = period_interval("precision_at", y, s, hours, k=1000)
    assert len(by_hour.values) == 20
    assert by_hour.values[3] == pytest.approx(precision_at(y[day == 3], s[day == 3], 1.0))


def test_four_periods_are_enough():
    y, s, day, _ = payments(days=4)
    found = period_interval("auc", y, s, day)
    assert len(found.values) == 4 and found.low < found.estimate < found.high


def test_what_has_no_interval_is_refused():
    y, s, day, card = payments(days=3)
    with pytest.raises(ValueError, match="3 periods have a value of auc"):
        period_interval("auc", y, s, day)
    with pytest.raises(ValueError, match="period has 2 entries"):
        period_interval("auc", y, s, day[:2])
    with pytest.raises(ValueError, match="expected one entity per row"):
        period_interval("auc", y, s, day, entities=card[:2])
    with pytest.raises(TypeError, match="no parameter"):
        period_interval("auc", y, s, day, depth=3)


@pytest.mark.more
@pytest.mark.parametrize(("alike", "least"), [(0.0, 0.93), (0.5, 0.915)])
def test_the_interval_of_a_mean_covers_where_neighbours_are_alike(alike, least):
    rng = np.random.default_rng(1)
    series = lfilter([1], [1, -alike], rng.normal(size=(2000, 160)), axis=1)[:, 100:]
    hits = {True: 0, False: 0}
    for one in series:
        for correlated in hits:
            error, freedom = error_of_mean(one, correlated)
            hits[correlated] += abs(one.mean()) <= student.isf(0.025, freedom) * error
    assert hits[True] / 2000 > least
    if alike:
        assert hits[False] / 2000 < 0.8


def test_the_error_of_a_mean_is_that_of_its_slow_waves():
    n = 125
    place = np.pi * (np.arange(n) + 0.5) / n
    error, waves = error_of_mean(3.0 + np.sqrt(2 / n) * np.cos(2 * place))  # one of ten, of size 1
    assert waves == 10
    assert error == pytest.approx(np.sqrt(1 / 10 / n))
    assert error_of_mean(3.0 + np.cos(40 * place))[0] < 1e-12  # quick ones are noise of neighbours


def test_labels_of_other_rows_are_refused_and_the_result_is_a_dictionary():
    rng = np.random.default_rng(0)
    y, month = rng.random(300) < 0.4, np.arange(300) // 30
    s = rng.normal(size=300) + y
    with pytest.raises(ValueError, match="y has 299 entries, expected one per row: 300"):
        period_interval("auc", y[1:], s, period=month)
    found = period_interval("auc", y, s, period=month)
    told = found.as_dict()
    assert told["estimate"] == found.estimate and told["values"].tolist() == found.values.tolist()
