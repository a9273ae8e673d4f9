"""Columns that say nearly the same: explained together, not one against the other.

Where two columns rise and fall together, a linear score may give one a large positive weight and
the other a large negative one. Each contribution alone then means nothing; their sum does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np

from toprank._numerics import FloatArray
from toprank.models.columns import Column

#: Columns whose correlation is at least this, either way, are explained together.
_CORRELATED = 0.9
#: Columns and rows that are compared at most; more rows are drawn from, more columns are left.
_MOST_COLUMNS, _MOST_ROWS = 400, 20_000
#: Columns that the name of a group lists.
_NAMED = 4

#: Names of columns, in the order of the table.
Group = tuple[str, ...]


def find_together(columns: Sequence[Column], values: Mapping[str, np.ndarray]) -> list[Group]:
    """Return the groups of two columns of numbers or more that rise and fall together.

    Every column of a group is correlated with its first one.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.columns import Column
    >>> x = np.arange(10.0)
    >>> columns = [Column(name, "number") for name in ("net", "gross", "age")]
    >>> find_together(columns, {"net": x, "gross": 1.2 * x, "age": np.cos(x)})
    [('net', 'gross')]
    """
    kinds = ("number", "boolean")
    names = [column.name for column in columns if column.kind in kinds][:_MOST_COLUMNS]
    if len(names) < 2:
        return []
    units = np.column_stack([_in_units(values[name]) for name in names])
    alike = np.abs(units.T @ units) >= _CORRELATED
    groups, taken = [], np.zeros(len(names), dtype=bool)
    for first in range(len(names)):
        members = np.flatnonzero(alike[first] & ~taken)
        if not taken[first] and len(members) > 1:
            taken[members] = True
            groups.append(tuple(names[j] for j in members))
    return groups


def _in_units(numbers: FloatArray) -> FloatArray:
    """Some of the numbers with mean zero and length one; gaps are the mean, a constant is zero."""
    n = len(numbers)
    if n > _MOST_ROWS:
        numbers = numbers[np.random.default_rng(0).integers(0, n, _MOST_ROWS)]
    there = ~np.isnan(numbers)
    size = float(np.max(np.abs(numbers[there]), initial=0.0)) or 1.0  # squares could overflow
    scaled = np.where(there, numbers / size, 0.0)
    apart = np.where(there, scaled - np.sum(scaled) / max(1, np.count_nonzero(there)), 0.0)
    length = float(np.sqrt(np.sum(apart**2)))
    return apart / length if length > 1e-9 * np.sqrt(len(apart)) else np.zeros_like(apart)


def group_name(group: Group) -> str:
    """Return what a group is called: its columns.

    Examples
    --------
    >>> group_name(("net", "gross"))
    'net + gross'
    """
    more = len(group) - _NAMED
    return " + ".join(group[:_NAMED]) + (f" + {more} more" if more > 0 else "")


def groups_on_card(card: Mapping[str, object], names: Sequence[str]) -> list[Group]:
    """Return the groups that a card names; none of those that a file has wrong."""
    known, groups = set(names), []
    entries = card.get("together")
    for entry in entries if isinstance(entries, list) else ():
        columns = entry.get("columns") if isinstance(entry, dict) else None
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            continue
        if len(columns) > 1 and len(set(columns)) == len(columns) and known.issuperset(columns):
            known.difference_update(columns)
            groups.append(tuple(columns))
    return groups


class ShownValues(Sequence[str]):
    """The values of a column as words, each made when it is asked for.

    Of many columns few are shown: those that say most of a row.

    Examples
    --------
    >>> from toprank.models.together import ShownValues
    >>> ShownValues([1.0, 2.5], "{:.2f}".format)[1]
    '2.50'
    """

    def __init__(self, values: Sequence[object] | np.ndarray, word_of: Callable[..., str]):
        self._values, self._word_of = values, word_of

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._word_of(value) for value in self._values[place]]
        return self._word_of(self._values[place])


class Together:
    """Columns, some of which are taken together.

    Parameters
    ----------
    names : sequence of str
        All columns, in the order of contributions.
    groups : sequence of groups
        Those that are taken together, each in the place of its first column.

    Attributes
    ----------
    members : list of lists of int
        The places of the columns of each group; of a column by itself, its own.
    names : list of str
        What they are called.
    """

    def __init__(self, names: Sequence[str], groups: Sequence[Group]):
        place = {name: j for j, name in enumerate(names)}
        grouped = {group[0]: group for group in groups}
        others = {name for group in groups for name in group[1:]}
        kept = [grouped.get(name, (name,)) for name in names if name not in others]
        self.members = [[place[name] for name in group] for group in kept]
        self.names = [group_name(group) for group in kept]

    def sums(self, parts: FloatArray) -> FloatArray:
        """Return contributions of columns summed within groups: (n, groups)."""
        alone = np.array([places[0] for places in self.members], dtype=np.intp)
        out = parts[:, alone]
        for j, places in enumerate(self.members):
            if len(places) > 1:
                out[:, j] = parts[:, places].sum(axis=1)
        return out

    def words(self, words: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Return the values of columns as words, those of a group side by side."""
        return [
            words[places[0]]
            if len(places) == 1
            else [_side_by_side(row) for row in zip(*(words[j] for j in places), strict=True)]
            for places in self.members
        ]


def _side_by_side(values: Sequence[str]) -> str:
    return ", ".join(value or "missing" for value in values) if any(values) else ""
