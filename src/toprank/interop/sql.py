"""Scores as SQL: one expression of the columns, for linear rankers and sums of stumps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.interop.additive import Line, Steps, additive_form


@dataclass(frozen=True)
class Dialect:
    """How a database writes names, words and numbers.

    Attributes
    ----------
    quotes : tuple of str
        What opens and closes the name of a column.
    escapes : bool
        Whether a backslash in a string means something.
    quote : str
        How a quotation mark in a string is written.
    truth : str
        How a boolean column is asked, ``{}`` standing for the column.
    names_escape : bool
        Whether a backslash means something in the name of a column too.
    letters : str
        What stands before a string so that it may hold letters of every script.
    """

    quotes: tuple[str, str] = ('"', '"')
    escapes: bool = False
    quote: str = "''"
    truth: str = "{}"
    names_escape: bool = False
    letters: str = ""

    def name(self, name: str) -> str:
        """Return the name of a column, quoted, whatever it holds."""
        _no_zero(name)
        left, right = self.quotes
        if self.names_escape:
            name = _with_escapes(name).replace(right, f"\\{right}")
            return f"{left}{name}{right}"
        return f"{left}{name.replace(right, right * 2)}{right}"

    def table(self, name: str) -> str:
        """Return the name of a table, each part between dots quoted."""
        return ".".join(self.name(part) for part in name.split("."))

    def word(self, word: str) -> str:
        """Return a string literal."""
        _no_zero(word)
        if self.escapes:
            word = _with_escapes(word)
        word = word.replace("'", self.quote)
        return f"{self.letters}'{word}'"

    def number(self, value: float) -> str:
        """Return a literal in double precision that reads back as the same number."""
        if not np.isfinite(value):
            raise ValueError(f"SQL has no literal for {value}.")
        digits = repr(float(value))
        digits = digits if "e" in digits else f"{digits}e0"
        return f"({digits})" if value < 0 else digits


#: The dialects by name. "ansi" is standard SQL.
DIALECTS: dict[str, Dialect] = {
    "ansi": Dialect(),
    "bigquery": Dialect(("`", "`"), True, "\\'", names_escape=True),
    "duckdb": Dialect(),
    "mysql": Dialect(("`", "`"), True),
    "postgres": Dialect(),
    "snowflake": Dialect(escapes=True),
    "spark": Dialect(("`", "`"), True, "\\'"),
    "sqlite": Dialect(),
    "sqlserver": Dialect(("[", "]"), truth="{} = 1", letters="N"),
}


def get_dialect(name: str) -> Dialect:
    """Return a dialect by name, or raise ValueError naming those there are."""
    if name not in DIALECTS:
        raise ValueError(f"dialect={name!r}: expected one of {', '.join(sorted(DIALECTS))}.")
    return DIALECTS[name]


def to_sql(
    ranker: Any,
    columns: Sequence[str],
    *,
    table: str | None = None,
    dialect: str = "ansi",
) -> str:
    """Return the score of a fitted ranker as SQL over columns of numbers.

    Parameters
    ----------
    ranker : estimator
        A linear ranker, or a sum of stumps (`RankBoost`, `SmoothMarginRanker`,
        `AdaBoostRanker`); scikit-learn's linear classifiers of two classes too.
    columns : sequence of str
        The names of the columns of X, in order. They are quoted.
    table : str, optional
        Name of a table: the answer is then a query, ``SELECT *, ... AS score FROM ...``.
    dialect : str, default="ansi"
        One of ``DIALECTS``.

    Returns
    -------
    str
        An expression, or a query. NULL goes where a ranker sends missing values; for a linear
        ranker, which takes none, the score is NULL.

    Raises
    ------
    ValueError
        If the ranker is of another kind.

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.interop.sql import to_sql
    >>> ranker = RankBoost(1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> ranker.coef_[:], ranker.intercept_[:] = 2.0, -1.0
    >>> print(to_sql(ranker, ["size"]))
    (-1.0e0) + CASE WHEN "size" IS NULL THEN 0.0e0 WHEN "size" > 2.5e0 THEN 2.0e0 ELSE 0.0e0 END
    """
    form, syntax = additive_form(ranker), get_dialect(dialect)
    if len(columns) != form.n_columns:
        raise ValueError(f"columns has {len(columns)} names, expected {form.n_columns}.")
    terms = [syntax.number(form.intercept)]
    for j, term in form.terms.items():
        terms.append(term_sql(term, syntax.name(columns[j]), syntax))
    return finish(bracketed_sum(terms), table, syntax)


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


def bracketed_sum(terms: Iterable[str]) -> str:
    """Return the sum of terms, bracketed in halves: databases limit how deep an expression goes."""
    terms = list(terms)
    if len(terms) <= 8:
        return " + ".join(terms)
    middle = len(terms) // 2
    return f"({bracketed_sum(terms[:middle])})\n + ({bracketed_sum(terms[middle:])})"


def finish(score: str, table: str | None, dialect: Dialect) -> str:
    """Return the expression, or the query that gives it for every row of a table."""
    if table is None:
        return score
    # names, words and numbers were quoted when the score was put together
    return f"SELECT *, {score} AS score\nFROM {dialect.table(table)}"  # nosec B608


def _with_escapes(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _no_zero(text: str) -> None:
    if "\0" in text:
        raise ValueError("A name or a word with a zero byte in it cannot be written as SQL.")
