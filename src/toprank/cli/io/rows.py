"""Rows of numbers and their labels, read and checked once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.cli.failures import Failure
from toprank.cli.io.dialect import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.terminal import names

if TYPE_CHECKING:
    from toprank.models.rows import TrainingRows


def read_rows(
    path: Path,
    target: str,
    positive: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    reading: Reading | None = None,
    max_columns: int = 5_000,
) -> TrainingRows:
    """Read a table, or leave the command with a sentence that says what is wrong.

    Parameters
    ----------
    path : Path
        The file; "-" is standard input.
    target : str
        Column of the labels.
    positive : str, optional
        The label that belongs at the top, where that is not plain.
    groups, time : str, optional
        Columns that are not features.
    reading : Reading, optional
        What the user says of the text.
    max_columns : int, default=5000
        Columns that the table may have at most.
    """
    import numpy as np

    from toprank.cli.target import learn_target
    from toprank.models import frames
    from toprank.models.rows import TrainingRows

    roles = {"group": groups, "time": time}
    named = {role: column for role, column in roles.items() if column is not None}
    with open_table(path, reading) as source:
        wanted = {target: "--target"} | {c: f"--{role}" for role, c in named.items()}
        source.check_columns(wanted)
        source.check_width(max_columns)
        rows = source.read()
    table = require("pandas", "frames").DataFrame(frames.columns(rows, rows.column_names))
    labels = learn_target(rows, target, positive).of(frames.column(rows, target))
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
    others = {role: table[column].to_numpy() for role, column in named.items()}
    return TrainingRows(X, labels, groups=others.get("group"), time=others.get("time"))
