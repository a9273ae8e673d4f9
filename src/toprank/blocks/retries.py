"""Reads from object stores that are tried again: networks fail for a moment, objects do not.

A read that fails is made again from the place where it stood, on a connection of its own, after a
wait that doubles. One that fails for good raises `StoreError`, which names the object.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from toprank.blocks.threads import go_on

if TYPE_CHECKING:
    from pyarrow import NativeFile

Answer = TypeVar("Answer")

#: How often a read is tried, and the first wait in seconds.
TRIES, FIRST_WAIT = 5, 0.2
#: Answers that another try does not change.
_FOR_GOOD = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


class StoreError(OSError):
    """A store that did not answer, however often it was asked; the text names the object.

    Examples
    --------
    >>> from toprank import blocks
    >>> try:
    ...     raise blocks.StoreError("s3://bucket/rows/2.parquet could not be read")
    ... except blocks.StoreError as problem:  # an OSError, as those of local disks are
    ...     print(problem)
    s3://bucket/rows/2.parquet could not be read
    """


def try_again(what: str, action: Callable[[], Answer]) -> Answer:
    """Return what an action on a store returns, after as many tries as it takes.

    Parameters
    ----------
    what : str
        The address of the object, for the error.
    action : callable
        Raises OSError (timeouts and lost connections are such) where the store fails.
    """
    wait, left = FIRST_WAIT, TRIES
    while True:
        left -= 1
        try:
            return action()
        except _FOR_GOOD:
            raise
        except (OSError, EOFError) as problem:
            if left == 0:
                raise StoreError(
                    f"{what} could not be read: {TRIES} tries failed, the last one with "
                    f"{type(problem).__name__}: {problem}. The store may be down, or the way to "
                    "it; no file is left half-written, those that were complete before it stay. "
                    "Run it again when it answers; a fit with checkpoint= goes on where it stood."
                ) from problem
        go_on()
        time.sleep(wait)
        wait *= 2


class RetriedFile(io.RawIOBase):
    """A file of a store, open for reading, whose reads are tried again.

    Parameters
    ----------
    address : str
        What errors call it.
    open_file : callable
        Opens it anew, at its beginning.
    """

    def __init__(self, address: str, open_file: Callable[[], NativeFile]):
        super().__init__()
        self._address = address
        self._open = open_file
        self._place = 0
        self._file: Any = None
        self._size = int(self._asked(lambda file: file.size()))

    def _asked(self, action: Callable[[NativeFile], Answer]) -> Answer:
        def on_open_file() -> Answer:
            if self._file is None:
                self._file = self._open()
            try:
                return action(self._file)
            except (OSError, EOFError):
                self._forget()  # the next try has a connection of its own
                raise

        return try_again(self._address, on_open_file)

    def _forget(self) -> None:
        file, self._file = self._file, None
        with suppress(Exception):
            file.close()

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._place)
        wanted = left if size is None or size < 0 else min(size, left)

        def read_there(file: NativeFile) -> bytes:
            file.seek(self._place)
            found = file.read(wanted)
            if len(found) != wanted:
                raise EOFError(f"{len(found)} of {wanted} bytes came")
            return bytes(found)

        data = self._asked(read_there) if wanted else b""
        self._place += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if self._file is not None:
            self._forget()
        super().close()
