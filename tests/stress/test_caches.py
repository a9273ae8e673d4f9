"""A cache or a spilled block that is damaged, replaced or gone is made again or refused.

Every file is cut, grown, and changed at bytes drawn at random; whole files take the place of
others. What is read is then what was written, or an error that says what to do.
"""

import gzip
import importlib.util
import itertools
import os
import shutil
import time
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from toprank.blocks import spill
from toprank.datasets import fetch, load_ionosphere

ROOT = Path(__file__).resolve().parents[2]
#: Whether scikit-learn fetches every file again that it finds damaged.
REPAIRED = parse_version(sklearn.__version__) >= parse_version("1.9")
NEGATIVE, POSITIVE = "tested_negative", "tested_positive"


def mutations(data, rng, flips):
    """Yield a file with a bit changed, at its ends and anywhere, cut short, grown or twice."""
    for place in [0, 3, len(data) - 1, len(data) - 6, *rng.integers(0, len(data), flips).tolist()]:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        yield bytes(changed)
    yield from (data[:cut] for cut in (0, 1, 9, len(data) // 2, len(data) - 1))
    yield from (data + b"\0" * 8, data + b"x", data + data)


# ---- the cache of OpenML --------------------------------------------------------------------


@pytest.fixture
def openml():
    """The stand-in that tests/datasets has for OpenML, with two data sets of the same columns."""
    place = ROOT / "tests" / "datasets" / "conftest.py"
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("om", place))
    module.__spec__.loader.exec_module(module)
    server = module.OpenML()
    urllib.request.install_opener(urllib.request.build_opener(server))
    for data_id, scale, names in ((37, 7, ("preg", "mass")), (38, 9, ("mass", "preg"))):
        labels = [NEGATIVE] * 500 + [POSITIVE] * 268
        rows = [(i % 500, i / scale, label) for i, label in enumerate(labels)]
        columns = {names[0]: "numeric", names[1]: "numeric", "class": [NEGATIVE, POSITIVE]}
        server.add(data_id, columns, rows, target="class")
    yield server
    urllib.request.install_opener(None)


class Cache:
    """A cache of both data sets, and what the first should read as."""

    def __init__(self, home, server, monkeypatch):
        pytest.importorskip("pandas", reason="data sets of OpenML are read by pandas")
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        self.home, self.server = home, server
        self.expected = fetch("pima", data_home=home)
        fetch(data_id=38, positive=POSITIVE, data_home=home)
        self.whole = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        self.files = [path for path in self.whole if "37" in str(path.relative_to(home))]
        assert len(self.files) == 4 and len(self.whole) == 8

    def restore(self):
        for path, data in self.whole.items():
            if path.is_dir():
                shutil.rmtree(path)
            path.write_bytes(data)

    def read(self, online):
        """What came of it: the data set, or the error."""
        self.server.online = online
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Invalid cache", RuntimeWarning)
            warnings.filterwarnings("ignore", "A network error", UserWarning)
            try:
                return fetch("pima", data_home=self.home)
            except (OSError, ValueError) as error:
                return error

    def check(self, found, where):
        """The data set as it was, or an error that says what to do."""
        if isinstance(found, Exception):
            assert "37" in str(found), where
            assert any(word in str(found) for word in ("Remove", "Check the network")), where
            return
        np.testing.assert_array_equal(found.data, self.expected.data, err_msg=where)
        np.testing.assert_array_equal(found.target, self.expected.target, err_msg=where)
        assert found.feature_names == self.expected.feature_names, where


@pytest.fixture
def cache(tmp_path, openml, monkeypatch):
    return Cache(tmp_path, openml, monkeypatch)


def attack_cache(cache, flips, record_property):
    rng, cases = np.random.default_rng(flips), 0
    for path in cache.files:
        for number, data in enumerate(mutations(cache.whole[path], rng, flips)):
            for online in (True, False):
                cache.restore()
                path.write_bytes(data)
                found, where = cache.read(online), f"{path.name}, {number}, online={online}"
                cache.check(found, where)
                if REPAIRED:
                    refused = isinstance(found, Exception)
                    assert not refused or (not online and "network" in str(found)), where
                cases += 1
    record_property("cases", cases)


@pytest.mark.more
def test_a_damaged_cache_is_fetched_again_or_refused(cache, record_property):
    attack_cache(cache, 2, record_property)


@pytest.mark.slow
def test_a_cache_damaged_anywhere_is_fetched_again_or_refused(cache, record_property):
    attack_cache(cache, 150, record_property)


def test_a_cache_of_other_things_was_an_error_of_python(cache, record_property):
    texts = [b"{}", b"[]", b"null", b"3", b'"x"', b'{"data_set_description": 3}']
    texts += [b'{"data_features": {"feature": [{}]}}', b'{"data_qualities": 3}']
    for path, text in itertools.product(cache.files, texts):
        cache.restore()
        path.write_bytes(gzip.compress(text))
        cache.check(cache.read(online=True), f"{path}: {text}")
    record_property("cases", len(cache.files) * len(texts))


def test_a_cache_that_cannot_be_read_was_blamed_on_the_network(cache, monkeypatch):
    for path in cache.files:
        cache.restore()
        path.unlink()
        path.mkdir()
        found = cache.read(online=True)
        assert "cannot be used" in str(found) and f"Remove {path}" in str(found)
    cache.restore()

    def closed(*_, **__):
        raise PermissionError(13, "Permission denied", str(cache.files[0]))

    monkeypatch.setattr(gzip, "GzipFile", closed)  # the superuser may read everything
    monkeypatch.setattr(Path, "unlink", closed)
    assert "allow it to be read" in str(cache.read(online=True))


def test_a_target_that_is_no_column_was_an_error_of_python(cache):
    with pytest.raises(ValueError, match=r"37 has no column 'size'.*target="):
        fetch(data_id=37, target="size", positive=1, data_home=cache.home)


def test_a_file_of_the_package_that_is_damaged_is_named(tmp_path, monkeypatch):
    import toprank.datasets._bundled as bundled

    data = Path(bundled.__file__).parent.joinpath("data", "ionosphere.csv.gz").read_bytes()
    monkeypatch.setattr(bundled, "files", lambda _: tmp_path)
    (tmp_path / "data").mkdir()
    for broken in (b"", data[:5_000], data[:9_000] + b"\0" + data[9_001:], b"no gzip"):
        (tmp_path / "data" / "ionosphere.csv.gz").write_bytes(broken)
        with pytest.raises(OSError, match=r"ionosphere\.csv\.gz is damaged.*install toprank again"):
            load_ionosphere()


# ---- blocks that Spark's executors spilled ----------------------------------------------------


class Spilled:
    """A partition written by the task of an executor, and read by another."""

    def __init__(self, folder, seed=0, n=60):
        arrow = pytest.importorskip("pyarrow", reason="rows come from Spark as Arrow batches")
        rng = np.random.default_rng(seed)
        self.X, self.weight = rng.normal(size=(n, 3)), rng.integers(1, 4, n).astype(float)
        self.y = np.array(["no", "yes"])[rng.integers(0, 2, n)]
        columns = {name: self.X[:, j] for j, name in enumerate("abc")}
        batch = arrow.RecordBatch.from_pydict(columns | {"y": self.y, "weight": self.weight})
        task = spill.Spill(list("abc"), "y", "weight", str(folder), f"toprank-{seed}")
        self.path, kept = task.write(iter([batch[: n // 2], batch[n // 2 :]]), 0)
        self.files = spill.as_text(kept)
        self.whole = {path: path.read_bytes() for path in Path(self.path).iterdir()}

    def restore(self):
        for path, data in self.whole.items():
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            path.write_bytes(data)

    def check_whole(self):
        block = spill.open_spilled(0, self.path, self.files)
        np.testing.assert_array_equal(block.X, self.X)
        np.testing.assert_array_equal(block.y, self.y)
        np.testing.assert_array_equal(block.weight, self.weight)

    def check_refused(self):
        with pytest.raises(OSError, match=spill.GONE):
            spill.open_spilled(0, self.path, self.files)


@pytest.mark.parametrize("flips", [20, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_spilled_block_that_is_damaged_was_read_as_it_was(tmp_path, flips, record_property):
    block, rng, cases = Spilled(tmp_path), np.random.default_rng(flips), 0
    assert {path.name for path in block.whole} == {"X", "y", "weight"}
    for path, data in block.whole.items():
        for damaged in mutations(data, rng, flips):
            block.restore()
            path.write_bytes(damaged)
            block.check_refused()
            cases += 1
    record_property("cases", cases)
    block.restore()
    block.check_whole()


def test_a_spilled_block_that_changes_between_two_passes_is_noticed(tmp_path, record_property):
    block, other = Spilled(tmp_path), Spilled(tmp_path, seed=1)
    outside = tmp_path / "elsewhere"
    outside.write_bytes(b"")
    changes = [
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 16),
        lambda path: path.write_bytes(other.whole[Path(other.path, path.name)]),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), path.symlink_to(outside)),
    ]
    cases = list(itertools.product(block.whole, changes))
    for path, change in cases:
        block.restore()
        block.check_whole()
        change(path)
        block.check_refused()
    record_property("cases", len(cases))


def test_files_that_may_not_be_read_are_written_again_too(tmp_path, monkeypatch):
    block = Spilled(tmp_path)

    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "memmap", closed)  # the superuser may read everything
    block.check_refused()


def test_a_partition_without_rows_needs_no_bytes(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="rows come from Spark as Arrow batches")
    empty = arrow.RecordBatch.from_pydict({"a": arrow.array([], arrow.float32())})
    for batches, kind in (([], np.float64), ([empty], np.float32)):
        path, kept = spill.Spill(["a"], None, None, str(tmp_path), "toprank-0").write(batches, 0)
        block = spill.open_spilled(3, path, spill.as_text(kept))
        assert (block.X.shape, block.X.dtype, block.y) == ((0, 1), kind, None)
