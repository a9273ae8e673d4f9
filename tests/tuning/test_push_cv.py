"""PNormPushCV: p and alpha chosen on held-out rows, or no push at all."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)

from toprank import PNormPush, PNormPushCV, ProperRanker, blocks
from toprank.datasets import load_magic, load_wdbc
from toprank.inference import compare
from toprank.metrics import positives_at_top, precision_at, scorer
from toprank.pairs import Rows
from toprank.tuning import TimeOrderedSplit
from toprank.tuning.rows import split_outer

SMALL = {"ps": (1, 4, 16), "alphas": (1e-3, 1e-1), "cv": 3, "test_size": 0.2}


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture(scope="module")
def fitted(rows):
    return PNormPushCV(**SMALL).fit(*rows)


def test_the_scores_of_the_grid_are_those_of_a_grid_search(rows):
    X, y = rows
    options = {"scoring": "auc", "test_size": None}  # smooth, so that a loose fit shows little
    ours = PNormPushCV(**SMALL | options).fit(X, y)
    theirs = GridSearchCV(
        PNormPush(tol=1e-9),
        {"p": (1, 4, 16), "alpha": (1e-1, 1e-3)},
        scoring=scorer("auc"),
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ).fit(X, y)
    expected = {
        (params["p"], params["alpha"]): score
        for params, score in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
    }
    pushed = [one for one in ours.cv_results_["params"] if one["model"] == "push"]
    scores = ours.cv_results_["mean_test_score"][ours.cv_results_["pushes"]]
    assert len(pushed) == len(expected)
    for params, score in zip(pushed, scores, strict=True):
        assert score == pytest.approx(expected[params["p"], params["alpha"]], abs=2e-3)


def test_the_model_is_the_choice_fitted_to_all_rows(rows, fitted):
    X, y = rows
    alone = (
        PNormPush(fitted.p_, alpha=fitted.alpha_)
        if fitted.pushes_
        else ProperRanker(alpha=fitted.alpha_)
    ).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), alone.decision_function(X))
    np.testing.assert_allclose(fitted.predict_proba(X), alone.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(fitted.coef_, alone.coef_)
    np.testing.assert_array_equal(fitted.intercept_, alone.intercept_)


def test_logistic_regression_is_always_in_the_grid_and_can_win(rows):
    y = rows[1]
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(y), 2))
    found = PNormPushCV(**SMALL, rule="one_standard_error").fit(noise, y)
    assert found.p_ is None and not found.pushes_
    assert "Do not push" in found.choice_.verdict
    assert isinstance(found.best_estimator_, ProperRanker)
    results = found.cv_results_
    assert results["param_p"].mask.sum() == len(SMALL["alphas"])
    alone = ProperRanker(alpha=found.alpha_).fit(noise, y)
    np.testing.assert_allclose(found.predict_proba(noise), alone.predict_proba(noise), rtol=1e-9)


def test_the_results_have_the_shape_of_a_grid_search(fitted):
    results = fitted.cv_results_
    m = len(SMALL["alphas"]) * (1 + len(SMALL["ps"]))
    assert all(len(column) == m for column in results.values())
    assert results["rank_test_score"].min() == 1
    assert results["mean_test_score"][fitted.best_index_] == fitted.best_score_
    folds = np.array([results[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_allclose(folds.mean(axis=0), results["mean_test_score"])


def test_the_rows_kept_aside_do_not_move_the_choice(rows):
    X, y = rows
    inside, aside = split_outer(Rows(X, y == 1), 3, 0.2, 0)
    assert len(inside) + len(aside) == len(y) and not set(inside) & set(aside)
    one = PNormPushCV(**SMALL).fit(X, y)
    two = PNormPushCV(**SMALL | {"test_size": None}).fit(X[inside], y[inside])
    assert (one.p_, one.alpha_) == (two.p_, two.alpha_)
    np.testing.assert_allclose(one.choice_.fold_scores, two.choice_.fold_scores)


def test_the_interval_is_of_the_rows_kept_aside(rows, fitted):
    X, y = rows
    inside, aside = split_outer(Rows(X, y == 1), 3, 0.2, 0)
    model = clone(fitted.best_estimator_).fit(X[inside], y[inside])
    expected = precision_at(y[aside], model.decision_function(X[aside]), 0.1)
    assert fitted.score_interval_.estimate == pytest.approx(expected)
    assert fitted.score_interval_.low <= expected <= fitted.score_interval_.high
    assert PNormPushCV(**SMALL | {"test_size": None}).fit(X, y).score_interval_ is None


def test_a_metric_that_one_row_decides_is_chosen_by_a_steadier_form_of_it(rows):
    X, y = rows
    ranker = PNormPushCV((1, 8), alphas=(1e-2,), scoring="positives_at_top", cv=3).fit(X, y)
    assert ranker.choice_.metric == "positives_at_top(negatives=5)"
    assert ranker.score_interval_.metric == "positives_at_top"
    assert ranker.score(X, y) == positives_at_top(y, ranker.decision_function(X))
    own = {"negatives": 2}
    ranker = PNormPushCV((1, 8), alphas=(1e-2,), scoring="positives_at_top", scoring_kwargs=own)
    assert ranker.fit(X, y).choice_.metric == "positives_at_top(negatives=2)"


def test_a_metric_without_an_interval_says_so_and_is_still_chosen_by(rows):
    with pytest.warns(UserWarning, match="no valid interval"):
        found = PNormPushCV(**SMALL, scoring="ranking_margin").fit(*rows)
    assert found.score_interval_ is None and np.isfinite(found.best_score_)


def test_a_scorer_of_scikit_learn_will_do(rows):
    options = {**SMALL, "test_size": None}
    theirs, ours = (PNormPushCV(**options, scoring=name).fit(*rows) for name in ("roc_auc", "auc"))
    np.testing.assert_allclose(theirs.choice_.fold_scores, ours.choice_.fold_scores)
    assert theirs.choice_.metric == "roc_auc"


@pytest.mark.more
def test_many_features_are_left_to_lbfgs():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4 == 0
    X = rng.normal(size=(80, 600)) + y[:, None] * 0.1
    found = PNormPushCV((1, 4), alphas=(0.1, 1.0), cv=2).fit(X, y)
    assert np.all(found.choice_.fold_scores >= 0) and found.coef_.shape == (1, 600)


@pytest.mark.more
@pytest.mark.parametrize("test_size", [0.2, "nested"])
def test_the_interval_covers_the_score_on_new_rows(test_size):
    rng = np.random.default_rng(5)

    def draw(n):
        y = (rng.random(n) < 0.3).astype(int)
        return rng.normal(size=(n, 2)) + y[:, None] * [1.0, 0.4], y

    X_new, y_new = draw(40_000)
    covered = 0
    for _ in range(40):
        X, y = draw(250)
        settings = {"alphas": (1e-2,), "cv": 3, "scoring": "auc", "test_size": test_size}
        found = PNormPushCV((1, 16), **settings).fit(X, y)
        truth = scorer("auc")(found.best_estimator_, X_new, y_new)
        covered += found.score_interval_.low <= truth <= found.score_interval_.high
    assert covered >= 34  # of 40 at 95%: fewer happens once in 2,000 times


def test_weights_are_repetitions(rows):
    X, y = rows
    X, y = X[:90], y[:90]
    count = np.random.default_rng(0).integers(0, 3, size=90)
    again = np.repeat(np.arange(90), count)
    fold = np.arange(90) % 3
    options = {**SMALL, "scoring": "auc"}
    weighted = PNormPushCV(**options | {"cv": PredefinedSplit(fold)}).fit(X, y, count)
    repeated = PNormPushCV(**options | {"cv": PredefinedSplit(fold[again])}).fit(X[again], y[again])
    np.testing.assert_allclose(
        weighted.choice_.fold_scores, repeated.choice_.fold_scores, atol=1e-3
    )
    assert (weighted.p_, weighted.alpha_) == (repeated.p_, repeated.alpha_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4)


def test_sparse_rows_and_data_frames_give_the_same_choice(rows, fitted):
    X, y = rows
    for other in (sparse.csr_array(X), pd.DataFrame(X, columns=list("abcd"))):
        found = PNormPushCV(**SMALL).fit(other, y)
        assert (found.p_, found.alpha_) == (fitted.p_, fitted.alpha_)
        np.testing.assert_allclose(found.choice_.fold_scores, fitted.choice_.fold_scores)


def test_the_answer_does_not_depend_on_the_number_of_threads(rows, fitted):
    found = PNormPushCV(**SMALL, n_jobs=3).fit(*rows)
    np.testing.assert_array_equal(found.choice_.fold_scores, fitted.choice_.fold_scores)
    np.testing.assert_array_equal(found.coef_, fitted.coef_)


@pytest.mark.more
def test_groups_are_parted_neither_by_folds_nor_by_the_rows_kept_aside(rows):
    X, y = rows
    groups = np.repeat(np.arange(60), 5)
    inside, aside = split_outer(Rows(X, y == 1, groups=groups), 3, 0.2, 0)
    assert not set(groups[inside]) & set(groups[aside])
    for cv in (3, GroupKFold(3)):
        found = PNormPushCV(**SMALL | {"cv": cv}).fit(X, y, groups=groups)
        assert found.n_splits_ == 3 and found.score_interval_ is not None
    with pytest.raises(ValueError, match="groups has 299 entries, expected one per row"):
        PNormPushCV(**SMALL).fit(X, y, groups=groups[:-1])
    with pytest.raises(TypeError, match="'speed'"):
        PNormPushCV(**SMALL).fit(X, y, speed=1)


@pytest.mark.more
def test_metadata_are_routed_to_the_splitter_and_to_the_fit(rows):
    X, y = rows
    groups, weight = np.repeat(np.arange(60), 5), np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        for cv in (3, GroupKFold(3)):
            ranker = PNormPushCV(**SMALL | {"cv": cv}).set_fit_request(sample_weight=True)
            ranker = ranker.set_score_request(sample_weight=True)
            outcome = cross_validate(
                ranker,
                X,
                y,
                cv=GroupKFold(2),
                params={"groups": groups, "sample_weight": weight},
                return_estimator=True,
            )
            assert all(one.n_splits_ == 3 for one in outcome["estimator"])


def test_time_runs_forward_and_the_latest_rows_are_kept_aside(rows):
    X, y = rows
    time = np.random.default_rng(0).permutation(len(y))
    inside, aside = split_outer(Rows(X, y == 1, groups=time), TimeOrderedSplit(3, gap=20), 0.2, 0)
    assert time[inside].max() + 20 <= time[aside].min()
    found = PNormPushCV(**SMALL | {"cv": TimeOrderedSplit(3, gap=20)}).fit(X, y, groups=time)
    assert found.n_splits_ == 3 and found.score_interval_ is not None
    inside, aside = split_outer(Rows(X, y == 1), TimeSeriesSplit(3, gap=7), 0.2, 0)
    assert inside.max() + 7 < aside.min()


def test_rows_that_are_alike_are_kept_aside_together(rows):
    X, y = rows
    X, y = np.round(X[:, :1]), y
    inside, aside = split_outer(Rows(X, y == 1), 3, 0.2, 0)
    for side in (0, 1):
        members = y == side
        kept, out = (set(X[part[members[part]], 0]) for part in (inside, aside))
        assert not kept & out


def test_dense_and_sparse_rows_are_kept_aside_alike(rows):
    X, y = rows
    X = np.where(np.abs(X) < 0.5, -0.0, X)
    for a, b in zip(
        split_outer(Rows(X, y == 1), 3, 0.2, 4),
        split_outer(Rows(sparse.csr_array(X), y == 1), 3, 0.2, 4),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_too_few_rows_of_a_class_leave_none_aside():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.r_[1, 1, np.zeros(28, dtype=int)]
    found = PNormPushCV((1, 2), alphas=(0.1,)).fit(X, y)
    assert found.score_interval_ is None and found.n_splits_ == 2


def test_class_weight_moves_the_fit_but_not_the_score(rows):
    X, y = rows
    plain, balanced = (
        PNormPushCV(**SMALL | {"class_weight": w, "test_size": None}).fit(X, y)
        for w in (None, "balanced")
    )
    pushes = plain.cv_results_["pushes"]  # the push normalises each class by itself
    np.testing.assert_allclose(
        plain.choice_.fold_scores[pushes], balanced.choice_.fold_scores[pushes], atol=1e-6
    )


@pytest.mark.parametrize("p", [(1, np.inf), (2,)])
def test_one_p_and_p_of_infinity_are_fine(rows, p):
    X, y = rows
    found = PNormPushCV(p, alphas=(0.1, 1.0), cv=2, test_size=0.2).fit(X[:120], y[:120])
    assert found.p_ in (None, *p)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": (0.0, 1.0)}, "positive numbers"),
        ({"alphas": ()}, "positive numbers"),
        ({"ps": (0.5,)}, "from 1 to infinity"),
        ({"scoring": "precision"}, "needs labels or probabilities"),
        ({"scoring_kwargs": {"depth": 1}}, "does not know depth"),
        ({"rule": "any"}, "rule"),
        ({"test_size": 1.5}, "test_size"),
        ({"test_size": "all"}, "test_size"),
        ({"test_size": "nested", "cv": StratifiedKFold(3)}, "draws folds at random"),
        ({"cv": 1}, "cv"),
        ({"solver": "coordinate"}, "solver"),
    ],
)
def test_settings_that_make_no_sense_are_refused(rows, options, message):
    ranker = PNormPushCV(**{**SMALL, **options})
    with pytest.raises(ValueError, match=message):
        ranker.fit(*rows)


def test_on_magic_the_push_is_hard_for_the_top_hundredth():
    X, y = load_magic(return_X_y=True)
    found = PNormPushCV(scoring_kwargs={"k": 0.01}, alphas=(1e-3, 1e-1)).fit(standardised(X), y)
    assert found.p_ >= 8


@pytest.mark.more
@pytest.mark.parametrize("name", ["wdbc", "mammography"])
def test_the_choice_is_not_significantly_worse_than_logistic_regression(name, request):
    if name == "wdbc":
        X, y = load_wdbc(return_X_y=True)
    else:
        table = pd.read_csv(request.getfixturevalue("shared") / "data" / "mammography.csv.gz")
        X, y = table.iloc[:, :-1].to_numpy(), table["y"].to_numpy()
    X = standardised(X)
    train = np.arange(len(y)) % 2 == 0
    found = PNormPushCV(scoring_kwargs={"k": 0.05}, alphas=(1e-3, 1e-1), test_size=0.2).fit(
        X[train], y[train]
    )
    logistic = ProperRanker(alpha=1e-3).fit(X[train], y[train])
    test = ~train
    scores = [ranker.decision_function(X[test]) for ranker in (found, logistic)]
    outcome = compare("precision_at", y[test], *scores, k=0.05)
    assert outcome.high >= 0


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_that_are_drawn_again_are_other_folds_of_all_rows(grouped):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120) > 1
    given = {"groups": np.repeat(np.arange(40), 3)} if grouped else {}
    settings = {"ps": (1, 4), "alphas": (0.01,), "cv": 3, "test_size": None}
    once, thrice = (PNormPushCV(n_repeats=n, **settings).fit(X, y, **given) for n in (1, 3))
    assert (once.n_splits_, thrice.n_splits_) == (3, 9)
    scores = thrice.choice_.fold_scores
    np.testing.assert_array_equal(scores[:, :3], once.choice_.fold_scores)
    assert not np.array_equal(scores[:, 3:6], scores[:, :3])


def mean_score_of_positives(estimator, X, y):
    return float(np.mean(estimator.decision_function(X)[y == 1]))


def mean_of_positives(y, scores):
    return float(np.mean(scores[y == 1]))


@pytest.mark.parametrize(
    "scoring",
    [
        mean_score_of_positives,
        pytest.param(
            make_scorer(mean_of_positives, response_method="decision_function"),
            marks=pytest.mark.more,
        ),
    ],
    ids=["function", "make_scorer"],
)
def test_a_scorer_that_takes_no_weights_is_given_rows_as_often_as_they_count(scoring):
    rng = np.random.default_rng(0)
    X, times = rng.normal(size=(120, 2)), rng.integers(1, 3, 120)
    y = (X[:, 0] + rng.normal(size=120) > 0.5).astype(int)
    given = {"ps": (1, 4), "alphas": (0.1,), "cv": PredefinedSplit(np.arange(120) % 3)}
    ranker = PNormPushCV(scoring=scoring, test_size=0.25, **{**given, "cv": 3}).fit(X, y)
    assert ranker.score_interval_.low < ranker.score_interval_.high
    assert ranker.score(X, y) == pytest.approx(np.mean(ranker.decision_function(X)[y == 1]))

    def weighted(estimator, X, y, sample_weight):
        return float(np.average(estimator.decision_function(X), weights=sample_weight * y))

    one, other = (
        PNormPushCV(scoring=one, test_size=None, **given).fit(X, y, times)
        for one in (scoring, weighted)
    )
    np.testing.assert_allclose(one.choice_.fold_scores, other.choice_.fold_scores)
    assert one.score(X, y, times) == pytest.approx(weighted(one, X, y, times))
    with pytest.raises(ValueError, match=r"takes no sample_weight.*expected whole numbers"):
        one.score(X, y, times + 0.5)


def test_verbose_prints_the_choice_of_rows_and_of_blocks(rows, capsys):
    X, y = rows
    given = {"ps": (1,), "alphas": (0.1,), "cv": 2, "test_size": None, "verbose": 1}
    ranker = PNormPushCV(**given).fit(X, y)
    first, second, rest = capsys.readouterr().out.split("\n", 2)
    for fold, line in ((1, first), (2, second)):  # the first usable answer, and when it was there
        found = (
            rf"\[PNormPushCV\] \d+\.\d s: fold {fold} of 2; so far .*, alpha = 0\.1, precision_at"
        )
        assert re.match(found, line)
    assert rest == f"[PNormPushCV] {ranker.choice_}\n"
    source = blocks.from_arrays(X, y)
    ranker = PNormPushCV(**given).fit_blocks(source)
    whole, folds, scored, rest = capsys.readouterr().out.split("\n", 3)
    assert re.match(r"\[PNormPushCV\] \d+\.\d s: 2 settings are fitted to all rows", whole)
    assert re.match(r"\[PNormPushCV\] \d+\.\d s: and without each of 2 folds", folds)
    assert re.match(r"\[PNormPushCV\] .* s: all folds are scored: .*alpha = 0\.1, prec", scored)
    assert rest == f"[PNormPushCV] {ranker.choice_}\n"
    with pytest.raises(ValueError, match="resume=True needs the folder of the passes"):
        PNormPushCV(**given).fit_blocks(source, resume=True)


def test_folds_of_rows_that_are_not_there_are_named():
    X = np.random.default_rng(0).normal(size=(40, 2))
    folds = [(np.arange(30), np.arange(30, 40)), (np.arange(10, 40), np.arange(41))]
    with pytest.raises(
        ValueError, match="Fold 1 of cv names row 40, but there are 40 rows, 0 to 39"
    ):
        PNormPushCV(cv=folds).fit(X, np.arange(40) % 2)
