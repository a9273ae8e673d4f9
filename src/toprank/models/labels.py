"""Which rows belong at the top: from a target of any two values to booleans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.models import kinds
from toprank.models.errors import ModelError

#: Pairs of words of which the first belongs at the top; written small.
_KNOWN = (
    ("1", "0"),
    ("1", "-1"),
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("positive", "negative"),
    ("pos", "neg"),
    ("+", "-"),
)


@dataclass(frozen=True)
class Target:
    """The values of a target, as words: the one that belongs at the top, and the others.

    Attributes
    ----------
    column : str
        Its name in the table.
    positive : str
    negative : tuple of str
        One value; or several, where the positive one was named.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models import Target
    >>> target = Target.learn("bought", np.array(["no", "yes", "no"], dtype=object))
    >>> target.positive, target.of(np.array(["yes", "no"], dtype=object)).tolist()
    ('yes', [True, False])
    """

    column: str
    positive: str
    negative: tuple[str, ...]

    @classmethod
    def learn(cls, column: str, values: NDArray[Any], positive: Any = None) -> Target:
        """Find out which value belongs at the top; ModelError where it must be named."""
        words = _words(column, values)
        distinct = sorted(set(words.tolist()))
        if positive is not None:
            chosen = _named(positive, distinct)
            if not chosen:
                raise ModelError(
                    f"positive={positive!r}: {column!r} never has that value; it has "
                    f"{_shown(distinct)}."
                )
        elif len(distinct) > 2:
            raise ModelError(
                f"{column!r} has {len(distinct)} different values ({_shown(distinct)}), expected "
                "two. Pass positive= to name the one that belongs at the top; the others are then "
                "negative."
            )
        else:
            chosen = ""
        if len(distinct) < 2:
            raise ModelError(
                f"{column!r} has one value only ({_shown(distinct) or 'none'}); a ranking needs "
                "rows of two classes: check the column, or the selection that lost the rare class."
            )
        chosen = chosen or _obvious(column, distinct)
        return cls(column, chosen, tuple(word for word in distinct if word != chosen))

    def renamed(self, column: str) -> Target:
        """Return the same values in a column of another name."""
        return replace(self, column=column)

    def of(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows are positive; ModelError for values never seen."""
        words = _words(self.column, values)
        positive = np.asarray(words == self.positive, dtype=bool)
        if len(self.negative) == 1:
            strange = ~positive & (words != self.negative[0])
            if np.any(strange):
                raise ModelError(
                    f"{self.column!r} is {_shown(sorted(set(words[strange].tolist())))} in "
                    f"{np.count_nonzero(strange)} rows; the model knows {self.positive!r} "
                    f"(positive) and {self.negative[0]!r}."
                )
        return positive


def _words(column: str, values: NDArray[Any]) -> NDArray[np.object_]:
    gaps = kinds.missing(values)
    if np.any(gaps):
        raise ModelError(
            f"{column!r} is missing in {np.count_nonzero(gaps)} of {len(values)} rows; leave these "
            "rows out, or label them."
        )
    try:
        return kinds.as_words(values)
    except kinds.Unreadable as error:
        raise ModelError(f"{column!r} cannot be the target: {error}.") from error


def _named(value: Any, distinct: list[str]) -> str:
    """The word that a value names, as it is, as a number or in other letters; empty if none."""
    word = str(kinds.as_words(np.array([value], dtype=object))[0])
    if word in distinct:
        return word
    alike = [w for w in distinct if w.lower() == word.lower() or _number(w) == _number(word)]
    return alike[0] if len(alike) == 1 else ""


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def _obvious(column: str, distinct: list[str]) -> str:
    small = {word.strip().lower(): word for word in distinct}
    for high, low in _KNOWN:
        if set(small) == {high, low}:
            return small[high]
    a, b = distinct
    raise ModelError(
        f"{column!r} is {a!r} or {b!r}, and it is not plain which belongs at the top: pass "
        f"positive={a!r} or positive={b!r}."
    )


def _shown(words: list[str], most: int = 6) -> str:
    shown = ", ".join(map(repr, words[:most]))
    return shown if len(words) <= most else f"{shown}, ..."
