"""What a Spark frame is, where it is Parquet files and little else: read from its optimised plan.

Understood are plans that read files, pick and rename their columns, those of the folders' names
included, and keep the rows of simple filters (`spark_conditions`), on disks that the executors see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from toprank.blocks.spark_conditions import (
    Attributes,
    Condition,
    JavaObject,
    NotUnderstood,
    columns_of,
    items,
    kind_of,
    read_condition,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame

#: Types that Arrow and Spark read alike, as Spark and as Arrow name them.
ALIKE = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "string": "string",
    "date": "date32",
}
#: How Spark hands over a value of a folder's name.
_KEYS = {
    "int": "getInt",
    "bigint": "getLong",
    "double": "getDouble",
    "boolean": "getBoolean",
    "string": "getUTF8String",
    "date": "getInt",
}
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"


@dataclass(frozen=True)
class FilePiece:
    """The part of a file that a task of Spark reads: row groups whose middle lies in it."""

    path: str
    size: int  #: bytes of the whole file
    start: int
    length: int
    keys: Mapping[str, object] = field(default_factory=dict)  #: of the names of its folders

    def groups(self, metadata: pq.FileMetaData) -> list[int]:
        """Return the row groups of this piece."""
        return [
            number
            for number in range(metadata.num_row_groups)
            if self.start <= _middle(metadata.row_group(number)) < self.start + self.length
        ]


def _middle(group: pq.RowGroupMetaData) -> int:
    """The byte in the middle of a row group."""
    columns = [group.column(j) for j in range(group.num_columns)]
    first = columns[0].data_page_offset
    if columns[0].has_dictionary_page:
        first = min(first, columns[0].dictionary_page_offset)
    return int(first + sum(column.total_compressed_size for column in columns) // 2)


@dataclass(frozen=True)
class FrameFiles:
    """The files that a frame is, and what it takes of them."""

    pieces: list[list[FilePiece]]  #: what each partition reads
    columns: Mapping[str, str]  #: the column of the files that each of the frame is
    kinds: Mapping[str, str]  #: the types of those in Spark, and of those that the filter reads
    keys: frozenset[str] = frozenset()  #: those that lie in the names of folders
    condition: Condition | None = None  #: which rows stay


@dataclass(frozen=True)
class _Plan:
    """A plan that reads files, picks columns of them, and filters rows."""

    relation: JavaObject
    held: Mapping[str, str]  #: types of the columns of the files
    columns: Attributes
    conditions: tuple[Condition, ...] = ()


def find_files(df: DataFrame) -> FrameFiles | None:
    """Return the files that a frame is; None where it is more, or not certainly understood."""
    try:
        return _find_files(df.columns, df._jdf.queryExecution())
    except Exception:  # NotUnderstood, or Java's: what is no file, or of another version of Spark
        return None


def _find_files(names: list[str], execution: JavaObject) -> FrameFiles:
    logical = execution.optimizedPlan()
    plan = _read_plan(logical)
    chosen = [plan.columns[one.exprId().id()] for one in items(logical.output())]
    condition = None
    looked_at: set[str] = set()
    if plan.conditions:
        condition = reduce(lambda one, other: ("and", one, other), plan.conditions)
        looked_at = columns_of(condition)
    kinds = dict(chosen) | {name: plan.held[name] for name in looked_at}
    of_folders = set(plan.relation.partitionSchema().fieldNames())
    if not set(kinds.values()) <= set(ALIKE) or of_folders >= set(kinds):
        raise NotUnderstood("other types, or no column of a file")
    keys = frozenset(of_folders & set(kinds))
    columns = dict(zip(names, (name for name, _ in chosen), strict=True))
    return FrameFiles(
        _find_pieces(execution, plan.relation, {name: kinds[name] for name in keys}),
        columns,
        kinds,
        keys,
        condition,
    )


def _read_plan(plan: JavaObject) -> _Plan:
    kind = kind_of(plan)
    if kind == "LogicalRelation":
        columns = _attributes(plan)
        return _Plan(_file_relation(plan), dict(columns.values()), columns)
    if kind not in ("Project", "Filter"):
        raise NotUnderstood(kind)
    below = _read_plan(plan.child())
    if kind == "Filter":
        condition = read_condition(plan.condition(), below.columns)
        return replace(below, conditions=(*below.conditions, condition))
    columns = {}
    for one in items(plan.projectList()):  # what is computed has no entry
        picked = one.child() if kind_of(one) == "Alias" else one
        if kind_of(picked) == "AttributeReference" and picked.exprId().id() in below.columns:
            columns[one.exprId().id()] = below.columns[picked.exprId().id()]
    return replace(below, columns=columns)


def _file_relation(plan: JavaObject) -> JavaObject:
    relation = plan.relation()
    if relation.fileFormat().getClass().getName() != _FORMAT:
        raise NotUnderstood("another format")
    return relation


def _attributes(plan: JavaObject) -> dict[int, tuple[str, str]]:
    """The columns of files, by the numbers that a plan has for them."""
    held = set(plan.relation().schema().fieldNames())
    return {
        one.exprId().id(): (one.name(), one.dataType().simpleString())
        for one in items(plan.output())
        if one.name() in held  # not what Spark knows about the files themselves
    }


def _find_pieces(
    execution: JavaObject, relation: JavaObject, keys: Mapping[str, str]
) -> list[list[FilePiece]]:
    """What each partition of a plan reads, with the columns of the folders' names."""
    schema = list(relation.partitionSchema().fieldNames())
    places = {name: (schema.index(name), kind) for name, kind in keys.items()}
    found = [
        [_piece(file, places) for file in partition.files()]
        for partition in execution.toRdd().partitions()
    ]
    if not found:
        raise NotUnderstood("no partitions")
    return found


def _piece(file: JavaObject, places: Mapping[str, tuple[int, str]]) -> FilePiece:
    where = file.filePath().toUri()
    if where.getScheme() != "file":
        raise NotUnderstood("another store")
    keys = {}
    for name, (place, kind) in places.items():
        values, read = file.partitionValues(), _KEYS[kind]
        value = None if values.isNullAt(place) else getattr(values, read)(place)
        keys[name] = str(value) if kind == "string" and value is not None else value
    return FilePiece(where.getPath(), file.fileSize(), file.start(), file.length(), keys)
