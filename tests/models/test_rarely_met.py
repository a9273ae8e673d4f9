"""What models meet rarely, each in a small case: odd trees, cards, groups, columns and labels."""

import base64
import struct

import numpy as np
import pandas as pd
import pytest

from toprank.models import DriftWatch, ModelError, fit_table
from toprank.models.columns import Column
from toprank.models.kinds import ColumnSummary
from toprank.models.limited_top import LimitedTop
from toprank.models.sketch import RowSketch, SeenRows
from toprank.models.together import find_together
from toprank.models.xgboost_files import _MOST_NESTED, check_xgboost


def length(n):
    return b"L" + struct.pack(">q", n)


def key(word):
    return length(len(word)) + word


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"T", "not a collection of named parts"),
        ((b"[#" + length(1)) * (_MOST_NESTED + 2) + b"T", "too deep"),
        (b"{" + key(b"a") + b"T" + key(b"a") + b"F}", "'a' occurs twice"),
        (b"{" + key(b"learner") + b"Z}x", "something follows"),
    ],
)
def test_trees_of_xgboost_that_are_damaged_are_refused(data, said):
    with pytest.raises(ModelError, match=said):
        check_xgboost(data)


def test_a_sketch_whose_checksums_do_not_rise_is_not_used(fitted):
    falling = base64.b64encode(np.array([3, 2], dtype="<u8").tobytes()).decode()
    assert RowSketch.from_dict({"smallest": falling, "whole": True, "twins": 0.0}) is None
    assert RowSketch.from_dict("no sketch") is None


def test_a_model_without_a_sketch_says_nothing_of_rows_it_has_seen(fitted, table):
    model = fitted("pnorm")
    training = {name: part for name, part in model.card["training"].items() if name != "sketch"}
    seen = SeenRows(model.with_card({**model.card, "training": training}))
    seen.add(table)
    assert seen.share == 0.0 and seen.note == ""


def test_a_list_of_no_rows_is_empty():
    top = LimitedTop(3)
    top.settle()
    assert len(top.scores) == 0 and top.tied_out == 0


def test_columns_of_many_rows_are_compared_on_some_of_them():
    x = np.random.default_rng(0).normal(size=50_000)
    columns = [Column(name, "number") for name in ("net", "gross", "age")]
    found = find_together(columns, {"net": x, "gross": 1.2 * x, "age": x**2})
    assert found == [("net", "gross")]


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (np.array([1, 2]), np.array([0.5, 3.0]), "number"),
        (np.array(["2025-01-01"], "M8[D]"), np.array(["2025-01-02"], "M8[us]"), "date"),
    ],
)
def test_parts_of_a_column_of_different_types_are_of_one_kind(left, right, kind):
    both = ColumnSummary.of(left).merge(ColumnSummary.of(right))
    assert both.find().kind == kind
    assert np.dtype(both.dtype) == np.result_type(left, right)


def test_the_label_that_is_asked_for_is_tidied_as_the_column_is(table):
    spelt = table.assign(bought=[" Yes" if one == "yes" else one for one in table.bought])
    spelt.loc[spelt.index[:40], "bought"] = table.bought[:40]
    model = fit_table(spelt, "bought", id="customer", model="pnorm", p=4, tidy=["bought"],
                      positive="YES ")  # fmt: skip
    assert model.target.positive == "yes" and model.target.negative == ("no",)


def test_a_column_that_is_mostly_one_number_is_clipped_by_its_distinct_ones(table):
    rng = np.random.default_rng(0)
    rare = np.zeros(len(table))
    rare[:2] = rng.uniform(1, 2, 2)
    model = fit_table(table.assign(rare=rare), "bought", id="customer", model="pnorm", p=4,
                      clip=["rare"])  # fmt: skip
    (column,) = (one for one in model.schema.columns if one.name == "rare")
    assert column.clip is not None and column.clip[0] < column.clip[1]


@pytest.mark.more
def test_positives_of_a_single_group_leave_the_training_scores_as_the_reference(table):
    whose = np.where(table.bought == "yes", "one", [f"g{i % 9}" for i in range(len(table))])
    model = fit_table(table.assign(whose=whose), "bought", id="customer", model="pnorm", p=4,
                      groups="whose")  # fmt: skip
    assert model.card["reference"]["scores_from"] == "training"
    assert np.all(np.isfinite(model.score(table)))


@pytest.mark.more
def test_the_power_of_boosted_stumps_is_chosen_by_folds(table):
    model = fit_table(table, "bought", id="customer", model="rankboost")
    assert model.card["p"] in (1.0, 2.0, 4.0, 16.0)
    assert model.ranker.p == model.card["p"]


def test_a_drift_is_told_as_a_dictionary(fitted, table):
    model = fitted("pnorm")
    watch = DriftWatch(model)
    watch.add(table, model.score(table))
    found = watch.scores()
    assert pd.Series(found.as_dict()).to_dict() == vars(found)
