"""The mergeable sweep: parts of the data in any grouping, by any kernel, in any thread."""

import numpy as np
import pytest
from scipy.special import logsumexp

from toprank.blocks import Block, Units, Workers
from toprank.blocks.design import DenseTile
from toprank.objective import LabelledData, View, labelled, open_block
from toprank.objective.sampled import sampled_moments
from toprank.objective.sums import ScoreHistogram, Standard, Tilted
from toprank.objective.sweeps import Evaluate


def data(n=5000, d=6, rare=0.2, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rare
    return rng.normal(size=(n, d)) + 0.3 * positive[:, None], positive


def opened(X, positive, weight=None, units=None):
    view = View(np.array([False, True]), None, units or Units(), entries=X.size)
    return open_block(Block(0, X, positive, weight), view)


def part(rng, offset=0.0, n=40, d=3, order=2):
    tilted = Tilted.empty(d, order)
    tilted.add(DenseTile(rng.normal(size=(n, d))), rng.normal(size=n) + offset)
    return tilted


def copy(tilted):
    second = None if tilted.second is None else tilted.second.copy()
    return Tilted(tilted.moment.copy(), second, tilted.top, tilted.mass)


def facts(tilted):
    return np.concatenate([[tilted.log_mass], tilted.mean, tilted.covariance.ravel()])


@pytest.mark.parametrize("offsets", [(0, 0, 0), (0, 30, -30), (1e4, -1e4, 0), (-700, 700, 1e4)])
class TestMerging:
    def parts(self, offsets):
        rng = np.random.default_rng(1)
        return [part(rng, offset) for offset in offsets]

    def test_is_associative(self, offsets):
        a, b, c = self.parts(offsets)
        left = copy(a).merge(copy(b)).merge(copy(c))
        right = copy(a).merge(copy(b).merge(copy(c)))
        np.testing.assert_allclose(facts(left), facts(right), rtol=1e-13, atol=1e-13)

    def test_is_commutative(self, offsets):
        a, b, _ = self.parts(offsets)
        one, other = copy(a).merge(copy(b)), copy(b).merge(copy(a))
        np.testing.assert_allclose(facts(one), facts(other), rtol=1e-13, atol=1e-13)

    def test_with_nothing_changes_nothing(self, offsets):
        for tilted in self.parts(offsets):
            before = facts(tilted)
            np.testing.assert_array_equal(facts(copy(tilted).merge(Tilted.empty(3, 2))), before)
            np.testing.assert_array_equal(facts(Tilted.empty(3, 2).merge(copy(tilted))), before)

    def test_equals_one_pass_over_all_rows(self, offsets):
        rng = np.random.default_rng(2)
        rows = [rng.normal(size=(30, 3)) for _ in offsets]
        exponents = [rng.normal(size=30) + offset for offset in offsets]
        merged = Tilted.empty(3, 2)
        for block, exponent in zip(rows, exponents, strict=True):
            piece = Tilted.empty(3, 2)
            piece.add(DenseTile(block), exponent.copy())
            merged.merge(piece)
        block, exponent = np.vstack(rows), np.concatenate(exponents)
        share = np.exp(exponent - logsumexp(exponent))
        mean = share @ block
        assert merged.log_mass == pytest.approx(logsumexp(exponent), rel=1e-14)
        np.testing.assert_allclose(merged.mean, mean, rtol=1e-12, atol=1e-12)
        around = block - mean
        np.testing.assert_allclose(
            merged.covariance, (around * share[:, None]).T @ around, atol=1e-12
        )


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("p", [1.0, 4.0, 1000.0])
def test_scores_of_any_size_neither_overflow_nor_vanish(p, scale):
    X, positive = data(d=2)
    X[:, 0] = np.linspace(-scale, scale, len(X))
    ((pos, neg),) = opened(X, positive).sum_tilted(np.array([1.0, 0.0]), ((-1.0, p),))
    assert pos.log_mass == pytest.approx(logsumexp(-X[positive, 0]), rel=1e-13)
    assert neg.log_mass == pytest.approx(logsumexp(p * X[~positive, 0]), rel=1e-13)
    assert np.isfinite(pos.mean).all()
    assert np.isfinite(neg.mean).all()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rare", [0.1, 0.9])
@pytest.mark.parametrize("tilts", [((-1.0, 4.0),), ((-4.0, 1.0),), ((-1.0, 16.0), (-16.0, 1.0))])
@pytest.mark.parametrize(("order", "d"), [(1, 6), (2, 6), (2, 7)])
def test_the_compiled_kernel_equals_the_numpy_sweep(
    order, d, tilts, rare, weighted, dtype, monkeypatch
):
    pytest.importorskip("numba")
    X, positive = data(d=d, rare=rare)
    X = X.astype(dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    coef = np.linspace(-3, 3, X.shape[1])
    rows = opened(X, positive, weight if weighted else None)
    plain = rows.sum_tilted(coef, tilts, order)
    scores = rows.scores(coef).copy()
    monkeypatch.setattr(labelled, "COMPILED_FROM", 0)
    assert rows.design.kernel == "numba"
    compiled = rows.sum_tilted(coef, tilts, order)
    np.testing.assert_allclose(rows.scores(coef), scores, rtol=1e-12, atol=1e-12)
    for end, other in zip(plain, compiled, strict=True):
        for tilted, again in zip(end, other, strict=True):
            assert again.log_mass == pytest.approx(tilted.log_mass, rel=1e-13)
            np.testing.assert_allclose(again.mean, tilted.mean, rtol=1e-11, atol=1e-12)
            if order == 2:
                np.testing.assert_allclose(again.covariance, tilted.covariance, atol=1e-11)


@pytest.mark.parametrize("size", [1e-6, 1e8])
def test_compiled_second_moments_leave_no_row_out_that_its_entries_make_heavy(size, monkeypatch):
    pytest.importorskip("numba")
    X, positive = data(n=1000, d=3)
    X[:, 2] *= size
    X[:, 0] *= 10.0  # weights from 1 to e^-70 and less
    rows, coef = opened(X, positive), np.array([1.0, 0.1, 0.0])
    ((_, plain),) = rows.sum_tilted(coef, ((-1.0, 4.0),), 2)
    monkeypatch.setattr(labelled, "COMPILED_FROM", 0)
    ((_, again),) = rows.sum_tilted(coef, ((-1.0, 4.0),), 2)
    found, wanted = np.triu(again.second), np.triu(plain.second)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_bins_hold_what_plain_ones_do(weighted):
    pytest.importorskip("numba")
    from toprank.objective.kernels_numba import histogram_of

    rng = np.random.default_rng(7)
    scores, positive = rng.standard_cauchy(size=3000), rng.random(3000) < 0.3
    edges = 3.0 + 2.0 * np.array([-8.0, 8.0, -8.0 + 1 / 256, np.nextafter(8.0, 0), 0.0])
    scores[:5] = edges
    weight = rng.integers(0, 3, 3000).astype(float) if weighted else None
    standard = Standard(3.0, 2.0)
    plain, compiled = (
        make(scores, positive, weight, standard) for make in (ScoreHistogram.of, histogram_of)
    )
    np.testing.assert_array_equal(compiled.mass, plain.mass)
    np.testing.assert_allclose(compiled.moment, plain.moment, rtol=1e-13, atol=1e-13)
    assert len(plain.outside) == len(compiled.outside) == 1
    for one, other in zip(plain.outside[0], compiled.outside[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_compiled_second_moments_of_many_columns_are_left_to_matrix_products(monkeypatch):
    pytest.importorskip("numba")
    from toprank.objective import kernels_numba

    monkeypatch.setattr(labelled, "COMPILED_FROM", 0)
    monkeypatch.setattr(kernels_numba, "MOST_SQUARED", 5)
    monkeypatch.delattr(kernels_numba, "tilted_squares")
    rows = opened(*data(n=100))
    ((_, negatives),) = rows.sum_tilted(np.zeros(6), ((-1.0, 4.0),), 2)
    assert negatives.second.shape == (6, 6)


@pytest.mark.parametrize(
    "X", [np.asfortranarray(np.ones((4, 2))), np.ones((4, 2), dtype=np.int64)], ids=["F", "int"]
)
def test_the_compiled_kernel_leaves_other_layouts_alone(X):
    assert opened(X, np.array([True, False, True, False])).design.kernel is None


def test_the_compiled_kernel_leaves_centred_columns_alone():
    rows = opened(np.ones((4, 2)), np.arange(4) < 2, units=Units(centre=np.ones(2)))
    assert rows.design.kernel is None


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("compiled", [False, True])
def test_any_number_of_threads_gives_the_same_bits(compiled, order, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(labelled, "COMPILED_FROM", 0)
    X, positive = data(n=60_000)
    results = []
    for n_jobs in (1, 2, 5):
        rows = LabelledData.of_arrays(X, positive)
        sweep = Evaluate(rows.view, ((-1.0, 4.0),), order)
        with Workers(n_jobs).start_threads():
            ((pos, neg),) = rows.run(sweep, np.linspace(-1, 1, 6)).ends
        results.append([(t.top, t.mass, t.moment.tolist()) for t in (pos, neg)])
    assert results[0] == results[1] == results[2]


def test_blocks_that_hold_one_class_only_are_merged_like_any_other():
    X, _ = data(n=40_000)
    coef = np.linspace(-1, 1, 6)
    sorted_labels = np.arange(len(X)) < 9000
    rows = LabelledData.of_arrays(X, sorted_labels)
    ((pos, neg),) = rows.run(Evaluate(rows.view, ((-1.0, 2.0),)), coef).ends
    assert pos.log_mass == pytest.approx(logsumexp(-X[:9000] @ coef), rel=1e-13)
    assert neg.log_mass == pytest.approx(logsumexp(2 * X[9000:] @ coef), rel=1e-13)


def test_the_kept_scores_are_those_of_the_last_coefficients():
    X, positive = data()
    rows, tilts = opened(X, positive), ((-1.0, 4.0),)
    first, second = np.linspace(-1, 1, 6), np.linspace(2, 0, 6)
    rows.sum_tilted(first, tilts)
    np.testing.assert_allclose(rows.scores(second), X @ second, atol=1e-12)
    rows.sum_tilted(second, tilts)
    np.testing.assert_allclose(rows.scores(first), X @ first, atol=1e-12)
    np.testing.assert_allclose(rows.scores(second), X @ second, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_settings_at_once_give_the_sums_of_each(weighted):
    X, positive = data()
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    rows = opened(X, positive, weight if weighted else None)
    coefs = np.random.default_rng(1).normal(size=(4, 6))
    tilts = np.column_stack([np.full(4, -1.0), [1.0, 4.0, 16.0, 256.0]])
    ((pos, neg),) = rows.sum_tilted(coefs, ((tilts[:, :1], tilts[:, 1:]),))
    for i, coef in enumerate(coefs):
        ((one, other),) = rows.sum_tilted(coef, (tuple(tilts[i]),))
        for many, single in ((pos, one), (neg, other)):
            assert many.log_mass[i] == pytest.approx(single.log_mass, rel=1e-13)
            np.testing.assert_allclose(many.mean[i], single.mean, rtol=1e-11, atol=1e-12)


class TestSampledMoments:
    def test_a_sample_as_large_as_the_class_is_close_to_the_moments(self):
        X, positive = data(n=20_000)
        coef, tilts = np.linspace(-0.5, 0.5, 6), (-1.0, 4.0)
        rows = LabelledData.of_arrays(X, positive)
        ((pos, neg),) = rows.run(Evaluate(rows.view, (tilts,), 2), coef).ends
        some_pos, some_neg = sampled_moments(rows, coef, tilts, 20_000)
        np.testing.assert_allclose(some_pos.covariance, pos.covariance, atol=0.1)
        np.testing.assert_allclose(some_neg.covariance, neg.covariance, atol=0.1)

    def test_rows_of_weight_zero_are_never_drawn(self):
        X, positive = data(n=20_000)
        weight = (np.arange(len(X)) % 2).astype(float)
        X[weight == 0] = 1e6
        rows = LabelledData.of_arrays(X, positive, weight)
        pos, neg = sampled_moments(rows, np.zeros(6), (-1.0, 4.0), 500)
        for mean in (pos.mean, neg.mean):
            raw = mean + (0.0 if rows.units.centre is None else rows.units.centre)
            assert np.abs(raw).max() < 10

    def test_a_class_with_one_row_of_weight_keeps_it(self):
        X, positive = data(n=50_000)
        weight = np.where(positive, 0.0, 1.0)
        only = np.flatnonzero(positive)[7]
        weight[only] = 1.0
        rows = LabelledData.of_arrays(X, positive, weight)
        pos, _ = sampled_moments(rows, np.zeros(6), (-1.0, 4.0), 100)
        np.testing.assert_allclose(pos.mean, X[only])

    def test_the_draw_does_not_depend_on_the_cuts(self):
        from toprank import blocks
        from toprank.rankers.blockwise import look

        X, positive = data(n=50_000)
        found = [
            sampled_moments(
                look(blocks.from_arrays(X, positive, block_rows=rows), None, 0),
                np.linspace(-1, 1, 6),
                (-1.0, 4.0),
                700,
            )
            for rows in (50_000, 8192, 1013)
        ]
        for pos, neg in found[1:]:
            np.testing.assert_allclose(pos.covariance, found[0][0].covariance, atol=1e-12)
            np.testing.assert_allclose(neg.covariance, found[0][1].covariance, atol=1e-12)
