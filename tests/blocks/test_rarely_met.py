"""What sources of blocks meet rarely, each in a small case."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from block_sources import Pieces
from scipy import sparse

from toprank import blocks
from toprank.blocks import Block, BlockSource, Units, decoded
from toprank.blocks.columns import Columns
from toprank.blocks.cuda_plans import _SHARED, plan_for, tile_plan_for, turned_plan_for
from toprank.blocks.design import HostDesign, SparseTile
from toprank.blocks.drawn import draw_rows
from toprank.blocks.memory import gather_blocks
from toprank.blocks.shared import Several, share_passes
from toprank.blocks.source import _close
from toprank.blocks.spill import Kept


class Sums:
    """The columns' sums."""

    def local(self, block, state):
        return np.sum(np.asarray(block.X[:]), axis=0) * state

    def merge(self, left, right):
        return left + right


class OneMatrix(BlockSource):
    """A source that can do nothing but its pass."""

    def __init__(self, X):
        self.X, self.n_features = X, X.shape[1]

    def map_reduce(self, sweep, state):
        return sweep.local(Block(0, self.X), state)

    def write_scores(self, score, to=None):
        return score(self.X)


def test_a_source_that_keeps_no_samples_says_so():
    source = OneMatrix(np.ones((3, 2)))
    for ask in (lambda: source.thin(lambda block: block), lambda: source.gather([])):
        with pytest.raises(TypeError, match="OneMatrix hands samples of its rows to the driver"):
            ask()
    assert source.name_of(3) == "block 3" and source.identity() == b""


def test_fits_that_share_passes_write_no_scores():
    def write(member):
        return member.write_scores(lambda X: X[:, 0])

    with pytest.raises(TypeError, match="after the fits that share their passes"):
        share_passes(OneMatrix(np.ones((3, 2))), [write])


def test_columns_of_a_file_become_rows_once_for_several_sweeps():
    X = np.arange(12.0).reshape(4, 3)
    by_columns = Columns([X[:, j].copy() for j in range(3)], 4, X.dtype)
    assert by_columns.size == 12
    seen = []

    class Looks(Sums):
        def local(self, block, state):
            seen.append(type(block.X))
            return super().local(block, state)

    found = Several((Looks(), Looks()), (0, 1)).local(Block(0, by_columns), [1.0, 2.0])
    assert seen == [np.ndarray, np.ndarray]
    np.testing.assert_array_equal(found, [X.sum(axis=0), 2 * X.sum(axis=0)])


def test_a_generator_that_another_thread_runs_is_closed_when_that_is_done():
    begun, closed = threading.Event(), []

    def slowly():
        try:
            begun.set()
            time.sleep(0.05)
            yield 1
        finally:
            closed.append(True)

    blocks_there = slowly()
    other = threading.Thread(target=lambda: next(blocks_there))
    other.start()
    begun.wait()
    _close(blocks_there)
    other.join()
    assert closed == [True]


def test_what_a_generator_raises_as_it_ends_is_raised():
    def bad():
        try:
            yield 1
        finally:
            raise ValueError("the file is gone")

    there = bad()
    next(there)
    with pytest.raises(ValueError, match="the file is gone"):
        _close(there)


@pytest.fixture
def parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"x": np.arange(10.0), "y": np.arange(10) % 2})
    table.to_parquet(tmp_path / "rows.parquet")
    return blocks.from_parquet(tmp_path, "y", block_rows=4)


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        ([3, 4, 3], RuntimeError, "pieces of another size than asked for"),
        ([4, 4], ValueError, "row group 0 has 8 of the 10 rows that it announces"),
    ],
)
def test_rows_that_arrow_hands_over_otherwise_are_refused(parquet, monkeypatch, sizes, error, said):
    part = parquet.parts[0]
    with part.open_pass() as file:
        whole = next(file.iter_batches(10))
    ends = np.cumsum([0, *sizes])

    class Odd:
        def iter_batches(self, *_, columns, **__):
            picked = whole.select(columns)
            return (picked.slice(a, b - a) for a, b in pairwise(ends))

    @contextmanager
    def odd_pass(self):
        yield Odd()

    monkeypatch.setattr(type(part), "open_pass", odd_pass)
    with pytest.raises(error, match=said):
        list(parquet.read())


def test_a_block_is_named_by_its_file_and_rows(parquet):
    assert parquet.name_of(2).endswith("rows.parquet, row group 0, rows 8 to 9")


def test_blocks_of_sparse_rows_are_put_together():
    X = sparse.csr_array(np.eye(5))
    source = gather_blocks([Block(0, X[:2]), Block(1, X[2:2]), Block(2, X[2:])])
    (block,) = source.read()
    assert sparse.issparse(block.X) and np.array_equal(block.X.toarray(), np.eye(5))


@pytest.mark.parametrize("damage", [b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', ", b"no numbers", b""])
def test_a_damaged_file_of_numbers_is_named(tmp_path, damage):
    (tmp_path / "X.npy").write_bytes(damage)
    with pytest.raises(ValueError, match=r"X\.npy is not a whole \.npy file of numbers"):
        blocks.from_memmap(tmp_path / "X.npy", np.zeros(1))
    with pytest.raises(FileNotFoundError):
        blocks.from_memmap(tmp_path / "none.npy", np.zeros(1))


def test_a_spilled_file_that_is_another_is_refused(tmp_path):
    import zlib

    array = np.arange(6.0)
    array.tofile(tmp_path / "x")
    kept = Kept("x", (3, 2), "<f8", zlib.crc32(array.tobytes()))
    assert np.array_equal(kept.map(tmp_path), array.reshape(3, 2))
    assert replace(kept, shape=(0, 2)).map(tmp_path).shape == (0, 2)
    with pytest.raises(ValueError, match="x has 48 of 64 bytes"):
        replace(kept, shape=(4, 2)).map(tmp_path)
    (array + 1).tofile(tmp_path / "x")
    with pytest.raises(ValueError, match="holds other bytes than were written"):
        kept.map(tmp_path)


def test_a_matrix_is_a_tile_of_its_own():
    X = np.ones((3, 2))
    (tile,) = decoded._tiles(X, True)
    assert tile is X


@pytest.mark.parametrize("columns", [1, 7, 31, 64, 100, 230, 390, 700, 1024])
@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("by_column", [False, True])
def test_the_blocks_of_a_plan_fit_into_the_memory_that_they_share(columns, size, by_column):
    plans = (
        plan_for(columns, size, by_column),
        *(tile_plan_for(columns, size, by_column, beside) for beside in (1, 4)),
        *(turned_plan_for(columns, size, by_column, beside) for beside in (1, 2, 4)),
    )
    for plan in plans:
        if plan is not None:
            blocks_there = plan.blocks(columns, size)
            assert blocks_there >= 1 and plan.threads <= 1024
            assert blocks_there * plan.shared(columns, size) <= _SHARED


def test_a_table_of_too_many_columns_has_no_plan_for_tiles():
    with pytest.raises(ValueError, match="1025 columns; expected at most 1,024"):
        tile_plan_for(1025, 4, True)


def test_rows_of_a_sparse_tile_are_not_taken_twice():
    taken = SparseTile(sparse.csr_array(np.eye(3))).take(np.array([0, 2]))
    with pytest.raises(TypeError, match="SparseRows does not gather rows"):
        taken.take(np.array([0]))


def test_moments_of_dense_rows_are_those_of_the_plain_products():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(50, 3)) * [1.0, 1e20, 0.0], rng.random(50)
    design, rows = HostDesign(X, Units()), np.arange(0, 50, 2)
    part, w = X[rows], weight[rows]
    first, second = design.scaled_moments(rows, w)
    np.testing.assert_allclose(first, w @ part, rtol=1e-12)
    np.testing.assert_allclose(second, part.T @ (w[:, None] * part), rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(
        design.second_moments(weight), X.T @ (weight[:, None] * X), rtol=1e-12
    )


@pytest.mark.parametrize("stored", [False, True])
def test_rows_are_drawn_beside_gaps_and_huge_numbers_and_refused_beside_infinities(stored):
    X = np.ones((60, 3))
    X[7, 1], X[8, 2] = np.nan, 1e200
    y = np.arange(60) % 2
    form = sparse.csr_array if stored else np.asarray
    drawn = draw_rows(Pieces([(form(X), y)]), 100, 60, seed=0)
    np.testing.assert_array_equal(drawn.X, X)
    X[30, 2] = -np.inf
    with pytest.raises(ValueError, match=r"infinity.*column 2"):
        draw_rows(Pieces([(form(X), y)]), 10, 60, seed=0)
