"""The rows a model is trained on: their columns, labels, weights, times and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedShuffleSplit

from toprank._numerics import FloatArray
from toprank.folds import Fold
from toprank.models import frames, kinds
from toprank.models.errors import ModelError
from toprank.models.kinds import Unreadable
from toprank.models.labels import Target
from toprank.models.schema import Schema
from toprank.tuning import TimeOrderedSplit, folds_of

#: Share of the rows held out, to say how good the ranking is.
_SHARE = 0.2
#: Rows of each class that a part must have at least.
_LEAST = 2


@dataclass(frozen=True)
class TrainingRows:
    """Columns by name and, for each row, its label and what else belongs to it."""

    values: dict[str, NDArray[Any]]
    positive: NDArray[np.bool_]
    weight: FloatArray | None = None
    groups: NDArray[np.intp] | None = None
    time: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.positive)

    @classmethod
    def of(cls, frame: Any, schema: Schema, target: Target) -> TrainingRows:
        """Read a table; ModelError where it cannot be."""
        values, match = schema.read(frame)
        if not match.ok:
            raise ModelError(f"The table does not match the model: {'; '.join(match.problems)}.")
        rows = cls(
            values,
            target.of(frames.column(frame, target.column)),
            _weight(frame, schema.weight),
            _groups(frame, schema.groups),
            _time(frame, schema.time),
        )
        return rows.present()

    def take(self, rows: Any) -> TrainingRows:
        """Return some of the rows."""

        def part(array: Any) -> Any:
            return None if array is None else array[rows]

        return TrainingRows(
            {name: array[rows] for name, array in self.values.items()},
            self.positive[rows],
            part(self.weight),
            part(self.groups),
            part(self.time),
        )

    def present(self) -> TrainingRows:
        """Return the rows whose weight is not zero."""
        if self.weight is None or np.all(self.weight > 0):
            return self
        return self.take(np.flatnonzero(self.weight > 0))

    def folds(self, n_folds: int = 5) -> list[Fold]:
        """Folds in the order of time, of whole groups, or stratified.

        With times and groups both, a fold follows time, and rows whose group is tested are not
        trained on.
        """
        groups = None if self.time is not None else self.groups
        folds = folds_of(n_folds, self.positive, groups=groups, time=self.time)
        if self.time is None or self.groups is None:
            return folds
        of = self.groups
        return [(train[~np.isin(of[train], of[test])], test) for train, test in folds]

    def held_out(self, random_state: int) -> Fold | None:
        """Rows to train on and rows held out: the last in time, whole groups, or at random.

        None if a class has too few rows for it.
        """
        parts = self._parts(random_state)
        if parts is None:
            return None
        train, test = parts
        if self.time is not None and self.groups is not None:
            train = train[~np.isin(self.groups[train], self.groups[test])]
        for rows in (train, test):
            found = int(np.count_nonzero(self.positive[rows]))
            if min(found, len(rows) - found) < _LEAST:
                return None
        return np.sort(train), np.sort(test)

    def _parts(self, random_state: int) -> Fold | None:
        size = max(1, round(_SHARE * self.n))
        found = int(np.count_nonzero(self.positive))
        if min(found, self.n - found) < 2 * _LEAST:
            return None
        if self.time is not None:
            if len(np.unique(self.time)) < 3:
                return None
            splitter: Any = TimeOrderedSplit(2, test_size=size)
            try:
                *_, last = splitter.split(self.positive, groups=self.time)
            except ValueError:  # too few distinct times
                return None
            return last
        if self.groups is not None:
            if len(np.unique(self.groups)) < 5:
                return None
            splitter = StratifiedGroupKFold(5, shuffle=True, random_state=random_state)
            return next(splitter.split(self.positive, self.positive, self.groups))
        splitter = StratifiedShuffleSplit(
            1, test_size=max(size, 2 * _LEAST), random_state=random_state
        )
        return next(splitter.split(self.positive, self.positive))


def present(frame: Any, weight: str | None) -> Any:
    """Return the rows of a table whose weight is not zero."""
    if weight is None or weight not in frames.names_of(frame):
        return frame
    kept = _weight(frame, weight)
    return frame if kept is None or np.all(kept > 0) else frames.take(frame, np.flatnonzero(kept))


def _weight(frame: Any, name: str | None) -> FloatArray | None:
    if name is None:
        return None
    try:
        weight = kinds.as_numbers(frames.column(frame, name))
    except Unreadable as error:
        raise ModelError(f"weight={name!r}: {error}.") from error
    bad = int(np.count_nonzero(~(weight >= 0)))
    if bad:
        raise ModelError(
            f"weight={name!r}: {bad} rows are negative, infinite or missing; a weight is the "
            "number of times a row counts."
        )
    return weight


def _groups(frame: Any, name: str | None) -> NDArray[np.intp] | None:
    if name is None:
        return None
    values = frames.column(frame, name)
    gaps = kinds.missing(values)
    if np.any(gaps):
        raise ModelError(f"groups={name!r} is missing in {np.count_nonzero(gaps)} rows.")
    try:
        words = kinds.as_words(values)
    except Unreadable as error:
        raise ModelError(f"groups={name!r}: {error}.") from error
    return np.unique(words, return_inverse=True)[1].reshape(-1)


def _time(frame: Any, name: str | None) -> NDArray[Any] | None:
    if name is None:
        return None
    values = frames.column(frame, name)
    gaps = kinds.missing(values)
    if np.any(gaps):
        raise ModelError(
            f"time={name!r} is missing in {np.count_nonzero(gaps)} rows, so they have no place in "
            "the order."
        )
    finding = kinds.find(values)
    try:
        if finding.kind == "date":
            return kinds.as_dates(values, finding.date_format)
        return kinds.as_numbers(values)
    except Unreadable as error:
        raise ModelError(f"time={name!r}: expected dates or numbers; {error}.") from error
