"""Arrays and mapped files as block sources: fixed cuts, no copies, clear refusals."""

import os

import numpy as np
import pytest
from scipy import sparse

from toprank import PNormPush
from toprank.blocks import Block, from_arrays, from_memmap

X = np.random.default_rng(0).normal(size=(1000, 3))
Y = (X[:, 0] + np.sin(np.arange(1000)) > 0).astype(int)


class Count:
    """A sweep that lists the blocks it sees."""

    def local(self, block: Block, state):
        return [(block.index, block.n_rows)]

    def merge(self, left, right):
        return left + right


def test_the_cuts_do_not_depend_on_the_number_of_threads():
    one, four = (
        from_arrays(X, Y, block_rows=130, n_jobs=n_jobs).map_reduce(Count(), None)
        for n_jobs in (1, 4)
    )
    assert one == four == [(i, 130) for i in range(7)] + [(7, 90)]


def test_blocks_of_a_sparse_matrix_are_cut_by_what_it_stores():
    rng = np.random.default_rng(0)
    column = rng.integers(0, 40, size=60_000)
    thin = sparse.csr_array((np.ones(60_000), column, np.arange(60_001)), (60_000, 40))
    assert [block.n_rows for block in from_arrays(thin).blocks] == [60_000]
    assert from_arrays(thin).stored == 60_000
    full = sparse.csr_array(rng.normal(size=(20_000, 40)))
    assert [block.n_rows for block in from_arrays(full).blocks] == [8192, 8192, 3616]


def test_blocks_are_views_of_the_array():
    source = from_arrays(X, Y, block_rows=300)
    assert all(np.shares_memory(block.X, X) for block in source.read())


def test_no_rows_are_one_empty_block():
    assert from_memmap(X[:0], Y[:0]).map_reduce(Count(), None) == [(0, 0)]


def test_an_error_in_one_block_reaches_the_caller_and_ends_the_threads():
    class Fails(Count):
        def local(self, block, state):
            if block.index == 3:
                raise ZeroDivisionError
            return super().local(block, state)

    source = from_arrays(X, Y, block_rows=10, n_jobs=3)
    with pytest.raises(ZeroDivisionError):
        source.map_reduce(Fails(), None)
    assert len(source.map_reduce(Count(), None)) == 100


@pytest.mark.parametrize("kind", ["npy", "raw", "mapped"])
def test_a_mapped_file_fits_as_the_array_does(tmp_path, kind):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    X.astype(np.float32).tofile(tmp_path / "X.raw")
    source = {
        "npy": lambda: from_memmap(tmp_path / "X.npy", tmp_path / "y.npy", block_rows=64),
        "raw": lambda: from_memmap(tmp_path / "X.raw", Y, shape=X.shape, dtype="float32"),
        "mapped": lambda: from_memmap(np.load(tmp_path / "X.npy", mmap_mode="r"), Y),
    }[kind]()
    array = X.astype(np.float32) if kind == "raw" else X
    fitted = PNormPush().fit_blocks(source)
    np.testing.assert_allclose(fitted.coef_, PNormPush().fit(array, Y).coef_, rtol=1e-11)


def test_weights_may_be_a_mapped_file_too(tmp_path):
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "w.npy", counts)
    source = from_memmap(tmp_path / "X.npy", Y, tmp_path / "w.npy")
    weighted = PNormPush().fit(X, Y, counts)
    np.testing.assert_allclose(PNormPush().fit_blocks(source).coef_, weighted.coef_, rtol=1e-11)
    os.utime(tmp_path / "w.npy", ns=(1, 1))
    with pytest.raises(RuntimeError, match=r"w\.npy has changed"):
        PNormPush().fit_blocks(source)


def test_scores_can_go_to_a_file(tmp_path):
    model = PNormPush().fit(X, Y)
    to = tmp_path / "scores.npy"
    assert model.score_blocks(from_arrays(X, block_rows=64), to) == to
    np.testing.assert_allclose(np.load(to), model.decision_function(X), rtol=1e-12)
    assert os.listdir(tmp_path) == ["scores.npy"]


class TestRefusals:
    def test_labels_and_weights_must_be_one_a_row(self):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[1000, 999\]"):
            from_arrays(X, Y[1:])
        with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
            from_arrays(sparse.csr_array(X), Y, np.ones(3))

    def test_blocks_need_rows(self):
        with pytest.raises(ValueError, match="block_rows=0"):
            from_arrays(X, Y, block_rows=0)

    def test_a_file_of_bare_numbers_must_have_the_size_its_shape_takes(self, tmp_path):
        X.tofile(tmp_path / "X.raw")
        with pytest.raises(ValueError, match=r"has 24000 bytes; shape \(1000, 4\) of float64"):
            from_memmap(tmp_path / "X.raw", Y, shape=(1000, 4), dtype=float)
        with pytest.raises(ValueError, match=r"needs both shape=\(n, d\) and dtype="):
            from_memmap(tmp_path / "X.raw", Y, shape=(1000, 3))

    def test_a_file_must_hold_a_matrix_of_numbers(self, tmp_path):
        np.save(tmp_path / "X.npy", Y)
        with pytest.raises(ValueError, match=r"shape \(1000,\).*expected a matrix"):
            from_memmap(tmp_path / "X.npy", Y)
