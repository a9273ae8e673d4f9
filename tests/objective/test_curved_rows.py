"""The curvature of the heaviest rows: that of the Hessian, where they make all of it."""

import numpy as np
import pytest
from scipy import sparse

from toprank.objective import LabelledData, SweptProblem, Task
from toprank.objective.curved_rows import curved_rows


def problem_of_rows(kind="dense", p=4.0, end="top", n=60, d=9, weighted=False, alpha=0.1):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((n, d)) < 0.4, rng.normal(size=(n, d)), 0.0)
    X = X.astype(np.float32) if kind == "float32" else X
    X = sparse.csr_array(X) if kind == "sparse" else X
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    data = LabelledData.of_arrays(X, rng.random(n) < 0.3, weight)
    return SweptProblem(data, Task.build(p=p, alpha=alpha, end=end)), rng.normal(size=d)


def as_matrix(curved, d):
    return np.stack([curved.times(unit) for unit in np.eye(d)], axis=1)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_make_the_hessian(kind, end, weighted):
    problem, coef = problem_of_rows(kind, end=end, weighted=weighted, alpha=1e-4)
    S = as_matrix(problem.curved_rows(coef), problem.size)
    hessian = problem.hessian(coef) - problem.alpha * np.eye(problem.size)
    np.testing.assert_allclose(S.T @ S, hessian, atol=2e-3 * np.max(np.diag(hessian)))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_products_are_those_of_one_matrix(kind):
    problem, coef = problem_of_rows(kind)
    curved = problem.curved_rows(coef)
    S, rng = as_matrix(curved, problem.size), np.random.default_rng(1)
    u, scale = rng.normal(size=len(S)), rng.random(problem.size)
    np.testing.assert_allclose(curved.adjoint(u), S.T @ u, atol=1e-12)
    products = (S * scale**2) @ S.T
    np.testing.assert_allclose(curved.gram(scale), products, atol=1e-6 * np.max(products))
    scale *= 1e4  # too much for single precision
    products = (S * scale**2) @ S.T
    np.testing.assert_allclose(curved.gram(scale), products, atol=1e-12 * np.max(products))


def test_rows_that_bend_it_less_than_the_penalty_are_left_to_the_diagonal():
    few, coef = problem_of_rows(p=16.0, n=400, alpha=1.0)
    many, _ = problem_of_rows(p=16.0, n=400, alpha=1e-4)
    of_few, of_many = few.curved_rows(coef), many.curved_rows(coef)
    size = np.sum(few.data.column_spread() ** 2)
    assert len(of_few.root) < len(of_many.root)
    assert np.min(of_few.root) ** 2 * size > 1.0
    assert np.sum(of_few.root**2) + np.max(of_few.rest / few.data.column_spread() ** 2) == (
        pytest.approx(1.0 + 16.0)
    )


def test_the_weights_of_another_problem_are_taken_where_it_is_named():
    problem, coef = problem_of_rows(p=8.0)
    gentler = problem.eased(1.0, 4.0)
    slopes = gentler.row_slopes(coef)
    asked = curved_rows(problem.data, slopes, problem.tilts[0], 60, 60, gentler.alpha)
    found = problem.curved_rows(coef, gentler)
    np.testing.assert_array_equal(found.root, asked.root)


def test_a_steep_price_rests_on_few_rows_and_a_diagonal_stands_for_the_others():
    problem, coef = problem_of_rows(p=64.0, n=400)
    slopes = problem.row_slopes(coef)
    curved = curved_rows(problem.data, slopes, problem.tilts[0], 40, 40)
    assert len(curved.root) <= 40
    bends = np.where(slopes < 0, *np.abs(problem.tilts[0])[:, None]) * np.abs(slopes)
    share = 1.0 - np.sum(curved.root**2) / np.sum(bends)
    assert 0.0 < share < 0.5
    left_out = share * np.sum(bends) * problem.data.column_spread() ** 2
    np.testing.assert_allclose(curved.rest, left_out)


def test_few_rows_tell_the_curvature_where_not_all_that_bend_it_have_room():
    problem, coef = problem_of_rows(p=4.0, n=400)
    given = problem.data, problem.row_slopes(coef), problem.tilts[0]
    assert len(curved_rows(*given, 400, 200).root) > 200  # all of them
    assert len(curved_rows(*given, 399, 200).root) == 200


def test_rows_that_make_little_of_the_curvature_tell_nothing():
    problem, coef = problem_of_rows(p=1.0, n=400)
    assert (
        curved_rows(problem.data, problem.row_slopes(0.0 * coef), problem.tilts[0], 40, 40) is None
    )


def test_slopes_that_are_no_numbers_tell_nothing():
    problem, coef = problem_of_rows()
    nothing = np.full(60, np.nan)
    assert curved_rows(problem.data, nothing, problem.tilts[0], 40, 40) is None
    assert (
        curved_rows(problem.data, 0.0 * problem.row_slopes(coef), problem.tilts[0], 40, 40) is None
    )
