"""What every registered metric promises: labels, weights, refusals, scorers, bounds."""

import inspect
import pickle
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import toprank.metrics
from toprank.metrics import METRICS, f_skew, ranks, scorer, summary
from toprank.metrics.metric import LOWER, SAME_AT_RANDOM

Y, S = [0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 0.0]
TWO_CLASS = {name: metric for name, metric in METRICS.items() if name != "ranking_risk"}


def call(name, y, s, **parameters):
    return METRICS[name].function(y, s, **{**METRICS[name].settings, **parameters})


def test_every_public_function_of_two_arrays_is_registered_or_known_to_be_no_score():
    public = {
        name
        for name in toprank.metrics.__all__
        if inspect.isfunction(function := getattr(toprank.metrics, name))
        and list(inspect.signature(function).parameters)[1:2] == ["y_score"]
    }
    vectors = {"heights", "reverse_heights", "ranks", "margin_distribution"}
    others = {"best_k", "f_skew", "rank_risk", "summary", "threshold_for"}
    assert public == set(METRICS) | vectors | others


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TWO_CLASS)
@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["no", "yes", "no", "yes", "no"], None),
        (["yes", "no", "yes", "no", "yes"], "no"),
        (np.array(["a", "b", "a", "b", "a"], dtype=object), "b"),
        ([-1, 1, -1, 1, -1], None),
        ([False, True, False, True, False], None),
        ([2.0, 1.0, 2.0, 1.0, 2.0], 1),
        (np.array([2, 1, 2, 1, 2], dtype=np.uint8), 1),
    ],
)
def test_any_two_labels_will_do(name, labels, pos_label):
    assert call(name, labels, S, pos_label=pos_label) == call(name, Y, S)


BAD = [
    ([1, 1, 1, 1, 1], S, {}, "one class only.* expected two|one value only"),
    ([0, 1, np.nan, 1, 0], S, {}, "NaN"),
    (Y, [1.0, np.nan, 3.0, 4.0, 0.0], {}, "y_score contains NaN"),
    (Y, [1.0, np.inf, 3.0, 4.0, 0.0], {}, "y_score contains infinity"),
    (Y, S[:3], {}, "inconsistent numbers of samples"),
    (Y, np.ones((5, 2)), {}, "should be a 1d array"),
    ([], [], {}, "minimum of 1 is required"),
    (Y, S, {"sample_weight": [1, 1, 1]}, "one weight per row"),
    (Y, S, {"sample_weight": [1, -1, 1, 1, 1]}, "negative values"),
    (Y, S, {"sample_weight": [1, np.nan, 1, 1, 1]}, "weights must be finite"),
    (Y, S, {"sample_weight": [1, 0, 1, 0, 1]}, "Every positive row|one value only"),
    (Y, S, {"sample_weight": [0, 0, 0, 0, 0]}, "at least one non-zero|one value only"),
    (Y, S, {"label_propensity": [1, 1, 1]}, "expected one number or one number per row"),
    (Y, S, {"label_propensity": 0.0}, r"expected probabilities in \(0, 1\]"),
    (Y, S, {"label_propensity": [1, 1, 1, 1, 2]}, r"expected probabilities in \(0, 1\]"),
    (Y, S, {"label_propensity": np.nan}, "label_propensity contains NaN"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("y", "s", "keywords", "complaint"), BAD)
def test_bad_input_is_refused_with_a_sentence_that_helps(name, y, s, keywords, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(name, y, s, **keywords)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.takes_k])
@pytest.mark.parametrize("k", [0, -1, 6, 0.0, 1.5, -0.1, np.nan, True, "3", None])
def test_a_k_that_is_neither_count_nor_fraction_is_refused(name, k):
    with pytest.raises(ValueError, match="k="):
        call(name, Y, S, k=k)


RATES = (-0.1, 1.1, np.nan, "0.1", True)
PARAMETERS = [
    *(("partial_auc", {"max_fpr": rate}, "max_fpr") for rate in (0, *RATES)),
    *(("partial_auc", {"min_fpr": rate}, "min_fpr") for rate in (1.0, None, *RATES)),
    *(("partial_auc", {"min_tpr": rate}, "min_tpr") for rate in (1, *RATES)),
    ("partial_auc", {"min_fpr": 0.5, "max_fpr": 0.5}, "must be less than"),
    *(("tpr_at_fpr", {"fpr": rate}, "fpr") for rate in (None, *RATES)),
    *(("precision_at_recall", {"recall": rate}, "recall=") for rate in (None, 0, *RATES)),
    *(("recall_at_precision", {"precision": rate}, "precision=") for rate in (None, 0, *RATES)),
    ("misranking_error", {"ties": "none"}, "expected 'half' or 'error'"),
    *(("pnorm_risk", {"p": p}, "expected a number >= 1") for p in (0.5, np.nan, "4", None, True)),
    *(("pnorm_risk", {"margin": m}, "finite number") for m in (np.nan, np.inf, None, "1")),
    *(("margin_error", {"theta": m}, "finite number") for m in (np.nan, np.inf, None, "1")),
    *(("bedroc", {"alpha": a}, "expected a number > 0") for a in (0, -1, np.nan, np.inf, None)),
    *(("ranking_margin", {"norm": x}, "expected a number > 0") for x in (0, -1, np.nan, None)),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "parameters", "complaint"), PARAMETERS)
def test_a_parameter_out_of_range_is_refused(name, parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(name, Y, S, **parameters)


def test_weights_that_are_no_two_rows_have_no_ranking_risk():
    with pytest.raises(ValueError, match="not a pair of rows"):
        call("ranking_risk", Y, S, sample_weight=np.full(5, 0.1))
    with pytest.raises(ValueError, match=r"sums to 4\.95e\+100: too far from a repetition count"):
        call("ranking_risk", Y, S, sample_weight=np.full(5, 9.9e99))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_weights_of_very_different_size_give_a_finite_number(name, order):
    weight = np.array([1e-30, 1e30, 1.0, 1e-3, 1e20])
    value = call(name, Y, np.array(S)[order], sample_weight=weight)
    assert np.isfinite(value)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TWO_CLASS)
@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_weights_beyond_the_range_of_products_are_refused(name, weight):
    with pytest.raises(ValueError, match="too far from a repetition count"):
        call(name, Y, S, sample_weight=np.full(5, weight))


@pytest.mark.parametrize("name", METRICS)
def test_inverse_propensities_are_weights(name):
    propensity = np.array([0.5, 0.25, 1.0, 0.5, 0.125])
    weight = np.array([1.0, 2.0, 0.0, 1.0, 3.0])
    got = call(name, Y, S, sample_weight=weight, label_propensity=propensity)
    assert got == pytest.approx(call(name, Y, S, sample_weight=weight / propensity), rel=1e-14)


def test_inverse_propensities_undo_looking_harder_at_the_top():
    rng = np.random.default_rng(0)
    y = rng.random(200_000) < 0.3
    s = rng.normal(size=len(y)) + y
    propensity = 1 / (1 + np.exp(-s))
    seen = rng.random(len(y)) < propensity
    for name in ("auc", "precision_at", "average_precision", "partial_auc"):
        truth = call(name, y, s)
        naive = call(name, y[seen], s[seen])
        corrected = call(name, y[seen], s[seen], label_propensity=propensity[seen])
        assert abs(corrected - truth) < 0.01 < abs(naive - truth)


# ---- negatives that are merely unlabelled ------------------------------------------------------

TRUTH = np.array([1, 1, 0, 1, 1, 0, 1, 0, 0, 0])
RANKING = np.array([9.0, 8, 8, 7, 6, 5, 4, 4, 1, 0])


def values_of_every_labelling(name, labelled=3):
    for chosen in combinations(np.flatnonzero(TRUTH), labelled):
        y = np.zeros_like(TRUTH)
        y[list(chosen)] = 1
        yield call(name, y, RANKING)


@pytest.mark.parametrize("name", METRICS)
def test_unlabelled_negatives_bound_what_the_registry_says(name):
    said, truth = METRICS[name].when_unlabelled, call(name, TRUTH, RANKING)
    values = np.array(list(values_of_every_labelling(name)))
    if said == LOWER:
        assert np.all(values <= truth + 1e-12)
    elif said == SAME_AT_RANDOM:
        assert np.mean(values) == pytest.approx(truth)
    elif said.startswith("lower"):
        assert np.mean(values) <= truth + 1e-12
    elif said.startswith("upper"):
        assert np.mean(values) >= truth - 1e-12
    else:
        assert said == "neither"


# ---- direction and scorers ---------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_ranking_is_better_than_its_reverse(name):
    y = np.repeat([0, 1], 10)
    perfect, reverse = call(name, y, y), call(name, y, 1 - y)
    assert (perfect > reverse) == METRICS[name].higher_is_better
    assert perfect != reverse


X_TRAIN, Y_TRAIN = make_classification(
    n_samples=150, n_informative=3, weights=[0.7], flip_y=0.2, random_state=0
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "estimator", [LinearSVC(dual=False), DecisionTreeClassifier(max_depth=3, random_state=0)]
)
def test_scorers_rank_by_decision_function_or_probability(name, estimator):
    score = scorer(name, **METRICS[name].settings)
    model = estimator.fit(X_TRAIN, Y_TRAIN)
    ranking = (
        model.decision_function(X_TRAIN)
        if hasattr(model, "decision_function")
        else model.predict_proba(X_TRAIN)[:, 1]
    )
    sign = 1 if METRICS[name].higher_is_better else -1
    assert score(model, X_TRAIN, Y_TRAIN) == sign * call(name, Y_TRAIN, ranking)
    again = pickle.loads(pickle.dumps(score))
    weight = np.arange(len(Y_TRAIN)) % 3
    weighted = again(model, X_TRAIN, Y_TRAIN, sample_weight=weight)
    assert weighted == sign * call(name, Y_TRAIN, ranking, sample_weight=weight)


def test_scorers_work_in_cross_validation_and_search():
    scoring = {name: scorer(name, **metric.settings) for name, metric in METRICS.items()}
    result = cross_validate(LogisticRegression(), X_TRAIN, Y_TRAIN, scoring=scoring)
    for name in METRICS:
        assert np.all(np.isfinite(result[f"test_{name}"]))
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=scorer("misranking_error")
    ).fit(X_TRAIN, Y_TRAIN)
    assert search.best_score_ == np.max(search.cv_results_["mean_test_score"]) <= 0


def test_scorers_work_with_text_labels_and_either_positive_class():
    y = np.where(Y_TRAIN == 1, "fraud", "fine")
    model = LogisticRegression().fit(X_TRAIN, y)
    wanted = call("auc", Y_TRAIN, model.decision_function(X_TRAIN))
    assert scorer("auc")(model, X_TRAIN, y) == pytest.approx(wanted)
    assert scorer("auc", pos_label="fine")(model, X_TRAIN, y) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("name", "parameters", "complaint"),
    [
        ("acu", {}, "Unknown metric 'acu': expected one of"),
        ("precision_at", {}, "'precision_at' needs k"),
        ("auc", {"k": 3}, "'auc' does not know k"),
    ],
)
def test_a_scorer_that_could_not_work_is_refused_at_once(name, parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        scorer(name, **parameters)


@pytest.mark.parametrize("function", [summary, f_skew, ranks])
def test_the_unregistered_refuse_bad_input_too(function):
    with pytest.raises(ValueError, match="expected two"):
        function([1, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        function([0, 1], [1.0, np.nan])
    with pytest.raises(ValueError, match="negative values"):
        function([0, 1], [1.0, 2.0], sample_weight=[1, -1])
