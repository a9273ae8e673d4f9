"""The average precision where few positives are found: hits that were missed, lists in reverse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from toprank.inference import interval
from toprank.inference.sample import VarianceEstimate
from toprank.inference.score_interval import note_on_missed_hits, score_interval
from toprank.metrics import average_precision
from toprank.metrics.expansion import PairShare, TopRows
from toprank.metrics.left_out_expansions import least_average_precision
from toprank.simulate import ScoreSetting


@pytest.mark.parametrize("prevalence", [1e-9, 9.9e-5, 1.01e-4, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("positives", [2, 7, 1000])
def test_no_average_precision_is_less_than_that_of_a_list_in_reverse(prevalence, positives):
    def precision(recall):
        return prevalence * recall / (prevalence * recall + 1 - prevalence)

    least, seen = least_average_precision(prevalence, positives)
    assert least == pytest.approx(quad(precision, 0, 1)[0], rel=1e-7)
    finite = np.mean(precision(np.arange(1, positives + 1) / positives))
    assert least < finite <= seen * (1 + 1e-9)
    assert seen == pytest.approx(least + prevalence / positives / 2)


def rarely_on_top(rng, y, on_top, apart):
    """Each positive is above all rows by chance, the others random, or so far below negatives."""
    hit = y & (rng.random(len(y)) < on_top)
    return rng.normal(size=len(y)) - apart * y + (apart + 5) * hit


@pytest.mark.more
@pytest.mark.parametrize("on_top", [0.05, 0.1])
def test_positives_that_are_rarely_on_top_of_a_list_in_reverse_are_covered(on_top):
    """Ten of a hundred rows: 64% to 81% were covered."""
    rng = np.random.default_rng(0)
    endless = np.arange(200_000) < 20_000
    truth = average_precision(endless, rarely_on_top(rng, endless, on_top, 3.0))
    y = np.arange(100) < 10
    found = [
        interval("average_precision", y, rarely_on_top(rng, y, on_top, 3.0)) for _ in range(100)
    ]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.93


def test_random_scores_pay_nothing_for_hits_that_they_do_not_have():
    """Ten of a thousand: 0.18 wide with an upper end that allowed for hits."""
    rng = np.random.default_rng(2)
    y = np.arange(1000) < 10
    found = [interval("average_precision", y, rng.normal(size=1000)) for _ in range(40)]
    assert np.mean([one.high - one.low for one in found]) < 0.1


def test_a_note_says_where_hits_that_were_missed_could_count():
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 10
    found = interval("average_precision", y, rng.normal(size=1000))
    assert "missed no positives at the very top. If 3 in 10 were above" in found.note
    assert float(found.note.split("about ")[-1][:-1]) > found.high
    far = interval("average_precision", y, rng.normal(size=1000) + 3 * y)  # hits were seen
    many = interval("average_precision", np.arange(1000) < 300, rng.normal(size=1000))
    assert "very top" not in far.note + many.note


def test_the_note_on_missed_hits_counts_three_as_none_were_seen():
    top = TopRows(hit=0.08)
    assert note_on_missed_hits(0.1, 0.34, top, 10) == ""
    assert note_on_missed_hits(0.1, 0.34, None, 10) == ""
    assert note_on_missed_hits(0.1, 0.33, top, 10).endswith("the value would be about 0.34.")
    assert note_on_missed_hits(0.9, 0.95, top, 10).endswith("the value would be about 1.")


@pytest.mark.parametrize("positives", [5, 40])
@pytest.mark.sampled(3)
@pytest.mark.parametrize("separation", [-1.0, -4.0])
def test_a_list_in_reverse_is_covered(positives, separation):
    setting = ScoreSetting(positives, 0.2, separation=separation)
    rng = np.random.default_rng(1)
    y, s, weight = setting.draw_endless(rng)
    truth = average_precision(y, s, sample_weight=weight)
    found = [interval("average_precision", *setting.draw(rng)[:2]) for _ in range(40)]
    assert np.mean([one.low <= truth + 1e-4 and truth <= one.high for one in found]) > 0.93


def near_reverse(steps, n=200, positives=40):
    """Labels from the lowest score: the highest positive has moved up by some rows."""
    labels = np.repeat([1, 0], [positives, n - positives])
    labels[[positives - 1, positives - 1 + steps]] = labels[[positives - 1 + steps, positives - 1]]
    return labels


def test_the_interval_of_a_list_in_reverse_moves_without_a_jump():
    s = np.arange(200.0)
    ends = np.array(
        [
            (found.low, found.estimate, found.high)
            for found in (
                interval("average_precision", near_reverse(steps), s) for steps in range(0, 120, 4)
            )
        ]
    )
    assert np.all(np.diff(ends, axis=1) >= 0)
    moved, ends_moved = np.diff(ends[:, 1]), np.abs(np.diff(ends[:, [0, 2]], axis=0))
    assert np.all(ends_moved.max(axis=1) <= 12 * moved)
    least, _ = least_average_precision(0.2, 40)
    assert ends[0, 0] == pytest.approx(least)
    assert ends[0, 2] > 0.15  # forty positives of which none was found bound the share by no less


@given(st.data())
def test_any_list_has_its_estimate_within_ends_that_do_not_depend_on_the_order(data):
    n = data.draw(st.integers(4, 30))
    labels = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    y = np.array(labels)
    y[:4] = [True, True, False, False]
    shape = st.sampled_from([(0.0, 0.0), (1.0, 0.0), (-50.0, 0.0), (50.0, 0.0), (3.0, 1.0), (0, 9)])
    lift, noise = data.draw(shape)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    s = np.round(lift * y + noise * rng.normal(size=n), data.draw(st.sampled_from([0, 6])))
    weight = rng.integers(1, 5, n) if data.draw(st.booleans()) else None
    how = {"weights": data.draw(st.sampled_from(["counts", "sampling"])), "sample_weight": weight}
    found = interval("average_precision", y, s, **how)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    wider = interval("average_precision", y, s, level=0.99, **how)
    assert wider.low <= found.low + 1e-12 and found.high <= wider.high + 1e-12
    order = rng.permutation(n)
    moved = how | {"sample_weight": None if weight is None else weight[order]}
    again = interval("average_precision", y[order], s[order], **moved)
    assert (again.low, again.high) == pytest.approx((found.low, found.high), rel=1e-9, abs=1e-12)


def test_over_groups_the_end_of_a_list_in_reverse_is_not_bounded_by_the_share_that_was_drawn():
    spread, top = VarianceEstimate(1e-9, 5.0), TopRows(0.01, 0.02, 0.1, 0.11)
    ends = [
        score_interval(0.11, spread, PairShare(wide=True), (40.0, 160.0), 0.95, over, top)
        for over in (False, True)
    ]
    assert ends[0][0] == pytest.approx(0.1)
    assert ends[1][0] < ends[0][0] < 0.12 < ends[1][1]
