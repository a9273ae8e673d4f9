"""Tables to learn from: their columns, the rows with a label, the label that belongs at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer

from toprank._extras import require
from toprank.cli.io.source import Source
from toprank.cli.terminal import Failure, can_ask, safe

if TYPE_CHECKING:
    import pyarrow as pa


Answer = TypeVar("Answer")


def read_training(
    source: Source,
    target: str,
    roles: Mapping[str, str | None],
    columns: Mapping[str, Sequence[str] | None],
    most: int,
) -> pa.Table:
    """All rows of a training table, once it is known to have the columns that options name.

    Parameters
    ----------
    source : Source
    target : str
    roles : mapping
        Columns by their roles: ``id``, ``time``, ``weight``, ``groups``, ``propensity``.
    columns : mapping
        Columns by the option that names them, such as ``drop`` and ``as_text``.
    most : int
        Columns that the table may have.
    """
    check_training(source, target, roles, columns, most)
    # figures that are names keep their zeros, and signs stay for the reader of amounts
    texts = (*(columns.get("as_text") or ()), *(columns.get("as_number") or ()))
    return source.read(types=dict.fromkeys(texts, require("pyarrow", "frames").string()))


def check_training(
    source: Source,
    target: str,
    roles: Mapping[str, str | None],
    columns: Mapping[str, Sequence[str] | None],
    most: int,
) -> None:
    """Refuse a training table that lacks a column which options name, or has too many."""
    named = {target: "--target"}
    named |= {name: f"--{role}" for role, name in roles.items() if name is not None}
    for option, names in columns.items():
        named |= {name: f"--{option.replace('_', '-')} {name}" for name in names or ()}
    source.check_columns(named)
    source.check_width(most)


def keep_labelled(rows: pa.Table, target: str, skip: bool) -> pa.Table:
    """The rows with a label; Failure if some have none and the user has not said to skip them."""
    from toprank.models import frames
    from toprank.models.columns import is_missing
    from toprank.pairs.labels import missing_labels

    gaps = is_missing(frames.column(rows, target))
    if not gaps.any():
        return rows
    if not skip or gaps.all():
        raise Failure(missing_labels(target, int(gaps.sum()), len(gaps)))
    return rows.filter(~gaps)


def find_positive(rows: pa.Table, column: str, positive: str | None, tidy: bool = False) -> str:
    """Return the label that belongs at the top; the user is asked only where that is not plain."""
    from toprank.models import Target as TargetLabels
    from toprank.models import frames

    values = frames.column(rows, column)

    def learn(chosen: str | None) -> str:
        return TargetLabels.learn(column, values, chosen, tidy=tidy).positive

    return find_positive_by(learn, column, positive)


def find_positive_by(
    learn: Callable[[str | None], Answer], column: str, positive: str | None
) -> Answer:
    """Return what `learn` makes of the label that belongs at the top; asked where not plain."""
    from toprank.models import ModelError

    try:
        return learn(positive)
    except ModelError as error:
        choices = getattr(error.__cause__, "choices", ())
        if not choices or not can_ask():
            raise
    return learn(_ask(column, choices))


def _ask(column: str, choices: tuple[str, str]) -> str:
    first, second = map(safe, choices)
    question = f"Which belongs at the top of '{safe(column)}': '{first}' or '{second}'?"
    while (answer := typer.prompt(question, err=True)) not in choices:
        pass
    return str(answer)
