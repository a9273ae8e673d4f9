"""Columns that are read in a way their owner may not have meant; the card of a model says so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from toprank.models import frames, kinds
from toprank.models.rows import TrainingRows
from toprank.models.schema import Schema

#: Rows from which on a run of whole numbers is no coincidence.
_LEAST = 50
#: Words of a column that are looked at.
_LOOKED_AT = 200
_DRESSED = re.compile(r"[+-]?[$€£¥]?\s?\d{1,3}([,' .]\d{3})*([.,]\d+)?\s?[%$€£¥]?")


def doubts(frame: Any, schema: Schema, rows: TrainingRows) -> list[str]:
    """Return a sentence for each column that may be a row number, or numbers read as words.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import fit_table
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"case": np.arange(200), "size": rng.normal(size=200)})
    >>> frame["ill"] = frame["size"] + rng.normal(size=200) > 1
    >>> print(fit_table(frame, "ill", p=2).card["warnings"][0])
    column 'case' counts the rows and is used as a feature: if it names them, make it the id.
    """
    said = [
        f"column {column.name!r} counts the rows and is used as a feature: if it names them, make "
        "it the id."
        for column in schema.columns
        if column.kind == "number" and _counts(rows.values[column.name])
    ]
    read = [column.name for column in schema.columns if column.kind in ("category", "text")]
    for name in (*read, *(n for n, why in schema.left_out.items() if "identifier" in why)):
        words = kinds.as_words(frames.column(frame, name))
        seen = [word for word in words[:_LOOKED_AT].tolist() if word]
        if seen and all(map(_DRESSED.fullmatch, seen)):
            said.append(
                f"column {name!r} holds words such as {seen[0]!r}: to have them read as numbers, "
                "write them without signs."
            )
    return said


def _counts(numbers: Any) -> bool:
    """Whether whole numbers run without a gap and without one of them twice."""
    if len(numbers) < _LEAST or not np.all(np.isfinite(numbers)):
        return False
    return bool(np.all(np.diff(np.sort(numbers)) == 1))
