"""The top of each group, each entity once: as a sort of the whole list would have it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.models import limited_top
from toprank.models.limited_top import LimitedTop

ROW = st.tuples(
    st.integers(0, 4).map(float), st.sampled_from(["a", "b", None]), st.sampled_from("xyz")
)


def by_sorting(rows, k, per_group, per_entity):
    """The places of the rows kept, group by group, and how many ties were left out."""
    order = sorted(range(len(rows)), key=lambda place: -rows[place][0])
    seen, groups = set(), {}
    for place in order:
        _, group, entity = rows[place]
        if per_entity:
            if entity != "z" and entity in seen:
                continue
            seen.add(entity)
        groups.setdefault(group if per_group else "", []).append(place)
    kept = [place for members in groups.values() for place in members[:k]]
    ties = sum(
        rows[place][0] == rows[members[k - 1]][0]
        for members in groups.values()
        for place in members[k:]
    )
    return kept, ties


@given(
    rows=st.lists(ROW, min_size=1, max_size=30),
    k=st.integers(1, 4),
    per_group=st.booleans(),
    per_entity=st.booleans(),
    size=st.integers(1, 7),
)
def test_it_keeps_what_a_sort_of_all_rows_keeps(rows, k, per_group, per_entity, size):
    top = LimitedTop(k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limited_top, "_FEWEST_SORTED", 5)
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            top.add(
                np.array([row[0] for row in part]),
                pa.table({"place": range(start, start + len(part))}),
                [row[1] for row in part] if per_group else None,
                # z stands for a missing entity here
                [None if row[2] == "z" else row[2] for row in part] if per_entity else None,
            )
        top.settle()
    kept, ties = by_sorting(rows, k, per_group, per_entity)
    assert top.places.tolist() == kept == top.rows.column("place").to_pylist()
    assert top.scores.tolist() == [rows[place][0] for place in kept]
    assert top.tied_out == ties and top.n == len(rows)
    of = [rows[place][1] if per_group else "" for place in kept]
    assert top.ranks.tolist() == [of[:place].count(of[place]) + 1 for place in range(len(of))]
    assert bool(np.any(top.tied)) == (ties > 0)


def test_the_list_was_not_cut_where_the_last_rows_had_just_been_merged(monkeypatch):
    monkeypatch.setattr(limited_top, "_FEWEST_SORTED", 5)
    top = LimitedTop(2)
    top.add(np.arange(5.0), pa.table({"place": range(5)}), None, list("abcde"))
    top.settle()
    assert top.places.tolist() == [4, 3]
