"""Columns of a table that is read in pieces: which they are, what numbers they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from toprank._arrays import AnyArray, Frame
from toprank._extras import require

if TYPE_CHECKING:
    import pyarrow as pa

#: Entries of a block of features: 8 MB of float32.
_BLOCK_ENTRIES = 1 << 21
_ADVICE = {
    "string": "encode it as numbers",
    "dictionary": "encode it as numbers, for example one column of 0 and 1 for each category",
    "date": "turn it into a number, such as days since a fixed day",
    "decimal": "cast it to double",
}


@dataclass(frozen=True)
class TableColumns:
    """The columns that are read: features in order, the target, the weight, the group."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None
    dtype: np.dtype[np.generic]  #: of the matrix of features
    types: Mapping[str, pa.DataType] = field(
        default_factory=dict, compare=False
    )  #: Arrow's, by column
    group: str | None = None
    nulls: bool = False  #: whether missing values of features are NaN, or refused

    @classmethod
    def choose(
        cls,
        path: object,
        schema: pa.Schema,
        target: str | None,
        columns: Sequence[str] | None,
        weight: str | None,
        group: str | None = None,
        nulls: str = "refuse",
    ) -> TableColumns:
        """Settle the columns from the first file."""
        if nulls not in ("refuse", "nan"):
            raise ValueError(f"nulls={nulls!r}: expected 'refuse' or 'nan'.")
        names = schema.names
        others = (target, weight, group)
        for role, name in zip(("target", "weight", "group"), others, strict=True):
            if name is not None and name not in names:
                raise ValueError(
                    f"{path} has no column {name!r} for {role}=; it has {_list_names(names)}."
                )
        if columns is None:
            columns = [name for name in names if name not in others]
        if isinstance(columns, str):
            raise ValueError(f"columns={columns!r}: expected a list of names.")
        for name in columns:
            if name not in names:
                raise ValueError(f"{path} has no column {name!r}; it has {_list_names(names)}.")
            if name in (target, weight):
                raise ValueError(f"Column {name!r} cannot be a feature and the target or weight.")
        numbers = [_number_type(path, schema.field(name), columns) for name in columns]
        if weight is not None:
            _number_type(path, schema.field(weight), columns)
        dtype = np.result_type(*numbers) if numbers else np.dtype(np.float64)
        if dtype == np.float16:
            dtype = np.dtype(np.float32)
        if nulls == "nan" and dtype.kind != "f":
            dtype = np.dtype(np.float64)
        names = [*columns, *(name for name in others if name is not None)]
        types = {name: schema.field(name).type for name in names}
        return cls(tuple(columns), target, weight, dtype, types, group, nulls == "nan")

    @property
    def labels(self) -> list[str]:
        named = (self.target, self.weight, self.group)
        return list(dict.fromkeys(name for name in named if name is not None))

    def names(self, features: bool = True) -> list[str]:
        """Return all columns that are read, or those besides the features; each one once."""
        return list(dict.fromkeys([*(self.features if features else ()), *self.labels]))

    def take(self, table: Frame, names: Sequence[str], what: str) -> Frame:
        """Return these columns of a table, in the types that the first table had."""
        arrow = require("pyarrow", "frames")
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise ValueError(
                f"{what}: a later table has no column {missing[0]!r}, which the first one has. "
                "All tables must have the same columns."
            )
        types = {name: self.types[name] for name in names}
        try:
            return table.select(list(names)).cast(arrow.schema(types.items()))
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            raise ValueError(
                f"{what}: a later table has other types than the first one ({error}). Cast its "
                "columns so that all tables agree."
            ) from error

    def check_same(
        self, path: object, schema: pa.Schema, first: object, first_schema: pa.Schema
    ) -> None:
        """Refuse a file whose columns are not those of the first."""
        names = set(schema.names)
        for name in (*self.features, *self.labels):
            if name not in names:
                raise ValueError(
                    f"{path} has no column {name!r}, which {first} has. All files must have the "
                    "same columns; leave it out with columns=, or add it to the file."
                )
            here, there = schema.field(name).type, first_schema.field(name).type
            if here != there:
                raise ValueError(
                    f"Column {name!r} is {here} in {path} but {there} in {first}. Cast it so that "
                    "all files agree."
                )
        known = set(first_schema.names)
        extra = [name for name in schema.names if name not in known]
        if extra and len(self.features) + len(self.labels) == len(first_schema.names):
            raise ValueError(
                f"{path} has the column {extra[0]!r}, which {first} has not. Name the features "
                "with columns= to leave it out."
            )


def _list_names(names: Sequence[str], most: int = 12) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def _number_type(path: object, column: pa.Field, columns: Sequence[str]) -> np.dtype[np.generic]:
    """The NumPy type of a numeric column; advice for any other."""
    types = require("pyarrow", "frames").types
    kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    what, advice = "not a number", "cast it to a number"
    if types.is_dictionary(kind):
        what, advice = "categorical", _ADVICE["dictionary"]
    elif types.is_string(kind) or types.is_large_string(kind):
        what, advice = "text", _ADVICE["string"]
    elif types.is_temporal(kind):
        what, advice = "a date or time", _ADVICE["date"]
    elif types.is_decimal(kind):
        what, advice = "decimal", _ADVICE["decimal"]
    raise ValueError(
        f"Column {column.name!r} of {path} is {what} ({kind}), and features must be numbers: "
        f"{advice}, or leave the column out with columns=[...]. For tables of words and dates "
        "there is toprank.models.fit_table_blocks(blocks.from_tables(...), target)."
    )


class Columns:
    """Columns of equal length that are indexed like a matrix: ``X[rows]``, ``X[rows, first:last]``.

    Files of columns are decoded column by column. Copied into a matrix at once, every number would
    go to memory and back; a few thousand rows at a time, put together when they are asked for,
    stay in the cache.

    Parameters
    ----------
    columns : sequence of arrays of shape (n,)
    n_rows : int
    dtype : dtype
        Of the matrices that indexing gives.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.blocks.columns import Columns
    >>> X = Columns([np.array([1, 2, 3]), np.array([0.5, 1.5, 2.5])], 3, np.dtype(np.float64))
    >>> X[1:]
    array([[2. , 1.5],
           [3. , 2.5]])
    """

    ndim = 2

    def __init__(self, columns: Sequence[AnyArray], n_rows: int, dtype: np.dtype[np.generic]):
        self.columns = columns
        self.shape = (n_rows, len(columns))
        self.dtype = dtype

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: object) -> AnyArray:
        rows, which = key if isinstance(key, tuple) else (key, slice(None))
        parts = [column[rows] for column in self.columns[which]]
        n = len(parts[0]) if parts else len(np.empty(self.shape[0])[rows])
        matrix = np.empty((n, len(parts)), dtype=self.dtype, order="F")
        for j, part in enumerate(parts):
            matrix[:, j] = part
        return matrix

    def by_rows(self, rows: slice = slice(None), room: np.ndarray | None = None) -> np.ndarray:
        """Return some rows as a matrix whose rows lie side by side, in ``room`` if it is given."""
        n = len(range(*rows.indices(self.shape[0])))
        matrix = np.empty((n, self.shape[1]), dtype=self.dtype) if room is None else room[:n]
        for j, column in enumerate(self.columns):
            matrix[:, j] = column[rows]
        return matrix

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)


def check_block_rows(block_rows: int | None) -> None:
    """Raise ValueError where blocks are to have no rows."""
    if block_rows is not None and block_rows < 1:
        raise ValueError(f"block_rows={block_rows!r}: expected a number of rows, 1 or more.")


def batch_column(batch: Frame, name: str, where: str, nulls: bool = False) -> AnyArray:
    """Return a column of a piece of a table as an array; missing values are NaN or refused."""
    column = batch.column(name)
    if column.null_count and nulls:
        arrow = require("pyarrow", "frames")
        if not arrow.types.is_floating(column.type):
            column = column.cast(arrow.float64())
    elif column.null_count:
        raise ValueError(
            f"Column {name!r} has {column.null_count} missing values in {where}. Fill them, or "
            "drop such rows, before blocks are made; for trees, nulls='nan' leaves them missing; "
            "and toprank.models.fit_table_blocks(blocks.from_tables(...)) fills them for any model."
        )
    if hasattr(column, "dictionary"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def rows_per_block(n_features: int) -> int:
    """Return how many rows a block has where the user does not say."""
    return max(1024, _BLOCK_ENTRIES // max(1, n_features))
