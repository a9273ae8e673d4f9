"""Every fast way of summing over pairs against the double loop."""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank.losses import LOSSES, Exponential, Logistic, SmoothedHinge, from_callable, get_loss
from toprank.pair_sums import (
    PAIR_SUMS,
    Blocked,
    Factorised,
    Interpolated,
    Reference,
    Sorted,
    pair_sum,
)
from toprank.prices import Power

EPS = np.finfo(np.float64).eps
LOSSES_TO_SUM = {name: cls() for name, cls in LOSSES.items()}
#: Every loss by its fast way, and by the blocks that take any loss.
WAYS = [(type(pair_sum(loss, np.zeros(1), np.zeros(1))), loss) for loss in LOSSES_TO_SUM.values()]
WAYS += [(Blocked, loss) for loss in LOSSES_TO_SUM.values()]
each_way = pytest.mark.parametrize(
    ("way", "loss"), WAYS, ids=[f"{way.__name__}-{loss.name}" for way, loss in WAYS]
)


@dataclass
class Case:
    """Scores and weights of both sides, and a power."""

    inner: np.ndarray
    outer: np.ndarray
    weight: np.ndarray
    outer_weight: np.ndarray
    p: float

    def log_norm(self, way, loss, nudge=0.0):
        """(log R) / p, with the inner scores moved by ``nudge``."""
        log_heights = way(loss, self.inner + nudge, self.outer).log_heights(self.weight)
        return Power(self.p).log_risk(log_heights, np.log(self.outer_weight)) / self.p

    @property
    def last_bit(self):
        return 4 * EPS * max(1.0, np.max(np.abs(self.inner)), np.max(np.abs(self.outer)))


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


@st.composite
def simulated(draw, widest=4.0, most=60):
    """Many rows from a drawn shape: spread, offsets, ties, weights over many orders."""
    n_inner, n_outer = draw(st.integers(1, most)), draw(st.integers(1, most))
    spread = draw(powers_of_ten(-8, widest))
    far = powers_of_ten(-3, widest).flatmap(lambda x: st.sampled_from([0.0, x, -x]))
    offset, apart = draw(far), draw(far)
    orders = draw(st.sampled_from([0, 2, 12, 100]))
    tied = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def scores(n, centre):
        unit = rng.uniform(-0.5, 0.5, n)
        return centre + spread * (np.round(8 * unit) / 8 if tied else unit)

    def weights(n):
        return 10.0 ** rng.uniform(-orders / 2, orders / 2, n)

    inner, outer = scores(n_inner, offset), scores(n_outer, offset + apart)
    if draw(st.booleans()):
        shared = min(n_inner, n_outer)
        outer[:shared] = inner[:shared]
    p = draw(st.sampled_from([1.0, 1000.0]) | powers_of_ten(0, 3))
    return Case(inner, outer, weights(n_inner), weights(n_outer), p)


@st.composite
def drawn(draw, widest=1e4):
    """A few rows of numbers that hypothesis finds interesting."""
    n_inner, n_outer = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    numbers, weights = st.floats(-widest, widest), st.floats(1e-50, 1e50)
    return Case(
        draw(arrays(np.float64, n_inner, elements=numbers)),
        draw(arrays(np.float64, n_outer, elements=numbers)),
        draw(arrays(np.float64, n_inner, elements=weights)),
        draw(arrays(np.float64, n_outer, elements=weights)),
        draw(st.floats(1.0, 1000.0)),
    )


def distance(a, b):
    return 0.0 if a == b else abs(a - b)


def assert_risks_agree(case, way, loss):
    expected, got = case.log_norm(Reference, loss), case.log_norm(way, loss)
    allowed = 1e-10 * max(1.0, abs(expected))
    if not loss.smooth or loss.pieces:
        # next to the margin where a hinge vanishes, the last bit of a score decides log R:
        # the loop itself moves by as much when the scores do
        nudges = (-case.last_bit, case.last_bit) if loss.name != "zero_one" else ()
        moved = [distance(case.log_norm(Reference, loss, nudge), expected) for nudge in nudges]
        allowed = max(allowed, *moved, 0.0)
    assert distance(expected, got) <= allowed


@each_way
@given(case=simulated() | drawn())
def test_risk_is_that_of_the_double_loop(way, loss, case):
    assert_risks_agree(case, way, loss)


@pytest.mark.parametrize("width", [2.0, 1e-2, 1e-7])
@given(case=simulated() | drawn())
def test_risk_of_the_smoothed_hinge_is_that_of_the_double_loop(width, case):
    assert_risks_agree(case, Sorted, SmoothedHinge(width))


def test_smallest_heights_of_the_smoothed_hinge_keep_their_digits():
    # the heavy row has barely entered the bend, the light one is half way through it
    case = Case(np.array([0.0, 0.5]), np.array([2.0**-30 - 0.5]), np.array([1e-20, 1.0]), 1.0, 1.0)
    assert_risks_agree(case, Sorted, SmoothedHinge(1.0))
    expected = 0.5e-20 * (0.5 + 2.0**-30) ** 2 + 2.0**-61
    (got,) = np.exp(Sorted(SmoothedHinge(1.0), case.inner, case.outer).log_heights(case.weight))
    assert got == pytest.approx(expected, rel=1e-13)


@pytest.mark.sampled(6)
@each_way
@pytest.mark.parametrize("spread", [1e-8, 1.0, 30.0, 1e4])
def test_risk_of_many_rows_is_that_of_the_double_loop(way, loss, spread):
    rng = np.random.default_rng(0)
    inner, outer = spread * rng.standard_normal(500), spread * rng.standard_normal(400)
    outer[:50] = inner[:50]
    weights = 10.0 ** rng.uniform(-6, 6, 500), 10.0 ** rng.uniform(-6, 6, 400)
    for p in (1.0, 4.0, 1000.0):
        assert_risks_agree(Case(inner, outer, *weights, p), way, loss)


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double is no longer than double here"
)
@given(case=simulated(most=20))
def test_double_loop_itself_is_right_to_more_digits_than_it_is_asked_for(case):
    long = np.longdouble
    inner, outer, p = case.inner.astype(long), case.outer.astype(long), long(case.p)
    terms = np.log(case.weight.astype(long)) - (inner[None, :] - outer[:, None])
    log_heights = np.logaddexp.reduce(terms, axis=1)
    expected = np.logaddexp.reduce(np.log(case.outer_weight.astype(long)) + p * log_heights) / p
    got = case.log_norm(Reference, Exponential())
    assert abs(got - float(expected)) <= 1e-12 * max(1.0, abs(got))


@pytest.mark.parametrize("way", [Sorted, Blocked])
@given(case=simulated() | drawn())
def test_heights_are_right_to_a_part_of_the_largest(way, case):
    loss = get_loss("zero_one")
    (expected,) = Reference(loss, case.inner, case.outer).to_outer((0,), case.weight)
    (got,) = way(loss, case.inner, case.outer).to_outer((0,), case.weight)
    assert np.max(np.abs(got - expected)) <= 1e-10 * np.max(expected)


@given(case=simulated() | drawn())
def test_unweighted_heights_are_exact_counts(case):
    sums = pair_sum(get_loss("zero_one"), case.inner, case.outer)
    (got,) = sums.to_outer((0,), np.ones(len(case.inner)))
    assert got.tolist() == [float(np.sum(case.inner <= b)) for b in case.outer]


class Magnitude(Logistic):
    """|l|, |l'| and |l''|: what the error of a signed sum is measured against."""

    def derivative(self, order, r):
        return np.abs(super().derivative(order, r))


@pytest.mark.parametrize("most_entries", [0, 1 << 30], ids=["box by box", "one matrix"])
@given(case=simulated(widest=2.0))
def test_logistic_sums_and_their_derivatives_have_twelve_digits(most_entries, case):
    loss, orders = Logistic(), (0, 1, 2)
    with patch("toprank.pair_sums.interpolated._DENSE_ENTRIES", most_entries):
        fast = Interpolated(loss, case.inner, case.outer)
        scale = np.exp(fast.log_scale)
        outward = [sums * scale for sums in fast.to_outer(orders, case.weight)]
        inward = fast.to_inner(orders, case.outer_weight * scale)
    slow = Reference(loss, case.inner, case.outer)
    np.testing.assert_allclose(outward, slow.to_outer(orders, case.weight), rtol=1e-12)
    np.testing.assert_allclose(inward, slow.to_inner(orders, case.outer_weight), rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(case=simulated(widest=2.0), data=st.data())
def test_logistic_sums_with_signs_have_twelve_digits_of_their_terms(order, case, data):
    loss, rng = Logistic(), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    v = case.weight * rng.choice([-1.0, 1.0], len(case.inner))
    u = case.outer_weight * rng.choice([-1.0, 1.0], len(case.outer))
    slow, fast = (way(loss, case.inner, case.outer) for way in (Reference, Interpolated))
    size = Reference(Magnitude(), case.inner, case.outer)
    scale = np.exp(fast.log_scale)
    error = fast.to_outer((order,), v)[0] * scale - slow.to_outer((order,), v)[0]
    assert np.all(np.abs(error) <= 1e-12 * size.to_outer((order,), np.abs(v))[0])
    error = fast.to_inner((order,), u * scale)[0] - slow.to_inner((order,), u)[0]
    assert np.all(np.abs(error) <= 1e-12 * size.to_inner((order,), np.abs(u))[0])


@st.composite
def on_a_grid(draw):
    """Multiples of 1/8 below 64: every margin is exact, and many lie on the knots."""
    scores = st.integers(-512, 512).map(lambda j: j / 8) | st.integers(-8, 8).map(lambda j: j / 8)
    n_inner, n_outer = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    signed = st.floats(-1e3, 1e3)
    return (
        draw(arrays(np.float64, n_inner, elements=scores)),
        draw(arrays(np.float64, n_outer, elements=scores)),
        draw(arrays(np.float64, n_inner, elements=signed)),
        draw(arrays(np.float64, n_outer, elements=signed)),
    )


PIECEWISE = [loss for loss in LOSSES_TO_SUM.values() if loss.pieces] + [SmoothedHinge(0.5)]


@pytest.mark.parametrize("loss", PIECEWISE, ids=repr)
@given(case=on_a_grid())
def test_sorted_sums_and_derivatives_follow_the_loop_on_the_knots_too(loss, case):
    inner, outer, v, u = case
    slow, fast = (way(loss, inner, outer) for way in (Reference, Sorted))
    reach = 1.0 + np.max(inner) - np.min(inner) + np.max(outer) - np.min(outer)
    reach += abs(np.mean(inner) - np.mean(outer))
    for order in (0, 1, 2):
        for name, x in (("to_outer", v), ("to_inner", u)):
            (expected,) = getattr(slow, name)((order,), x)
            (got,) = getattr(fast, name)((order,), x)
            size = np.sum(np.abs(x)) * reach ** (2 - order) + 1e-300
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13 * size)


ADJOINT = [*WAYS[: len(LOSSES_TO_SUM)], (Blocked, Logistic()), (Sorted, SmoothedHinge(0.5))]


@pytest.mark.parametrize(
    ("way", "loss"), ADJOINT, ids=[f"{way.__name__}-{loss!r}" for way, loss in ADJOINT]
)
@given(case=simulated(widest=2.0), order=st.integers(0, 2), data=st.data())
def test_to_inner_is_the_adjoint_of_to_outer(way, loss, case, order, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    # on this grid a score plus a knot is exact: no rounding decides who lies beyond it
    inner, outer = (np.round(x * 2.0**20) / 2.0**20 for x in (case.inner, case.outer))
    sums = way(loss, inner, outer)
    u, v = rng.standard_normal(len(case.outer)), rng.standard_normal(len(case.inner))
    (outward,) = sums.to_outer((order,), v)
    (inward,) = sums.to_inner((order,), u)
    size = np.abs(u) @ np.abs(sums.to_outer((order,), np.abs(v))[0])
    size += np.abs(v) @ np.abs(sums.to_inner((order,), np.abs(u))[0])
    assert u @ outward == pytest.approx(inward @ v, rel=1e-10, abs=1e-11 * size)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_orders_asked_for_together_are_those_asked_for_apart(order):
    rng = np.random.default_rng(0)
    inner, outer = rng.standard_normal(9), rng.standard_normal(7)
    for way, loss in WAYS:
        sums = way(loss, inner, outer)
        together = sums.to_outer((0, 1, 2), np.ones(9))[order]
        np.testing.assert_array_equal(together, sums.to_outer((order,), np.ones(9))[0])
        together = sums.to_inner((0, 1, 2), np.ones(7))[order]
        np.testing.assert_array_equal(together, sums.to_inner((order,), np.ones(7))[0])


@pytest.mark.parametrize("way", [Factorised, Interpolated])
@pytest.mark.parametrize("lead", [50.0, 800.0, 1e4])
def test_sums_far_on_the_right_side_of_the_margin_do_not_underflow(way, lead):
    loss = Exponential() if way is Factorised else Logistic()
    inner, outer = np.array([0.0, 1.0, 2.0]), np.array([-lead, -lead - 3.0])
    sums = way(loss, inner, outer)
    log_sum = np.log(np.sum(np.exp(-inner)))
    np.testing.assert_allclose(sums.log_heights(np.ones(3)), log_sum + outer, rtol=1e-15)
    for order in (0, 1, 2):
        (scaled,) = sums.to_outer((order,), np.ones(3))
        sign = -1.0 if order == 1 else 1.0
        np.testing.assert_allclose(np.log(sign * scaled) + sums.log_scale, log_sum + outer)


@pytest.mark.parametrize("far", [1e15, 1e17, 1e300])
@pytest.mark.parametrize("most_entries", [0, 1 << 30], ids=["box by box", "one matrix"])
def test_ties_at_huge_scores_are_counted_once(far, most_entries, monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.interpolated._DENSE_ENTRIES", most_entries)
    sums = Interpolated(Logistic(), np.array([0.0, far, far]), np.array([far, 0.0]))
    value, slope, curvature = sums.to_outer((0, 1, 2), np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(value, [far, np.log(2)], rtol=1e-14)
    np.testing.assert_allclose(slope, [-2.5, -0.5], rtol=1e-14)
    np.testing.assert_allclose(curvature, [0.75, 0.25], rtol=1e-14)


def test_blocks_and_chunks_may_end_anywhere(monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.pair_by_pair.PAIRS_PER_BLOCK", 70)
    monkeypatch.setattr("toprank.pair_sums.interpolated._CHUNK", 5)
    monkeypatch.setattr("toprank.pair_sums.interpolated._DENSE_ENTRIES", 0)
    rng = np.random.default_rng(0)
    inner, outer = rng.standard_normal(33), 3 * rng.standard_normal(21)
    v, u = rng.random(33), rng.random(21)
    slow = Reference(Logistic(), inner, outer)
    for way in (Blocked, Interpolated):
        fast = way(Logistic(), inner, outer)
        np.testing.assert_allclose(fast.log_heights(v), slow.log_heights(v), atol=1e-13)
        for a, b in zip(fast.to_outer((0, 1, 2), v), slow.to_outer((0, 1, 2), v), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        for a, b in zip(fast.to_inner((0, 1, 2), u), slow.to_inner((0, 1, 2), u), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_loss_of_ones_own_goes_block_by_block_and_registered_ones_do_not():
    own = from_callable(lambda r: np.exp(-r), lambda r: -np.exp(-r))
    assert isinstance(pair_sum(own, np.zeros(1), np.zeros(1)), Blocked)
    assert {way for way, _ in WAYS[: len(LOSSES_TO_SUM)]} == set(PAIR_SUMS) - {Blocked}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spread", [0.7, 30.0, 90.0])
@each_way
def test_columns_are_summed_as_one_by_one(way, loss, spread):
    rng = np.random.default_rng(3)
    inner, outer = spread * rng.standard_normal(40), spread * rng.standard_normal(60)
    sums, v, u = way(loss, inner, outer), rng.random((40, 3)), rng.random((60, 3))
    for all_at_once, single, columns in (
        (sums.columns_to_outer, sums.to_outer, v),
        (sums.columns_to_inner, sums.to_inner, u),
    ):
        for k, found in enumerate(all_at_once((0, 1), columns)):
            wanted = np.stack([single((0, 1), column)[k] for column in columns.T], axis=1)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("most", [1, 1 << 20])
def test_columns_of_a_bend_are_those_of_the_double_loop(most, monkeypatch):
    monkeypatch.setattr("toprank.pair_sums.sorted.PAIRS_PER_BLOCK", most)
    rng = np.random.default_rng(3)
    rows = SmoothedHinge(0.3), rng.normal(size=40), rng.normal(size=60)
    fast, slow, v, u = Sorted(*rows), Reference(*rows), rng.random((40, 3)), rng.random((60, 3))
    for k in range(3):
        for found, single, columns in (
            (fast.columns_to_outer((k,), v)[0], slow.to_outer, v),
            (fast.columns_to_inner((k,), u)[0], slow.to_inner, u),
        ):
            wanted = np.stack([single((k,), column)[0] for column in columns.T], axis=1)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("columns", "together"), [(2, False), (100, True)])
def test_pairs_are_listed_where_sorting_every_column_takes_longer(columns, together, monkeypatch):
    listed = []

    class Counted(Blocked):
        def _blocks(self):
            listed.append(self)
            return super()._blocks()

        columns_to_outer, columns_to_inner = Blocked.to_outer, Blocked.to_inner

    monkeypatch.setattr("toprank.pair_sums.sorted.Blocked", Counted)
    rng = np.random.default_rng(3)
    sums = Sorted(SmoothedHinge(0.3), rng.normal(size=300), rng.normal(size=200))
    sums.columns_to_outer((0, 1), rng.random((300, columns)))
    sums.columns_to_inner((0, 1), rng.random((200, columns)))
    assert len(listed) == (2 if together else 0)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0)])
def test_sums_over_no_rows_are_zero_in_every_column(n, m):
    sums = Interpolated(get_loss("logistic"), np.linspace(-1, 1, n), np.linspace(-1, 1, m))
    (to_outer,), (to_inner,) = (
        sums.columns_to_outer((0,), np.ones((n, 2))),
        sums.columns_to_inner((0,), np.ones((m, 2))),
    )
    assert to_outer.tolist() == np.zeros((m, 2)).tolist()
    assert to_inner.tolist() == np.zeros((n, 2)).tolist()


@pytest.mark.parametrize("loss", ["exponential", "logistic", "hinge", "squared_hinge"])
def test_weights_however_small_lose_no_digits(loss):
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=30), rng.normal(size=20), rng.random(30)
    sums = pair_sum(get_loss(loss), a, b)
    whole, tiny = sums.log_heights_of_any(v), sums.log_heights_of_any(v * 2.0**-1000)
    np.testing.assert_allclose(tiny, whole - 1000 * np.log(2.0), rtol=1e-13)
