"""Pieces of a score in SQL: terms of one column, and steps that go by short names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from toprank._numerics import FloatArray
from toprank.interop.additive import Line, Steps
from toprank.interop.sql_dialects import Dialect

#: The largest number; what is beyond counts as missing.
_LARGEST = float(np.finfo(np.float64).max)


def term_sql(term: Line | Steps, x: str, dialect: Dialect) -> str:
    """Return one column's term of the score; x is the column as SQL."""
    if isinstance(term, Line):
        return f"{dialect.number(term.slope)} * {x}"
    cases = [f"WHEN {x} IS NULL THEN {dialect.number(term.missing)}", *steps_sql(term, x, dialect)]
    return f"CASE {' '.join(cases)} ELSE {dialect.number(float(term.values[0]))} END"


def steps_sql(term: Steps, x: str, dialect: Dialect) -> list[str]:
    """The cases of a step function, the highest edge first; an infinite edge is never passed."""
    return [
        f"WHEN {x} > {dialect.number(float(edge))} THEN {dialect.number(float(value))}"
        for edge, value in zip(term.edges[::-1], term.values[:0:-1], strict=True)
        if np.isfinite(edge)
    ]


def is_number(x: str, dialect: Dialect) -> str:
    """Return the condition that a column holds a number: not NULL, not NaN, not infinite."""
    return f"{x} BETWEEN {dialect.number(-_LARGEST)} AND {dialect.number(_LARGEST)}"


def clip_sql(x: str, low: float, high: float, dialect: Dialect) -> str:
    """Return a column where numbers beyond the ends count as the ends."""
    cases = []
    if np.isfinite(low):
        cases.append(f"WHEN {x} < {dialect.number(low)} THEN {dialect.number(low)}")
    if np.isfinite(high):
        cases.append(f"WHEN {x} > {dialect.number(high)} THEN {dialect.number(high)}")
    return f"CASE {' '.join(cases)} ELSE {x} END" if cases else x


@dataclass(frozen=True)
class SqlColumns:
    """The columns of a ranker as SQL.

    Attributes
    ----------
    values : sequence of str
        Each column as it is, for categories.
    numbers : sequence of str
        Each as a number, NULL where it is missing or infinite.
    used : set of int
        The columns that a score has asked for.
    """

    values: Sequence[str]
    numbers: Sequence[str]
    used: set[int] = field(default_factory=set)

    def value(self, j: int) -> str:
        """Return a column as it is."""
        self.used.add(j)
        return self.values[j]

    def number(self, j: int) -> str:
        """Return a column as a number."""
        self.used.add(j)
        return self.numbers[j]

    @classmethod
    def from_names(cls, names: Sequence[str], dialect: Dialect) -> SqlColumns:
        """Return the columns of a table by their names."""
        values = [dialect.name(name) for name in names]
        return cls(values, [f"CASE WHEN {is_number(x, dialect)} THEN {x} END" for x in values])

    def scaled(self, slopes: FloatArray, offsets: FloatArray, dialect: Dialect) -> SqlColumns:
        """Return the columns slope · x + offset."""
        lines = zip(self.numbers, slopes.tolist(), offsets.tolist(), strict=True)
        sql = dialect.number
        return replace(self, numbers=[f"{sql(b)} * ({x}) + {sql(c)}" for x, b, c in lines])


class SqlSteps:
    """Numbers that a score is computed from one after another, each under a short name.

    Trees ask for the same columns again and again: a subquery without a table gives them names.

    Parameters
    ----------
    taken : iterable of str
        Names of the table's columns, which no step may have.
    dialect : Dialect

    Examples
    --------
    >>> from toprank.interop.sql_dialects import get_dialect
    >>> from toprank.interop.sql_steps import SqlSteps
    >>> steps = SqlSteps(["size"], get_dialect("ansi"))
    >>> x = steps.column('"size" + 1')
    >>> print(steps.finish(f"{x} * {x}"))
    (WITH x AS (SELECT "size" + 1 AS x0) SELECT x0 * x0 FROM x)
    """

    def __init__(self, taken: Iterable[str], dialect: Dialect):
        self.dialect = dialect
        self._columns: dict[str, str] = {}
        self._sums: list[tuple[str, str]] = []
        self._splits = 0
        self._prefix = "x"
        lower = [name.lower() for name in taken]
        while any(name.startswith(self._prefix) for name in lower):
            self._prefix += "_"

    def column(self, expression: str) -> str:
        """Return the short name of an expression of the table's columns."""
        return self._columns.setdefault(expression, f"{self._prefix}{len(self._columns)}")

    def code(self, value: str, categories: object) -> str:
        """Return the short name of a category's place among the known ones; NULL for others."""
        cases = [
            f"WHEN {self._literal(known)} THEN {place}"
            for place, known in enumerate(np.asarray(categories).tolist())
        ]
        return self.column(f"CASE {value} {' '.join(cases)} END" if cases else "NULL")

    def _literal(self, category: str | float) -> str:
        if isinstance(category, str):
            return self.dialect.word(category)
        return self.dialect.number(float(category))

    def step(self, expression: str) -> str:
        """Return the short name of an expression of columns and earlier steps."""
        name = f"{self._prefix}s{len(self._sums)}"
        self._sums.append((name, expression))
        return name

    def count_split(self, most: int) -> None:
        """Count one more split of a tree; ValueError if they are too many for one query."""
        self._splits += 1
        if self._splits > most:
            raise ValueError(
                f"The trees ask more than {most:,} questions, too many for one query of SQL. "
                "Export the ranker as ONNX, or fit one with fewer or smaller trees (n_estimators=, "
                "num_leaves=, quality='fast')."
            )

    def finish(self, score: str) -> str:
        """Return the score as an expression of the table's columns."""
        if not self._columns:
            return f"({score})"
        # names, words and numbers were quoted when the expressions were put together
        listed = ", ".join(f"{sql} AS {name}" for sql, name in self._columns.items())
        named = [f"{self._prefix} AS (SELECT {listed})"]  # nosec B608
        last = self._prefix
        for name, sql in self._sums:
            named.append(f"{name}_ AS (SELECT *, {sql} AS {name} FROM {last})")  # nosec B608
            last = f"{name}_"
        return f"(WITH {', '.join(named)} SELECT {score} FROM {last})"  # nosec B608
