"""How many rounds the held-out rows keep."""

import numpy as np

from toprank.rankers.held_out import choose_round


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
