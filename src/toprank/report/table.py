"""The table that a report is about: its columns, labels, names of rows and folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from toprank._arrays import AnyArray
from toprank._numerics import LongTail
from toprank._text import clean_text, number_text
from toprank.folds import Fold
from toprank.models.columns import Column
from toprank.models.doubts import long_tails
from toprank.models.rows import TrainingRows, drop_zero_weight, learn_table
from toprank.models.schema import Schema, Target
from toprank.models.together import ShownValues, Together, find_together
from toprank.report.subjects import row_names
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
    tails : dict
        The columns whose long tails linear rankers clip.
    """

    schema: Schema
    target: Target
    rows: TrainingRows
    names: NDArray[np.object_]
    tails: dict[str, LongTail] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        frame: object,
        target: str,
        positive: object,
        id: str | None,
        time: str | None,
        drop: Sequence[str] = (),
        weight: str | None = None,
        groups: str | None = None,
        keep_tails: bool = False,
        **reading: object,
    ) -> Table:
        """Read a table, or raise ModelError saying what is wrong with it.

        ``reading`` are the columns that are read in another way than their values suggest.
        """
        roles = {"id": id, "time": time, "weight": weight, "groups": groups}
        schema, known = learn_table(frame, target, positive, drop, roles, **reading)
        rows = TrainingRows.read(frame, schema, known)
        names = row_names(drop_zero_weight(frame, weight), id, len(rows))
        tails = {} if keep_tails else long_tails(schema.columns, rows.X)
        return cls(schema, known, rows, names, tails)

    def for_lines(self, rows: TrainingRows) -> Mapping[str, AnyArray]:
        """Return the columns of some rows as linear rankers read them: long tails clipped."""
        return {
            name: np.clip(values, self.tails[name].low, self.tails[name].high)
            if name in self.tails
            else values
            for name, values in rows.X.items()
        }

    def sample(self, most: int, random_state: int) -> Table:
        """Return so many of the rows at most, drawn at random class by class."""
        n = len(self.rows)
        if n <= most:
            return self
        drawn, _ = next(
            StratifiedShuffleSplit(1, train_size=most, random_state=random_state).split(
                self.rows.y, self.rows.y
            )
        )
        kept = np.sort(drawn)
        return replace(self, rows=self.rows.take(kept), names=self.names[kept])

    def folds(self, cv: int, random_state: int) -> list[Fold]:
        """Folds in the order of time, or stratified and shuffled."""
        positive = self.rows.y
        if self.rows.groups is not None:
            return self.rows.folds(cv)
        found = int(np.count_nonzero(positive))
        fewest = min(found, len(positive) - found)
        if self.rows.time is not None or fewest < 2 or cv < 2:
            return folds_of(cv, positive, time=self.rows.time)
        splitter = StratifiedKFold(min(cv, fewest), shuffle=True, random_state=random_state)
        return folds_of(splitter, positive)

    @cached_property
    def together(self) -> Together:
        """The columns, with those that rise and fall together as one."""
        groups = find_together(self.schema.columns, self.rows.X)
        return Together(self.schema.names, groups)

    def words(self, column: Column, rows: NDArray[np.intp]) -> ShownValues:
        """The values of a column in some rows, as they are shown."""
        return ShownValues(self.rows.X[column.name][rows], partial(word_of, column.kind))


def word_of(kind: str, value: Any) -> str:
    """Return a value as it is shown; "missing" if it is."""
    if kind in ("number", "boolean"):
        if np.isnan(value):
            return "missing"
        return ("no", "yes")[int(value)] if kind == "boolean" else number_text(value, 4)
    if kind == "date":
        return "missing" if np.isnat(value) else _date(value)
    return clean_text(value, 40) or "missing"


def _date(value: np.datetime64) -> str:
    whole = str(value.astype("datetime64[m]")).replace("T", " ")
    return whole.removesuffix(" 00:00")
