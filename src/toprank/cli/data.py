"""Tables of labelled rows for the commands: CSV or Parquet, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from toprank._extras import require


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
) -> LabelledRows:
    """Read a table, or leave the command with a sentence that says what is wrong.

    Parameters
    ----------
    path : Path
        A file that ends in .csv, .csv.gz or .parquet.
    target : str
        Column of the labels.
    positive : str, optional
        The label that belongs at the top; by default the larger of the two.
    special : dict, optional
        Columns that are not features, by what they are for.
    """
    table = _table(path)
    special = {role: column for role, column in (special or {}).items() if column is not None}
    for column in (target, *special.values()):
        if column not in table.columns:
            known = ", ".join(map(str, table.columns))
            raise typer.BadParameter(f"{path} has no column '{column}'; it has: {known}.")
    labels = _labels(table[target], target, positive)
    features = [c for c in table.columns if c != target and c not in special.values()]
    words = [str(c) for c in features if table[c].dtype.kind not in "biuf"]
    if words:
        raise typer.BadParameter(
            f"these columns are not numbers: {', '.join(words)}. Encode them or leave them out."
        )
    if not features:
        raise typer.BadParameter(f"{path} has no columns but the labels: there is nothing to fit.")
    X = table[features].to_numpy(dtype=np.float64)
    if not np.all(np.isfinite(X)):
        bad = [str(c) for c, ok in zip(features, np.isfinite(X).all(axis=0), strict=True) if not ok]
        raise typer.BadParameter(f"values are missing or infinite in: {', '.join(bad)}.")
    columns = {role: table[column].to_numpy() for role, column in special.items()}
    return LabelledRows(X, labels, tuple(features), columns)


def _labels(column: Any, target: str, positive: str | None) -> Any:
    if column.isna().any():
        raise typer.BadParameter(f"'{target}' is missing in {int(column.isna().sum())} rows.")
    values = column.to_numpy()
    if positive is not None:
        matches = values.astype(str) == positive
        if not matches.any() or matches.all():
            raise typer.BadParameter(
                f"'{positive}' is in {'every' if matches.any() else 'no'} row of '{target}'.",
                param_hint="--positive",
            )
        return matches.astype(int)
    classes = np.unique(values)
    if len(classes) != 2:
        raise typer.BadParameter(
            f"'{target}' has {len(classes)} different values, expected two; name the one that "
            "belongs at the top with --positive."
        )
    return (values == classes[1]).astype(int)


def _table(path: Path) -> Any:
    try:
        pandas = require("pandas", "frames")
    except ImportError as error:
        typer.echo(f"toprank: {error}", err=True)
        raise typer.Exit(1) from error
    if not path.is_file():
        raise typer.BadParameter(f"there is no file '{path}'.")
    try:
        if path.suffix == ".parquet":
            return pandas.read_parquet(path)
        return pandas.read_csv(path)
    except Exception as error:  # whatever the reader of the format raises
        typer.echo(f"toprank: '{path}' could not be read as a table ({error}).", err=True)
        raise typer.Exit(1) from error


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers separated by commas; "inf" is one."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise typer.BadParameter(
            f"'{text}' is not a list of numbers such as 1,2,4.", param_hint=name
        ) from error
