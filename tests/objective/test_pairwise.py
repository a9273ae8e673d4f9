"""The convex risk over any pairs: its definition, its derivatives, its two-class case."""

import numpy as np
import pytest

from toprank import PairRanker
from toprank.losses import get_loss
from toprank.objective import BlockData, build_objective
from toprank.objective.pairwise import PairProblem, PairTask
from toprank.pairs import Explicit, Graded

LOSSES = ("squared_hinge", "hinge", "logistic", "exponential")
SETTINGS = [
    *((loss, price) for loss in LOSSES for price in ("identity", "power", "max", "exponential")),
    ("exponential", "log1p"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    weight = rng.integers(1, 4, 60).astype(float)
    return labels, groups, weight, rng.normal(size=60), rng.normal(size=(60, 4))


def relations(labels, groups):
    wins = (labels[:, None] > labels[None, :]) & (groups[:, None] == groups[None, :])
    return Graded(labels, groups, np.arange(len(labels))), Explicit(*np.nonzero(wins)), wins


def by_definition(wins, weight, scores, loss, price, p):
    """(the normalised objective, or the risk itself) from the paper's double sum."""
    values = np.where(wins, loss.value(scores[:, None] - scores[None, :]), 0.0)
    heights, most = weight @ values, weight @ wins
    if price == "log1p":
        return weight @ np.log1p(values @ weight)
    if price == "exponential":
        lost = most > 0
        return np.log(weight[lost] @ np.exp(heights[lost]))
    if price == "max":
        mean = np.max(heights) / np.max(most)
    else:
        p = 1.0 if price == "identity" else p
        mean = ((weight @ heights**p) / (weight @ most**p)) ** (1 / p)
    return np.log(mean) if loss.factorises else mean


@pytest.mark.parametrize(("loss", "price"), SETTINGS)
def test_the_objective_is_its_definition_for_labels_and_for_listed_pairs(loss, price, rows):
    labels, groups, weight, scores, _ = rows
    graded, explicit, wins = relations(labels, groups)
    expected = by_definition(wins, weight, scores, get_loss(loss), price, 3.0)
    for relation in (graded, explicit):
        task = PairTask.build(relation, weight, price=price, p=3.0, loss=loss)
        assert task.objective().value(scores) == pytest.approx(expected, rel=1e-12)
        assert task.objective().value_grad(scores)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("loss", "price"), SETTINGS)
def test_two_classes_are_the_push_of_two_classes(loss, price, rows):
    _, _, weight, scores, _ = rows
    positive = np.arange(60) % 3 == 0
    relation = Graded(positive.astype(int), None, np.arange(60))
    pairs = PairTask.build(relation, weight, price=price, p=3.0, loss=loss).objective()
    push = build_objective(positive, weight, price=price, p=3.0, loss=loss)
    value, grad = pairs.value_grad(scores)
    expected, expected_grad = push.value_grad(scores)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-10, atol=1e-14 * abs(expected))
    if pairs.has_curvature and pairs.smooth:
        v = np.random.default_rng(1).normal(size=60)
        got, wanted = pairs.hessian_map(scores)(v), push.hessian_map(scores)(v)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12 * np.max(np.abs(wanted)))


@pytest.mark.parametrize(("loss", "price"), [s for s in SETTINGS if "max" not in s])
def test_gradient_and_hessian_are_those_of_finite_differences(loss, price, rows):
    labels, groups, weight, _, X = rows
    graded, explicit, _ = relations(labels, groups)
    coef, step = np.array([0.3, -0.2, 0.5, 0.1]), 1e-6
    for relation in (graded, explicit):
        task = PairTask.build(relation, weight, price=price, p=3.0, loss=loss, alpha=0.1)
        problem = PairProblem(BlockData.of(X), task)
        grad = problem.value_grad(coef)[1]
        moved = [
            [problem.value_grad(coef + sign * step * unit) for sign in (1, -1)]
            for unit in np.eye(4)
        ]
        slopes = [(up[0] - down[0]) / (2 * step) for up, down in moved]
        np.testing.assert_allclose(grad, slopes, rtol=1e-6, atol=1e-7)
        if loss != "hinge":
            bends = np.array([(up[1] - down[1]) / (2 * step) for up, down in moved])
            np.testing.assert_allclose(problem.hessian(coef), bends, rtol=1e-4, atol=1e-4)


@pytest.mark.more
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential"])
def test_a_hessian_from_a_sample_of_the_pairs_comes_near_the_exact_one(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    relation = Graded(X @ [1.0, 0.5, 0.0] + rng.normal(size=2000), None, np.arange(2000))
    task = PairTask.build(relation, np.ones(2000), loss=loss, alpha=1e-3)
    problem = PairProblem(BlockData.of(X), task)
    coef = np.array([0.4, 0.2, 0.0])
    exact, sampled = problem.hessian(coef), problem.hessian(coef, exact=False)
    assert not np.array_equal(exact, sampled)
    assert np.max(np.abs(exact - sampled)) < 0.05 * np.max(exact)


@pytest.mark.parametrize("price", ["identity", "max"])
def test_smoothed_problems_lie_below_and_meet_the_hinge(price, rows):
    labels, groups, weight, _, X = rows
    graded, _, _ = relations(labels, groups)
    task = PairTask.build(graded, weight, price=price, loss="hinge")
    problem = PairProblem(BlockData.of(X), task)
    coef = np.array([0.3, -0.2, 0.5, 0.1])
    whole = problem.value(coef)
    below = [problem.smoothed(level).value_grad(coef)[0] for level in (1.0, 0.1, 1e-3)]
    assert below == sorted(below)
    assert 0 <= whole - below[-1] < 1e-2 * whole


@pytest.mark.more
def test_a_large_problem_starts_on_fewer_rows_of_nearly_the_same_risk():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=40_000)
    for groups in (None, np.arange(40_000) // 4):
        relation = Graded(y, groups, np.arange(40_000))
        task = PairTask.build(relation, np.ones(40_000), price="power", p=2.0)
        problem = PairProblem(BlockData.of(X), task)
        coarse = problem.coarse()
        assert coarse.n_rows < 12_000
        coef = np.array([0.4, -0.4])
        assert coarse.value(coef) == pytest.approx(problem.value(coef), rel=0.1)


def test_separation_is_seen_on_the_pairs_alone():
    X = np.array([[0.0], [1.0], [0.5], [0.2]])
    apart = Explicit(np.array([1, 2]), np.array([0, 3]))
    problem = PairProblem(BlockData.of(X), PairTask.build(apart, np.ones(4)))
    assert problem.separates(np.ones(1))
    assert not problem.separates(-np.ones(1))
    assert not problem.separates(np.zeros(1))  # ties are not in order


@pytest.mark.parametrize("kind", ["grades", "groups of which few have pairs"])
def test_a_sample_to_start_on_leaves_the_minimum_where_it_is(kind, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 3))
    labels, groups = np.digitize(X[:, 0] + rng.logistic(size=600), [-1, 1]), None
    if kind != "grades":
        groups = np.arange(600) // 2
        labels[groups % 12 == 0] = 1  # those that a sample takes
    ranker = PairRanker(price="power", p=3.0, tol=1e-9)
    whole = ranker.fit(X, labels, groups=groups).coef_.copy()
    monkeypatch.setattr("toprank.objective.pairwise._COARSE_ROWS", 50)
    monkeypatch.setattr("toprank.objective.pairwise._COARSE_ROWS_PER_FEATURE", 1)
    found = ranker.fit(X, labels, groups=groups)
    np.testing.assert_allclose(found.coef_, whole, rtol=0, atol=1e-6 * np.abs(whole).max())
