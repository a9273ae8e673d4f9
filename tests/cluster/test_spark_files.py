"""Plain Parquet files behind a Spark frame: the rows that Spark reads, in the same partitions."""

from pathlib import Path

import numpy as np
import pytest

from toprank import PNormPush, blocks
from toprank.blocks.spark_files import FilePiece, SpillFiles, find_pieces
from toprank.blocks.spill import FilesUnread, Spill, open_spilled, spill_error

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyspark", reason="needs pip install 'toprank[spark]'")

NAMES = ["a", "b.c", "d`e"]


def table(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.where(X[:, 0] + rng.logistic(size=n) > 1, "yes", "no")
    columns = dict(zip(NAMES, X.T, strict=True))
    columns["b.c"] = pa.array(columns["b.c"], mask=rng.random(n) < 0.1)
    return pa.table({**columns, "y": y, "w": rng.integers(0, 3, n), "unused": np.arange(n)})


def number(*partitions):
    return iter([pa.RecordBatch.from_pydict({"id": list(partitions)})])


def whole(path):
    size = path.stat().st_size
    return FilePiece(str(path), size, 0, size)


def columns_of(kinds="float"):
    return [*((name, kinds) for name in NAMES), ("y", "string"), ("w", "bigint")]


def spill_of(tmp_path):
    return Spill(NAMES, "y", "w", str(tmp_path), "toprank-test")


@pytest.mark.parametrize("cut", [1, 4, 300, 10_000])
def test_each_row_group_belongs_to_one_piece_of_a_file(tmp_path, cut):
    pq.write_table(table(), tmp_path / "rows.parquet", row_group_size=100)
    size = (tmp_path / "rows.parquet").stat().st_size
    starts = range(0, size, max(1, size // cut))
    pieces = [FilePiece(str(tmp_path / "rows.parquet"), size, s, starts.step) for s in starts]
    metadata = pq.read_metadata(tmp_path / "rows.parquet")
    assert [group for piece in pieces for group in piece.groups(metadata)] == list(range(9))


def test_rows_of_files_are_those_of_the_tables(tmp_path):
    parts = [table(seed=1), table(500, seed=2)]
    for j, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{j}.parquet", row_group_size=100)
    task = SpillFiles(
        spill_of(tmp_path), [[whole(tmp_path / f"{j}.parquet") for j in (0, 1)]], columns_of()
    )
    (entry,) = task(number(0))
    found = entry.to_pydict()
    assert found["error"] == [None]
    block = open_spilled(0, found["path"][0], found["files"][0])
    rows = pa.concat_tables(parts).to_pandas()
    assert block.X.dtype == np.float32
    np.testing.assert_array_equal(block.X, rows[NAMES].to_numpy(np.float32))
    np.testing.assert_array_equal(block.y, rows["y"])
    np.testing.assert_array_equal(block.weight, rows["w"])


@pytest.mark.parametrize("why", ["type", "missing", "twice", "changed", "gone", "no file"])
def test_files_that_spark_may_read_otherwise_are_left_to_it(tmp_path, why):
    path, kinds, rows = tmp_path / "rows.parquet", "float", table()
    if why == "type":
        kinds = "double"
    if why == "missing":
        rows = rows.drop(["a"])
    if why == "twice":
        rows = rows.append_column("a", rows["a"])
    pq.write_table(rows, path)
    piece = whole(path)
    if why == "changed":
        pq.write_table(table(800), path)
    if why == "gone":
        path.unlink()
    if why == "no file":
        path.write_bytes(b"x" * piece.size)
    (entry,) = SpillFiles(spill_of(tmp_path), [[piece]], columns_of(kinds))(number(0))
    error = spill_error(entry.to_pydict()["error"][0])
    assert isinstance(error, FilesUnread) and str(path) in str(error)
    assert [one for one in tmp_path.iterdir() if one.is_dir()] == []


def test_a_damaged_page_is_an_error_and_not_left_to_spark(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(
        table(), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    held = bytearray(path.read_bytes())
    held[200] ^= 0x40
    path.write_bytes(held)
    (entry,) = SpillFiles(spill_of(tmp_path), [[whole(path)]], columns_of())(number(0))
    error = spill_error(entry.to_pydict()["error"][0])
    assert isinstance(error, ValueError) and "may be damaged" in str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("a place%20")
    for j in range(3):
        pq.write_table(table(seed=j), place / f"part {j}.parquet", row_group_size=200)
    return place


def rows_of(source):
    class Rows:
        def local(self, block, state):
            return [(block.index, block.X.tobytes(), block.y.tolist(), block.weight.tolist())]

        def merge(self, left, right):
            return left + right

    return source.map_reduce(Rows(), None)


@pytest.mark.more  # as all that starts Spark
def test_python_reads_the_rows_and_partitions_that_spark_reads(spark, folder, monkeypatch):
    frame = spark.read.parquet(str(folder))
    settings = {"features": NAMES, "target": "y", "weight": "w"}
    with blocks.from_spark(frame, **settings) as source:
        assert source._reads_files
        direct = rows_of(source)
        manifest = source._manifest.collect()
    assert {entry["error"] for entry in manifest} == {None}
    monkeypatch.setattr("toprank.blocks.spark.find_pieces", lambda rows: None)
    with blocks.from_spark(frame, **settings) as source:
        assert rows_of(source) == direct
    assert sum(len(y) for _, _, y, _ in direct) == 2700


@pytest.mark.more
def test_frames_that_are_more_than_files_are_left_to_spark(spark, folder, tmp_path):
    frame = spark.read.parquet(str(folder)).select("a", "w", "unused")
    assert find_pieces(frame) is not None
    pieces = [piece for one in find_pieces(frame) for piece in one]
    assert {Path(piece.path).name for piece in pieces} == {f"part {j}.parquet" for j in range(3)}
    frame.limit(50).write.partitionBy("w").parquet(str(tmp_path / "by_w"))
    by_folder = spark.read.parquet(str(tmp_path / "by_w"))
    assert find_pieces(by_folder.select("a")) is not None
    others = {
        "a filter": frame.filter("a > 0"),
        "a sum": frame.select((frame["a"] + 1).alias("a")),
        "another name": frame.withColumnRenamed("a", "z"),
        "a limit": frame.limit(10),
        "a sample": frame.sample(0.5, seed=0),
        "a shuffle": frame.repartition(2),
        "a union": frame.union(frame),
        "a range": spark.range(10),
        "a column of folders": by_folder.select("a", "w"),
        "another type": frame.selectExpr("array(a) as a"),
    }
    assert {name: find_pieces(one) for name, one in others.items()} == dict.fromkeys(others)
    frame.cache()
    assert find_pieces(frame.select("a")) is None
    frame.unpersist()


@pytest.mark.more
def test_spark_reads_files_whose_types_differ_from_its_own(spark, tmp_path):
    rows = table().to_pandas().assign(a=np.arange(900, dtype=np.uint8))
    rows["b.c"] = 0.5
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path))  # a smallint there, unsigned in the file
    assert find_pieces(frame.select("a")) is not None
    with blocks.from_spark(frame, features=NAMES, target="y") as source:
        assert not source._reads_files
        fitted = PNormPush(p=2).fit_blocks(source)
        scores = fitted.score_blocks(source).select("unused", "score").toPandas()
    in_memory = PNormPush(p=2).fit(rows[NAMES].to_numpy(), rows["y"])
    np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-6, atol=1e-9)
    scores = scores.sort_values("unused")["score"]
    np.testing.assert_allclose(scores, fitted.decision_function(rows[NAMES]), rtol=1e-12)
