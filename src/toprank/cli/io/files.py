"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from toprank._files import check_folder, replacing
from toprank.cli.failures import Failure

__all__ = ["check_output", "check_writable", "replacing"]


def check_output(path: Path, suffixes: Collection[str] = (), read: Collection[Path] = ()) -> None:
    """Find out before the work, not after, that its result cannot be saved.

    Parameters
    ----------
    path : Path
        The file to be written later.
    suffixes : collection of str
        Endings of a file name that are understood, without the dot; none for any.
    read : collection of Path
        Files that are read, and are not to be lost.
    """
    try:
        check_writable(path, suffixes)
    except (OSError, ValueError) as error:
        raise Failure(f"--output: {error}") from error
    for other in read:
        if path.exists() and other.exists() and path.samefile(other):
            raise Failure(f"--output: '{path}' is read by this command; name another file.")


def check_writable(path: Path, suffixes: Collection[str] = ()) -> None:
    """Raise OSError or ValueError, with the remedy, if no file can be written at a path.

    Parameters
    ----------
    path : Path
        The file to be written later.
    suffixes : collection of str
        Endings of a file name that are understood, without the dot; none for any.
    """
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' is a device or a pipe, and would be replaced; name a file.")
    if suffixes and path.suffix.lstrip(".").lower() not in suffixes:
        raise ValueError(
            f"'{path}' should end in one of: {', '.join('.' + s for s in sorted(suffixes))}."
        )
    if not path.parent.is_dir():
        raise NotADirectoryError(f"'{path.parent}' is not a folder; make it, or name another.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"'{path}' is protected against writing; allow it, or name another.")
    folder = Path(os.path.realpath(path)).parent  # a link may lead elsewhere
    try:
        check_folder(folder)
    except OSError as error:
        raise PermissionError(f"the folder '{folder}' {error.strerror}.") from error
