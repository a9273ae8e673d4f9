"""Two lists against each other: overlap against its definition, and rows that stay."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.select import compare_lists, cut, keep_rows
from toprank.select.difference import _overlap_of_counts


def overlap_of(old, new, p, depth):
    """(1 - p) sum of p^(d-1) times the agreement at depth d, as it is defined."""
    return sum(
        (1 - p) * p ** (d - 1) * len(set(old[:d]) & set(new[:d])) / d for d in range(1, depth + 1)
    )


@given(st.permutations(range(7)), st.permutations(range(2, 9)), st.floats(0.3, 0.95))
def test_the_overlap_is_the_one_of_the_definition_and_its_ends_hold_for_every_tail(old, new, p):
    found = compare_lists(old[:4], new[:4], persistence=p)
    deep = 400
    same = [f"same {i}" for i in range(deep)]
    apart = [[f"{side} {i}" for i in range(deep)] for side in ("old", "new")]
    nothing = overlap_of(old[:4] + apart[0], new[:4] + apart[1], p, deep)
    assert found.overlap_low == pytest.approx(nothing, abs=1e-6)
    # the rows that the other list lacks come next, then the same rows
    missing = [x for x in new[:4] if x not in old[:4]], [x for x in old[:4] if x not in new[:4]]
    best = overlap_of(old[:4] + missing[0] + same, new[:4] + missing[1] + same, p, deep)
    assert found.overlap_high == pytest.approx(best, abs=1e-6)
    assert found.overlap_low - 1e-9 <= found.overlap <= found.overlap_high + 1e-9


def test_equal_lists_overlap_wholly_and_strangers_not_at_all():
    names = list("abcdef")
    same = compare_lists(names, names)
    assert same.overlap == pytest.approx(1) and same.overlap_high == pytest.approx(1)
    assert same.turnover == 0 and not same.entered and same.stayed == names
    apart = compare_lists(names, list("uvwxyz"), k=3)
    assert apart.overlap == 0 and apart.turnover == 1 and apart.left == ["a", "b", "c"]
    assert "entered: u, v, w" in str(apart) and "<table>" in apart._repr_html_()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"old": [], "new": [1]}, "old is empty"),
        ({"old": ["a", "a"], "new": ["b"]}, "holds 'a' twice"),
        ({"old": [1], "new": [2], "k": 0}, "k=0: expected a number of rows"),
        ({"old": [1], "new": [2], "persistence": 1.0}, "expected a probability between 0 and 1"),
    ],
)
def test_lists_that_cannot_be_compared_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        compare_lists(**given)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=8), st.data())
def test_a_row_leaves_only_for_a_newcomer_that_is_ahead_by_more_than_the_lead(scores, data):
    n = len(scores)
    k = data.draw(st.integers(1, n))
    before = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
    noise = data.draw(st.sampled_from([0.0, 0.4, 1.0, 5.0]))
    found = keep_rows(np.array(scores, float), k, sorted(before), noise=noise)
    rows = set(found.rows.tolist())
    assert len(rows) == k == len(found.rows)
    newcomers = [row for row in rows if row not in before]
    leaving = [row for row in before if row not in rows]
    for new, old in itertools.product(newcomers, leaving):
        assert scores[new] - scores[old] > found.lead or (noise == 0 and scores[new] >= scores[old])
    first = np.argsort(-np.array(scores), kind="stable")[:k]
    if noise == 0:
        assert sorted(np.array(scores)[found.rows]) == sorted(np.array(scores)[first])
    assert set(found.waiting) <= set(first) and not set(found.waiting) & rows


def test_rows_stay_within_limits_and_their_price_is_that_of_their_own_probabilities():
    rng = np.random.default_rng(1)
    old = rng.normal(size=400)
    new = old + rng.normal(scale=0.3, size=400)
    before, chance = np.argsort(-old)[:50], 1 / (1 + np.exp(2 - new))
    stays = {"previous": before, "old_scores": old[before]}
    alone, plain = cut(new, 50, **stays), keep_rows(new, 50, **stays)
    assert alone.rows.tolist() == plain.rows.tolist() and alone.lead == plain.lead
    assert set(alone.kept) == set(plain.kept) and len(alone.kept)
    within = {
        "probability": chance,
        "entities": np.arange(400) % 90,
        "groups": np.arange(400) % 3,
        "at_least": 12,
        "include": [int(np.argmin(new))],
        "exclude": [int(np.argmax(new))],
        "cost": np.ones(400),
        "budget": 45.0,
    }
    found, free = cut(new, 50, **within, **stays), cut(new, 50, **within)
    rows = found.rows
    assert len(set(rows % 90)) == len(rows) <= 45 and np.bincount(rows % 3).min() >= 12
    assert np.argmin(new) in rows and np.argmax(new) not in rows
    assert set(found.kept) <= set(before) & set(rows) and not set(found.kept) & set(free.rows)
    price = found.prices[-1]
    assert price.limit.startswith("rows of before stay")
    assert (
        price.positives == pytest.approx(free.positives - found.positives) and price.positives > 0
    )
    assert found.positives == pytest.approx(chance[rows].sum()) and found.bound is None
    assert len(set(rows) & set(before)) > len(set(free.rows) & set(before))
    explored = cut(new, 50, explore=0.2, **stays)
    assert (
        explored.explored.sum() == 10
        and not explored.explored[np.isin(explored.rows, explored.kept)].any()
    )
    with pytest.raises(ValueError, match="give previous"):
        cut(new, 50, noise=1.0)


def test_the_noise_is_what_scores_have_moved_by():
    rng = np.random.default_rng(0)
    old = rng.normal(size=4000)
    new = old + 3 + rng.normal(scale=0.2, size=4000)  # the shift of all is no noise
    before = np.argsort(-old)[:2000]
    found = keep_rows(new, 2000, before, old_scores=old[before])
    assert found.lead == pytest.approx(1.645 * 0.2, rel=0.1)
    assert len(found.kept) > 0
    with pytest.raises(ValueError, match="one of them"):
        keep_rows(new, 5, before)
    with pytest.raises(ValueError, match="too few to see"):
        keep_rows(new, 5, before[:3], old_scores=old[before[:3]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 0}, "k=0: expected a number of rows"),
        ({"k": 2.5}, "k=2.5: expected a number of rows"),
        ({"confidence": 0.3}, "confidence=0.3: expected a number from 0.5 to below 1"),
        ({"noise": -1.0}, "noise=-1.0: expected a standard deviation from 0"),
    ],
)
def test_what_cannot_say_who_stays_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        keep_rows([3.0, 2.0, 1.0], **{"k": 2, "previous": [2], "noise": 0.5, **given})


def test_a_list_of_rows_that_stay_is_a_dictionary_too():
    found = keep_rows([3.0, 2.0, 1.9], 2, previous=[2], noise=0.5).as_dict()
    assert found["rows"].tolist() == [0, 2]
    assert found["kept"].tolist() == [2] and found["waiting"].tolist() == [1]


def test_the_overlap_of_rows_that_stand_once_is_that_of_the_lists():
    rng = np.random.default_rng(0)
    old, new = rng.permutation(30), rng.permutation(40)[:25]
    names = np.ones(40, dtype=np.int64)
    found = compare_lists(old, new, 10, persistence=0.8)
    assert _overlap_of_counts(old, new, names, 0.8) == pytest.approx(found.overlap)
    low, high = found.overlap_interval
    assert 0 < low < found.overlap < high < 1
    for settings in ({"level": 1.0}, {"n_resamples": 1}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            compare_lists(old, new, 10, **settings)


@pytest.mark.more
def test_intervals_of_the_overlap_hold_its_mean_over_tables():
    overlaps, ends = [], []
    for draw in range(150):
        rng = np.random.default_rng((300, draw))
        known = rng.normal(size=300)
        old, new = (np.argsort(-(known + 0.3 * rng.normal(size=300))) for _ in range(2))
        found = compare_lists(old, new, 30, n_resamples=60)
        overlaps.append(found.overlap)
        ends.append(found.overlap_interval)
    low, high = np.array(ends).T
    mean = np.mean(overlaps)
    assert np.mean((low <= mean) & (mean <= high)) >= 0.9
    assert np.mean(high - low) < 6 * np.std(overlaps)
