"""`PushEnsemble.fit_blocks`: members fitted where the rows lie, weighed on rows that were drawn."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from toprank import PNormPush, ProperRanker, PushEnsemble, PushTrees, blocks
from toprank.blocks import checkpoint
from toprank.blocks.parts import PartOfRows
from toprank.folds import TimeOrderedSplit
from toprank.metrics import auc
from toprank.rankers.ensemble.plan import EFFORTS
from toprank.tuning import row_folds

RNG = np.random.default_rng(3)
X = RNG.standard_normal((900, 3))
Y = np.where(X @ [1.0, -1.0, 0.5] + RNG.logistic(size=900) > 2, "yes", "no")
LINEAR = [("push", PNormPush(p=4)), ("logistic", ProperRanker())]


@pytest.fixture(scope="module")
def source():
    return blocks.from_arrays(X, Y, block_rows=250)


@pytest.fixture(scope="module")
def fitted(source):
    return PushEnsemble([*LINEAR, ("bayes", GaussianNB())], cv=3, p=4.0).fit_blocks(source)


def test_out_of_fold_scores_are_those_of_members_that_have_not_seen_the_rows(fitted):
    numbers = row_folds(X, 3)
    assert np.array_equal(
        np.concatenate([test for _, test in fitted._folds]),
        np.concatenate([np.flatnonzero(numbers == fold) for fold in range(3)]),
    )
    for column, member in enumerate((PNormPush(p=4), ProperRanker(), GaussianNB())):
        for fold in range(3):
            test = numbers == fold
            one = member.fit(X[~test], Y[~test])
            found = fitted.oof_scores_[test, column]
            if hasattr(one, "decision_function"):
                expected = one.decision_function(X[test])
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
            else:
                share = one.predict_proba(X[test])[:, 1]
                assert np.array_equal(np.argsort(found), np.argsort(share))


@pytest.mark.more
def test_a_fit_that_was_lost_goes_on_from_its_checkpoint(source, tmp_path, monkeypatch):
    ensemble = PushEnsemble(LINEAR, cv=3, p=4.0, random_state=0)
    whole = clone(ensemble).fit_blocks(source, checkpoint=tmp_path / "fit")
    passes = sorted((tmp_path / "fit").glob("*.pass"))
    for last in passes[len(passes) // 2 :]:  # as if the driver had been lost half way
        last.unlink()
    made = []
    write = checkpoint.replace_file

    def count(path):
        made.append(path)
        return write(path)

    monkeypatch.setattr(checkpoint, "replace_file", count)
    again = clone(ensemble).fit_blocks(source, checkpoint=tmp_path / "fit", resume=True)
    assert made == passes[len(passes) // 2 :]
    assert np.array_equal(again.oof_scores_, whole.oof_scores_)
    assert again.weights_ == whole.weights_
    assert np.array_equal(again.decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match="random_state=None: a fit with checkpoint="):
        PushEnsemble(LINEAR).fit_blocks(source, checkpoint=tmp_path / "other")
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        clone(ensemble).fit_blocks(source, resume=True)


@pytest.mark.more
@pytest.mark.sampled(3)
@pytest.mark.parametrize("on_error", ["raise", "warn"])
def test_rows_that_were_mended_met_what_the_refused_ones_had_left(tmp_path, on_error):
    table = pd.DataFrame(X, columns=list("abc")).assign(y=Y)
    ensemble = PushEnsemble(LINEAR, cv=3, p=4.0, random_state=0, on_error=on_error)

    def fit(folder, rows, **kept):
        rows.to_parquet(tmp_path / "rows.parquet")
        source = blocks.from_parquet(tmp_path / "rows.parquet", "y", block_rows=200)
        return clone(ensemble).fit_blocks(source, checkpoint=tmp_path / folder, **kept)

    bad = table.copy()
    bad.loc[7, "b"] = np.inf
    with pytest.raises(ValueError, match=r"^Input X contains infinity: column 'b', in .*row group"):
        fit("fit", bad)
    assert list((tmp_path / "fit").iterdir()) == []
    mended, fresh = fit("fit", table, resume=True), fit("fresh", table)
    features = table[list("abc")]
    assert np.array_equal(mended.decision_function(features), fresh.decision_function(features))


def test_members_with_a_weight_are_fitted_to_all_rows_and_score_blocks(fitted, source):
    for name, model in fitted.members_:
        whole = dict([*LINEAR, ("bayes", GaussianNB())])[name].fit(X, Y)
        if hasattr(whole, "coef_"):
            np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)
    scores = fitted.decision_function(X)
    np.testing.assert_allclose(fitted.score_blocks(source), scores, rtol=1e-12)
    travelled = pickle.loads(pickle.dumps(fitted.block_score()))
    np.testing.assert_allclose(travelled(X), scores, rtol=1e-12)
    found = fitted.evaluate_blocks(source)
    assert found.metric("auc").value == pytest.approx(auc(Y == "yes", scores), rel=1e-12)
    assert fitted.predict(X[:5]).tolist() == np.where(scores[:5] > 0, "yes", "no").tolist()
    assert fitted.score_interval_ is not None


@pytest.fixture
def few_drawn(monkeypatch):
    """Fewer rows are drawn than there are."""
    monkeypatch.setitem(EFFORTS, "fast", replace(EFFORTS["fast"], weighed=300))


def test_of_many_rows_some_are_drawn_and_the_last_fits_take_all(few_drawn, tmp_path):
    table = pd.DataFrame(X, columns=list("abc"))
    table.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    source = blocks.from_parquet(tmp_path, "y", block_rows=200)
    ensemble = PushEnsemble(LINEAR, quality="fast", cv=3).fit_blocks(source)
    assert 200 < len(ensemble.oof_scores_) < 400
    for name, model in ensemble.members_:
        whole = clone(dict(LINEAR)[name]).fit(X, Y)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)
    path = ensemble.score_blocks(source, to=tmp_path / "scores.parquet")
    np.testing.assert_allclose(
        pd.read_parquet(path)["score"], ensemble.decision_function(table), rtol=1e-12
    )


def test_a_member_that_sees_the_drawn_rows_only_is_named(few_drawn):
    source = blocks.from_arrays(X, Y, block_rows=250)
    with pytest.warns(UserWarning, match=r"'bayes' cannot .* fitted to the \d+ rows .* all 900"):
        PushEnsemble([("bayes", GaussianNB())], quality="fast", cv=3).fit_blocks(source)


@pytest.mark.more
def test_groups_stay_whole_and_time_is_followed():
    groups = np.repeat(np.arange(90), 10)
    source = blocks.from_arrays(X, Y, groups=groups, block_rows=250)
    ensemble = PushEnsemble(LINEAR, cv=3).fit_blocks(source)
    for train, test in ensemble._folds:
        assert not set(groups[train]) & set(groups[test])
    by_time = PushEnsemble(LINEAR, cv=TimeOrderedSplit(3)).fit_blocks(source)
    for train, test in by_time._folds:
        assert groups[train].max() < groups[test].min()


@pytest.mark.more
def test_weights_count_and_rows_without_one_are_absent():
    weight = np.where(np.arange(900) < 450, 1.0, 0.0)
    half = PushEnsemble(LINEAR, cv=3).fit_blocks(blocks.from_arrays(X, Y, weight, block_rows=250))
    alone = PushEnsemble(LINEAR, cv=3).fit_blocks(blocks.from_arrays(X[:450], Y[:450]))
    assert half.oof_scores_.shape == alone.oof_scores_.shape
    np.testing.assert_allclose(half.oof_scores_, alone.oof_scores_, rtol=1e-6, atol=1e-8)
    assert half.weights_ == pytest.approx(alone.weights_, rel=1e-4)


def test_a_member_that_fails_is_dropped_or_stops_the_fit(source):
    class Broken(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("no such luck")

    members = [LINEAR[0], ("broken", Broken())]
    with pytest.warns(UserWarning, match="'broken' was dropped: it failed: RuntimeError: no such"):
        ensemble = PushEnsemble(members, cv=3).fit_blocks(source)
    assert ensemble.oof_members_ == ["push"]
    with pytest.raises(ValueError, match="'broken' failed"):
        PushEnsemble(members, cv=3, on_error="raise").fit_blocks(source)


def test_a_member_that_fails_on_all_rows_is_dropped_or_stops_the_fit(source):
    class Broken(PNormPush):
        def fit_blocks(self, source, **settings):
            if not isinstance(source, PartOfRows):
                raise RuntimeError("no such luck")
            return super().fit_blocks(source, **settings)

    members = [("broken", Broken(4.0)), LINEAR[1]]
    fault = "'broken'.* failed on the fit to all rows: RuntimeError: no such luck"
    with pytest.warns(UserWarning, match=fault):
        ensemble = PushEnsemble(members, cv=3, p=4).fit_blocks(source)
    assert ensemble.oof_members_ == [name for name, _ in ensemble.members_] == [LINEAR[1][0]]
    with pytest.raises(ValueError, match=fault):
        PushEnsemble(members, cv=3, p=4, on_error="raise").fit_blocks(source)


def test_a_metric_that_the_folds_are_too_small_for_is_refused_before_they_are_fitted(source):
    ensemble = PushEnsemble(LINEAR, cv=3, metric="precision_at", metric_kwargs={"k": 9999})
    with pytest.raises(ValueError, match="k=9999, but the smallest fold of the"):
        ensemble.fit_blocks(source)


def test_what_only_memory_can_give_is_refused_with_advice(source):
    with pytest.raises(ValueError, match=r"test_size=0\.2.*evaluate_blocks"):
        PushEnsemble(LINEAR, test_size=0.2).fit_blocks(source)
    with pytest.raises(ValueError, match="categorical_features"):
        PushEnsemble(LINEAR, categorical_features=[0]).fit_blocks(source)
    with pytest.raises(TypeError, match="block source"):
        PushEnsemble(LINEAR).fit_blocks(X)


@pytest.mark.more
def test_trees_from_files_are_members(tmp_path):
    pytest.importorskip("xgboost")
    pd.DataFrame(X, columns=list("abc")).assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    source = blocks.from_parquet(tmp_path, "y", block_rows=200)
    auto = PushEnsemble(quality="fast", random_state=0).fit_blocks(source)
    assert set(auto.oof_members_) == {"logistic", "push", "trees, p = 4", "trees, binary"}
    trees = PushTrees(p=4, backend="xgboost", n_estimators=10, subsample=1.0, colsample=1.0)
    one = PushEnsemble([("trees", trees)], cv=3).fit_blocks(source)
    whole = trees.fit_blocks(source)
    frame = pd.DataFrame(X, columns=list("abc"))
    order = np.argsort(one.decision_function(frame), kind="stable")
    assert np.array_equal(order, np.argsort(whole.decision_function(frame), kind="stable"))
    assert whole.evaluate_blocks(source).metric("auc").exact


@pytest.mark.more
def test_members_that_split_by_categories_score_the_blocks_of_a_source():
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, 6, 600), X[:600, 0]])
    y = (np.isin(codes[:, 0], [1, 4]) * 2.0 + codes[:, 1] + rng.logistic(size=600) > 1).astype(int)
    trees = PushTrees(n_estimators=8, categorical_features=[0], calibration="training")
    ensemble = PushEnsemble([("trees", trees), *LINEAR], cv=3, random_state=0).fit(codes, y)
    assert "trees" in dict(ensemble.members_)
    scores = ensemble.score_blocks(blocks.from_arrays(codes, block_rows=250))
    np.testing.assert_allclose(scores, ensemble.decision_function(codes))


@pytest.mark.parametrize(
    ("positives", "message"),
    [(1, "label 1 has a single row"), (2, "one class only in fold . to train on")],
)
def test_a_class_too_rare_for_the_folds_is_named_as_that(positives, message):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.arange(300) < positives  # the hash puts both into one fold
    ensemble = PushEnsemble([("push", PNormPush(p=4))], cv=3, on_error="raise")
    with pytest.raises(ValueError, match=message):
        ensemble.fit_blocks(blocks.from_arrays(X, y.astype(int)))
