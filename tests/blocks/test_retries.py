"""Object stores that fail now and then, are slow, or fail for good."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from toprank import PNormPush, blocks
from toprank.blocks import StoreError, retries
from toprank.blocks.retries import RetriedFile, try_again

RNG = np.random.default_rng(5)
X = RNG.normal(size=(900, 2))
Y = (X[:, 0] + RNG.logistic(size=900) > 0.5).astype(np.int64)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)


@pytest.fixture
def store(monkeypatch):
    """A store in memory whose reads fail as often as `failures` says, or for good."""
    fsspec = pytest.importorskip("fsspec")
    memory = pytest.importorskip("fsspec.implementations.memory")

    class Flaky(memory.MemoryFileSystem):
        protocol = "flaky"
        store: ClassVar = {}
        pseudo_dirs: ClassVar = [""]
        reads, every, broken, wait = 0, 0, "", 0.0

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.removeprefix("flaky://").strip("/")

        def _open(self, path, mode="rb", **options):
            file = super()._open(path, mode, **options)
            if mode != "rb" or "read" in vars(file):  # the same one is opened again
                return file
            whole = file.read

            def read(*size):
                kind = type(self)
                kind.reads += 1
                time.sleep(kind.wait)
                if kind.broken and kind.broken in path:
                    raise ConnectionResetError(104, "reset by peer")
                if kind.every and kind.reads % kind.every == 0:
                    raise TimeoutError("the store took too long")
                return whole(*size)

            file.read = read
            return file

    fsspec.register_implementation("flaky", Flaky, clobber=True)
    files = Flaky()
    for part in range(3):
        rows = slice(300 * part, 300 * part + 300)
        table = pa.table({"a": X[rows, 0], "b": X[rows, 1], "y": Y[rows]})
        with files.open(f"/rows/{part}.parquet", "wb") as file:
            pq.write_table(table, file, row_group_size=100)
    yield Flaky
    Flaky.store.clear()


def test_a_store_that_fails_now_and_then_gives_the_model_of_memory(store):
    store.every, store.wait = 3, 0.0005
    source = blocks.from_parquet("flaky://rows", target="y")
    ranker = PNormPush(tol=1e-10).fit_blocks(source)
    assert store.reads > 30
    np.testing.assert_allclose(ranker.coef_, PNormPush(tol=1e-10).fit(X, Y).coef_, atol=1e-9)


def test_a_read_that_fails_for_good_names_the_object_and_leaves_nothing(store, tmp_path):
    source = blocks.from_parquet("flaky://rows", target="y")
    ranker = PNormPush().fit_blocks(source)
    store.broken = "2.parquet"
    with pytest.raises(StoreError, match=r"rows/2\.parquet could not be read: 5 tries"):
        PNormPush().fit_blocks(source)
    with pytest.raises(StoreError, match=r"rows/2\.parquet.*ConnectionResetError"):
        ranker.score_blocks(source, to=tmp_path / "scores.parquet")
    assert os.listdir(tmp_path) == []
    with pytest.raises(StoreError, match=r"rows/2\.parquet"):
        ranker.score_blocks(source, to=tmp_path / "scores")
    written = sorted(os.listdir(tmp_path / "scores"))
    assert written == ["0.parquet", "1.parquet"]  # whole ones
    assert all(pq.read_metadata(tmp_path / "scores" / name).num_rows == 300 for name in written)


def test_a_fit_that_lost_its_store_goes_on_where_it_stood(store, tmp_path):
    whole = PNormPush().fit_blocks(blocks.from_parquet("flaky://rows", target="y"))
    # with a copy of the rows, the third pass would do without the store
    source = blocks.from_parquet("flaky://rows", target="y", cache_dir=False)
    asked, fails_at, seen = source.map_reduce, 3, []

    def counts(sweep, state):
        seen.append(sweep)
        store.broken = "1.parquet" if len(seen) == fails_at else ""
        return asked(sweep, state)

    source.map_reduce = counts
    with pytest.raises(StoreError):
        PNormPush().fit_blocks(source, checkpoint=tmp_path)
    store.broken = ""
    source = blocks.from_parquet("flaky://rows", target="y")
    again = PNormPush().fit_blocks(source, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_an_object_that_is_not_there_is_not_asked_for_again():
    asked = []

    def gone():
        asked.append(1)
        raise FileNotFoundError("s3://b/x")

    with pytest.raises(FileNotFoundError):
        try_again("s3://b/x", gone)
    assert len(asked) == 1


def test_answers_that_come_short_are_asked_for_again(tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(100)))
    local, cuts = pafs.LocalFileSystem(), [10, 0]

    class Short:
        def __init__(self):
            self.file = local.open_input_file(str(tmp_path / "file"))

        def __getattr__(self, name):
            return getattr(self.file, name)

        def read(self, size):
            return self.file.read(cuts.pop() if cuts else size)

    with RetriedFile("x://file", Short) as file:
        assert file.readable() and file.seekable() and file.readall() == bytes(range(100))
        assert file.seek(0) == 0
        assert file.read(30) == bytes(range(30))
        assert file.seek(-5, os.SEEK_END) == 95
        assert file.read() == bytes(range(95, 100))
        assert file.read(4) == b"" and file.tell() == 100


class _Unreliable(SimpleHTTPRequestHandler):
    """Serves ranges of files, and fails one request in three."""

    asked = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        type(self).asked += 1
        if self.asked % 3 == 0:
            self.send_error(503, "slow down")
            return
        with open(self.translate_path(self.path), "rb") as file:
            data = file.read()
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


def test_a_web_server_that_refuses_now_and_then_is_read(tmp_path):
    """By a file system of pyarrow that asks for ranges, as those of stores do."""
    import urllib.request

    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Unreliable, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/rows.parquet"
    length = (tmp_path / "rows.parquet").stat().st_size

    class Ranges:
        place = 0

        def size(self):
            return length

        def seek(self, place):
            self.place = place

        def read(self, size):
            ask = urllib.request.Request(
                address, headers={"Range": f"bytes={self.place}-{self.place + size - 1}"}
            )
            with urllib.request.urlopen(ask, timeout=10) as answer:  # HTTPError is an OSError
                return answer.read()

        def close(self):
            pass

    try:
        with RetriedFile(address, Ranges) as file:
            parts = pq.ParquetFile(file, pre_buffer=False)
            groups = [parts.read_row_group(number) for number in range(3)]
        assert pa.concat_tables(groups).equals(table)
        assert _Unreliable.asked > 6
    finally:
        server.shutdown()
        server.server_close()
