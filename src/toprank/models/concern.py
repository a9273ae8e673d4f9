"""One thing about a training table that its owner should know before a model learns from it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toprank._arrays import JsonObject

#: Columns by name, as their kind is read: floats, dates or words.
Values = Mapping[str, np.ndarray]

LEAK, WRONG, BETTER, NOTE = 1, 2, 3, 4
#: What the degrees of danger are called.
DANGERS = {
    LEAK: "this may give the answer away",
    WRONG: "this is probably not what you meant",
    BETTER: "this can be read better",
    NOTE: "good to know",
}
#: Options that stand alone.
_SWITCHES = ("skip_unlabelled", "rename_duplicates", "keep_tails")


@dataclass(frozen=True)
class Concern:
    """Something about a table, how dangerous it is, and the option that mends it.

    Attributes
    ----------
    danger : int
        From 1 (the answer is given away) to 4 (good to know).
    message : str
        A sentence, without its full stop.
    columns : tuple of str
        The columns it is about.
    argument : str
        The argument of `fit_table`, and so the option of ``toprank fit``, that mends it; or "".
    values : tuple of str
        What the argument is given; by default the first of the columns.

    Examples
    --------
    >>> from toprank.models.concern import Concern
    >>> concern = Concern(1, "column 'first premium' alone ...", ("first premium",), "drop")
    >>> concern.option, concern.python
    ("--drop 'first premium'", "drop=['first premium']")
    """

    danger: int
    message: str
    columns: tuple[str, ...] = ()
    argument: str = ""
    values: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The option of the command line that mends it; empty if none does."""
        if not self.argument:
            return ""
        name = "--" + self.argument.replace("_", "-")
        if self.argument in _SWITCHES:
            return name
        return " ".join(f"{name} {shlex.quote(value)}" for value in self._given)

    @property
    def python(self) -> str:
        """The argument of `fit_table` that mends it; empty if none does."""
        if not self.argument or self.argument in ("missing", "rename_duplicates"):
            return ""
        if self.argument in _SWITCHES:
            return f"{self.argument}=True"
        one = self.argument in ("id", "positive")
        return f"{self.argument}={self._given[0] if one else list(self._given)!r}"

    @property
    def _given(self) -> tuple[str, ...]:
        return self.values or self.columns[:1]

    def __str__(self) -> str:
        return f"{self.message} ({self.option})." if self.argument else f"{self.message}."

    def as_dict(self) -> JsonObject:
        """The parts by name, for JSON."""
        return {
            "danger": self.danger,
            "message": self.message,
            "columns": list(self.columns),
            "option": self.option,
            "argument": self.python,
        }
