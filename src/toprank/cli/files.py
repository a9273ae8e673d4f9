"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_writable(path: Path, suffixes: Collection[str]) -> None:
    """Raise OSError or ValueError, with the remedy, if no file can be written at a path.

    Parameters
    ----------
    path : Path
        The file to be written later.
    suffixes : collection of str
        Endings of a file name that are understood, without the dot.
    """
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    if path.suffix.lstrip(".").lower() not in suffixes:
        raise ValueError(
            f"'{path}' should end in one of: {', '.join('.' + s for s in sorted(suffixes))}."
        )
    if not path.parent.is_dir():
        raise NotADirectoryError(f"'{path.parent}' is not a folder; make it, or name another.")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise PermissionError(
            f"cannot write in the folder '{path.parent}' ({error.strerror or error}); "
            "name another with --output."
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a neighbour of `path` for writing and move it there once all is written."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
