"""Where the data sets come from: a folder, the package, or OpenML."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from toprank.datasets import fetch, load_ionosphere, load_magic, load_spambase, load_wdbc
from toprank.reproduce.experiment import Table

#: Names a folder with files NAME.csv.gz: a header, numbers, the label 0 or 1 last.
FOLDER_VARIABLE = "TOPRANK_DATA"

SHIPPED: dict[str, Callable[..., Any]] = {
    "ionosphere": load_ionosphere,
    "magic": load_magic,
    "spambase": load_spambase,
    "wdbc": load_wdbc,
}


class DataMissing(Exception):
    """A data set that is neither here nor can be fetched; the message says what to do."""


def load(name: str, folder: Path | None = None) -> Table:
    """Return features and labels 0 and 1 of a data set.

    Parameters
    ----------
    name : str
        Its name.
    folder : Path, optional
        Where to look for NAME.csv.gz first; by default the folder that the environment variable
        TOPRANK_DATA names, if it does.

    Returns
    -------
    tuple of X, y
        Read from the folder, else from the package, else from OpenML (and its cache).

    Raises
    ------
    DataMissing
        If it is nowhere to be had.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    for place in (folder, Path(named) if named else None):
        if place is not None and (place / f"{name}.csv.gz").is_file():
            return _read(place / f"{name}.csv.gz")
    if name in SHIPPED:
        return SHIPPED[name](return_X_y=True)
    try:
        return fetch(name, return_X_y=True)
    except (ImportError, OSError) as error:
        raise DataMissing(
            f"not run: the data set {name} is not here. Fetch it with "
            f'`toprank.datasets.fetch("{name}")`, which keeps it, where there is a network and '
            f"pandas; or put {name}.csv.gz (a header, numbers, the label 0 or 1 last) into a "
            f"folder and name the folder in the environment variable {FOLDER_VARIABLE}."
        ) from error


def in_unit_interval(X: np.ndarray) -> np.ndarray:
    """Scale each column to [0, 1] over all its rows, as the papers do; a constant becomes 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def fingerprint(table: Table) -> str:
    """Return a few letters that tell one data set from another."""
    digest = hashlib.sha256()
    for array in table:
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def _read(path: Path) -> Table:
    with gzip.open(path, "rt", encoding="ascii") as file:
        numbers = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    labels = numbers[:, -1]
    if not np.all(np.isin(labels, (0, 1))):
        raise ValueError(f"'{path}': the last column should hold the labels 0 and 1.")
    return np.ascontiguousarray(numbers[:, :-1]), labels.astype(np.int64)
