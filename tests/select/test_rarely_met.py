"""What lists within limits meet rarely, each in a small case."""

import numpy as np
import pytest

from toprank.select import cut
from toprank.select.limits import _read_count, code_entities

SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])


def test_a_share_of_the_rows_is_rounded_up():
    assert cut(SCORES, 0.5).rows.tolist() == [0, 1, 2, 3]
    assert cut(SCORES, 1.0).rows.tolist() == list(range(7))


def test_a_share_of_a_group_is_rounded_so_that_it_holds():
    assert _read_count("at_least", 0.5, 5) == 3 and _read_count("at_most", 0.5, 5) == 2
    assert _read_count("at_least", 0.4, 5) == _read_count("at_most", 0.4, 5) == 2


def test_a_budget_needs_to_know_what_rows_are_worth():
    with pytest.raises(ValueError, match="give probability or calibration"):
        cut(SCORES, budget=3.0, cost=np.ones(7))


def test_the_expected_value_is_told():
    found = cut(SCORES, 2, probability=SCORES, value=np.full(7, 10.0))
    assert found.value == pytest.approx(17.0) and "Expected value 17." in str(found)


@pytest.mark.parametrize(
    "values",
    [
        np.array([10**15, 5, 10**15, -7]),
        np.array([2**63 + 1, 2**63 + 9, 2**63 + 1, 2**63 + 2], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 5, -(2**63), -(2**63) + 1]),
        np.array([-128, 127, -128, 0], dtype=np.int8),
        np.array([True, False, True, False]),
    ],
)
def test_entities_of_any_whole_numbers_are_told_apart(values):
    codes = code_entities(values)
    assert np.array_equal(codes[:, None] == codes, values[:, None] == values)
    assert codes.min() >= 0


def test_rows_that_must_and_must_not_be_on_the_list_leave_none():
    with pytest.raises(ValueError, match="row 1 must be in and row 1 must be out"):
        cut(SCORES, 3, probability=SCORES, include=[1], exclude=[1], method="exact")


def test_the_exact_method_takes_no_more_rows_than_it_can(monkeypatch):
    monkeypatch.setattr("toprank.select.limited_cut.MOST_ROWS", 6)
    with pytest.raises(ValueError, match="takes up to 6 rows, got 7"):
        cut(SCORES, 3, probability=SCORES, method="exact")
