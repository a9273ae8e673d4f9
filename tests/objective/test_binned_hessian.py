"""Bins tell the Hessian of losses that do not factorise, without an evaluation per column."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from toprank import PNormPush, PushRanker
from toprank.objective import LabelledData, ScoredProblem, Task, binned_curvature, problem
from toprank.objective.binned_hessian import drawn_rows

LOSSES = ("logistic", "squared_hinge", "hinge")


@pytest.fixture(autouse=True)
def few_entries_are_enough(monkeypatch):
    monkeypatch.setattr(problem, "BINNED_FROM", 1)


def heavy_tails(n=1500, d=12, seed=0):
    """Columns some of whose rows lie dozens of spreads out, and labels that depend on a few."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2.2, size=(n, d))
    X /= X.std(axis=0)
    return X, X[:, :3].sum(axis=1) + rng.logistic(size=n) > 1.5


def scored(X, positive, weight=None, **task):
    task = Task.build(**{"alpha": 1e-3, **task})
    found = ScoredProblem(LabelledData.of_arrays(X, positive, weight), task)
    return found if found.smooth else found.smoothed(0.25)


def stretches(estimate, exact):
    """The least and the largest ratio of two Hessians along any direction."""
    ratios = eigh(estimate, exact, eigvals_only=True)
    return ratios[0], ratios[-1]


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_where_tails_are_heavy_the_estimate_is_near_in_every_direction(loss, p, end):
    X, positive = heavy_tails()
    of_rows = scored(X, positive, loss=loss, p=p, end=end)
    for coef in (0.1 * np.ones(X.shape[1]), np.linspace(-0.3, 0.8, X.shape[1])):
        least, largest = stretches(of_rows.hessian(coef, exact=False), of_rows.hessian(coef))
        assert 0.8 < least <= largest < 1.25


def test_rows_of_weight_zero_and_copies_change_no_estimate():
    X, positive = heavy_tails(n=400)
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    copied = np.repeat(np.arange(len(X)), weight.astype(int))
    coef = np.linspace(-0.3, 0.8, X.shape[1])
    for loss in LOSSES:
        weighed = scored(X, positive, weight, loss=loss).hessian(coef, exact=False)
        repeated = scored(X[copied], positive[copied], loss=loss).hessian(coef, exact=False)
        least, largest = stretches(weighed, repeated)
        assert 0.95 < least <= largest < 1.05


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_takes_no_evaluation_per_column(loss, monkeypatch):
    rng = np.random.default_rng(0)
    places = rng.integers(0, 30, size=(1200, 5)) + 30 * np.arange(5)
    X = sparse.csr_array((np.ones(6000), places.ravel(), 5 * np.arange(1201)), (1200, 150))
    y = X @ rng.normal(size=150) + rng.logistic(size=1200) > 1
    whole = PNormPush(4.0, loss=loss, alpha=1e-2).fit(X, y)
    monkeypatch.setattr(problem, "hessian_in_scores", lambda *_: pytest.fail("column by column"))
    for form in (X, X.toarray()):
        again = PNormPush(4.0, loss=loss, alpha=1e-2).fit(form, y)
        assert again.objective_ == pytest.approx(whole.objective_, abs=1e-4)
    few = PNormPush(4.0, loss=loss, alpha=1e-2).fit(X.toarray()[:, :20], y)
    assert np.isfinite(few.objective_)


def test_small_tables_have_exact_hessians(monkeypatch):
    monkeypatch.undo()
    X, positive = heavy_tails(n=2000)
    assert not scored(X, positive, loss="logistic").close_estimates
    assert scored(np.tile(X, 2), positive, loss="logistic").close_estimates


def test_what_bins_cannot_tell_is_told_exactly():
    X, positive = heavy_tails(n=300)
    coef = np.linspace(-0.3, 0.8, X.shape[1])
    for task in ({"price": "exponential"}, {"end": "both"}):
        of_rows = scored(X, positive, loss="logistic", **task)
        assert not of_rows.close_estimates
        np.testing.assert_array_equal(of_rows.hessian(coef, exact=False), of_rows.hessian(coef))
    assert PushRanker(price="exponential", loss="logistic", alpha=0.1).fit(X, positive).n_iter_


def test_a_bend_is_seen_no_sharper_than_bins_are():
    X, positive = heavy_tails()
    coef = np.linspace(-0.3, 0.8, X.shape[1])
    narrow = scored(X, positive, loss="hinge").with_task(
        Task.build(loss="hinge", alpha=1e-3).smoothed(1e-6)
    )
    wide = narrow.with_task(Task.build(loss="hinge", alpha=1e-3).smoothed(0.05))
    least, largest = stretches(narrow.hessian(coef, exact=False), wide.hessian(coef))
    assert 0.5 < least <= largest < 2.0  # exactly, most pairs would bend nothing at all


def test_narrow_tables_are_read_whole_and_wide_ones_in_part():
    positive = np.arange(60_000) % 3 == 0
    assert len(drawn_rows(positive, None, 20, for_newton=True)) == 60_000
    wide = drawn_rows(positive, None, 100, for_newton=True)
    assert 20_000 <= len(wide) < 40_000
    assert 0.25 < np.mean(positive[wide]) < 0.55
    assert len(drawn_rows(positive, None, 200, for_newton=False)) <= 20_000


def test_sparse_rows_are_added_up_many_at_a_time(monkeypatch):
    sizes = []
    add = binned_curvature._add_tile

    def counted(sums, moments, tile, bins, share, weight):
        sizes.append(len(bins))
        add(sums, moments, tile, bins, share, weight)

    monkeypatch.setattr(binned_curvature, "_add_tile", counted)
    X, positive = heavy_tails(n=1500)
    X[np.abs(X) < 1] = 0
    scored(sparse.csr_array(X), positive, loss="logistic").hessian(np.ones(12), exact=False)
    assert sizes == [1500]
