"""Why a row moved in the list from one day to another: its data, other rows, or the model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toprank._arrays import Frame
from toprank._numerics import FloatArray
from toprank.models import frames
from toprank.models.errors import ModelWarning
from toprank.models.model import TableModel, column_texts

#: Columns that are named as the reasons of a move.
_MOST_COLUMNS = 3
#: Moves of the score smaller than this share of its spread are none.
_SMALL = 1e-9


@dataclass(frozen=True)
class ScoredTable:
    """A table that a model has scored.

    Attributes
    ----------
    model : TableModel
    names : list of str
        What the rows are called.
    rows : table
        The columns that the model reads.
    scores : ndarray
    """

    model: TableModel
    names: list[str]
    rows: Frame
    scores: FloatArray

    def places(self) -> dict[str, int]:
        """The place of each row in the list, from 1; rows of one score stand in their order."""
        order = np.argsort(-self.scores, kind="stable")
        return {self.names[row]: place for place, row in enumerate(order.tolist(), 1)}


@dataclass(frozen=True)
class Move:
    """Why one row entered or left the top of the list.

    Attributes
    ----------
    name : str
        The row.
    old_place, new_place : int or None
        Its places in the whole lists; None where it is not in the table.
    by_data, by_model : float
        Places won because of the data of the new day, and because of the new model: the means over
        both orders of changing them.
    why : {"new row", "gone", "its data", "other rows", "the model"}
        What most of the move comes from.
    columns : tuple of str
        The columns behind it, in words.
    """

    name: str
    old_place: int | None
    new_place: int | None
    by_data: float
    by_model: float
    why: str
    columns: tuple[str, ...] = ()


def explain_moves(
    names: Sequence[str],
    old: ScoredTable,
    new: ScoredTable,
    old_on_new: ScoredTable,
    new_on_old: ScoredTable,
) -> list[Move]:
    """Say for each row why it moved.

    A row's place depends on the data of the day and on the model. With the places of all four
    lists (each model on each day's table) the move is parted into what the data did and what the
    model did, each the mean over both orders in which they can be changed.

    Parameters
    ----------
    names : sequence of str
        The rows to explain.
    old, new : ScoredTable
        The old model on the old table, and the new model on the new one.
    old_on_new, new_on_old : ScoredTable
        The other two.
    """
    before, after = old.places(), new.places()
    shared = {name for name in names if name in before and name in after}
    crossed = (old_on_new.places(), new_on_old.places())
    data, model = _Columns(new_on_old, new), _Columns(old_on_new, new)
    found = []
    for name in names:
        ends = before.get(name), after.get(name)
        if name not in shared:
            found.append(Move(name, *ends, 0.0, 0.0, "gone" if ends[1] is None else "new row"))
            continue
        here, there = before[name], after[name]
        with_data, with_model = (places[name] for places in crossed)
        by_data = ((here - with_data) + (with_model - there)) / 2
        by_model = ((here - with_model) + (with_data - there)) / 2
        if abs(by_model) > abs(by_data):
            columns = model.largest(name)
            found.append(Move(name, *ends, by_data, by_model, "the model", columns))
            continue
        changed = data.largest(name)
        why = "its data" if changed else "other rows"
        found.append(Move(name, *ends, by_data, by_model, why, changed))
    return found


class _Columns:
    """The columns behind a change: of the data (one model, two tables) or of the model."""

    def __init__(self, before: ScoredTable, after: ScoredTable) -> None:
        self.sides = (before, after)
        self.same_model = before.model is after.model
        self.at = [{name: row for row, name in enumerate(one.names)} for one in self.sides]
        self.spread = [float(np.std(one.scores)) or 1.0 for one in self.sides]

    def largest(self, name: str) -> tuple[str, ...]:
        """The columns that moved the score of a row most, with what they changed from and to."""
        sides = [self._row(side, name) for side in (0, 1)]
        (old_values, old_parts), (new_values, new_parts) = sides
        names = [column for column in new_values if column in old_values]
        if not self.same_model:
            gains = {c: new_parts[c] - old_parts[c] for c in names}
            return _first({c: f"{c} ({gain:+.3g})" for c, gain in gains.items()}, gains)
        changed = [c for c in names if old_values[c] != new_values[c]]
        gains = {c: new_parts[c] - old_parts[c] for c in changed}
        said = {
            c: f"{c}: {old_values[c] or 'missing'} -> {new_values[c] or 'missing'} "
            f"({gains[c]:+.3g})"
            for c in changed
        }
        return _first(said, gains)

    def _row(self, side: int, name: str) -> tuple[dict[str, str], dict[str, float]]:
        """The values of a row in words, and what each column adds, in spreads of the score."""
        one = self.sides[side]
        row = frames.take(one.rows, np.array([self.at[side][name]]))
        columns = one.model.schema.names
        raw = frames.columns(row, columns)
        values = {c: column_texts(raw[c])[0] for c in columns}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
            parts = one.model.column_contributions(one.model.numbers(row))[0]
        scale = 1.0 if self.same_model else self.spread[side]
        return values, {c: float(p) / scale for c, p in zip(columns, parts, strict=True)}


def _first(said: dict[str, str], gains: dict[str, float]) -> tuple[str, ...]:
    """What is said of the columns that moved the score most."""
    order = sorted(said, key=lambda column: -abs(gains[column]))
    kept = [column for column in order if abs(gains[column]) > _SMALL]
    return tuple(said[column] for column in kept[:_MOST_COLUMNS])
