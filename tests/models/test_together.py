"""Columns that rise and fall together are explained together."""

import numpy as np
import pandas as pd
import pytest

from toprank.models import fit_table, load
from toprank.models.columns import Column
from toprank.models.together import Together, find_together, group_name, groups_on_card
from toprank.report.subjects import importances_of

RNG = np.random.default_rng(3)


def numbers(**columns):
    return [Column(name, "number") for name in columns], columns


def test_groups_are_of_columns_that_correlate_either_way():
    x, z = RNG.normal(size=(2, 500))
    found = find_together(*numbers(a=x, other=z, b=-3 * x + 0.1 * z, c=x + 2.0 * z))
    assert found == [("a", "b")]


@pytest.mark.parametrize("huge", [1.0, 1e90, 1e-90])
def test_gaps_constants_and_huge_numbers_do_no_harm(huge):
    x = RNG.normal(size=300)
    gaps = np.where(np.arange(300) % 7 == 0, np.nan, x)
    found = find_together(
        *numbers(a=huge * x, gone=np.full(300, np.nan), same=np.full(300, huge), b=huge * gaps)
    )
    assert found == [("a", "b")]


def test_columns_in_a_row_of_likeness_are_not_one_group():
    first, steps = RNG.normal(size=2000), RNG.normal(size=(4, 2000))
    chain = [first]
    for step in steps:
        chain.append(0.92 * chain[-1] + np.sqrt(1 - 0.92**2) * step)
    groups = find_together(*numbers(**{f"x{j}": one for j, one in enumerate(chain)}))
    assert max(map(len, groups)) == 2


def test_sums_and_words_are_those_of_the_groups():
    together = Together(["a", "b", "c"], [("a", "c")])
    assert together.names == ["a + c", "b"]
    np.testing.assert_array_equal(
        together.sums(np.array([[42.0, 1.0, -41.0]])), np.array([[1.0, 1.0]])
    )
    words = together.words([["1", ""], ["x", "y"], ["", ""]])
    assert [list(one) for one in words] == [["1, missing", ""], ["x", "y"]]
    assert group_name(tuple("abcdef")) == "a + b + c + d + 2 more"


@pytest.fixture(scope="module")
def income():
    n = 600
    net = RNG.normal(30, 8, n)
    frame = pd.DataFrame({"net": net, "age": RNG.normal(40, 9, n)})
    frame["gross"] = 1.3 * net + RNG.normal(0, 0.4, n)
    wish = (frame.gross - 1.28 * net) / 0.6 + (frame.age - 40) / 9 + RNG.normal(0, 0.5, n)
    frame["bought"] = (wish > np.quantile(wish, 0.8)).astype(int)
    return frame


def test_no_reason_is_one_column_against_its_twin(income, tmp_path):
    model = fit_table(income, "bought", p=2, alpha=1e-3)
    model.save(tmp_path / "m")
    alone = model.column_contributions(model.numbers(income))
    assert np.abs(alone[:, [0, 2]]).mean() > 3 * np.abs(alone[:, [0, 2]].sum(axis=1)).mean()
    for row, reasons in zip(alone, load(tmp_path / "m").reasons(income), strict=True):
        by_name = {one.column: one for one in reasons}
        assert set(by_name) == {"net + gross", "age"}
        both = by_name["net + gross"]
        assert both.contribution == pytest.approx(row[0] + row[2])
        assert len(both.value.split(", ")) == 2
    shares = importances_of(model.card)
    assert set(shares) == {"net + gross", "age"} and shares["age"] > 0


@pytest.mark.parametrize(
    "entry",
    [
        None,
        3,
        [None],
        [{"columns": "ab"}],
        [{"columns": ["a"]}],
        [{"columns": ["a", "a"]}],
        [{"columns": ["a", "z"]}],
        [{"columns": [["a"], "b"]}],
    ],
)
def test_groups_that_a_card_has_wrong_are_none(entry):
    card = {"importances": {"a": 1.0, "b": 2.0}, "together": entry}
    assert groups_on_card(card, ["a", "b", "c"]) == []
    assert importances_of(card) == {"b": 2.0, "a": 1.0}
