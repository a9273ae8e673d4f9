"""`PushEnsemble`: members, folds, weights, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from toprank import PNormPush, PushEnsemble, PushTrees
from toprank.folds import TimeOrderedSplit
from toprank.metrics import average_precision
from toprank.rankers.ensemble.combination import CombinationChoice
from toprank.rankers.ensemble.out_of_fold import one_thread


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    f = X[:, 0] + 1.5 * (X[:, 1] > 0.8) + 0.5 * X[:, 2] ** 2
    return X, (f + rng.normal(size=400) > 2.0).astype(int)


def make(estimators, **settings):
    return PushEnsemble(estimators, **{"quality": "fast", **settings})


def few():
    return [
        ("linear", LogisticRegression()),
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ]


class Broken(ClassifierMixin, BaseEstimator):
    """A member that fails in a way of the caller's choice."""

    def __init__(self, how="fit"):
        self.how = how

    def fit(self, X, y):
        if self.how == "fit":
            raise RuntimeError("the disk is full")
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        bad = {"nan": np.nan, "inf": np.inf}.get(self.how, 0.0)
        return np.full((len(X), 2) if self.how == "shape" else len(X), bad)


def test_weights_are_not_negative_and_the_score_is_their_sum(table):
    X, y = table
    ensemble = make(few(), cv=3).fit(X, y)
    assert set(ensemble.weights_) == {"linear", "bayes", "tree"}
    assert all(weight >= 0 for weight in ensemble.weights_.values())
    parts = ensemble.member_scores(X)
    total = sum(ensemble.weights_[name] * scores for name, scores in parts.items())
    np.testing.assert_allclose(np.ptp(ensemble.decision_function(X) - total), 0.0, atol=1e-9)


def test_scores_out_of_fold_come_from_fits_without_the_row(table):
    X, y = table
    folds = [(np.arange(400)[np.arange(400) % 4 != k], np.arange(400)[k::4]) for k in range(4)]
    ensemble = make([("linear", LogisticRegression())], cv=folds).fit(X, y)
    for train, test in folds:
        alone = LogisticRegression().fit(X[train], y[train])
        np.testing.assert_allclose(
            ensemble.oof_scores_[test, 0], alone.decision_function(X[test]), rtol=1e-9
        )


def test_members_with_a_weight_are_fitted_to_all_rows_and_the_others_are_not(table):
    X, y = table
    noise = ("noise", Broken("zero"))
    ensemble = make([*few(), noise], cv=3).fit(X, y)
    assert ensemble.weights_["noise"] == 0
    assert "noise" not in dict(ensemble.members_)
    for name, fitted in ensemble.members_:
        whole = dict(few())[name].fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba(X), whole.predict_proba(X))


def test_the_table_says_what_each_member_brings(table):
    X, y = table
    ensemble = make(few(), cv=3).fit(X, y)
    rows = {row.name: row for row in ensemble.member_table_}
    assert set(rows) == {"linear", "bayes", "tree"}
    assert [row.weight for row in ensemble.member_table_] == sorted(
        (row.weight for row in rows.values()), reverse=True
    )
    assert all(0 <= row.score <= 1 and row.seconds > 0 for row in rows.values())
    assert "loss without" in str(ensemble.member_table_)
    assert ensemble.member_table_.as_dicts()[0]["name"] == ensemble.member_table_.rows[0].name


@pytest.mark.more
def test_the_interval_holds_the_metric_of_new_rows():
    rng = np.random.default_rng(5)

    def draw(n):
        X = rng.normal(size=(n, 4))
        return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 1.5).astype(int)

    ensemble = make(few(), cv=3).fit(*draw(600))
    X, y = draw(20_000)
    found = ensemble.score_interval_
    assert found.low < average_precision(y, ensemble.decision_function(X)) < found.high


@pytest.mark.more
def test_an_outer_split_measures_rows_that_nothing_has_seen(table):
    X, y = table
    kept, within = (make(few(), cv=3, test_size=s).fit(X, y) for s in (0.3, None))
    assert kept.score_interval_.low <= kept.score_interval_.high
    assert kept.score_interval_.estimate != within.score_interval_.estimate
    np.testing.assert_allclose(kept.decision_function(X), within.decision_function(X))


def test_groups_are_never_parted(table):
    X, y = table
    groups = np.repeat(np.arange(100), 4)
    ensemble = make(few(), cv=4).fit(X, y, groups=groups)
    for train, test in ensemble._folds:
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize("by_splitter", [False, True])
def test_in_the_order_of_time_members_learn_from_the_past(table, by_splitter):
    X, y = table
    time = np.arange(400)[::-1]
    if by_splitter:
        ensemble = make(few(), cv=TimeOrderedSplit(4)).fit(X, y, groups=time)
    else:
        ensemble = make(few(), cv=4).fit(X, y, time=time)
    for train, test in ensemble._folds:
        assert time[train].max() < time[test].min()
    early = np.isnan(ensemble.oof_scores_).any(axis=1)
    assert np.any(early)
    assert time[early].max() < time[~early].min()


def test_a_row_of_weight_zero_is_absent(table):
    X, y = table
    weight = np.where(np.arange(400) < 300, 1.0, 0.0)
    members = [("push", PNormPush())]
    some = make(members, cv=3).fit(X, y, weight)
    less = make(members, cv=3).fit(X[:300], y[:300])
    np.testing.assert_allclose(some.decision_function(X), less.decision_function(X))
    assert np.all(np.isnan(some.oof_scores_[300:]))


def test_members_beside_others_use_one_thread_and_none_is_left_where_it_means_one():
    forest = RandomForestClassifier(n_jobs=4)
    assert one_thread(forest).n_jobs == 1 and forest.n_jobs == 4
    assert one_thread(PNormPush()).n_jobs == 1
    linear = one_thread(make_pipeline(StandardScaler(), LogisticRegression()))
    assert linear.get_params()["logisticregression__n_jobs"] is None  # 1 is a FutureWarning
    assert one_thread(make_pipeline(PushTrees(4))).get_params()["pushtrees__n_jobs"] == 1


@pytest.mark.more
def test_the_answer_does_not_depend_on_the_threads(table):
    X, y = table
    members = [*few(), ("trees", PushTrees(4, n_estimators=10, random_state=0))]
    one, two = (make(members, cv=3, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_partial_refit_adds_a_member_and_leaves_the_others_as_they_are(table):
    X, y = table
    ensemble = make(few()[:2], cv=3).fit(X, y)
    before = dict(ensemble.members_)
    ensemble.partial_refit(X, y, [few()[2]])
    after = dict(ensemble.members_)
    assert set(ensemble.weights_) == {"linear", "bayes", "tree"}
    assert all(after[name] is model for name, model in before.items() if name in after)
    whole = make(few(), cv=3).fit(X, y)
    np.testing.assert_allclose(ensemble.decision_function(X), whole.decision_function(X))


def test_partial_refit_keeps_the_groups_and_weights_of_the_fit(table):
    X, y = table
    places = np.arange(400)
    weight = np.where(places % 3 > 0, 1.0 + places % 2, 0.0)
    facts = {"groups": places // 4, "label_propensity": 0.5}
    ensemble = make(few()[:2], cv=3).fit(X, y, weight, **facts)
    whole = make(few(), cv=3).fit(X, y, weight, **facts)
    ensemble.partial_refit(X, y, [few()[2]])
    assert ensemble.weights_ == pytest.approx(whole.weights_)
    assert ensemble.score_interval_ == whole.score_interval_
    np.testing.assert_allclose(ensemble.decision_function(X), whole.decision_function(X))


def test_partial_refit_refuses_other_weights_but_of_an_old_pickle(table):
    X, y = table
    ensemble = make(few()[:2], cv=3).fit(X, y)
    ensemble.partial_refit(X, y, [few()[2]], np.ones(400))  # as in the fit
    message = "a sample_weight that differs from that of the fit.*fit anew"
    with pytest.raises(ValueError, match=message):
        ensemble.partial_refit(X, y, [few()[2]], np.full(400, 2.0))
    old = pickle.loads(pickle.dumps(ensemble))
    del old._fit_weight, old._fit_groups
    old.refit_members(X, y).partial_refit(X, y, [few()[2]], np.full(400, 2.0))
    ensemble.refit_members(X[:300], y[:300], np.full(300, 2.0)).partial_refit(X, y, [few()[2]])
    assert set(old.weights_) == set(ensemble.weights_) == {"linear", "bayes", "tree"}


def test_partial_refit_does_not_warn_again_of_what_the_fit_dropped(table, recwarn):
    X, y = table
    with pytest.warns(UserWarning, match="'bad' was dropped"):
        ensemble = make([*few()[:2], ("bad", Broken())], cv=3).fit(X, y)
    recwarn.clear()
    ensemble.partial_refit(X, y, [few()[2]])
    assert not recwarn.list and list(ensemble.dropped_) == ["bad"]
    with pytest.warns(UserWarning, match="'bad' was dropped"):
        ensemble.partial_refit(X, y, [("bad", Broken())])


def test_partial_refit_refuses_other_rows(table):
    X, y = table
    ensemble = make(few()[:2], cv=3).fit(X, y)
    with pytest.raises(ValueError, match="partial_refit got 399 rows, expected the 400 of the fit"):
        ensemble.partial_refit(X[1:], y[1:], [few()[2]])
    assert ensemble.decision_function(X).shape == (400,)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("fit", "RuntimeError: the disk is full"),
        ("nan", "scores are NaN or infinite"),
        ("inf", "scores are NaN or infinite"),
        ("shape", "its scores have shape"),
    ],
)
def test_a_member_that_fails_is_named_and_dropped_or_refused(table, how, why):
    X, y = table
    members = [*few()[:2], ("bad", Broken(how))]
    with pytest.warns(UserWarning, match="The member 'bad' was dropped: it failed on fold 1") as w:
        ensemble = make(members, cv=3).fit(X, y)
    assert why in str(w[0].message)
    assert why in ensemble.dropped_["bad"]
    assert set(ensemble.weights_) == {"linear", "bayes"}
    with pytest.raises(ValueError, match="The member 'bad' failed on fold 1"):
        make(members, cv=3, on_error="raise").fit(X, y)


class BrokenLast(GaussianNB):
    """A member that fails where it is fitted to all rows alone."""

    def __init__(self, how="fit", n_rows=400):
        super().__init__()
        self.how, self.n_rows = how, n_rows

    def fit(self, X, y):
        if len(X) == self.n_rows and self.how == "fit":
            raise MemoryError("too many rows")
        self.broken_ = len(X) == self.n_rows
        return super().fit(X, y)

    def predict_proba(self, X):
        return super().predict_proba(X) * (np.nan if self.broken_ else 1.0)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("how", "why"),
    [("fit", "MemoryError: too many rows"), ("nan", "100 of its 100 scores are NaN or infinite")],
)
def test_a_member_that_fails_on_all_rows_is_named_and_dropped_or_refused(table, how, why, n_jobs):
    X, y = table
    members = [("bad", BrokenLast(how)), *few()[::2]]
    why = f"failed on the fit to all rows: {why}"
    with pytest.warns(UserWarning, match=f"The member 'bad' was dropped: it {why}") as told:
        ensemble = make(members, cv=3, n_jobs=n_jobs).fit(X, y)
    assert len(told) == 1
    assert ensemble.dropped_ == {"bad": why}
    without = make(members[1:], cv=3).fit(X, y)
    assert ensemble.weights_ == pytest.approx(without.weights_)
    np.testing.assert_allclose(ensemble.decision_function(X), without.decision_function(X))
    with pytest.raises(ValueError, match=f"The member 'bad' {why}. Put it right"):
        make(members, cv=3, on_error="raise", n_jobs=n_jobs).fit(X, y)
    with pytest.raises(ValueError, match=f"No member could be fitted: {why[31:]}"):
        make(members[:1], cv=3).fit(X, y)


def test_a_member_that_fails_on_other_rows_is_named(table):
    X, y = table
    ensemble = make([("bad", BrokenLast(n_rows=300)), *few()[::2]], cv=3).fit(X, y)
    before = ensemble.decision_function(X)
    with pytest.raises(ValueError, match="The member 'bad' failed on the fit to these rows: Memo"):
        ensemble.refit_members(X[:300], y[:300])
    np.testing.assert_array_equal(ensemble.decision_function(X), before)
    dict(ensemble.members_)["bad"].broken_ = True
    with pytest.raises(ValueError, match="The member 'bad' cannot rank these rows: 9 of its 9"):
        ensemble.decision_function(X[:9])


def test_if_all_members_fail_their_reasons_are_given_once(table, recwarn):
    same = "No member could be fitted: RuntimeError: the disk is full.$"
    with pytest.raises(ValueError, match=same):
        make([("a", Broken()), ("b", Broken())], cv=3).fit(*table)
    both = r"fitted \(a, c: RuntimeError: the disk is full; b: 13. of its 13. scores are NaN"
    with pytest.raises(ValueError, match=both):
        make([("a", Broken()), ("b", Broken("nan")), ("c", Broken())], cv=3).fit(*table)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {},
            "No member could be fitted: ValueError: 'when' holds dates or times; say [^(]*event.$",
        ),
        (
            {"categorical_features": ["nope"]},
            "fitted: ValueError: categorical_features names the column 'nope', which X does not",
        ),
    ],
)
def test_one_mistake_in_a_table_is_told_once(table, recwarn, settings, message):
    frame = pd.DataFrame({"x": table[0][:, 0], "when": pd.Timestamp("2026-01-01")})
    with pytest.raises(ValueError, match=message):
        PushEnsemble(cv=3, **settings).fit(frame, table[1])
    assert not recwarn.list


def test_folds_of_rows_that_are_not_there_are_named(table):
    X, y = table
    folds = [(np.arange(200), np.arange(200, 400)), (np.arange(300), np.arange(300, 500))]
    with pytest.raises(ValueError, match="Fold 1 of cv names row 499, but there are 400 rows, 0"):
        make(few(), cv=folds).fit(X, y)


def test_a_test_size_that_leaves_no_class_is_named_as_that(table):
    X, y = table
    groups = (np.arange(400) >= 200).astype(int)
    order = np.argsort(y, kind="stable")
    message = r"test_size=0.5: no split of the groups leaves both.*\. Give another share, or None"
    folds = [
        (np.arange(0, 400, 2), np.arange(1, 400, 2)),
        (np.arange(1, 400, 2), np.arange(0, 400, 2)),
    ]
    with pytest.raises(ValueError, match=message):
        make(few(), cv=folds, test_size=0.5).fit(X[order], y[order], groups=groups)


@pytest.mark.parametrize(
    ("estimators", "what"),
    [
        ([], "estimators is empty; expected a list of"),
        ([LogisticRegression()], "estimators holds LogisticRegression"),
        ([("a", 3)], "The member 'a' is a int"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "estimators names 'a' twice"),
    ],
)
def test_members_that_are_none_are_refused_in_words(table, estimators, what):
    with pytest.raises(ValueError, match=what):
        make(estimators).fit(*table)


def test_one_positive_is_too_few_to_make_folds(table):
    X, y = table
    y = np.arange(400) == 0
    with pytest.raises(ValueError, match="One class has a single row"):
        make(few()).fit(X, y)


@pytest.mark.more
def test_weights_that_a_member_does_not_take_drop_it(table):
    X, y = table
    members = [("linear", LogisticRegression()), ("bad", Broken("zero"))]
    with pytest.warns(UserWarning, match="its fit takes no sample_weight"):
        make(members, cv=3).fit(X, y, np.ones(400))


@pytest.mark.more
def test_pipelines_are_members_and_get_their_weights(table):
    X, y = table
    members = [("scaled", make_pipeline(StandardScaler(), LogisticRegression()))]
    ensemble = make(members, cv=3).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert ensemble.combination_ == "scaled alone"


def test_a_useless_member_alone_ranks_all_the_same_and_says_so(table):
    X, y = table
    with pytest.warns(UserWarning, match="No member ranks better than chance"):
        make([("zero", Broken("zero"))], cv=3).fit(X, y)


def test_time_that_is_too_short_leaves_the_last_members_out(table):
    X, y = table
    ensemble = make(few(), cv=3, max_seconds=1e-9).fit(X, y)
    assert list(ensemble.weights_) == ["linear"]
    assert set(ensemble.dropped_) == {"bayes", "tree"}
    assert "max_seconds" in ensemble.dropped_["tree"]


def test_progress_is_told_of_every_member_and_fold(table, capsys):
    told = []
    make(few(), cv=3, verbose=1).fit(*table, progress=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == list(range(1, 10))
    assert told[0][0] == "linear, fold 1 of 3"
    assert "[PushEnsemble] 9/9" in capsys.readouterr().out


def test_an_interrupt_leaves_the_ensemble_unfitted(table):
    X, y = table

    class Interrupted(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise KeyboardInterrupt

    ensemble = make(few(), cv=3).fit(X, y)
    ensemble.set_params(estimators=[("stop", Interrupted())])
    with pytest.raises(KeyboardInterrupt):
        ensemble.fit(X, y)
    assert not hasattr(ensemble, "members_")


def test_a_pickled_ensemble_scores_the_same(table):
    X, y = table
    ensemble = make(few(), cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(ensemble))
    np.testing.assert_array_equal(again.decision_function(X), ensemble.decision_function(X))


@pytest.mark.more
def test_a_metric_of_the_users_chooses_the_combination(table):
    X, y = table
    ensemble = make(few(), cv=3, metric="precision_at", metric_kwargs={"k": 20}).fit(X, y)
    assert ensemble.choice_.metric == "precision_at(k=20)"
    assert ensemble.choice_.chosen == ensemble.combination_
    assert "<- taken" in str(ensemble.choice_)


def top_share(y, scores):
    return float(np.mean(np.asarray(y)[np.argsort(-scores)[:20]]))


def of_a_column(estimator, X, y):
    return float(np.mean(np.asarray(X)[:, 3]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "nope"}, "metric='nope': expected a metric of toprank.metrics"),
        ({"metric_kwargs": {"q": 1}}, "The metric 'average_precision' does not know q"),
        ({"metric": "roc_auc", "metric_kwargs": {"k": 1}}, "^metric_kwargs belong to the metrics"),
        ({"metric": "accuracy"}, "^metric='accuracy' needs labels or probabilities"),
        (
            {"metric": "precision_at", "metric_kwargs": {"k": 100}},
            r"^k=100, but the smallest fold of the comparison tests 80 rows: give k as a "
            r"share of the rows, such as 0.25, or take fewer folds \(cv\)",
        ),
        ({"metric": "precision_at", "metric_kwargs": {"k": 4000}}, "rows, such as 0.1, or take"),
        ({"metric": "precision_at", "metric_kwargs": {"k": -1}}, "k=-1 is not a count"),
        (
            {"metric": top_share},
            r"^metric=top_share takes \(y, scores\), expected a scorer\(estimator, X, y\). "
            r"sklearn.metrics.make_scorer\(top_share,",
        ),
        ({"metric": of_a_column}, "index 3 is out of bounds"),
    ],
)
@pytest.mark.parametrize("test_size", [None, 0.2])
def test_a_metric_that_says_nothing_of_the_folds_is_refused_before_any_is_fitted(
    table, settings, message, test_size
):
    class Never(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError("a member was fitted")

    ensemble = make([("linear", Never())], cv=5, on_error="raise", test_size=test_size, **settings)
    with pytest.raises((ValueError, IndexError), match=message):
        ensemble.fit(*table)


def test_a_count_of_weighted_rows_is_compared_with_their_weights(table):
    X, y = table
    settings = {"cv": 5, "metric": "precision_at", "metric_kwargs": {"k": 100}}
    ensemble = make([("linear", LogisticRegression())], **settings)
    ensemble.fit(X, y, np.full(400, 2.0))
    assert ensemble.choice_.metric == "precision_at(k=100)"


def test_a_probability_of_one_half_is_a_score_of_zero(table):
    X, y = table
    ensemble = make(few(), cv=3).fit(X, y)
    scores, chances = ensemble.decision_function(X), ensemble.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores > 0, chances > 0.5)
    assert np.all(np.diff(chances[np.argsort(scores)]) >= 0)


def test_a_p_that_is_given_is_taken(table):
    X, y = table
    ensemble = make(few(), cv=3, p=2).fit(X, y)
    assert ensemble.p_ == 2
    assert ensemble.combination_.startswith("push, p = 2")
    with pytest.raises(ValueError, match="The 'p' parameter"):
        make(few(), p=0.5).fit(X, y)


@pytest.mark.more
def test_an_outer_split_in_the_order_of_time_measures_the_last_rows(table):
    X, y = table
    time = np.random.default_rng(1).permutation(400)
    late = np.argsort(time)[300:]
    scored = make(few()[:2], cv=3, test_size=0.25).fit(X, y, time=time)
    early = np.sort(np.argsort(time)[:300])
    past = make(few()[:2], cv=3).fit(X[early], y[early], time=time[early])
    expected = average_precision(y[late], past.decision_function(X[late]))
    assert scored.score_interval_.estimate == pytest.approx(expected)


@pytest.mark.more
def test_an_outer_split_beside_folds_of_all_rows_makes_as_many_folds_of_its_own(table):
    X, y = table
    folds = [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(200))]
    found = make(few()[:2], cv=folds, test_size=0.25, random_state=0).fit(X, y)
    same = make(few()[:2], cv=2, test_size=0.25, random_state=0).fit(X, y)
    assert found.score_interval_.estimate == pytest.approx(same.score_interval_.estimate)


def test_where_all_folds_test_the_same_rows_members_are_weighed_and_not_measured(table):
    X, y = table
    tested = np.arange(300, 400)
    ensemble = make(few()[:2], cv=[(np.arange(150), tested), (np.arange(150, 300), tested)])
    ensemble.fit(X, y)  # no rows are left to train a combination on that others test
    assert sum(ensemble.weights_.values()) > 0 and ensemble.score_interval_ is None
    assert len(ensemble.member_table_) == 2
    assert all(np.isnan([row.score, row.loss_without]).all() for row in ensemble.member_table_)


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (KernelDensity(), "it has neither decision_function nor predict_proba"),
        (Broken("nan"), "scores are NaN or infinite"),
    ],
)
def test_the_table_says_why_a_member_was_dropped(table, member, why):
    X, y = table
    with pytest.warns(UserWarning, match=f"The member 'other' was dropped: .*{why}"):
        ensemble = make([*few()[:2], ("other", member)], cv=2).fit(X, y)
    last = str(ensemble.member_table_).splitlines()[-1]
    assert last.startswith("other ") and why in last


def test_the_choice_of_the_combination_is_a_table_in_a_notebook():
    scores = np.array([[0.5, 0.7], [0.9, 0.8]])
    page = CombinationChoice(("push", "tree alone"), scores, "auc", 1)._repr_html_()
    assert page.index("tree alone") < page.index("0.8500") < page.index("push")
    assert page.count("taken") == 1 and "mean over 2 folds" in page
