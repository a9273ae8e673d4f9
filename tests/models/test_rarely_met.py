"""What models meet rarely, each in a small case: odd trees, cards, groups, columns and labels."""

import base64
import struct
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from toprank.models import DriftWatch, ModelError, fit_table, frames
from toprank.models.columns import Column, Unreadable, as_dates, as_numbers
from toprank.models.kinds import ColumnSummary
from toprank.models.limited_top import LimitedTop
from toprank.models.model import column_texts
from toprank.models.moments import Moments
from toprank.models.read_card import (
    MadeWith,
    _is_finite_number,
    describe_ranker,
    installed_version,
    name_damage,
)
from toprank.models.rows import read_propensity
from toprank.models.sketch import RowSketch, SeenRows
from toprank.models.together import find_together
from toprank.models.top_of_list import RunningTop
from toprank.models.unseen import spread_between_folds, unseen_scores
from toprank.models.wishes import find_ends
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


def test_lengths_of_time_are_numbers_of_seconds():
    assert as_numbers(np.array([90, "NaT"], "m8[m]")).tolist() == pytest.approx(
        [5400.0, np.nan], nan_ok=True
    )


def test_numbers_are_no_dates_unless_all_are_missing():
    with pytest.raises(Unreadable, match="expected dates, got numbers"):
        as_dates(np.array([20240501.0, np.nan]))
    assert np.all(np.isnat(as_dates(np.array([np.nan, np.nan]))))


def test_dates_beyond_the_nanoseconds_of_pandas_are_read_in_utc():
    late = datetime(9999, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    found = as_dates(np.array([late, None], dtype=object))
    assert found[0] == np.datetime64("9998-12-31T22:00") and np.isnat(found[1])


def test_dates_are_shown_without_a_time_of_midnight():
    dates = np.array(["2024-05-01", "2024-05-01T12:30", "NaT"], "M8[s]")
    assert column_texts(dates) == ["2024-05-01", "2024-05-01 12:30:00", ""]


def test_columns_of_any_library_are_read_as_numpy_has_them():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(
        {
            "price": arrow.array([Decimal("1.25"), None], arrow.decimal128(5, 2)),
            "at": arrow.array([3_600_000_000_001, None], arrow.time64("ns")),
            "word": arrow.array(["a", None]).dictionary_encode(),
        }
    )
    assert frames.column(table, "price")[0] == 1.25
    assert frames.column(table, "at")[0].hour == 1
    assert frames.column(table, "word")[0] == "a"
    zoned = pd.DataFrame({"when": pd.to_datetime(["2024-01-01 12:00+02:00"])})
    assert frames.column(zoned, "when")[0] == np.datetime64("2024-01-01T10:00")


def test_a_column_is_replaced_by_words_in_every_library():
    words = np.array(["x", "y"], dtype=object)
    plain = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    found = [frames.replace_column(plain, "a", words)]
    arrow = pytest.importorskip("pyarrow")
    found.append(frames.replace_column(arrow.Table.from_pandas(plain), "a", words))
    polars = pytest.importorskip("polars")
    found.append(frames.replace_column(polars.DataFrame({"a": [1, 2], "b": [3, 4]}), "a", words))
    for table in found:
        assert frames.names_of(table) == ["a", "b"]
        assert frames.column(table, "a").tolist() == ["x", "y"]
        assert frames.column(table, "b").tolist() == [3, 4]
    assert plain.a.tolist() == [1, 2]


def test_the_ends_of_a_column_are_those_of_its_distinct_numbers_where_most_are_one():
    assert find_ends(np.array([np.nan, np.nan])) is None
    rare = np.r_[np.zeros(10_000), 1.0, 2.0]
    low, high = find_ends(rare)
    assert 0 <= low < 0.1 and 1.9 < high <= 2


def test_a_column_without_numbers_has_no_moments():
    none = Moments.of(np.array([np.nan, np.nan]))
    assert (none.rows, none.missing) == (2, 2)
    assert np.isnan(none.mean) and np.isnan(none.variance)
    both = none.merge(Moments.of(np.array([1.0, 3.0])))
    assert (both.rows, both.missing, both.mean, both.variance) == (4, 2, 2.0, 1.0)


@pytest.mark.parametrize("seen", [[0.5, 0.0], [0.5, 1.5], [0.5, np.nan]])
def test_chances_that_a_label_was_seen_are_above_zero_and_at_most_one(seen):
    with pytest.raises(ModelError, match=r"propensity='seen': expected .* 1 row holds"):
        read_propensity(pd.DataFrame({"seen": seen}), "seen")
    kept = read_propensity(pd.DataFrame({"seen": [0.5, 1.0]}), "seen")
    assert kept.tolist() == [0.5, 1.0]


def test_what_a_card_says_is_told_in_users_words():
    assert describe_ranker({"ranker": "PushTrees", "parameters": {"p": None}}) == (
        "boosted trees for the two classes"
    )
    assert describe_ranker({"ranker": "RankBoost", "parameters": "odd"}) == (
        "boosted stumps (RankBoost)"
    )
    assert describe_ranker({"ranker": "Mine"}) == "Mine"
    assert installed_version("a-library-that-nobody-has") is None
    assert installed_version("numpy") == np.__version__


def test_numbers_on_a_card_may_have_any_length():
    assert [_is_finite_number(one) for one in (10**400, True, "1", np.inf, 3, 0.5)] == [
        *(False, False, False, False, True, True)
    ]


def test_a_file_that_takes_too_much_memory_is_refused():
    with pytest.raises(ModelError, match="does not fit into memory"), name_damage(MadeWith()):
        raise MemoryError


def test_rows_of_the_last_score_are_tied_only_with_rows_left_out():
    arrow = pytest.importorskip("pyarrow")
    top = RunningTop(2)
    top.add(np.array([1.0, 3.0, 1.0]), arrow.table({"name": ["a", "b", "c"]}))
    top.settle()
    assert top.ranks.tolist() == [1, 2] and top.tied.tolist() == [False, True]
    whole = RunningTop(3)
    whole.add(np.array([1.0, 3.0, 1.0]), arrow.table({"name": ["a", "b", "c"]}))
    whole.settle()
    assert whole.tied.tolist() == [False, False, False]


def test_a_share_of_hidden_positives_needs_rows_without_a_label(table):
    with pytest.raises(ModelError, match="give unlabelled="):
        fit_table(table, "bought", id="customer", model="pnorm", p=4, hidden=0.1)


def test_tidy_words_cannot_be_written_as_sql(table):
    spelt = table.assign(city=table.city.str.upper().where(table.index % 2 == 0, table.city))
    model = fit_table(spelt, "bought", id="customer", model="pnorm", p=4, tidy=["city"])
    with pytest.raises(ModelError, match=r"reads 'city' as tidy words .* cannot be written as SQL"):
        model.to_sql("customers")


class Rows:
    """Labels and groups, as folds see training rows."""

    def __init__(self, y, groups):
        self.y, self.groups = np.asarray(y, dtype=bool), np.asarray(groups)

    def __len__(self):
        return len(self.y)


def test_positives_of_one_group_leave_no_fold_to_hold_out():
    y = np.arange(12) < 4
    rows, own = Rows(y, np.where(y, 0, 1 + np.arange(12) % 3)), np.arange(12.0)
    held_out = (np.arange(6), np.arange(6, 12))
    found = unseen_scores(rows, own, lambda part: pytest.fail("no part is fitted"), held_out, 0)
    assert found.source == "training" and found.scores is own


def test_scores_that_are_all_alike_do_not_differ_between_folds():
    assert spread_between_folds(np.ones(60), np.arange(60) % 5) == 0.0
