"""The data: the sets that ship with the package, and every FOLDER/NAME.csv.gz (last column y).

Groups, where a set has them, lie in FOLDER/groups/NAME.csv.gz; such a set is split by whole
groups. A training part of more than ``TRAIN_ROWS`` rows is thinned to that many, classes in
proportion, so that every peer can take it (LightGBM's rankers refuse a list of more than 10,000
rows); the test part is not.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from toprank import datasets

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
SHIPPED = ("ionosphere", "magic", "spambase", "wdbc")
TRAIN_ROWS = 5_000
TEST_SHARE = 1 / 3

#: Rows to train on, rows to measure on.
Cut = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Data:
    """A set: features, labels in {0, 1}, and groups where it has them."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None

    @property
    def positives(self) -> int:
        return int(self.y.sum())

    @property
    def negatives(self) -> int:
        return len(self.y) - self.positives


def names(folder: Path) -> list[str]:
    """The sets at hand, in alphabetical order."""
    here = {path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz")}
    return sorted(here | set(SHIPPED))


def by_size(sets: Iterable[str], folder: Path) -> list[str]:
    """The smaller files first; the shipped sets are small."""

    def size(name: str) -> tuple[int, str]:
        path = folder / f"{name}.csv.gz"
        return (0 if name in SHIPPED else path.stat().st_size), name

    return sorted(sets, key=size)


@cache
def load(name: str, folder: Path) -> Data:
    if name in SHIPPED:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return Data(name, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.int64))
    table = _table(folder / f"{name}.csv.gz")
    groups = folder / "groups" / f"{name}.csv.gz"
    return Data(
        name,
        np.ascontiguousarray(table[:, :-1]),
        table[:, -1].astype(np.int64),
        _table(groups)[:, -1].astype(np.int64) if groups.is_file() else None,
    )


def _table(path: Path) -> NDArray[np.float64]:
    if importlib.util.find_spec("pandas"):  # ten times faster
        import pandas as pd

        return np.ascontiguousarray(pd.read_csv(path).to_numpy(dtype=np.float64))
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)


def splits(
    data: Data, n_splits: int, *, train_rows: int = TRAIN_ROWS, seed: int = 0
) -> Iterator[Cut]:
    """Random cuts, stratified or by whole groups, the same for every ranker."""
    if data.groups is None:
        cutter = StratifiedShuffleSplit(n_splits, test_size=TEST_SHARE, random_state=seed)
    else:
        cutter = GroupShuffleSplit(n_splits, test_size=TEST_SHARE, random_state=seed)
    for number, (train, test) in enumerate(cutter.split(data.X, data.y, data.groups)):
        yield thinned(train, data.y, train_rows, seed=[seed, number]), test


def thinned(
    rows: NDArray[np.intp], y: NDArray[np.int64], count: int, *, seed: list[int]
) -> NDArray[np.intp]:
    """At most so many of the rows, drawn at random, each class in proportion."""
    if len(rows) <= count:
        return rows
    rng = np.random.default_rng(seed)
    parts = []
    for label in (0, 1):
        members = rows[y[rows] == label]
        keep = max(1, round(count * len(members) / len(rows)))
        parts.append(rng.choice(members, keep, replace=False))
    return np.sort(np.concatenate(parts))
