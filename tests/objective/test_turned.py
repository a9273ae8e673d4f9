"""Few rows of many columns, turned: the same values, gradients and minima."""

import numpy as np
import pytest
from scipy import sparse

from toprank import IRPush, PNormPush, ProperRanker, PushRanker
from toprank.objective import LabelledData, problem_of
from toprank.objective.turned import Turned
from toprank.tuning.grid import fit_grid


def few_rows(n=60, d=300, shift=0.0, dtype=float, copies=False):
    rng = np.random.default_rng(6)
    X = (rng.normal(size=(n, d)) * np.logspace(-3, 3, d) ** 0.2 + shift).astype(dtype)
    if copies:  # rows that span fewer columns than there are rows
        X[n // 2 :] = X[: n - n // 2]
    return X, X[:, 0] + X[:, -1] + rng.normal(size=n) > np.median(X[:, 0] + X[:, -1]) + 1.0


def problem_of_rows(template, X, y, weight=None):
    task = template._task()
    data = LabelledData.of_arrays(X, y, weight, intercepts=task.intercepts)
    return problem_of(data, task)


TEMPLATES = {
    "p=4": PNormPush(4.0, alpha=0.1),
    "both ends": PushRanker(p=4.0, end="both", alpha=0.1),
    "logistic": PNormPush(4.0, loss="logistic", alpha=0.1),
    "squared hinge": PNormPush(4.0, loss="squared_hinge", alpha=0.1),
    "IR": IRPush(alpha=0.1),
    "intercept": ProperRanker(alpha=0.1),
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_all_columns(template, shift, weighted):
    X, y = few_rows(shift=shift)
    weight = np.linspace(0.0, 3.0, len(y)) if weighted else None
    problem = problem_of_rows(template, X, y, weight)
    turned = Turned.of(problem.data)
    few = turned.problem(problem)
    assert few.size == len(y) + problem.size - X.shape[1]
    v = 0.1 * np.random.default_rng(0).normal(size=few.size)
    coef = turned.back(v)
    value, gradient = problem.value_grad(coef)
    few_value, few_gradient = few.value_grad(v)
    assert few_value == pytest.approx(value, abs=1e-9)
    size = np.max(np.abs(gradient))
    np.testing.assert_allclose(turned.gradient_back(few_gradient), gradient, atol=1e-8 * size)
    np.testing.assert_allclose(turned.into(coef), v, atol=1e-8)
    np.testing.assert_allclose(problem.scores(coef), few.scores(v), atol=1e-8)


def test_what_no_row_sees_is_dropped():
    X, y = few_rows()
    problem = problem_of_rows(TEMPLATES["p=4"], X, y)
    turned = Turned.of(problem.data)
    coef = np.random.default_rng(0).normal(size=X.shape[1])
    seen = turned.back(turned.into(coef))
    np.testing.assert_allclose(X @ seen, X @ coef, atol=1e-9)
    assert np.linalg.norm(seen) < np.linalg.norm(coef)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_some_of_the_rows_are_turned_in_the_span_of_all(shift):
    X, y = few_rows(shift=shift)
    template = TEMPLATES["p=4"]
    whole = problem_of_rows(template, X, y)
    part = np.arange(len(y)) % 3 > 0
    data = LabelledData.of_arrays(X[part], y[part], like=whole.data)
    fold = problem_of(data, template._task())
    turned = Turned.of(whole.data).others(data)
    v = 0.1 * np.random.default_rng(0).normal(size=len(y))
    assert turned.problem(fold).value(v) == pytest.approx(fold.value(turned.back(v)), abs=1e-9)


@pytest.mark.parametrize(
    "rows",
    [few_rows(n=260)[0], few_rows(d=200)[0], sparse.csr_array(few_rows()[0])],
    ids=["many rows", "few columns", "sparse"],
)
def test_other_tables_are_left_as_they_are(rows):
    y = np.arange(rows.shape[0]) % 3 == 0
    assert Turned.of(LabelledData.of_arrays(rows, y)) is None


def test_a_column_that_would_drown_the_others_keeps_all_as_they_are():
    X, y = few_rows()
    X[:, 5:] = 0.0
    assert Turned.of(LabelledData.of_arrays(X, y)) is not None
    X[:, 3] *= 1e9
    assert Turned.of(LabelledData.of_arrays(X, y)) is None


def test_rows_that_are_all_alike_have_nothing_to_turn():
    X, y = few_rows()
    assert Turned.of(LabelledData.of_arrays(np.ones_like(X), y)) is None


FITS = {
    "p=64": PNormPush(64.0),
    "newton": PNormPush(4.0, solver="newton"),
    "lbfgs": PNormPush(4.0, solver="lbfgs", alpha=0.1),
    "p=inf": PNormPush(np.inf),
    "hinge": PNormPush(4.0, loss="hinge", alpha=0.1),
    **TEMPLATES,
}


@pytest.fixture
def as_it_is(monkeypatch):
    """Fit a copy of a ranker without turning rows."""

    def fit(template, *rows):
        with monkeypatch.context() as patch:
            patch.setattr(Turned, "of", lambda data: None)
            return template.__class__(**template.get_params()).fit(*rows)

    return fit


@pytest.mark.parametrize("template", FITS.values(), ids=FITS)
@pytest.mark.parametrize(
    "rows",
    [few_rows(), few_rows(dtype=np.float32), few_rows(shift=1e4), few_rows(copies=True)],
    ids=["plain", "float32", "shifted", "copies"],
)
@pytest.mark.sampled(2)
def test_fits_reach_the_minimum_of_all_columns(template, rows, as_it_is):
    X, y = rows
    fits = [template.fit(X, y), as_it_is(template, X, y)]
    one, other = (fit.objective_ for fit in fits)
    gap = max(fit.optimality_gap_ for fit in fits)
    assert abs(one - other) <= gap + 1e-9 * abs(other)
    if np.isfinite(template.get_params().get("p", 4.0)):
        assert gap <= 1e-4 * max(1.0, abs(other))
    assert fits[0].coef_.shape == fits[1].coef_.shape
    value = problem_of_rows(template, X, y).value(template._point(problem_of_rows(template, X, y)))
    assert value == pytest.approx(one, abs=1e-7 * max(1.0, abs(one)))


def test_a_fit_goes_on_from_the_last_one():
    X, y = few_rows()
    ranker = PNormPush(4.0, warm_start=True).fit(X, y)
    objective = ranker.objective_
    assert ranker.fit(X, y).n_iter_ <= 1
    assert ranker.objective_ == pytest.approx(objective, rel=1e-9)


def test_signs_of_coefficients_and_single_columns_are_as_asked():
    X, y = few_rows()
    assert np.all(PNormPush(4.0, positive=True, alpha=1.0).fit(X, y).coef_ >= 0)
    rounds = PNormPush(4.0, solver="coordinate", max_iter=5).fit(X, y)
    assert np.count_nonzero(rounds.coef_) <= 5


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_grid_is_that_of_all_columns(solver, monkeypatch):
    X, y = few_rows(shift=1e4)
    grid = [PNormPush(p, alpha=a, tol=1e-8, solver=solver) for p in (1.0, 8.0) for a in (1.0, 0.1)]
    part = np.arange(len(y)) % 4 > 0
    fits = []
    for turns in (True, False):
        if not turns:
            monkeypatch.setattr(Turned, "of", lambda data: None)
        whole = fit_grid(grid, 2, X, y, None)
        fold = fit_grid(grid, 2, X[part], y[part], None, whole)
        assert (whole.turned is not None, fold.turned is not None) == (turns, turns)
        fits += [(whole, X), (fold, X[part])]
    for one, other in ((0, 2), (1, 3)):
        scores = [fitted.scores(rows) for fitted, rows in (fits[one], fits[other])]
        scores = [lines - lines.mean(axis=1, keepdims=True) for lines in scores]
        np.testing.assert_allclose(*scores, atol=1e-4 * np.max(np.abs(scores[0])))
