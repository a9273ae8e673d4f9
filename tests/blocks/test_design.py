"""Whatever the layout of X, its blocks give X @ b and X.T @ v, and X is left as it was."""

import threading

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from toprank import PNormPush
from toprank.blocks import Block, Units, Workers, from_arrays
from toprank.blocks.design import HostDesign, design_of

N, D = 20_000, 7
DENSE = (np.random.default_rng(0).normal(size=(N, D)) * 3).round(2)


def memory_mapped(folder):
    path = folder / "x.npy"
    np.save(path, DENSE)
    return np.load(path, mmap_mode="r")


def read_only(folder):
    X = DENSE.copy()
    X.flags.writeable = False
    return X


def with_explicit_zeros(folder):
    X = sparse.csr_array(DENSE)
    X.data[::3] = 0.0
    return X


def with_wide_indices(folder):
    X = sparse.csr_array(np.where(DENSE > 2, DENSE, 0.0))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


LAYOUTS = {
    "C order": lambda folder: DENSE.copy(),
    "F order": lambda folder: np.asfortranarray(DENSE),
    "float32": lambda folder: DENSE.astype(np.float32),
    "uint8": lambda folder: np.abs(DENSE).astype(np.uint8) + np.uint8(200),
    "int8": lambda folder: DENSE.astype(np.int8) - np.int8(100),
    "bool": lambda folder: DENSE > 0,
    "int64": lambda folder: DENSE.astype(np.int64),
    "big-endian": lambda folder: DENSE.astype(">f8"),
    "every other row": lambda folder: np.repeat(DENSE, 2, axis=0)[::2],
    "every other column": lambda folder: np.repeat(DENSE, 2, axis=1)[:, ::2],
    "backwards": lambda folder: DENSE[::-1, ::-1],
    "read-only": read_only,
    "memory-mapped": memory_mapped,
    "sparse": lambda folder: sparse.csr_array(np.where(DENSE > 2, DENSE, 0.0)),
    "sparse matrix": lambda folder: sparse.csr_matrix(np.where(DENSE > 2, DENSE, 0.0)),
    "sparse float32": lambda folder: sparse.csr_array(DENSE.astype(np.float32)),
    "sparse uint8": lambda folder: sparse.csr_array(np.abs(DENSE * 20).astype(np.uint8)),
    "sparse bool": lambda folder: sparse.csr_array(DENSE > 2),
    "explicit zeros": with_explicit_zeros,
    "int64 indices": with_wide_indices,
    "one row": lambda folder: DENSE[:1],
    "one column": lambda folder: DENSE[:, :1],
    "empty sparse": lambda folder: sparse.csr_array((50, D)),
}


@pytest.fixture(params=LAYOUTS, ids=lambda name: name.replace(" ", "-"))
def X(request, tmp_path):
    return LAYOUTS[request.param](tmp_path)


def dense(X):
    return (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float64)


@pytest.mark.parametrize("units", ["plain", "centred"])
class TestProducts:
    def design(self, X, units):
        unit = Units()
        if units == "centred" and not sparse.issparse(X):
            unit = Units(np.linspace(-2, 2, X.shape[1]))
        expected = dense(X)
        return design_of(X, unit), expected if unit.plain else expected - unit.centre

    @pytest.mark.sampled(3)
    def test_scores_are_rows_times_coefficients(self, X, units):
        design, expected = self.design(X, units)
        coef = np.linspace(-1, 1, X.shape[1])
        scores = design.scores(coef)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, expected @ coef, rtol=1e-12, atol=1e-10)
        many = np.array([coef, -2.0 * coef])
        for rows, tile in design.tiles():
            np.testing.assert_allclose(
                tile.scores(many), many @ expected[rows].T, rtol=1e-12, atol=1e-10
            )

    @pytest.mark.sampled(3)
    def test_the_adjoint_is_columns_times_row_weights(self, X, units):
        design, expected = self.design(X, units)
        v = np.random.default_rng(1).normal(size=(X.shape[0], 2))
        one, two = design.adjoint(v[:, 0]), design.adjoint(v)
        atol = 1e-11 * (1 + np.abs(expected).sum(axis=0).max())
        np.testing.assert_allclose(one, expected.T @ v[:, 0], rtol=0, atol=atol)
        np.testing.assert_allclose(two, expected.T @ v, rtol=0, atol=atol)
        np.testing.assert_allclose(
            design.sizes(v[:, 0]), np.abs(expected).T @ np.abs(v[:, 0]), rtol=1e-11, atol=atol
        )

    @pytest.mark.sampled(3)
    def test_columns_rows_and_squares_are_those_of_the_matrix(self, X, units):
        design, expected = self.design(X, units)
        np.testing.assert_allclose(design.squares(), np.sum(expected**2, axis=0), rtol=1e-10)
        last = X.shape[1]
        np.testing.assert_allclose(design.columns(last // 2, last), expected[:, last // 2 :])
        few = np.arange(0, X.shape[0], 97)
        taken = design_of(design.take(few), design.units).columns(0, last)
        np.testing.assert_allclose(taken, expected[few])


def test_the_caller_s_matrix_is_not_written_to(X):
    before = dense(X).copy()
    y = np.arange(X.shape[0]) % 3 == 0
    if X.shape[0] > 50:
        PNormPush(max_iter=2, alpha=1.0, solver="lbfgs", tol=1.0).fit(X, y)
    np.testing.assert_array_equal(dense(X), before)


def test_double_precision_tiles_are_views():
    rows, tile = next(design_of(DENSE, Units()).tiles())
    assert np.shares_memory(tile.matrix, DENSE)
    assert rows.start == 0


def test_the_cuts_do_not_depend_on_the_number_of_threads():
    one, many = (from_arrays(DENSE, n_jobs=n_jobs).blocks for n_jobs in (1, 4))
    assert [block.n_rows for block in one] == [block.n_rows for block in many]
    assert sum(block.n_rows for block in one) == N


def test_partial_sums_are_merged_in_order():
    class Order:
        def local(self, block, state):
            return [block.index]

        def merge(self, left, right):
            return left + right

    source = from_arrays(DENSE, block_rows=97, n_jobs=4)
    assert source.map_reduce(Order(), None) == list(range(len(source.blocks)))
    with Workers(3).start_threads():
        assert source.map_reduce(Order(), None) == list(range(len(source.blocks)))


def units_of(X):
    return HostDesign.describe(Block(0, X), 0, 3, True).units()


class TestUnits:
    def test_a_column_far_from_zero_is_centred(self):
        units = units_of(DENSE + np.array([0, 0, 1e9, 0, -1e4, 0, 50]))
        assert (units.centre != 0).tolist() == [False, False, True, False, True, False, False]
        np.testing.assert_allclose(units.centre[[2, 4]], [1e9, -1e4], rtol=1e-2)

    def test_a_constant_column_is_centred_to_zero(self):
        X = np.column_stack([DENSE[:, 0], np.full(N, 3.5)])
        np.testing.assert_array_equal(units_of(X).apply(X)[:, 1], 0.0)

    def test_ordinary_columns_are_read_as_they_are(self):
        assert units_of(DENSE).plain
        assert units_of(DENSE > 0).plain
        assert units_of(sparse.csr_array(DENSE + 1e9)).plain

    def test_the_shift_is_what_the_centre_takes_from_every_score(self):
        units = Units(centre=np.array([1.0, 2.0]))
        X, coef = DENSE[:, :2], np.array([3.0, -1.0])
        np.testing.assert_allclose(units.apply(X) @ coef, X @ coef - units.shift(coef), atol=1e-13)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("wrong", "what"), [(np.nan, "NaN"), (-np.inf, "infinity"), (-2e100, "up to 2e+100 in size")]
)
def test_an_entry_that_no_fit_can_use_is_found_in_its_column(make, wrong, what):
    X = DENSE.copy()
    X[7, 4] = X[3, 5] = wrong
    index, column, found = HostDesign.describe(Block(3, make(X)), 0, 100, True).bad
    assert (index, column) == (3, 4)
    assert what in found
    assert HostDesign.describe(Block(3, make(DENSE * 1e98)), 0, 100, True).bad is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_may_be_as_large_as_they_can(dtype):
    X = np.full((10, 2), np.finfo(dtype).max, dtype=dtype)
    assert HostDesign.describe(Block(0, X), 0, 1, True).bad is None
    X[4, 1] = np.inf
    assert HostDesign.describe(Block(0, X), 0, 1, True).bad == (0, 1, "infinity")


class TestBlasThreads:
    @staticmethod
    def limits():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def test_blas_has_one_thread_inside_and_all_of_them_after(self):
        with threadpool_limits(2, user_api="blas"):
            before = self.limits()
            with Workers(1).start_threads():
                assert set(self.limits()) <= {1}
            assert self.limits() == before

    def test_the_limit_is_restored_when_a_fit_fails(self):
        with threadpool_limits(2, user_api="blas"):
            before = self.limits()
            with pytest.raises(ZeroDivisionError), Workers(2).start_threads():
                raise ZeroDivisionError
            assert self.limits() == before

    def test_fits_that_overlap_in_threads_leave_blas_as_it_was(self):
        y = DENSE[:, 0] + np.sin(np.arange(N)) > 0
        with threadpool_limits(2, user_api="blas"):
            before = self.limits()
            first_inside, second_inside = threading.Event(), threading.Event()

            def first():
                with Workers(1).start_threads():
                    first_inside.set()
                    second_inside.wait(10)

            def second():
                first_inside.wait(10)
                with Workers(1).start_threads():
                    second_inside.set()
                    threads[0].join(10)  # leave after the one that came first
                    PNormPush(n_jobs=2).fit(DENSE, y)

            threads = [threading.Thread(target=work) for work in (first, second)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert self.limits() == before


def tile_of(X):
    ((_, tile),) = design_of(X, Units()).tiles()
    return tile


SMALL = np.where(DENSE[:200] > 1, DENSE[:200], 0.0)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csr_matrix])
def test_some_rows_of_a_tile_have_the_sums_of_these_rows(form):
    rows = np.random.default_rng(1).choice(200, size=60, replace=False)
    some, X = tile_of(form(SMALL)).take(rows), SMALL[rows]
    coef, v = np.arange(2.0 * D).reshape(2, D) - 3, np.linspace(0.1, 2, 120).reshape(60, 2)
    assert np.allclose(some.scores(coef[0]), X @ coef[0])
    assert np.allclose(some.scores(coef), coef @ X.T)
    assert np.allclose(some.adjoint(v), X.T @ v)
    assert np.allclose(some.adjoint(v[:, 0]), X.T @ v[:, 0])
    assert np.allclose(some.sizes(-v[:, 0]), np.abs(X).T @ v[:, 0])
    assert np.allclose(some.second_moments(v[:, 0]), X.T @ (v[:, :1] * X))
    assert np.allclose(some.squares(), np.sum(X**2, axis=0))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_rows_of_hardly_any_weight_leave_second_moments_as_they_are(form):
    weight = np.exp(-np.linspace(0.0, 300.0, 200))
    for tile, X, w in (
        (tile_of(form(SMALL)), SMALL, weight),
        (tile_of(form(SMALL)).take(np.arange(150)), SMALL[:150], weight[:150]),
        (tile_of(form(SMALL)), SMALL, np.zeros(200)),
    ):
        assert np.allclose(tile.second_moments(w), X.T @ (w[:, None] * X), rtol=1e-12, atol=1e-20)


def test_a_weight_that_is_no_number_is_not_left_out():
    weight = np.ones(200)
    weight[3] = np.nan
    assert np.any(np.isnan(tile_of(SMALL).second_moments(weight)))


@pytest.mark.parametrize("per_row", [2, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rough_moments_of_stored_entries_are_those_of_the_rows(per_row, dtype):
    # with 2 entries of 60 the sparse product is taken, with 20 rows are made dense
    rng = np.random.default_rng(8)
    X = np.zeros((50, 60), dtype=dtype)
    np.put_along_axis(X, rng.permuted(np.tile(np.arange(60), (50, 1)), axis=1)[:, :per_row], 1.5, 1)
    rows, weight = np.array([3, 7, 8, 40]), np.array([0.5, 0.0, 2.0, 1.0])
    first, second = HostDesign(sparse.csr_array(X), Units()).rough_moments(rows, weight)
    np.testing.assert_allclose(first, weight @ X[rows], rtol=1e-6)
    np.testing.assert_allclose(second, X[rows].T @ (weight[:, None] * X[rows]), rtol=1e-6)
