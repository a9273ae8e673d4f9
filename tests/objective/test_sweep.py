"""The mergeable sweep: parts of the data in any grouping, by any kernel, in any thread."""

import numpy as np
import pytest
from scipy.special import logsumexp

from toprank.blocks import RowBlocks, Units, Workers
from toprank.objective import sweep
from toprank.objective.sweep import Tilted, TiltedSweep


def data(n=5000, d=6, rare=0.2, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rare
    return rng.normal(size=(n, d)) + 0.3 * positive[:, None], positive


def part(rng, offset=0.0, n=40, d=3, order=2):
    tilted = Tilted.empty(d, order)
    tilted.add(rng.normal(size=(n, d)), rng.normal(size=n) + offset)
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
            piece.add(block, exponent)
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
    swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, None, ((-1.0, p),))
    ((pos, neg),) = swept.run(np.array([1.0, 0.0]))
    assert pos.log_mass == pytest.approx(logsumexp(-X[positive, 0]), rel=1e-13)
    assert neg.log_mass == pytest.approx(logsumexp(p * X[~positive, 0]), rel=1e-13)
    assert np.isfinite(pos.mean).all()
    assert np.isfinite(neg.mean).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rare", [0.1, 0.9])
@pytest.mark.parametrize("tilts", [((-1.0, 4.0),), ((-4.0, 1.0),), ((-1.0, 16.0), (-16.0, 1.0))])
def test_the_compiled_kernel_equals_the_numpy_sweep(tilts, rare, weighted, dtype, monkeypatch):
    pytest.importorskip("numba")
    X, positive = data(rare=rare)
    X = X.astype(dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight) if weighted else None
    coef = np.linspace(-3, 3, X.shape[1])
    swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, log_weight, tilts)
    assert not swept.compiled
    plain = swept.run(coef)
    scores = swept.scores(coef).copy()
    monkeypatch.setattr(sweep, "COMPILED_FROM", 0)
    assert swept.compiled
    compiled = swept.run(coef)
    np.testing.assert_allclose(swept.scores(coef), scores, rtol=1e-12, atol=1e-12)
    for end, other in zip(plain, compiled, strict=True):
        for tilted, again in zip(end, other, strict=True):
            assert again.log_mass == pytest.approx(tilted.log_mass, rel=1e-13)
            np.testing.assert_allclose(again.mean, tilted.mean, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "X", [np.asfortranarray(np.ones((4, 2))), np.ones((4, 2), dtype=np.int64)], ids=["F", "int"]
)
def test_the_compiled_kernel_leaves_other_layouts_alone(X, monkeypatch):
    monkeypatch.setattr(sweep, "COMPILED_FROM", 0)
    positive = np.array([True, False, True, False])
    assert not TiltedSweep(RowBlocks(X, Workers(1)), positive, None, ((-1.0, 1.0),)).compiled


def test_the_compiled_kernel_leaves_centred_columns_alone(monkeypatch):
    monkeypatch.setattr(sweep, "COMPILED_FROM", 0)
    source = RowBlocks(np.ones((4, 2)), Workers(1), Units(centre=np.ones(2)))
    positive = np.array([True, False, True, False])
    assert not TiltedSweep(source, positive, None, ((-1.0, 1.0),)).compiled


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("compiled", [False, True])
def test_any_number_of_threads_gives_the_same_bits(compiled, order, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(sweep, "COMPILED_FROM", 0)
    X, positive = data(n=60_000)
    results = []
    for n_jobs in (1, 2, 5):
        workers = Workers(n_jobs)
        swept = TiltedSweep(RowBlocks(X, workers), positive, None, ((-1.0, 4.0),))
        with workers.running():
            ((pos, neg),) = swept.run(np.linspace(-1, 1, 6), order)
        results.append([(t.top, t.mass, t.moment.tolist()) for t in (pos, neg)])
    assert results[0] == results[1] == results[2]


def test_blocks_that_hold_one_class_only_are_merged_like_any_other():
    X, _ = data(n=40_000)
    coef = np.linspace(-1, 1, 6)
    sorted_labels = np.arange(len(X)) < 9000
    ((pos, neg),) = TiltedSweep(RowBlocks(X, Workers(1)), sorted_labels, None, ((-1.0, 2.0),)).run(
        coef
    )
    assert pos.log_mass == pytest.approx(logsumexp(-X[:9000] @ coef), rel=1e-13)
    assert neg.log_mass == pytest.approx(logsumexp(2 * X[9000:] @ coef), rel=1e-13)


def test_the_kept_scores_are_those_of_the_last_coefficients():
    X, positive = data()
    swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, None, ((-1.0, 4.0),))
    first, second = np.linspace(-1, 1, 6), np.linspace(2, 0, 6)
    swept.run(first)
    np.testing.assert_allclose(swept.scores(second), X @ second, atol=1e-12)
    swept.run(second)
    np.testing.assert_allclose(swept.scores(first), X @ first, atol=1e-12)
    np.testing.assert_allclose(swept.scores(second), X @ second, atol=1e-12)


class TestSampledMoments:
    def test_a_sample_as_large_as_the_class_is_close_to_the_moments(self):
        X, positive = data(n=20_000)
        coef = np.linspace(-0.5, 0.5, 6)
        swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, None, ((-1.0, 4.0),))
        ((pos, neg),) = swept.run(coef, order=2)
        ((some_pos, some_neg),) = swept.sampled(coef, 20_000)
        np.testing.assert_allclose(some_pos.covariance, pos.covariance, atol=0.1)
        np.testing.assert_allclose(some_neg.covariance, neg.covariance, atol=0.1)

    def test_rows_of_weight_zero_are_never_drawn(self):
        X, positive = data(n=20_000)
        weight = (np.arange(len(X)) % 2).astype(float)
        X[weight == 0] = 1e6
        with np.errstate(divide="ignore"):
            log_weight = np.log(weight)
        swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, log_weight, ((-1.0, 4.0),))
        ((pos, neg),) = swept.sampled(np.zeros(6), 500)
        assert np.abs(pos.mean).max() < 10
        assert np.abs(neg.mean).max() < 10

    def test_a_class_with_one_row_of_weight_keeps_it(self):
        X, positive = data(n=50_000)
        weight = np.where(positive, 0.0, 1.0)
        only = np.flatnonzero(positive)[7]
        weight[only] = 1.0
        with np.errstate(divide="ignore"):
            log_weight = np.log(weight)
        swept = TiltedSweep(RowBlocks(X, Workers(1)), positive, log_weight, ((-1.0, 4.0),))
        ((pos, _),) = swept.sampled(np.zeros(6), 100)
        np.testing.assert_allclose(pos.mean, X[only])
