"""A ranker fits columns of any size, one outlier of any size, and says where it cannot."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank import IRPush, PairRanker, PNormPush, ProperRanker, PushRanker, PushTrees, RankBoost
from toprank.blocks import from_arrays
from toprank.models import ModelError, fit_table

Y = np.arange(60) % 2
LINEAR = [
    PNormPush(),
    PNormPush(solver="lbfgs"),
    PNormPush(p=1000.0),
    PNormPush(loss="logistic"),
    PNormPush(loss="squared_hinge"),
    IRPush(),
    IRPush(solver="lbfgs"),
    PushRanker(end="both"),
    PushRanker("exponential"),
    ProperRanker(),
    ProperRanker("squared"),
    PairRanker(),
    PairRanker(loss="logistic"),
]
each_linear = pytest.mark.parametrize("ranker", LINEAR, ids=repr)


def rows():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 0] += 0.7 * Y
    return X


def scores_of(ranker, X):
    return (getattr(ranker, "decision_function", None) or ranker.predict)(X)


@each_linear
def test_columns_near_1e12_converge_to_the_ranking_of_an_unpenalised_fit(ranker):
    # a gradient in such a column never comes down to tol; fits warned, or went on for a minute
    large = clone(ranker).fit(rows() * 1e12, Y)
    free = clone(ranker).set_params(alpha=1e-27).fit(rows(), Y)
    np.testing.assert_allclose(large.coef_ * 1e12, free.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.sampled(4)
@each_linear
def test_a_column_of_1e_12_beside_one_of_1e12_is_as_good_as_absent(ranker):
    X = rows() * [1.0, 1e-12, 1e12]
    both = clone(ranker).fit(X, Y)
    without = clone(ranker).fit(X[:, [0, 2]], Y)
    np.testing.assert_allclose(scores_of(both, X), scores_of(without, X[:, [0, 2]]), atol=1e-4)


@pytest.mark.parametrize(
    ("solver", "size"), [("newton", 1e12), ("newton", 1e50), ("newton", 1e100), ("lbfgs", 1e12)]
)
def test_an_outlier_on_its_right_side_does_not_stop_the_fit_short(solver, size):
    # its column was measured by the outlier, and the gradient of the others fell below tol
    X = rows()
    X[:, 1] -= 0.7 * Y
    X[4, 1] = size  # a negative: the more so the lower its score
    ranker = PNormPush(solver=solver).fit(X, Y)
    other = PNormPush().fit(np.where(X == size, 1e3, X), Y)
    np.testing.assert_allclose(ranker.coef_, other.coef_, rtol=1e-3)
    assert ranker.objective_ == pytest.approx(other.objective_, abs=1e-6)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1.01e100, 1e300, np.finfo(float).max])
def test_a_size_beyond_1e100_is_refused_with_the_remedy_wherever_the_row_lies(size, make):
    X, y = np.vstack([rows()] * 150), np.tile(Y, 150)
    X[1] = size  # between the rows that units are judged by
    refused = pytest.raises(ValueError, match=r"at most 1e\+100.*missing values, replace them")
    with refused:
        PNormPush().fit(make(X), y)
    with refused:
        PNormPush().fit_blocks(from_arrays(make(X), y))


@pytest.mark.parametrize("ranker", [PNormPush(), PNormPush(p=np.inf), IRPush()], ids=repr)
def test_a_sparse_column_near_the_largest_size_gives_what_a_dense_one_gives(ranker):
    X = rows()
    X[:, 1] *= 1e100 / np.max(np.abs(X[:, 1]))
    dense, stored = (clone(ranker).fit(make(X), Y) for make in (np.asarray, sparse.csr_array))
    assert np.isfinite(stored.objective_)
    assert stored.objective_ == pytest.approx(dense.objective_, abs=1e-5)


# Kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_a_kernel_of_distances_does_not_notice_where_the_columns_lie(kernel, offset):
    # gamma="scale" cancelled to a thousandth of itself, and squared distances to nothing
    X, grades = rows(), np.arange(60) % 3
    near = PairRanker(kernel=kernel).fit(X, grades)
    far = PairRanker(kernel=kernel).fit(X + offset, grades)
    np.testing.assert_allclose(far.predict(X + offset), near.predict(X), atol=1e-4)


def test_landmarks_of_columns_far_from_zero_are_those_of_columns_near_it():
    X, grades = rows(), np.arange(60) % 3
    settings = {"kernel": "rbf", "n_components": 20, "random_state": 0}
    near = PairRanker(**settings).fit(X, grades)
    far = PairRanker(**settings).fit(X + 1e7, grades)
    np.testing.assert_allclose(far.landmarks_, near.landmarks_ + 1e7)
    np.testing.assert_allclose(far.predict(X + 1e7), near.predict(X), atol=1e-4)


def test_gamma_of_sparse_rows_is_that_of_dense_ones():
    X = np.where(rows() > 0, rows() + 1e6, 0.0)
    gammas = [
        PairRanker(kernel="laplacian").fit(make(X), Y)._kernel.parameters["gamma"]
        for make in (np.asarray, sparse.csr_array)
    ]
    assert gammas[0] == pytest.approx(1 / (3 * np.var(X)), rel=1e-9)
    assert gammas[1] == pytest.approx(gammas[0], rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "laplacian", "cosine"])
def test_a_kernel_that_would_overflow_is_refused_with_the_remedy(kernel):
    with pytest.raises(ValueError, match=r"up to .*e\+300.*at most 1e\+100.*scale the column"):
        PairRanker(kernel=kernel).fit(rows() * 1e300, Y)


def test_a_kernel_that_overflows_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"not a finite number.*up to .*e\+99.*StandardScaler"):
        PairRanker(kernel="poly", gamma=1.0).fit(rows() * 1e99, Y)


def test_a_kernel_does_not_look_at_rows_of_weight_zero():
    X = np.vstack([rows(), np.full((1, 3), 1e99)])
    y, weight = np.append(Y, 1), np.append(np.ones(60), 0.0)
    for kernel in ("rbf", "poly"):
        absent = PairRanker(kernel=kernel).fit(X, y, sample_weight=weight)
        without = PairRanker(kernel=kernel).fit(rows(), Y)
        np.testing.assert_allclose(absent.predict(rows()), without.predict(rows()), atol=1e-6)


# Trees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_of_a_table_of_zeros_score_all_rows_alike(backend):
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    ranker = PushTrees(n_estimators=3, backend=backend, n_jobs=1).fit(np.zeros((20, 2)), Y[:20])
    assert np.ptp(ranker.decision_function(np.zeros((20, 2)))) == 0


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_column_that_a_tree_library_takes_for_zero_is_named(backend):
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    X = rows() * [1.0, 1.0, 1e-150]
    with pytest.warns(ConvergenceWarning, match="column 2 first.*takes them for zero"):
        PushTrees(n_estimators=3, backend=backend, n_jobs=1).fit(X, Y)


def test_entries_beyond_float32_are_refused_before_xgboost_sees_them():
    pytest.importorskip("xgboost", reason="XGBoost is not installed")
    ranker = PushTrees(n_estimators=3, backend="xgboost", n_jobs=1)
    with pytest.raises(ValueError, match=r"Column 1 of X.*e\+60.*XGBoost reads sizes up to 3.4e"):
        ranker.fit(rows() * [1.0, 1e60, 1.0], Y)


# Stumps, tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_stumps_do_not_notice_the_size_of_a_column(size):
    plain = RankBoost(10).fit(rows(), Y)
    scaled = RankBoost(10).fit(rows() * [1.0, size, 1.0], Y)
    np.testing.assert_array_equal(
        scaled.decision_function(rows() * [1.0, size, 1.0]), plain.decision_function(rows())
    )


def test_a_table_with_numbers_beyond_every_spread_is_refused_by_name():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("skops", reason="models are saved with skops")
    frame = pandas.DataFrame(rows(), columns=["a", "b", "c"]).assign(bought=Y)
    with pytest.raises(ModelError, match=r"'b': expected numbers of at most 1e\+100"):
        fit_table(frame.assign(b=frame["b"] * 1e300), "bought")
    model = fit_table(frame.assign(b=frame["b"] * 1e-5), "bought")
    with pytest.raises(ModelError, match=r"'b': expected numbers of at most 1e\+100"):
        model.score(frame.assign(b=np.finfo(float).max))
    assert np.all(np.isfinite(model.score(frame.assign(b=1e99))))
