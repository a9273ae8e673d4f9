"""Intervals of the ranking risk of real-valued labels: few rows, ties, long tails."""

import numpy as np
import pytest

from toprank.inference import compare, interval
from toprank.metrics import ranking_risk


def gross_errors(rng, n):
    """Nearly right scores, but one row in twenty is put anywhere."""
    y = rng.normal(size=n)
    return y, np.where(rng.random(n) < 0.05, rng.normal(size=n), y + 0.05 * rng.normal(size=n))


def long_tails(rng, n):
    y = rng.normal(size=n)
    return y, 6 * y + 0.5 * rng.standard_t(2, size=n)


def five_levels(rng, n):
    y = rng.integers(0, 5, n).astype(float)
    return y, np.round(y + 0.35 * rng.normal(size=n))


def share_covered(law, n, draws, method="auto"):
    truth = ranking_risk(*law(np.random.default_rng(1), 200_000))
    rng = np.random.default_rng(5)
    found = [interval("ranking_risk", *law(rng, n), method=method) for _ in range(draws)]
    return np.mean([one.low <= truth <= one.high for one in found])


@pytest.mark.more
def test_a_row_that_is_grossly_misplaced_was_possible_before_it_was_seen():
    assert share_covered(gross_errors, 30, 60, "projection") < 0.87
    assert share_covered(gross_errors, 30, 60) > 0.9


@pytest.mark.more
@pytest.mark.parametrize("n", [8, 15, 30, 60])
@pytest.mark.parametrize("law", [long_tails, five_levels])
def test_it_covers_with_few_rows(law, n):
    assert share_covered(law, n, 400) > 0.92  # 95% less three standard errors


def few_gross_errors(rng, n):
    """Right scores, but one row in a hundred is put anywhere: a sample of 200 may hold none."""
    y = rng.normal(size=n)
    return y, np.where(rng.random(n) < 0.01, rng.normal(size=n), y + 0.02 * rng.normal(size=n))


@pytest.mark.more
@pytest.mark.parametrize(("law", "n"), [(gross_errors, 60), (few_gross_errors, 200)])
def test_it_covers_where_a_sample_may_hold_no_gross_error_yet(law, n):
    assert share_covered(law, n, 400) > 0.92  # 0.85 and 0.79 before


def test_the_most_errors_are_those_of_one_more_misplaced_row():
    y = np.arange(200.0)
    s = y.copy()
    s[[10, 11]] = y[[11, 10]]
    found = interval("ranking_risk", y, s)
    # no row is far from its place: up to 3.7 may be unseen, at 1/300 each
    assert 3.6 / 300 < found.high < 4.6 / 300
    turned = interval("ranking_risk", y, -s)
    assert (turned.low, turned.high) == pytest.approx((1 - found.high, 1 - found.low))


def test_it_moves_without_a_jump_from_a_perfect_ranking():
    y = np.arange(40.0)
    swapped = y.copy()
    swapped[[10, 11]] = y[[11, 10]]
    perfect, nearly = (interval("ranking_risk", y, s) for s in (y, swapped))
    assert perfect.low == 0 and nearly.low < 0.001
    assert perfect.high == pytest.approx(nearly.high, abs=0.01)
    assert "says the same" in perfect.note


def test_a_note_says_where_few_rows_carry_the_error():
    y = np.arange(60.0)
    s = y.copy()
    s[3] = 100.0
    assert "A few rows carry most of the error" in interval("ranking_risk", y, s).note
    rng = np.random.default_rng(0)
    assert not interval("ranking_risk", y, y + 10 * rng.normal(size=60)).note


def test_the_interval_on_the_logit_scale_is_kept():
    rng = np.random.default_rng(0)
    y = rng.normal(size=80)
    score, old = (
        interval("ranking_risk", y, y + rng.normal(size=80), method=m)
        for m in ("score", "projection")
    )
    assert old.method == "Hoeffding projection, logit scale"
    assert score.method == "score interval, Hoeffding projection"
    with pytest.raises(ValueError, match=r"it has \['score', 'projection'\]"):
        interval("ranking_risk", y, y, method="exact")


def test_rankers_that_order_alike_differ_by_what_the_rows_leave_possible():
    y = np.random.default_rng(3).normal(size=40)
    s, groups = y**3 + np.cos(y), np.arange(40) // 4
    rows, whole = (compare("ranking_risk", y, s, 2 * s, groups=one) for one in (None, groups))
    for found in (rows, whole):
        assert (found.difference, found.p_value) == (0.0, 1.0) and found.low == -found.high
        assert "No row tells the rankers apart" in found.note
    assert 0 < rows.high < whole.high < 1  # groups are fewer than rows
    with pytest.raises(ValueError, match="Unknown weights 'many'"):
        compare("ranking_risk", y, s, -s, weights="many")


@pytest.mark.more
def test_groups_cover_where_rows_of_one_are_alike():
    rng = np.random.default_rng(2)

    def draw(groups, size):
        common = rng.normal(size=(groups, 1))
        y = rng.normal(size=(groups, size))
        s = y + common + rng.normal(size=(groups, size))
        return y.ravel(), s.ravel(), np.repeat(np.arange(groups), size)

    y, s, _ = draw(200_000, 1)
    truth = ranking_risk(y, s)
    covered = 0
    for _ in range(300):
        y, s, groups = draw(15, 8)
        found = interval("ranking_risk", y, s, groups=groups)
        covered += found.low <= truth <= found.high
    assert covered > 0.92 * 300


@pytest.mark.parametrize("scores", [[1, 0, 2, 3, 4], [4, 0, 1, 2, 3]])
def test_a_share_that_vanishes_in_rounding_lies_in_its_interval(scores):
    weight = np.array([1e-98, 1, 1, 1, 1])
    found = interval("ranking_risk", np.arange(5.0), np.array(scores, float), sample_weight=weight)
    assert 0 <= found.low <= found.estimate <= found.high
