"""How many rounds the held-out rows keep."""

import numpy as np
import pytest

from toprank.pairs import Rows
from toprank.rankers.held_out import choose_round, held_out


def test_one_standard_error_keeps_fewer_rounds():
    values = np.array([0.1, 0.5, 0.58, 0.6, 0.59])
    assert choose_round(values, 0.05, "best") == 4
    assert choose_round(values, 0.05, "one_standard_error") == 3
    assert choose_round(values, np.nan, "one_standard_error") == 4


def test_a_floor_of_rounds_is_kept_where_there_are_so_many():
    values = np.array([0.9, 0.5, 0.58, 0.6, 0.59])
    assert choose_round(values, 0.0, "best", 3) == 4
    assert choose_round(values, 0.05, "one_standard_error", 3) == 3
    assert choose_round(values, 0.0, "best", 20) == 5


def test_rows_that_cannot_be_parted_with_both_classes_on_both_sides_are_refused():
    X = np.zeros((30, 1))
    with pytest.raises(ValueError, match="got 29 negatives and 1 positives"):
        held_out(Rows(X, np.arange(30) < 1), 0.2, 0)
    groups = (np.arange(30) < 10).astype(int)
    with pytest.raises(ValueError, match="No split of the rows leaves both classes on both sides"):
        held_out(Rows(X, np.arange(30) < 3, None, groups), 0.5, 0)
    train, test = held_out(Rows(X, np.arange(30) % 3 < 1, None, groups), 0.5, 0)
    assert set(groups[train]).isdisjoint(groups[test])
