"""Two ways through the data, one objective: values, gradients and Hessians agree."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from toprank import PNormPush
from toprank.blocks import from_arrays
from toprank.losses.proper import get_proper_loss
from toprank.objective import (
    BlockData,
    LabelledData,
    PointwiseProblem,
    PointwiseTask,
    PricedProblem,
    ScoredProblem,
    SweptProblem,
    Task,
    build_objective,
    count_labels,
    problem_of,
)
from toprank.objective.pairwise import PairProblem, PairTask
from toprank.objective.root_problem import RootProblem
from toprank.pairs import Graded
from toprank.rankers.blockwise import look

RNG = np.random.default_rng(4)
N, D = 400, 5
POSITIVE = RNG.random(N) < 0.3
X = RNG.normal(size=(N, D)) + 0.4 * POSITIVE[:, None]
WEIGHT = RNG.integers(0, 3, N).astype(float)
COEF = np.array([0.7, -0.3, 0.0, 1.1, -0.6])

TASKS = {
    "top": {"p": 4.0},
    "p of one": {"p": 1.0},
    "steep": {"p": 256.0},
    "bottom": {"p": 4.0, "end": "bottom"},
    "both": {"p": 4.0, "end": "both", "balance": 3.0},
    "identity": {"price": "identity"},
}


def problems(task, weight=None, X=X, positive=POSITIVE):
    data = LabelledData.of_arrays(X, positive, weight)
    return SweptProblem(data, task), ScoredProblem(data, task)


def task_of(name, alpha=0.01):
    return Task.build(alpha=alpha, **TASKS[name])


def assert_equal(swept, scored, coef=COEF):
    (value, gradient), (value2, gradient2) = swept.value_grad(coef), scored.value_grad(coef)
    assert value == pytest.approx(value2, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(gradient, gradient2, rtol=1e-10, atol=1e-10)
    hessian, hessian2 = swept.hessian(coef), scored.hessian(coef)
    atol = 1e-10 * np.max(np.abs(hessian2))
    np.testing.assert_allclose(hessian, hessian2, rtol=1e-10, atol=max(atol, 1e-10))


@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT * 1e-6], ids=["ones", "counts", "tiny"])
@pytest.mark.parametrize("name", TASKS)
def test_one_sweep_equals_two_reads_with_the_scores_kept(name, weight):
    assert_equal(*problems(task_of(name), weight))


@pytest.mark.parametrize("scale", [1e-6, 30.0, 1e3])
@pytest.mark.parametrize("name", TASKS)
def test_they_agree_where_the_tops_lie_far_apart(name, scale):
    assert_equal(*problems(task_of(name)), coef=scale * COEF)


@pytest.mark.parametrize("name", TASKS)
def test_they_agree_where_a_block_holds_one_class_only(name):
    order = np.argsort(POSITIVE, kind="stable")
    long = np.tile(X[order], (60, 1))
    positive = np.sort(np.tile(POSITIVE, 60))
    assert_equal(*problems(task_of(name), X=long, positive=positive))


def test_they_agree_in_other_units():
    swept, scored = problems(task_of("both"), WEIGHT, X + np.array([1e6, 0.0, -1e6, 0, 0]))
    assert not swept.data.units.plain
    assert_equal(swept, scored)


@pytest.mark.parametrize("name", TASKS)
def test_the_gradient_is_that_of_the_values(name):
    for problem in problems(task_of(name), WEIGHT):
        numeric = approx_fprime(COEF, lambda c, p=problem: p.value_grad(c)[0], 1e-7)
        np.testing.assert_allclose(problem.value_grad(COEF)[1], numeric, atol=1e-4)


@pytest.mark.parametrize("name", TASKS)
def test_the_hessian_is_that_of_the_gradients(name):
    for problem in problems(task_of(name), WEIGHT):
        step = 1e-6
        columns = [
            (problem.value_grad(COEF + step * e)[1] - problem.value_grad(COEF - step * e)[1])
            / (2 * step)
            for e in np.eye(D)
        ]
        hessian = problem.hessian(COEF)
        atol = 1e-5 * np.max(np.abs(hessian))
        np.testing.assert_allclose(hessian, np.array(columns), atol=atol)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "logistic"},
        {"loss": "squared_hinge", "p": 2.0},
        {"price": "log1p"},
        {"price": "exponential"},
        {"price": "log1p", "end": "both", "balance": 2.0},
        {"loss": "logistic", "end": "both", "balance": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["its own", "scored"])
def test_the_hessian_is_that_of_the_gradients_for_every_price_and_loss(settings, form):
    task = Task.build(alpha=0.01, **settings)
    data = LabelledData.of_arrays(X, POSITIVE, WEIGHT)
    problem = problem_of(data, task, gather=form == "scored")
    expected = PricedProblem if "price" in settings and form == "its own" else ScoredProblem
    assert isinstance(problem, expected)
    step = 1e-6
    columns = [
        (problem.value_grad(COEF + step * e)[1] - problem.value_grad(COEF - step * e)[1])
        / (2 * step)
        for e in np.eye(D)
    ]
    hessian = problem.hessian(COEF)
    np.testing.assert_allclose(hessian, np.array(columns), atol=1e-4 * np.max(np.abs(hessian)))


def test_the_value_is_the_objective_in_scores_plus_the_penalty():
    for name, settings in TASKS.items():
        expected = build_objective(POSITIVE, WEIGHT, **settings).value(X @ COEF)
        for problem in problems(task_of(name, alpha=0.5), WEIGHT):
            assert problem.value(COEF) == pytest.approx(expected + 0.25 * COEF @ COEF, rel=1e-12)


def every_form(matrix):
    """One problem of each form, on the same rows."""
    data = LabelledData.of_arrays(matrix, POSITIVE, WEIGHT)
    task = Task.build(price="power", p=4.0, loss="logistic", alpha=0.01)
    yield from problems(task_of("both"), WEIGHT, matrix)
    yield problem_of(data, Task.build(price="log1p", alpha=0.01))
    yield RootProblem(data, task)
    proper = PointwiseTask(get_proper_loss("logistic"), 0.01)
    yield PointwiseProblem(LabelledData.of_arrays(matrix, POSITIVE, WEIGHT, intercepts=1), proper)
    grades = np.where(POSITIVE, 1.0 + (np.arange(N) % 2), 0.0)
    pairs = PairTask.build(
        Graded(grades, np.zeros(N, dtype=np.intp), np.arange(N)), np.ones(N), alpha=0.01
    )
    yield PairProblem(BlockData.of(matrix), pairs)


@pytest.mark.parametrize("matrix", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_the_gradient_is_made_of_the_slopes_of_the_rows_and_no_larger_than_their_sizes(matrix):
    for problem in every_form(matrix):
        coef = np.append(COEF, 0.3)[: problem.size]
        gradient = problem.value_grad(coef)[1]
        slopes = problem.row_slopes(coef)
        through = np.column_stack([X, np.ones(N)])[:, : problem.size]
        found = through.T @ slopes + problem.penalty * coef
        np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-12)
        sizes = np.abs(through).T @ np.abs(slopes) + np.abs(problem.penalty * coef)
        told = problem.gradient_sizes(coef)
        np.testing.assert_allclose(told, sizes, rtol=1e-9)
        assert problem.value(coef) == pytest.approx(problem.value_grad(coef)[0], rel=1e-12)


@pytest.mark.parametrize("name", ["top", "p of one"])
def test_the_masses_of_both_classes_are_those_of_the_definition(name):
    for problem in problems(task_of(name), WEIGHT):
        positives, negatives = problem.log_masses(COEF)
        scores, p = X @ COEF, TASKS[name]["p"]
        assert positives == pytest.approx(np.log(np.sum((WEIGHT * np.exp(-scores))[POSITIVE])))
        assert negatives == pytest.approx(np.log(np.sum((WEIGHT * np.exp(p * scores))[~POSITIVE])))


@pytest.mark.parametrize("name", TASKS)
def test_the_reader_with_fewest_reads_is_chosen(name):
    for matrix in (X, sparse.csr_array(X)):
        data = LabelledData.of_arrays(matrix, POSITIVE)
        assert isinstance(problem_of(data, task_of(name)), SweptProblem)


def test_a_sparse_matrix_gives_the_same_problem():
    swept, scored = problems(task_of("top"), WEIGHT)
    thin, thin_scored = problems(task_of("top"), WEIGHT, sparse.csr_array(X))
    assert_equal(swept, thin)
    assert_equal(scored, thin_scored)


class TestCoarseProblem:
    N = 60_000

    def large(self, weight=None, rare=40, **settings):
        rng = np.random.default_rng(0)
        positive = np.zeros(self.N, dtype=bool)
        positive[rng.choice(self.N, rare, replace=False)] = True
        X = rng.normal(size=(self.N, 3)) + positive[:, None]
        data = LabelledData.of_arrays(X, positive, weight)
        return problem_of(data, Task.build(alpha=0.01, **settings))

    def test_few_rows_are_not_thinned(self):
        assert problems(task_of("top"))[0].coarse() is None

    def test_a_rare_class_stays_whole(self):
        problem = self.large()
        coarse = problem.coarse()
        assert np.count_nonzero(coarse.labels[0]) == 40
        assert coarse.n_rows < self.N / 4
        of_positives = coarse.data.dense(np.flatnonzero(coarse.labels[0]))
        expected = problem.data.dense(np.flatnonzero(problem.labels[0]))
        np.testing.assert_array_equal(of_positives, expected)

    def test_the_weights_make_up_for_the_rows_left_out(self):
        coarse = self.large().coarse()
        positive, weight = coarse.labels
        assert weight[positive].sum() == pytest.approx(40)
        assert weight[~positive].sum() == pytest.approx(self.N - 40)

    def test_its_value_is_close_to_that_of_all_rows(self):
        for settings in ({"p": 2.0}, {"loss": "logistic"}, {"price": "log1p"}):
            problem = self.large(rare=20_000, **settings)
            coef = np.array([0.3, 0.2, -0.1])
            assert problem.coarse().value(coef) == pytest.approx(
                problem.value(coef), rel=0.05, abs=0.05
            )

    def test_given_weights_are_kept(self):
        weight = np.random.default_rng(1).integers(0, 3, self.N).astype(float)
        problem = self.large(weight)
        coarse = problem.coarse()
        kept = coarse.labels[1][coarse.labels[0]]
        np.testing.assert_array_equal(kept, weight[problem.labels[0]])

    def test_a_sample_that_lost_a_class_is_not_used(self):
        positive = self.large(rare=30_000).labels[0]
        weight = np.zeros(self.N)
        for side in (True, False):
            weight[np.flatnonzero(positive == side)[1]] = 1.0
        coarse = self.large(weight, rare=30_000).coarse()
        if coarse is not None:
            positive, weight = coarse.labels
            assert weight[positive].sum() > 0
            assert weight[~positive].sum() > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_separation_is_judged_on_the_rows_that_are_present(weighted):
    column = np.where(POSITIVE, 1.0, -1.0)
    column[0] *= -1
    weight = np.ones(N)
    weight[0] = 0.0
    given = weight if weighted else None
    problem = problem_of(LabelledData.of_arrays(column[:, None], POSITIVE, given), task_of("top"))
    assert problem.separates(np.ones(1)) is weighted
    assert not problem.separates(np.zeros(1))


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
def test_sparse_rows_have_the_value_gradient_and_hessian_of_the_double_loop(p):
    rng = np.random.default_rng(3)
    X = sparse.csr_array(np.where(rng.random((60, 4)) < 0.3, rng.normal(size=(60, 4)), 0.0))
    positive, coef = rng.random(60) < 0.3, rng.normal(size=4)
    problem = problem_of(LabelledData.of_arrays(X, positive), Task.build(p=p, alpha=0.5))

    def double_loop(b):
        f = X.toarray() @ b
        heights = [np.mean([np.exp(-(i - k)) for i in f[positive]]) for k in f[~positive]]
        return np.log(np.mean(np.array(heights) ** p)) / p + 0.25 * float(b @ b)

    def slopes(b, step=1e-5):
        apart = step * np.eye(4)
        return np.array([double_loop(b + e) - double_loop(b - e) for e in apart]) / (2 * step)

    value, grad = problem.value_grad(coef)
    assert np.isclose(value, double_loop(coef), rtol=1e-12)
    assert np.allclose(grad, slopes(coef), atol=1e-8)
    bends = [(slopes(coef + e) - slopes(coef - e)) / 2e-4 for e in 1e-4 * np.eye(4)]
    assert np.allclose(problem.hessian(coef), bends, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("p", [1.0, 4.0, 1e4])
def test_sparse_blocks_add_up_to_the_dense_problem(p, scale, weighted):
    rows = np.argsort(~POSITIVE, kind="stable")  # some blocks hold one class only
    dense = np.where(X > 0.5, X, 0.0)[rows]
    weight = WEIGHT[rows] if weighted else None
    weight = weight if weight is None else np.where(np.arange(N) < 50, 0.0, weight)
    source = from_arrays(sparse.csr_array(dense), POSITIVE[rows], weight, block_rows=50)
    data = LabelledData(source, count_labels(source), np.array([False, True]), None, D)
    thin = SweptProblem(data, Task.build(p=p, alpha=0.01))
    assert len(source.blocks) == 8 and thin._reads_stored_entries
    full, _ = problems(Task.build(p=p, alpha=0.01), weight, dense, POSITIVE[rows])
    with np.errstate(under="ignore"):
        (value, grad), (value2, grad2) = (one.value_grad(scale * COEF) for one in (thin, full))
    assert value == pytest.approx(value2, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(grad, grad2, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1.0, 64.0])
def test_a_rough_hessian_of_many_stored_entries_is_that_of_the_double_precision_one(p, weighted):
    rng = np.random.default_rng(2)
    thin = np.where(rng.random((N, 120)) < 0.2, rng.normal(size=(N, 120)), 0.0)
    data = LabelledData.of_arrays(sparse.csr_array(thin), POSITIVE, WEIGHT if weighted else None)
    problem = SweptProblem(data, Task.build(p=p, alpha=0.01))
    coef = rng.normal(size=120) / 20
    assert problem._worth_rounding
    rough, exact = (problem.hessian(coef, exact=exact) for exact in (False, True))
    assert not np.array_equal(rough, exact)
    np.testing.assert_allclose(rough, exact, atol=1e-5 * np.max(np.abs(exact)))


@pytest.mark.more
def test_a_hard_push_on_wide_rows_of_zeros_ends_at_the_same_minimum():
    rng = np.random.default_rng(0)
    bits = (rng.random((4_000, 110)) < 0.1).astype(float)
    positive = bits @ rng.normal(size=110) + rng.logistic(size=len(bits)) > 1
    rows = LabelledData.of_arrays(bits, positive)
    assert SweptProblem(rows, Task.build(p=64.0)).gradients_first < rows.n_features // 6
    quick = PNormPush(p=64).fit(bits, positive)
    plain = PNormPush(p=64, solver="newton").fit(bits, positive)
    assert quick.optimality_gap_ < 1e-6
    assert quick.objective_ == pytest.approx(plain.objective_, abs=1e-8)


def test_prices_that_no_float_holds_are_infinite_and_have_no_slope():
    away = from_arrays(X, POSITIVE, WEIGHT, block_rows=len(X) // 3)
    away.in_memory = False
    data = look(away, None, 0)
    problem = PricedProblem(data, Task.build(price="exponential"))
    value, gradient = problem.value_grad(1e4 * COEF)
    assert value == np.inf
    assert not gradient.any() and not problem.hessian(1e4 * COEF).any()


def test_rows_that_are_mostly_zero_are_known_however_they_are_stored():
    few = np.where(np.abs(X) > 2.0, X, 0.0)
    for given, zero in ((X, False), (few, True), (sparse.csr_array(few), True)):
        assert LabelledData.of_arrays(given, POSITIVE, None).mostly_zero is zero
