"""Tables of more than a thousand columns: no square Hessian, and the minimum of fewer columns.

They have more than five rows for six columns: fewer are turned before.
"""

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning

from toprank import PNormPush, blocks
from toprank.objective import LabelledData, SweptProblem, Task
from toprank.objective.curved_rows import CurvedRows
from toprank.solvers.lbfgs import ROUND_UP_TO, _by_rows


def wide(n, d=ROUND_UP_TO + 40, overlap=1.0):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((n, d)) < 0.1, rng.normal(size=(n, d)), 0.0)
    f = X[:, :40] @ rng.normal(size=40) + overlap * rng.logistic(size=n)
    return X, f > np.quantile(f, 0.8)


def turned(X):
    """The same rows in as many columns as they span: a turn changes no penalty."""
    return linalg.qr(X.T, mode="economic")[1].T


def objective(X, y, coef, p, weight=None):
    data = LabelledData.of_arrays(X, y, weight)
    return SweptProblem(data, Task.build(p=p, alpha=1e-2)).value(coef)


@pytest.fixture(scope="module")
def rows():
    return wide(900)


@pytest.fixture(scope="module")
def many_rows():
    return wide(1500, overlap=3.0)


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_array, sparse.csc_array])
def test_the_minimum_is_that_of_the_turned_rows(rows, p, kind):
    X, y = rows
    X = X.astype(np.float32).astype(float)
    best = PNormPush(p, alpha=1e-2, tol=1e-8).fit(turned(X), y)
    fit = PNormPush(p, alpha=1e-2, tol=1e-8).fit(kind(X), y)
    assert abs(fit.objective_ - best.objective_) <= 1e-6
    assert fit.optimality_gap_ <= 1e-6
    assert len(fit.history_) == fit.n_iter_
    assert abs(objective(X, y, fit.coef_[0], p) - best.objective_) <= 1e-6


def test_weights_are_those_of_rows_that_are_there_more_often(rows):
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, size=len(y))
    copies = PNormPush(64.0, alpha=1e-2).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    fit = PNormPush(64.0, alpha=1e-2).fit(sparse.csr_array(X), y, weight)
    assert abs(fit.objective_ - copies.objective_) <= 1e-6


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_blocks_of_rows_have_the_minimum_of_one_table(rows, kind):
    X, y = rows
    fits = [PNormPush(64.0, alpha=1e-2) for _ in range(2)]
    fits[0].fit_blocks(blocks.from_arrays(kind(X), y, block_rows=200))
    fits[1].fit(X, y)
    assert abs(fits[0].objective_ - fits[1].objective_) <= 1e-6


@pytest.mark.parametrize("p", [4.0, 64.0])
def test_no_square_hessian_is_put_together(many_rows, p, monkeypatch):
    def refuse(self, *args, **settings):
        raise AssertionError("a Hessian of so many columns")

    for name in ("hessian", "hessian_ahead"):
        monkeypatch.setattr(SweptProblem, name, refuse)
    X, y = many_rows
    for given in (X, sparse.csr_array(X)):
        fit = PNormPush(p, alpha=1e-3).fit(given, y)
        assert fit.optimality_gap_ <= 1e-4


def curvature(m=12, d=30, thin=False):
    rng = np.random.default_rng(4)
    rows = np.where(rng.random((m, d)) < 0.5, rng.normal(size=(m, d)), 0.0)
    positive = rng.random(m) < 0.4
    return CurvedRows(
        sparse.csr_array(rows) if thin else rows,
        rng.random(m),
        np.stack([positive, ~positive], axis=1).astype(float),
        rng.normal(size=(2, d)),
        rng.random(d),
    )


@pytest.mark.parametrize("thin", [False, True])
def test_in_coordinates_by_rows_the_curvature_is_the_identity(thin):
    curved = curvature(thin=thin)
    found = _by_rows(curved, 0.1)
    units = np.eye(len(curved.rest))
    S = np.stack([curved.times(unit) for unit in units], axis=1)
    out = np.stack([found.out(unit) for unit in units], axis=1)
    into = np.stack([found.into(unit) for unit in units], axis=1)
    np.testing.assert_allclose(into, out.T, atol=1e-12)
    hessian = S.T @ S + np.diag(curved.rest + 0.1)
    np.testing.assert_allclose(into @ hessian @ out, units, atol=1e-5)


def test_coordinates_need_a_diagonal():
    curved = curvature()
    assert _by_rows(curved, -1.0) is None
    assert _by_rows(curved, np.nan) is None


@pytest.mark.more
def test_a_newton_run_that_is_stuck_far_out_goes_along_the_penalties():
    rng = np.random.default_rng(2)
    X = 1e6 * rng.normal(size=(300, 480))
    y = X[:, :5].sum(1) / 1e6 + rng.normal(size=300) > 1
    found = {}
    for solver in ("newton", "lbfgs"):
        with pytest.warns(ConvergenceWarning, match="no further decrease"):
            found[solver] = PNormPush(4, solver=solver).fit(X, y).objective_
    assert found["newton"] == pytest.approx(found["lbfgs"], rel=1e-9)


def test_rows_are_not_turned_where_there_is_no_penalty():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 60)), 5, axis=1)  # columns that depend on others
    y = X[:, 0] + rng.normal(size=60) > 0.5
    with pytest.warns(ConvergenceWarning, match="The classes are separable"):
        PNormPush(4, alpha=0).fit(X, y)
