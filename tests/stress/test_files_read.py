"""A file that is cut short, changes or vanishes while it is read is an error, not an answer."""

import bz2
import gzip
import io
import os
import struct
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from toprank import PNormPush
from toprank.blocks import from_memmap

pa = pytest.importorskip("pyarrow", reason="tables are read with Arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="tables are read with Arrow")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from toprank.blocks import from_parquet  # noqa: E402
from toprank.cli.io.tables import open_table  # noqa: E402
from toprank.cli.terminal import Failure  # noqa: E402

N = 4_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)).round(4)
Y = (X[:, 0] + RNG.normal(size=N) > 1).astype(int)
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})


def csv_text():
    return ("a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(X, Y, strict=True))).encode()


def parquet_bytes():
    buffer = io.BytesIO()
    parquet.write_table(TABLE, buffer, row_group_size=500)
    return buffer.getvalue()


def feather_bytes():
    feather = pytest.importorskip("pyarrow.feather")
    buffer = io.BytesIO()
    feather.write_feather(TABLE, buffer)
    return buffer.getvalue()


FILES = {
    "t.csv.gz": lambda: gzip.compress(csv_text(), mtime=0),
    "t.csv.bz2": lambda: bz2.compress(csv_text()),
    "t.parquet": parquet_bytes,
    "t.feather": feather_bytes,
}


def read(path):
    with open_table(path) as source:
        whole = source.read().num_rows
    with open_table(path) as source:
        parts = sum(chunk.rows.num_rows for chunk in source.chunks(["a", "y"], {}))
    return whole, parts


@pytest.mark.parametrize("name", FILES)
def test_a_table_cut_short_anywhere_is_refused_with_its_name(tmp_path, name, record_property):
    data = FILES[name]()
    path = tmp_path / name
    path.write_bytes(data)
    assert read(path) == (N, N)
    cuts = [*range(1, 12), *RNG.integers(12, len(data), 25).tolist(), len(data) - 1, len(data) - 8]
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(Failure, match=name):
            read(path)
    record_property("cases", len(cuts))
    assert os.listdir(tmp_path) == [name]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FILES)
def test_a_table_with_a_flipped_bit_gives_all_its_rows_or_an_error_in_words(
    tmp_path, name, record_property
):
    data = FILES[name]()
    path = tmp_path / name
    for place in RNG.integers(0, len(data), 40).tolist():
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(RNG.integers(8))
        path.write_bytes(damaged)
        try:
            assert read(path) == (N, N)
        except Failure as failure:
            assert name in str(failure)
    record_property("cases", 40)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("change", ["grown", "shortened", "replaced", "touched"])
def test_a_table_that_changes_while_it_is_read_is_refused(tmp_path, name, change):
    data = csv_text() if name == "t.csv" else parquet_bytes()
    path = tmp_path / name
    path.write_bytes(data)

    def spoil():
        if change == "grown":
            with path.open("ab") as file:
                file.write(b"1,2,0\n1,2")
        elif change == "shortened":
            os.truncate(path, len(data) // 2)
        elif change == "replaced":
            path.unlink()
            path.write_bytes(data)
        os.utime(path, ns=(1, 1))

    with open_table(path) as source:
        chunks = source.chunks(["a", "y"], {})
        next(chunks)
        spoil()
        with pytest.raises(Failure, match=name):
            list(chunks)
    path.write_bytes(data)
    with open_table(path) as source:
        assert source.read().num_rows == N
        spoil()
        with pytest.raises(Failure, match=name):
            source.read()


def test_a_table_that_is_removed_while_it_is_read_is_read_to_its_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_text())
    with open_table(path) as source:
        chunks = source.chunks(["a", "y"], {})
        rows = next(chunks).rows.num_rows
        path.unlink()
        assert rows + sum(chunk.rows.num_rows for chunk in chunks) == N
        with pytest.raises(Failure, match=r"t\.csv.*could not be read"):
            source.read()


@pytest.mark.parametrize("rows", [60, N])
def test_a_full_temporary_folder_is_named_with_the_remedy(tmp_path, monkeypatch, rows):
    resource = pytest.importorskip("resource", reason="files are limited on POSIX only")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=lambda: _feed(pipe, csv_text()[: 18 * rows]), daemon=True)
    feeder.start()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(Failure, match=r"free some space there, or .*TMPDIR"), open_table(pipe):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    feeder.join(10)
    assert os.listdir(tmp_path / "tmp") == [], "the copy is removed"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="files without names need Linux")
@pytest.mark.parametrize("data", [csv_text, parquet_bytes, FILES["t.csv.gz"], feather_bytes])
def test_a_copy_of_a_pipe_has_no_name_that_a_kill_could_leave(tmp_path, monkeypatch, data):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=lambda: _feed(pipe, data()), daemon=True)
    feeder.start()
    with open_table(pipe) as source:
        assert os.listdir(tmp_path / "tmp") == []
        assert source.read().num_rows == source.count_rows() == N
    feeder.join(10)


def _feed(pipe, data):
    try:
        with pipe.open("wb") as file:
            file.write(data)
    except BrokenPipeError:
        pass


# ---- arrays and blocks -----------------------------------------------------------------------


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return tmp_path / "X.npy"


@pytest.mark.parametrize("change", ["shortened", "grown", "overwritten"])
def test_a_mapped_file_that_changes_is_an_error_and_not_the_end_of_the_process(mapped, change):
    source = from_memmap(mapped, Y, block_rows=500)
    PNormPush(p=2).fit_blocks(source)
    data = mapped.read_bytes()
    if change == "overwritten":
        mapped.write_bytes(data[:200] + b"\0" * (len(data) - 200))
        os.utime(mapped, ns=(1, 1))
    else:
        os.truncate(mapped, 300 if change == "shortened" else len(data) + 8)
    with pytest.raises(RuntimeError, match=r"X\.npy has changed since the source was made"):
        PNormPush(p=2).fit_blocks(source)


def test_a_mapped_file_of_labels_that_changes_is_an_error(mapped):
    source = from_memmap(mapped, mapped.with_name("y.npy"), block_rows=500)
    os.truncate(mapped.with_name("y.npy"), 200)
    with pytest.raises(RuntimeError, match=r"y\.npy has changed"):
        PNormPush(p=2).fit_blocks(source)


def test_a_mapped_file_that_was_removed_is_still_there_for_who_mapped_it(mapped):
    source = from_memmap(mapped, Y, block_rows=500)
    expected = PNormPush(p=2).fit_blocks(source).coef_
    mapped.unlink()
    assert np.array_equal(PNormPush(p=2).fit_blocks(source).coef_, expected)


def header(text):
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode()


def shape_of(*shape, kind="'<f8'"):
    return header(f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n")


BAD_ARRAYS = {
    "empty": b"",
    "magic": b"\x93NUMPY",
    "version": b"\x93NUMPY\x09\x09\0\0\0\0",
    "no header": header("")[:11],
    "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31) + b" " * 99,
    "deep header": header("(" * 9_000),
    "calling header": header("__import__('os').abort()"),
    "huge": shape_of(10**12, 10**6),
    "overflowing": shape_of(2**62 + 1, 4) + b"0" * 80,
    "negative": shape_of(-5, 2) + b"0" * 80,
    "objects": shape_of(1, 1, kind="'|O'") + b"\x80\x04]\x94.",
    "structs": shape_of(2, 2, kind="[('a', '<f8')]") + b"0" * 80,
    "words": shape_of(2, 2, kind="'<U4'") + b"0" * 80,
    "cube": shape_of(2, 2, 2) + b"0" * 80,
    "zip": b"PK\x03\x04" + b"\0" * 40,
    "pickle": b"\x80\x04]\x94.",
}


@pytest.mark.parametrize("what", BAD_ARRAYS)
def test_a_file_that_is_no_array_is_refused_in_words(tmp_path, what):
    path = tmp_path / "X.npy"
    path.write_bytes(BAD_ARRAYS[what])
    with pytest.raises(ValueError, match=r"whole \.npy file of numbers|expected a matrix") as told:
        from_memmap(path)
    assert "numpy.save" in str(told.value) or "one row per item" in str(told.value)


def test_an_array_cut_short_anywhere_is_refused(tmp_path, record_property):
    buffer = io.BytesIO()
    np.save(buffer, X)
    data, path = buffer.getvalue(), tmp_path / "X.npy"
    cuts = [*range(0, 130, 3), len(data) // 2, len(data) - 1]
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match="not a whole"):
            from_memmap(path)
    record_property("cases", len(cuts))


def test_a_missing_array_is_told_from_a_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        from_memmap(tmp_path / "none.npy")


def test_blocks_of_parquet_cut_short_are_refused_with_the_file(tmp_path, record_property):
    data, path = parquet_bytes(), tmp_path / "t.parquet"
    cuts = [0, 4, 8, *RNG.integers(8, len(data), 20).tolist(), len(data) - 1]
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"t\.parquet cannot be read as Parquet"):
            from_parquet(path, target="y")
    record_property("cases", len(cuts))


def test_parquet_that_is_cut_during_a_fit_stops_it(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet_bytes())
    source = from_parquet(path, target="y", block_rows=500)
    blocks = source.read()
    next(blocks)
    os.truncate(path, 3_000)
    with pytest.raises((ValueError, RuntimeError), match=r"t\.parquet"):
        list(blocks)
    with pytest.raises(RuntimeError, match=r"t\.parquet has changed"):
        PNormPush(p=2).fit_blocks(source)


def test_scores_are_not_written_over_half_read_rows(tmp_path, mapped):
    ranker = PNormPush(p=2).fit(X, Y)
    source = from_memmap(mapped, block_rows=500)
    target = Path(tmp_path, "scores.npy")
    target.write_bytes(b"old")
    os.truncate(mapped, 300)
    with pytest.raises(RuntimeError, match="has changed"):
        ranker.score_blocks(source, target)
    assert target.read_bytes() == b"old" and not list(tmp_path.glob(".toprank-*"))
