"""Rows that are rarely drawn and far from their place: the end of an interval at more errors."""

import numpy as np
import pytest

from toprank.inference import interval
from toprank.inference.rare_errors import allow_for_rare_rows, most_errors
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


@pytest.mark.more
@pytest.mark.parametrize(
    "setting", [ScoreSetting(40, 0.5, "near-perfect"), ScoreSetting(40, 0.5, "t3")]
)
def test_a_p_norm_risk_made_by_rare_rows_is_covered(setting):
    found = coverage("pnorm_risk", setting, draws=300, p=4, normalize=True)
    assert found.covered >= 0.935 - 3 * 0.0126, found  # 0.88 and 0.89 before
