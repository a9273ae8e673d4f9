"""Separable classes, features of any size: finite results, or a warning that names the cause."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from toprank import IRPush, PNormPush, PushRanker

SOLVERS = ["newton", "lbfgs", "coordinate"]
#: Objectives that fall for ever on separable data; the hinges reach zero and stay there.
ENDLESS = [
    {"p": 1.0},
    {"p": 4.0},
    {"p": 64.0},
    {"p": np.inf},
    {"p": 4.0, "loss": "logistic"},
    {"price": "log1p"},
    {"price": "exponential"},
    {"p": 4.0, "end": "bottom"},
    {"p": 4.0, "end": "both"},
]
RANKERS = [
    PNormPush(),
    PNormPush(solver="lbfgs"),
    PNormPush(solver="coordinate"),
    PNormPush(alpha=0.0),
    PNormPush(alpha=0.0, solver="coordinate"),
    PNormPush(p=np.inf),
    PNormPush(p=1000),
    PNormPush(loss="logistic"),
    PNormPush(loss="squared_hinge"),
    PNormPush(loss="hinge"),
    PNormPush(link="p_classification"),
    IRPush(),
    PushRanker("exponential"),
    PushRanker(end="both"),
]
Y = np.arange(60) % 2


def plain():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 0] += 0.7 * Y
    return X


def one_column(size):
    X = plain()
    X[:, 1] *= size / np.max(np.abs(X[:, 1]))
    return X


def every_column(size):
    X = plain()
    return X / np.max(np.abs(X)) * size


def constant(size):
    X = plain()
    X[:, 1] = size
    return X


def outlier(size):
    X = plain()
    X[3, 1] = size
    return X


def offset(size):
    X = plain()
    X[:, 1] += size
    return X


def opposite_sizes(size):
    X = plain()
    X[:, 1] *= size
    X[:, 2] /= size
    return X


EXTREMES = [
    *[(one_column, size) for size in (1e98, 1e50, 1e-150, 1e-300)],
    *[(every_column, size) for size in (1e98, 1e50, 1e-150, 1e-300, 1e-320)],
    *[(constant, size) for size in (0.0, 1e100, -1e50, 1e-300)],
    *[(outlier, size) for size in (1e15, 1e50, 1e100)],
    *[(offset, size) for size in (1e10, 1e16, 1e99)],
    (opposite_sizes, 1e98),
]
each_extreme = pytest.mark.parametrize(
    ("make", "size"), EXTREMES, ids=[f"{make.__name__} {size:g}" for make, size in EXTREMES]
)
each_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=repr)


def fit_and_check(ranker, X, y=Y):
    """Fit and predict; nothing but a ConvergenceWarning may be said, nothing be NaN.

    Of columns that say nothing, p = inf says besides that all rows got the same score.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        if getattr(ranker, "p", None) == np.inf:
            warnings.filterwarnings("ignore", "All rows got the same score")
        ranker.fit(X, y)
        results = [
            ranker.coef_,
            ranker.intercept_,
            ranker.decision_function(X),
            ranker.predict_proba(X),
        ]
        assert not np.isnan(ranker.predict_log_proba(X)).any()
        assert set(ranker.predict(X)) <= set(y)
    for result in results:
        assert np.isfinite(result).all()
    return ranker


@pytest.mark.sampled(9)
@each_extreme
@each_ranker
def test_features_of_any_size_give_finite_results(ranker, make, size):
    fit_and_check(ranker, make(size))


@pytest.mark.sampled(7)
@each_extreme
@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(),
        PNormPush(p=np.inf),
        PNormPush(alpha=0.0, solver="coordinate"),
        PNormPush(loss="squared_hinge"),
        IRPush(),
    ],
    ids=repr,
)
def test_sparse_features_of_any_size_give_finite_results(ranker, make, size):
    fit_and_check(ranker, sparse.csr_array(make(size)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("size", [1e12, 1e14, 1e15, 1e16])
def test_coordinate_descent_survives_slopes_that_are_all_rounding(size, alpha):
    for seed in range(6):  # a sparse column is not centred: its slope cancels from 1e16 to 1
        X = np.random.default_rng(seed).normal(size=(60, 3)) + np.array([0.0, size, 0.0])
        fit_and_check(PNormPush(alpha=alpha, solver="coordinate"), sparse.csr_array(X))


@pytest.mark.parametrize("make", [constant, outlier, offset])
@pytest.mark.parametrize("size", [1e50, 1e99])
def test_an_extreme_column_does_not_spoil_the_others(make, size):
    fit = fit_and_check(PNormPush(), make(size))
    scores = fit.decision_function(make(size))
    assert scores[Y == 1].mean() > scores[Y == 0].mean()


def test_predicting_features_larger_than_any_seen_overflows_in_silence():
    fit = PNormPush().fit(plain(), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probability = fit.predict_proba(np.full((2, 3), 1e100))
    assert not np.isnan(probability).any()


@pytest.mark.sampled(5)
@each_ranker
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_sizes_beyond_1e100_are_refused_with_the_remedy(ranker, make):
    for size in (1.1e100, 1e300, np.finfo(float).max):
        with pytest.raises(ValueError, match=r"at most 1e\+100.*missing values, replace them"):
            ranker.fit(make(outlier(size)), Y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("settings", ENDLESS, ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_separable_classes_without_a_penalty_are_named_as_the_cause(solver, settings, separable):
    X, y = separable
    ranker = PushRanker(**settings, alpha=0.0, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"(?s)separable.*alpha=0.*Set alpha > 0"):
        ranker.fit(X, y)
    assert np.isfinite(ranker.coef_).all()
    scores = ranker.decision_function(X)
    assert scores[y == 1].min() > scores[y == 0].max()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_hinges_rank_separable_classes_perfectly_without_a_penalty(solver, loss, separable):
    X, y = separable
    ranker = fit_and_check(PNormPush(loss=loss, alpha=0.0, solver=solver), X, y)
    scores = ranker.decision_function(X)
    assert scores[y == 1].min() > scores[y == 0].max()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("settings", ENDLESS, ids=str)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_separable_classes_with_a_penalty_need_no_warning(solver, settings, separable):
    X, y = separable
    fit = PushRanker(**settings, solver=solver).fit(X, y)
    scores = fit.decision_function(X)
    assert scores[y == 1].min() > scores[y == 0].max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_features_than_rows_are_separable_and_said_to_be(solver):
    X = np.random.default_rng(0).normal(size=(12, 40))
    ranker = PNormPush(alpha=0.0, solver=solver)
    with pytest.warns(ConvergenceWarning, match="separable"):
        ranker.fit(X, np.arange(12) % 2)
    assert np.isfinite(ranker.coef_).all()


def test_rows_of_weight_zero_do_not_hide_that_the_classes_are_separable(separable):
    X, y = separable
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, 1 - y[:5]])
    weight = np.repeat([1.0, 0.0], [len(y) - 5, 5])
    with pytest.warns(ConvergenceWarning, match="separable"):
        PNormPush(alpha=0.0).fit(X, y, weight)


def test_features_that_never_vary_give_equal_scores():
    fit = fit_and_check(PNormPush(), np.full((60, 3), 7.0))
    assert np.ptp(fit.decision_function(np.full((60, 3), 7.0))) == 0
    np.testing.assert_allclose(fit.coef_, 0.0)


def test_two_rows_are_enough():
    fit = fit_and_check(PNormPush(), np.array([[0.0], [1.0]]), np.array([0, 1]))
    assert fit.coef_[0, 0] > 0


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, 1e300])
def test_weights_of_any_size_give_the_same_ranking(weight):
    X = plain()
    expected = PNormPush().fit(X, Y).coef_
    fit = fit_and_check(PNormPush(), X)
    fit.fit(X, Y, np.full(60, weight))
    np.testing.assert_allclose(fit.coef_, expected, rtol=1e-5)
    assert np.isfinite(fit.predict_proba(X)).all()
