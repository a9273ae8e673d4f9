"""What a list is cut from, and the limits that it must keep; both checked at the door."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._columns import amounts_of_rows, to_numpy
from toprank._extras import require
from toprank._numerics import FloatArray, is_number
from toprank._text import visible
from toprank.pairs import group_labels

IntArray = NDArray[np.intp]
#: Names of groups that a message lists at most.
_MOST_NAMED = 6


@dataclass(frozen=True)
class CutRows:
    """The rows that a list is cut from.

    Attributes
    ----------
    scores : ndarray of shape (n,)
    probability : ndarray of shape (n,) or None
        Of being positive, where it is known.
    value : ndarray of shape (n,) or None
        What a positive is worth, where rows differ in it.
    cost : ndarray of shape (n,) or None
    entities : ndarray of shape (n,) or None
        As they were given; a missing one is an entity of its own.
    group : ndarray of int of shape (n,) or None
        Codes of the groups.
    group_names : list
        The names that the codes stand for.
    """

    scores: FloatArray
    probability: FloatArray | None = None
    value: FloatArray | None = None
    cost: FloatArray | None = None
    entities: AnyArray | None = None
    group: IntArray | None = None
    group_names: tuple[Hashable, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def worth(self) -> FloatArray:
        """What each row adds to the list: its expected value, or its score where that is all."""
        if self.probability is None:
            return self.scores
        return self.probability if self.value is None else self.probability * self.value

    def take(self, rows: IntArray) -> CutRows:
        """Some of the rows."""
        columns = ("scores", "probability", "value", "cost", "entities", "group")
        given = {name: getattr(self, name) for name in columns}
        parts = {name: one[rows] for name, one in given.items() if one is not None}
        if "entities" in parts:
            parts["entities"] = code_entities(parts["entities"])
        return replace(self, **parts)


def _no_rows() -> IntArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Limits:
    """What a list must keep to.

    Attributes
    ----------
    k : int
        Rows at most.
    per_entity : int or None
        Rows of one entity at most.
    most, least : ndarray of int or None
        Rows of each group, by its code; `most` is a large number where there is no cap.
    budget : float
        What the rows may cost together; infinity for no limit.
    include, exclude : ndarray of int
        Rows that must be in the list, and that must not.
    """

    k: int
    per_entity: int | None = None
    most: IntArray | None = None
    least: IntArray | None = None
    budget: float = np.inf
    include: IntArray = field(default_factory=_no_rows)
    exclude: IntArray = field(default_factory=_no_rows)

    def without(self, name: str, n: int) -> Limits:
        """The same limits, one of them dropped."""
        return replace(self, **{name: getattr(Limits(n), name)})

    def without_group(self, name: str, code: int) -> Limits:
        """The same limits, without the cap (`most`) or the floor (`least`) of one group."""
        counts = getattr(self, name).copy()
        counts[code] = NO_CAP if name == "most" else 0
        return replace(self, **{name: counts})


#: Stands for a group without a cap.
NO_CAP = int(np.iinfo(np.int64).max)


def code_entities(values: AnyArray) -> IntArray:
    """Number entities from 0; a missing one is an entity of its own.

    Examples
    --------
    >>> import numpy as np
    >>> code_entities(np.array(["b", None, "a", "b", None], dtype=object)).tolist()
    [0, 2, 1, 0, 3]
    """
    if values.dtype.kind in "iub":
        small = _code_by_table(values)
        if small is not None:
            return small
    codes, names = code_values(values)
    if len(names) and "" in names:
        codes = np.where(codes == names.index(""), -1, codes)
    missing = np.flatnonzero(codes < 0)
    codes[missing] = len(names) + np.arange(len(missing))
    return codes


def code_values(values: AnyArray) -> tuple[IntArray, list[Hashable]]:
    """Number values in the order in which they come first, missing ones -1; and list them.

    Examples
    --------
    >>> import numpy as np
    >>> codes, names = code_values(np.array(["south", "north", "south"]))
    >>> codes.tolist(), names
    ([0, 1, 0], ['south', 'north'])
    """
    if find_spec("pandas") is not None:  # its hash tables are faster than a loop
        codes, names = require("pandas", "frames").factorize(_as_known(values))
        return np.array(codes, dtype=np.intp), np.asarray(names).tolist()
    seen: dict[Hashable, int] = {}
    found = [
        -1 if value is None or value != value else seen.setdefault(value, len(seen))
        for value in values.tolist()
    ]
    return np.array(found, dtype=np.intp), list(seen)


def _as_known(values: AnyArray) -> AnyArray:
    """An array that pandas reads without a guess: texts and times as objects."""
    return values if values.dtype.kind in "iufO" else values.astype(object)


def _code_by_table(values: AnyArray) -> IntArray | None:
    """Whole numbers of a small range are looked up; None where the range is large."""
    if not len(values) or values.dtype.kind == "b":
        return values.astype(np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1000:
        return None
    # differences modulo 2^64 are right for signed and unsigned numbers alike
    return (values.astype(np.uint64) - np.uint64(low % 2**64)).astype(np.intp)


def read_entities(entities: ArrayLike | None, n: int) -> AnyArray | None:
    """Return the entity of each row as it was given; None if there are none."""
    if entities is None:
        return None
    column = np.asarray(to_numpy(entities))
    if column.shape != (n,):
        raise ValueError(f"entities has shape {column.shape}, expected one entity per row: ({n},).")
    return column


def read_groups(groups: ArrayLike | None, n: int) -> tuple[IntArray | None, tuple[Hashable, ...]]:
    """Return the code of each row's group, and the names of the groups in the order of the codes.

    Examples
    --------
    >>> codes, names = read_groups(["south", "north", "south"], 3)
    >>> codes.tolist(), names
    ([0, 1, 0], ('south', 'north'))
    """
    labels = group_labels(groups, n)
    if labels is None:
        return None, ()
    codes, names = code_values(labels)
    return codes, tuple(names)


def read_group_counts(
    name: str, counts: object, names: tuple[object, ...], k: int | None
) -> IntArray | None:
    """Return a cap or a floor for each group, by its code; None where there is none.

    Parameters
    ----------
    name : {"at_most", "at_least"}
    counts : int, float, mapping or None
        One number for each group, or numbers by the name of the group; a float below one is a
        share of k.
    names : tuple
        The groups.
    k : int or None
    """
    if counts is None:
        return None
    if not names:
        raise ValueError(f"{name}={counts!r} needs groups=, the group of each row.")
    least = name == "at_least"
    if not isinstance(counts, Mapping):
        one = _read_count(name, counts, k)
        return np.full(len(names), one, dtype=np.int64)
    found = np.full(len(names), 0 if least else NO_CAP, dtype=np.int64)
    place = {group: code for code, group in enumerate(names)}
    for group, count in counts.items():
        if group not in place:
            shown = ", ".join(f"'{visible(one)}'" for one in names[:_MOST_NAMED])
            more = ", ..." if len(names) > _MOST_NAMED else ""
            raise ValueError(
                f"{name} names the group {visible(group)!r}, which no row is in; the groups are "
                f"{shown}{more}."
            )
        found[place[group]] = _read_count(f"{name}[{group!r}]", count, k)
    return found


def _read_count(name: str, count: object, k: int | None) -> int:
    """A number of rows: a whole number, or a share of k."""
    if is_number(count) and not isinstance(count, (bool, np.bool_)):
        if float(count).is_integer() and count >= 0:
            return int(count)
        if 0 < count < 1 and k is None:
            raise ValueError(f"{name}={count!r} is a share of k rows: give k.")
        if 0 < count < 1 and k is not None:
            exact = float(count) * k
            near = round(exact)
            if abs(exact - near) < 1e-9:
                return near
            return int(np.ceil(exact)) if "at_least" in name else int(np.floor(exact))
    raise ValueError(f"{name}={count!r}: expected a number of rows, or a share of k below 1.")


def read_amounts(name: str, amounts: object, n: int) -> FloatArray | None:
    """Return one amount per row, not negative, from one for all rows or one for each."""
    if amounts is None:
        return None
    values = amounts_of_rows(name, amounts, n)
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"{name} has negative entries, NaN or infinity; expected amounts from 0.")
    return np.broadcast_to(values, (n,)).astype(np.float64)


def read_rows(name: str, rows: object, n: int) -> IntArray:
    """Return places of rows in order, from places or from one truth value per row."""
    if rows is None:
        return _no_rows()
    given = np.asarray(to_numpy(rows))
    if given.dtype.kind == "b":
        if given.shape != (n,):
            raise ValueError(f"{name} has shape {given.shape}, expected one entry per row: ({n},).")
        return np.flatnonzero(given)
    if given.size == 0:
        return _no_rows()
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected places of rows, or one truth value per row.")
    if np.any(given < 0) or np.any(given >= n):
        raise ValueError(f"{name} names rows outside of 0 to {n - 1}.")
    return np.unique(given).astype(np.intp)
