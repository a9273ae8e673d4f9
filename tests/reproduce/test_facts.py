"""The papers' numbers that the package carries are those that were checked."""

import json

import numpy as np
import pytest

from toprank.reproduce import facts

TABLES = {"magic": facts.TABLE_3, "ionosphere": facts.TABLE_4, "housing": facts.TABLE_5}


@pytest.fixture(scope="module")
def golden(shared):
    return lambda name: json.loads((shared / "golden" / f"{name}.json").read_text())


def test_table_1_is_the_checked_one(golden):
    checked = golden("pnorm_push_table1")
    assert {k: list(v) for k, v in facts.TABLE_1_LABELS.items()} == checked["y_by_ascending_score"]
    ours = {k: {loss: float(v) for loss, v in row.items()} for k, row in facts.TABLE_1.items()}
    assert ours == checked["values"]
    assert checked["score_scale"] == facts.SCORE_SCALE


def test_table_2_is_the_checked_one(golden):
    checked = golden("pnorm_push_table2")
    assert list(facts.TABLE_2_LABELS) == checked["y"]
    for loss, rows in facts.TABLE_2.items():
        theirs = [checked["values_f1_f2"][loss][str(p)] for p in range(1, 11)]
        assert [[float(v) for v in row] for row in rows] == pytest.approx(np.array(theirs))
        said = checked["preferred"][loss]
        assert said.endswith(f"f1 for p>={facts.TABLE_2_REVERSAL[loss]}")


@pytest.mark.parametrize("name", TABLES)
def test_tables_3_to_5_are_the_checked_ones(golden, name):
    checked = golden("pnorm_push_tables3to5")
    assert {k: list(v) for k, v in TABLES[name].items()} == checked[name]
    ours = [column.removeprefix("p = ") for column in facts.COLUMNS]
    assert ours == checked["columns"]


def test_the_list_of_figure_1_is_the_checked_one(golden):
    checked = golden("pair_contributions_list")
    assert list(facts.FIGURE_1_LABELS) == checked["y"]
    assert list(range(20, 0, -1)) == checked["f_times_20"]


def test_the_8x8_matrix_is_the_checked_one(golden):
    checked = golden("margin_8x8")
    assert [list(row) for row in facts.MARGIN_8X8] == checked["M"]
    assert checked["max_margin"] == facts.LARGEST_MARGIN_8X8
    assert checked["adaboost_margin"] == pytest.approx(facts.RANKBOOST_MARGIN_8X8)


def test_the_best_columns_are_those_of_the_printed_numbers():
    smaller_is_better = ("R2", "R4", "R8", "R16")
    for table, best in (
        (facts.TABLE_3, facts.BEST_3),
        (facts.TABLE_4, facts.BEST_4),
        (facts.TABLE_5, facts.BEST_5),
    ):
        for measure, row in table.items():
            at = np.argmin(row) if measure in smaller_is_better else np.argmax(row)
            assert facts.COLUMNS[at] in facts.BEST_COLUMNS[best[measure]], measure
