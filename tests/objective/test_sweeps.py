"""What blocks contribute merges to what the rows contribute together, however they are cut."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import gen_batches

from toprank.blocks import Block, Units
from toprank.blocks.columns import Columns
from toprank.blocks.design import mirrored
from toprank.losses.proper import Logistic
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.pointwise import Pointwise
from toprank.objective.priced import End, Priced
from toprank.objective.sums import Standard
from toprank.objective.sweeps import Evaluate, Extremes, Histogram, Products
from toprank.prices import Exponential, Log1p

VIEW = View(np.array([False, True]), (2.0, 1.0))
TOP_AND_BOTTOM = ((-1.0, 8.0), (-8.0, 1.0))
SWEEPS = {
    "tilted sums": (Evaluate(VIEW, TOP_AND_BOTTOM, 2), lambda coef: coef),
    "with extremes": (
        Evaluate(VIEW, TOP_AND_BOTTOM, 1, True, Standard(0.0, 1.0)),
        lambda coef: coef,
    ),
    "extremes": (Extremes(VIEW), lambda coef: coef),
    "bins": (Histogram(VIEW, Standard(0.0, 1e4)), lambda coef: (coef, 0.5)),
    "IR push": (
        Priced(VIEW, Log1p(), (End(True), End(False, -0.5)), 2),
        lambda coef: (coef, [3.0, 2.0]),
    ),
    "exponential price": (
        Priced(VIEW, Exponential(), (End(False), End(True)), 2),
        lambda coef: (coef / 1e4, [1.0, 0.0]),
    ),
    "proper loss": (Pointwise(VIEW, Logistic(), 2), lambda coef: np.append(coef, 0.1)),
}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, rng.random(n) < 0.4, rng.integers(0, 3, size=n).astype(float)


def numbers(partial):
    """All numbers of a partial sum, the scaled ones on their own scale."""
    found = []

    def visit(part):
        if part is None:
            return
        if isinstance(part, dict):
            part = [part[key] for key in sorted(part)]
        if isinstance(part, list | tuple):
            for one in part:
                visit(one)
        elif hasattr(part, "__dict__"):
            visit(list(vars(part).values()))
        else:
            found.append(np.ravel(np.asarray(part, dtype=float)))

    visit(partial)
    return np.sort(np.concatenate(found)) if found else np.zeros(0)


@pytest.mark.parametrize("name", SWEEPS)
@given(data=st.data())
def test_merging_is_associative_and_commutative_to_rounding(name, data):
    sweep, state = SWEEPS[name]
    n = data.draw(st.integers(1, 60))
    X, y, weight = rows(n, data.draw(st.integers(0, 10**6)))
    scale = data.draw(st.sampled_from([0.1, 1.0, 1e4]))  # of the scores
    given_state = state(np.array([scale, -scale, 0.5 * scale]))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    parts = [
        sweep.local(Block(i, *piece), given_state)
        for i, piece in enumerate(
            zip(*(np.split(part, cuts) for part in (X, y, weight)), strict=True)
        )
    ]
    parts = [parts[i] for i in data.draw(st.permutations(range(len(parts))))]
    while len(parts) > 1:  # any two neighbours, in either order
        place = data.draw(st.integers(0, len(parts) - 2))
        pair = data.draw(st.permutations(parts[place : place + 2]))
        parts[place : place + 2] = [sweep.merge(*pickle.loads(pickle.dumps(pair)))]
    merged = numbers(parts[0])
    whole = numbers(sweep.local(Block(0, X, y, weight), given_state))
    finite = np.isfinite(whole)
    np.testing.assert_array_equal(merged[~finite], whole[~finite])
    size = np.abs(whole[finite]).max(initial=1e-300)
    np.testing.assert_allclose(merged[finite], whole[finite], rtol=1e-9, atol=1e-13 * size)


KINDS = {
    "array": np.asarray,
    "by columns": np.asfortranarray,
    "columns of a file": lambda X: Columns(list(X.T.copy()), len(X), X.dtype),
    "sparse": sparse.csr_array,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 500])
class TestOpenBlocks:
    centre = np.array([1.0, 4.0, 0.5])

    def opened(self, kind, n):
        X, y, weight = rows(n, 1)
        units = Units() if kind == "sparse" else Units(self.centre)
        view = View(VIEW.classes, VIEW.class_weight, units)
        block = Block(0, KINDS[kind](X), y, weight)
        return OpenBlock(block, view), X if units.plain else X - self.centre, y, weight

    def test_give_the_products_of_the_matrix(self, kind, n):
        opened, X, _, _ = self.opened(kind, n)
        coef, v = np.array([1.0, -2.0, 0.5]), np.linspace(0.1, 1, n)
        np.testing.assert_allclose(opened.scores(coef), X @ coef, atol=1e-13)
        design = opened.design
        np.testing.assert_allclose(design.adjoint(v), X.T @ v, atol=1e-10)
        np.testing.assert_allclose(design.second_moments(v), X.T @ (v[:, None] * X), atol=1e-10)
        np.testing.assert_allclose(design.sizes(-v), np.abs(X).T @ v, atol=1e-10)
        np.testing.assert_allclose(design.squares(), np.sum(X**2, axis=0), atol=1e-10)
        np.testing.assert_allclose(opened.columns(1, 3), X[:, 1:3], atol=1e-14)

    def test_give_the_tilted_sums_of_each_class(self, kind, n):
        opened, X, y, weight = self.opened(kind, n)
        coef = np.array([1.0, -2.0, 0.5])
        (end,) = opened.sum_tilted(coef, ((-1.0, 3.0),), 2)
        weight = weight * np.where(y, 1.0, 2.0)
        for tilted, tilt, members in zip(end, (-1.0, 3.0), (y, ~y), strict=True):
            w = np.where(members, weight * np.exp(tilt * (X @ coef)), 0.0)
            scale = np.exp(tilted.top) if tilted.mass else 0.0
            np.testing.assert_allclose(scale * tilted.mass, w.sum(), rtol=1e-12)
            np.testing.assert_allclose(scale * tilted.moment, X.T @ w, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                scale * mirrored(tilted.second), X.T @ (w[:, None] * X), rtol=1e-9, atol=1e-9
            )

    def test_estimate_second_moments_from_rows_drawn_by_weight(self, kind, n):
        if kind == "sparse":
            return  # sums of stored entries are exact
        opened = self.opened(kind, n)[0]
        coef = np.array([1.0, -2.0, 0.5])
        drawn = opened.drawn_moments(coef, (-1.0, 3.0), (20.0, 20.0))
        (end,) = opened.sum_tilted(coef, ((-1.0, 3.0),), 2)
        for estimate, exact in zip(drawn, end, strict=True):
            assert estimate.mass == pytest.approx(exact.mass)
            assert estimate.top == exact.top
            wanted = mirrored(exact.second)
            size = np.abs(wanted).max(initial=1e-300)
            np.testing.assert_allclose(mirrored(estimate.second), wanted, atol=0.02 * size)

    def test_say_how_far_apart_the_classes_are(self, kind, n):
        opened, X, y, weight = self.opened(kind, n)
        coef = np.array([1.0, -2.0, 0.5])
        lowest, highest = opened.extremes(coef)
        there = weight > 0
        assert lowest == pytest.approx(min((X @ coef)[y & there], default=np.inf))
        assert highest == pytest.approx(max((X @ coef)[~y & there], default=-np.inf))


def test_drawn_moments_bear_columns_of_any_size():
    X, y, _ = rows(300, 2)
    size = np.array([1e98, 1.0, 1e-60])
    coef = np.array([1.0, -1.0, 0.5])
    small, large = (
        open_block(Block(0, table, y), View(VIEW.classes)).drawn_moments(
            at, (-1.0, 2.0), (1.0, 1.0)
        )
        for table, at in ((X, coef), (X * size, coef / size))
    )
    for one, other in zip(small, large, strict=True):
        np.testing.assert_allclose(other.second / np.outer(size, size), one.second, rtol=1e-4)


def test_rows_of_a_device_bring_no_drawn_moments_along():
    torch = pytest.importorskip("torch")
    X, y, _ = rows(50, 2)
    block = Block(0, torch.tensor(X), torch.tensor(y))
    sweep = Evaluate(View(VIEW.classes), ((-1.0, 2.0),), draw=(1.0, 1.0))
    assert sweep.local(block, np.ones(3)).drawn is None


def test_a_block_that_stays_is_opened_once_for_a_view():
    X, y, _ = rows(10, 0)
    block = Block(0, X, y)
    first = open_block(block, VIEW)
    assert open_block(block, pickle.loads(pickle.dumps(VIEW))) is first
    other = open_block(block, View(VIEW.classes, None))
    assert other is not first
    assert other.labels()[1] is None


def test_a_block_that_goes_takes_its_rows_along():
    import gc
    import weakref

    gc.disable()
    try:
        X, y, _ = rows(10, 0)
        seen = weakref.ref(X)
        block = Block(0, X, y)
        Evaluate(VIEW, TOP_AND_BOTTOM).local(block, np.zeros(3))
        del X, block
        assert seen() is None
    finally:
        gc.enable()


def test_pieces_of_a_vector_go_to_their_blocks():
    X, y, _ = rows(50, 0)
    v = np.linspace(-1, 1, 50)
    sweep, total = Products(VIEW), np.zeros(3)
    cuts = list(gen_batches(50, 7))
    state = {i: v[cut] for i, cut in enumerate(cuts)}
    for i in reversed(range(len(cuts))):
        total = sweep.merge(total, sweep.local(Block(i, X[cuts[i]], y[cuts[i]]), state))
    np.testing.assert_allclose(total, X.T @ v, atol=1e-13)
