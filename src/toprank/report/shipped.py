"""The model that `toprank fit` would write, measured on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import Frame
from toprank._text import count
from toprank.folds import Fold
from toprank.models import frames
from toprank.models.fit import fit_rows
from toprank.models.model import Reason, TableModel
from toprank.models.rows import drop_zero_weight
from toprank.report.held_out import merge
from toprank.report.subjects import (
    LabelledRows,
    Subject,
    describe_model,
    importances_of,
    score_in_parts,
)
from toprank.report.table import Table

#: Rows up to which every row is scored by a model of the others, not a fifth of them alone.
_FEW_ROWS = 2_000
_FOLDS = 5


@dataclass(frozen=True)
class Shipped:
    """What the front page is about.

    Attributes
    ----------
    subject : Subject
        The model and its scores.
    rows : LabelledRows
        The rows scored.
    frame : data frame
        The same rows, whole.
    how : str
        Which rows they are.
    """

    subject: Subject
    rows: LabelledRows
    frame: Frame
    how: str


def fit_shipped(
    frame: object,
    table: Table,
    options: Mapping[str, Any],
    random_state: int,
) -> Shipped | None:
    """Fit what `fit_table` fits to some of the rows, and score the others.

    None where a class has too few rows to hold some out.
    """
    parts = _parts(table, random_state)
    if parts is None:
        return None
    kept = drop_zero_weight(frame, table.schema.weight)
    models, tested, scores = [], [], []
    for train, test in parts:
        # nothing more is held out: the page measures on the other rows
        model = fit_rows(
            table.schema,
            table.target,
            table.rows.take(train),
            random_state=random_state,
            **options,
        )
        models.append(model)
        tested.append(test)
        scores.append(score_in_parts(model, frames.take(kept, test)))
    rows = np.concatenate(tested)
    fold = np.repeat(np.arange(len(tested)), [len(test) for test in tested])
    merged = merge(np.concatenate(scores), fold) if len(tested) > 1 else scores[0]
    order = np.argsort(rows, kind="stable")
    rows, fold, merged = rows[order], fold[order], merged[order]
    labelled = LabelledRows(
        table.rows.y[rows],
        table.names[rows],
        table.target,
        _part(table.rows.weight, rows),
        _part(table.rows.groups, rows),
    )
    subject = Subject(
        "the model",
        describe_model(models[0]),
        merged,
        _explain(models, kept, rows, fold),
        importances_of(models[0].card),
    )
    return Shipped(subject, labelled, frames.take(kept, rows), _describe(parts, table))


def _parts(table: Table, random_state: int) -> list[Fold] | None:
    rows = table.rows
    if len(rows) <= _FEW_ROWS and rows.time is None:
        try:
            folds = table.folds(_FOLDS, random_state)
        except ValueError:
            return None
        fewest = min(np.min(np.bincount(rows.y[train].astype(int))) for train, _ in folds)
        return folds if fewest >= 2 and len(folds) == _FOLDS else None
    parts = rows.held_out(random_state)
    return None if parts is None else [parts]


def _part(values: np.ndarray | None, rows: NDArray[np.intp]) -> np.ndarray | None:
    return None if values is None else values[rows]


def _explain(
    models: list[TableModel], frame: object, rows: NDArray[np.intp], fold: NDArray[np.intp]
) -> Callable[[NDArray[np.intp]], list[list[Reason]]]:
    """The reasons of some of the rows, each by the model that scored it."""

    def explain(places: NDArray[np.intp]) -> list[list[Reason]]:
        found: list[list[Reason]] = [[] for _ in places]
        for number, model in enumerate(models):
            mine = np.flatnonzero(fold[places] == number)
            if len(mine) == 0:
                continue
            try:
                reasons = model.reasons(frames.take(frame, rows[places[mine]]))
            except ValueError:  # a ranker that does not explain its scores
                continue
            for place, one in zip(mine, reasons, strict=True):
                found[place] = one
        return found

    return explain


def _describe(parts: list[Fold], table: Table) -> str:
    n = len(table.rows)
    if len(parts) > 1:
        return (
            f"This is the model that \u201ctoprank fit\u201d would write for this table. It was "
            f"fitted {len(parts)} times, each time without a part of the rows, and every row is "
            "judged by the model that had not seen it."
        )
    held = "the last ones in time" if table.rows.time is not None else "drawn at random"
    if table.rows.groups is not None and table.rows.time is None:
        held = "whole groups drawn at random"
    return (
        f"This is the model that \u201ctoprank fit\u201d would write for this table, fitted to "
        f"{count(len(parts[0][0]))} of its {count(n)} rows and judged on the other "
        f"{count(len(parts[0][1]))} ({held})."
    )
