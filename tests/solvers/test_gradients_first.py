"""Columns of categories are solved by gradients first, to the minimum of Newton's method."""

import numpy as np
import pytest
from scipy import sparse

from toprank import PNormPush


def categories(n=1500, columns=4, levels=30):
    """Categories as columns of zero and one."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, levels, size=(n, columns)) + levels * np.arange(columns)
    X = np.zeros((n, columns * levels))
    X[np.arange(n)[:, None], places] = 1.0
    scores = X @ rng.normal(size=columns * levels)
    return X, scores + rng.logistic(size=n) > 1.0


def chained(n=600, d=160):
    """Columns, mostly zero, that gradients alone take long to tell apart."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random((n, d)) < 0.2, rng.normal(size=(n, d)), 0.0)
    X[:, 1:] = 0.999 * X[:, :1] + 0.01 * X[:, 1:]
    X[rng.random(n) < 0.8] = 0.0
    return X, X @ rng.normal(size=d) + rng.logistic(size=n) > 0.5


@pytest.mark.parametrize("rows", [categories(), chained()], ids=["categories", "chained"])
@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
def test_dense_or_sparse_the_minimum_is_that_of_newtons_method(rows, p):
    X, y = rows
    best = PNormPush(p, solver="newton", tol=1e-9).fit(X[:, ::-1], y)
    for given in (X, sparse.csr_array(X)):
        fit = PNormPush(p).fit(given, y)
        assert fit.optimality_gap_ <= 1e-6
        assert abs(fit.objective_ - best.objective_) <= fit.optimality_gap_ + 1e-9
        assert len(fit.history_) == fit.n_iter_


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton"])
def test_the_largest_height_is_certified_dense_or_sparse(solver):
    X, y = categories()
    dense, thin = (
        PNormPush(np.inf, solver=solver).fit(given, y) for given in (X, sparse.csr_array(X))
    )
    for fit in (dense, thin):
        assert fit.optimality_gap_ <= 1e-4 * max(1.0, abs(fit.objective_))
    gap = max(dense.optimality_gap_, thin.optimality_gap_)
    assert abs(dense.objective_ - thin.objective_) <= gap


def test_iterations_of_all_stages_count_towards_the_most():
    X, y = chained()
    with pytest.warns(match="stopped early"):
        fit = PNormPush(64.0, max_iter=3).fit(X, y)
    assert fit.n_iter_ <= 4


def test_columns_that_are_seldom_there_take_few_iterations():
    # a few words are in every second row and thousands in a row or two each
    rng = np.random.default_rng(3)
    places = (20_000 * rng.random((2000, 20)) ** 3).astype(np.int32)
    X = sparse.csr_array(
        (np.full(40_000, 0.25), places.ravel(), np.arange(2001) * 20), (2000, 20_000)
    )
    X.sum_duplicates()
    f = X @ rng.normal(size=20_000)
    y = f + rng.logistic(size=2000) > np.quantile(f, 0.8)
    fitted = PNormPush(4.0, alpha=1e-2).fit(X, y)
    assert fitted.n_iter_ <= 20  # 55 in units of the columns' spread alone
    assert fitted.optimality_gap_ < 1e-7
