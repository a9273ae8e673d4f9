"""The copy of decoded rows that a fit from Parquet files keeps for its later passes."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, blocks
from toprank.blocks import decoded, parquet

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    place = tmp_path_factory.mktemp("rows")
    for part in range(3):
        X = rng.standard_normal((200, 3))
        table = pd.DataFrame(X, columns=list("abc"))
        table["c"] = table["c"].astype(np.float32)
        table["y"] = np.where(X[:, 0] + rng.logistic(size=200) > 1, "yes", "no")
        table.to_parquet(place / f"part-{part}.parquet")
    return place


def fit(folder, **how):
    return PNormPush(p=4).fit_blocks(blocks.from_parquet(folder, "y", block_rows=90, **how))


@pytest.fixture
def decodings(monkeypatch):
    """How often the features of a block were decoded."""
    counted = []
    block = parquet.ParquetSource._block

    def count(self, index, batch, features, where):
        counted.append(features)
        return block(self, index, batch, features, where)

    monkeypatch.setattr(parquet.ParquetSource, "_block", count)
    return counted


def test_a_fit_decodes_the_features_once_and_leaves_nothing(folder, decodings, tmp_path):
    kept = fit(folder, cache_dir=tmp_path)
    assert sum(decodings) == 9  # three blocks of each file
    assert kept.passes_["evaluate"] > 1
    assert os.listdir(tmp_path) == []


def test_the_answer_has_the_same_bits_with_and_without_the_copy(folder, decodings):
    without = fit(folder, cache_dir=False)
    assert sum(decodings) > 9
    assert np.array_equal(fit(folder).coef_, without.coef_)


def test_a_full_or_missing_disk_is_no_obstacle(folder, monkeypatch, tmp_path):
    expected = fit(folder, cache_dir=False).coef_
    assert np.array_equal(fit(folder, cache_dir=tmp_path / "no folder").coef_, expected)
    monkeypatch.setattr(decoded, "_SHARE", 0.0)
    assert np.array_equal(fit(folder).coef_, expected)
    monkeypatch.undo()

    class Full:
        def __getattr__(self, name):
            return lambda *_: None

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoded.tempfile, "TemporaryFile", lambda **_: Full())
    assert np.array_equal(fit(folder).coef_, expected)


def test_a_disk_slower_than_decoding_is_left_alone(folder, monkeypatch, decodings):
    # a block begins, is decoded when its writing starts, is written, and is counted
    ticks = iter(np.cumsum(np.tile([0.0, 1.0, 5.0, 0.0], 1000)))
    monkeypatch.setattr(decoded.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(decoded, "_TRIED", 1000)
    fit(folder)
    assert sum(decodings) > 9


def test_a_file_that_changes_after_the_copy_was_made_is_noticed(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    source = blocks.from_parquet(tmp_path, "y")
    PNormPush(p=4).fit_blocks(source)
    last = Path(tmp_path / "part-2.parquet")
    last.write_bytes(last.read_bytes() + b"more")
    with pytest.raises(RuntimeError, match="has changed since"):
        PNormPush(p=4).fit_blocks(source)


def test_a_pass_that_was_broken_off_starts_the_copy_again(folder):
    source = blocks.from_parquet(folder, "y", block_rows=90)
    source.expect_passes()
    begun = source.read()
    next(begun), next(begun)
    begun.close()
    assert not source._copy.ready
    whole = list(source.read())
    assert source._copy.ready
    for first, again in zip(whole, source.read(), strict=True):
        assert np.array_equal(first.X, again.X)
        assert np.array_equal(first.y, again.y)


def test_only_fits_keep_a_copy_and_a_source_travels_without_it(folder):
    source = blocks.from_parquet(folder, "y")
    ranker = PNormPush(p=4).fit_blocks(source)
    assert source._copy.ready
    assert pickle.loads(pickle.dumps(source))._copy is None
    other = blocks.from_parquet(folder, "y")
    ranker.evaluate_blocks(other)
    assert other._copy is None


def test_labels_that_are_numbers_are_kept_with_the_features(folder, decodings, tmp_path):
    for file in folder.iterdir():
        table = pd.read_parquet(file)
        table["y"] = (table["y"] == "yes").astype(np.int8)
        table["w"], table["g"] = np.arange(200.0), np.arange(200) // 7
        table.to_parquet(tmp_path / file.name)
    source = blocks.from_parquet(tmp_path, "y", weight="w", group="g", block_rows=90)
    source.expect_passes()
    first, decoded_once = list(source.read()), len(decodings)
    for before, again in zip(first, source.read(), strict=True):
        assert before.index == again.index
        for name in ("X", "y", "weight", "groups"):
            here, there = getattr(before, name), getattr(again, name)
            assert here.dtype == there.dtype
            assert np.array_equal(here, there)
    assert len(decodings) == decoded_once == 9
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="is gone now"):
        list(source.read())
