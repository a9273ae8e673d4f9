"""Any valid problem gets finite scores that do not depend on how its rows are told; any other is
refused by a ValueError or TypeError."""

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from fuzz import strategies as fuzz
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

FEW = max(2, settings().max_examples // 2)  # five in level 1, twenty-five in level 2
#: Slow tests try this many times as many problems; .ci/nightly asks for a hundred thousand in all.
TIMES = int(os.environ.get("TOPRANK_FUZZ_TIMES", "1"))


def fitted(problem, ranker=None):
    """The fitted ranker; it may say that it stopped early, which is documented, but no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return problem.fit(copy.deepcopy(problem.ranker) if ranker is None else ranker)


def assert_close(found, wanted, tolerance):
    """Scores agree in units of the largest."""
    scale = 1 + np.max(np.abs(wanted), initial=0.0)
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=tolerance)


# What holds of any problem ----------------------------------------------------------------------


def scores_are_finite(problem):
    scores = problem.scores(fitted(problem))
    assert scores.shape == problem.y.shape
    assert np.all(np.isfinite(scores))


def chances_add_up_and_labels_are_those_given(problem):
    ranker, X = fitted(problem), fuzz.in_form(problem.X, problem.form)
    if not hasattr(ranker, "predict_proba"):
        return
    chances = ranker.predict_proba(X)
    assert np.all((chances >= 0) & (chances <= 1))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    assert set(ranker.predict(X).tolist()) <= set(problem.y.tolist())


def a_row_has_the_same_score_alone_and_in_company(problem):
    ranker = fitted(problem)
    alone = [problem.scores(ranker, problem.X[[row]])[0] for row in range(len(problem.y))]
    assert_close(np.array(alone), problem.scores(ranker), 1e-9)


def rows_never_seen_get_finite_scores(problem):
    assert np.all(np.isfinite(problem.scores(fitted(problem), problem.X[::-1] * 3 - 1)))


def a_pickle_scores_alike(problem):
    ranker = fitted(problem)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(problem.scores(again), problem.scores(ranker))


def a_clone_is_unfitted_and_fits_alike(problem):
    ranker = fitted(problem)
    fresh = clone(ranker)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    assert repr(fresh.get_params()) == repr(ranker.get_params())
    np.testing.assert_array_equal(problem.scores(fitted(problem, fresh)), problem.scores(ranker))


def the_data_stay_as_they_were(problem):
    X, y = fuzz.in_form(problem.X, "columns").copy(order="F"), problem.y.copy()
    weight = problem.fit_params.get("sample_weight")
    before = None if weight is None else weight.copy()
    copied = fuzz.Problem(problem.ranker, X, y, "columns", problem.fit_params)
    fitted(copied)
    np.testing.assert_array_equal(X, problem.X)
    np.testing.assert_array_equal(y, problem.y)
    if weight is not None:
        np.testing.assert_array_equal(weight, before)


OF_ANY = (
    scores_are_finite,
    chances_add_up_and_labels_are_those_given,
    a_row_has_the_same_score_alone_and_in_company,
    rows_never_seen_get_finite_scores,
    a_pickle_scores_alike,
    a_clone_is_unfitted_and_fits_alike,
    the_data_stay_as_they_were,
)


@pytest.mark.parametrize("promise", OF_ANY)
@given(problem=fuzz.problems())
@settings(max_examples=FEW)
def test_of_any_valid_problem_it_holds_that(promise, problem):
    promise(problem)


@pytest.mark.slow
@pytest.mark.parametrize("promise", OF_ANY)
@given(problem=fuzz.problems(most_rows=60))
@settings(max_examples=400 * TIMES)
def test_of_each_of_many_valid_problems_it_holds_that(promise, problem):
    promise(problem)


@pytest.mark.parametrize("promise", OF_ANY)
@given(problem=fuzz.pair_problems())
@settings(max_examples=FEW // 2)
def test_of_any_valid_problem_of_pairs_it_holds_that(promise, problem):
    promise(problem)


@pytest.mark.slow
@pytest.mark.parametrize("promise", OF_ANY)
@given(problem=fuzz.pair_problems(most_rows=40))
@settings(max_examples=200 * TIMES)
def test_of_each_of_many_valid_problems_of_pairs_it_holds_that(promise, problem):
    promise(problem)


# What holds where the answer is the minimum of a convex function ---------------------------------


def a_weight_is_a_repetition(problem, rng):
    counts = rng.integers(0, 4, len(problem.y))
    for label in np.unique(problem.y):
        counts[np.flatnonzero(problem.y == label)[0]] += 1
    rows = np.arange(len(problem.y))
    same_minimum(problem.taken(rows, counts.astype(float)), problem.taken(np.repeat(rows, counts)))


def the_order_of_the_rows_does_not_matter(problem, rng):
    rows = np.arange(len(problem.y))
    weight = rng.random(len(rows)) + 0.5
    order = rng.permutation(rows)
    same_minimum(problem.taken(rows, weight), problem.taken(order, weight[order]))


def the_form_of_the_matrix_does_not_matter(problem, rng):
    rows = np.arange(len(problem.y))
    plain = fuzz.Problem(problem.ranker, problem.X, problem.y)
    form = rng.choice([form for form in fuzz.FORMS if form != "float32"])
    same_minimum(plain, fuzz.Problem(problem.ranker, problem.X[rows], problem.y, str(form)))


def same_minimum(one, other):
    first, second = fitted(one), fitted(other)
    np.testing.assert_allclose(first.objective_, second.objective_, rtol=1e-6, atol=1e-9)
    assert_close(one.scores(first), other.scores(second, one.X), 2e-3)


OF_CONVEX = (
    a_weight_is_a_repetition,
    the_order_of_the_rows_does_not_matter,
    the_form_of_the_matrix_does_not_matter,
)
CONVEX = fuzz.problems(fuzz.linear(alphas=(0.1, 1.0)), scales=(1.0, 100.0))


@pytest.mark.parametrize("promise", OF_CONVEX)
@given(problem=CONVEX, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=FEW)
def test_of_any_linear_ranking_it_holds_that(promise, problem, seed):
    promise(problem, np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize("promise", OF_CONVEX)
@given(problem=CONVEX, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=400 * TIMES)
def test_of_each_of_many_linear_rankings_it_holds_that(promise, problem, seed):
    promise(problem, np.random.default_rng(seed))


# What is refused --------------------------------------------------------------------------------


def refuses_a_parameter(problem, draw):
    name, value = draw.draw(fuzz.invalid_settings(problem.ranker))
    ranker = copy.deepcopy(problem.ranker).set_params(**{name: value})
    with pytest.raises((ValueError, TypeError)) as caught:
        problem.fit(ranker)
    assert name in str(caught.value)
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)


def refuses_spoilt_data(problem, draw):
    how = draw.draw(st.sampled_from(fuzz.SPOILT))
    X, y, weight = fuzz.spoilt(problem, how)
    ranker = copy.deepcopy(problem.ranker)
    with pytest.raises((ValueError, TypeError)) as caught:
        ranker.fit(X, y, sample_weight=weight)
    assert len(str(caught.value)) > 10
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)
    np.testing.assert_array_equal(
        problem.scores(fitted(problem, ranker)), problem.scores(fitted(problem))
    )


REFUSALS = (refuses_a_parameter, refuses_spoilt_data)


@pytest.mark.parametrize("promise", REFUSALS)
@given(problem=fuzz.problems(), data=st.data())
@settings(max_examples=2 * FEW)
def test_any_ranker(promise, problem, data):
    promise(problem, data)


@pytest.mark.slow
@pytest.mark.parametrize("promise", REFUSALS)
@given(problem=fuzz.problems(), data=st.data())
@settings(max_examples=600 * TIMES)
def test_any_ranker_many_times(promise, problem, data):
    promise(problem, data)
