"""How databases write names, words, numbers and sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


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
    log : str
        The natural logarithm.
    joins_lists : bool
        Whether ``IN`` with a list is planned as a join, which is slow where there are many.
    """

    quotes: tuple[str, str] = ('"', '"')
    escapes: bool = False
    quote: str = "''"
    truth: str = "{}"
    names_escape: bool = False
    letters: str = ""
    log: str = "LN"
    joins_lists: bool = False

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

    def is_member(self, x: str, codes: Sequence[int], answer: bool = True) -> str:
        """Return the condition that x is one of some codes, or none of them; NULL if x is NULL."""
        if self.joins_lists:
            either = " OR ".join(f"{x} = {code}" for code in codes)
            return f"({either})" if answer else f"NOT ({either})"
        return f"{x} {'IN' if answer else 'NOT IN'} ({', '.join(map(str, codes))})"


#: Terms of a sum without brackets, at most.
_MOST_TERMS = 32
#: The dialects by name. "ansi" is standard SQL.
DIALECTS: dict[str, Dialect] = {
    "ansi": Dialect(),
    "bigquery": Dialect(("`", "`"), True, "\\'", names_escape=True),
    "duckdb": Dialect(joins_lists=True),
    "mysql": Dialect(("`", "`"), True),
    "postgres": Dialect(),
    "snowflake": Dialect(escapes=True),
    "spark": Dialect(("`", "`"), True, "\\'"),
    "sqlite": Dialect(),
    "sqlserver": Dialect(("[", "]"), truth="{} = 1", letters="N", log="LOG"),
}


def get_dialect(name: str) -> Dialect:
    """Return a dialect by name, or raise ValueError naming those there are."""
    if name not in DIALECTS:
        raise ValueError(f"dialect={name!r}: expected one of {', '.join(sorted(DIALECTS))}.")
    return DIALECTS[name]


def bracketed_sum(terms: Iterable[str]) -> str:
    """Return the sum of terms, bracketed: databases limit how deep an expression goes."""
    terms = list(terms)
    while len(terms) > _MOST_TERMS:
        starts = range(0, len(terms), _MOST_TERMS)
        terms = [f"({' + '.join(terms[i : i + _MOST_TERMS])})" for i in starts]
        terms = [f"\n{term}" for term in terms]
    return " + ".join(terms)


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
