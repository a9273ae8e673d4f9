"""The same numbers give the same fit however they lie in memory, and whatever their type."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from toprank import (
    AdaBoostRanker,
    IRPush,
    PairRanker,
    PNormPush,
    ProperRanker,
    RankBoost,
    simulate,
)

RNG = np.random.default_rng(1)
Y = np.arange(60) % 2
WHOLE = RNG.integers(0, 9, size=(60, 4)) + 2 * Y[:, None] * np.array([1, 0, 0, 0])
X = WHOLE.astype(np.float64)
RANKERS = [
    PNormPush(),
    PNormPush(p=np.inf),
    PNormPush(loss="squared_hinge", solver="lbfgs"),
    IRPush(),
    ProperRanker(),
    PairRanker(),
    PairRanker(kernel="rbf"),
    RankBoost(5),
    RankBoost(5, target="graded"),
    AdaBoostRanker(5, constant="reset"),
]
DENSE = {
    "Fortran order": np.asfortranarray,
    "every second of both": lambda Z: np.repeat(np.repeat(Z, 2, axis=0), 2, axis=1)[::2, ::2],
    "negative strides": lambda Z: Z[::-1, ::-1].copy()[::-1, ::-1],
    "float32": lambda Z: Z.astype(np.float32),
    "float16": lambda Z: Z.astype(np.float16),
    "long double": lambda Z: Z.astype(np.longdouble),
    "int64": lambda Z: Z.astype(np.int64),
    "uint8": lambda Z: Z.astype(np.uint8),
    "big-endian floats": lambda Z: Z.astype(">f8"),
    "big-endian integers": lambda Z: Z.astype(">i4"),
    "objects": lambda Z: Z.astype(object),
}


def unsorted(Z):
    matrix = sparse.csr_matrix(Z)
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        for part in (matrix.indices, matrix.data):
            part[first:last] = part[first:last][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def doubled(Z):
    """Every entry stored as two halves."""
    csr = sparse.csr_matrix(Z)
    parts = (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr)
    return sparse.csr_matrix(parts, shape=Z.shape)


def explicit_zeros(Z):
    n, d = Z.shape
    parts = (Z.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d))
    return sparse.csr_array(parts, shape=Z.shape)


def long_indices(Z):
    csr = sparse.csr_array(Z)
    parts = (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64))
    return sparse.csr_array(parts, shape=Z.shape)


def read_only(Z):
    matrix = sparse.csr_array(Z)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


SPARSE = {
    "csr matrix": sparse.csr_matrix,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "unsorted": unsorted,
    "stored twice": doubled,
    "explicit zeros": explicit_zeros,
    "long indices": long_indices,
    "read-only": read_only,
    "uint8": lambda Z: sparse.csr_array(Z.astype(np.uint8)),
}


def scores_of(ranker, Z):
    return (getattr(ranker, "decision_function", None) or ranker.predict)(Z)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_layout_and_type_of_dense_rows_change_nothing(ranker, record_property):
    expected = scores_of(clone(ranker).fit(X, Y), X)
    for name, make in DENSE.items():
        found = scores_of(clone(ranker).fit(make(X), Y), make(X))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=name)
    record_property("cases", len(DENSE))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "ranker", [r for r in RANKERS if r.__sklearn_tags__().input_tags.sparse], ids=repr
)
def test_format_of_sparse_rows_changes_nothing(ranker, record_property):
    expected = scores_of(clone(ranker).fit(sparse.csr_array(X), Y), X)
    for name, make in SPARSE.items():
        found = scores_of(clone(ranker).fit(make(X), Y), make(X))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)
    record_property("cases", len(SPARSE))


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_rows_in_a_file_that_may_only_be_read_are_fitted_as_they_are(ranker, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        scores_of(clone(ranker).fit(mapped, Y), mapped), scores_of(clone(ranker).fit(X, Y), X)
    )


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_the_order_of_rows_and_columns_does_not_matter(ranker):
    fitted = clone(ranker).fit(X, Y)
    rows, columns = RNG.permutation(60), np.array([2, 0, 3, 1])
    again = clone(ranker).fit(X[rows][:, columns], Y[rows])
    np.testing.assert_allclose(
        scores_of(again, X[:, columns]), scores_of(fitted, X), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("ranker", RANKERS[:6], ids=repr)
def test_contradictory_labels_of_the_same_rows_leave_nothing_to_rank_by(ranker):
    fitted = clone(ranker).fit(np.vstack([X, X]), np.concatenate([Y, 1 - Y]))
    assert np.ptp(scores_of(fitted, X)) < 1e-3


@pytest.mark.parametrize(
    "make",
    [
        simulate.linear_bipartite,
        simulate.power_eta,
        simulate.rare_reversal,
        simulate.regression,
        simulate.heteroscedastic,
    ],
)
def test_simulated_models_travel_to_other_processes(make):
    # they held functions without a name, which cannot be pickled
    model = make()
    again = pickle.loads(pickle.dumps(model))
    for here, there in zip(model.sample(50, 0), again.sample(50, 0), strict=True):
        np.testing.assert_array_equal(here, there)
