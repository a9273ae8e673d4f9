"""What a column holds and how its values are read: numbers, booleans, dates, categories, text.

The kind is settled once, on the training table. Later tables are read as that kind, whatever
type their reader gave the column: a file read in pieces has many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._numerics import LARGEST_SIZE, FloatArray
from toprank.models.date_forms import describe_form
from toprank.models.words import is_number_text

#: Different words up to which a column holds categories; with more it is read as text.
MOST_CATEGORIES = 40
#: What a category is called that stands for all rare ones of a column.
OTHERS = "(others)"
KINDS = ("number", "boolean", "date", "category", "text")


class Unreadable(ValueError):
    """Values that are not of the column's kind; the message is the end of a sentence."""


@dataclass(frozen=True)
class Finding:
    """What a column holds: its kind, a date's format, or why it is left out."""

    kind: str
    date_format: str | None = None
    left_out: str | None = None


def is_missing(values: AnyArray) -> NDArray[np.bool_]:
    """Return where values are missing: None, NaN, NaT, pandas' NA; in words also the empty one."""
    if values.dtype.kind in "biu":
        return np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    gaps = np.asarray(require("pandas", "models").isna(values), dtype=bool)
    there = np.flatnonzero(~gaps)
    gaps[there] = [isinstance(value, str) and not value for value in values[there].tolist()]
    return gaps


def are_words(values: Iterable[object]) -> bool:
    """Whether all values are text."""
    return all(isinstance(value, str) for value in values)


def as_numbers(values: np.ndarray) -> FloatArray:
    """Read a column as numbers, missing and infinite ones as NaN; huge ones are mistakes."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    elif values.dtype.kind == "m":
        numbers = np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))
    elif values.dtype.kind == "M":
        raise Unreadable("expected numbers, got dates")
    elif values.dtype.kind == "c":
        raise Unreadable("expected numbers, got complex ones")
    else:
        numbers = _words_as_numbers(values)
    if (np.abs(numbers) <= LARGEST_SIZE).all():  # none is missing: a column of many, most often
        return numbers
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    huge = np.abs(numbers) > LARGEST_SIZE
    if np.any(huge):
        wanted = f"numbers of at most {LARGEST_SIZE:g} in size (leave missing values empty)"
        raise _unreadable(wanted, values, huge)
    return numbers


def _words_as_numbers(values: AnyArray) -> FloatArray:
    gaps = is_missing(values)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~gaps] = values[~gaps].astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        wrong = np.array([not is_number_text(value) for value in values[~gaps]])
        raise _unreadable("numbers", values[~gaps], wrong) from None
    return numbers


#: What may stand around the figures of an amount; spaces and apostrophes also stand among them.
_SIGNS = re.compile(r"[$€£¥₹%\s'’\u00a0\u202f]|\b(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|kr|Fr)\b\.?")
_WITH_POINT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?", re.ASCII)
_WITH_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d*)?", re.ASCII)


def number_signs(words: Sequence[str]) -> str | None:
    """Return the decimal sign of words that are numbers with signs, None if they are not.

    Signs are those of currencies and percent, and what stands between thousands.

    Examples
    --------
    >>> from toprank.models.columns import number_signs
    >>> number_signs(["$1,234.50", "$7"]), number_signs(["1.234,5 €", "7 €"]), number_signs(["3"])
    ('.', ',', None)
    """
    bare = [_SIGNS.sub("", word) for word in words]
    if all(map(is_number_text, words)) or not all(any(map(str.isdigit, word)) for word in bare):
        return None
    point = all(map(_WITH_POINT.fullmatch, bare))
    comma = all(map(_WITH_COMMA.fullmatch, bare))
    if point and comma:  # 1,234 alone: three figures after each sign are thousands
        return "," if any("." in word for word in bare) else "."
    return "." if point else "," if comma else None


def signed_numbers(values: AnyArray, decimal: str) -> FloatArray:
    """Read words with signs of currencies, percent and thousands as numbers."""
    if values.dtype.kind in "biuf":
        return as_numbers(values)
    gaps, thousands = is_missing(values), "," if decimal == "." else "."
    words = [_SIGNS.sub("", str(value)) for value in values[~gaps].tolist()]
    plain = [word.replace(thousands, "").replace(decimal, ".") for word in words]
    wrong = np.array([not is_number_text(word) for word in plain], dtype=bool)
    if np.any(wrong):
        raise _unreadable(f"numbers with the decimal sign {decimal!r}", values[~gaps], wrong)
    numbers = np.full(len(values), np.nan)
    numbers[~gaps] = [float(word) for word in plain]
    return as_numbers(numbers)


def tidy_word(word: str) -> str:
    """Return a word in small letters, without spaces around it and with single ones inside."""
    return " ".join(word.split()).casefold()


def tidy_words(values: AnyArray) -> NDArray[np.object_]:
    """Read a column as tidy words."""
    words, place = np.unique(as_words(values).astype(object), return_inverse=True)
    return np.array([tidy_word(word) for word in words.tolist()], dtype=object)[place]


def as_booleans(values: AnyArray) -> FloatArray:
    """Read a column as 1 (true), 0 (false) and NaN (missing)."""
    if values.dtype.kind in "biuf":
        numbers = as_numbers(values)
        wrong = ~np.isnan(numbers) & (numbers != 0) & (numbers != 1)
        if np.any(wrong):
            raise _unreadable("true or false", values, wrong)
        return numbers
    if values.dtype.kind in "Mm":
        raise Unreadable("expected true or false, got dates or times")
    gaps = is_missing(values)
    words = [str(value).strip().lower() for value in values[~gaps]]
    true, false = np.isin(words, _TRUE), np.isin(words, _FALSE)
    if not np.all(true | false):
        raise _unreadable("true or false", values[~gaps], ~(true | false))
    numbers = np.full(len(values), np.nan)
    numbers[~gaps] = true
    return numbers


_TRUE = ("true", "1", "1.0", "yes", "t", "y")
_FALSE = ("false", "0", "0.0", "no", "f", "n")


def as_dates(values: AnyArray, date_format: str | None = None) -> NDArray[np.datetime64]:
    """Read a column as dates in microseconds, in UTC where a zone is known."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    if values.dtype.kind in "biufm":
        if np.all(is_missing(values)):
            return np.full(len(values), np.datetime64("NaT", "us"))
        raise Unreadable("expected dates, got numbers")
    pandas = require("pandas", "models")
    gaps = is_missing(values)
    words = pandas.Series(values[~gaps])
    # words are dates as they were in training, or as ISO 8601 has them; a guess could misread them
    form = (date_format or "ISO8601") if any(isinstance(word, str) for word in words) else None
    if form is not None:  # numbers among words are words too
        words = words.map(lambda word: str(word) if isinstance(word, (int, float)) else word)
    read = pandas.to_datetime(words, format=form, errors="coerce", utc=True)
    dates = np.full(len(values), np.datetime64("NaT", "us"))
    if not read.isna().any():
        dates[~gaps] = read.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    elif all(isinstance(word, (date, np.datetime64)) for word in values[~gaps]):
        # pandas 2 counts nanoseconds, and ends in 2262
        dates[~gaps] = [_without_zone(word) for word in values[~gaps]]
    else:
        wanted = "dates" if form is None else f"dates like {describe_form(form)}"
        raise _unreadable(wanted, values[~gaps], np.asarray(read.isna()))
    return dates


def _without_zone(moment: object) -> object:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def as_words(values: AnyArray) -> NDArray[np.object_]:
    """Read a column as words; a missing value is the empty one.

    Whole numbers are written without a point, so that 3 and 3.0 are one category.
    """
    # here, because a card is read without it
    from toprank.pairs.labels import label_text

    try:
        codes, distinct = require("pandas", "models").factorize(values)
    except TypeError as error:  # lists and the like
        raise Unreadable("expected words, got values of another type") from error
    words = np.array([*(label_text(value) for value in distinct), ""], dtype=object)
    return words[codes]  # a missing value has the code -1


@dataclass(frozen=True)
class Column:
    """One column that a model reads.

    Attributes
    ----------
    name : str
    kind : str
        "number", "boolean", "date", "category" or "text".
    dtype : str
        Its type in the training table.
    missing : float
        Share of the training rows in which it was missing.
    date_format : str, optional
        How words are read as dates.
    categories : tuple of str
        The categories seen in training.
    clip : tuple of two floats, optional
        The least and the largest number that are told apart; what is beyond counts as these.
    decimal : str, optional
        The decimal sign of numbers that are written with signs, such as ``1.234,50 €``.
    tidy : bool
        Whether words are read in small letters and without needless spaces.
    pooled : bool
        Whether every word that is not one of the categories counts as their last one.
    """

    name: str
    kind: str
    dtype: str = ""
    missing: float = 0.0
    date_format: str | None = None
    categories: tuple[str, ...] = ()
    clip: tuple[float, float] | None = None
    decimal: str | None = None
    tidy: bool = False
    pooled: bool = False

    def read(self, values: AnyArray) -> np.ndarray:
        """Return the values as this kind: floats, dates or words; `Unreadable` if they are not."""
        if values.dtype.kind in "Mm" and np.all(np.isnat(values)):  # nothing: it is of any kind
            values = np.full(len(values), None, dtype=object)
        if self.kind == "number":
            numbers = (
                as_numbers(values) if self.decimal is None else signed_numbers(values, self.decimal)
            )
            return numbers if self.clip is None else np.clip(numbers, *self.clip)
        if self.tidy:
            values = tidy_words(values)
        if self.kind == "boolean":
            return as_booleans(values)
        if self.kind == "date":
            return as_dates(values, self.date_format)
        if values.dtype.kind in "Mm":
            raise Unreadable("expected words, got dates or times")
        words = as_words(values)
        if self.pooled:
            words[~np.isin(words, [*self.categories, ""])] = OTHERS
        return words


def _unreadable(wanted: str, values: AnyArray, wrong: NDArray[np.bool_]) -> Unreadable:
    example = str(values[np.flatnonzero(wrong)[0]])
    rows = int(np.count_nonzero(wrong))
    return Unreadable(f"expected {wanted}, got {_shorten(example)} ({rows} such rows)")


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
