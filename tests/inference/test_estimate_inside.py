"""Every interval holds its estimate, at every level: what the sample shows is always possible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.inference import interval
from toprank.metrics import METRICS

SETTINGS = {
    "partial_auc": {"max_fpr": 0.2},
    "tpr_at_fpr": {"fpr": 0.1},
    "precision_at_recall": {"recall": 0.5},
    "recall_at_precision": {"precision": 0.4},
    "pnorm_risk": {"p": 4, "normalize": True},
    "margin_error": {"theta": 0.25},
}
NAMES = [name for name in METRICS if name != "ranking_margin"]


@st.composite
def lists_with_few_errors(draw):
    """Labels, and scores that are nearly in order: few rows make what a metric has of errors."""
    sizes = draw(st.tuples(st.integers(2, 30), st.integers(2, 30)))
    y = np.repeat([0, 1], sizes)
    rows = st.integers(0, len(y) - 1)
    s = np.arange(len(y)) // draw(st.sampled_from([1, 1, 3]))
    for one, other in draw(st.lists(st.tuples(rows, rows), max_size=4)):
        s[[one, other]] = s[[other, one]]
    groups = draw(st.sampled_from([None, None, np.arange(len(y)) % 7]))
    return y, s.astype(float), groups


def holds_its_estimate(found):
    slack = 1e-12 * max(1.0, abs(found.estimate))
    return found.low - slack <= found.estimate <= found.high + slack


@pytest.mark.more
@pytest.mark.parametrize("name", NAMES)
@given(rows=lists_with_few_errors(), level=st.sampled_from([0.001, 0.3, 0.6, 0.8, 0.95, 0.9999]))
def test_the_interval_holds_the_estimate_at_every_level(name, rows, level):
    y, s, groups = rows
    settings = SETTINGS.get(name, {"k": 0.3} if METRICS[name].takes_k else {})
    try:
        found = interval(name, y, s, level=level, groups=groups, n_resamples=20, **settings)
    except ValueError:
        return  # no interval, and the error says why
    assert holds_its_estimate(found), found


@pytest.mark.parametrize("p", [1.5, 4.0, 16.0])
@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_a_risk_of_one_error_lies_in_its_interval(p, method):
    y, s = np.repeat([0, 1], 20), np.arange(40.0)
    s[[19, 20]] = s[[20, 19]]
    for level in (0.05, 0.3, 0.5, 0.8, 0.95):
        how = {"level": level, "method": method, "n_resamples": 20}
        found = interval("pnorm_risk", y, s, p=p, normalize=True, **how)
        assert holds_its_estimate(found), found
        assert found.high < 0.9 or p > 4, found


def test_an_end_at_the_estimate_is_the_estimate_to_the_last_digit():
    y, s = np.repeat([0, 1], 20), np.arange(40.0)
    s[[19, 20]] = s[[20, 19]]
    found = interval("pnorm_risk", y, s, p=4, level=0.5)
    assert found.low == found.estimate == 1.0 < found.high
    for count in range(3, 30):  # a list in reverse shows no spread, and an interval of its own
        y, s = np.repeat([1, 0], [count, 9]), np.arange(count + 9.0)
        found = interval("pnorm_risk", y, s, p=16, normalize=True)
        assert found.low < found.estimate <= found.high
