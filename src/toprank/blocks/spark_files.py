"""Plain Parquet files behind a Spark frame, which Python reads beside the executors.

Spark decodes a file in Java, makes rows of its columns, columns of these rows again (Arrow's), and
sends them through a socket. Where a frame is nothing but columns of Parquet files on disks that the
executors see, Arrow decodes the same row groups for a fraction of that. Each partition holds the
rows that it holds in Spark, in the same order. Anything else (a filter, a join, a cached frame,
another store, a type that Arrow and Spark read differently) is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from toprank._extras import require
from toprank.blocks.parquet_files import stream_parquet
from toprank.blocks.spill import FilesUnread, Spill

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame

#: Rows that are decoded at once: few enough that they become rows in the processor's cache.
_ROWS = 8192
#: Types that Arrow and Spark read alike, as Spark and as Arrow name them.
_ALIKE = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "string": "string",
}
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"


@dataclass(frozen=True)
class FilePiece:
    """The part of a file that a task of Spark reads: row groups whose middle lies in it."""

    path: str
    size: int  #: bytes of the whole file
    start: int
    length: int

    def groups(self, metadata: pq.FileMetaData) -> list[int]:
        """Return the row groups of this piece."""
        return [
            number
            for number in range(metadata.num_row_groups)
            if self.start <= _middle(metadata.row_group(number)) < self.start + self.length
        ]


#: What each partition of a frame reads.
Pieces: TypeAlias = list[list[FilePiece]]


def _middle(group: pq.RowGroupMetaData) -> int:
    """The byte in the middle of a row group."""
    columns = [group.column(j) for j in range(group.num_columns)]
    first = columns[0].data_page_offset
    if columns[0].has_dictionary_page:
        first = min(first, columns[0].dictionary_page_offset)
    return int(first + sum(column.total_compressed_size for column in columns) // 2)


def find_pieces(df: DataFrame) -> Pieces | None:
    """Return the pieces of files that the partitions of a frame are; None where it is more."""
    if not all(kind in _ALIKE for _, kind in df.dtypes):
        return None
    try:
        plan = df._jdf.queryExecution()
        if not _is_plain(plan.optimizedPlan(), df.columns):
            return None
        found = [_files_of(partition) for partition in plan.toRdd().partitions()]
    except Exception:  # of Java: another version of Spark calls these things otherwise
        return None
    return None if not found or None in found else [one for one in found if one is not None]


def _is_plain(plan: Any, columns: Sequence[str]) -> bool:
    """Whether a plan reads these columns of Parquet files and does nothing else."""
    kind = plan.getClass().getSimpleName()
    if kind == "Project":
        chosen = plan.projectList()
        kinds = {chosen.apply(j).getClass().getSimpleName() for j in range(chosen.size())}
        return kinds <= {"AttributeReference"} and _is_plain(plan.child(), columns)
    if kind != "LogicalRelation":
        return False
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return False
    of_folders = set(relation.partitionSchema().fieldNames())
    return relation.fileFormat().getClass().getName() == _FORMAT and not of_folders & set(columns)


def _files_of(partition: Any) -> list[FilePiece] | None:
    """The files of one partition, where all lie on disks."""
    if partition.getClass().getSimpleName() != "FilePartition":
        return None
    pieces = []
    for file in partition.files():
        where = file.filePath().toUri()
        if where.getScheme() != "file":
            return None
        pieces.append(FilePiece(where.getPath(), file.fileSize(), file.start(), file.length()))
    return pieces


@dataclass(frozen=True)
class SpillFiles:
    """Writes a partition as `Spill` does, of rows that it reads from the files themselves.

    It is called with batches of one column: the number of the partition.
    """

    spill: Spill
    pieces: Pieces
    columns: Sequence[tuple[str, str]]  #: names, and their types in Spark

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.spill(self.read(batches))

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the partitions that are numbered."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in self.pieces[number]:
                    yield from self._read_piece(piece)

    def _read_piece(self, piece: FilePiece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece; FilesUnread where Spark has to read it."""
        path = Path(piece.path)
        names = [name for name, _ in self.columns]
        try:
            if path.stat().st_size != piece.size:
                raise FilesUnread("it is not the file that Spark listed")
            with stream_parquet(path) as file:
                self._check_types(file.schema_arrow)
                yield from file.iter_batches(
                    _ROWS, row_groups=piece.groups(file.metadata), columns=names, use_threads=False
                )
        except Exception as problem:
            if "CRC" in str(problem):  # a page is damaged, which Spark would not look for
                raise
            raise FilesUnread(f"{path} could not be read as Spark does: {problem}") from problem

    def _check_types(self, schema: pa.Schema) -> None:
        arrow = require("pyarrow", "spark")
        for name, kind in self.columns:
            place = schema.get_field_index(name)  # -1 also where two have the name
            if place < 0 or schema.field(place).type != arrow.type_for_alias(_ALIKE[kind]):
                raise FilesUnread(f"it has no column {name!r} of the type {kind}")
