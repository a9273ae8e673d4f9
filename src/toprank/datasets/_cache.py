"""Whether what a cache of OpenML holds belongs together.

A cache has a file that describes a data set, one that lists its columns, and the rows. The rows
are known by their sum, which the description holds; a file that is damaged is fetched again by
scikit-learn. What is left is a whole file in the place of another.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.datasets import get_data_home

_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)""", re.IGNORECASE
)


def where(data_home: str | PathLike[str] | None) -> Path:
    """Return the folder in which scikit-learn keeps what it fetches from OpenML."""
    return Path(get_data_home(data_home), "openml")


def check_together(bunch: Any, data_id: int, folder: Path | None) -> None:
    """Raise ValueError where the files of a data set are not of one data set.

    Parameters
    ----------
    bunch : Bunch
        What scikit-learn made of the files.
    data_id : int
        What was asked for.
    folder : path or None
        The cache; None where there is none.
    """
    found = str(bunch.details.get("id", data_id))
    if found != str(data_id):
        raise ValueError(f"the description of {data_id} {_other(f'is that of {found}', folder)}")
    rows = None if folder is None else _rows(bunch.details.get("url", ""), folder)
    if rows is not None and not _agree([str(name) for name in bunch.feature_names], rows):
        raise ValueError(
            f"the list of columns of {data_id} {_other('does not fit its rows', folder)}"
        )


def _other(what: str, folder: Path | None) -> str:
    return f"{what}: one file stands in the place of another. {again(folder)}"


def again(folder: Path | None) -> str:
    """What to do about files that cannot be used; they lie in a folder, or came just now."""
    return "Try again later." if folder is None else f"Remove the folder {folder}; fetch again."


def _rows(url: str, folder: Path) -> Path | None:
    place = re.sub(r"^\w+://[^/]*/+", "", url)
    path = Path(folder, "openml.org", place + ".gz")
    return path if path.is_file() else None


def _agree(names: list[str], rows: Path) -> bool:
    """Whether the columns have the order of the file of rows.

    Names are spelled in several ways, so that one that is not found says nothing; but if none is
    found the names belong to other rows.
    """
    header = {name: place for place, name in enumerate(_header(rows))}
    places = [header[_plain(name)] for name in names if _plain(name) in header]
    return (bool(places) or not names) and places == sorted(places)


def _header(rows: Path) -> Iterator[str]:
    with gzip.open(rows, "rt", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.lstrip().lower().startswith("@data"):
                return
            if found := _ATTRIBUTE.match(line.strip()):
                yield _plain(found[1])


def _plain(name: str) -> str:
    return re.sub(r"[^\w]", "", name).lower()
