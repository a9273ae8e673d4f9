"""Files that appear whole or not at all, and files that must not change while they are read.

A file is written beside its place under a name of its own, forced to the disk and moved there in
one step, so that a writer that fails, is killed or loses its power leaves what was there before.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

#: What stands before :// in an address; one letter would be a drive.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)


def address_of(given: str | os.PathLike[str]) -> str | None:
    """Return what names a store or begins with ``file://``; None where it is a plain path.

    Of the slashes of an address a path keeps one.
    """
    found = _ADDRESS.match(os.fspath(given))
    if found is None:
        return None
    root = "/" if found[1].lower() == "file" else ""  # there is no host before the path
    return f"{found[1]}://{root}{found[2]}"


def path_on_disk(given: str | os.PathLike[str], name: str) -> Path:
    """Return a path that is written to, also one that begins with ``file://``.

    Parameters
    ----------
    given : str or path
    name : str
        What it is given as, for the message.

    Raises
    ------
    ValueError
        Where it is the address of a store: as a path it would be a folder named ``s3:`` here.
    """
    address = address_of(given)
    if address is None:
        return Path(given)
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    raise ValueError(
        f"{name} {address!r} is the address of a store, and files are written to disks only: give "
        "a path (on a network drive, if another machine is to read it), and copy them from there."
    )


class Status(Protocol):
    """What is asked of the status of a file."""

    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class HasStatus(Protocol):
    """A path, or whatever else has a ``stat``."""

    def stat(self) -> Status: ...


@dataclass(frozen=True)
class Stamp:
    """What a file was when it was first looked at: the passes over it must see the same rows."""

    path: HasStatus
    size: int
    changed: int  #: in nanoseconds

    @classmethod
    def of(cls, path: HasStatus) -> Stamp:
        """The stamp of a file as it is now."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Raise an error if the file is not the one that was looked at first."""
        try:
            now = Stamp.of(self.path)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.path} was there when the source was made and is gone now. Put it back, or "
                "make the source anew."
            ) from error
        if now != self:
            raise RuntimeError(
                f"{self.path} has changed since the source was made ({self.size} bytes then, "
                f"{now.size} now): the passes of a fit must see the same rows. Make the source "
                "anew."
            )


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once all of it is written.

    A link is followed. The permissions of a file that is replaced are kept; further names (hard
    links) keep the old content.

    Raises
    ------
    OSError
        If the file cannot be written, with its path as ``filename``; what was there is unchanged.
    """
    try:
        target, mode = _target(path)
        # a short name, so that every name that fits on the disk can be written
        part = target.with_name(f".toprank-{secrets.token_hex(8)}.part")
        raw = open(part, "xb", buffering=0)
        file = io.BufferedWriter(raw, 1 << 18)
    except OSError as error:
        raise _explain_error(error, path) from error
    try:
        if mode is not None:
            os.chmod(part, mode)
        yield cast(BinaryIO, file)
        file.flush()
        os.fsync(file.fileno())  # else a crash could leave the new name on an empty file
        file.close()
        os.replace(part, target)
    except BaseException as error:
        raw.close()  # without writing what the buffer still holds
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.filename in (None, os.fspath(part)):
            raise _explain_error(error, path) from error
        raise
    _sync(target.parent)


def check_folder(folder: Path) -> None:
    """Raise OSError if no file can be made in a folder: before the work, not after it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _explain_error(error, folder) from error


def _target(path: Path) -> tuple[Path, int | None]:
    """The file that is to be replaced, behind all links, and its permissions if it is there."""
    target = Path(os.path.realpath(path))
    try:
        old = os.lstat(target)
    except FileNotFoundError:
        return target, None
    if not stat.S_ISREG(old.st_mode):  # a device would be replaced by a file
        raise OSError(f"'{path}' is not a file that can be replaced.")
    if not os.access(target, os.W_OK):  # else the move would pass by the protection
        raise PermissionError(errno.EACCES, "it is protected against writing", str(path))
    return target, stat.S_IMODE(old.st_mode)


def _explain_error(error: OSError, path: Path) -> OSError:
    """The error with the file that was meant, what is left of it, and what to do."""
    if error.errno is None:
        return error
    cause = f"could not be written ({error.strerror}); what was there is unchanged."
    return OSError(error.errno, f"{cause} {_remedy(error.errno)}", str(path))


def _remedy(code: int) -> str:
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "Free some space, or name another place"
    if code in (errno.ENOENT, errno.ENOTDIR):
        return "Make the folder first, or name another"
    return "Allow writing there, or name another place"


def _sync(folder: Path) -> None:
    """Force a folder's new entry to the disk, where the system knows of such a thing."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
