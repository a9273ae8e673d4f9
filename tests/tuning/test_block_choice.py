"""Choosing p on the rows of a block source: the choice in memory with the same folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, PredefinedSplit

from toprank import IRPush, PNormPush, PNormPushCV, ProperRanker, RankBoost, blocks
from toprank.tuning import TimeOrderedSplit, block_search, choose_p, row_folds

GRID = {"ps": (1, 4, 16), "alphas": (1e-3, 1e-1), "scoring": "average_precision"}


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = (X @ [1.0, -0.5, 0.25, 0.0] + rng.logistic(size=n) > 1).astype(int)
    return X, y, rng


def in_memory(X, y, fold, weight=None, **grid):
    ranker = PNormPushCV(**{**GRID, **grid}, cv=PredefinedSplit(fold), test_size=None)
    return ranker.fit(X, y, weight)


def on_blocks(source, **grid):
    return PNormPushCV(**{**GRID, "test_size": None, **grid}).fit_blocks(source)


def assert_same_choice(ours, theirs, tol=1e-9):
    np.testing.assert_allclose(ours.choice_.fold_scores, theirs.choice_.fold_scores, atol=tol)
    assert (ours.p_, ours.alpha_, ours.pushes_) == (theirs.p_, theirs.alpha_, theirs.pushes_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("block_rows", [None, 700])
def test_the_choice_is_that_of_memory_with_the_same_folds(block_rows):
    X, y, rng = rows()
    weight = rng.integers(0, 3, len(y)).astype(float)
    source = blocks.from_arrays(X, y, weight, block_rows=block_rows)
    ours = on_blocks(source, cv=3, class_weight="balanced")
    theirs = in_memory(X, y, row_folds(X, 3), weight, class_weight="balanced")
    assert_same_choice(ours, theirs, 1e-4)
    assert ours.choice_.test_to_train == pytest.approx(theirs.choice_.test_to_train)


@pytest.mark.more
def test_files_are_chosen_on_as_arrays_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, _ = rows()
    table = pandas.DataFrame(X, columns=list("abcd")).assign(y=y)
    for part in range(3):
        piece = table[1000 * part : 1000 * (part + 1)]
        piece.to_parquet(tmp_path / f"{part}.parquet", row_group_size=400)
    ours = on_blocks(blocks.from_parquet(tmp_path, target="y"), cv=3)
    assert_same_choice(ours, in_memory(X, y, row_folds(X, 3)), 1e-4)
    assert ours.feature_names_in_.tolist() == list("abcd")
    assert ours.decision_function(table[list("abcd")]).shape == (3000,)


@pytest.mark.more
def test_sparse_rows_are_chosen_on_as_dense_ones():
    X, y, rng = rows()
    X[rng.random(X.shape) < 0.7] = 0.0
    ours = on_blocks(blocks.from_arrays(sparse.csr_array(X), y, block_rows=800), cv=3)
    assert_same_choice(ours, in_memory(X, y, row_folds(X, 3)), 1e-4)


@pytest.mark.more
def test_groups_stay_whole():
    X, y, rng = rows()
    groups = rng.integers(0, 300, len(y)).astype(str)
    ours = on_blocks(blocks.from_arrays(X, y, groups=groups, block_rows=900), cv=3)
    fold = row_folds(X, 3, groups=groups)
    assert all(len(np.unique(fold[groups == one])) == 1 for one in np.unique(groups))
    assert_same_choice(ours, in_memory(X, y, fold), 1e-4)


def test_folds_follow_the_time():
    X, y, rng = rows()
    day = rng.integers(0, 100, len(y))
    cv = TimeOrderedSplit(3, gap=5)
    ours = on_blocks(blocks.from_arrays(X, y, groups=day, block_rows=900), cv=cv)
    theirs = PNormPushCV(**GRID, cv=cv, test_size=None).fit(X, y, groups=day)
    assert_same_choice(ours, theirs, 1e-4)


@pytest.mark.more
def test_the_last_rows_are_kept_aside_where_folds_follow_the_time():
    X, y, rng = rows()
    day = rng.integers(0, 100, len(y))
    source = blocks.from_arrays(X, y, groups=day, block_rows=900)
    cv = TimeOrderedSplit(3, gap=5)
    ours = on_blocks(source, cv=cv, test_size=0.2)
    theirs = PNormPushCV(**GRID, cv=cv, test_size=0.2).fit(X, y, groups=day)
    assert_same_choice(ours, theirs, 1e-4)
    assert ours.score_interval_.estimate == pytest.approx(theirs.score_interval_.estimate, abs=1e-3)


@pytest.mark.more
def test_rows_kept_aside_are_in_no_fold():
    X, y, _ = rows()
    source = blocks.from_arrays(X, y, block_rows=900)
    ours = on_blocks(source, cv=3, test_size=0.2, n_repeats=2)
    assert ours.choice_.fold_scores.shape[1] == 6
    assert ours.score_interval_.low < ours.score_interval_.estimate < ours.score_interval_.high
    assert ours.choice_.test_to_train == pytest.approx(0.5, abs=0.02)


def test_more_settings_take_no_more_passes():
    X, y, _ = rows()

    class Anew(blocks.BlockSource):
        def __init__(self):
            self.inner = blocks.from_arrays(X, y)
            self.n_features, self.count = 4, 0

        def map_reduce(self, sweep, state):
            self.count += 1
            return self.inner.map_reduce(sweep, state)

        def write_scores(self, score, to=None):
            return self.inner.write_scores(score, to)

    few, many = Anew(), Anew()
    on_blocks(few, ps=(1,), alphas=(1e-2,), cv=2)
    on_blocks(many, ps=(1, 2, 4), alphas=(1e-2, 1e-1), cv=5)
    assert many.count < 3 * few.count < 90


@pytest.mark.more
def test_lists_too_long_to_gather_are_scored_by_their_top_and_bins(monkeypatch):
    X, y, _ = rows()
    source = blocks.from_arrays(X, y, block_rows=900)
    settings = {"scoring": "precision_at", "scoring_kwargs": {"k": 0.1}, "cv": 3}
    exact = on_blocks(source, **settings)
    monkeypatch.setattr(block_search, "EXACT_UP_TO", 100)
    listed = on_blocks(source, **settings)
    np.testing.assert_allclose(listed.choice_.fold_scores, exact.choice_.fold_scores, atol=1e-12)
    with pytest.raises(ValueError, match=r"roc_auc.*more than 100"):
        on_blocks(source, scoring="roc_auc", cv=3)


@pytest.mark.more
def test_a_choice_that_was_broken_off_is_resumed_to_the_same_bits(tmp_path):
    X, y, _ = rows()

    class Breaks:
        left = 9

    whole = PNormPushCV(**GRID, cv=2, test_size=None).fit_blocks(blocks.from_arrays(X, y))
    source = blocks.from_arrays(X, y)
    real = type(source).map_reduce

    def breaks(self, sweep, state):
        if self is source:
            Breaks.left -= 1
            if Breaks.left == 0:
                raise ConnectionError("the driver is gone")
        return real(self, sweep, state)

    folder = tmp_path / "kept"
    cv = PNormPushCV(**GRID, cv=2, test_size=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "map_reduce", breaks)
        with pytest.raises(ConnectionError, match="driver is gone"):
            cv.fit_blocks(source, checkpoint=folder)
    again = cv.fit_blocks(blocks.from_arrays(X, y), checkpoint=folder, resume=True)
    np.testing.assert_array_equal(again.choice_.fold_scores, whole.choice_.fold_scores)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_what_cannot_be_done_on_blocks_is_refused_with_what_to_do():
    X, y, _ = rows(300)
    source = blocks.from_arrays(X, y)
    with pytest.raises(ValueError, match="share of the rows to keep aside"):
        on_blocks(source, test_size="nested")
    with pytest.raises(TypeError, match="number of folds"):
        on_blocks(source, cv=KFold(3))
    with pytest.raises(ValueError, match="need the times"):
        on_blocks(source, cv=TimeOrderedSplit(3))
    with pytest.raises(TypeError, match="block source"):
        on_blocks(X)
    rare = np.zeros(300, dtype=int)
    rare[:2] = 1
    with pytest.raises(ValueError, match="one class only"):
        on_blocks(blocks.from_arrays(X, rare), cv=5)
    with pytest.raises(ValueError, match="n_splits=1"):
        row_folds(X, 1)


def test_any_linear_ranker_is_chosen_for_as_in_memory():
    X, y, _ = rows()
    baseline = ProperRanker(alpha=1e-3)
    settings = {"ps": (1, 8), "scoring": "auc"}
    ours = choose_p(PNormPush(), blocks.from_arrays(X, y, block_rows=900), cv=3, **settings)
    fold = PredefinedSplit(row_folds(X, 3))
    theirs = choose_p(PNormPush(), X, y, cv=fold, baseline=baseline, **settings)
    np.testing.assert_allclose(ours.fold_scores, theirs.fold_scores, atol=1e-6)
    assert (ours.p, ours.test_to_train) == (theirs.p, pytest.approx(theirs.test_to_train))
    assert ours.candidates[0].name == "logistic regression"


@pytest.mark.more
def test_one_ranker_without_a_power_is_compared_in_the_order_of_time():
    X, y, rng = rows()
    day = rng.integers(0, 60, len(y))
    source = blocks.from_arrays(X, y, groups=day, block_rows=900)
    cv = TimeOrderedSplit(3)
    ours = choose_p(IRPush(), source, cv=cv, scoring="auc")
    theirs = choose_p(
        IRPush(), X, y, cv=3, time=day, scoring="auc", baseline=ProperRanker(alpha=1e-3)
    )
    np.testing.assert_allclose(ours.fold_scores, theirs.fold_scores, atol=1e-6)
    assert ours.test_to_train == pytest.approx(theirs.test_to_train)


def test_what_cannot_be_compared_on_blocks_is_refused():
    X, y, _ = rows(300)
    source = blocks.from_arrays(X, y)
    with pytest.raises(TypeError, match="RankBoost has no fit_blocks"):
        choose_p(RankBoost(5), source)
    with pytest.raises(TypeError, match="y= was given beside a block source"):
        choose_p(PNormPush(), source, y)
    with pytest.raises(TypeError, match="needs y"):
        choose_p(PNormPush(), X)


def test_rows_of_no_weight_are_no_part_of_the_order_of_time():
    X, y, rng = rows(400)
    time, weight = rng.permutation(400), rng.integers(0, 2, 400)
    there = weight > 0
    cv = TimeOrderedSplit(3)
    whole = on_blocks(blocks.from_arrays(X, y, weight, groups=time), ps=(1,), cv=cv)
    part = on_blocks(blocks.from_arrays(X[there], y[there], groups=time[there]), ps=(1,), cv=cv)
    assert_same_choice(whole, part, tol=1e-6)


def test_a_fold_of_one_class_is_named():
    X, y, _ = rows(300)
    source = blocks.from_arrays(X, y, groups=np.where(y == 1, 0, np.arange(300)), block_rows=100)
    with pytest.raises(ValueError, match=r"Fold \d has rows of one class only"):
        on_blocks(source, cv=3, ps=(1,), alphas=(1e-2,))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_rows_aside_of_one_class_have_no_interval_and_say_why(share):
    X, y, _ = rows(1_000)
    y[800:] = share
    source = blocks.from_arrays(X, y, groups=np.arange(1_000), block_rows=400)
    few = {"ps": (1,), "alphas": (1e-2,), "scoring": "average_precision"}
    ranker = PNormPushCV(**few, cv=TimeOrderedSplit(2), test_size=0.2)
    with pytest.warns(UserWarning, match=r"score_interval_ is None\. .*class"):
        found = ranker.fit_blocks(source)
    assert found.score_interval_ is None
