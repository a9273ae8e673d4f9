"""Bad input gets scikit-learn's exception and a sentence that says what to do."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from toprank import IRPush, PNormPush, PushRanker

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2
RANKERS = [PNormPush(), IRPush(), PushRanker(loss="logistic")]


def with_entry(value, array=X):
    changed = array.astype(float)
    changed.flat[7] = value
    return changed


def weights(value, rows=slice(3, 4)):
    changed = np.ones(20)
    changed[rows] = value
    return changed


BAD_DATA = {
    "one class only": (X, np.ones(20), {}, ValueError, r"one class.*1\.0"),
    "one row": (X[:1], Y[:1], {}, ValueError, "class"),
    "three classes": (X, np.arange(20) % 3, {}, ValueError, "binary.*3 classes"),
    "real targets": (X, X[:, 0], {}, ValueError, "continuous"),
    "missing label": (X, with_entry(np.nan, Y), {}, ValueError, "NaN"),
    "two columns of labels": (X, np.column_stack([Y, Y]), {}, ValueError, "1d array.*\\(20, 2\\)"),
    "no labels": (X, None, {}, ValueError, "requires y"),
    "NaN": (with_entry(np.nan), Y, {}, ValueError, "NaN"),
    "infinity": (with_entry(np.inf), Y, {}, ValueError, "infinity"),
    "sparse NaN": (sparse.csr_array(with_entry(np.nan)), Y, {}, ValueError, "NaN"),
    "strings": (
        [["red", "1"], ["blue", "2"]],
        [0, 1],
        {},
        ValueError,
        "X holds words, such as 'red'",
    ),
    "objects": (np.array([[{}], [{}]], dtype=object), [0, 1], {}, TypeError, "dict"),
    "complex numbers": (X + 1j, Y, {}, ValueError, "[Cc]omplex"),
    "more rows than labels": (X, Y[:-1], {}, ValueError, r"20, 19"),
    "more labels than rows": (X[:-1], Y, {}, ValueError, r"19, 20"),
    "one dimension": (X[:, 0], Y, {}, ValueError, "[Rr]eshape"),
    "three dimensions": (X[None], Y[:1], {}, ValueError, "dim 3|3D"),
    "no features": (np.empty((20, 0)), Y, {}, ValueError, r"0 feature\(s\)"),
    "no rows": (np.empty((0, 3)), Y[:0], {}, ValueError, r"0 sample\(s\)"),
    "negative weight": (X, Y, {"sample_weight": weights(-1.0)}, ValueError, "negative.*-1"),
    "NaN weight": (X, Y, {"sample_weight": weights(np.nan)}, ValueError, "NaN"),
    "infinite weight": (X, Y, {"sample_weight": weights(np.inf)}, ValueError, "infinity"),
    "text weight": (X, Y, {"sample_weight": ["a"] * 20}, ValueError, "convert"),
    "too few weights": (X, Y, {"sample_weight": np.ones(19)}, ValueError, r"\(19,\).*\(20,\)"),
    "a column of weights": (X, Y, {"sample_weight": np.ones((20, 1))}, ValueError, r"\(20, 1\)"),
    "weightless positives": (
        X,
        Y,
        {"sample_weight": weights(0.0, slice(1, None, 2))},
        ValueError,
        "positive row has sample_weight 0",
    ),
    "weightless negatives": (
        X,
        Y,
        {"sample_weight": weights(0.0, slice(0, None, 2))},
        ValueError,
        "negative row has sample_weight 0",
    ),
    "weightless rows": (X, Y, {"sample_weight": np.zeros(20)}, ValueError, "non-zero"),
}

BAD_PARAMETERS = {
    "p below one": (PNormPush(p=0.5), "p.*0.5"),
    "p of zero": (PushRanker(p=0), "'p'.*0"),
    "negative p": (PNormPush(p=-np.inf), "p.*-inf"),
    "p not a number": (PNormPush(p=np.nan), "p.*nan"),
    "p as text": (PNormPush(p="4"), "p.*'4'"),
    "no p": (PNormPush(p=None), "p.*None"),
    "solver": (PNormPush(solver="sgd"), "solver.*'newton'.*'sgd'"),
    "loss": (PNormPush(loss="absolute"), "loss.*'hinge'.*'absolute'"),
    "untrainable loss": (PNormPush(loss="zero_one"), "loss.*'zero_one'"),
    "price": (PushRanker(price="cubic"), "price.*'power'.*'cubic'"),
    "end": (PushRanker(end="middle"), "end.*'top'.*'middle'"),
    "link": (PNormPush(link="probit"), "link.*'logistic'.*'probit'"),
    "negative alpha": (IRPush(alpha=-1.0), "alpha.*-1"),
    "alpha not a number": (IRPush(alpha=np.nan), "alpha.*nan"),
    "infinite alpha": (IRPush(alpha=np.inf), "alpha.*inf"),
    "negative tol": (IRPush(tol=-1.0), "tol.*-1"),
    "tol not a number": (IRPush(tol=np.nan), "tol.*nan"),
    "no iterations": (IRPush(max_iter=0), "max_iter.*0"),
    "half iterations": (IRPush(max_iter=1.5), "max_iter.*1.5"),
    "balance of zero": (PushRanker(end="both", balance=0.0), "balance.*0"),
    "infinite balance": (PushRanker(end="both", balance=np.inf), "balance.*inf"),
    "threads": (PNormPush(n_jobs="two"), "n_jobs.*'two'"),
    "class weight": (PNormPush(class_weight="even"), "class_weight.*'even'"),
    "warm start": (PNormPush(warm_start="yes"), "warm_start.*'yes'"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", BAD_DATA)
@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_bad_data_are_refused_in_words(ranker, case):
    features, labels, more, error, words = BAD_DATA[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn's, on the way to the error
        with pytest.raises(error, match=f"(?s){words}"):
            ranker.fit(features, labels, **more)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_refused_by_name(case):
    ranker, words = BAD_PARAMETERS[case]
    with pytest.raises(InvalidParameterError, match=f"(?s){words}"):
        ranker.fit(X, Y)


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (PushRanker("log1p", loss="logistic"), "log1p.*exponential loss only.*price='power'"),
        (PushRanker(price=(np.exp,)), "price.*callables"),
        (PushRanker(price=("a", "b")), "price.*callables"),
        (PNormPush(loss=(np.exp, np.exp, np.exp, np.exp)), "loss.*callables"),
        (PNormPush(n_jobs=0), "n_jobs"),
        (PNormPush(class_weight={0: -1.0, 1: 1.0}), "negative"),
        (PNormPush(class_weight={0: 0.0, 1: 1.0}), "weight 0"),
        (PNormPush(class_weight={5: 2.0}), "0, 1.*class_weight"),
    ],
)
def test_combinations_without_meaning_are_refused(ranker, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        ranker.fit(X, Y)


@pytest.mark.parametrize("method", ["decision_function", "predict", "predict_proba"])
@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
class TestPredicting:
    def test_before_fitting_is_refused(self, ranker, method):
        fresh = type(ranker)()
        with pytest.raises(NotFittedError, match="fit"):
            getattr(fresh, method)(X)

    def test_with_other_features_is_refused(self, ranker, method):
        fitted = type(ranker)().fit(X, Y)
        with pytest.raises(ValueError, match=r"2 features.*expecting 3"):
            getattr(fitted, method)(X[:, :2])

    def test_with_missing_values_is_refused(self, ranker, method):
        fitted = type(ranker)().fit(X, Y)
        with pytest.raises(ValueError, match="NaN"):
            getattr(fitted, method)(with_entry(np.nan))

    def test_without_rows_is_refused(self, ranker, method):
        fitted = type(ranker)().fit(X, Y)
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            getattr(fitted, method)(np.empty((0, 3)))


@pytest.mark.parametrize(
    "case", ["one class only", "NaN", "negative weight", "weightless positives", "real targets"]
)
@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_a_failed_fit_leaves_the_last_one_usable(ranker, case):
    fitted = type(ranker)().fit(X, Y)
    scores, probability = fitted.decision_function(X), fitted.predict_proba(X)
    features, labels, more, error, _ = BAD_DATA[case]
    with pytest.raises(error):
        fitted.fit(features, labels, **more)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    np.testing.assert_array_equal(fitted.predict_proba(X), probability)


def test_after_a_failed_fit_a_good_one_is_as_if_nothing_had_happened():
    ranker = PNormPush(warm_start=True)
    with pytest.raises(ValueError, match="one class"):
        ranker.fit(X, np.ones(20))
    np.testing.assert_array_equal(ranker.fit(X, Y).coef_, PNormPush().fit(X, Y).coef_)
