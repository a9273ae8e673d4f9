"""Parquet files behind a Spark frame: the rows that Spark reads, in the same partitions."""

import datetime
from pathlib import Path

import numpy as np
import pytest

from toprank import PNormPush, blocks
from toprank.blocks.spark_conditions import NotUnderstood, columns_of, keep_rows
from toprank.blocks.spark_files import SpillFiles
from toprank.blocks.spark_plans import FilePiece, FrameFiles, _find_files, find_files
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


def files_of(pieces, kind="float", **others):
    kinds = {**dict.fromkeys(NAMES, kind), "y": "string", "w": "bigint"}
    return FrameFiles([pieces], {name: name for name in kinds}, kinds, **others)


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
    pieces = [whole(tmp_path / f"{j}.parquet") for j in (0, 1)]
    task = SpillFiles(spill_of(tmp_path), files_of(pieces))
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
    (entry,) = SpillFiles(spill_of(tmp_path), files_of([piece], kinds))(number(0))
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
    (entry,) = SpillFiles(spill_of(tmp_path), files_of([whole(path)]))(number(0))
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
    monkeypatch.setattr("toprank.blocks.spark.find_files", lambda rows: None)
    with blocks.from_spark(frame, **settings) as source:
        assert rows_of(source) == direct
    assert sum(len(y) for _, _, y, _ in direct) == 2700


NUMBERS = pa.array([None, float("nan"), float("-inf"), -1.0, -0.0, 0.0, 2.5, float("inf")], "float")
WORDS = pa.array(["a", None, "", "b", "B", "\u00e4", "a ", "zz"])
ROWS = {"x": NUMBERS, "s": WORDS, "t": pa.array([True, False, None] * 2 + [True, None])}


def rank_of(value):
    """Numbers in Spark's order, in which NaN is the largest and equals itself."""
    return np.inf if value != value else np.arctan(value)


def true_in_spark(condition, row):
    """The rules of SQL, for one row: True, False or None."""
    sign = condition[0]
    if sign == "not":
        inner = true_in_spark(condition[1], row)
        return None if inner is None else not inner
    if sign in ("and", "or"):
        decides = sign == "or"
        sides = [true_in_spark(one, row) for one in condition[1:]]
        return decides if decides in sides else None if None in sides else not decides
    value = row[condition[1]]
    if sign == "null":
        return value is None
    if sign == "nan":
        return value is not None and value != value
    if value is None or sign == "true":
        return value
    if sign == "in":
        return value in condition[2]
    other = condition[2]
    if isinstance(value, float):
        value, other = rank_of(value), rank_of(float(other))
    return {
        "=": value == other,
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
    }[sign]


SIMPLE = [
    *((sign, "x", text) for sign in ("=", "<", "<=", ">", ">=") for text in ("0.0", "2.5", "-1.0")),
    *((sign, "x", text) for sign in ("<=", ">") for text in ("Infinity", "-Infinity", "1.0E10")),
    *((sign, "s", "a") for sign in ("=", "<", ">=")),
    *(("null", name) for name in ROWS),
    ("in", "s", ("a", "zz", "")),
    ("nan", "x"),
    ("true", "t"),
]


def test_filters_keep_the_rows_that_they_keep_in_spark():
    rows = pa.table(ROWS).to_pylist()
    pairs = [(sign, one, other) for sign in ("and", "or") for one in SIMPLE for other in SIMPLE]
    conditions = [*SIMPLE, *(("not", one) for one in SIMPLE), *pairs, *(("not", p) for p in pairs)]
    for condition in conditions:
        found = keep_rows(condition, {name: ROWS[name] for name in columns_of(condition)})
        assert found.to_pylist() == [true_in_spark(condition, row) for row in rows], condition


def test_filtered_rows_with_columns_of_folders_under_other_names(tmp_path):
    rows = table()
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=100)
    size = (tmp_path / "rows.parquet").stat().st_size
    keys = {"day": 19_000, "shop": None, "w": 7}  # the file has another w
    files = FrameFiles(
        [[FilePiece(str(tmp_path / "rows.parquet"), size, 0, size, keys)]],
        {"first": "a", "again": "a", "days": "day", "shop": "shop", "w": "w"},
        {"a": "float", "day": "date", "shop": "string", "w": "bigint", "unused": "bigint"},
        frozenset(keys),
        ("and", ("and", (">=", "a", "0.0"), (">", "unused", "250")), ("=", "day", "2022-01-08")),
    )
    task = SpillFiles(spill_of(tmp_path), files)
    found = pa.Table.from_batches(task.read(number(0)))
    kept = rows.to_pandas().query("a >= 0 and unused > 250")
    assert found.column_names == ["first", "again", "days", "shop", "w"]
    assert found["first"].to_pylist() == found["again"].to_pylist() == kept["a"].tolist()
    assert set(found["days"].to_pylist()) == {datetime.date(2022, 1, 8)}
    assert set(found["shop"].to_pylist()) == {None} and set(found["w"].to_pylist()) == {7}


def test_row_groups_without_a_row_that_stays_are_not_decoded(tmp_path, monkeypatch):
    pq.write_table(table(), tmp_path / "rows.parquet", row_group_size=100)
    read = []
    plain = pq.ParquetFile.iter_batches

    def spy(self, *given, row_groups, columns, **options):
        read.append((tuple(row_groups), len(columns)))
        return plain(self, *given, row_groups=row_groups, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    files = files_of([whole(tmp_path / "rows.parquet")])
    kinds = {**files.kinds, "unused": "bigint"}
    condition = ("in", "unused", ("5", "333", "334"))
    files = FrameFiles(files.pieces, files.columns, kinds, condition=condition)
    found = list(SpillFiles(spill_of(tmp_path), files).read(number(0)))
    assert sum(batch.num_rows for batch in found) == 3
    assert read == [*(((j,), 1) for j in range(9)), ((0, 3), 6)]


def test_days_before_the_calendar_changed_are_left_to_spark(tmp_path):
    rows = table(10).append_column("day", pa.array([datetime.date(1500, 1, 1)] * 10))
    pq.write_table(rows, tmp_path / "rows.parquet")
    files = files_of([whole(tmp_path / "rows.parquet")], condition=("<", "day", "1700-01-01"))
    files.kinds["day"] = "date"
    (entry,) = SpillFiles(spill_of(tmp_path), files)(number(0))
    error = spill_error(entry.to_pydict()["error"][0])
    assert isinstance(error, FilesUnread) and "before 1582" in str(error)


@pytest.fixture(scope="module")
def ugly(tmp_path_factory):
    """Nulls, NaN, infinities, both zeros and dates, in folders that are columns too."""
    place = tmp_path_factory.mktemp("ugly")
    rng = np.random.default_rng(1)
    values = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 0.1, 0.5, -2.0], dtype=np.float32)
    for shop in ("b c", "a", "__HIVE_DEFAULT_PARTITION__"):
        for day in (1, 12):
            folder = place / f"shop={shop}" / f"day=2024-01-{day:02d}"
            folder.mkdir(parents=True)
            missing = rng.random((3, 400)) < 0.15
            columns = {
                "x": pa.array(rng.choice(values, 400), mask=missing[0]),
                "z": pa.array(rng.choice(values.astype(float), 400), mask=missing[1]),
                "n": pa.array(rng.integers(-5, 30, 400).astype(np.int16), mask=missing[2]),
                "word": rng.choice(["yes", "no", "", "\u00e4"], 400),
                "flag": pa.array(rng.random(400) < 0.5, mask=missing[0]),
                "when": np.datetime64("2020-01-01") + rng.integers(0, 900, 400),
                "id": np.arange(400),
            }
            pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=90)
    return place


def read_by_arrow(files, tmp_path):
    """The rows of each partition that has some."""
    task = SpillFiles(Spill([], None, None, str(tmp_path), "toprank-test"), files)
    found = {
        j: [row for batch in task.read(number(j)) for row in map(repr, batch.to_pylist())]
        for j in range(len(files.pieces))
    }
    return {j: rows for j, rows in found.items() if rows}


def read_by_spark(frame):
    from pyspark.sql.functions import spark_partition_id

    found = {}
    for row in frame.withColumn("partition", spark_partition_id()).toArrow().to_pylist():
        found.setdefault(row.pop("partition"), []).append(repr(row))
    return found


FILTERS = [
    "x > 0",
    "x >= 0.1",
    "NOT x > 0.5",
    "x = 0",
    "x <> 0.1 AND z < 2",
    "z <= 0.1 OR n > 3",
    "isnan(x) OR z IS NULL",
    "x = double('infinity') OR z < -1",
    "n IN (1, 2, 30, -4)",
    "n NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)",
    "word IN ('yes', '') AND NOT (n BETWEEN 3 AND 9)",
    "word >= 'no'",
    "flag AND NOT (flag AND n = 3)",
    "NOT flag",
    "when >= '2021-02-01' AND day = '2024-01-12'",
    "day > '2024-01-05' OR (shop = 'a' AND n >= 0)",
    "shop IS NULL AND 4 > n",
    "shop <> 'a'",
    "x > 1000 AND NOT isnan(x) AND x < 2000",
]


@pytest.mark.more
def test_filters_of_every_kind_leave_the_rows_that_spark_leaves(spark, ugly, tmp_path):
    frame = spark.read.parquet(str(ugly))
    for condition in FILTERS:
        kept = frame.filter(condition)
        files = find_files(kept)
        assert files is not None, condition
        assert read_by_arrow(files, tmp_path) == read_by_spark(kept), condition


@pytest.mark.more
def test_columns_that_are_picked_and_renamed_are_those_of_spark(spark, ugly, tmp_path):
    frame = spark.read.parquet(str(ugly))
    renamed = frame.withColumnRenamed("x", "new").filter("new < 1").drop("z", "word")
    swapped = frame.selectExpr("x AS z", "z AS x", "z AS again", "shop", "day AS when").dropna()
    frame.createOrReplaceTempView("ugly")
    queried = spark.sql(
        "SELECT n AS a, shop, x FROM ugly WHERE n IS NOT NULL AND day < '2024-01-05'"
    )
    for one in (frame, renamed, swapped, queried, frame.dropna(subset=["x", "n", "word"])):
        files = find_files(one)
        assert files is not None and list(files.columns) == one.columns
        assert read_by_arrow(files, tmp_path) == read_by_spark(one)


@pytest.mark.more
def test_blocks_of_a_filtered_frame_are_the_same_either_way(spark, ugly, monkeypatch):
    frame = spark.read.parquet(str(ugly)).filter("n > 2 AND word IN ('yes', 'no')")
    frame = frame.withColumnRenamed("z", "of z").na.drop(subset=["shop"])
    settings = {"features": ["x", "of z", "n"], "target": "word", "weight": "id"}
    with blocks.from_spark(frame, **settings) as source:
        assert source._reads_files
        direct = rows_of(source)
    monkeypatch.setattr("toprank.blocks.spark.find_files", lambda rows: None)
    with blocks.from_spark(frame, **settings) as source:
        assert rows_of(source) == direct


@pytest.mark.more
def test_frames_that_are_more_than_files_are_left_to_spark(spark, folder, ugly, tmp_path):
    frame = spark.read.parquet(str(folder)).select("a", "w", "unused", "y")
    pieces = [piece for one in find_files(frame).pieces for piece in one]
    assert {Path(piece.path).name for piece in pieces} == {f"part {j}.parquet" for j in range(3)}
    others = {
        "a computed filter": frame.filter("a + 1 > 0"),
        "a part of a filter": frame.filter("a > 0 AND length(y) = 2"),
        "two columns": frame.filter("w > unused"),
        "a text": frame.filter("y LIKE '%e%'"),
        "not a number": frame.filter("a = float('nan')"),
        "a set of fractions": frame.filter("a IN (0.5, 0.25)"),
        "a set with null": frame.filter("w IN (1, 2, NULL)"),
        "a large set with null": frame.filter(f"w IN ({', '.join(map(str, range(30)))}, NULL)"),
        "what was computed": frame.selectExpr("a", "rand(1) AS chance").filter("chance > 0.5"),
        "another format": spark.read.text(__file__),
        "no file": spark.read.schema("a double").parquet(str(tmp_path)),
        "some of several": frame.dropna(thresh=2),
        "chance": frame.filter("rand(1) < 0.5"),
        "a query inside": frame.filter("w = (SELECT max(id) FROM range(3))"),
        "a sum": frame.select((frame["a"] + 1).alias("a")),
        "another type of a column": frame.select(frame["a"].cast("double")),
        "a limit": frame.limit(10),
        "a sample": frame.sample(0.5, seed=0),
        "a shuffle": frame.repartition(2),
        "a union": frame.union(frame),
        "a range": spark.range(10),
        "folders alone": spark.read.parquet(str(ugly)).select("shop"),
        "what Spark knows of files": frame.select("a", "_metadata.file_size"),
        "another type": frame.selectExpr("array(a) as a"),
        "no row": frame.filter("false"),
    }
    assert {name: find_files(one) for name, one in others.items()} == dict.fromkeys(others)
    # the same files by way of a store that Python cannot open, and rows of a database
    store = spark.sparkContext._jsc.hadoopConfiguration()
    store.set("fs.viewfs.mounttable.rows.link./all", folder.as_uri())
    view = spark.read.parquet("viewfs://rows/all").select(*frame.columns)
    assert view.count() == frame.count() and find_files(view) is None
    with pytest.raises(NotUnderstood, match="another store"):
        _find_files(view.columns, view._jdf.queryExecution())
    log = str(tmp_path / "derby.log")
    spark.sparkContext._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    database = spark.read.jdbc("jdbc:derby:memory:rows;create=true", "sysibm.sysdummy1")
    assert len(database.columns) == 1 and find_files(database) is None
    frame.cache()
    assert find_files(frame.select("a")) is None
    assert find_files(frame.filter("a > 0")) is None
    frame.unpersist()


@pytest.mark.more
def test_spark_reads_files_whose_types_differ_from_its_own(spark, tmp_path):
    rows = table().to_pandas().assign(a=np.arange(900, dtype=np.uint8))
    rows["b.c"] = 0.5
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path))  # a smallint there, unsigned in the file
    assert find_files(frame.select("a")) is not None
    with blocks.from_spark(frame, features=NAMES, target="y") as source:
        assert not source._reads_files
        fitted = PNormPush(p=2).fit_blocks(source)
        scores = fitted.score_blocks(source).select("unused", "score").toPandas()
    in_memory = PNormPush(p=2).fit(rows[NAMES].to_numpy(), rows["y"])
    np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-6, atol=1e-9)
    scores = scores.sort_values("unused")["score"]
    np.testing.assert_allclose(scores, fitted.decision_function(rows[NAMES]), rtol=1e-12)
