"""Sums over graded, grouped and listed pairs against the double loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.blocks import Workers
from toprank.losses import (
    Exponential,
    Hinge,
    Logistic,
    SmoothedHinge,
    SquaredHinge,
    ZeroOne,
    from_callable,
)
from toprank.pair_sums import (
    RELATED_SUMS,
    GradedFactorised,
    GradedInterpolated,
    GradedSorted,
    Listed,
    concordance,
    related_sum,
)
from toprank.pair_sums.sorted import _squares
from toprank.pair_sums.sorted_kernels import score_order
from toprank.pairs import Explicit, Graded

WAYS = [
    (GradedFactorised, Exponential()),
    (GradedInterpolated, Logistic()),
    *((GradedSorted, loss) for loss in (Hinge(), SquaredHinge(), SmoothedHinge(0.3), ZeroOne())),
    *((Listed, loss) for loss in (Exponential(), Logistic(), SquaredHinge())),
]
each_way = pytest.mark.parametrize(
    ("way", "loss"), WAYS, ids=[f"{way.__name__}-{loss!r}" for way, loss in WAYS]
)


@st.composite
def graded_rows(draw, widest=3.0, most=120):
    """(labels, groups, scores): a few labels or many, groups of any size, ties, any spread."""
    n = draw(st.integers(2, most))
    levels = draw(st.sampled_from([2, 3, 10, 10_000]))
    n_groups = draw(st.sampled_from([1, 2, 30]))
    spread = 10.0 ** draw(st.floats(-6, widest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = spread * rng.standard_normal(n)
    if draw(st.booleans()):
        scores = np.round(8 * scores) / 8  # on this grid margins are exact, and many are tied
    return rng.integers(0, levels, n), rng.integers(0, n_groups, n), scores


def faces(labels, groups, relation):
    """(inner, outer) truth values of the definition: same group, larger label."""
    i, o = relation.inner, relation.outer
    higher = labels[i][:, None] > labels[o][None, :]
    return higher & (groups[i][:, None] == groups[o][None, :])


def loop_sums(loss, order, scores, relation, wins, v, u):
    margins = scores[relation.inner][:, None] - scores[relation.outer][None, :]
    terms = np.where(wins, loss.derivative(order, margins), 0.0)
    sizes = np.abs(terms)
    return v @ terms, terms @ u, np.abs(v) @ sizes, sizes @ np.abs(u)


@each_way
@given(rows=graded_rows(), data=st.data())
def test_sums_and_derivatives_are_those_of_the_double_loop(way, loss, rows, data):
    labels, groups, scores = rows
    relation = Graded(labels, groups, np.arange(len(labels)))
    if relation.n_pairs == 0:
        return
    if way is not GradedSorted and way is not GradedInterpolated:
        scores = np.clip(scores, -300, 300)  # so that the double loop does not overflow
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    signs = data.draw(st.sampled_from([[1.0], [-1.0, 1.0]]))
    v, u = (
        rng.choice(signs, len(side)) * rng.random(len(side))
        for side in (relation.inner, relation.outer)
    )
    sums = way(loss, relation, scores)
    wins = faces(labels, groups, relation)
    # next to a knot the last bit of a score decides; it moves a sum by the jump times the weight
    jumps = {"hinge": {1}, "smoothed_hinge": {2}, "squared_hinge": {2}, "zero_one": {0}}
    for k in (0, 1, 2) if loss.name != "zero_one" else (0,):
        on_a_knot = k in jumps.get(loss.name, ())
        if on_a_knot and np.any(scores * 8 != np.round(scores * 8)):
            continue
        outward, inward, size_out, size_in = loop_sums(loss, k, scores, relation, wins, v, u)
        scale = np.exp(sums.log_scale)
        reach = 1e-13 * (1.0 + np.ptp(scores)) ** 2 * np.exp(-np.ptp(scores)) + 1e-300
        got = sums.to_outer((k,), v)[0] * scale
        assert np.all(np.abs(got - outward) <= 1e-11 * size_out + reach)
        got = sums.to_inner((k,), u * scale)[0]
        assert np.all(np.abs(got - inward) <= 1e-11 * size_in + reach)


@each_way
@given(rows=graded_rows(widest=1.0), data=st.data())
def test_to_inner_is_the_adjoint_of_to_outer(way, loss, rows, data):
    labels, groups, scores = rows
    relation = Graded(labels, groups, np.arange(len(labels)))
    if relation.n_pairs == 0:
        return
    scores = np.round(scores * 2.0**20) / 2.0**20
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    v, u = rng.standard_normal(len(relation.inner)), rng.standard_normal(len(relation.outer))
    sums = way(loss, relation, scores)
    for k in (0, 1, 2):
        outward, inward = sums.to_outer((k,), v)[0], sums.to_inner((k,), u)[0]
        size = np.abs(u) @ np.abs(sums.to_outer((k,), np.abs(v))[0])
        assert u @ outward == pytest.approx(inward @ v, rel=1e-9, abs=1e-10 * size + 1e-12)


@pytest.mark.parametrize("leaf", [1, 2, 50])
@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothedHinge(0.1)], ids=repr)
def test_the_tree_may_end_anywhere(leaf, loss, monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.sorted.LEAF", leaf)
    rng = np.random.default_rng(0)
    labels, groups, scores = rng.integers(0, 90, 400), rng.integers(0, 3, 400), rng.normal(size=400)
    relation = Graded(labels, groups, np.arange(400))
    v, u = rng.random(len(relation.inner)), rng.random(len(relation.outer))
    fast, slow = (way(loss, relation, scores) for way in (GradedSorted, Listed))
    for a, b in zip(fast.to_outer((0, 1, 2), v), slow.to_outer((0, 1, 2), v), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    for a, b in zip(fast.to_inner((0, 1, 2), u), slow.to_inner((0, 1, 2), u), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.more
@pytest.mark.parametrize("loss", [SquaredHinge(), Hinge()], ids=repr)
@given(rows=graded_rows(widest=6.0), leaf=st.sampled_from([1, 4, 32]), data=st.data())
def test_value_and_gradient_together_are_those_of_the_listed_pairs(loss, rows, leaf, data):
    labels, groups, scores = rows
    relation = Graded(labels, groups, np.arange(len(labels)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    v, u = rng.random(len(relation.inner)), rng.random(len(relation.outer))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toprank.pair_sums.sorted.LEAF", leaf)
        value, grad = GradedSorted(loss, relation, scores).value_grad(v, u)
    expected, slope = Listed(loss, relation, scores).value_grad(v, u)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-11 * (1 + np.abs(slope).max()))


def test_well_ordered_pairs_far_apart_leave_no_rounding_in_one_pass():
    relation = Graded(np.arange(500), None, np.arange(500))
    value, grad = GradedSorted(SquaredHinge(), relation, 1e8 * np.arange(500.0)).value_grad(
        np.ones(499), np.ones(499)
    )
    assert value == 0.0
    assert not np.any(grad)


@pytest.mark.parametrize(
    "scores",
    [
        np.array([3.0, -1.0, 0.0, -0.0, -5e300, 5e-324, 2.0, -7.0, np.inf, -np.inf]),
        np.random.default_rng(0).standard_normal(5000),
        1e6 + 1e-9 * np.random.default_rng(0).standard_normal(5000),  # upper halves agree
        np.repeat([2.0, 1.0], 3000),
        np.empty(0),
    ],
    ids=["special", "normal", "close", "tied", "none"],
)
def test_the_order_by_digits_sorts(scores):
    order = score_order(scores)
    assert sorted(order.tolist()) == list(range(len(scores)))
    np.testing.assert_array_equal(scores[order], np.sort(scores))


def test_sums_have_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    relation = Graded(rng.normal(size=3000), None, np.arange(3000))
    scores, v = rng.normal(size=3000), np.ones(2999)
    workers = Workers(2)
    alone = related_sum(SquaredHinge(), relation, scores)
    with workers.start_threads():
        together = related_sum(SquaredHinge(), relation, scores, workers)
        np.testing.assert_array_equal(alone.to_outer((0, 1), v), together.to_outer((0, 1), v))
        for a, b in zip(alone.value_grad(v, v), together.value_grad(v, v), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("leaf", [1, 10])
def test_scores_that_overflowed_are_counted_too(leaf, monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.sorted.LEAF", leaf)
    scores = np.array([np.inf, -np.inf, 0.0, np.inf, 1.0, -np.inf])
    relation = Graded(np.array([0, 1, 2, 3, 4, 5]), None, np.arange(6))
    (heights,) = GradedSorted(ZeroOne(), relation, scores).to_outer((0,), np.ones(5))
    assert heights.tolist() == [5.0, 1.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("leaf", [1, 10])
def test_hinges_of_scores_whose_squares_overflow_are_finite(leaf, monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.sorted.LEAF", leaf)
    relation = Graded(np.arange(6), None, np.arange(6))
    scores = 1e200 * np.array([3.0, 1.0, 2.0, -1.0, 0.0, 5.0])
    for loss in (Hinge(), SmoothedHinge(0.1)):
        value, slope = GradedSorted(loss, relation, scores).to_outer((0, 1), np.ones(5))
        np.testing.assert_allclose(value, 1e200 * np.array([10.0, 3.0, 5.0, 0.0, 0.0]), atol=5)
        assert slope.tolist() == [-4.0, -2.0, -2.0, 0.0, 0.0]
    # one winner far below, one just inside the bend
    labels, scores = np.array([0, 0, 1, 1]), np.array([0.0, 1e200, -1e200, 1e200])
    sums = GradedSorted(SmoothedHinge(2.0), Graded(labels, None, np.arange(4)), scores)
    np.testing.assert_allclose(sums.to_outer((0,), np.ones(2))[0], [1e200, 2e200])


@pytest.mark.parametrize("lead", [50.0, 800.0, 1e4])
def test_exponential_sums_far_on_either_side_neither_over_nor_underflow(lead):
    labels, scores = np.array([2, 1, 0, 2, 1]), np.array([lead, 0.0, -lead, lead + 1.0, 0.5])
    for sign in (1.0, -1.0):
        relation = Graded(labels, None, np.arange(5))
        for way in (GradedFactorised, Listed):
            sums = way(Exponential(), relation, sign * scores)
            logs = sums.log_heights(np.ones(len(relation.inner)))
            for row, got in zip(relation.outer, logs, strict=True):
                above = sign * scores[labels > labels[row]]
                expected = np.logaddexp.reduce(sign * scores[row] - above)
                assert got == pytest.approx(expected, rel=1e-14)


@given(rows=graded_rows(most=40), data=st.data())
def test_a_graded_relation_holds_exactly_the_pairs_of_its_definition(rows, data):
    labels, groups, _ = rows
    present = np.flatnonzero(np.random.default_rng(0).random(len(labels)) < 0.8)
    relation = Graded(labels, groups, present)
    expected = {
        (i, k) for i in present for k in present if labels[i] > labels[k] and groups[i] == groups[k]
    }
    numbers = np.arange(relation.n_pairs)
    inner, outer = relation.pairs_at(numbers)
    assert set(zip(relation.inner[inner], relation.outer[outer], strict=True)) == expected
    assert relation.n_pairs == len(expected)
    blocks = list(relation.blocks(7))
    assert sum(len(i) for i, _ in blocks) == len(expected)
    turned = relation.reverse()
    inner, outer = turned.pairs_at(numbers)
    assert set(zip(turned.outer[outer], turned.inner[inner], strict=True)) == expected
    weight = np.random.default_rng(1).random(len(labels))
    facing = [sum(weight[i] for i, k in expected if k == row) for row in relation.outer]
    np.testing.assert_allclose(relation.facing_weight(weight), facing, rtol=1e-12)


@given(data=st.data())
def test_an_explicit_relation_keeps_repeated_and_contradictory_pairs(data):
    row = st.integers(0, 6)
    pairs = data.draw(st.lists(st.tuples(row, row), min_size=1, max_size=30))
    winner, loser = np.array(pairs).T
    for relation, swap in ((Explicit(winner, loser), 1), (Explicit(winner, loser).reverse(), -1)):
        inner, outer = relation.pairs_at(np.arange(relation.n_pairs))
        got = sorted(zip(relation.inner[inner], relation.outer[outer], strict=True))
        assert got == sorted(pair[::swap] for pair in pairs)
        weight = np.arange(1.0, 8.0)
        facing = [sum(weight[p[::swap][0]] for p in pairs if p[::swap][1] == k) for k in range(7)]
        np.testing.assert_allclose(relation.facing_weight(weight), np.array(facing)[relation.outer])


@pytest.mark.parametrize("n_groups", [1, 400])
def test_thinning_keeps_a_relation_of_the_same_kind_on_fewer_rows(n_groups):
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 5, 4000), rng.integers(0, n_groups, 4000)
    rows, thin = Graded(labels, groups, np.arange(4000)).thin(400)
    assert 300 <= len(rows) <= 900
    inner, outer = thin.pairs_at(np.arange(thin.n_pairs))
    winner, loser = rows[thin.inner[inner]], rows[thin.outer[outer]]
    assert np.all(labels[winner] > labels[loser])
    assert np.all(groups[winner] == groups[loser])
    if n_groups == 400:  # whole groups: no pair of theirs is lost
        whole = Graded(labels, groups, np.flatnonzero(np.isin(groups, groups[rows])))
        assert thin.n_pairs == whole.n_pairs


def test_every_loss_goes_its_fastest_way_and_ones_own_pair_by_pair():
    relation = Graded(np.arange(300), None, np.arange(300))
    own = from_callable(lambda r: np.exp(-r), lambda r: -np.exp(-r))
    losses = (Exponential(), SquaredHinge(), Logistic(), own)
    ways = tuple(type(related_sum(loss, relation, np.zeros(300))) for loss in losses)
    assert ways == RELATED_SUMS
    pairs = Explicit(np.arange(20_000), np.arange(1, 20_001))
    assert isinstance(related_sum(Logistic(), pairs, np.zeros(20_001)), Listed)


@given(graded_rows(), st.sampled_from([1.0, 1e-200, 1e200]), st.booleans(), st.booleans())
def test_concordance_is_the_share_of_the_pairs_in_order(rows, size, few, weighted):
    labels, groups, scores = rows
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(labels)).astype(float) if weighted else np.ones(len(labels))
    higher = (labels[:, None] > labels[None, :]) & (groups[:, None] == groups[None, :])
    mass = higher * np.outer(weight, weight)
    if not higher.any():
        return
    right = (1.0 + np.sign(scores[:, None] - scores[None, :])) / 2
    expected = np.sum(mass * right) / np.sum(mass)
    counts = size * weight if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toprank.pair_sums.LISTED_UP_TO", 1 << 14 if few else 0)
        for relation in (
            Graded(labels, groups, np.arange(len(labels))),
            Explicit(*np.nonzero(higher)),
        ):
            assert concordance(relation, scores, counts) == pytest.approx(expected, abs=1e-12)


def test_squares_left_of_a_knot_are_known_as_such():
    assert _squares(SquaredHinge()) == (1.0, 1.0)
    assert [_squares(loss) for loss in (Hinge(), SmoothedHinge(0.5), ZeroOne())] == [None] * 3
