"""Columns that give the answer away: known only after the event that a model is to foresee.

A leak is a matter of meaning, which no statistic sees. What can be seen is that one column alone
orders the classes better than the columns of honest tables do, or that it is filled in one class
only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank._text import percent
from toprank.models.columns import Column
from toprank.models.concern import LEAK, WRONG, Concern, Values

#: Area under the curve of one column alone, from which on it is doubted. It may be honest: the
#: elevation alone tells two kinds of trees apart with 0.9994. But then there is little to learn,
#: and a leak that nobody noticed costs more than a second look.
_TOO_GOOD = 0.995
#: A column is filled in one class only if the other has so much less of it than chance would give.
_ONE_CLASS = 0.95
#: Difference of the shares of the two classes that are filled, from which on a column is doubted.
_FAR_APART = 0.9
#: Share of a class that must be filled, or missing; less is a rare sign, not the answer.
_COVERED = 0.2
#: Rows of a class that a doubt needs at least.
_FEWEST = 10
#: Different values of a number up to which it may be a code.
_MOST_CODES = 40
#: Rows of a class that are looked at.
_LOOKED_AT = 50_000
#: Labels that stand for nothing having happened.
_NEGATIVE = frozenset(
    {"0", "-1", "no", "n", "false", "f", "negative", "neg", "-", "none", "healthy", "normal"}
)


def find_leaks(
    columns: tuple[Column, ...], values: Values, y: NDArray[np.bool_]
) -> Iterator[Concern]:
    """Yield the columns that alone separate the classes, or are filled in one class only."""
    if min(np.count_nonzero(y), np.count_nonzero(~y)) < _FEWEST:
        return
    rows = _sample(y)
    for column in columns:
        there = ~_gaps(values[column.name])
        found = _separates(column, values[column.name][rows], y[rows], there[rows])
        yield from filter(None, [found or _filled_in_one_class(column.name, there, y)])


def _sample(y: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows of both classes, spread over the table; all of them where they are few."""
    parts = [np.flatnonzero(y), np.flatnonzero(~y)]
    return np.sort(np.concatenate([part[:: -(-len(part) // _LOOKED_AT)] for part in parts]))


def _gaps(values: AnyArray) -> NDArray[np.bool_]:
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else values == "")


def _separates(
    column: Column, values: AnyArray, y: NDArray[np.bool_], there: NDArray[np.bool_]
) -> Concern | None:
    """The column alone, where it is there."""
    values, y = values[there], y[there]
    if min(np.count_nonzero(y), np.count_nonzero(~y)) < _FEWEST or column.kind == "text":
        return None
    area = _area_alone(column, values, y)
    if area < _TOO_GOOD:
        return None
    how = "" if area == 1 else f"almost (AUC {area:.4f}) "
    return Concern(
        LEAK,
        f"column {column.name!r} alone tells the classes apart {how}without an error; if it is "
        "known only afterwards, leave it out",
        (column.name,),
        "drop",
    )


def _area_alone(column: Column, values: AnyArray, y: NDArray[np.bool_]) -> float:
    """The area under the curve of one column, whichever way it points."""
    if column.kind == "category":
        return _area_of_codes(values, y)
    numbers = values.astype("datetime64[us]").astype(np.int64) if column.kind == "date" else values
    if len(np.unique(numbers[:1000])) <= _MOST_CODES:
        found = _area_of_codes(numbers, y)
        if found:
            return found
    area = _area(numbers, y)
    return max(area, 1 - area)


def _area(numbers: AnyArray, y: NDArray[np.bool_]) -> float:
    positive, negative = numbers[y], np.sort(numbers[~y])
    below = np.searchsorted(negative, positive).sum()
    up_to = np.searchsorted(negative, positive, side="right").sum()
    return float((below + up_to) / 2 / (len(positive) * len(negative)))


def _area_of_codes(codes: AnyArray, y: NDArray[np.bool_]) -> float:
    """The area that the best order of the codes has; 0 where they are too many to say."""
    place, distinct = require("pandas", "models").factorize(codes)
    if len(distinct) > _MOST_CODES:
        return 0.0
    positive, rows = np.bincount(place, weights=y), np.bincount(place)
    order = np.argsort(positive / rows, kind="stable")
    negative: FloatArray = np.asarray(rows - positive, dtype=np.float64)
    below = np.cumsum(negative[order]) - negative[order]
    wins = float(np.sum(positive[order] * (below + negative[order] / 2)))
    return wins / float(positive.sum() * negative.sum())


def _filled_in_one_class(
    name: str, there: NDArray[np.bool_], y: NDArray[np.bool_]
) -> Concern | None:
    """A column whose values, or whose gaps, are all in one class."""
    if np.all(there) or not np.any(there):
        return None
    apart = abs(float(np.mean(there[y])) - float(np.mean(there[~y]))) >= _FAR_APART
    for part, what in ((there, "filled"), (~there, "missing")):
        for label, mine in (("positive", y), ("negative", ~y)):
            rows = int(np.count_nonzero(part))
            others, expected = np.count_nonzero(part & ~mine), rows * float(np.mean(~mine))
            # many of the other class are expected by chance, and hardly one is there
            if expected < 2 * _FEWEST or np.mean(part[mine]) < _COVERED:
                continue
            if others <= (1 - _ONE_CLASS) * expected or (apart and others <= 0.5 * expected):
                only = "only" if not others else f"almost only ({percent(1 - others / rows)})"
                return Concern(
                    LEAK,
                    f"column {name!r} is {what} {only} in {label} rows ({rows} of {len(y)}); if it "
                    "is filled in afterwards, leave it out",
                    (name,),
                    "drop",
                )
    return None


def find_later_dates(
    columns: tuple[Column, ...], values: Values, time: np.ndarray | None, name: str | None
) -> Iterator[Concern]:
    """Yield the columns of dates that lie after the time of the row."""
    if time is None or time.dtype.kind != "M":
        return
    day = time.astype("datetime64[D]")
    for column in columns:
        if column.kind != "date":
            continue
        dates = values[column.name].astype("datetime64[D]")
        later = int(np.count_nonzero(dates > day))
        if later:
            yield Concern(
                LEAK,
                f"column {column.name!r} lies after {name!r} in {later} of {len(day)} rows; what "
                "happened later was not known",
                (column.name,),
                "drop",
            )


def find_reversed_label(
    column: str, positive: str, negative: tuple[str, ...], y: NDArray[np.bool_]
) -> Iterator[Concern]:
    """Yield a doubt whether the other label belongs at the top."""
    share = float(np.mean(y))
    if len(negative) != 1:
        return
    reads_reversed = positive.strip().lower() in _NEGATIVE
    if reads_reversed or share >= 0.95:
        yield Concern(
            WRONG,
            f"{column!r} = {positive!r} belongs at the top, and {percent(share)} of the rows are; "
            f"if the list is to find the others, {negative[0]!r} belongs there",
            (column,),
            "positive",
            (negative[0],),
        )
