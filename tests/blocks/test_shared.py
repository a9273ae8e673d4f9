"""Fits that share their passes: the answers of each alone, and nobody left waiting."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest

from toprank import IRPush, PNormPush, ProperRanker, blocks
from toprank.blocks.checkpoint import with_checkpoint
from toprank.blocks.parts import HashFolds, PartOfRows
from toprank.blocks.row_keys import hash_rows, hash_values
from toprank.blocks.shared import share_passes


@pytest.fixture(scope="module")
def source():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    y = X[:, 0] + rng.logistic(size=2000) > 0
    return blocks.from_arrays(X, y, block_rows=600)


def test_fits_that_share_passes_end_as_they_end_alone(source):
    rankers = [PNormPush(4), PNormPush(np.inf), IRPush(), ProperRanker()]
    passes: Counter[str] = Counter()
    fits = [ranker.fit_blocks for ranker in rankers]
    together = share_passes(source, fits, passes)
    alone = [type(r)(**r.get_params()).fit_blocks(source) for r in rankers]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.coef_, other.coef_)
    longest = max(sum(ranker.passes_.values()) for ranker in alone)
    assert passes.total() <= longest + 2 < sum(sum(r.passes_.values()) for r in alone)


def test_one_fit_that_fails_ends_all(source):
    def fails(rows):
        rows.map_reduce(_Rows(), None)
        raise KeyError("of mine")

    before = threading.active_count()
    with pytest.raises(KeyError, match="of mine"):
        share_passes(source, [fails, PNormPush(4).fit_blocks, PNormPush(8).fit_blocks])
    assert threading.active_count() == before


def test_a_pass_that_fails_ends_all(source):
    def asks(rows):
        return rows.map_reduce(_Rows(fail=True), None)

    with pytest.raises(OSError, match="no such rows"):
        share_passes(source, [asks, PNormPush(4).fit_blocks])


class _Rows:
    needs_features = False

    def __init__(self, fail=False):
        self.fail = fail

    def local(self, block, state):
        if self.fail:
            raise OSError("no such rows")
        return block.n_rows

    def merge(self, left, right):
        return left + right


def test_a_fit_may_share_the_passes_that_it_shares(source):
    def two(rows):
        return share_passes(rows, [lambda r: r.map_reduce(_Rows(), None)] * 2)

    assert share_passes(source, [two, two]) == [[2000, 2000], [2000, 2000]]


def test_parts_of_rows_are_fitted_as_if_the_others_were_not_there(source):
    folds = HashFolds(3, seed=1)
    X, y, _ = source._arrays
    fold = folds.numbers(blocks.Block(0, X))
    for k in range(3):
        part = PNormPush(4).fit_blocks(PartOfRows(source, folds, "train", k))
        whole = PNormPush(4).fit(X[fold != k], y[fold != k])
        np.testing.assert_allclose(part.coef_, whole.coef_, atol=1e-7)


def test_a_missing_number_is_placed_whatever_the_passes_go_through(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y, X[250, 1] = X[:, 0] > 0, np.nan
    source = blocks.from_arrays(X, y, block_rows=100)
    part = PartOfRows(source, HashFolds(2, seed=0), "inner")
    for fit in (
        lambda: PNormPush().fit_blocks(source),
        lambda: PNormPush().fit_blocks(part),
        lambda: PNormPush().fit_blocks(source, checkpoint=tmp_path / "kept"),
        lambda: share_passes(source, [PNormPush().fit_blocks] * 2),
    ):
        with pytest.raises(ValueError, match="contains NaN: column 1, in rows 200 to 299"):
            fit()


def test_a_part_of_rows_is_not_scored_into_files_and_needs_the_groups_it_is_made_by(source):
    part = PartOfRows(source, HashFolds(2, seed=0), "train")
    with pytest.raises(TypeError, match="score the source itself"):
        PNormPush().fit_blocks(source).score_blocks(part)
    with pytest.raises(ValueError, match="no groups to make folds by: pass groups="):
        PNormPush().fit_blocks(PartOfRows(source, HashFolds(2, by_group=True), "train"))


def test_folds_by_hash_are_of_equal_shares_and_do_not_depend_on_the_order():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 50, (20_000, 3)).astype(np.float32)
    folds = HashFolds(5, seed=0, aside=0.2)
    fold = folds.numbers(blocks.Block(0, X))
    share = np.bincount(fold + 1) / len(fold)
    np.testing.assert_allclose(share, [0.2, *[0.16] * 5], atol=0.01)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(folds.numbers(blocks.Block(0, X[order])), fold[order])
    again = HashFolds(5, seed=0, aside=0.2, repeats=2).numbers(blocks.Block(0, X), 1)
    np.testing.assert_array_equal(again < 0, fold < 0)
    assert 0.1 < np.mean(again[fold >= 0] == fold[fold >= 0]) < 0.3


def test_equal_values_have_equal_keys_whatever_their_type():
    X = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(hash_rows(X, 0), hash_rows(X.astype(np.int32), 0))
    assert len(np.unique(hash_values(["a", "b", "c"], 0))) == 3
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")
    assert len(np.unique(hash_values(days, 0))) == 2


class _Weights:
    def local(self, block, state):
        return [float(np.sum(np.ones(block.n_rows) if block.weight is None else block.weight))]

    def merge(self, left, right):
        return left + right


def test_samples_of_rows_are_those_of_the_source_itself(source, tmp_path):
    def pick(block):
        rows = slice(None, None, 3)
        weight = None if block.weight is None else block.weight[rows]
        return blocks.Block(block.index, block.X[rows], block.y[rows], weight)

    wanted = source.thin(pick).map_reduce(_Weights(), None)
    assert sum(wanted) == 667
    kept = with_checkpoint(source, tmp_path / "kept")
    assert kept.thin(pick).map_reduce(_Weights(), None) == wanted
    assert share_passes(
        source, [lambda rows: rows.thin(pick).map_reduce(_Weights(), None)] * 2
    ) == [
        wanted,
        wanted,
    ]
    folds = HashFolds(2, seed=0)
    parts = [PartOfRows(source, folds, "test", fold).thin(pick) for fold in range(2)]
    found = [part.map_reduce(_Weights(), None) for part in parts]
    assert np.sum(found, axis=0).tolist() == wanted  # each row of the sample is in one fold
