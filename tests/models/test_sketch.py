"""Rows that a model has learned from are recognised, and others are not."""

import numpy as np
import pytest

from toprank.models.sketch import RowSketch, row_checksums


def columns(n, seed):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + rng.integers(0, 1000, n)
    words = rng.choice(["Rome", "Oslo", ""], n).astype(object)
    return {"x": rng.normal(size=n), "day": days.astype("datetime64[us]"), "city": words}


def taken(table, rows):
    return {name: values[rows] for name, values in table.items()}


def test_the_checksum_of_a_row_does_not_depend_on_its_place_or_the_order_of_columns():
    table = columns(200, 0)
    order = np.random.default_rng(1).permutation(200)
    turned = dict(reversed(taken(table, order).items()))
    np.testing.assert_array_equal(row_checksums(turned), row_checksums(table)[order])
    assert len(np.unique(row_checksums(table))) == 200


def test_one_value_more_or_less_is_another_row():
    table = columns(50, 0)
    for name, value in (("x", 7.0), ("city", "Bern"), ("day", np.datetime64("1999-01-01"))):
        changed = {**table, name: table[name].copy()}
        changed[name][3] = value
        differ = row_checksums(changed) != row_checksums(table)
        assert differ[3] and differ.sum() == 1


@pytest.mark.parametrize("n", [300, 20_000])
def test_known_rows_are_found_and_new_ones_are_not(n):
    table = columns(n, 0)
    sketch = RowSketch.from_dict(RowSketch.of(table).as_dict())
    looked_up, found = sketch.look_up(taken(table, np.arange(0, n, 2)))
    assert looked_up == found > 100
    looked_up, found = sketch.look_up(columns(n, 1))
    assert found == 0 < looked_up
    assert len(RowSketch.of(table).as_dict()["smallest"]) < 50_000


def test_zeros_and_gaps_are_one_value_each():
    first = {"x": np.array([0.0, np.nan])}
    again = {"x": np.array([-0.0, -np.nan])}
    np.testing.assert_array_equal(row_checksums(first), row_checksums(again))


@pytest.mark.parametrize(
    "given", [None, {}, {"smallest": "%", "whole": True, "twins": 0}, {"smallest": 3}, "text"]
)
def test_a_card_without_a_usable_sketch_has_none(given):
    assert RowSketch.from_dict(given) is None
