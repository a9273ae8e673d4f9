"""Rows that are rarely drawn and far from their place: the end of an interval at more errors."""

import numpy as np
import pytest

from toprank.inference import interval, score_interval
from toprank.inference.rare_errors import allow_for_rare_rows, most_errors
from toprank.inference.sample import Sample
from toprank.inference.score_interval import level_without_other_tail
from toprank.metrics import METRICS
from toprank.simulate import ScoreSetting, coverage


def test_without_an_error_so_far_three_and_a_half_rows_may_be_unseen():
    # a Poisson mean of 3.69 gives none in 2.5% of samples
    assert most_errors(0.0, 0.0, 0.01, 0.95) == pytest.approx(0.0369, abs=1e-4)
    assert most_errors(0.3, 0.0, 0.0, 0.95) == 0.3


def test_many_errors_that_are_seen_need_no_allowance():
    # the normal law, and a little for the skewness
    assert most_errors(0.2, 1e-4, 1e-6, 0.95) == pytest.approx(0.2 + 1.96 * 0.01, abs=2e-3)


@pytest.mark.parametrize("power", [1.0, 4.0, 64.0, 1000.0])
def test_the_estimate_stays_inside_at_every_power(power):
    for share, error in [(0.0, 0.0), (1e-9, 1e-9), (0.05, 0.04), (0.9, 0.02), (1.0, 0.0)]:
        low, high = allow_for_rare_rows((share, share), share, error, power, 50.0, 0.95)
        assert low == share <= high <= 1


def test_no_error_in_a_few_dozen_rows_leaves_a_large_risk_possible():
    y = np.repeat([1, 0], [40, 40])
    perfect = interval("pnorm_risk", y, np.arange(80.0)[::-1], p=4, normalize=True)
    # 0.09 before, which near-perfect scores have in truth
    assert perfect.low == perfect.estimate == 0 and 0.35 < perfect.high < 0.5


def test_notes_say_where_the_p_norm_risk_is_covered_too_rarely():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [5, 45])
    assert "5 positives" in interval("pnorm_risk", y, rng.normal(size=50), p=4).note
    y = np.repeat([1, 0], [40, 360])
    s = rng.normal(size=400) + y
    steep, mild = (interval("pnorm_risk", y, s, p=p, normalize=True) for p in (64, 2))
    assert "p=64" in steep.note and mild.note == ""


def test_a_note_says_where_positives_are_too_few_for_the_power():
    # several negatives above all positives: their heights say nothing of one another
    y, s = np.repeat([1, 0], [40, 160]), np.arange(200.0)
    s[:40] = np.arange(40) + 120.5
    s[[0, 1]] = -1.0
    few, mild = (interval("pnorm_risk", y, s, p=p, normalize=True) for p in (64, 16))
    assert "which 40 positives hardly show" in few.note and mild.note == ""


@pytest.mark.parametrize("p", [1, 4, 64])
def test_a_negative_among_tied_positives_is_above_more_of_them(p):
    y, s = np.repeat([1, 0], 30), np.random.default_rng(0).normal(size=60)

    def misplaced(scores):
        sample = Sample.of(y, scores)
        return METRICS["pnorm_risk"].expansion(sample.ranked, p=p).misplaced

    assert misplaced(s) == pytest.approx(1 / (p + 1))
    assert misplaced(y * 1.0) == pytest.approx((29.5 / 30) ** p)
    halves = np.repeat([2.0, 1.0, 0.0], [15, 15, 30])
    assert misplaced(halves) == pytest.approx(
        max(1 / (p + 1), ((29.5 / 30) ** p + (14.5 / 30) ** p) / 2)
    )


@pytest.mark.more
def test_ties_with_most_of_the_positives_that_the_sample_has_missed_are_allowed_for():
    # one negative in fifteen is tied with most positives; 6% of the samples hold none
    rng, y = np.random.default_rng(4), np.repeat([1, 0], 40)
    held = 0
    for _ in range(400):
        s = np.round(np.clip(rng.normal(size=80) + 2.5 * y, -2, 2))
        found = interval("pnorm_risk", y, s, p=4, normalize=True)
        held += found.low <= 0.5095 <= found.high
    assert held >= 0.94 * 400  # 0.926 before


def test_the_level_of_an_end_is_less_as_far_as_the_other_end_cannot_miss():
    # 4% and not 2.5% at this end
    assert level_without_other_tail(lambda level: -1.0, 0.95) == pytest.approx(0.92)
    assert level_without_other_tail(lambda level: 1.0, 0.95) == 0.95
    assert level_without_other_tail(lambda level: 0.93 - level, 0.95) == pytest.approx(0.93)
    assert level_without_other_tail(lambda level: -1.0, 0.3) == 0


@pytest.mark.parametrize("power", [1, 4, 64])
@pytest.mark.more
def test_intervals_of_a_p_norm_risk_grow_with_the_level(power):
    rng = np.random.default_rng(1)
    y, normal = np.repeat([1, 0], [20, 20]), rng.normal(size=40)
    for apart in (0.0, 1.0, 2.0, 3.0):
        found = [
            interval("pnorm_risk", y, normal + apart * y, p=power, normalize=True, level=level)
            for level in (0.8, 0.85, 0.9, 0.92, 0.95, 0.96, 0.99)
        ]
        assert np.all(np.diff([one.low for one in found]) <= 1e-9)
        assert np.all(np.diff([one.high for one in found]) >= -1e-9)
        assert found[0].low <= found[0].estimate <= found[0].high


def test_the_lower_end_has_more_of_the_risk_up_to_what_a_sample_without_errors_leaves_possible(
    monkeypatch,
):
    y, normal = np.repeat([1, 0], [40, 40]), np.random.default_rng(3).normal(size=80)

    def ends(apart, level=0.95):
        scores = normal + apart * y
        return interval("pnorm_risk", y, scores, p=4, normalize=True, level=level)

    possible, small, large = ends(9.0), ends(1.5), ends(0.0)
    assert possible.estimate == 0 and possible.high == pytest.approx(0.438, abs=2e-3)
    monkeypatch.setattr(score_interval, "WITHOUT_OTHER_TAIL", 1.0)
    assert small.low < possible.high and small.low == pytest.approx(ends(1.5, 0.92).low)
    assert large.low > possible.high and large.low == ends(0.0).low
    assert (small.high, large.high) == (ends(1.5).high, ends(0.0).high)


@pytest.mark.more
def test_a_small_p_norm_risk_is_missed_by_its_lower_end_as_often_as_it_may_be():
    found = coverage("pnorm_risk", ScoreSetting(40, 0.5, "t3"), draws=600, p=4, normalize=True)
    assert found.below == 0 and found.covered > 0.935
    assert 0.02 < found.above < 0.06


@pytest.mark.more
@pytest.mark.parametrize(
    "setting", [ScoreSetting(40, 0.5, "near-perfect"), ScoreSetting(40, 0.5, "t3")]
)
def test_a_p_norm_risk_made_by_rare_rows_is_covered(setting):
    found = coverage("pnorm_risk", setting, draws=300, p=4, normalize=True)
    assert found.covered >= 0.935 - 3 * 0.0126, found  # 0.88 and 0.89 before
