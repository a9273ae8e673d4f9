"""The grid at the price of a few fits gives what single fits give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from toprank import PNormPush, ProperRanker
from toprank.objective import LabelledData, ManySwept, SweptProblem, Task, problem_of
from toprank.tuning import grid as grid_module
from toprank.tuning.grid import fit_grid
from toprank.tuning.together import Together

PS, ALPHAS = (1.0, 4.0, 64.0), (1.0, 1e-2, 1e-4)


def templates(loss="exponential", tol=1e-7):
    return [PNormPush(p, alpha=a, loss=loss, tol=tol) for p in PS for a in ALPHAS]


def objective(template, X, y, coef, weight=None):
    task = template._task()
    data = LabelledData.of_arrays(X, y == 1, weight, intercepts=task.intercepts)
    problem = problem_of(data, task)
    return problem.value(coef)


def assert_solved(fitted, X, y, weight=None):
    for template, coef in zip(fitted[0], fitted[1].coefs, strict=True):
        alone = template.fit(X, y, weight)
        best = objective(template, X, y, alone.coef_[0], weight)
        found = objective(template, X, y, coef, weight)
        assert found - best <= 1e-6 * max(1.0, abs(best))


def test_every_setting_reaches_the_minimum_of_its_own_fit(rows):
    X, y = rows
    grid = templates()
    assert_solved((grid, fit_grid(grid, len(ALPHAS), X, y == 1, None)), X, y)


def test_a_fold_that_starts_near_reaches_its_own_minimum(rows):
    X, y = rows
    grid = templates()
    whole = fit_grid(grid, len(ALPHAS), X, y == 1, None)
    part = np.arange(len(y)) % 5 > 0
    fitted = fit_grid(grid, len(ALPHAS), X[part], y[part] == 1, None, whole)
    assert_solved((grid, fitted), X[part], y[part])


@pytest.mark.parametrize("thin", [False, True])
def test_rows_that_are_told_apart_lead_on_from_their_neighbours(thin, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 120))
    y = (X[:, 0] + rng.normal(size=80) > 0.8).astype(int)
    X = sparse.csr_array(X) if thin else X
    passed = []
    along = grid_module.along_penalties
    monkeypatch.setattr(
        grid_module,
        "along_penalties",
        lambda *a, **k: passed.append(len(k["passed"])) or along(*a, **k),
    )
    grid = [PNormPush(p, alpha=a, tol=1e-7) for p in (1.0, 4.0, 64.0) for a in (1.0, 0.1, 0.01)]
    whole = fit_grid(grid, 3, X, y == 1, None)
    assert passed
    assert set(passed) <= {1, 2}
    assert_solved((grid, whole), X, y)
    part = np.arange(len(y)) % 5 > 0
    assert_solved((grid, fit_grid(grid, 3, X[part], y[part] == 1, None, whole)), X[part], y[part])


def test_a_fold_of_rows_told_apart_neither_walks_from_the_whole_nor_steps_together(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 120))
    y = (X[:, 0] + rng.normal(size=80) > 0.8).astype(int)
    grid = [PNormPush(p, alpha=1e-3, tol=1e-7) for p in (1.0, 4.0)]
    whole = fit_grid(grid, 1, X, y == 1, None)
    monkeypatch.setattr(grid_module, "_single", lambda *a, **k: pytest.fail("it walks from there"))
    monkeypatch.setattr(Together, "_accept", lambda *a: pytest.fail("it steps together"))
    part = np.arange(len(y)) % 5 > 0
    assert_solved((grid, fit_grid(grid, 1, X[part], y[part] == 1, None, whole)), X[part], y[part])


def test_wide_rows_lead_on_by_the_rows_that_hold_their_neighbours(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((700, 1100)) < 0.1, 1.0, 0.0)
    y = (X[:, :10].sum(axis=1) + rng.normal(size=700) > 1.8).astype(int)
    near = []
    curved = SweptProblem.curved_rows
    monkeypatch.setattr(
        SweptProblem,
        "curved_rows",
        lambda self, coef, of=None: near.append(of) or curved(self, coef, of),
    )
    grid = [PNormPush(p, alpha=a, tol=1e-6) for p in (1.0, 4.0) for a in (0.1, 0.01, 0.001)]
    fitted = fit_grid(grid, 3, sparse.csr_array(X), y == 1, None)
    assert any(of is not None and of.power == 1.0 for of in near)
    assert_solved((grid, fitted), X, y)


def test_one_hessian_serves_a_line_and_a_fold_takes_none(rows, monkeypatch):
    X, y = rows
    taken = []
    hessian = SweptProblem.hessian
    monkeypatch.setattr(
        SweptProblem, "hessian", lambda self, *a, **k: taken.append(1) or hessian(self, *a, **k)
    )
    grid = [PNormPush(p, alpha=a, tol=1e-5) for p in (1.0, 2.0, 4.0) for a in (1.0, 0.1, 0.01)]
    alone = PNormPush(1.0, alpha=1.0, tol=1e-5)
    alone.fit(X, y)
    first = len(taken)
    taken.clear()
    whole = fit_grid(grid, 3, X, y == 1, None)
    assert len(taken) == first + 3  # the first setting alone, and one per line
    taken.clear()
    part = np.arange(len(y)) % 5 > 0
    fitted = fit_grid(grid, 3, X[part], y[part] == 1, None, whole)
    assert not taken
    assert_solved((grid, fitted), X[part], y[part])


def test_a_line_that_its_neighbour_certifies_is_not_fitted_again(rows, monkeypatch):
    X, y = rows
    grid = [PNormPush(p, alpha=a, tol=1e-5) for p in (4.0, 4.0 + 1e-9) for a in (1.0, 0.1)]
    steps = []
    accept = Together._accept
    monkeypatch.setattr(
        Together, "_accept", lambda self, *a: steps.append(len(a[0])) or accept(self, *a)
    )
    fit_grid(grid[:2], 2, X, y == 1, None)
    alone = list(steps)
    steps.clear()
    fitted = fit_grid(grid, 2, X, y == 1, None)
    assert steps == alone
    for first, second in ((0, 2), (1, 3)):
        np.testing.assert_array_equal(fitted.coefs[first], fitted.coefs[second])
        assert fitted.inverses[second] is fitted.inverses[first]


def test_many_rows_are_walked_on_a_sample_first():
    rng = np.random.default_rng(0)
    y = (rng.random(24_000) < 0.3).astype(int)
    X = rng.normal(size=(24_000, 3)) + y[:, None] * [1.0, 0.3, 0.0]
    weight = rng.integers(0, 3, size=len(y)).astype(float)
    grid = templates()
    assert LabelledData.of_arrays(X, y == 1, weight).coarser is not None
    assert_solved((grid, fit_grid(grid, len(ALPHAS), X, y == 1, weight)), X, y, weight)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_losses_that_cannot_step_together_are_solved_one_by_one(rows, loss):
    X, y = rows
    grid = [PNormPush(p, alpha=a, loss=loss) for p in (1.0, 4.0) for a in (1.0, 0.1)]
    whole = fit_grid(grid, 2, X, y == 1, None)
    part = np.arange(len(y)) % 5 > 0
    for fitted, keep in (
        (whole, slice(None)),
        (fit_grid(grid, 2, X[part], y[part] == 1, None, whole), part),
    ):
        for template, coef in zip(grid, fitted.coefs, strict=True):
            alone = PNormPush(**template.get_params()).fit(X[keep], y[keep])
            found = objective(template, X[keep], y[keep], coef)
            assert found <= alone.objective_ + 2e-4 * max(1.0, abs(alone.objective_))


def test_scores_of_all_settings_come_from_one_product_dense_or_sparse(rows):
    X, y = rows
    grid = [ProperRanker(alpha=a, tol=1e-10) for a in ALPHAS]
    dense = fit_grid(grid, len(ALPHAS), X, y == 1, None)
    thin = fit_grid(grid, len(ALPHAS), sparse.csr_array(X), y == 1, None)
    for template, line, other in zip(
        grid, dense.scores(X), thin.scores(sparse.csr_array(X)), strict=True
    ):
        alone = template.fit(X, y)
        np.testing.assert_allclose(line, X @ alone.coef_[0], atol=1e-5)
        np.testing.assert_allclose(line, other, atol=1e-5)


@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.1, 1.0, 300.0]),
    weighted=st.booleans(),
)
def test_together_or_apart_the_values_and_gradients_are_the_same(seed, spread, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    positive = np.arange(40) % 4 == 0
    weight = rng.integers(0, 4, size=40).astype(float) + (np.arange(40) < 8) if weighted else None
    rows = LabelledData.of_arrays(X, positive, weight)
    problems = [problem_of(rows, Task.build(p=p, alpha=a)) for p in PS for a in ALPHAS]
    coefs = spread * rng.normal(size=(len(problems), 3))
    with np.errstate(under="ignore"):
        values, grads = ManySwept(problems).value_grad(coefs)
        for problem, coef, value, grad in zip(problems, coefs, values, grads, strict=True):
            alone, slope = problem.value_grad(coef)
            assert value == pytest.approx(alone, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-10)
