"""Partitions of a Spark data frame as memory-mapped files: what an executor writes and reads."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toprank._extras import require
from toprank.blocks.source import Block

#: What a task says when its file is not there; Spark hands the text on.
GONE = "the blocks that toprank spilled are gone"


@dataclass(frozen=True)
class Spill:
    """Writes one partition to files; called with its Arrow batches, yields where they are."""

    features: list[str]
    target: str | None
    weight: str | None
    directory: str | None
    token: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        path: str | None = None
        what: str | None = None  # told to the driver, which stops at once: to retry would fail too
        try:
            path = self.write(batches, index)
        except OSError as problem:
            what = json.dumps(["OSError", _why(problem, self.directory, index)])
        except ValueError as problem:
            what = json.dumps(["ValueError", str(problem)])
        arrow = require("pyarrow", "spark")
        yield arrow.RecordBatch.from_arrays(
            [
                arrow.array([index], arrow.int32()),
                arrow.array([path], arrow.string()),
                arrow.array([what], arrow.string()),
                arrow.array([socket.gethostname()], arrow.string()),
            ],
            names=["index", "path", "error", "host"],
        )

    def _home(self) -> str | None:
        if self.directory is not None:
            return self.directory
        spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return spark if spark and os.path.isdir(spark) else None

    def write(self, batches: Iterator[Any], index: int) -> str:
        """Write one partition; return the folder, or remove it where that fails."""
        folder = tempfile.mkdtemp(prefix=f"{self.token}-{index}-", dir=self._home())
        try:
            self._write_files(batches, Path(folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _write_files(self, batches: Iterator[Any], folder: Path) -> None:
        """X row after row, then labels and weights, then what is needed to map X."""
        given = {"y": self.target, "weight": self.weight}
        columns: dict[str, list[Any]] = {name: [] for name, column in given.items() if column}
        rows, kind = 0, np.dtype(np.float64)
        with open(folder / "X", "wb") as file:
            for batch in batches:
                X = matrix(batch, self.features)
                rows, kind = rows + len(X), X.dtype
                file.write(X.data)
                for name, parts in columns.items():
                    parts.append(_values(batch, str(given[name])))
        for name, parts in columns.items():
            values = np.concatenate(parts) if parts else np.zeros(0)
            np.save(folder / f"{name}.npy", values, allow_pickle=False)
        shape = np.array([rows, len(self.features)])
        np.savez(folder / "shape.npz", shape=shape, kind=str(kind))


def clear_spilled(folders: set[str]) -> None:
    """Remove folders of blocks, and those that tasks of the same source left when killed."""
    for folder in map(Path, folders):
        token = folder.name.rsplit("-", 2)[0]
        for one in (folder, *folder.parent.glob(f"{token}-*")):
            shutil.rmtree(one, ignore_errors=True)


def told(what: str) -> Exception:
    """The error that a task told of."""
    kind, text = json.loads(what)
    return OSError(text) if kind == "OSError" else ValueError(text)


def _why(problem: OSError, directory: str | None, index: int) -> str:
    full = "the disk is full" if problem.errno == errno.ENOSPC else str(problem)
    where = "Spark's local folder (spark.local.dir)" if directory is None else directory
    return (
        f"Partition {index} could not be spilled to {where}: {full}. Nothing was left there. Each "
        "executor needs room for its share of the features, 8 bytes a number (4 where all columns "
        "are float); point spill_dir= to a larger disk."
    )


def matrix(batch: Any, features: Sequence[str]) -> Any:
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


def _values(batch: Any, name: str) -> Any:
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        raise ValueError(f"The column {name!r} holds {column.null_count} nulls; drop those rows.")
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object else values


#: Blocks that this Python worker has mapped already.
_OPEN: dict[str, Block] = {}


def open_block(index: int, path: str) -> Block:
    """Map the files of a block, or take the mapping of an earlier pass."""
    folder = Path(path)
    if not (folder / "shape.npz").exists():
        _OPEN.pop(path, None)
        raise FileNotFoundError(f"{GONE}: {path}")
    if path not in _OPEN:
        for old in [p for p in _OPEN if not Path(p).exists()]:
            del _OPEN[old]
        with np.load(folder / "shape.npz") as facts:
            shape, kind = tuple(facts["shape"].tolist()), np.dtype(str(facts["kind"]))
        empty = shape[0] == 0 or shape[1] == 0
        # as a plain array: slices of a memmap are slower
        mapped = None if empty else np.asarray(np.memmap(folder / "X", kind, "r", shape=shape))
        X = np.empty(shape, kind) if mapped is None else mapped
        _OPEN[path] = Block(index, X, _kept(folder, "y"), _kept(folder, "weight"))
    return _OPEN[path]


def _kept(folder: Path, name: str) -> Any:
    file = folder / f"{name}.npy"
    return np.load(file) if file.exists() else None
