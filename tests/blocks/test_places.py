"""A table is read wherever its files lie: folders of keys, stores, datasets."""

import os
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest

from toprank import PNormPush
from toprank.blocks import from_parquet

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 2))
Y = (X[:, 0] + RNG.logistic(size=300) > 0.5).astype(np.int64)
DAY = np.repeat([3, 10, 2], 100)


def write(folder, names=("day=3", "day=10", "day=2"), **options):
    for number, name in enumerate(names):
        rows = slice(100 * number, 100 * number + 100)
        (folder / name).mkdir(parents=True)
        part = pa.table({"a": X[rows, 0], "b": X[rows, 1], "y": Y[rows]})
        pq.write_table(part, folder / name / "part.parquet", **options)
    return folder


def read(source):
    blocks = list(source.read())
    return np.concatenate([b.X[:] for b in blocks]), np.concatenate([b.y for b in blocks])


class TestFoldersOfKeys:
    def test_are_columns(self, tmp_path):
        source = from_parquet(write(tmp_path), target="y")
        assert source.feature_names.tolist() == ["a", "b", "day"]
        features, labels = read(source)
        order = np.argsort([f"day={day}" for day in DAY], kind="stable")
        np.testing.assert_array_equal(features, np.column_stack([X, DAY])[order])
        np.testing.assert_array_equal(labels, Y[order])

    def test_give_the_model_of_the_table_in_memory(self, tmp_path):
        ranker = PNormPush(tol=1e-12).fit_blocks(from_parquet(write(tmp_path), target="y"))
        whole = PNormPush(tol=1e-12).fit(np.column_stack([X, DAY]), Y)
        np.testing.assert_allclose(ranker.coef_, whole.coef_, atol=1e-9)

    def test_of_a_pattern_are_columns_too(self, tmp_path):
        write(tmp_path)
        source = from_parquet(str(tmp_path / "day=*" / "*.parquet"), target="y")
        assert source.feature_names.tolist() == ["a", "b", "day"]

    def test_may_be_left_out_or_hold_the_labels(self, tmp_path):
        write(tmp_path, ("won=yes", "won=no", "won=no/again=1"))
        shutil.move(tmp_path / "won=no/again=1/part.parquet", tmp_path / "won=no/more.parquet")
        source = from_parquet(tmp_path, target="won", columns=["b", "a"])
        features, labels = read(source)
        assert features.shape == (300, 2)
        assert labels.tolist() == ["no"] * 200 + ["yes"] * 100

    def test_of_words_are_refused_as_features(self, tmp_path):
        with pytest.raises(ValueError, match=r"Column 'land' of .* is text .*leave the column out"):
            from_parquet(write(tmp_path, ("land=no", "land=se", "land=dk")), target="y")

    @pytest.mark.parametrize("other", ["tag=3", "plain", "day=__HIVE_DEFAULT_PARTITION__"])
    def test_that_differ_are_refused(self, tmp_path, other):
        with pytest.raises(ValueError, match=r"give its rows a value of '(day|tag)'.* do not"):
            from_parquet(write(tmp_path, ("day=1", "day=2", other)), target="y")

    def test_that_some_files_alone_have_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match=r"day=2/hour=5.* a value of 'hour', those of .*day=1"):
            from_parquet(write(tmp_path, ("day=1", "day=2/hour=5", "day=3")), target="y")

    def test_a_column_of_the_file_comes_before_that_of_the_folder(self, tmp_path):
        (tmp_path / "a=7").mkdir()
        pq.write_table(pa.table({"a": X[:, 0], "y": Y}), tmp_path / "a=7" / "p.parquet")
        np.testing.assert_array_equal(read(from_parquet(tmp_path, target="y"))[0][:, 0], X[:, 0])

    def test_are_kept_beside_scores(self, tmp_path):
        source = from_parquet(write(tmp_path / "in"), target="y")
        ranker = PNormPush().fit_blocks(source)
        to = ranker.score_blocks(source, to=tmp_path / "scores.parquet", keep=["day", "y"])
        kept = pq.read_table(to)
        assert kept.column_names == ["day", "y", "score"]
        assert sorted(set(kept["day"].to_pylist())) == [2, 3, 10]


class TestDatasets:
    def test_are_read_file_by_file(self, tmp_path):
        dataset = ds.dataset(write(tmp_path), partitioning="hive")
        source = from_parquet(dataset, target="y")
        assert source.n_rows == 300
        assert source.feature_names.tolist() == ["a", "b", "day"]

    def test_with_a_filter_are_refused(self, tmp_path):
        dataset = ds.dataset(write(tmp_path)).filter(ds.field("a") > 0)
        with pytest.raises(ValueError, match="has a filter"):
            from_parquet(dataset, target="y")

    def test_of_other_rows_are_refused(self):
        with pytest.raises(TypeError, match=r"rows in memory.*from_arrays"):
            from_parquet(ds.dataset(pa.table({"a": [1.0]})), target="y")


def test_an_open_file_is_refused(tmp_path):
    write(tmp_path)
    with (
        open(tmp_path / "day=3" / "part.parquet", "rb") as file,
        pytest.raises(TypeError, match=r"path is a BufferedReader.*give its path"),
    ):
        from_parquet(file, target="y")


class TestStores:
    @pytest.fixture
    def memory(self, tmp_path):
        fsspec = pytest.importorskip("fsspec")
        store = fsspec.filesystem("memory")
        store.put(os.fspath(write(tmp_path)), "/bucket/table", recursive=True)
        yield store
        store.rm("/bucket", recursive=True)

    def test_are_read_by_their_address(self, memory, tmp_path):
        wanted = read(from_parquet(tmp_path, target="y"))
        for address in (
            "memory://bucket/table",
            "memory://bucket/table/*/*.parquet",
            "memory://bucket/**/part.parquet",
            f"file://{tmp_path}",
        ):
            source = from_parquet(address, target="y")
            assert source.feature_names.tolist() == ["a", "b", "day"], address
            for part, whole in zip(read(source), wanted, strict=True):
                np.testing.assert_array_equal(part, whole)

    def test_one_file_may_be_named(self, memory):
        source = from_parquet("memory://bucket/table/day=3/part.parquet", target="y")
        assert source.n_rows == 100

    def test_a_file_that_changes_or_vanishes_is_named(self, memory, tmp_path):
        source = from_parquet("memory://bucket/table", target="y")
        name = "/bucket/table/day=3/part.parquet"
        memory.pipe(name, memory.cat(name) + b" ")
        with pytest.raises(RuntimeError, match=r"memory://bucket/table/day=3/part.* has changed"):
            read(source)
        memory.rm(name)
        with pytest.raises(FileNotFoundError, match=r"memory://bucket/table/day=3/part.* is gone"):
            read(source)

    def test_an_address_without_files_is_named_as_it_was_written(self):
        pytest.importorskip("fsspec")
        with pytest.raises(FileNotFoundError, match="No Parquet file at memory://nothing/here:"):
            from_parquet("memory://nothing/here", target="y")

    def test_of_pyarrow_are_read_without_fsspec(self, tmp_path, monkeypatch):
        store = pa_fs.SubTreeFileSystem(os.fspath(write(tmp_path)), pa_fs.LocalFileSystem())
        known = SimpleNamespace(from_uri=lambda address: (store, ""))
        fake = SimpleNamespace(**{**vars(pa_fs), "FileSystem": known})
        monkeypatch.setitem(sys.modules, "pyarrow.fs", fake)
        monkeypatch.setitem(sys.modules, "fsspec.core", None)
        source = from_parquet("s3://bucket", target="y")
        np.testing.assert_array_equal(read(source)[0], read(from_parquet(tmp_path, target="y"))[0])

        def refuse(address):
            raise pa.ArrowNotImplementedError("this build has no S3")

        known.from_uri = refuse
        with pytest.raises(ImportError, match=r"addresses of s3:// are read by fsspec; install"):
            from_parquet("s3://bucket", target="y")

    def test_an_unknown_store_is_refused(self):
        pytest.importorskip("fsspec")
        with pytest.raises(ValueError, match=r"floppy://a cannot be opened: .*floppy"):
            from_parquet("floppy://a", target="y")


class TestWhatCannotBeRead:
    def test_bytes_changed_inside_a_page_are_seen_where_it_has_a_checksum(self, tmp_path):
        place = write(tmp_path, write_page_checksum=True, compression="none", use_dictionary=False)
        source = from_parquet(place, target="y")
        path = place / "day=3" / "part.parquet"
        whole, status = bytearray(path.read_bytes()), path.stat()
        at = whole.find(X[50, 0].tobytes())
        assert at > 0
        whole[at] ^= 1
        path.write_bytes(whole)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(ValueError, match=r"day=3.part\.parquet cannot be read.*damaged"):
            read(source)

    def test_too_little_memory_is_not_a_damaged_file(self, tmp_path, monkeypatch):
        source = from_parquet(write(tmp_path), target="y")

        def no_memory(*args, **kwargs):
            raise pa.ArrowMemoryError("malloc of size 640000000 failed")

        monkeypatch.setattr(pq.ParquetFile, "iter_batches", no_memory)
        with pytest.raises(MemoryError, match=r"not enough memory.*part\.parquet.*block_rows"):
            read(source)
