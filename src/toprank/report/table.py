"""The table that a report is about: its columns, labels, names of rows and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from toprank._text import clean_text
from toprank.folds import Fold
from toprank.models import frames
from toprank.models.columns import Column, as_words
from toprank.models.rows import TrainingRows, learn_table
from toprank.models.schema import Schema, Target
from toprank.tuning import folds_of


@dataclass(frozen=True)
class Table:
    """A table, read once.

    Attributes
    ----------
    schema : Schema
        What its columns hold, and which are left out, why.
    target : Target
        Which label belongs at the top.
    rows : TrainingRows
        The columns and labels.
    names : array of str
        What each row is called: its id, or its number from 1 on.
    """

    schema: Schema
    target: Target
    rows: TrainingRows
    names: NDArray[np.object_]

    @classmethod
    def read(
        cls,
        frame: Any,
        target: str,
        positive: Any,
        id: str | None,
        time: str | None,
        drop: Sequence[str],
    ) -> Table:
        """Read a table, or raise ModelError saying what is wrong with it."""
        schema, known = learn_table(frame, target, positive, drop, {"id": id, "time": time})
        rows = TrainingRows.read(frame, schema, known)
        return cls(schema, known, rows, _row_names(frame, id, len(rows)))

    def folds(self, cv: int, random_state: int) -> list[Fold]:
        """Folds in the order of time, or stratified and shuffled."""
        positive = self.rows.y
        found = int(np.count_nonzero(positive))
        fewest = min(found, len(positive) - found)
        if self.rows.time is not None or fewest < 2 or cv < 2:
            return folds_of(cv, positive, time=self.rows.time)
        splitter = StratifiedKFold(min(cv, fewest), shuffle=True, random_state=random_state)
        return folds_of(splitter, positive)

    def words(self, column: Column, rows: NDArray[np.intp]) -> list[str]:
        """The values of a column in some rows, as they are shown."""
        values = self.rows.X[column.name][rows]
        return [word_of(column.kind, value) for value in values]


def word_of(kind: str, value: Any) -> str:
    """Return a value as it is shown; "missing" if it is."""
    if kind in ("number", "boolean"):
        if np.isnan(value):
            return "missing"
        return ("no", "yes")[int(value)] if kind == "boolean" else f"{value:.4g}"
    if kind == "date":
        return "missing" if np.isnat(value) else _date(value)
    return clean_text(value, 40) or "missing"


def _date(value: np.datetime64) -> str:
    whole = str(value.astype("datetime64[m]")).replace("T", " ")
    return whole.removesuffix(" 00:00")


def _row_names(frame: Any, id: str | None, n: int) -> NDArray[np.object_]:
    if id is None:
        return np.array([f"row {number}" for number in range(1, n + 1)], dtype=object)
    words = as_words(frames.column(frame, id))
    return np.array([clean_text(word) or "(no id)" for word in words], dtype=object)
