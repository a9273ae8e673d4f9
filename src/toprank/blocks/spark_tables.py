"""Tables of any columns on the executors of Spark: partitions of a frame, or files that they read.

A pass runs over the partitions of the frame and brings partial results back. The numbers that are
made of the columns are a data frame of their own, spilled once like any other.
"""

from __future__ import annotations

import pickle  # nosec B403
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Generic, TypeAlias

import numpy as np

from toprank._arrays import Matrix
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.source import Block, BlockSource, Partial, Progress, State, Sweep
from toprank.blocks.spark import SparkBlocks, check_frame, from_spark
from toprank.blocks.spark_jobs import run_job
from toprank.blocks.tables import ParquetTables, Prepare, with_times

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: From the Arrow batches of a partition to its tables, one per block.
OpenPartition: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]"


class SparkTables(BlockSource):
    """Arrow tables of the partitions of a Spark frame, read anew at every pass."""

    reads_anew = True

    def __init__(self, df: DataFrame, open_partition: OpenPartition, names: list[str]):
        self._df = df
        self._open = open_partition
        self.names = names
        self.n_features = len(names)
        self.feature_names = np.array(names, dtype=object)
        self._progress = Progress(0)

    @classmethod
    def of_frame(cls, df: DataFrame) -> SparkTables:
        """The partitions of a data frame."""
        check_frame(df, [])
        return cls(df, _join_batches, list(df.columns))

    @classmethod
    def of_files(cls, files: ParquetTables, session: SparkSession) -> SparkTables:
        """The row groups of Parquet files, which the executors read."""
        places = files.groups
        rows = session.sparkContext.parallelize(places, max(1, len(places)))
        df = session.createDataFrame(rows, "file int, group int")
        return cls(df, _ReadGroups(files), files.names)

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        """Merge ``sweep.local(block, state)`` over all partitions, in their order."""
        task = _LocalTables(self._open, sweep, state)
        found = self._df.mapInArrow(task, "index int, partial binary")
        with self._progress.one_pass(type(sweep).__name__, found.rdd.getNumPartitions()):
            entries = run_job(self._df.sparkSession, found.collect)
        entries.sort(key=lambda entry: entry["index"])
        partials = [pickle.loads(bytes(one["partial"])) for one in entries]  # nosec B301
        if not partials:
            raise ValueError("The data frame has no partitions; a ranking needs rows.")
        total = partials[0]
        for partial in partials[1:]:
            total = sweep.merge(total, partial)
        return total

    @contextmanager
    def numbers(self, prepare: Prepare, n_rows: int, n_features: int) -> Iterator[BlockSource]:
        """Let the executors prepare their partitions, and spill the numbers."""
        features = [f"x{place}" for place in range(n_features)]
        types = ", ".join([*(f"{name} double" for name in features), "y boolean", "w double"])
        prepared = self._df.mapInArrow(_Numbers(self._open, prepare, features), types)
        weight = "w" if getattr(prepare, "weighted", False) else None
        held: SparkBlocks = from_spark(prepared, features=features, target="y", weight=weight)
        held.feature_names = None
        try:
            yield held
        finally:
            held.close()

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> DataFrame:
        """Return the data frame with a column of scores, computed where the rows are."""
        if not isinstance(self._open, type(_join_batches)):
            raise TypeError("Rows of files have no data frame to add a column to: read them first.")
        types = require("pyspark.sql.types", "spark")
        name = "score" if to is None else str(to)
        fields = [*self._df.schema.fields, types.StructField(name, types.DoubleType(), False)]
        return self._df.mapInArrow(_AddScores(score, name), types.StructType(fields))


def _join_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """All batches of a partition as one table; none where it has no rows."""
    arrow = require("pyarrow", "spark")
    found = list(batches)
    if found:
        yield with_times(arrow.Table.from_batches(found))


class _ReadGroups:
    """Reads the row groups that a partition names."""

    def __init__(self, files: ParquetTables):
        self.files = files

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield self.files.read_group(row["file"], row["group"])


class _LocalTables(Generic[State, Partial]):
    """What the tables of a partition contribute to a pass."""

    def __init__(self, open_partition: OpenPartition, sweep: Sweep[State, Partial], state: State):
        self.tables_of, self.sweep, self.state = open_partition, sweep, state

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        arrow = require("pyarrow", "spark")
        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        total: Partial | None = None
        for table in self.tables_of(batches):
            partial = self.sweep.local(Block(index, table), self.state)
            total = partial if total is None else self.sweep.merge(total, partial)
        if total is not None:
            entry = {"index": [index], "partial": [pickle.dumps(total)]}
            types = arrow.schema([("index", arrow.int32()), ("partial", arrow.binary())])
            yield arrow.RecordBatch.from_pydict(entry, schema=types)


class _Numbers:
    """The numbers of a partition, its labels and its weights, as Arrow batches."""

    def __init__(self, open_partition: OpenPartition, prepare: Prepare, features: list[str]):
        self.tables_of, self.prepare, self.features = open_partition, prepare, features

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = require("pyarrow", "spark")
        for table in self.tables_of(batches):
            Z, positive, weight = self.prepare(table)
            counts = np.ones(len(Z)) if weight is None else weight
            columns = [arrow.array(np.ascontiguousarray(Z[:, j])) for j in range(Z.shape[1])]
            columns += [arrow.array(positive), arrow.array(counts)]
            yield arrow.RecordBatch.from_arrays(columns, [*self.features, "y", "w"])


class _AddScores:
    """Adds a column of scores to Arrow batches of any columns."""

    def __init__(self, score: Callable[[Matrix], FloatArray], name: str):
        self.score, self.name = score, name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = require("pyarrow", "spark")
        for batch in batches:
            table = with_times(arrow.Table.from_batches([batch]))
            scores = np.asarray(self.score(table), dtype=np.float64)
            columns = [*batch.columns, arrow.array(scores, arrow.float64())]
            yield arrow.RecordBatch.from_arrays(columns, [*batch.schema.names, self.name])
