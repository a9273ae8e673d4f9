"""Row blocks of Spark: partitions of a data frame, spilled once to the disks of the executors.

Shipping the rows from Spark to Python at every evaluation would cost more than the evaluation. So
the first pass writes each partition to a memory-mapped file beside the executor that holds it, and
a small cached table says where the files are. Later passes run over that table, one task a
partition, where the files lie, and return partial results only, merged in the order of the
partitions. An executor that is lost takes its part of the table with it; Spark then makes that part
again from the lineage of the data frame, which writes the files anew elsewhere.
"""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Never
from uuid import uuid4

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.source import BlockSource, Partial, Progress, State, Sweep, not_numbers
from toprank.blocks.spark_files import SpillFiles
from toprank.blocks.spark_jobs import run_everywhere, run_job
from toprank.blocks.spark_plans import find_files
from toprank.blocks.spark_scores import AddScores, linear_column, number_columns, quoted
from toprank.blocks.spill import (
    GONE,
    FilesUnread,
    Spill,
    SpillRows,
    clear_spilled,
    open_spilled,
    spare_collector,
    spill_error,
)

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row, SparkSession

#: Partitions from which partial results are merged by the executors first, and how many at once.
_MANY, _FAN_IN = 256, 32
#: Columns up to which a linear score is an expression of Spark's own: no row goes to Python.
_MOST_TERMS = 200
_MANIFEST = "index int, path string, files string, error string, host string"


def from_spark(
    df: DataFrame,
    *,
    features: Sequence[str],
    target: str | None = None,
    weight: str | None = None,
    group: str | None = None,
    spill_dir: str | None = None,
    verbose: int = 0,
) -> SparkBlocks:
    """Rows of a Spark data frame as a source of blocks, one for each partition.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    features : sequence of str
        Columns of numbers; nulls become NaN.
    target, weight : str, optional
        The columns of labels and of repetition counts.
    group : str, optional
        The column of groups, or of times; see `from_parquet`.
    spill_dir : str, optional
        Folder for the files, on every executor. By default Spark's own (``spark.local.dir``), which
        Spark removes when an executor ends.
    verbose : int, default=0
        1 prints a line per pass.

    Returns
    -------
    SparkBlocks
        A context manager; leaving it, `close` or its end of life removes the files.

    Notes
    -----
    The partitions and the order of their rows should not change when Spark computes them again: a
    frame after an unordered shuffle may be worth a checkpoint.
    """
    return SparkBlocks(df, list(features), target, weight, group, spill_dir, verbose)


def spark_session(master: str = "local[*]", **config: object) -> SparkSession:
    """Start a Spark session, or say what is missing.

    Parameters
    ----------
    master : str
        Where Spark runs; by default ``local[*]``, the cores of this machine.
    **config
        Spark's settings, dots as double underscores: ``spark__executor__memory="2g"``.

    Returns
    -------
    pyspark.sql.SparkSession
    """
    check_java()
    session = require("pyspark.sql", "spark").SparkSession
    # the executors must find the same libraries
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session.builder.master(master)
    for name, value in config.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def check_java() -> None:
    """Raise RuntimeError with the remedy where no Java is found."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise RuntimeError(
            f"Spark runs on Java, and {where}. Install Java 17 or later (for example apt-get "
            "install openjdk-17-jre-headless, or conda install openjdk) and set JAVA_HOME to its "
            "folder."
        )


class SparkBlocks(BlockSource):
    """The source that `from_spark` returns."""

    def __init__(
        self,
        df: DataFrame,
        features: list[str],
        target: str | None,
        weight: str | None,
        group: str | None,
        spill_dir: str | None,
        verbose: int,
    ):
        named = (target, weight, group)
        check_frame(df, [*features, *(name for name in named if name is not None)])
        check_spark_columns(df, features)
        self._df = df
        self._spill = Spill(
            features, target, weight, spill_dir, f"toprank-{uuid4().hex[:12]}", group
        )
        self.grouped = group is not None
        self._progress = Progress(verbose)
        self._folders: set[str] = set()
        #: Whether Parquet files are read beside Spark, until one cannot be.
        self._reads_files = True
        self.n_features = len(features)
        self.feature_names = np.array(features, dtype=object)
        self._closer: weakref.finalize[..., SparkBlocks] | None = None
        self._write()

    @property
    def n_blocks(self) -> int:
        return self._n_blocks

    def name_of(self, index: int) -> str:
        return f"partition {index}"

    def _write(self) -> None:
        """Spill all partitions, and remember what removes the files."""
        spill = self._spill
        named = (*spill.features, spill.target, spill.weight, spill.group)
        names = dict.fromkeys(name for name in named if name is not None)
        rows = self._df.select(*(quoted(name) for name in names))
        files = find_files(rows) if self._reads_files else None
        if files is not None:
            n = len(files.pieces)
            try:
                self._spill_rows(self._df.sparkSession.range(0, n, 1, n), SpillFiles(spill, files))
                return
            except FilesUnread:  # Spark reads them, then
                self._reads_files = False
                self._folders.clear()
        self._spill_rows(number_columns(rows), SpillRows(spill, rows.columns))

    def _spill_rows(self, rows: DataFrame, spill: SpillRows | SpillFiles) -> None:
        """Let the executors write what one pass over a frame hands them."""
        written = rows.mapInArrow(spill, _MANIFEST).rdd
        self._manifest = written.mapPartitionsWithIndex(_number_entries).persist()
        try:
            entries = run_job(self._df.sparkSession, self._manifest.collect)
        except BaseException:
            # the manifest does not say what was written until then; the name of the folders does
            with suppress(Exception):
                run_everywhere(self._df.sparkSession, self._spill.clear)
            raise
        self._closer = weakref.finalize(self, _remove, self._manifest, self._folders)
        self._folders.update(entry["path"] for entry in entries if entry["path"])
        errors = [entry["error"] for entry in entries if entry["error"]]
        if errors:
            self.close()
            raise spill_error(errors[0])
        if not entries:
            raise ValueError("The data frame has no partitions; a ranking needs rows.")
        self._n_blocks = len(entries)
        self._one_host = len({entry["host"] for entry in entries}) == 1
        #: The manifest in as many parts as there are cores, once that was asked for.
        self._per_core: tuple[int, RDD] | None = None

    def _tasks(self) -> RDD:
        """The manifest, one partition a task.

        A task costs Spark more than it computes. Where any executor can open any file, because all
        run on one host, one task per core is enough.
        """
        cores = self._manifest.context.defaultParallelism
        if not self._one_host or self._n_blocks <= cores:
            return self._manifest
        if self._per_core is None or self._per_core[0] != cores:
            self._per_core = cores, self._manifest.coalesce(cores)
        return self._per_core[1]

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        if self._closer is None or not self._closer.alive:
            raise ValueError("These blocks were closed; make them again with blocks.from_spark.")
        with self._progress.one_pass(type(sweep).__name__, self.n_blocks):
            try:
                return self._pass(sweep, state)
            except Exception as problem:
                if GONE not in str(problem):
                    raise
            self.close()
            self._folders.clear()
            self._write()
            try:
                return self._pass(sweep, state)
            except Exception as problem:
                if GONE not in str(problem):
                    raise
                raise OSError(
                    f"Again {GONE}, right after they were written. Look whether something removes "
                    "files there, or the disk fails; point spill_dir= to another."
                ) from problem

    def _pass(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        context = self._manifest.context
        context.setJobDescription(f"toprank {type(sweep).__name__}")
        try:
            partials = self._tasks().mapPartitions(_LocalPartitions(sweep, state))
            if self._n_blocks > _MANY:
                groups = partials.map(lambda partial: (partial[0] // _FAN_IN, partial))
                count = -(-self._n_blocks // _FAN_IN)
                partials = groups.groupByKey(count).map(_MergeGroup(sweep))
            found = run_job(self._df.sparkSession, partials.collect)
            found.sort(key=lambda partial: partial[0])
        finally:
            context.setJobDescription(None)
        self._folders.update(folder for _, folders, _ in found for folder in folders)
        return _merge_in_order(sweep, found)[2]

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> DataFrame:
        """Return the data frame with a column of scores, computed where the rows are.

        Parameters
        ----------
        score : callable
            From the X of a block to its scores.
        to : str, default="score"
            Name of the column.
        """
        name = "score" if to is None else str(to)
        if name in self._df.columns:
            raise ValueError(
                f"The data frame has a column {name!r} already; give another name as to=, or drop "
                "it."
            )
        if getattr(score, "coef", None) is not None and self.n_features <= _MOST_TERMS:
            return self._df.withColumn(name, linear_column(score, self._spill.features))
        types = require("pyspark.sql.types", "spark")
        fields = [*self._df.schema.fields, types.StructField(name, types.DoubleType(), False)]
        task = AddScores(score, self._spill.features, [*self._df.columns, name])
        return number_columns(self._df).mapInArrow(task, types.StructType(fields))

    def close(self) -> None:
        """Remove the files."""
        if self._closer is not None:
            self._closer()

    def __enter__(self) -> SparkBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_frame(df: DataFrame, columns: Sequence[str]) -> None:
    """Refuse what is no Spark data frame, or lacks a column."""
    if not hasattr(df, "mapInArrow"):
        raise TypeError(
            f"df is a {type(df).__module__}.{type(df).__name__}, expected a pyspark.sql.DataFrame."
        )
    if ".connect." in type(df).__module__:
        raise TypeError(
            "The data frame belongs to a Spark Connect session, which has no access to the "
            "executors. Use a classic session, such as toprank.blocks.spark_session()."
        )
    missing = [name for name in columns if name not in df.columns]
    if missing:
        raise ValueError(
            f"The data frame has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, df.columns))}."
        )


def check_spark_columns(df: DataFrame, features: Sequence[str]) -> None:
    """Refuse features that hold something else than numbers."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
    kinds = dict(df.dtypes)
    wrong = [f"{n!r} ({kinds[n]})" for n in features if kinds[n].split("(")[0] not in numbers]
    if wrong:
        advice = (
            "pyspark.ml.feature.OneHotEncoder; unpack vectors with "
            "pyspark.ml.functions.vector_to_array, or choose columns of numbers"
        )
        raise not_numbers(wrong, advice)


def _number_entries(index: int, entries: Iterator[Row]) -> Iterator[dict[str, object]]:
    """Give entries the number of their partition.

    Should an executor be lost, its partitions are written again by a task for several of them,
    which knows its own number only.
    """
    for entry in entries:
        yield {**entry.asDict(), "index": index}


class _LocalPartitions(Generic[State, Partial]):
    """The contribution of the blocks of one partition of the manifest."""

    def __init__(self, sweep: Sweep[State, Partial], state: State):
        self.sweep = sweep
        self.state = state

    def __call__(self, entries: Iterator[Row]) -> Iterator[tuple[int, list[str], Partial]]:
        for entry in entries:
            if entry["error"]:
                raise spill_error(entry["error"])
            block = open_spilled(entry["index"], entry["path"], entry["files"])
            yield entry["index"], [entry["path"]], self.sweep.local(block, self.state)
        spare_collector()


class _MergeGroup(Generic[Partial]):
    """Merges the contributions of neighbouring partitions on an executor."""

    def __init__(self, sweep: Sweep[Never, Partial]):
        self.sweep = sweep

    def __call__(
        self, group: tuple[int, Iterable[tuple[int, list[str], Partial]]]
    ) -> tuple[int, list[str], Partial]:
        return _merge_in_order(self.sweep, sorted(group[1], key=lambda partial: partial[0]))


def _merge_in_order(
    sweep: Sweep[Never, Partial], partials: list[tuple[int, list[str], Partial]]
) -> tuple[int, list[str], Partial]:
    index, folders, total = partials[0]
    for _, more, partial in partials[1:]:
        folders = folders + more
        total = sweep.merge(total, partial)
    return index, folders, total


def _remove(manifest: RDD, folders: set[str]) -> None:
    """Remove the files, on whichever executor's disk they are."""
    try:
        paths = set(folders)

        def clear(entries: Iterator[Row]) -> Iterator[int]:
            clear_spilled(paths | {entry["path"] for entry in entries if entry["path"]})
            return iter(())

        manifest.mapPartitions(clear).count()
        manifest.unpersist()
    except Exception:  # the session ended first: Spark has removed its folders
        clear_spilled(folders)
