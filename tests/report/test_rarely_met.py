"""What a report meets rarely, each in a small case: few rows, one group, no reasons, odd cards."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from toprank.folds.choice import Candidate, PChoice
from toprank.models import ModelError
from toprank.models.rows import ScoredRows
from toprank.report.decisions import _groups, promise_results
from toprank.report.decisions_page import _share, _why_none, group_section
from toprank.report.front import _compare_lists, certainty_of_list, luck
from toprank.report.front_page import (
    _columns_section,
    _metric_words,
    _pairs_table,
    _reasons_text,
    columns_table,
    format_change,
)
from toprank.report.held_out import _explain_choice
from toprank.report.lists import _describe_cut
from toprank.report.markup import interval_text
from toprank.report.measures import compare_rankers, figures, measure_figures
from toprank.report.page import _behind
from toprank.report.shipped import _explain, fit_shipped
from toprank.report.subjects import LabelledRows, explain_rows, importances_of
from toprank.report.table import Table


@pytest.fixture(scope="module")
def rows():
    """Forty rows of one group: no interval can be had of them."""
    y = np.arange(40) % 4 == 0
    return LabelledRows(y, np.arange(40).astype(object), None, groups=np.zeros(40, dtype=np.intp))


SCORES = np.random.default_rng(0).normal(size=40)


def test_rows_of_one_group_have_figures_without_intervals(rows):
    which = figures(5, 0.1)
    found = measure_figures(which, rows.scored(SCORES))
    first = np.argsort(-SCORES, kind="stable")[:5]
    assert found["precision"]["value"] == pytest.approx(np.mean(rows.y[first]))
    assert found["precision"]["low"] is None and found["precision"]["note"]
    assert interval_text(found["precision"], "share") == "no interval: too few rows"
    lists = [SimpleNamespace(name=name, scores=s) for name, s in (("a", SCORES), ("b", -SCORES))]
    assert _compare_lists(lists, rows, which) == []
    scored = ScoredRows(None, rows.y, None, rows.groups, scores=SCORES)
    by_name = {"a": SCORES, "b": -SCORES}
    assert compare_rankers(which, scored, by_name, np.arange(40) // 4 % 2, 0.5) == []


def test_how_sure_a_list_is_depends_on_the_rows_there_are():
    def said(low, positives):
        data = {"k": 10, "positives": positives, "prevalence": 0.3}
        figure = {"precision": {"low": low, "high": 0.9}}
        return certainty_of_list(data, {"figures": figure, "all_tied": False, "tied_at_cut": 0})

    assert said(None, 100) == "There are too few rows to say how sure that is."
    assert said(0.5, 100) == "Other rows like these would give between 5 and 9 (95 times in 100)."
    assert said(0.5, 3).startswith("There are only 3 rows of that kind here")
    assert said(0.2, 100).endswith("this list may be no better than luck.")


def test_what_is_unknown_is_said_to_be():
    assert luck(None) == format_change(None, "share") == "unknown"
    assert _share([0.5, None, None]) == _reasons_text([]) == "\u2013"
    assert _metric_words("gini(k=3)") == "gini(k=3)"
    assert _metric_words("precision_at(k=0.1)") == "right among the first 10%"
    assert _metric_words("precision_at(k=7)") == "right among the first 7 rows"


def test_why_no_list_can_be_promised():
    assert _why_none({"rows": 0, "needed": None}).startswith("no list: too many others")
    assert _why_none({"rows": None, "needed": None}).startswith("nothing: no number of labelled")
    assert "about 120 labelled rows" in _why_none({"rows": None, "needed": 120})


def test_columns_and_groups_beyond_the_first_are_counted():
    named = [{"column": "age", "share": 0.75}]
    assert "and 3 other columns." in columns_table(named, 3)
    assert "and 1 other column." in columns_table(named, 1)
    assert "other column" not in columns_table(named)


def test_the_groups_that_a_page_has_no_line_for_are_counted(rows):
    city = pd.DataFrame({"city": [f"town {i}" for i in range(40)]})
    found = _groups(SCORES, rows, city, "city", 8)
    shown = len(found["lines"])
    assert shown < 40 and found["others"] == 40 - shown
    assert f"and {40 - shown} smaller groups." in group_section({"groups": found, "k": 8})
    assert "smaller groups" not in group_section({"groups": {**found, "others": 0}, "k": 8})


def grouped(n, positives, group):
    rng = np.random.default_rng(1)
    y = np.isin(np.arange(n), rng.choice(n, positives, replace=False)).astype(int)
    return pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.normal(size=n), "y": y, "g": group})


def test_no_group_of_a_report_lies_on_both_sides_of_a_fold():
    table = Table.read(grouped(120, 40, np.arange(120) // 4), "y", None, None, None, groups="g")
    for train, test in table.folds(3, 0):
        assert not set(table.rows.groups[train]) & set(table.rows.groups[test])


@pytest.mark.parametrize(
    ("positives", "group", "roles"),
    [(1, np.arange(30), {}), (2, np.arange(30), {}), (3, np.arange(30) // 3 * 0, {"groups": "g"})],
    ids=["one positive", "two positives", "one group"],
)
def test_rows_too_few_to_hold_some_out_leave_the_model_without_a_measure(positives, group, roles):
    frame = grouped(30, positives, group)
    table = Table.read(frame, "y", None, None, None, **roles)
    assert fit_shipped(frame, table, {}, 0) is None


def test_a_list_of_all_rows_has_no_row_below_its_cut():
    falling = np.array([3.0, 2.0, 2.0])
    assert _describe_cut(falling, 3) == {
        "score_at_cut": 2.0, "gap_at_cut": None, "tied_at_cut": 0
    }  # fmt: skip
    assert _describe_cut(falling, 2)["tied_at_cut"] == 2
    assert _describe_cut(falling, 1) == {
        "score_at_cut": 3.0, "gap_at_cut": 1.0, "tied_at_cut": 0
    }  # fmt: skip


def test_the_page_says_where_its_parts_are_about_other_rows():
    data = {"table": {"scored": 400}, "front": {"rows": 900}, "k": 20}
    assert "measured on 400 rows, not on the 900 above" in _behind(data)
    assert "measured on" not in _behind({**data, "front": {"rows": 400}})
    assert _behind({"table": {"scored": 400}, "k": 20}) == ""


def test_columns_that_move_together_count_as_one():
    card = {
        "importances": {"net": 0.2, "gross": 0.3, "age": 0.4},
        "together": ["odd", {"columns": ["net", "gross"], "importance": 0.5}],
    }
    assert list(importances_of(card).items()) == [("net + gross", 0.5), ("age", 0.4)]


class Mute:
    """A model that does not explain its scores."""

    def reasons(self, frame):
        raise ValueError("PushRanker does not explain its scores.")


class Talks:
    def reasons(self, frame):
        return [[len(frame)] for _ in range(len(frame))]


def test_rows_of_a_model_that_does_not_explain_have_no_reasons():
    table = pd.DataFrame({"age": range(6)})
    assert explain_rows(Mute(), table)(np.array([0, 4])) == [[], []]
    fold = np.array([0, 1, 0, 1, 2, 2])
    explain = _explain([Mute(), Talks(), Mute()], table, np.arange(6), fold)
    assert explain(np.array([0, 1, 3])) == [[], [2], [2]]


def test_of_very_many_rows_some_tell_what_can_be_promised(monkeypatch):
    rng = np.random.default_rng(1)
    y = rng.random(1200) < 0.3
    scores = rng.normal(size=1200) + 3 * y
    every = LabelledRows(y, np.arange(1200).astype(object), None)
    whole = promise_results(scores, every)
    monkeypatch.setattr("toprank.report.decisions._MOST_ROWS", 600)
    some = promise_results(scores, every)
    assert [one["wish"] for one in some] == [one["wish"] for one in whole]
    for one, other in zip(some, whole, strict=True):
        assert one["rows"] == pytest.approx(other["rows"], rel=0.25)
        assert one["share"] == pytest.approx(one["rows"] / 1200, abs=1e-3)


def test_groups_that_cannot_be_compared_are_refused_by_name(rows):
    same = pd.DataFrame({"city": ["Rome"] * 40})
    with pytest.raises(ModelError, match=r"^by_group='city': "):
        _groups(SCORES, rows, same, "city", 100)


@pytest.mark.parametrize(("gain", "clear"), [(0.2, True), (0.01, False)])
def test_a_harder_push_that_does_best_is_told_with_what_the_folds_can_tell(gain, clear):
    folds = np.array([0.5, 0.52, 0.48, 0.51, 0.49])
    better = folds + gain + 0.02 * np.array([1, -1, 0, 1, -1])
    names = (Candidate("gentle", 1.0), Candidate("hard", 16.0))
    choice = PChoice(names, np.array([folds, better]), "", "best", 0.25, 0.95)
    said = _explain_choice(choice, figures(5, 0.1)[0], None)
    assert "it does best" in said and "against 50% for gentle" in said
    assert ("cannot tell the two apart" in said) is not clear


def test_sections_of_nothing_are_left_out():
    assert _columns_section({"models": [{"columns": {"named": []}}]}) == ""
    assert _pairs_table({"comparison": []}) == ""
