"""Where files of a table lie: paths, folders, patterns, addresses of stores, datasets of pyarrow.

A folder's subfolders named ``key=value`` (as Hive, Spark and Dask write them) are columns of the
table: every row of their files has that value.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from toprank._extras import require
from toprank._files import SCHEME
from toprank.blocks.retries import RetriedFile, try_again

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem

#: Stores that pyarrow reads by itself; all others need fsspec.
_ARROW_STORES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_WILD = re.compile(r"[*?\[]")
#: What Hive writes for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, order=True)
class StoredFile:
    """A file behind a file system of pyarrow: in an object store, on the web, in memory."""

    address: str
    path: str = field(compare=False)
    filesystem: FileSystem = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    def resolve(self) -> StoredFile:
        return self

    def stat(self) -> SimpleNamespace:
        """Return the size and the time of the last change, where the store knows it."""
        fs = require("pyarrow.fs", "frames")
        info = try_again(self.address, lambda: self.filesystem.get_file_info(self.path))
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"There is no file {self.address}.")
        return SimpleNamespace(st_size=info.size, st_mtime_ns=info.mtime_ns or 0)

    def open_input(self) -> RetriedFile:
        """Open the file for reading; reads that fail are tried again."""
        return RetriedFile(self.address, lambda: self.filesystem.open_input_file(self.path))


Place = Path | StoredFile

#: Files of a table as they are named: a path, folder, pattern or address, several, or a dataset.
Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset"


@dataclass(frozen=True)
class FoundFile:
    """A file of a table, and the values that the names of its folders give to its rows."""

    place: Place
    keys: Mapping[str, object] = field(default_factory=dict)


def find_files(path: Paths) -> list[FoundFile]:
    """Return the files of a path, folder, pattern, address, dataset, or of a list of these.

    Raises
    ------
    FileNotFoundError
        If there is none.
    TypeError
        If ``path`` is none of these, such as an open file.
    """
    found = list(_find(path))
    if not found:
        raise FileNotFoundError(
            f"No Parquet file at {path!s}: expected a file, a folder of *.parquet files, a glob "
            "pattern, or an address such as s3://bucket/folder."
        )
    return _same_keys(found)


def _find(path: Paths) -> Iterator[FoundFile]:
    if isinstance(path, str | os.PathLike):
        text = os.fspath(path)
        scheme = SCHEME.match(text)
        if scheme is None:
            yield from _on_this_machine(text)
        elif scheme[1] == "file":
            yield from _on_this_machine(unquote(urlsplit(text).path))
        else:
            yield from _in_a_store(text, scheme[1])
    elif hasattr(path, "get_fragments"):
        yield from _in_a_dataset(path)
    elif hasattr(path, "read") or not isinstance(path, Iterable):
        raise TypeError(
            f"path is a {type(path).__name__}; expected the path or address of files, a list of "
            "them, or a pyarrow dataset. An open file cannot be read anew at every pass: give its "
            "path."
        )
    else:
        for part in path:
            yield from _find(part)


def _on_this_machine(path: str) -> Iterator[FoundFile]:
    if os.path.isdir(path):
        files = [
            file
            for file in Path(path).rglob("*.parquet")
            if _is_public(file.relative_to(path).parts)
        ]
        for file in sorted(files):
            yield FoundFile(file, _keys_of(file.relative_to(path).parts[:-1]))
    elif os.path.exists(path):
        yield FoundFile(Path(path))
    else:
        parts = Path(path).parts
        wild = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts))
        root = Path(*parts[:wild])
        for file in sorted(map(Path, glob.glob(path, recursive=True))):
            if file.is_file():
                yield FoundFile(file, _keys_of(file.relative_to(root).parts[:-1]))


def _in_a_store(address: str, scheme: str) -> Iterator[FoundFile]:
    fs = require("pyarrow.fs", "frames")
    pattern = _WILD.search(address.split("://", 1)[1]) if scheme not in ("http", "https") else None
    root = _fixed_part(address) if pattern else address
    filesystem, start = _open_store(root, scheme)
    info = try_again(address, lambda: filesystem.get_file_info(start))
    if info.type == fs.FileType.File:
        yield FoundFile(_stored(filesystem, start, scheme))
        return
    if info.type != fs.FileType.Directory:
        return
    selector = fs.FileSelector(start, recursive=True)
    below = try_again(address, lambda: filesystem.get_file_info(selector))
    wanted = _pattern(address[len(root) :].lstrip("/")) if pattern else re.compile(r".*\.parquet")
    for path in sorted(one.path for one in below if one.type == fs.FileType.File):
        parts = path[len(start) :].strip("/").split("/")
        if wanted.fullmatch("/".join(parts)) and (pattern or _is_public(parts)):
            yield FoundFile(_stored(filesystem, path, scheme), _keys_of(parts[:-1]))


def _open_store(address: str, scheme: str) -> tuple[FileSystem, str]:
    """The file system behind an address, and the path in it."""
    fs = require("pyarrow.fs", "frames")
    if scheme in _ARROW_STORES:
        arrow = require("pyarrow", "frames")
        try:
            filesystem, path = fs.FileSystem.from_uri(address)
            return filesystem, path
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            pass  # this build of pyarrow does not have it; fsspec may
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError as error:
        raise ImportError(
            f"{address}: addresses of {scheme}:// are read by fsspec; install it with: pip install "
            "fsspec"
        ) from error
    try:
        store, path = url_to_fs(address)
    except ValueError as error:
        raise ValueError(f"{address} cannot be opened: {error}.") from error
    return fs.PyFileSystem(fs.FSSpecHandler(store)), path


def _stored(filesystem: object, path: str, scheme: str) -> StoredFile:
    address = path if "://" in path else f"{scheme}://{path.lstrip('/')}"
    return StoredFile(address, path, filesystem)


def _in_a_dataset(dataset: Dataset) -> Iterator[FoundFile]:
    fs, of_dataset = require("pyarrow.fs", "frames"), require("pyarrow.dataset", "frames")
    kind = getattr(getattr(dataset, "format", None), "default_extname", None)
    if kind != "parquet":
        raise TypeError(
            f"A {type(dataset).__name__} of {kind or 'rows in memory'} was given; expected a "
            "dataset of Parquet files. Use blocks.from_arrays for rows that fit into memory."
        )
    if getattr(dataset, "_scan_options", None):
        raise ValueError(
            "The dataset has a filter, which a block source would not apply. Write the rows that "
            "are wanted to files, or select the files."
        )
    for fragment in dataset.get_fragments():
        local = isinstance(fragment.filesystem, fs.LocalFileSystem)
        place = (
            Path(fragment.path)
            if local
            else _stored(fragment.filesystem, fragment.path, fragment.filesystem.type_name)
        )
        yield FoundFile(place, of_dataset.get_partition_keys(fragment.partition_expression))


def _is_public(parts: Iterable[str]) -> bool:
    return not any(part.startswith((".", "_")) for part in parts)


def _keys_of(folders: Iterable[str]) -> dict[str, str]:
    """The columns that names of folders such as day=3 stand for."""
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder.strip("="))
    return {unquote(name): unquote(value) for name, value in pairs}


def _fixed_part(pattern: str) -> str:
    """The folder that every address of a pattern lies in."""
    return _WILD.split(pattern, maxsplit=1)[0].rsplit("/", 1)[0]


def _pattern(text: str) -> re.Pattern[str]:
    """A glob pattern as a regular expression: * stays within a folder, ** does not."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\])", text)
    return re.compile(
        "".join(
            signs.get(part, part if part.startswith("[") else re.escape(part)) for part in parts
        )
    )


def _same_keys(found: list[FoundFile]) -> list[FoundFile]:
    """Give each column of folder names one type: whole numbers, numbers, or text."""
    typed: list[dict[str, object]] = [{} for _ in found]
    for name in found[0].keys:
        values = []
        for file in found:
            if file.keys.get(name, _MISSING) in (_MISSING, None):
                raise ValueError(
                    f"The folders of {found[0].place} give its rows a value of {name!r}, those of "
                    f"{file.place} do not. Name the files of one kind."
                )
            values.append(file.keys[name])
        for row, value in zip(typed, _of_one_type(values), strict=True):
            row[name] = value
    extra = [file for file in found if set(file.keys) - set(found[0].keys)]
    if extra:
        name = sorted(set(extra[0].keys) - set(found[0].keys))[0]
        raise ValueError(
            f"The folders of {extra[0].place} give its rows a value of {name!r}, those of "
            f"{found[0].place} do not. Name the files of one kind."
        )
    return [FoundFile(file.place, keys) for file, keys in zip(found, typed, strict=True)]


def _of_one_type(values: list[Any]) -> Sequence[object]:
    kinds = (float,) if any(isinstance(value, float) for value in values) else (int, float)
    for kind in kinds:
        try:
            return [kind(value) for value in values]
        except (TypeError, ValueError):
            continue
    return [str(value) for value in values]
