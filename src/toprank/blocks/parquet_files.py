"""Parquet files behind a block source: which they are, what columns they have, what is wrong.

Everything that can be refused is refused from the footers, before a row is read, and names the
file and the column. A file is stamped with its size and time, so that one that changes between
two passes is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require
from toprank._files import Stamp
from toprank.blocks.places import FoundFile, Place

#: Bytes of each column chunk that are read at once.
_BUFFER = 1 << 19
_ADVICE = {
    "string": "encode it as numbers",
    "dictionary": "encode it as numbers, for example one column of 0 and 1 for each category",
    "date": "turn it into a number, such as days since a fixed day",
    "decimal": "cast it to double",
}


@dataclass(frozen=True)
class ParquetPart:
    """One file: its row groups, its stamp, and what the names of its folders say of its rows."""

    path: Place
    row_groups: tuple[int, ...]  #: rows of each
    stamp: Stamp
    keys: Mapping[str, Any]  #: columns whose one value is in the names of the folders

    @contextmanager
    def open_pass(self) -> Iterator[Any]:
        """Open the file for one pass."""
        self.stamp.check()
        # column chunks are streamed: a row group may be larger than the memory there is
        with _open_parquet(
            self.path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
        ) as file:
            yield file
        self.stamp.check()  # nor may it have changed during the pass

    def add_keys(self, batch: Any, names: Sequence[str]) -> Any:
        """Add the columns that are in the names of the folders to rows of the file."""
        own = [name for name in names if name in self.keys]
        if not own:
            return batch
        arrow = require("pyarrow", "frames")
        columns = [arrow.repeat(self.keys[name], batch.num_rows) for name in own]
        return arrow.record_batch([*batch.columns, *columns], names=[*batch.schema.names, *own])


@contextmanager
def _open_parquet(path: Place, **options: Any) -> Iterator[Any]:
    parquet = require("pyarrow.parquet", "frames")
    with name_in_errors(path), ExitStack() as stack:
        source = path if isinstance(path, Path) else stack.enter_context(path.open_input())
        yield stack.enter_context(parquet.ParquetFile(source, **options))


@contextmanager
def name_in_errors(path: Place) -> Iterator[None]:
    """Say which file could not be read."""
    arrow = require("pyarrow", "frames")
    try:
        yield
    except MemoryError as error:  # of Arrow too: the file is not to blame
        raise MemoryError(
            f"There is not enough memory to read a block of {path} ({str(error).strip()}). Free "
            "some, pass a smaller block_rows=, or write the file in smaller row groups."
        ) from error
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} cannot be read as Parquet: {str(error).strip()} The file may be damaged or "
            "half written; write it again, or leave it out."
        ) from error


def read_footer(found: FoundFile) -> tuple[ParquetPart, Any]:
    """Read the footer of a file: its row groups, and its schema with the names of its folders."""
    arrow = require("pyarrow", "frames")
    path, stamp = found.place, Stamp.of(found.place)
    with _open_parquet(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        rows = tuple(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
    keys = {name: value for name, value in found.keys.items() if name not in schema.names}
    for name, value in keys.items():
        schema = schema.append(arrow.field(name, arrow.scalar(value).type))
    return ParquetPart(path, rows, stamp, keys), schema


@dataclass(frozen=True)
class ParquetColumns:
    """The columns that are read: features in order, the target, the weight."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None
    dtype: np.dtype[Any]  #: of the matrix of features

    @classmethod
    def choose(
        cls,
        path: Place,
        schema: Any,
        target: str | None,
        columns: Sequence[str] | None,
        weight: str | None,
    ) -> ParquetColumns:
        """Settle the columns from the first file."""
        names = schema.names
        for role, name in (("target", target), ("weight", weight)):
            if name is not None and name not in names:
                raise ValueError(
                    f"{path} has no column {name!r} for {role}=; it has {_list_names(names)}."
                )
        if columns is None:
            columns = [name for name in names if name not in (target, weight)]
        if isinstance(columns, str):
            raise ValueError(f"columns={columns!r}: expected a list of names.")
        for name in columns:
            if name not in names:
                raise ValueError(f"{path} has no column {name!r}; it has {_list_names(names)}.")
            if name in (target, weight):
                raise ValueError(f"Column {name!r} cannot be a feature and the target or weight.")
        types = [_number_type(path, schema.field(name), columns) for name in columns]
        if weight is not None:
            _number_type(path, schema.field(weight), columns)
        dtype = np.result_type(*types) if types else np.dtype(np.float64)
        if dtype == np.float16:
            dtype = np.dtype(np.float32)
        return cls(tuple(columns), target, weight, dtype)

    @property
    def labels(self) -> list[str]:
        return [name for name in (self.target, self.weight) if name is not None]

    def check_same(self, path: Place, schema: Any, first: Place, first_schema: Any) -> None:
        """Refuse a file whose columns are not those of the first."""
        for name in (*self.features, *self.labels):
            if name not in schema.names:
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
        extra = [name for name in schema.names if name not in first_schema.names]
        if extra and len(self.features) + len(self.labels) == len(first_schema.names):
            raise ValueError(
                f"{path} has the column {extra[0]!r}, which {first} has not. Name the features "
                "with columns= to leave it out."
            )


def _list_names(names: Sequence[str], most: int = 12) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def _number_type(path: Place, field: Any, columns: Sequence[str]) -> np.dtype[Any]:
    """The NumPy type of a numeric column; advice for any other."""
    types = require("pyarrow", "frames").types
    kind = field.type
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
        f"Column {field.name!r} of {path} is {what} ({kind}), and features must be numbers: "
        f"{advice}, or leave the column out with columns=[...]."
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
    >>> from toprank.blocks.parquet_files import Columns
    >>> X = Columns([np.array([1, 2, 3]), np.array([0.5, 1.5, 2.5])], 3, np.dtype(np.float64))
    >>> X[1:]
    array([[2. , 1.5],
           [3. , 2.5]])
    """

    ndim = 2

    def __init__(self, columns: Sequence[NDArray[Any]], n_rows: int, dtype: np.dtype[Any]):
        self.columns = columns
        self.shape = (n_rows, len(columns))
        self.dtype = dtype

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        rows, which = key if isinstance(key, tuple) else (key, slice(None))
        parts = [column[rows] for column in self.columns[which]]
        n = len(parts[0]) if parts else len(np.empty(self.shape[0])[rows])
        matrix = np.empty((n, len(parts)), dtype=self.dtype, order="F")
        for j, part in enumerate(parts):
            matrix[:, j] = part
        return matrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)
