"""What the front page is about: one or several models, on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray
from toprank._text import clean_text, count
from toprank.models import frames
from toprank.models.columns import as_words
from toprank.models.errors import ModelError
from toprank.models.model import Reason, TableModel
from toprank.models.read_card import describe_ranker
from toprank.models.rows import ScoredRows, read_groups, read_weight
from toprank.models.schema import Target
from toprank.models.together import group_name, groups_on_card

#: Rows that are scored at a time, so that a long table is not prepared at once.
_CHUNK = 100_000

#: Returns the reasons of some of the rows.
Explain = Callable[[NDArray[np.intp]], list[list[Reason]]]


@dataclass(frozen=True)
class LabelledRows:
    """The rows of the list: labels, weights, groups, and what each row is called."""

    y: NDArray[np.bool_]
    names: NDArray[np.object_]
    target: Target
    weight: FloatArray | None = None
    groups: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def prevalence(self) -> float:
        """Share of the positives."""
        return float(np.average(self.y, weights=self.weight))

    def scored(self, scores: FloatArray) -> ScoredRows:
        """Return the rows with the scores of a model."""
        return ScoredRows(None, self.y, self.weight, self.groups, scores=scores)


@dataclass(frozen=True)
class Subject:
    """A model and its scores.

    Attributes
    ----------
    name : str
        What it is called on the page.
    facts : dict
        What the reader should know of it, in words.
    scores : array
    explain : callable
    importances : dict
        How much each column moves the score, the largest first.
    """

    name: str
    facts: dict[str, str]
    scores: FloatArray
    explain: Explain
    importances: dict[str, float] = field(default_factory=dict)


def row_names(frame: object, id: str | None, n: int) -> NDArray[np.object_]:
    """Return what each row is called: its id, or its number from 1 on."""
    if id is None or id not in frames.names_of(frame):
        return np.array([f"row {number}" for number in range(1, n + 1)], dtype=object)
    words = as_words(frames.column(frame, id))
    return np.array([clean_text(word) or "(no id)" for word in words], dtype=object)


def read_test_rows(
    model: TableModel,
    frame: object,
    *,
    id: str | None = None,
    weight: str | None = None,
    groups: str | None = None,
) -> LabelledRows:
    """Read the labels of a table that a model is measured on.

    Columns that are not named are those of the training, where the table has them.
    """
    schema, there = model.schema, set(frames.names_of(frame))

    def role(given: str | None, trained: str | None) -> str | None:
        if given is not None and given not in there:
            raise ModelError(f"The table has no column {given!r}.")
        return given if given is not None else trained if trained in there else None

    y = model.labels(frame)
    if y.all() or not y.any():
        only = "positive" if y.all() else "negative"
        raise ModelError(f"All rows are {only}; a list is measured on rows of two classes.")
    return LabelledRows(
        y,
        row_names(frame, role(id, schema.id), len(y)),
        model.target,
        read_weight(frame, role(weight, schema.weight)),
        read_groups(frame, role(groups, schema.groups)),
    )


def score_in_parts(model: TableModel, frame: object) -> FloatArray:
    """Return the score of each row, some rows at a time."""
    n = frames.n_rows(frame)
    if n <= _CHUNK:
        return model.score(frame)
    parts = [
        model.score(frames.take(frame, np.arange(start, min(start + _CHUNK, n))))
        for start in range(0, n, _CHUNK)
    ]
    return np.concatenate(parts)


def explain_rows(model: TableModel, frame: object) -> Explain:
    """Return what gives the reasons of some rows; none for rankers that do not explain."""

    def explain(rows: NDArray[np.intp]) -> list[list[Reason]]:
        try:
            return model.reasons(frames.take(frame, rows))
        except ValueError:
            return [[] for _ in rows]

    return explain


def describe_model(model: TableModel, file: str | None = None) -> dict[str, str]:
    """Return what a model is, for people: its kind, file, date and rows."""
    card = model.card
    training = card.get("training", {})
    facts = {"What it is": describe_ranker(card)}
    if file is not None:
        facts["File"] = clean_text(file)
    made = str(card.get("made", "")).replace("T", " ").replace("+00:00", " UTC")
    facts["Made"] = clean_text(made)
    facts["Learned from"] = (
        f"{count(training.get('rows', 0))} rows, {count(training.get('positives', 0))} of them "
        "positive"
    )
    return facts


def subject_of(name: str, model: TableModel, frame: object, file: str | None = None) -> Subject:
    """Return a model with its scores of a table."""
    return Subject(
        clean_text(name),
        describe_model(model, file),
        score_in_parts(model, frame),
        explain_rows(model, frame),
        importances_of(model.card),
    )


def importances_of(card: Mapping[str, Any]) -> dict[str, float]:
    """Return how much each column moves the score, without those that do not.

    Columns that rise and fall together count as one.
    """
    sizes = dict(card.get("importances", {}))
    for group in groups_on_card(card, list(sizes)):
        entries = [one for one in card["together"] if isinstance(one, dict)]
        own = next(one for one in entries if one.get("columns") == list(group))
        for name in group:
            del sizes[name]
        sizes[group_name(group)] = own.get("importance")
    found = {clean_text(name): float(size) for name, size in sizes.items() if _is_size(size)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _is_size(value: ArrayLike) -> bool:
    """Whether a number of a card can be one: a file may hold anything."""
    return isinstance(value, float | int) and bool(np.isfinite(value)) and value > 0


def subject_today(frame: object, column: str) -> Subject:
    """Return the order that is used today: a column of the table, the highest number first."""
    from toprank.models.columns import Unreadable, as_numbers

    frames.require_columns(frame, {"today": column})
    try:
        scores = np.asarray(as_numbers(frames.column(frame, column)), dtype=np.float64)
    except Unreadable as error:
        raise ModelError(f"today={column!r}: expected numbers to order by; {error}.") from error
    lowest = np.nanmin(scores) if np.any(~np.isnan(scores)) else 0.0
    known = np.where(np.isnan(scores), lowest - 1.0, scores)  # who has none comes last
    facts = {"What it is": f"the order of the column {clean_text(column)}, the highest first"}
    return Subject("today", facts, known, lambda rows: [[] for _ in rows])
