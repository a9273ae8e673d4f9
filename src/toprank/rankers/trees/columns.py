"""From what users hand over, arrays and data frames with categories, to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Frame, Matrix, TableLike
from toprank._numerics import FloatArray
from toprank.pairs import check_table, is_frame

#: Names of column types that hold categories, in pandas and polars.
_CATEGORY_TYPES = ("category", "Categorical", "Enum", "String", "Utf8", "str", "string", "object")
#: What is no number and no category among objects; datetime and pandas' Timestamp are dates.
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Categories:
    """Which columns hold categories, and which categories were seen in training.

    A category becomes its place among them; one never seen is missing.
    """

    categories: dict[int, AnyArray]

    @property
    def places(self) -> tuple[int, ...]:
        """The columns that hold categories."""
        return tuple(sorted(self.categories))

    @classmethod
    def learn(cls, X: Matrix, chosen: object) -> Categories:
        """Find the columns of categories and their values."""
        frame = _names_of_frame(X)
        d = X.shape[1] if frame is None else len(frame)
        places = _category_places(X, chosen, frame, d)
        return cls({j: _distinct_values(_column_values(X, frame, j)) for j in places})

    def numbers(self, X: Matrix | Frame) -> FloatArray:
        """Return the rows as float64, categories as codes, missing values as NaN."""
        frame = _names_of_frame(X)
        if frame is None and not self.categories:
            return np.asarray(X, dtype=np.float64)
        d = X.shape[1] if frame is None else len(frame)
        Z = np.empty((X.shape[0], d))
        for j in range(d):
            values = _column_values(X, frame, j)
            if j in self.categories:
                Z[:, j] = _codes(values, self.categories[j])
            else:
                Z[:, j] = _as_numbers(values, frame[j] if frame else f"column {j}")
        return check_table(Z, missing=True)


def _names_of_frame(X: Any) -> list[str] | None:
    """The names of a data frame's columns; None for anything else."""
    return list(X.columns) if is_frame(X) else None


def _column_values(X: Any, frame: list[str] | None, j: int) -> np.ndarray:
    if frame is None:
        return np.asarray(X)[:, j]
    column = X.iloc[:, j] if hasattr(X, "iloc") else X[frame[j]]
    return np.asarray(column.to_numpy())


def _category_places(X: Any, chosen: object, frame: list[str] | None, d: int) -> list[int]:
    if isinstance(chosen, str) and chosen == "from_dtype":
        if frame is None:
            return []
        types = X.dtypes if isinstance(X.dtypes, list) else list(X.dtypes)
        return [j for j, kind in enumerate(types) if _holds_categories(X, frame, j, kind)]
    if chosen is None:
        return []
    return find_columns(chosen, frame, d, "categorical_features")


def _holds_categories(X: TableLike, frame: list[str], j: int, kind: object) -> bool:
    if not str(kind).startswith(_CATEGORY_TYPES):
        return False
    if str(kind) != "object":
        return True
    values = _column_values(X, frame, j)
    there = values[~_missing_values(values)]
    return not (_all_numbers(there) or _any_times(there))


def _all_numbers(values: AnyArray) -> bool:
    return all(isinstance(v, Number | np.bool_) for v in values)  # Decimal is one


def _any_times(values: AnyArray) -> bool:
    return any(isinstance(v, _TIMES) for v in values)


def find_columns(chosen: object, frame: Sequence[str] | None, d: int, what: str) -> list[int]:
    """Return the places of columns given by name, by place or as a mask."""
    items = np.asarray(chosen)
    if items.dtype == bool:
        if items.shape != (d,):
            raise ValueError(f"{what} is a mask of shape {items.shape}, expected ({d},).")
        return [int(j) for j in np.flatnonzero(items)]
    places = []
    for item in items.reshape(-1).tolist():
        if isinstance(item, str):
            if frame is None or item not in list(frame):
                raise ValueError(f"{what} names the column {item!r}, which X does not have.")
            places.append(list(frame).index(item))
        elif not 0 <= int(item) < d:
            raise ValueError(f"{what} names column {item}, but X has columns 0 to {d - 1}.")
        else:
            places.append(int(item))
    return places


def _missing_values(values: AnyArray) -> NDArray[np.bool_]:
    if values.dtype.kind in "biuSU":
        return np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        return np.isnan(values)
    # pandas' own missing value is equal to nothing and has no truth value
    return np.array(
        [v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool
    )


def _as_text(values: AnyArray) -> AnyArray:
    """Categories of mixed types have no order; their names do."""
    return values.astype(str) if values.dtype.kind == "O" else values


def _distinct_values(values: AnyArray) -> AnyArray:
    return np.unique(_as_text(values[~_missing_values(values)]))


def _codes(values: AnyArray, categories: AnyArray) -> FloatArray:
    codes = np.full(len(values), np.nan)
    there = np.flatnonzero(~_missing_values(values))
    if not len(categories) or not len(there):
        return codes
    given = _as_text(values[there])
    if given.dtype.kind != categories.dtype.kind and {given.dtype.kind, categories.dtype.kind} & {
        *"SU"
    }:
        given, categories = given.astype(str), categories.astype(str)
    order = np.argsort(categories, kind="stable")
    place = np.minimum(np.searchsorted(categories, given, sorter=order), len(categories) - 1)
    known = categories[order[place]] == given
    codes[there[known]] = order[place[known]]
    return codes


def _as_numbers(values: AnyArray, name: str) -> FloatArray:
    if values.dtype.kind == "O":
        values = np.where(_missing_values(values), np.nan, values)
    if values.dtype.kind in "Mm" or (values.dtype.kind == "O" and _any_times(values)):
        raise ValueError(
            f"{name!r} holds dates or times; say what about them counts, as a number: an hour, a "
            "weekday, days since an event."
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name!r} holds values that are not numbers ({error}); name it in "
            "categorical_features, or convert it."
        ) from error
