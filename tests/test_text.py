"""Results as JSON has them."""

import json
from decimal import Decimal

import numpy as np
import pytest

from toprank._text import counted, plain


def test_json_has_neither_infinity_nor_nan():
    given = {"a": [float("inf"), -float("inf"), float("nan")], "b": (1, True, None, "x")}
    assert plain(given) == {"a": ["inf", "-inf", None], "b": [1, True, None, "x"]}


def test_numbers_are_rounded_and_what_is_no_number_is_none():
    given = [1 / 3, float("nan"), float("inf"), True, 2]
    assert plain(given, digits=6, infinities=False) == [0.333333, None, None, True, 2]


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2026-01-31"), Decimal("1.5"), {1: {2, 3}}, np.array([[1, np.inf]]), object],
)
def test_any_value_can_be_written_as_json(value):
    json.dumps(plain(value), allow_nan=False)


def test_one_of_a_thing_is_not_written_as_many():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert counted(1, "category", "categories") == "1 category"
