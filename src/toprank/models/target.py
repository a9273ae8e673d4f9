"""Which rows belong at the top: from a target of any two values to booleans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.models.columns import Unreadable, as_words, is_missing
from toprank.models.errors import ModelError
from toprank.pairs.labels import LabelError, positive_label


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
        words = set(_words(column, values).tolist())
        try:
            chosen = positive_label(words, positive, name=column)
        except LabelError as error:
            raise ModelError(str(error)) from error
        return cls(column, chosen, tuple(sorted(words - {chosen})))

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
    gaps = is_missing(values)
    if np.any(gaps):
        raise ModelError(
            f"{column!r} is missing in {np.count_nonzero(gaps)} of {len(values)} rows; leave these "
            "rows out, or label them."
        )
    try:
        return as_words(values)
    except Unreadable as error:
        raise ModelError(f"{column!r} cannot be the target: {error}.") from error


def _shown(words: list[str], most: int = 6) -> str:
    shown = ", ".join(map(repr, words[:most]))
    return shown if len(words) <= most else f"{shown}, ..."
