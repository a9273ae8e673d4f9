"""Partitions of a Spark data frame as memory-mapped files: what an executor writes and reads."""

from __future__ import annotations

import errno
import gc
import json
import math
import os
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._files import Stamp
from toprank.blocks.source import Block

if TYPE_CHECKING:
    import pyarrow as pa

#: What a task says when its files are not there or not what was written; Spark hands the text on.
GONE = "the blocks that toprank spilled are gone or damaged"


class FilesUnread(Exception):
    """Files behind a frame that Python cannot read as Spark does."""


@dataclass(frozen=True)
class Kept:
    """An array in a file of its own, and what it takes to know it again.

    The sum of the bytes is checked when a file is first mapped, and its size and time at every
    pass: a file that changed in between is not what was written.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    crc: int

    def map(self, folder: Path) -> np.ndarray:
        """Return the array, mapped, or raise an error where the file is another."""
        dtype = np.dtype(self.kind)
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        size = dtype.itemsize * math.prod(self.shape)
        found = (folder / self.name).stat().st_size
        if found != size:
            raise ValueError(f"{self.name} has {found} of {size} bytes")
        # as a plain array: slices of a memmap are slower
        array = np.asarray(np.memmap(folder / self.name, dtype, "r", shape=self.shape))
        if zlib.crc32(array.reshape(-1).view(np.uint8).data) != self.crc:
            raise ValueError(f"{self.name} holds other bytes than were written")
        return array


def as_text(files: Sequence[Kept]) -> str:
    """What was written, in the words in which it travels with the manifest."""
    return json.dumps([astuple(one) for one in files])


@dataclass(frozen=True)
class Spill:
    """Writes one partition to files; called with its Arrow batches, yields where they are."""

    features: list[str]
    target: str | None
    weight: str | None
    directory: str | None
    token: str
    group: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        path: str | None = None
        files: str | None = None
        what: str | None = None  # for the driver, which stops at once: to retry would fail too
        try:
            path, kept = self.write(batches, index)
            files = as_text(kept)
        except OSError as problem:
            what = json.dumps(["OSError", _why(problem, self.directory, index)])
        except FilesUnread as problem:
            what = json.dumps(["FilesUnread", str(problem)])
        except ValueError as problem:
            what = json.dumps(["ValueError", str(problem)])
        arrow = require("pyarrow", "spark")
        text = arrow.string()
        yield arrow.RecordBatch.from_arrays(
            [
                arrow.array([index], arrow.int32()),
                *(arrow.array([one], text) for one in (path, files, what, socket.gethostname())),
            ],
            names=["index", "path", "files", "error", "host"],
        )

    def _home(self) -> str | None:
        if self.directory is not None:
            return self.directory
        spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return spark if spark and os.path.isdir(spark) else None

    def clear(self) -> None:
        """Remove what tasks of this source left here, also those that were killed."""
        clear_spilled({str(Path(self._home() or tempfile.gettempdir(), f"{self.token}-0-any"))})

    def write(self, batches: Iterator[pa.RecordBatch], index: int) -> tuple[str, list[Kept]]:
        """Write one partition; return the folder and its files, or remove it where that fails."""
        folder = tempfile.mkdtemp(prefix=f"{self.token}-{index}-", dir=self._home())
        try:
            return folder, self._write_files(batches, Path(folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _write_files(self, batches: Iterator[pa.RecordBatch], folder: Path) -> list[Kept]:
        """X row after row, then labels and weights."""
        given = {"y": self.target, "weight": self.weight, "groups": self.group}
        columns: dict[str, list[AnyArray]] = {name: [] for name, column in given.items() if column}
        rows, kind, crc = 0, np.dtype(np.float64), 0
        with open(folder / "X", "wb") as file:
            for batch in batches:
                X = matrix(batch, self.features)
                rows, kind, crc = rows + len(X), X.dtype, zlib.crc32(X.data, crc)
                file.write(X.data)
                for name, parts in columns.items():
                    parts.append(_label_values(batch, str(given[name])))
        kept = [Kept("X", (rows, len(self.features)), kind.str, crc)]
        for name, parts in columns.items():
            data = np.ascontiguousarray(np.concatenate(parts) if parts else np.zeros(0))
            raw = data.tobytes()
            (folder / name).write_bytes(raw)
            kept.append(Kept(name, data.shape, data.dtype.str, zlib.crc32(raw)))
        return kept


@dataclass(frozen=True)
class SpillRows:
    """Writes a partition whose columns Spark hands over by number."""

    spill: Spill
    names: list[str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = require("pyarrow", "spark")
        named = (arrow.RecordBatch.from_arrays(one.columns, self.names) for one in batches)
        return self.spill(named)


#: What a task reports, by name.
_ERRORS: dict[str, type[Exception]] = {
    "OSError": OSError,
    "ValueError": ValueError,
    "FilesUnread": FilesUnread,
}


def clear_spilled(folders: set[str]) -> None:
    """Remove folders of blocks, and those that tasks of the same source left when killed."""
    for folder in map(Path, folders):
        token = folder.name.rsplit("-", 2)[0]
        for one in (folder, *folder.parent.glob(f"{token}-*")):
            shutil.rmtree(one, ignore_errors=True)


def spill_error(what: str) -> Exception:
    """Return the error that a task has reported."""
    kind, text = json.loads(what)
    return _ERRORS[kind](text)


def _why(problem: OSError, directory: str | None, index: int) -> str:
    full = "the disk is full" if problem.errno == errno.ENOSPC else str(problem)
    where = "Spark's local folder (spark.local.dir)" if directory is None else directory
    return (
        f"Partition {index} could not be spilled to {where}: {full}. Nothing was left there. Each "
        "executor needs room for its share of the features, 8 bytes per number (4 where all "
        "columns are float); point spill_dir= to a larger disk."
    )


def matrix(batch: pa.RecordBatch, features: Sequence[str]) -> np.ndarray:
    """The features of an Arrow batch, row by row; float32 where all are, else float64."""
    arrow = require("pyarrow", "spark")
    columns = [batch.column(batch.schema.get_field_index(name)) for name in features]
    single = all(column.type == arrow.float32() for column in columns)
    X = np.empty((batch.num_rows, len(features)), dtype=np.float32 if single else np.float64)
    for j, column in enumerate(columns):
        if arrow.types.is_decimal(column.type) or arrow.types.is_boolean(column.type):
            column = column.cast(arrow.float64() if arrow.types.is_decimal(column.type) else "int8")
        X[:, j] = column.to_numpy(zero_copy_only=False)
    return X


def _label_values(batch: pa.RecordBatch, name: str) -> AnyArray:
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        raise ValueError(f"The column {name!r} holds {column.null_count} nulls; drop those rows.")
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object else values


@dataclass(frozen=True)
class _Opened:
    """A block that this Python worker has mapped, and its files as they were then."""

    block: Block
    stamps: list[Stamp]


_OPEN: dict[str, _Opened] = {}


def open_spilled(index: int, path: str, files: str) -> Block:
    """Map the files of a block, or take the mapping of an earlier pass.

    Parameters
    ----------
    index : int
    path : str
        The folder.
    files : str
        What was written there, as `as_text` says it.

    Raises
    ------
    OSError
        With the text of `GONE` where the files are not those that were written: `SparkBlocks` then
        writes all of them again.
    """
    try:
        if path not in _OPEN:
            for old in [p for p in _OPEN if not Path(p).exists()]:
                del _OPEN[old]
            kept = [Kept(name, tuple(shape), *rest) for name, shape, *rest in json.loads(files)]
            # stamped before they are read: what changes meanwhile shows at the next pass
            stamps = [Stamp.of(Path(path, one.name)) for one in kept]
            arrays = {one.name: one.map(Path(path)) for one in kept}
            y, weight, groups = (arrays.get(name) for name in ("y", "weight", "groups"))
            block = Block(index, arrays["X"], y, weight, groups)
            _OPEN[path] = _Opened(block, stamps)
        for stamp in _OPEN[path].stamps:  # a mapped file that was cut would end the process
            stamp.check()
    except (OSError, RuntimeError, ValueError) as problem:
        _OPEN.pop(path, None)
        raise OSError(f"{GONE}: {path}: {problem}") from problem
    return _OPEN[path].block


_FROZEN = {"modules": 0}


def spare_collector() -> None:
    """Leave what this process has imported out of the collector's sight; call it after a pass.

    Spark's Python workers collect garbage after every task, and every object of every library is
    looked at then: 75 ms, with the next pass waiting. What was imported does not become garbage.
    """
    if len(sys.modules) > _FROZEN["modules"]:
        gc.collect()
        gc.freeze()
        _FROZEN["modules"] = len(sys.modules)
