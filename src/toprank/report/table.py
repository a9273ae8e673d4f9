"""The table that a report is about: its columns, labels, names of rows and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from toprank.folds import Fold
from toprank.models import frames, kinds
from toprank.models.errors import ModelError
from toprank.models.labels import Target
from toprank.models.rows import TrainingRows
from toprank.models.schema import Column, Schema
from toprank.report.text import shown
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
        there = frames.names_of(frame)
        if target not in there:
            known = ", ".join(map(repr, there[:20])) + (", ..." if len(there) > 20 else "")
            raise ModelError(f"target={target!r}: the table has no such column; it has {known}.")
        n = frames.n_rows(frame)
        if n == 0:
            raise ModelError("The table has no rows.")
        parts = [name for name in (target, id, time) if name is not None]
        if len(set(parts)) < len(parts):
            raise ModelError(f"target, id and time are {parts}: one column cannot be two of them.")
        known_target = Target.learn(target, frames.column(frame, target), positive)
        schema = Schema.learn(frame, drop, target=target, id=id, time=time)
        if not schema.columns:
            why = "; ".join(f"{name!r}: {reason}" for name, reason in schema.left_out.items())
            raise ModelError(f"There is no column to rank by. {why}".strip())
        rows = TrainingRows.of(frame, schema, known_target)
        return cls(schema, known_target, rows, _names(frame, id, n))

    def folds(self, cv: int, random_state: int) -> list[Fold]:
        """Folds in the order of time, or stratified and shuffled."""
        positive = self.rows.positive
        found = int(np.count_nonzero(positive))
        fewest = min(found, len(positive) - found)
        if self.rows.time is not None or fewest < 2 or cv < 2:
            return folds_of(cv, positive, time=self.rows.time)
        splitter = StratifiedKFold(min(cv, fewest), shuffle=True, random_state=random_state)
        return folds_of(splitter, positive)

    def words(self, column: Column, rows: NDArray[np.intp]) -> list[str]:
        """The values of a column in some rows, as they are shown."""
        values = self.rows.values[column.name][rows]
        return [word_of(column.kind, value) for value in values]


def word_of(kind: str, value: Any) -> str:
    """Return a value as it is shown; "missing" if it is."""
    if kind in ("number", "boolean"):
        if np.isnan(value):
            return "missing"
        return ("no", "yes")[int(value)] if kind == "boolean" else f"{value:.4g}"
    if kind == "date":
        return "missing" if np.isnat(value) else _date(value)
    return shown(value, 40) or "missing"


def _date(value: np.datetime64) -> str:
    whole = str(value.astype("datetime64[m]")).replace("T", " ")
    return whole.removesuffix(" 00:00")


def _names(frame: Any, id: str | None, n: int) -> NDArray[np.object_]:
    if id is None:
        return np.array([f"row {number}" for number in range(1, n + 1)], dtype=object)
    words = kinds.as_words(frames.column(frame, id))
    return np.array([shown(word) or "(no id)" for word in words], dtype=object)
