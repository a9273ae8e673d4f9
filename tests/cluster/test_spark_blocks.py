"""Spark data frames as block sources, on two executors that are processes of their own."""

import errno
import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, blocks
from toprank.blocks.source import Progress
from toprank.blocks.spark import SparkBlocks, _LocalPartitions, _remove, check_frame
from toprank.blocks.spark_jobs import run_everywhere
from toprank.blocks.spill import GONE, Spill, clear_spilled, spill_error

FEATURES = list("abc")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 3))
    y = (X @ [1.0, -0.5, 0.3] + rng.logistic(size=900) > 1).astype(int)
    weight = rng.integers(0, 3, size=900).astype(float)
    return pd.DataFrame(X, columns=FEATURES).assign(
        label=np.where(y == 1, "yes", "no"), weight=weight, row=np.arange(900)
    )


@pytest.fixture(scope="module")
def skewed(spark_cluster, frame):
    """Two of four partitions at most have rows: one of both classes, one of negatives only."""
    place = np.where(frame["label"] == "yes", 0, 1)
    place[:20] = 0
    return (
        spark_cluster.createDataFrame(frame.assign(place=place))
        .repartition(4, "place")
        .drop("place")
    )


def files_of(source):
    return [Path(folder) for folder in source._folders]


@pytest.mark.more  # a JVM and its executors would take a fifth of level 1
def test_spark_gives_the_coefficients_of_the_fit_in_memory_and_scores_in_place(frame, skewed):
    settings = {"p": 4, "tol": 1e-12}
    in_memory = PNormPush(**settings).fit(frame[FEATURES], frame["label"], frame["weight"])
    source = blocks.from_spark(skewed, features=FEATURES, target="label", weight="weight")
    with source:
        assert source.n_blocks == 4
        fitted = PNormPush(**settings).fit_blocks(source)
        np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-10)
        np.testing.assert_array_equal(fitted.feature_names_in_, FEATURES)
        np.testing.assert_array_equal(fitted.classes_, ["no", "yes"])
        scored = fitted.score_blocks(source)
        assert scored.columns == [*skewed.columns, "score"]
        scores = scored.select("row", "score").toPandas().sort_values("row")["score"]
        np.testing.assert_allclose(scores, fitted.decision_function(frame[FEATURES]), rtol=1e-12)
        files = files_of(source)
        assert all(folder.is_dir() for folder in files)
    assert not any(folder.exists() for folder in files)
    with pytest.raises(ValueError, match="closed"):
        PNormPush().fit_blocks(source)


@pytest.mark.slow
def test_many_partitions_are_merged_in_groups_and_any_score_is_added_in_place(
    frame, skewed, monkeypatch
):
    monkeypatch.setattr("toprank.blocks.spark._MANY", 3)
    monkeypatch.setattr("toprank.blocks.spark._FAN_IN", 2)
    settings = {"p": 4, "tol": 1e-12}
    in_memory = PNormPush(**settings).fit(frame[FEATURES], frame["label"], frame["weight"])

    def square(X):
        return X[:, 0] ** 2

    with blocks.from_spark(skewed, features=FEATURES, target="label", weight="weight") as source:
        fitted = PNormPush(**settings).fit_blocks(source)
        np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-10)
        assert source.name_of(2) == "partition 2"
        found = source.write_scores(square, to="squared").select("row", "squared").toPandas()
        scores = found.sort_values("row")["squared"]
        np.testing.assert_allclose(scores, frame["a"] ** 2, rtol=1e-12)
        with pytest.raises(ValueError, match="has a column 'row' already"):
            source.write_scores(square, to="row")


def sweep(what):
    class ColumnSums:
        def local(self, block, state):
            return [what(block)]

        def merge(self, left, right):
            return left + right

    return ColumnSums()


@pytest.mark.more
def test_files_are_read_and_actions_run_by_the_executors(spark, frame, tmp_path):
    for number, part in enumerate((frame[:300], frame[300:])):
        part.to_parquet(tmp_path / f"part {number}.parquet", index=False)
    source = blocks.from_tables(tmp_path, cluster=spark)
    assert source.map_reduce(sweep(lambda block: block.X.num_rows), None) == [300, 600]
    with pytest.raises(TypeError, match="Rows of files have no data frame"):
        source.write_scores(len)
    run_everywhere(spark, lambda: (tmp_path / f"{os.getpid()}.pid").touch())
    assert len(list(tmp_path.glob("*.pid"))) == 2  # one process of each executor


class Scripted(SparkBlocks):
    """Blocks whose passes end as they are told to."""

    def __init__(self, *ends):
        self.ends, self.done = list(ends), []
        self._n_blocks, self._folders = 3, {"old"}
        self._progress = Progress(0)
        self._write()

    def _write(self):
        self.done.append("write")
        self._closer = weakref.finalize(self, self.done.append, "remove")

    def _pass(self, sweep, state):
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


LOST = OSError(f"org.apache.spark.SparkException: {GONE}: /tmp/x")


@pytest.mark.parametrize(
    ("ends", "raised", "written"),
    [
        ([7.0], None, 1),
        ([ValueError("no such column")], "no such column", 1),
        ([LOST, 7.0], None, 2),
        ([LOST, ValueError("no such column")], "no such column", 2),
        ([LOST, LOST, 7.0], "Again the blocks .* right after they were written", 2),
    ],
)
def test_blocks_that_are_gone_are_written_again_once_and_other_errors_are_raised(
    ends, raised, written
):
    source = Scripted(*ends)
    if raised is None:
        assert source.map_reduce(None, None) == 7.0
    else:
        with pytest.raises((OSError, ValueError), match=raised):
            source.map_reduce(None, None)
    assert source.done == (["write"] if written == 1 else ["write", "remove", "write"])
    assert source._folders == ({"old"} if written == 1 else set())  # those of the files that were
    assert source._progress.passes == (raised is None)


def test_a_partition_that_could_not_be_written_again_says_why():
    full = json.dumps(["OSError", "Partition 2 could not be spilled: the disk is full"])
    entry = {"error": full, "index": 2, "path": "", "files": ""}
    with pytest.raises(OSError, match="Partition 2 could not be spilled: the disk is full"):
        list(_LocalPartitions(sweep(len), None)(iter([entry])))


@pytest.mark.more
def test_columns_far_from_zero_are_scored_in_place_as_in_memory(spark_cluster, frame):
    far = frame.assign(b=frame["b"] + 1e9)
    settings = {"features": FEATURES, "target": "label"}
    with blocks.from_spark(spark_cluster.createDataFrame(far), **settings) as source:
        fitted = PNormPush(p=4).fit_blocks(source)
        assert fitted.block_score().units.centre[1] == pytest.approx(1e9, rel=1e-6)
        scored = fitted.score_blocks(source).select("row", "score").toPandas()
    scores = scored.sort_values("row")["score"]
    np.testing.assert_allclose(scores, fitted.decision_function(far[FEATURES]), atol=1e-9)
    plain = PNormPush(p=4).fit(frame[FEATURES], frame["label"]).decision_function(frame[FEATURES])
    # 1e9 keeps seven digits of the column
    np.testing.assert_allclose(scores - scores.mean(), plain - plain.mean(), atol=1e-4)


def test_a_frame_of_spark_connect_is_refused():
    methods = {"mapInArrow": None, "__module__": "pyspark.sql.connect.dataframe"}
    with pytest.raises(TypeError, match="belongs to a Spark Connect session"):
        check_frame(type("DataFrame", (), methods)(), [])


def test_files_of_a_session_that_has_ended_are_removed_from_here(tmp_path):
    folder = tmp_path / "toprank-0a"
    folder.mkdir()
    _remove(None, {str(folder)})  # as a manifest that no executor answers for
    assert not folder.exists()


@pytest.mark.more
def test_a_frame_without_partitions_has_no_rows_to_rank(spark):
    empty = spark.createDataFrame(spark.sparkContext.emptyRDD(), "a double, label int")
    with pytest.raises(ValueError, match="The data frame has no partitions"):
        blocks.from_spark(empty, features=["a"], target="label")
    with pytest.raises(ValueError, match="The data frame has no partitions"):
        blocks.from_tables(empty).map_reduce(sweep(len), None)


@pytest.mark.more
def test_an_executor_that_is_lost_does_not_change_the_answer(skewed):
    import psutil

    with blocks.from_spark(skewed, features=FEATURES) as source:
        sums = sweep(lambda block: block.X.sum(axis=0).tolist())
        before = source.map_reduce(sums, None)
        # the parent of the Python worker's parent is the executor
        who = sweep(lambda block: psutil.Process().parent().parent().pid)
        executor = psutil.Process(source.map_reduce(who, None)[0])
        assert any("ExecutorBackend" in word for word in executor.cmdline())
        executor.kill()
        # a shuffle that is run again may bring the rows of a partition in another order
        np.testing.assert_allclose(source.map_reduce(sums, None), before, rtol=1e-12)
        files = files_of(source)
    assert not any(folder.exists() for folder in files)


@pytest.mark.slow
def test_partitions_written_again_by_a_task_for_several_took_the_number_of_the_task(skewed):
    with blocks.from_spark(skewed, features=FEATURES) as source:
        numbers = sweep(lambda block: (block.index, block.X.sum(axis=0).tolist()))
        before = source.map_reduce(numbers, None)
        assert [number for number, _ in before] == [0, 1, 2, 3]
        source._manifest.unpersist(blocking=True)  # as if the executors that kept it were lost
        after = source.map_reduce(numbers, None)
        assert [number for number, _ in after] == [0, 1, 2, 3]
        for (_, sums), (_, expected) in zip(after, before, strict=True):
            np.testing.assert_allclose(sums, expected, rtol=1e-12)


@pytest.mark.more
def test_files_that_vanish_are_written_again_and_the_last_ones_removed(skewed):
    import shutil

    source = blocks.from_spark(skewed, features=FEATURES)
    count = sweep(lambda block: block.n_rows)
    before = source.map_reduce(count, None)
    for folder in files_of(source):
        shutil.rmtree(folder)
    assert source.map_reduce(count, None) == before
    files = files_of(source)
    assert any(folder.exists() for folder in files)
    del source
    gc.collect()
    assert not any(folder.exists() for folder in files)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_files_that_are_damaged_were_read_as_they_were(skewed, damage):
    with blocks.from_spark(skewed, features=FEATURES) as source:
        sums = sweep(lambda block: block.X.sum(axis=0).tolist())
        before = source.map_reduce(sums, None)
        largest = max((folder / "X" for folder in files_of(source)), key=lambda x: x.stat().st_size)
        data = bytearray(largest.read_bytes())
        data[len(data) // 2 + 7] ^= 0x40  # a much larger or smaller number
        largest.write_bytes(data if damage == "flipped" else data[:-8])
        np.testing.assert_allclose(source.map_reduce(sums, None), before, rtol=1e-12)


@pytest.mark.more
def test_a_disk_that_cannot_be_written_is_a_clear_error(skewed):
    with pytest.raises(OSError, match=r"could not be spilled to /proc/nowhere.*spill_dir="):
        blocks.from_spark(skewed, features=FEATURES, spill_dir="/proc/nowhere")


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyspark", reason="needs pip install 'toprank[spark]'")
    batch = pyarrow.RecordBatch.from_pydict({"a": [1.0, 2.0], "label": [0, 1]})
    spill = Spill(["a"], "label", None, str(tmp_path), "toprank-test")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    (entry,) = spill(iter([batch]))
    error = spill_error(entry.to_pydict()["error"][0])
    assert isinstance(error, OSError) and "the disk is full" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_task_spilled_is_removed_with_the_rest(tmp_path):
    names = ("toprank-0a-0-whole", "toprank-0a-0-half", "toprank-0b-0-other", "toprank-0a")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "X").write_bytes(b"rows")
    clear_spilled({str(tmp_path / "toprank-0a-0-whole")})
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["toprank-0a", "toprank-0b-0-other"]


def test_an_error_comes_back_from_a_task_in_its_words():
    assert isinstance(spill_error('["ValueError", "no number"]'), ValueError)
    assert str(spill_error('["OSError", "no room"]')) == "no room"


@pytest.mark.more
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"features": ["a", "z"]}, "no column 'z'"),
        ({"features": ["a", "label"]}, r"hold none: 'label' \(string\)"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(skewed, settings, says):
    with pytest.raises(ValueError, match=says):
        blocks.from_spark(skewed, **settings)


def test_what_is_no_spark_frame_is_refused(frame):
    with pytest.raises(TypeError, match=r"expected a pyspark\.sql\.DataFrame"):
        blocks.from_spark(frame, features=FEATURES)


@pytest.mark.more
def test_missing_java_is_said_clearly(tmp_path):
    code = "from toprank.blocks import spark_session; spark_session()"
    for where in ({"PATH": str(tmp_path)}, {"JAVA_HOME": str(tmp_path)}):
        environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | where
        ran = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 1
        assert "RuntimeError: Spark runs on Java, and" in ran.stderr
        assert str(tmp_path) in ran.stderr or "no java on the PATH" in ran.stderr
