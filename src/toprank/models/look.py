"""A look at a training table before a model learns from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toprank.models import frames
from toprank.models.columns import Column, is_missing
from toprank.models.concern import NOTE, WRONG, Concern
from toprank.models.doubts import (
    describe_long_tails,
    find_ambiguous_dates,
    find_copies_of_columns,
    find_copies_of_rows,
    find_ids,
    find_names_in_figures,
    find_words,
    long_tails,
)
from toprank.models.kinds import find_kind
from toprank.models.leaks import find_later_dates, find_leaks, find_reversed_label
from toprank.models.rows import TrainingRows, learn_table
from toprank.models.schema import Schema, Target


def look_at(
    frame: object,
    target: str,
    *,
    positive: object = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    groups: str | None = None,
    propensity: str | None = None,
    keep_tails: bool = False,
    **reading: object,
) -> list[Concern]:
    """Look at a training table, and return what its owner should know, the most dangerous first.

    One column that gives the answer away makes every figure of a model worthless. This looks for
    such columns, for ids, names in figures, words that are numbers, spellings, dates that can be
    read in two ways, long tails and copies, as ``toprank check`` does; `fit_table` looks too.

    Parameters
    ----------
    frame : data frame of pandas or polars, or pyarrow Table
    target : str
        Column of the labels; rows without one are noted, and left out.
    positive, id, time, drop, weight, groups, propensity, keep_tails
        As in `fit_table`.
    **reading
        ``as_text``, ``as_number``, ``clip``, ``tidy``, ``pool``, as in `fit_table`.

    Returns
    -------
    list of Concern
        Each with ``danger`` (1 to 4), ``message``, ``columns``, and the ``option`` that mends it.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import look_at
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.normal(40, 10, 300)})
    >>> frame["bought"] = (frame.age + rng.normal(0, 10, 300) > 50).astype(int)
    >>> frame["premium"] = np.where(frame.bought == 1, rng.normal(500, 50, 300), np.nan)
    >>> for concern in look_at(frame, "bought"):
    ...     print(concern)
    column 'premium' is filled only in positive rows (72 of 300); if it is filled in afterwards, \
leave it out (--drop premium).
    """
    frames.require_columns(frame, {"target": target})
    gaps = is_missing(frames.column(frame, target))
    unlabelled = int(np.count_nonzero(gaps))
    first = []
    if 0 < unlabelled < len(gaps):
        frame = frames.take(frame, np.flatnonzero(~gaps))
        first.append(_unlabelled(target, unlabelled, len(gaps)))
    roles = {"id": id, "time": time, "weight": weight, "groups": groups, "propensity": propensity}
    schema, known = learn_table(frame, target, positive, drop, roles, **reading)
    rows = TrainingRows.read(frame, schema, known)
    found = [*first, *find_concerns(frame, schema, known, rows, keep_tails)]
    return sorted(found, key=lambda concern: concern.danger)


def _unlabelled(target: str, rows: int, n: int) -> Concern:
    return Concern(
        WRONG,
        f"{target!r} is missing in {rows} of {n} rows, which nothing can be learned from",
        (target,),
        "skip_unlabelled",
    )


def find_concerns(
    frame: object,
    schema: Schema,
    target: Target,
    rows: TrainingRows,
    keep_tails: bool = False,
    *,
    refit: bool = False,
) -> list[Concern]:
    """Return what there is to say of a table that is read already, the most dangerous first.

    In a ``refit`` columns are read as an earlier model reads them, and dates are not doubted.
    """
    columns, values, y = schema.columns, rows.X, np.asarray(rows.y, dtype=bool)
    found = [
        *find_leaks(columns, values, y),
        *find_later_dates(columns, values, rows.time, schema.time),
        *find_reversed_label(target.column, target.positive, target.negative, y),
        *find_ids(columns, values),
        *find_names_in_figures(columns, values),
        *find_words(columns, values, schema.left_out, frame),
        *find_ambiguous_dates(() if refit else columns, frame),
        *find_ambiguous_dates(_time_column(frame, schema.time), frame),
        *describe_long_tails(long_tails(columns, values), keep_tails),
        *find_copies_of_columns(columns, values),
        *find_copies_of_rows(columns, values, y, rows.groups),
    ]
    named = {name for concern in found for name in concern.columns}
    found += _columns_left_out(schema, named)
    return sorted(found, key=lambda concern: concern.danger)  # which keeps the order otherwise


def _time_column(frame: object, name: str | None) -> list[Column]:
    """The column of the times as its words are read, if it holds words; it is none of a schema."""
    if name is None or (values := frames.column(frame, name)).dtype.kind != "O":
        return []
    finding = find_kind(values)
    return [Column(name, finding.kind, date_format=finding.date_format)]


def _columns_left_out(schema: Schema, named: set[str]) -> list[Concern]:
    """One note for each reason why columns are left out, which nobody asked for or named before."""
    by_reason: dict[str, list[str]] = {}
    for name, why in schema.left_out.items():
        if why != "as asked" and name not in named:
            by_reason.setdefault(why, []).append(name)
    return [
        Concern(NOTE, f"left out, because {why}: {', '.join(map(repr, names))}", tuple(names))
        for why, names in by_reason.items()
    ]
