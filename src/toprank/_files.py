"""Files that appear whole or not at all, and files that must not change while they are read.

A file is written beside its place under a name of its own, forced to the disk and moved there in
one step, so that a writer that fails, is killed or loses its power leaves what was there before.
What a killed writer leaves beside it is removed by the next writer in the same folder: a writer
holds a lock on its part, which the system takes back when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # no POSIX: what killed writers left stays until the user removes it
    fcntl = None  # type: ignore[assignment]

#: What parts are called; short, so that every name that fits on the disk can be written.
_PREFIX, _SUFFIX = ".toprank-", ".part"


@dataclass(frozen=True)
class Stamp:
    """What a file was when it was first looked at: the passes over it must see the same rows."""

    path: Path
    size: int
    changed: int  #: in nanoseconds

    @classmethod
    def of(cls, path: Path) -> Stamp:
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
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once all of it is written.

    A link is followed. The permissions of a file that is replaced are kept, and its owner where
    the system lets the writer give files away; further names (hard links) keep the old content.

    Raises
    ------
    OSError
        If the file cannot be written, with its path as ``filename``; what was there is unchanged.
    """
    with _explained(path):
        target, old = _target(path)
        _remove_left_behind(target.parent)
        part, raw = _new_part(path, target, old)
    try:
        # a large buffer: each write to the raw file passes through Python
        with io.BufferedWriter(raw, 1 << 18) as file, raw.forgotten_on_failure():
            yield file
            file.flush()
            with _explained(path):
                os.fsync(raw.fileno())  # else a crash could leave the new name on an empty file
                if fcntl is not None:  # under the lock, or another writer could remove the part
                    os.replace(part, target)
        if fcntl is None:  # there, an open file cannot be moved
            with _explained(path):
                os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    _sync(target.parent)


def check_folder(folder: Path) -> None:
    """Raise OSError if no file can be made in a folder: before the work, not after it."""
    with _explained(folder):
        part, raw = _new_part(folder, folder / "any", None)
        raw.close()
        with suppress(FileNotFoundError):  # another writer has found it without a lock
            os.unlink(part)


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """The file that is to be replaced, behind all links, and what it is now."""
    target = Path(os.path.realpath(path))
    try:
        old = os.lstat(target)
    except FileNotFoundError:
        return target, None
    if not stat.S_ISREG(old.st_mode):  # a device would be replaced by a file
        raise OSError(f"'{path}' is not a file that can be replaced.")
    if not os.access(target, os.W_OK):  # else the move would pass by the protection
        raise PermissionError(errno.EACCES, "it is protected against writing", str(path))
    return target, old


class _Part(io.FileIO):
    """A file beside its place; an error in writing names the file that was meant."""

    path: Path
    given_up = False

    def write(self, data: Any) -> int:
        if self.given_up:  # what the buffer still holds is for nobody
            return memoryview(data).nbytes
        with _explained(self.path):
            return super().write(data)

    @contextmanager
    def forgotten_on_failure(self) -> Iterator[None]:
        """Write nothing more after an error: closing must not raise another in its place."""
        try:
            yield
        except BaseException:
            self.given_up = True
            raise


def _new_part(path: Path, target: Path, old: os.stat_result | None) -> tuple[Path, _Part]:
    """A new, locked file beside the target, open to nobody whom the old file is closed to."""
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    while True:
        part = target.with_name(f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")
        raw = _Part(part, "xb", opener=lambda name, flags: os.open(name, flags, mode))
        raw.path = path
        try:
            if _locked(raw):
                if old is not None:
                    _dress(raw.fileno(), old, mode)
                return part, raw
            raw.close()
        except BaseException:
            raw.close()
            os.unlink(part)
            raise


def _locked(raw: _Part) -> bool:
    """Lock a new part; False if another writer took it for one left behind in between."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody removes parts there
        return True
    return os.fstat(raw.fileno()).st_nlink > 0


def _dress(descriptor: int, old: os.stat_result, mode: int) -> None:
    """Give a part the owner and the permissions of the file that it replaces."""
    if not hasattr(os, "fchown"):
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except OSError:  # then the writer's own group gets no more than everybody
            mode = (mode & 0o707) | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


def _remove_left_behind(folder: Path) -> None:
    """Remove the parts whose writers are gone; those at work hold a lock."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        parts = [e.path for e in entries if e.name.startswith(_PREFIX) and e.name.endswith(_SUFFIX)]
        for part in parts:
            with suppress(OSError):
                # neither waits for a pipe of that name, nor follows a link
                descriptor = os.open(part, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(part)
                finally:
                    os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Name the file that was meant, and say what an error left of it and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        said = f"could not be written ({error.strerror}); what was there is unchanged."
        raise OSError(error.errno, f"{said} {_remedy(error.errno)}", str(path)) from error


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
