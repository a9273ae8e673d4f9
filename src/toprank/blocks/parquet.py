"""Parquet files as a source of row blocks: read anew at every pass, never held as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from toprank._arrays import Frame, Matrix
from toprank._extras import require
from toprank._files import path_on_disk, replace_file
from toprank._numerics import FloatArray
from toprank.blocks.columns import (
    Columns,
    TableColumns,
    batch_column,
    check_block_rows,
    rows_per_block,
)
from toprank.blocks.decoded import DecodedCopy, in_rows
from toprank.blocks.parquet_files import ParquetPart, footer_bytes, read_footer
from toprank.blocks.places import FoundFile, Paths, find_files
from toprank.blocks.source import Block, LocalSource

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Cut:
    """Where a block lies: rows start:stop of a row group of a file."""

    index: int
    file: int
    group: int
    start: int
    stop: int


class ParquetSource(LocalSource):
    """Row groups of Parquet files, in order of file name and row group, cut where they are long."""

    reads_anew = True

    def __init__(
        self,
        parts: Sequence[ParquetPart],
        columns: TableColumns,
        block_rows: int | None,
        n_jobs: int | None,
        cache_dir: str | PathLike[str] | Literal[False] | None = None,
    ):
        self.parts = tuple(parts)
        self.columns = columns
        self.n_jobs = n_jobs
        self.grouped = columns.group is not None
        self.n_features = len(columns.features)
        self.feature_names = np.array(columns.features, dtype=object)
        self.n_rows = sum(sum(part.row_groups) for part in parts)
        self.block_rows = block_rows or rows_per_block(self.n_features)
        self._cache_dir = cache_dir
        self._copy: DecodedCopy | None = None

    @property
    def _n_bytes(self) -> int:
        return self.n_rows * self.n_features * self.columns.dtype.itemsize

    def expect_passes(self) -> None:
        if self._copy is None and self._cache_dir is not False and self.n_features:
            self._copy = DecodedCopy(self._n_bytes, self._cache_dir)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_copy": None}  # a file without a name stays in its process

    def _cuts(self) -> Iterator[_Cut]:
        index = 0
        for file, part in enumerate(self.parts):
            for group, rows in enumerate(part.row_groups):
                for start in range(0, rows, self.block_rows):
                    yield _Cut(index, file, group, start, min(start + self.block_rows, rows))
                    index += 1

    def name_of(self, index: int) -> str:
        cut = next(cut for cut in self._cuts() if cut.index == index)
        path = self.parts[cut.file].path
        return f"{path}, row group {cut.group}, rows {cut.start} to {cut.stop - 1}"

    def identity(self) -> bytes:
        """What the footers of the files say: sizes, places, least and largest entries of columns.

        A number that changed between the least and the largest of a column, and leaves pages as
        long as they were, is not noticed.
        """
        digest = hashlib.blake2b()
        for part in self.parts:
            digest.update(footer_bytes(part.path))
        return digest.digest()

    def read(self, *, features: bool = True) -> Generator[Block, None, None]:
        copy = self._copy
        if not features or copy is None:
            yield from in_rows(self._decode(features), self._n_bytes)
        elif not (copy.ready and self.columns.labels):
            yield from copy.keep(self._decode(True))
        elif copy.with_labels:
            self._check_stamps()
            yield from copy.read()
            self._check_stamps()
        else:
            yield from copy.fill(self._decode(False))

    def _check_stamps(self) -> None:
        """Refuse files that are not those which the copy was made of."""
        for part in self.parts:
            part.stamp.check()

    def _decode(self, features: bool) -> Generator[Block, None, None]:
        names = self.columns.names(features)
        index = 0
        for part in self.parts:
            for group, batch in self._batches(part, names):
                where = f"{part.path}, row group {group}"
                yield self._block(index, batch, features, where)
                index += 1
        if index == 0:
            yield self._empty()

    def _batches(self, part: ParquetPart, names: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        stored = [name for name in names if name not in part.keys]
        with part.open_pass() as file:
            for group, rows in enumerate(part.row_groups):
                if rows == 0:
                    continue
                left = rows
                for batch in file.iter_batches(self.block_rows, row_groups=[group], columns=stored):
                    if batch.num_rows != min(left, self.block_rows):
                        raise RuntimeError(
                            f"{part.path}: row group {group} came in pieces of another size than "
                            f"asked for ({batch.num_rows} rows). Pass a smaller block_rows."
                        )
                    left -= batch.num_rows
                    batch.validate(full=True)
                    yield group, part.add_keys(batch, names)
                if left:  # Arrow takes the end of a file that was cut for the end of its rows
                    part.stamp.check()
                    raise ValueError(
                        f"{part.path} cannot be read as Parquet: row group {group} has "
                        f"{rows - left} of the {rows} rows that it announces. Write it again, or "
                        "leave it out."
                    )

    def _block(self, index: int, batch: Frame, features: bool, where: str) -> Block:
        names = self.columns.features if features else ()
        columns = [batch_column(batch, name, where, self.columns.nulls) for name in names]
        X = Columns(columns, batch.num_rows, self.columns.dtype)
        named = (self.columns.target, self.columns.weight, self.columns.group)
        y, weight, groups = (
            None if name is None else batch_column(batch, name, where) for name in named
        )
        return Block(index, X, y, weight, groups)

    def _empty(self) -> Block:
        X = np.empty((0, self.n_features), dtype=self.columns.dtype)
        none = np.empty(0)
        weight, groups = (
            None if name is None else none for name in (self.columns.weight, self.columns.group)
        )
        return Block(0, X, none, weight, groups)

    def write_scores(
        self,
        score: Callable[..., FloatArray],
        to: str | PathLike[str] | None = None,
        *,
        keep: Sequence[str] = (),
    ) -> Path | list[Path]:
        """Write Parquet files with a column ``score``; return their paths.

        ``to`` is a file (it must end with .parquet and gets all rows, in order) or a folder (which
        gets one file for each one read, of the same name). ``keep`` names columns to copy.
        """
        if to is None:
            raise ValueError(
                "Scores of Parquet files are written to files: pass to='scores.parquet', or "
                "to='a folder' for one file of scores for each file read."
            )
        target = path_on_disk(to, "to")
        if target.suffix == ".parquet":
            self._write(score, target, self.parts, keep)
            return target
        target.mkdir(parents=True, exist_ok=True)
        outputs = [target / part.path.name for part in self.parts]
        if len(set(outputs)) < len(outputs):
            raise ValueError(
                "Files of the same name lie in different folders, so one folder cannot hold their "
                "scores. Write one file with to='scores.parquet'."
            )
        for part, output in zip(self.parts, outputs, strict=True):
            self._write(score, output, [part], keep)
        return outputs

    def _write(
        self,
        score: Callable[[Matrix], FloatArray],
        output: Path,
        parts: Sequence[ParquetPart],
        keep: Sequence[str],
    ) -> None:
        arrow, parquet = require("pyarrow", "frames"), require("pyarrow.parquet", "frames")
        if any(output.resolve() == part.path.resolve() for part in self.parts):
            raise ValueError(f"{output} is one of the files that are scored; choose another to=.")
        one = ParquetSource(parts, self.columns, self.block_rows, self.n_jobs, cache_dir=False)
        schema = arrow.schema([*one._kept_fields(keep), ("score", arrow.float64())])
        with replace_file(output) as file, parquet.ParquetWriter(file, schema) as writer:
            kept = one._kept_batches(keep)
            with closing(one.map(lambda block: score(block.X))) as found:
                for scores in found:
                    if not len(scores):  # a source without rows has one block, and no batch
                        continue
                    columns = [] if kept is None else next(kept).columns
                    writer.write_batch(
                        arrow.record_batch([*columns, arrow.array(scores)], schema=schema)
                    )

    def _kept_fields(self, keep: Sequence[str]) -> list[pa.Field]:
        schema = read_footer(FoundFile(self.parts[0].path, self.parts[0].keys))[1]
        for name in keep:
            if name not in schema.names or name == "score":
                raise ValueError(
                    f"keep={name!r}: {self.parts[0].path} has no such column, or it is the name "
                    "of the new column of scores."
                )
        return [schema.field(name) for name in keep]

    def _kept_batches(self, keep: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        if not keep:
            return None
        names = list(keep)
        return (
            batch.select(names) for part in self.parts for _, batch in self._batches(part, names)
        )


def from_parquet(
    path: Paths,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    nulls: str = "refuse",
    block_rows: int | None = None,
    n_jobs: int | None = None,
    cache_dir: str | PathLike[str] | Literal[False] | None = None,
) -> ParquetSource:
    """Rows of Parquet files, streamed at every pass: memory holds a few blocks, whatever the size.

    Parameters
    ----------
    path : str, path, pyarrow dataset, or list of them
        A file, a folder (its ``*.parquet`` files, those of subfolders included), a glob pattern, or
        an address of these such as ``s3://bucket/folder`` (by pyarrow, or by fsspec where that is
        installed). Rows come in order of file name, then row group. The names of subfolders such
        as ``day=3`` are a column ``day``.
    target : str, optional
        The column of labels; not needed to score rows.
    columns : sequence of str, optional
        The features; by default every column but the target and the weight. They must be
        numbers: float32 stays float32, categories, text and dates are refused.
    weight : str, optional
        A column of repetition counts.
    group : str, optional
        A column that says which rows belong together, or when they were seen: what makes folds of
        the rows, as in `toprank.PNormPushCV`, keeps groups whole, or follows the time. It is a
        feature only if ``columns`` names it.
    nulls : {"refuse", "nan"}, default="refuse"
        Missing values of features: an error that names the column, or NaN, which trees can split
        by (``PushTrees.fit_blocks``) and linear rankers refuse.
    block_rows : int, optional
        Rows of a block, at the most; by default 2 million entries per block.
    n_jobs : int, optional
        Threads that work on blocks, beside one that reads. The answer does not depend on it.
    cache_dir : path or False, optional
        Where the first pass of a fit leaves a copy of the numbers, which the passes after it read
        ten times faster than they would decode them: a file without a name that is gone with the
        source, or with the process. By default the folder for temporary files. There is none where
        it would take more than a quarter of what is free, or where the disk is slower than
        decoding; False forbids it. The answer does not depend on it.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> table = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(malignant=y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/part-0.parquet")
    ...     source = blocks.from_parquet(folder, target="malignant")
    ...     ranker = PNormPush(p=4).fit_blocks(source)
    >>> ranker.feature_names_in_[:2].tolist()
    ['x0', 'x1']
    """
    check_block_rows(block_rows)
    require("pyarrow.parquet", "frames")
    files = find_files(path)
    first, first_schema = read_footer(files[0])
    chosen = TableColumns.choose(first.path, first_schema, target, columns, weight, group, nulls)
    parts = [first]
    for file in files[1:]:
        part, schema = read_footer(file)
        chosen.check_same(file.place, schema, first.path, first_schema)
        parts.append(part)
    return ParquetSource(parts, chosen, block_rows, n_jobs, cache_dir)
