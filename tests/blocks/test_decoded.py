"""The copy of decoded rows that a fit from Parquet files keeps for its later passes."""

import os
import pickle
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, blocks
from toprank.blocks import decoded, parquet
from toprank.blocks.columns import Columns
from toprank.blocks.kernels_columns import ColumnAddresses

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
    # decoding a block takes a second, writing one five, each by the clock of its own thread
    clocks = Counter()

    def tick():
        name = threading.current_thread().name
        clocks[name] += 5.0 if name.startswith("toprank-writer") else 1.0
        return clocks[name]

    monkeypatch.setattr(decoded.time, "perf_counter", tick)
    monkeypatch.setattr(decoded, "_TRIED", 1000)
    fit(folder)
    assert sum(decodings) > 9


def test_a_block_is_written_while_the_next_one_is_decoded(folder, monkeypatch):
    meanwhile = threading.Event()
    write = decoded.DecodedCopy._write

    def wait(self, block):
        assert meanwhile.wait(10)  # nobody would decode the second block before this one is done
        return write(self, block)

    def second(blocks):
        for block in blocks:
            if block.index == 1:
                meanwhile.set()
            yield block

    monkeypatch.setattr(decoded.DecodedCopy, "_write", wait)
    source = blocks.from_parquet(folder, "y", block_rows=90)
    source.expect_passes()
    kept = list(source._copy.keep(second(source._decode(True))))
    assert [block.index for block in kept] == list(range(9))


@pytest.mark.parametrize("broken", ["decoding", "writing", "interrupt"])
def test_a_first_pass_that_fails_says_so_and_leaves_no_thread(folder, monkeypatch, broken):
    before = set(threading.enumerate())
    error = {"interrupt": KeyboardInterrupt, "writing": MemoryError, "decoding": ValueError}[broken]
    if broken == "decoding":
        read = parquet.batch_column

        def damaged(batch, name, where, *rest):
            if "part-2" in where:
                raise ValueError(f"no page of {where}")
            return read(batch, name, where, *rest)

        monkeypatch.setattr(parquet, "batch_column", damaged)
    if broken == "writing":
        monkeypatch.setattr(
            decoded, "_tiles", lambda *_: (_ for _ in ()).throw(MemoryError("9 GB"))
        )
    source = blocks.from_parquet(folder, "y", block_rows=90)
    source.expect_passes()
    words = {"decoding": "part-2.parquet, row group 0", "writing": None, "interrupt": None}[broken]

    def look(block):
        if broken == "interrupt" and block.index == 3:
            raise KeyboardInterrupt
        return block.n_rows

    with pytest.raises(error, match=words):
        sum(source.map(look))
    assert set(threading.enumerate()) == before
    assert not source._copy.ready
    monkeypatch.undo()
    assert sum(source.map(lambda block: block.n_rows)) == 600  # the next pass starts anew
    assert source._copy.ready


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 8, 13])
def test_the_compiled_way_to_rows_copies_the_same_numbers(dtype, width):
    rng = np.random.default_rng(width)
    X = rng.standard_normal((1000, width)).astype(dtype)
    X[3, 0], X[4, 0] = np.nan, -0.0
    columns = Columns([X[:, j].copy() for j in range(width)], 1000, np.dtype(dtype))
    plain, compiled = (np.concatenate([*decoded._tiles(columns, way)]) for way in (False, True))
    assert plain.tobytes() == compiled.tobytes() == X.tobytes()


def test_files_without_rows_are_kept_as_a_block_without_rows(folder, tmp_path):
    whole = pd.read_parquet(folder / "part-0.parquet")
    whole[:0].to_parquet(tmp_path / "none.parquet")
    source = blocks.from_parquet(tmp_path, "y")
    source.expect_passes()
    for _ in range(3):
        (block,) = source.read()
        assert block.X[:].shape == (0, 3) and len(block.y) == 0
    with pytest.raises(ValueError, match="has no rows; a ranking needs rows of two classes"):
        fit(tmp_path)


def test_columns_of_other_types_take_the_plain_way():
    whole, gaps = np.arange(10), np.arange(20.0)[::2]
    assert ColumnAddresses.of([whole.astype(float), whole], np.dtype(float)) is None
    assert ColumnAddresses.of([gaps], np.dtype(float)) is None
    assert ColumnAddresses.of([], np.dtype(float)) is None
    columns = Columns([whole, gaps], 10, np.dtype(float))
    (tile,) = decoded._tiles(columns, True)
    assert np.array_equal(tile, np.column_stack([whole, gaps]))


def test_addresses_are_never_read_beyond_the_columns():
    found = ColumnAddresses.of([np.arange(5.0)] * 8, np.dtype(float))
    for first, room in ((3, np.empty((3, 8))), (0, np.empty((3, 9))), (0, np.empty((8, 3)).T)):
        with pytest.raises(ValueError, match=r"rows|room"):
            found.fill_rows(first, room)
    with pytest.raises(ValueError, match="room"):
        found.fill_rows(0, np.empty((3, 8), dtype=np.float32))
    with pytest.raises(ValueError, match="rows"):
        found.fill_rows(-1, np.empty((3, 8)))


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


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_rows_that_are_not_copied_are_the_same_by_the_kernel_and_by_numpy(kind, monkeypatch):
    rng = np.random.default_rng(0)
    whole = (100 * rng.standard_normal((50, 11))).astype(kind)
    X = Columns(list(np.asfortranarray(whole).T), 50, np.dtype(kind))

    def read(size):
        (block,) = decoded.in_rows((one for one in [parquet.Block(0, X)]), size)
        assert block.X.flags.c_contiguous
        return block.X

    by_numpy = read(decoded._COMPILED_FROM - 1)
    made = Counter()
    fill = ColumnAddresses.fill_rows

    def counted(self, first, room):
        made["kernel"] += 1
        fill(self, first, room)

    monkeypatch.setattr(ColumnAddresses, "fill_rows", counted)
    np.testing.assert_array_equal(read(decoded._COMPILED_FROM), by_numpy)
    np.testing.assert_array_equal(by_numpy, whole)
    assert made["kernel"] == (kind is not np.int64)  # whole numbers are NumPy's matter
