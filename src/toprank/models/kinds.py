"""What a column of a training table holds, from a summary that merges over blocks of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._numerics import LARGEST_SIZE
from toprank.models.columns import (
    MOST_CATEGORIES,
    Finding,
    Unreadable,
    as_dates,
    as_words,
    is_missing,
)
from toprank.models.errors import catch_warnings
from toprank.models.words import Words, is_number_text

#: Rows that the guess of a date's format looks at.
_GUESSED = 50
_NUMBERS = (int, float, Decimal, np.integer, np.floating)  # complex ones cannot be ordered
#: What a column of one type, and not of objects, holds.
_OF_DTYPE = {
    "b": "boolean",
    "M": "date",
    "i": "number",
    "u": "number",
    "f": "number",
    "m": "number",
}


@dataclass(frozen=True)
class ColumnSummary:
    """What the values of a column are, as far as its kind depends on them.

    Attributes
    ----------
    rows, missing : int
    dtype : str
        Type of its arrays.
    declared : bool
        Whether its type says that it holds categories.
    holds : frozenset of str
        "boolean", "number", "date", "word"; the names of other types.
    low, high
        The least and the largest value, where values have an order.
    large : bool
        Whether it holds numbers too large for floating point.
    words : Words or None
        Its words; None for columns of numbers, truth values and dates.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.kinds import ColumnSummary
    >>> first = ColumnSummary.of(np.array(["3", None], dtype=object))
    >>> first.find().left_out
    'every value that is not missing is the same'
    >>> first.merge(ColumnSummary.of(np.array(["x"], dtype=object))).find().kind
    'category'
    """

    rows: int = 0
    missing: int = 0
    dtype: str = ""
    declared: bool = False
    holds: frozenset[str] = frozenset()
    low: Any = None
    high: Any = None
    large: bool = False
    words: Words | None = None

    @classmethod
    def of(cls, values: np.ndarray, *, declared: bool = False) -> ColumnSummary:
        """Describe the values of a column."""
        gaps = is_missing(values)
        there = values[~gaps]
        bare = cls(len(values), int(np.count_nonzero(gaps)), str(values.dtype), declared)
        if not len(there):
            return bare
        if declared:
            return replace(bare, holds=frozenset({"word"}), words=Words.of(as_words(there)))
        if there.dtype.kind in _OF_DTYPE:
            holds = frozenset({_OF_DTYPE[there.dtype.kind]})
            return replace(bare, holds=holds, low=np.min(there), high=np.max(there))
        return bare._with_objects(there)

    def _with_objects(self, there: AnyArray) -> ColumnSummary:
        types = {type(value) for value in there}
        holds = frozenset(map(_name_of, types))
        if len(holds) > 1 and np.bool_ not in types:  # True among numbers is one
            holds = frozenset(kind if kind != "boolean" else "number" for kind in holds)
        if holds == {"boolean"}:
            low, high = bool(np.all(there)), bool(np.any(there))
            return replace(self, holds=holds, low=low, high=high)
        if holds == {"date"}:
            dates = as_dates(there)
            return replace(self, holds=holds, low=np.min(dates), high=np.max(dates))
        if not holds <= {"number", "word"}:
            return replace(self, holds=holds)
        found = replace(self, holds=holds, words=Words.of(as_words(there)))
        if holds == {"number"}:
            if not all(map(is_number_text, there)):
                return replace(found, large=True)
            numbers = there.astype(np.float64)
            found = replace(found, low=np.min(numbers), high=np.max(numbers))
        return found

    def merge(self, other: ColumnSummary) -> ColumnSummary:
        """Join the description of other rows."""
        words = other.words if self.words is None else self.words
        if self.words is not None and other.words is not None:
            words = self.words.merge(other.words)
        return ColumnSummary(
            self.rows + other.rows,
            self.missing + other.missing,
            _common_dtype(self.dtype, other.dtype),
            self.declared or other.declared,
            self.holds | other.holds,
            _outer(min, self.low, other.low),
            _outer(max, self.high, other.high),
            self.large or other.large,
            words,
        )

    @property
    def share_missing(self) -> float:
        """Share of the rows in which the value is missing."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def may_be_huge(self) -> bool:
        """Whether numbers may lie beyond what models take: the ends do, or were not looked at."""
        if self.low is None or not self.holds <= {"number"}:
            return True
        if np.asarray(self.low).dtype.kind not in "iuf":  # lengths of time are never as long
            return False
        return bool(max(abs(float(self.low)), abs(float(self.high))) > LARGEST_SIZE)

    def find(self, *, dates: bool = True) -> Finding:
        """Return the kind of the column.

        Parameters
        ----------
        dates : bool, default=True
            Whether words may be dates: False where some are known not to be.
        """
        if self.missing == self.rows:
            return Finding("number", left_out="every value is missing")
        if self.declared:
            words = self.words or Words({})
            few = words.whole and len(words.counts) <= MOST_CATEGORIES
            return Finding(
                "category" if few else "text", left_out=self._constant_if(len(words.counts) == 1)
            )
        for kind in ("boolean", "date", "number"):
            if self.holds == {kind}:
                if self.large:
                    return Finding(kind, left_out="it holds numbers too large for floating point")
                return Finding(kind, left_out=self._constant_if(bool(self.low == self.high)))
        odd = sorted(self.holds - {"number", "word"})
        if odd:
            return Finding("text", left_out=f"it holds values of type {odd[0]}")
        words = self.words or Words({})
        if words.whole and len(words.distinct) == 1:
            return Finding("category", left_out=self._constant_if(True))
        return _kind_of_words(words, self.rows - self.missing, dates)

    def _constant_if(self, same: bool) -> str | None:
        there = " that is not missing" if self.missing else ""
        return f"every value{there} is the same" if same else None

    @property
    def unsure(self) -> bool:
        """Whether words that `find` takes for dates were not all looked at."""
        return self.words is not None and not self.words.whole


def _name_of(kind: type) -> str:
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, (datetime, date, np.datetime64)):
        return "date"
    if issubclass(kind, _NUMBERS):
        return "number"
    return "word" if issubclass(kind, str) else kind.__name__


def _outer(choose: Any, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    try:
        return choose(left, right)
    except TypeError:  # of different kinds: the column is left out anyway
        return left


def _common_dtype(left: str, right: str) -> str:
    """The type that the whole column would have."""
    if left == right or not left or not right:
        return left or right
    types = [np.dtype(name) for name in (left, right)]
    if all(kind.kind in "iuf" for kind in types):
        return str(np.result_type(*types, np.float64))
    if all(kind.kind == "M" for kind in types):
        return str(np.result_type(*types))
    return "object"


def find_kind(values: AnyArray, *, declared_category: bool = False) -> Finding:
    """Return what a column of the training table holds."""
    summary = ColumnSummary.of(values, declared=declared_category)
    finding = summary.find()
    if finding.date_format is not None and summary.unsure:
        try:
            as_dates(values, finding.date_format)
        except Unreadable:
            return summary.find(dates=False)
    return finding


def _kind_of_words(words: Words, rows: int, dates: bool) -> Finding:
    # never as an array of fixed width, which one long text would blow up
    distinct = words.distinct
    if words.numbers:
        return Finding("number")
    form = _date_format(distinct) if dates else None
    if form is not None:
        return Finding("date", form)
    if words.whole and len(distinct) <= MOST_CATEGORIES:
        return Finding("category")
    different = len(distinct) == rows if words.whole else set(words.counts.values()) == {1}
    if different and not _has_spaces(distinct):
        return Finding("text", left_out="it looks like an identifier: every value is different")
    return Finding("text")


def _has_spaces(words: Iterable[str]) -> bool:
    found = [" " in word.strip() for word in words]
    return sum(found) > 0.1 * len(found)


def _date_format(distinct: list[str]) -> str | None:
    """The format of words that are all dates; month first where both ways would do."""
    if not any(any(map(str.isdigit, word)) for word in distinct):
        return None
    step = max(1, len(distinct) // _GUESSED)
    words, read = distinct[::step], np.array(distinct, dtype=object)
    for form in filter(None, (_guess_format(words, day_first) for day_first in (False, True))):
        try:
            as_dates(read, form)
        except Unreadable:
            continue
        return form
    return None


def _guess_format(words: list[str], day_first: bool) -> str | None:
    """The one format that pandas guesses for all of the words; None if there is none."""
    guess = getattr(require("pandas.tseries.api", "models"), "guess_datetime_format", None)
    if guess is None:  # pandas 2.1 keeps it to itself
        guess = require("pandas._libs.tslibs.parsing", "models").guess_datetime_format
    found: str | None = None
    with catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it says where the day came first
        forms = [guess(word, dayfirst=day_first) for word in words]
    for form in forms:
        if not isinstance(form, str) or form != (found or form):
            return None
        found = form
    return found
