"""Trees from block sources: the trees of `fit`, and nothing left behind."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import PredefinedSplit

from toprank import PushTrees, blocks
from toprank.rankers.trees import auto
from toprank.tuning import choose_p, row_folds

pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")

SMALL = {"backend": "xgboost", "n_estimators": 8, "calibration": "training", "random_state": 3}
SMALL |= {"subsample": 1.0}  # rows in pages are drawn page by page


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (2000, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] / 40 + rng.logistic(size=len(X)) > 5).astype(int)
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, y, rng.integers(0, 3, len(y)).astype(float)


@pytest.mark.parametrize(
    "how", [{}, {"early_stopping": True}, {"p": None}, {"loss": "logistic", "p": 2}]
)
def test_blocks_grow_the_trees_of_memory(rows, how):
    X, y, weight = rows
    ours = PushTrees(**SMALL, **how).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=700))
    theirs = PushTrees(**SMALL, **how).fit(X, y, weight)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_an_xgboost_before_3_grows_the_trees_of_memory_too(rows, monkeypatch):
    xgboost = pytest.importorskip("xgboost")
    monkeypatch.delattr(xgboost, "ExtMemQuantileDMatrix", raising=False)
    X, y, weight = rows
    ours = PushTrees(**SMALL).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=700))
    theirs = PushTrees(**SMALL).fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_files_grow_the_trees_of_memory_and_are_scored_where_they_lie(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, _ = rows
    table = pandas.DataFrame(X, columns=list("abcd")).assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=600)
    source = blocks.from_parquet(tmp_path / "rows.parquet", target="y", nulls="nan")
    pages = tmp_path / "pages"
    pages.mkdir()
    ours = PushTrees(**SMALL, monotone_constraints={"a": 1}).fit_blocks(source, cache_dir=pages)
    theirs = PushTrees(**SMALL, monotone_constraints={"a": 1}).fit(table[list("abcd")], y)
    expected = theirs.decision_function(table[list("abcd")])
    np.testing.assert_allclose(ours.decision_function(table[list("abcd")]), expected, atol=1e-6)
    assert os.listdir(pages) == []
    path = ours.score_blocks(source, to=tmp_path / "scores.parquet")
    np.testing.assert_allclose(pandas.read_parquet(path)["score"], expected, atol=1e-6)


def test_p_is_chosen_on_rows_that_are_drawn(rows, monkeypatch):
    X, y, weight = rows
    settings = {**SMALL, "p": "auto", "ps": (1, 4)}
    ours = PushTrees(**settings).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=700))
    theirs = PushTrees(**settings).fit(X, y, weight)
    np.testing.assert_allclose(ours.choice_.fold_scores, theirs.choice_.fold_scores, atol=1e-6)
    assert ours.p_ == theirs.p_
    monkeypatch.setattr(auto, "CHOSEN_ON", 500)
    fewer = PushTrees(**settings).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=700))
    assert (fewer.choice_.fold_scores != ours.choice_.fold_scores).all()
    again = PushTrees(**settings).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=300))
    np.testing.assert_array_equal(again.choice_.fold_scores, fewer.choice_.fold_scores)


def test_drawn_rows_of_one_class_leave_p_at_4(rows, monkeypatch):
    X, y = rows[0], np.arange(len(rows[0])) == 7
    monkeypatch.setattr(auto, "CHOSEN_ON", 50)
    ours = PushTrees(**SMALL).fit_blocks(blocks.from_arrays(X, y, block_rows=700))
    assert ours.choice_ is None and ours.p_ == 4


@pytest.mark.more
def test_trees_of_blocks_are_compared_as_in_memory(rows):
    X, y, _ = rows
    full = np.nan_to_num(X)
    asked = {"ps": (1, 4), "baseline": None, "scoring": "average_precision"}
    ours = choose_p(PushTrees(**SMALL), blocks.from_arrays(full, y, block_rows=700), cv=3, **asked)
    fold = PredefinedSplit(row_folds(full, 3))
    theirs = choose_p(PushTrees(**SMALL), full, y, cv=fold, **asked)
    np.testing.assert_allclose(ours.fold_scores, theirs.fold_scores, atol=1e-6)


def test_what_blocks_cannot_do_is_refused_with_what_to_do(rows, tmp_path):
    X, y, _ = rows
    source = blocks.from_arrays(X, y)
    with pytest.raises(ValueError, match="Use backend='xgboost'"):
        PushTrees(backend="lightgbm").fit_blocks(source)
    with pytest.raises(ValueError, match="categorical_features were given"):
        PushTrees(backend="xgboost", categorical_features=[0]).fit_blocks(source)
    with pytest.raises(TypeError, match="block source"):
        PushTrees(backend="xgboost").fit_blocks(X)
    with pytest.raises(ValueError, match="no labels"):
        PushTrees(backend="xgboost").fit_blocks(blocks.from_arrays(X))
    huge = X.copy()
    huge[5, 2] = np.inf
    with pytest.raises(ValueError, match="column 2, in rows 0 to 1999"):
        PushTrees(**SMALL).fit_blocks(blocks.from_arrays(huge, y), cache_dir=tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_source_that_changes_between_passes_is_noticed(rows):
    X, y, _ = rows
    source = blocks.from_arrays(X, y, block_rows=700)
    whole, passes = source.read, []

    def shrinks(*, features=True):
        passes.append(features)
        for block in whole(features=features):
            if len(passes) > 2 and block.index == 2:
                return
            yield block

    source.read = shrinks
    with pytest.raises(RuntimeError, match="every pass must bring the same rows"):
        PushTrees(**SMALL).fit_blocks(source)


def test_a_fit_to_rows_without_names_forgets_those_of_the_fit_before(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])]).assign(y=y)
    trees = PushTrees(**SMALL).fit_blocks(blocks.from_batches(lambda: [frame], "y", nulls="nan"))
    assert trees.feature_names_in_[0] == "x0"
    trees.fit_blocks(blocks.from_arrays(X, y))
    assert not hasattr(trees, "feature_names_in_")


def test_rows_that_lie_elsewhere_are_left_to_the_fits_that_go_there(rows):
    X, *_ = rows

    class Elsewhere(blocks.BlockSource):
        n_features, feature_names = X.shape[1], None

        def map_reduce(self, sweep, state):
            raise AssertionError("no pass is made")

        def write_scores(self, score, to=None):
            raise AssertionError("no score is asked for")

    with pytest.raises(TypeError, match=r"Elsewhere holds its rows elsewhere .*fit_dask"):
        PushTrees(**SMALL).fit_blocks(Elsewhere())


def test_trees_of_categories_do_not_score_blocks_of_numbers(rows):
    X, y, _ = rows
    signs = np.column_stack([X[:, 0] > 0, X[:, 1:]])
    trees = PushTrees(**SMALL, categorical_features=[0]).fit(signs, y)
    with pytest.raises(ValueError, match="Score such rows with decision_function"):
        trees.score_blocks(blocks.from_arrays(signs))
