"""Relations between rows: which pairs they hold, and what is refused where there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.pairs import Explicit, Graded, Pairs, relation_of


@st.composite
def graded_rows(draw):
    """(labels, groups or None, weight): few labels, few groups, some rows absent."""
    n = draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels = rng.integers(0, draw(st.sampled_from([2, 3, 20])), n)
    groups = rng.integers(0, 4, n) if draw(st.booleans()) else None
    return labels, groups, rng.integers(0, 3, n).astype(float), rng


def pairs_of(labels, groups, weight):
    """The definition: a larger label wins within a group, and absent rows are in no pair."""
    groups = np.zeros(len(labels)) if groups is None else groups
    wins = (labels[:, None] > labels[None, :]) & (groups[:, None] == groups[None, :])
    return np.argwhere(wins & (weight[:, None] > 0) & (weight[None, :] > 0))


def rows_of(relation):
    inner, outer = relation.pairs_at(np.arange(relation.n_pairs))
    return sorted(zip(relation.inner[inner].tolist(), relation.outer[outer].tolist(), strict=True))


@given(graded_rows())
def test_labels_relate_the_rows_that_the_definition_says(table):
    labels, groups, weight, _ = table
    expected = pairs_of(labels, groups, weight)
    if len(expected) == 0:
        with pytest.raises(ValueError, match="There is no pair to rank"):
            relation_of(labels, groups, weight=weight)
        return
    relation = relation_of(labels, groups, weight=weight)
    assert isinstance(relation, Graded)
    assert rows_of(relation) == sorted(map(tuple, expected.tolist()))


@given(graded_rows())
def test_listed_pairs_are_kept_where_both_rows_are_present(table):
    labels, _, weight, rng = table
    listed = rng.integers(0, len(labels), (20, 2))
    listed = listed[listed[:, 0] != listed[:, 1]]
    expected = listed[(weight[listed] > 0).all(axis=1)]
    if len(expected) == 0:
        with pytest.raises(ValueError, match="no pair to rank"):
            relation_of(None, pairs=Pairs(listed, len(labels)), weight=weight)
        return
    relation = relation_of(None, pairs=Pairs(listed, len(labels)), weight=weight)
    assert isinstance(relation, Explicit)
    assert rows_of(relation) == sorted(map(tuple, expected.tolist()))
    assert np.all(np.diff(relation.outer_rows) >= 0)


@given(graded_rows(), st.booleans())
def test_the_smallest_gap_is_that_of_the_list_of_pairs(table, tied):
    labels, groups, weight, rng = table
    pairs = pairs_of(labels, groups, weight)
    if len(pairs) == 0:
        return
    first, second = rng.standard_normal((2, len(labels)))
    if tied:
        first, second = np.round(first), np.round(second)
    expected = np.min(first[pairs[:, 0]] - second[pairs[:, 1]])
    for relation in (relation_of(labels, groups, weight=weight), Explicit(*pairs.T)):
        assert relation.smallest_gap(first, second) == expected
        assert relation.reverse().smallest_gap(-second, -first) == expected


@pytest.mark.parametrize(
    ("labels", "groups", "words"),
    [
        ([1.0], None, "n_samples = 1"),
        ([2.0, 2.0], None, "every label in y is 2"),
        ([2.0, 2.0], [0, 1], "every label in y is 2"),
        ([1.0, 2.0], [0, 1], "in every group all labels are equal"),
    ],
)
def test_why_there_is_no_pair_is_said(labels, groups, words):
    with pytest.raises(ValueError, match=words):
        relation_of(np.array(labels), None if groups is None else np.array(groups))


def test_listed_pairs_name_their_winners_and_losers_and_refuse_rows_that_are_not_there():
    pairs = Pairs([[0, 1], [2, 1]], 3)
    assert pairs.winners.tolist() == [0, 2] and pairs.losers.tolist() == [1, 1]
    assert pairs != [[0, 1], [2, 1]] and pairs == Pairs([[0, 1], [2, 1]], 3)
    with pytest.raises(ValueError, match=r"rows must lie in 0, \.\.\., 2"):
        pairs.take([0, 5])


@pytest.mark.parametrize("weighted", [False, True])
def test_listed_pairs_are_thinned_with_their_weights(weighted):
    rng = np.random.default_rng(0)
    inner, outer = rng.integers(0, 200, 400), rng.integers(200, 400, 400)
    weight = rng.random(400) if weighted else None
    whole = Explicit(inner, outer, weight)
    rows, thin = whole.thin(50)
    assert thin.n_pairs <= 25 + 1 and len(rows) <= 2 * thin.n_pairs
    weights = whole.pair_weight if weighted else np.zeros(400)
    listed = set(zip(whole.inner_rows, whole.outer_rows, weights, strict=True))
    kept = thin.pair_weight if weighted else np.zeros(thin.n_pairs)
    assert set(zip(rows[thin.inner_rows], rows[thin.outer_rows], kept, strict=True)) <= listed
