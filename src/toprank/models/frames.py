"""Tables of pandas, polars and pyarrow: their columns as arrays, and back.

Everything behind this file sees columns as NumPy arrays; nothing else knows the libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Frame
from toprank._extras import require
from toprank.models.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def library_of(frame: object) -> str:
    """Return "pandas", "polars" or "pyarrow"; anything else is a ModelError."""
    library = type(frame).__module__.split(".")[0]
    if library == "pyarrow" and hasattr(type(frame), "column_names"):
        return library  # asking the table itself would build every column
    if library == "polars" and hasattr(frame, "collect"):  # its columns would take a reading
        raise ModelError("The table is a polars LazyFrame; pass frame.collect().")
    if library in ("pandas", "polars") and hasattr(frame, "columns") and np.ndim(frame.columns):
        return library
    raise ModelError(
        f"The table is a {type(frame).__name__}; expected a data frame of pandas or polars, or a "
        "pyarrow Table, whose columns have names."
    )


def names_of(frame: Frame) -> list[str]:
    """Return the names of the columns, as text; two columns of one name are a ModelError."""
    raw = frame.column_names if library_of(frame) == "pyarrow" else list(frame.columns)
    names = [str(name) for name in raw]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ModelError(
            f"The table has several columns of the same name: {_quote_names(twice)}. Rename them."
        )
    return names


def require_columns(frame: Frame, wanted: Mapping[str, str | None]) -> None:
    """Raise ModelError unless a table has these columns; `wanted` is what they are for."""
    names = names_of(frame)
    for role, name in wanted.items():
        if name is not None and not isinstance(name, str) and np.ndim(name):
            raise ModelError(
                f"{role}= is {_describe_given(name)}; expected the name of a column. Put them "
                f"into the table (frame.assign({role}=values), then {role}={role!r}), or use "
                "TableRanker, whose fit takes a table and its labels apart."
            )
        if name is not None and name not in names:
            shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
            raise ModelError(
                f"{role}={name!r}: the table has no such column; it has {shown or 'none'}."
            )


def _describe_given(values: AnyArray | list[str] | pd.Series) -> str:
    return f"a {type(values).__name__} of {len(values)} values"


def n_rows(frame: Frame) -> int:
    """Return the number of rows."""
    return int(frame.num_rows if library_of(frame) == "pyarrow" else frame.shape[0])


def column(frame: Frame, name: str) -> np.ndarray:
    """Return a column as an array: numbers, booleans, dates or objects, missing as NaN or None."""
    library = library_of(frame)
    if library == "polars":
        return _from_polars(frame.get_column(name))
    if library == "pyarrow":
        values = frame.column(name)
        if _is_plain(values):
            return np.asarray(values.to_numpy())
        return _from_pandas(_from_arrow(values, name))
    return _from_pandas(frame.iloc[:, names_of(frame).index(name)])


def own_values(frame: Frame, name: str) -> pd.Series | pl.Series | pa.ChunkedArray:
    """Return a column as the table has it, to be carried into another table of its kind."""
    library = library_of(frame)
    if library == "polars":
        return frame.get_column(name)
    if library == "pyarrow":
        return frame.column(name)
    return frame.iloc[:, names_of(frame).index(name)].array


def columns(frame: Frame, names: list[str]) -> dict[str, np.ndarray]:
    """Return several columns by name."""
    library = library_of(frame)
    if library != "pandas":
        return {name: column(frame, name) for name in names}
    pairs = zip(names_of(frame), frame.items(), strict=True)
    wanted = set(names)
    found = {name: _from_pandas(series) for name, (_, series) in pairs if name in wanted}
    return {name: found[name] for name in names}


def declared_categories(frame: Frame) -> set[str]:
    """Return the columns whose type says that they hold categories, numbers though they may be."""
    library, names = library_of(frame), names_of(frame)
    types = frame.schema.types if library == "pyarrow" else list(frame.dtypes)
    words = ("category", "Categorical", "Enum", "dictionary")
    return {name for name, kind in zip(names, types, strict=True) if str(kind).startswith(words)}


def _from_pandas(series: pd.Series) -> AnyArray:
    kind = str(series.dtype)
    if kind.startswith("datetime64") and getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if kind == "category":
        series = series.astype(object)
    if kind.startswith(("Int", "UInt")) and _too_long_for_floats(series.min(), series.max()):
        return np.asarray(series.to_numpy(dtype=object, na_value=None))
    if kind.startswith(("Int", "UInt", "Float")):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())


def _too_long_for_floats(low: int, high: int) -> bool:
    """Whether whole numbers, if there are any, have more digits than floats keep."""
    try:
        return max(abs(int(low)), abs(int(high))) > 2**53
    except TypeError:  # all are missing
        return False


def _from_polars(series: pl.Series) -> AnyArray:
    polars = require("polars", "frames")
    kind = series.dtype
    if kind == polars.Datetime and getattr(kind, "time_zone", None) is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif kind == polars.Decimal:
        series = series.cast(polars.Float64)
    elif kind in (polars.Categorical, polars.Enum):
        series = series.cast(polars.String)
    gaps = kind.is_integer() and series.null_count() > 0  # NumPy has floats for those
    long = gaps and _too_long_for_floats(series.min(), series.max())
    if kind.is_nested() or kind == polars.Object or long:
        return np.fromiter(series.to_list(), dtype=object, count=len(series))
    return np.asarray(series.to_numpy())


def _is_plain(values: pa.ChunkedArray) -> bool:
    """Whether NumPy has such numbers as they are: pandas' way there takes much longer."""
    types, kind = require("pyarrow", "frames").types, values.type
    return types.is_floating(kind) or (types.is_integer(kind) and values.null_count == 0)


def _from_arrow(values: pa.ChunkedArray, name: str) -> pd.Series:
    """A column as pandas has it, dictionaries undone."""
    pyarrow = require("pyarrow", "frames")
    kind = values.type
    try:
        if pyarrow.types.is_dictionary(kind):
            values = values.cast(kind.value_type)
        if pyarrow.types.is_decimal(values.type):
            values = values.cast(pyarrow.float64())
        if pyarrow.types.is_time64(values.type):  # Python has no nanoseconds
            values = values.cast(pyarrow.time64("us"), safe=False)
        gaps = values.null_count > 0 and pyarrow.types.is_integer(values.type)
        ends = require("pyarrow.compute", "frames").min_max(values).as_py() if gaps else {}
        long = gaps and _too_long_for_floats(ends["min"], ends["max"])
        return values.to_pandas(integer_object_nulls=long)
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise ModelError(
            f"The column {name!r} ({kind}) cannot be read: {error}. Leave it out, or cast it."
        ) from error


def take(frame: Frame, rows: NDArray[np.intp]) -> Frame:
    """Return some of the rows, in the order given, as the same kind of table."""
    library = library_of(frame)
    if library == "pandas":
        return frame.iloc[rows]
    return frame.take(rows) if library == "pyarrow" else frame[rows]


def select(frame: Frame, names: list[str]) -> Frame:
    """Return some of the columns, as a table that estimators take: pyarrow's becomes pandas'."""
    library = library_of(frame)
    lacking = sorted(set(names) - set(names_of(frame)))
    if lacking:
        raise ModelError(f"The table lacks columns that the model reads: {_quote_names(lacking)}.")
    if library == "pandas":
        return frame[names]
    part = frame.select(names)
    return part if library == "polars" else part.to_pandas()


def replace_column(frame: Frame, name: str, values: AnyArray) -> Frame:
    """Return the table with other words in one of its columns."""
    library = library_of(frame)
    if library == "pandas":
        return frame.assign(**{name: values})
    words = [str(value) for value in values]
    if library == "polars":
        return frame.with_columns(require("polars", "frames").Series(name, words))
    return frame.set_column(
        frame.column_names.index(name), name, require("pyarrow", "frames").array(words)
    )


def make_frame(data: Mapping[str, Iterable[object]], library: str) -> Frame:
    """Return a table of the library's kind with the given columns."""
    if library == "pyarrow":
        pyarrow = require("pyarrow", "frames")
        kinds = (pyarrow.Array, pyarrow.ChunkedArray)
        return pyarrow.table({k: v if isinstance(v, kinds) else list(v) for k, v in data.items()})
    module = require(library, "frames")
    if library == "polars":
        own = module.Series
        return module.DataFrame(
            {k: list(v) if not isinstance(v, own) and _is_object(v) else v for k, v in data.items()}
        )
    return module.DataFrame(dict(data))


def _is_object(values: object) -> bool:
    return np.asarray(values).dtype == object


def _quote_names(names: list[str], most: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
