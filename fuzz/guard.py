"""What reading a file must never do: write, run, connect, unpickle. Watched by an audit hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_NEVER = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pickle.find_class",
    "shutil.rmtree",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LOADERS = ("<frozen importlib._bootstrap>", "numba/core/caching.py", "numba/core/dispatcher.py")
_watching = False
_installed = False


class Harm(BaseException):
    """A file made its reader do what no reader does; not an Exception, so that none swallows it."""


@contextmanager
def harmless() -> Iterator[None]:
    """Raise `Harm` if the code inside writes a file, starts a process, connects or unpickles."""
    global _watching, _installed
    if not _installed:
        sys.addaudithook(_look)  # it stays for good, and does nothing outside of this context
        _installed = True
    before, _watching = _watching, True
    try:
        yield
    finally:
        _watching = before


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    harmful = (
        event in _NEVER
        or (event == "open" and _is_for_writing(*arguments))
        or (event == "exec" and arguments[0].co_filename == "<string>")
    )
    if harmful and not _is_loading_code():
        raise Harm(f"{event}{arguments[:2]!r}")


def _is_for_writing(path: Any, mode: str | None, flags: int) -> bool:
    return bool(flags & _WRITES) and str(path) != os.devnull


def _is_loading_code() -> bool:
    """Whether a library or its compiled kernels are being loaded; they run and keep their own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith(_LOADERS):
            return True
        frame = frame.f_back
    return False
