"""The short ways to a hard push end where the long ones do."""

import numpy as np
import pytest
from scipy import linalg, sparse

from toprank import PNormPush
from toprank.metrics import auc
from toprank.objective import LabelledData, LargestHeight, Task, problem_of
from toprank.objective.labelled import draw_by_weight
from toprank.objective.sampled import heaviest_rows
from toprank.solvers import lbfgs, minimise
from toprank.solvers.smooth import shortened


@pytest.fixture(scope="module")
def bits():
    """Wide rows that are mostly zero, of which the highest negative can be pushed down."""
    rng = np.random.default_rng(5)
    X = (rng.random((400, 120)) < 0.1).astype(np.float64)
    return X, X @ rng.normal(size=120) + rng.logistic(size=400) > 1.0


@pytest.fixture(scope="module")
def lost():
    """Many rows of few ones: the mean positive lies among the negatives, whose hull is wide."""
    rng = np.random.default_rng(6)
    places = rng.integers(0, 30, size=(4000, 4)) + 30 * np.arange(4)
    X = np.zeros((4000, 120))
    np.put_along_axis(X, places, 1.0, axis=1)
    return X, X @ rng.normal(size=120) + rng.logistic(size=4000) > 1.0


def walk_to_the_end(monkeypatch):
    """Let no bound end the path before its last level."""
    monkeypatch.setattr(LargestHeight, "bound_by", lambda *given: -np.inf)


@pytest.mark.parametrize("p", [4.0, 64.0, pytest.param(np.inf, marks=pytest.mark.more)])
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.more)])
def test_rows_without_their_zeros_have_the_same_minimum(p, weighted, bits):
    X, y = bits
    weight = np.arange(len(y)) % 3 + 1.0 if weighted else None
    auto = PNormPush(p).fit(X, y, weight)
    slow = PNormPush(p, solver="newton").fit(X, y, weight)  # reads the rows as they are
    gap = max(auto.optimality_gap_, slow.optimality_gap_)
    assert abs(auto.objective_ - slow.objective_) <= gap + 1e-9
    stored = PNormPush(p).fit(sparse.csr_array(X), y, weight)
    np.testing.assert_allclose(auto.coef_, stored.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, bool])
def test_rows_without_their_zeros_are_the_same_rows(order, dtype, bits):
    X, y = bits
    data = LabelledData.of_arrays(np.asarray(X, dtype=dtype, order=order), y)
    light = data.without_zeros()
    assert light.sparse
    coef = np.arange(X.shape[1]) / 7.0
    np.testing.assert_allclose(light.scores(coef), X @ coef, rtol=1e-12)
    assert light.log_totals == data.log_totals
    assert light.passes is data.passes


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool])
def test_sparse_entries_of_another_type_are_converted_once(bits, dtype):
    X, y = bits
    data = LabelledData.of_arrays(sparse.csr_array(X).astype(dtype), y)
    light = data.without_zeros()
    assert light.source.blocks[0].X.dtype == np.float64
    coef = np.arange(X.shape[1]) / 7.0
    np.testing.assert_array_equal(light.scores(coef), data.scores(coef))
    assert light.passes is data.passes


def test_rows_that_are_not_mostly_zero_stay_as_they_are(bits):
    X, y = bits
    assert LabelledData.of_arrays(X + 1.0, y).without_zeros() is None
    assert LabelledData.of_arrays(sparse.csr_array(X), y).without_zeros() is None
    full = problem_of(LabelledData.of_arrays(X + 1.0, y), Task.build(p=4.0))
    assert full.lighter() is full


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_gentle_price_tells_the_hessian_at_the_minimum_of_a_steep_one(end, bits):
    X, y = bits
    data = LabelledData.of_arrays(sparse.csr_array(X), y)
    steep, gentle = (problem_of(data, Task.build(p=p, end=end, alpha=1e-3)) for p in (64.0, 16.0))
    assert steep.looks_ahead
    near = lbfgs(gentle, np.zeros(X.shape[1]), tol=1e-2).coef
    there = steep.hessian(lbfgs(steep, near).coef)
    ahead, here = steep.hessian_ahead(gentle, near), steep.hessian(near)
    # in its coordinates the objective is rounder
    apart = [np.std(np.log(linalg.eigvalsh(there, known))) for known in (ahead, here)]
    assert apart[0] < 0.7 * apart[1]


@pytest.mark.parametrize("p", [1.0, 64.0, np.inf])
@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_value_without_its_gradient_is_the_same_value(p, end, bits):
    X, y = bits
    coef = np.arange(X.shape[1]) / 70.0
    weight = np.arange(len(y)) % 3 * 1.0
    full, stored = (
        problem_of(LabelledData.of_arrays(rows, y, weight), Task.build(p=p, end=end, alpha=1e-3))
        for rows in (X, sparse.csr_array(X))
    )
    assert stored.value(coef) == pytest.approx(full.value(coef), rel=1e-12)
    if p < np.inf:
        assert stored.value(coef) == stored.value_grad(coef)[0]


@pytest.mark.parametrize("n_rows", [30, 200, 1000])
def test_rows_drawn_by_weight_keep_its_moments(n_rows):
    rng = np.random.default_rng(7)
    weight, X = np.exp(3.0 * rng.normal(size=500)), rng.normal(size=(500, 2))
    rows, counts = draw_by_weight(weight, n_rows)
    assert len(rows) <= min(n_rows, 500)
    assert np.isclose(np.sum(counts), n_rows)
    mean, want = counts @ X[rows] / n_rows, weight @ X / np.sum(weight)
    if n_rows >= 500:  # every row as it is
        np.testing.assert_allclose(mean, want)
    else:
        assert np.max(np.abs(mean - want)) < 2.0 / np.sqrt(n_rows)
    heavy = weight >= np.sum(weight) / n_rows
    assert np.all(np.isin(np.flatnonzero(heavy), rows))
    np.testing.assert_allclose(counts[heavy[rows]], weight[heavy] * n_rows / np.sum(weight))


def test_the_heaviest_rows_carry_what_is_asked_or_are_too_many():
    weight = np.array([0.5, 8.0, 0.0, 1.0, 0.5])
    rows, kept = heaviest_rows(weight, 0.1, most=2)
    assert rows.tolist() == [1, 3] and kept.tolist() == [8.0, 1.0]
    assert heaviest_rows(weight, 0.1, most=1) is None
    assert heaviest_rows(weight, 0.0, most=4)[0].tolist() == [0, 1, 3, 4]


def test_a_start_far_beyond_the_minimum_is_shortened(lost):
    X, y = lost
    steep = problem_of(LabelledData.of_arrays(X, y), Task.build(p=64.0, alpha=1e-3))
    found = lbfgs(steep, np.zeros(X.shape[1])).coef
    near = shortened(steep, 8.0 * found)
    assert steep.value(near) < steep.value(2.0 * found)
    assert shortened(steep, found) is found
    assert not np.any(shortened(steep, np.zeros(X.shape[1])))


def test_iterations_at_a_gentler_price_count(bits):
    X, y = bits
    problem = problem_of(
        LabelledData.of_arrays(sparse.csr_array(X), y), Task.build(p=64.0, alpha=1e-3)
    )
    told = []
    result = minimise(
        problem,
        np.zeros(X.shape[1]),
        lbfgs,
        max_iter=1000,
        tol=1e-6,
        callback=lambda iteration, record, coef: told.append(record["objective"]),
    )
    assert result.n_iter == len(result.history) == len(told)
    # a mean of the powers p has a lower minimum where p is smaller
    assert min(told) < result.value - 0.01


def test_many_rows_per_feature_need_no_hessian_ahead(bits):
    X, y = bits
    data = LabelledData.of_arrays(sparse.csr_array(np.tile(X[:, :3], (2, 1))), np.tile(y, 2))
    assert not problem_of(data, Task.build(p=64.0)).looks_ahead


def test_large_rows_are_not_stored_twice(bits, monkeypatch):
    import toprank.objective.data as module

    monkeypatch.setattr(module, "_LIGHT_BYTES", 100)
    X, y = bits
    assert LabelledData.of_arrays(X, y).without_zeros() is None


@pytest.mark.parametrize("data", ["bits", "lost"])
def test_the_end_of_the_path_is_the_minimum_that_walking_it_finds(data, request, monkeypatch):
    X, y = request.getfixturevalue(data)
    quick = PNormPush(np.inf).fit(X, y)
    walk_to_the_end(monkeypatch)
    slow = PNormPush(np.inf).fit(X, y)
    assert quick.n_iter_ < slow.n_iter_
    assert quick.optimality_gap_ <= 1e-4 * max(1.0, abs(quick.objective_))
    lower = max(fit.objective_ - fit.optimality_gap_ for fit in (quick, slow))
    assert min(quick.objective_, slow.objective_) >= lower - 1e-12
    both = [auc(y, fit.decision_function(X)) for fit in (quick, slow)]
    assert abs(both[0] - both[1]) < 2e-3


def test_where_nothing_is_to_be_learned_the_ranking_stays(lost):
    X, y = lost
    fit = PNormPush(np.inf).fit(X, y)
    assert 0.0 <= fit.objective_ <= 1e-4  # zero is the minimum
    assert auc(y, fit.decision_function(X)) > 0.6
