"""What the objective meets rarely: mapped files, folds of streams, steps that go too far."""

import numpy as np
import pytest
from scipy import sparse

from toprank import blocks
from toprank.losses.proper import get_proper_loss
from toprank.objective import LabelledData, PointwiseTask, Task, count_labels, problem_of
from toprank.objective import data as data_module
from toprank.rankers.common import _Curve
from toprank.solvers import lbfgs, newton
from toprank.solvers.result import is_cancelled

RNG = np.random.default_rng(11)
BITS = (RNG.random((600, 40)) < 0.05).astype(np.float64)
POSITIVE = BITS @ RNG.normal(size=40) + RNG.logistic(size=600) > 1.0


def looked_at(source, like=None, size=None):
    classes = np.array([False, True])
    n = size or source.n_features
    return LabelledData(source, count_labels(source), classes, None, n, like)


def test_rows_of_a_mapped_file_are_not_copied_without_their_zeros(tmp_path):
    np.save(tmp_path / "X.npy", BITS)
    mapped = looked_at(blocks.from_memmap(tmp_path / "X.npy", POSITIVE))
    assert mapped.without_zeros() is None  # the file may be larger than memory
    assert looked_at(blocks.from_arrays(BITS, POSITIVE)).without_zeros().sparse


@pytest.fixture
def thinned(monkeypatch):
    """A few hundred rows are many, of which some stand for all."""
    monkeypatch.setattr(data_module, "_COARSE_ROWS", (60, 100))
    monkeypatch.setattr(data_module, "_COARSE_ROWS_PER_FEATURE", 1)


@pytest.mark.usefixtures("thinned")
def test_a_part_of_a_stream_draws_its_own_rows_to_stand_for_it():
    X = RNG.normal(size=(900, 3)) * [1.0, 10.0, 0.1]
    y = X[:, 0] + RNG.logistic(size=900) > 0.5
    weight = RNG.integers(0, 3, size=900).astype(float)

    def source(rows, streamed):
        made = blocks.from_arrays(X[rows], y[rows], weight[rows], block_rows=170)
        made.keeps_samples = not streamed
        return made

    rows, coef = np.arange(200, 900), np.array([0.5, -0.1, 2.0])
    here, there = (
        looked_at(source(rows, streamed), looked_at(source(slice(None), streamed)))
        for streamed in (False, True)
    )
    view = there.view
    assert 60 <= there.coarser.n_rows == here.coarser.n_rows < 350
    assert there.view is view and there.units is not None  # those of all rows
    for found, wanted in ((there, here), (there.coarser, here.coarser)):
        np.testing.assert_allclose(found.scores(coef), wanted.scores(coef))
        assert found.totals == pytest.approx(wanted.totals)
    np.testing.assert_allclose(there.spaced_scores(coef), here.spaced_scores(coef))


@pytest.mark.parametrize("solver", [newton, lbfgs])
def test_solvers_of_smooth_problems_refuse_the_largest_height(solver):
    problem = problem_of(LabelledData.of_arrays(BITS, POSITIVE), Task.build(p=np.inf, alpha=0.1))
    assert not problem.smooth
    with pytest.raises(TypeError, match="largest height is not smooth; ask a smoothed problem"):
        solver(problem, np.zeros(problem.size))
    with pytest.raises(TypeError, match="largest height is not smooth; ask a smoothed problem"):
        problem.hessian(np.zeros(problem.size))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_smooth_pointwise_problem_is_its_own_smoothing(loss):
    task = PointwiseTask(get_proper_loss(loss), 0.1)
    problem = problem_of(LabelledData.of_arrays(BITS, POSITIVE, intercepts=1), task)
    coef = RNG.normal(size=problem.size) / 9.0
    for level in (1.0, 1e-3):
        assert problem.smoothed(level).value(coef) == problem.value(coef)


def test_an_intercept_is_left_where_a_step_would_go_too_far():
    # there the curvature has vanished, and Newton's step leads to -1e12 or so
    most = ~POSITIVE
    task = PointwiseTask(get_proper_loss("logistic"), 0.1)
    problem = problem_of(LabelledData.of_arrays(BITS, most, intercepts=1), task)
    far = np.append(np.zeros(40), 30.0)
    np.testing.assert_array_equal(problem.settle_intercept(far), far)
    near = np.append(np.zeros(40), 1.0)
    share = np.mean(most)
    assert problem.settle_intercept(near)[-1] == pytest.approx(np.log(share / (1 - share)))


@pytest.mark.more
def test_rough_moments_of_blocks_are_those_of_all_rows():
    rng = np.random.default_rng(2)
    X = sparse.csr_array((rng.random((900, 600)) < 0.3) * rng.normal(size=(900, 600)))
    y = rng.random(900) < 0.3
    task, coef = Task.build(p=4.0, alpha=0.01), rng.normal(size=600) / 30.0
    found = []
    for rows in (900, 250):
        problem = problem_of(looked_at(blocks.from_arrays(X, y, block_rows=rows)), task)
        found.append(problem.hessian(coef, exact=False))
        assert problem.data.passes["roughmoments"] == 1
    exact = problem.hessian(coef)
    for rough in found:
        np.testing.assert_allclose(rough, exact, rtol=1e-4, atol=1e-5 * np.max(exact))


def test_a_curve_of_standard_scores_excuses_no_gradient_as_cancelled():
    u = np.linspace(-2.0, 2.0, 50)
    curve = _Curve(u, u + np.sin(9 * u) > 0.3, np.ones(50))
    coef = np.array([1.0, 0.0])
    _, gradient = curve.value_grad(coef)
    assert not is_cancelled(curve, coef, gradient, tol=0.0)
