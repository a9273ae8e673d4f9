"""Parquet files behind a Spark frame, which Python reads beside the executors.

Spark decodes a file in Java, makes rows of its columns, columns of these rows again (Arrow's), and
sends them through a socket. Where a frame is columns of Parquet files on disks that the executors
see, and rows of them that a simple filter keeps (`spark_plans`), Arrow decodes the same row groups
for a fraction of that. Each partition holds the rows that it holds in Spark, in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.blocks.parquet_files import stream_parquet
from toprank.blocks.spark_conditions import Condition, columns_of, has_old_days, keep_rows
from toprank.blocks.spark_plans import ALIKE, FilePiece, FrameFiles
from toprank.blocks.spill import FilesUnread, Spill

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Rows that are decoded at once: few enough that they become rows in the processor's cache.
_ROWS = 8192


@dataclass(frozen=True)
class SpillFiles:
    """Writes a partition as `Spill` does, of rows that it reads from the files themselves.

    It is called with batches of one column: the number of the partition.
    """

    spill: Spill
    files: FrameFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.spill(self.read(batches))

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the partitions that are numbered."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in self.files.pieces[number]:
                    yield from self._read_piece(piece)

    def _read_piece(self, piece: FilePiece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece; FilesUnread where Spark has to read it."""
        path = Path(piece.path)
        try:
            if path.stat().st_size != piece.size:
                raise FilesUnread("it is not the file that Spark listed")
            with stream_parquet(path) as file:
                self._check_types(file.schema_arrow)
                yield from self._read_rows(file, piece)
        except Exception as problem:
            if "CRC" in str(problem):  # a page is damaged, which Spark would not look for
                raise
            raise FilesUnread(f"{path} could not be read as Spark does: {problem}") from problem

    def _check_types(self, schema: pa.Schema) -> None:
        arrow = require("pyarrow", "spark")
        for name, kind in self.files.kinds.items():
            place = schema.get_field_index(name)  # -1 also where two have the name
            if name in self.files.keys:
                continue
            if place < 0 or schema.field(place).type != arrow.type_for_alias(ALIKE[kind]):
                raise FilesUnread(f"it has no column {name!r} of the type {kind}")

    def _read_rows(self, file: pq.ParquetFile, piece: FilePiece) -> Iterator[pa.RecordBatch]:
        """Yield the rows that stay, under the names that they have in the frame."""
        arrow = require("pyarrow", "spark")
        condition, groups = self.files.condition, piece.groups(file.metadata)
        if condition is not None and columns_of(condition) - self.files.keys:
            groups = [one for one in groups if self._keeps_any(condition, file, one, piece)]
        for rows in self._batches(file, groups, piece, self.files.kinds):
            columns = [rows[name] for name in self.files.columns.values()]
            batch = arrow.record_batch(columns, names=list(self.files.columns))
            yield batch if condition is None else batch.filter(keep_rows(condition, rows))

    def _keeps_any(
        self, condition: Condition, file: pq.ParquetFile, group: int, piece: FilePiece
    ) -> bool:
        """Whether a row group has rows that stay: of others no more columns are decoded."""
        looked_at = columns_of(condition)
        return any(
            keep_rows(condition, rows).true_count
            for rows in self._batches(file, [group], piece, looked_at)
        )

    def _batches(
        self, file: pq.ParquetFile, groups: list[int], piece: FilePiece, names: Collection[str]
    ) -> Iterator[dict[str, pa.Array]]:
        """Yield columns of row groups, by their names in the files and folders."""
        of_file = [name for name in names if name not in self.files.keys]
        of_folders = [name for name in names if name in self.files.keys]
        for batch in file.iter_batches(
            _ROWS, row_groups=groups, columns=of_file, use_threads=False
        ):
            rows = dict(zip(batch.schema.names, batch.columns, strict=True))
            if any(map(has_old_days, batch.columns)):
                raise FilesUnread("it has days before 1582, which Spark may count otherwise")
            for name in of_folders:
                rows[name] = self._repeat_key(piece, name, batch.num_rows)
            yield rows

    def _repeat_key(self, piece: FilePiece, name: str, n: int) -> pa.Array:
        """A column of a folder's name."""
        arrow = require("pyarrow", "spark")
        kind, value = self.files.kinds[name], piece.keys[name]
        type_ = arrow.type_for_alias(ALIKE[kind])
        if kind == "date":  # Spark counts days
            return arrow.repeat(arrow.array([value], "int32").cast(type_)[0], n)
        return arrow.repeat(arrow.scalar(value, type_), n)
