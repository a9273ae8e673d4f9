"""Simulated card payments: what a row knows, against a loop, and the three kinds of fraud."""

import numpy as np
import pytest

from toprank.simulate import card_payments
from toprank.simulate.payments import _Town


@pytest.fixture(scope="module")
def payments():
    return card_payments(300, 60, days=40, random_state=1)


def test_payments_come_in_order_with_three_kinds_of_fraud_and_late_labels(payments):
    assert np.all(np.diff(payments.time) >= 0) and payments.day.max() == 39
    counts = np.bincount(payments.kind, minlength=4)
    assert np.all(counts[1:] > 25) and 0.01 < payments.fraud.mean() < 0.05
    assert np.array_equal(payments.fraud, payments.kind > 0)
    delay = payments.known - payments.time
    assert delay.min() >= 3.5 and delay.max() <= 10.5
    again = card_payments(300, 60, days=40, random_state=1)
    assert np.array_equal(again.features, payments.features)
    assert not np.array_equal(card_payments(300, 60, days=40, random_state=2).time, payments.time)


def test_a_row_knows_what_a_loop_over_its_past_finds(payments):
    columns = dict(zip(payments.feature_names, payments.features.T, strict=True))
    rng = np.random.default_rng(0)
    for row in rng.choice(len(payments), 60, replace=False):
        now = payments.time[row]
        mine = (payments.customer == payments.customer[row]) & (payments.time < now)
        day, week = mine & (payments.time >= now - 1), mine & (payments.time >= now - 7)
        assert columns["payments in a day"][row] == day.sum()
        assert columns["payments in a week"][row] == week.sum()
        spent = np.log1p(payments.amount[week].sum())
        assert columns["spent in a week"][row] == pytest.approx(spent)
        there = payments.terminal == payments.terminal[row]
        known = there & (payments.known < now) & (payments.known >= now - 28)
        share = payments.fraud[known].sum() / (known.sum() + 5)
        assert columns["terminal's known fraud"][row] == pytest.approx(share)
        hours = 24 * min(28.0, now - payments.time[mine].max() if mine.any() else 28.0)
        assert columns["hours since the last"][row] == pytest.approx(np.log1p(hours))


def test_nothing_of_the_future_is_in_the_features():
    whole = card_payments(200, 40, days=30)
    early = whole.time < 20
    cut_off = type(whole)(*(getattr(whole, name)[early] for name in whole.__dataclass_fields__))
    assert np.allclose(cut_off.features, whole.features[early])


@pytest.mark.parametrize(
    "wrong", [{"n_customers": 1}, {"days": 0}, {"frauds_per_day": -1.0}, {"label_delay": np.nan}]
)
def test_what_makes_no_town_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        card_payments(**wrong)


def test_skimming_stops_where_nearly_all_payments_are_fraud():
    rng = np.random.default_rng(0)
    town = _Town.draw(5, 2, 30, 1.0, rng)
    payments = town.honest_payments(rng)
    town.skim(payments, 1e6, rng)  # many more than there are
    assert set(np.unique(payments["kind"])) <= {0, 2}
    assert np.mean(payments["kind"] == 2) > 0.9
