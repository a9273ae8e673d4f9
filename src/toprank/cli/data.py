"""Rows of numbers and their labels, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toprank._extras import require
from toprank.cli.dialect import Reading
from toprank.cli.failures import Failure
from toprank.cli.tables import opened
from toprank.cli.terminal import names


@dataclass(frozen=True)
class LabelledRows:
    """Features, labels and what travels with them."""

    X: Any
    y: Any
    features: tuple[str, ...]
    special: dict[str, Any]


def read_rows(
    path: Path,
    target: str,
    positive: str | None = None,
    special: dict[str, str | None] | None = None,
    reading: Reading | None = None,
    max_columns: int = 5_000,
) -> LabelledRows:
    """Read a table, or leave the command with a sentence that says what is wrong.

    Parameters
    ----------
    path : Path
        The file; "-" is standard input.
    target : str
        Column of the labels.
    positive : str, optional
        The label that belongs at the top, where that is not plain.
    special : dict, optional
        Columns that are not features, by what they are for.
    reading : Reading, optional
        What the user says of the text.
    max_columns : int, default=5000
        Columns that the table may have at most.
    """
    import numpy as np

    from toprank.cli.labels import learn_target
    from toprank.models import frames

    named = {role: column for role, column in (special or {}).items() if column is not None}
    with opened(path, reading) as source:
        wanted = {target: "--target"} | {c: f"--{role}" for role, c in named.items()}
        source.check_columns(wanted)
        source.check_width(max_columns)
        rows = source.read()
    table = require("pandas", "frames").DataFrame(frames.columns(rows, rows.column_names))
    labels = learn_target(rows, target, positive).of(frames.column(rows, target)).astype(int)
    features = [c for c in table.columns if c != target and c not in named.values()]
    words = [c for c in features if table[c].dtype.kind not in "biuf"]
    if words:
        raise Failure(
            f"these columns are not numbers: {names(words)}. Encode them or leave them out; "
            "'toprank fit' prepares columns of every kind."
        )
    if not features:
        raise Failure(f"'{path}' has no columns but the labels: there is nothing to fit.")
    X = table[features].to_numpy(dtype=np.float64)
    if not np.all(np.isfinite(X)):
        bad = [c for c, ok in zip(features, np.isfinite(X).all(axis=0), strict=True) if not ok]
        raise Failure(f"values are missing or infinite in: {names(bad)}.")
    columns = {role: table[column].to_numpy() for role, column in named.items()}
    return LabelledRows(X, labels, tuple(features), columns)


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers separated by commas; "inf" is one."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise Failure(f"{name}: '{text}' is not a list of numbers such as 1,2,4.") from error
