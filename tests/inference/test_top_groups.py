"""Groups in the first k: counts against a loop, intervals that cover, tests of their level."""

import numpy as np
import pytest

from toprank.inference import top_groups
from toprank.metrics import precision_at, recall_at


def rows(n=600, seed=0, lead=0.0):
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "west"], n, p=[0.2, 0.5, 0.3])
    y = rng.random(n) < 0.2
    return y, rng.normal(size=n) + y + lead * (region == "north"), region


def test_counts_are_those_of_a_loop_over_the_first_rows():
    y, s, region = rows()
    found = top_groups(y, s, region, 100)
    first = np.argsort(-s)[:100]
    assert [one.name for one in found.groups] == ["south", "west", "north"]
    for one in found.groups:
        mine = region[first] == one.name
        assert one.listed == mine.sum() and one.found == y[first][mine].sum()
        assert one.rows == np.sum(region == one.name)
        assert one.selected[0] == pytest.approx(mine.sum() / one.rows)
        assert one.precision[0] == pytest.approx(y[first][mine].mean())
        assert one.recall[0] == pytest.approx(one.found / np.sum(y & (region == one.name)))
        for estimate, low, high in (one.selected, one.precision, one.recall):
            assert 0 <= low <= estimate <= high <= 1
    listed = sum(one.listed for one in found.groups)
    assert listed == 100 and sum(one.share_of_list for one in found.groups) == pytest.approx(1)
    precision = sum(one.found for one in found.groups) / listed
    assert precision == pytest.approx(precision_at(y, s, 100))
    assert sum(one.found for one in found.groups) / y.sum() == pytest.approx(recall_at(y, s, 100))
    assert "same in all? p" in str(found) and "<table>" in found._repr_html_()
    printed = str(found).splitlines()[1:]
    assert len({len(line) for line in printed}) == 1  # one right edge for every line
    ends = [
        line.index(word) + len(word) for line, word in zip(printed, ("rows", "287"), strict=False)
    ]
    assert ends[0] == ends[1]


def test_rows_that_tie_at_the_cut_count_by_their_share_whatever_their_order():
    y, _, region = rows(90)
    s = np.repeat([3.0, 2.0, 1.0], 30)
    found = top_groups(y, s, region, 45)
    for one in found.groups:
        mine = region == one.name
        assert one.listed == pytest.approx(mine[:30].sum() + mine[30:60].sum() / 2)
    order = np.random.default_rng(1).permutation(90)
    again = top_groups(y[order], s[order], region[order], 45)
    assert again.as_dict() == found.as_dict()
    assert top_groups(y, s, region, 0.5).groups == found.groups


def test_a_group_that_the_scores_favour_is_seen():
    y, s, region = rows(3000, lead=1.0)
    found = top_groups(y, s, region, 300)
    assert found.p_values["selected"] < 0.001 and found.adjusted_p_values["selected"] < 0.003
    assert found.adjusted_p_values["precision"] >= found.p_values["precision"]
    one = {group.name: group for group in found.groups}["north"]
    assert one.share_of_list > 1.5 * one.share_of_rows


@pytest.mark.more
def test_tests_keep_their_level_and_intervals_cover():
    draws = 300
    small = {"selected": 0, "precision": 0, "recall": 0}
    missed = 0
    for seed in range(draws):
        y, s, region = rows(400, seed)
        found = top_groups(y, s, region, 80, n_resamples=199)
        for name in small:
            small[name] += found.p_values[name] <= 0.05
        # the truth, from the same score of the cut in a large table
        cut_off = np.sort(s)[-80]
        big_y, big_s, big_region = rows(20_000, seed + 10_000)
        mine = (big_s >= cut_off) & (big_region == "south")
        south = {group.name: group for group in found.groups}["south"]
        missed += not south.precision[1] <= big_y[mine].mean() <= south.precision[2]
    assert all(count / draws < 0.085 for count in small.values()), small
    assert missed / draws < 0.08


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"groups": ["one"] * 600}, "1 different values, expected from 2"),
        ({"groups": ["a", "b"]}, "groups has 2 entries"),
        ({"groups": None}, "groups is None"),
        ({"k": 601}, "k=601 is not a count"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, said):
    y, s, region = rows()
    with pytest.raises(ValueError, match=said):
        top_groups(**{"y": y, "s": s, "groups": region, "k": 50, **change})


def test_labels_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="y has 3 entries, expected one per row: 4"):
        top_groups([0, 1, 0], [1.0, 2.0, 3.0, 4.0], groups=["a", "b", "a", "b"], k=2)
