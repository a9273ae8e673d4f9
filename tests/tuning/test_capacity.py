"""The cut-off that keeps the number of alerts within what can be looked at."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.inference import period_interval
from toprank.tuning import capacity, capacity_threshold


@given(
    scores=st.lists(st.integers(0, 15), min_size=1, max_size=60),
    per_period=st.integers(1, 20),
    n_periods=st.integers(1, 4),
)
def test_the_cut_off_is_the_lowest_that_fits(scores, per_period, n_periods):
    scores = np.array(scores, dtype=float)
    found = capacity_threshold(scores, per_period, n_periods)
    alerts = np.count_nonzero(scores >= found.threshold)
    assert alerts <= per_period * n_periods
    assert found.expected == pytest.approx(alerts / n_periods)
    lower = scores[scores < found.threshold]
    if len(lower):
        assert np.count_nonzero(scores >= lower.max()) > per_period * n_periods


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40))
def test_a_weight_is_a_repetition(rows):
    scores, count = (np.array(column) for column in zip(*rows, strict=True))
    if not count.any():
        with pytest.raises(ValueError, match="every row is absent"):
            capacity_threshold(scores, 3, 2, sample_weight=count)
        return
    weighted = capacity_threshold(scores, 3, 2, sample_weight=count)
    assert weighted == capacity_threshold(np.repeat(scores, count), 3, 2)


@pytest.mark.more
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_the_interval_holds_the_alerts_of_new_days_as_often_as_it_says(spread):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        rate = 200 * np.exp(spread * rng.normal(size=31))  # days differ, or do not
        counts = rng.poisson(rate)
        day = np.repeat(np.arange(31), counts)
        scores = rng.normal(size=len(day))
        past = day < 30
        found = capacity_threshold(scores[past], 20, day[past])
        new = np.count_nonzero(scores[~past] >= found.threshold)
        inside += found.low <= new <= found.high
    assert 0.90 <= inside / 300 <= 0.995


def test_the_precision_is_that_of_the_alerts():
    scores, y = np.arange(10.0), np.array([0, 0, 0, 1, 0, 0, 1, 0, 1, 1])
    found = capacity_threshold(scores, 2, 2, y=y)
    assert found.threshold == 6.0 and found.precision == 0.75
    assert found.precision_low < 0.75 < found.precision_high
    other = capacity_threshold(scores, 2, 2, y=y, pos_label=0)
    assert other.precision == 0.25
    assert "precision 0.75" in str(found) and capacity_threshold(scores, 2).precision is None


def test_labels_of_periods_count_the_periods():
    scores = np.arange(12.0)
    days = np.repeat(["mon", "tue", "wed"], 4)
    assert capacity_threshold(scores, 2, days) == capacity_threshold(
        scores, 2, np.repeat([5, 6, 9], 4)
    )
    assert capacity_threshold(scores, 2, days).n_periods == 3
    assert "five periods" in capacity_threshold(scores, 2, days).note


def test_dates_with_hours_are_cut_to_days():
    hours = np.datetime64("2026-01-01T00") + np.arange(300)
    zoned = pd.Series(pd.date_range("2026-01-01", periods=300, freq="h", tz="Europe/Berlin"))
    scores, y = np.arange(300.0) % 7, np.arange(300) % 2
    wanted = capacity_threshold(scores, 5, hours.astype("datetime64[D]"))
    assert wanted.n_periods == 13
    for times in (hours, pd.Series(hours), zoned, [time.to_pydatetime() for time in zoned]):
        assert capacity_threshold(scores, 5, times) == wanted
        assert len(period_interval("auc", y, scores, times).periods) == 13


def test_days_that_differ_much_widen_the_interval():
    calm = np.repeat(np.arange(20), 50)
    wild = np.repeat(np.arange(20), np.where(np.arange(20) % 2, 95, 5))
    scores = np.tile(np.linspace(0, 1, 50), 20)
    narrow, wide = (capacity_threshold(scores, 10, period) for period in (calm, wild))
    assert wide.dispersion > narrow.dispersion == 1.0
    assert wide.high - wide.low > narrow.high - narrow.low


def test_ties_too_many_to_fit_are_said_to_be():
    found = capacity_threshold(np.ones(50), 10)
    assert found.threshold == np.inf and "tie" in found.note
    assert found.expected == 0 and found.high >= 1
    assert "every one" in capacity_threshold(np.arange(5.0), 10).note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_period": 0}, "per_period=0"),
        ({"period": -1}, "period=-1"),
        ({"period": [1, 2]}, "period has 2 items"),
        ({"period": [1.0, np.nan, 2.0]}, "missing"),
        ({"level": 1.0}, "level"),
        ({"sample_weight": [1, -1, 1]}, "negative values"),
        ({"y": [1, 1, 1]}, "two"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        capacity_threshold([1.0, 2.0, 3.0], **options)
    with pytest.raises(ValueError, match=r"NaN|empty|minimum of 1"):
        capacity_threshold([np.nan] if "y" in options else [], 3)


@pytest.mark.more
@pytest.mark.parametrize("n_days", [3, 5, 10])
def test_few_days_that_differ_much_still_cover_a_new_one(n_days):
    """Days of dispersion 4; the dispersion itself is estimated from few of them."""
    rng = np.random.default_rng(n_days)
    inside = 0
    for _ in range(400):
        counts = rng.negative_binomial(20 / 3, 1 / 4, n_days)
        day = np.repeat(np.arange(n_days), counts)
        found = capacity_threshold(np.ones(len(day)), 1e6, day)  # every item is an alert
        inside += found.low <= rng.negative_binomial(20 / 3, 1 / 4) <= found.high
    assert inside / 400 >= 0.93


def test_without_the_period_of_each_item_the_note_says_what_is_supposed():
    scores = np.arange(900.0)
    found = capacity_threshold(scores, 10, 30)
    assert found.dispersion == 4.0 and "Poisson" in found.note and "Poisson" in str(found)
    known, calm = (capacity_threshold(scores, 10, 30, dispersion=d) for d in (4, 1))
    assert known.note == calm.note == "" and known.dispersion == 4.0
    assert (known.low, known.high) == (found.low, found.high)
    assert known.high - known.low > 1.5 * (calm.high - calm.low)
    with pytest.raises(ValueError, match=r"dispersion=0\.5"):
        capacity_threshold(scores, 10, 30, dispersion=0.5)


def test_where_no_cut_off_fits_there_are_no_alerts_and_the_note_says_why():
    found = capacity_threshold(np.ones(300), 1, 30)
    assert found.threshold == np.inf and found.expected == 0
    assert "More items tie at the highest score than fit" in found.note
    assert "Poisson" not in found.note  # there is no mean to compare with
    told = found.as_dict()
    assert told["threshold"] == np.inf and told["precision"] is None


def test_a_number_of_days_gives_an_interval_that_holds_uneven_days():
    rng = np.random.default_rng(0)
    found = capacity_threshold(rng.normal(size=30_000), 50, 30)
    said = re.search(r"it is (\d+) to (\d+), which holds (\d+)%", found.note)
    low, high, share = (int(number) for number in said.groups())
    days = rng.negative_binomial(50 / 3, 1 / 4, size=20_000)  # a variance of four times the mean
    within = np.mean((days >= low) & (days <= high))
    assert within == pytest.approx(share / 100, abs=0.02)
    assert 0.6 < within < 0.75
    assert np.mean((days >= found.low) & (days <= found.high)) > 0.94
    calm = capacity_threshold(rng.normal(size=30_000), 50, 30, dispersion=1)
    assert (calm.low, calm.high) == (low, high)


@pytest.mark.parametrize("mean", [1e-3, 0.2, 1e11])
def test_the_note_is_made_for_rare_and_for_very_many_alerts(mean):
    found = capacity_threshold(np.arange(10.0), mean, 10 / mean if mean < 1 else 1e-3)
    assert "Poisson" in found.note


@pytest.mark.parametrize("more", [0.0, 3.0])
@pytest.mark.parametrize("tail", [0.975, 0.025])
def test_very_many_alerts_have_the_interval_of_the_normal_law(more, tail):
    below, above = (
        capacity._exceeded_count(x * capacity._MANY, more, tail) for x in (0.999, 1.001)
    )
    assert above / below == pytest.approx(1.001 / 0.999, rel=1e-6)
    assert (above > 1.001 * capacity._MANY) == (tail < 0.5)


def test_the_chance_of_very_many_alerts_is_that_of_somewhat_fewer():
    def chance(mean):
        spread = np.sqrt(mean)
        return capacity._chance_within(mean, 4.0, (mean - spread, mean + 2 * spread))

    assert chance(1.001e9) == pytest.approx(chance(0.999e9), abs=1e-4)


def test_alerts_as_rare_as_rounding_are_one_at_the_most():
    assert capacity._exceeded_count(1e-14, 0.0, 1e-15) == 1.0
    assert capacity._exceeded_count(1e-14, 0.0, 0.025) == 0.0


def test_where_nothing_fits_there_is_no_precision_and_days_differ_by_chance():
    found = capacity_threshold(np.ones(30), 1, period=np.arange(30) % 3, y=np.arange(30) % 2)
    assert found.threshold == np.inf and found.expected == 0
    assert found.precision is None and found.dispersion == 1.0


def test_weights_that_count_no_items_are_refused():
    with pytest.raises(ValueError, match="expected counts of items"):
        capacity_threshold(np.arange(3.0), 1, sample_weight=[1e30, 1.0, 1.0])
