"""PairRanker with a kernel: the exact solution, Nyström's, and kernels on pairs."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from toprank import PairRanker


@pytest.fixture(scope="module")
def rings():
    """(X, y): the label falls with the distance from the centre; no linear score can tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    return X, -np.hypot(*X.T) + 0.1 * rng.normal(size=150)


def cyclic():
    """(X, pairs): points on a circle, each preferred to those up to half a turn behind it."""
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    behind = (angle[:, None] - angle[None, :]) % (2 * np.pi)
    pairs = np.argwhere((behind > 1e-9) & (behind < np.pi - 1e-9))
    return np.column_stack([np.cos(angle), np.sin(angle)]), pairs


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_exact_solution_minimises_over_all_expansions(loss, rings):
    X, y = rings[0][:40], rings[1][:40]
    ranker = PairRanker(loss=loss, alpha=0.1, kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
    gram = rbf_kernel(X, gamma=0.5)
    i, k = np.nonzero(y[:, None] > y[None, :])

    def objective(a):
        r = (gram @ a)[i] - (gram @ a)[k]
        value = np.maximum(0, 1 - r) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -r)
        return np.mean(value) + 0.05 * a @ gram @ a

    best = optimize.minimize(objective, np.zeros(40), method="BFGS", options={"gtol": 1e-7})
    assert ranker.objective_ == pytest.approx(best.fun, abs=1e-6)
    assert objective(ranker.dual_coef_) == pytest.approx(ranker.objective_, rel=1e-8)
    np.testing.assert_allclose(ranker.predict(X), gram @ ranker.dual_coef_, atol=1e-10)


def test_a_kernel_ranks_what_no_linear_score_can(rings):
    X, y = rings
    assert PairRanker().fit(X, y).score(X, y) < 0.65
    for kernel in ("rbf", "poly", "laplacian"):
        ranker = PairRanker(kernel=kernel, degree=2).fit(X[:100], y[:100])
        assert ranker.score(X[100:], y[100:]) > 0.85
        assert not hasattr(ranker, "coef_")


def test_the_linear_kernel_gives_the_linear_model(rings):
    X, y = rings
    linear = PairRanker(alpha=0.1, tol=1e-9).fit(X, y)
    kernel = PairRanker(alpha=0.1, kernel="linear", tol=1e-9).fit(X, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(kernel.predict(X), X @ linear.coef_, atol=1e-6)


def test_a_callable_is_a_kernel_of_two_rows(rings):
    X, y = rings[0][:60], rings[1][:60]

    def kernel(a, b):
        return (1.0 + a @ b) ** 2

    own = PairRanker(kernel=kernel).fit(X, y)
    named = PairRanker(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y)
    np.testing.assert_allclose(own.predict(X), named.predict(X), atol=1e-6)


def test_few_landmarks_are_those_of_nystroem(rings):
    X, y = rings
    ranker = PairRanker(kernel="rbf", gamma=0.5, n_components=20, random_state=3, tol=1e-9)
    ranker.fit(X, y)
    nystroem = Nystroem(kernel="rbf", gamma=0.5, n_components=20, random_state=3).fit(X)
    linear = PairRanker(tol=1e-9).fit(nystroem.transform(X), y)
    np.testing.assert_array_equal(ranker.landmarks_, nystroem.components_)
    np.testing.assert_allclose(ranker.predict(X), linear.predict(nystroem.transform(X)), atol=1e-6)


def test_as_many_landmarks_as_rows_are_exact_and_more_come_closer(rings):
    X, y = rings
    exact = PairRanker(kernel="rbf").fit(X, y)
    settings = {"kernel": "rbf", "random_state": 0}
    assert PairRanker(n_components=150, **settings).fit(X, y).objective_ == exact.objective_
    # a smaller space has a larger minimum
    few, more = (PairRanker(n_components=m, **settings).fit(X, y).objective_ for m in (5, 60))
    assert few > more > exact.objective_ - 1e-9


def test_sparse_rows_and_blocks_of_rows_give_the_same_scores(rings, monkeypatch):
    X, y = rings
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    for kernel in ("rbf", "poly"):
        dense = PairRanker(kernel=kernel, n_components=40, random_state=0).fit(X, y)
        monkeypatch.setattr("toprank.rankers.kernel._BLOCK_ENTRIES", 700)
        thin = clone(dense).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), dense.predict(X), atol=1e-5)
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda a, b: 0.0, "zero on the training rows"),
        (lambda a, b: -float(a @ b), "not positive semi-definite|zero on the training"),
        (lambda a, b: float(np.sin(5 * (a - b) @ (a - b))), "not positive semi-definite"),
    ],
)
def test_a_function_that_is_no_kernel_is_refused(kernel, words, rings):
    X, y = rings[0][:30], rings[1][:30]
    with pytest.raises(ValueError, match=words):
        PairRanker(kernel=kernel).fit(X, y)


def test_a_kernel_on_pairs_minimises_over_all_expansions():
    X, pairs = cyclic()
    X = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    pairs = pairs[::9]
    ranker = PairRanker(loss="logistic", alpha=0.1, kernel="poly", kernel_on="pairs", tol=1e-9)
    ranker.set_params(degree=2, gamma=1.0).fit(X, pairs=pairs)
    A = 1.0 + polynomial_kernel(X, degree=2, gamma=1.0, coef0=1.0)
    i, k = pairs.T
    gram = A[np.ix_(i, i)] * A[np.ix_(k, k)] - A[np.ix_(i, k)] * A[np.ix_(k, i)]

    def objective(c):
        return np.mean(np.logaddexp(0, -gram @ c)) + 0.05 * c @ gram @ c

    best = optimize.minimize(objective, np.zeros(len(pairs)), options={"gtol": 1e-8})
    assert ranker.objective_ == pytest.approx(best.fun, abs=1e-6)
    np.testing.assert_allclose(ranker.compare(X[i], X[k]), gram @ best.x, atol=1e-2)


@pytest.mark.parametrize("n_components", [None, 40])
def test_a_kernel_on_pairs_learns_preferences_that_go_round_in_circles(n_components):
    X, pairs = cyclic()
    settings = {"kernel": "rbf", "gamma": 1.0, "n_components": n_components, "random_state": 0}
    items = PairRanker(**settings).fit(X, pairs=pairs)
    both = PairRanker(kernel_on="pairs", **settings).fit(X, pairs=pairs)
    right = [np.mean(m.compare(X[pairs[:, 0]], X[pairs[:, 1]]) > 0) for m in (items, both)]
    assert right[0] < 0.7
    assert right[1] == 1.0


def test_its_scores_are_the_mean_comparison_with_the_training_rows(rings):
    X, y = rings[0][:40], rings[1][:40]
    weight = np.where(np.arange(40) < 5, 0.0, 1.0 + np.arange(40) % 2)
    ranker = PairRanker(kernel="rbf", kernel_on="pairs").fit(X, y, sample_weight=weight)
    f = np.array([ranker.compare(np.tile(x, (40, 1)), X) for x in X])
    np.testing.assert_allclose(f, -f.T, atol=1e-10)
    np.testing.assert_allclose(ranker.predict(X), f @ weight / np.sum(weight), atol=1e-10)
    assert ranker.score(X, y, sample_weight=weight) > 0.9


def test_a_price_on_pairs_is_that_of_the_losers_heights(rings):
    X, y = rings[0][:25], rings[1][:25]
    ranker = PairRanker("power", "logistic", 1e-2, "rbf", kernel_on="pairs", p=3.0, tol=1e-9)
    ranker.fit(X, y)
    wins = y[:, None] > y[None, :]
    f = np.array([ranker.compare(np.tile(x, (25, 1)), X) for x in X])
    heights = np.sum(np.where(wins, np.logaddexp(0, -f), 0.0), axis=0)
    risk = (np.sum(heights**3) / np.sum(wins.sum(axis=0) ** 3.0)) ** (1 / 3)
    assert risk < ranker.objective_ < risk + 0.2  # the rest is the penalty
    with pytest.raises(ValueError, match="losers' heights"):
        clone(ranker).set_params(price="log1p", loss="exponential").fit(X, y)


def test_too_many_pairs_for_a_list_are_refused_with_advice():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    with pytest.raises(ValueError, match="499500; the most it takes is 200000"):
        PairRanker(kernel="rbf", kernel_on="pairs").fit(X, X[:, 0])


def test_fitting_another_kind_of_model_leaves_nothing_of_the_last_one(rings):
    X, y = rings
    ranker = PairRanker(warm_start=True).fit(X, y)
    linear = ranker.predict(X)
    ranker.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(ranker, "coef_")
    ranker.set_params(kernel=None).fit(X, y)
    assert not hasattr(ranker, "dual_coef_")
    np.testing.assert_allclose(ranker.predict(X), linear, atol=1e-6)


def test_gamma_auto_is_one_over_the_number_of_columns():
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    given = {"kernel": "rbf", "n_components": 10, "random_state": 0}
    auto, plain = (PairRanker(gamma=gamma, **given).fit(X, y) for gamma in ("auto", 0.25))
    np.testing.assert_array_equal(auto.predict(X), plain.predict(X))
