"""One function that chooses p for any estimator."""

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import IRPush, PNormPush, PNormPushCV, RankBoost
from toprank.metrics import scorer
from toprank.tuning import Candidate, PChoice, Scoring, choose_p

#: How folds are drawn whose number is given.
DRAWN = {"shuffle": True, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    y = (rng.random(240) < 0.35).astype(int)
    X = rng.normal(size=(240, 3)) + y[:, None] * [1.0, 0.5, 0.0]
    return X, y


def choice_of(scores, rule="best", ps=(None, 1, 4), alphas=None):
    candidates = tuple(
        Candidate("none" if p is None else f"p = {p:g}", p, a, pushes=p is not None)
        for p in ps
        for a in (alphas or (None,))
    )
    return PChoice(candidates, np.asarray(scores, dtype=float), "auc", rule)


def test_the_scores_are_those_of_cross_validation(rows):
    X, y = rows
    choice = choose_p(PNormPush(), X, y, ps=(1, 8), cv=4, scoring_kwargs={"k": 20})
    for line, p in zip(choice.fold_scores[1:], (1, 8), strict=True):
        expected = cross_val_score(
            PNormPush(p), X, y, cv=StratifiedKFold(4, **DRAWN), scoring=scorer("precision_at", k=20)
        )
        np.testing.assert_allclose(line, expected)


@pytest.mark.parametrize(
    "estimator",
    [RankBoost(10), IRPush(), make_pipeline(StandardScaler(), PNormPush())],
    ids=["boosting", "no p", "pipeline"],
)
def test_it_works_for_any_ranker(rows, estimator):
    X, y = rows
    weight = np.where(np.arange(len(y)) % 2, 2.0, 1.0)
    choice = choose_p(estimator, X, y, ps=(1, 4), cv=3, scoring="auc", sample_weight=weight)
    assert np.all(choice.fold_scores > 0.6)
    assert not choice.candidates[0].pushes and choice.candidates[-1].pushes
    assert choice.chosen.name in str(choice) and "folds" in choice.verdict


def test_the_answer_does_not_depend_on_the_number_of_threads(rows):
    X, y = rows
    one, two = (choose_p(PNormPush(), X, y, ps=(1, 4), cv=3, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.fold_scores, two.fold_scores)


def test_a_baseline_of_ones_own_takes_the_place_of_logistic_regression(rows):
    X, y = rows
    own = make_pipeline(StandardScaler(), LogisticRegression(C=1e-6))
    options = {"ps": (2,), "cv": 3, "scoring": "auc"}
    choice = choose_p(PNormPush(), X, y, baseline=own, baseline_name="shrunken", **options)
    assert choice.candidates[0].name == "shrunken"
    expected = cross_val_score(own, X, y, cv=StratifiedKFold(3, **DRAWN), scoring="roc_auc")
    np.testing.assert_allclose(choice.fold_scores[0], expected)
    without = choose_p(PNormPush(), X, y, ps=(2,), cv=3, baseline=None)
    assert len(without.candidates) == 1 and without.pushes


def test_another_parameter_can_be_chosen(rows):
    X, y = rows
    choice = choose_p(PNormPush(), X, y, parameter="alpha", ps=(1e-3, 10.0), cv=3, baseline=None)
    assert choice.p in (1e-3, 10.0)


def test_the_future_is_not_used_to_score_the_past(rows):
    X, y = rows
    choice = choose_p(PNormPush(), X, y, ps=(1, 4), cv=3, time=np.arange(240), gap=10)
    assert choice.fold_scores.shape == (3, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "worst"}, "Unknown rule"),
        ({"scoring": "speed"}, "metric of toprank.metrics"),
        ({"scoring": "auc", "scoring_kwargs": {"k": 3}}, "does not know k"),
        ({"scoring": "roc_auc", "scoring_kwargs": {"k": 3}}, "build them into"),
        ({"ps": (0.5,)}, "from 1 to infinity"),
        ({"ps": ()}, "one or more"),
        ({"baseline": "quadratic"}, "expected 'logistic'"),
        ({"parameter": "depth"}, "no parameter 'depth'"),
        ({"sample_weight": -np.ones(240)}, "negative"),
    ],
)
def test_what_makes_no_sense_is_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        choose_p(PNormPush(), *rows, **options)


def test_the_best_mean_is_chosen_and_among_equals_the_weakest_push():
    assert choice_of([[0.1, 0.1], [0.3, 0.1], [0.3, 0.2]]).p == 4
    assert choice_of([[0.1, 0.1], [0.2, 0.2], [0.3, 0.1]]).p == 1
    tied = choice_of([[0.2, 0.2], [0.2, 0.2], [0.2, 0.2]])
    assert tied.p is None and not tied.pushes and "Do not push" in tied.verdict


def test_within_one_standard_error_the_weakest_push_wins():
    scores = [[0.5, 0.6], [0.69, 0.71], [0.6, 0.9]]  # the best, 0.75, has an error of 0.15
    cautious = choice_of(scores, "one_standard_error")
    assert cautious.p == 1 and "highest mean" in cautious.verdict
    assert choice_of(scores).p == 4


def test_of_the_alphas_of_one_p_the_best_is_taken_and_of_equals_the_middle_one():
    scores = [[0.1, 0.2]] * 3 + [[0.5, 0.6], [0.7, 0.8], [0.3, 0.4]]
    choice = choice_of(scores, ps=(None, 2), alphas=(1.0, 0.1, 0.01))
    assert (choice.p, choice.chosen.alpha) == (2, 0.1)
    assert [line["alpha"] for line in choice.table()] == [0.1, 0.1]


def test_the_table_compares_each_p_with_no_push():
    choice = choice_of([[0.5, 0.7], [0.6, 0.7], [0.8, 0.9]])
    first, *others = choice.table()
    assert first["difference"] is None
    assert [line["difference"] for line in others] == pytest.approx([0.05, 0.25])
    assert choice.as_dict()["push"] and [line["chosen"] for line in choice.table()][-1]


def test_a_score_of_risk_is_negated_and_a_scorer_of_scikit_learn_is_itself():
    y, s = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    assert Scoring("misranking_error").of_scores(y, s) == -0.25
    assert Scoring("roc_auc").of_scores(y, s) == 0.75
    with pytest.raises(ValueError, match="needs labels or probabilities"):
        Scoring("accuracy").of_scores(y, s)
    assert Scoring("auc").interval(np.tile(y, 9), np.tile(s, 9)).estimate == 0.75


def test_a_k_beyond_the_rows_of_a_fold_is_refused_before_any_is_fitted(rows):
    settings = {"scoring": "precision_at", "scoring_kwargs": {"k": 5000}, "cv": 3}
    message = "k=5000, but the smallest fold of the comparison tests [0-9]+ rows: give k"
    with pytest.raises(ValueError, match=message):
        choose_p(PNormPush(), *rows, ps=(1, 4), **settings)
    with pytest.raises(ValueError, match=message):
        PNormPushCV(**settings).fit(*rows)


def test_of_several_ps_the_one_to_choose_must_be_named(rows):
    both = VotingClassifier([("push", PNormPush()), ("other", PNormPush(2))])
    with pytest.raises(ValueError, match=r"p may be any of .*name one with parameter="):
        choose_p(both, *rows, ps=(1, 4))
