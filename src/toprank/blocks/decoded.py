"""The numbers of a table that passes decode, kept in a temporary file for the passes after them.

Decoding a Parquet file takes ten times as long as reading the numbers that come out of it. The
first pass of a fit writes them to a file without a name, which is gone with the source or with
the process, however that ends. A pass finds there the same numbers in the same blocks, so that
answers do not depend on whether there was room for the file.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from toprank._arrays import Frame, Matrix
from toprank.blocks.source import Block

#: The share of what is free on the disk that the file may take.
_SHARE = 0.25
#: Bytes after which a disk has shown whether it writes faster than rows are decoded.
_TRIED = 1 << 28


class DecodedCopy:
    """The matrices of the blocks of one source, in order, in a file that has no name.

    Parameters
    ----------
    size : int
        Bytes of all matrices.
    folder : path, optional
        Where the file goes; by default the folder for temporary files.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.blocks.decoded import DecodedCopy
    >>> from toprank.blocks.source import Block
    >>> copy = DecodedCopy(32)
    >>> blocks = [Block(0, np.ones((2, 1))), Block(1, np.zeros((2, 1)))]
    >>> _ = list(copy.keep(block for block in blocks))
    >>> copy.ready, copy.read(1).tolist()
    (True, [[0.0], [0.0]])
    """

    def __init__(self, size: int, folder: Any = None):
        self.size = size
        self.folder = tempfile.gettempdir() if folder is None else folder
        self.ready = False
        self._places: list[tuple[int, tuple[int, ...], np.dtype[Any]]] = []
        self._file: Any = None
        self._given_up = False
        self._reading, self._writing = Lock(), Lock()

    def keep(self, blocks: Generator[Block, None, None]) -> Generator[Block, None, None]:
        """Yield the blocks of a pass and write their matrices, if nobody does so already."""
        if self._given_up or self.ready or not self._writing.acquire(blocking=False):
            yield from blocks
            return
        try:
            self._start()
            decoding, writing, begun = 0.0, 0.0, time.perf_counter()
            with closing(blocks):
                for block in blocks:
                    decoded = time.perf_counter()
                    self._write(block.X)
                    decoding += decoded - begun
                    writing += time.perf_counter() - decoded
                    if writing > decoding and self._end() > _TRIED:
                        self._give_up()  # a slow disk: decoding again is faster
                    yield block
                    begun = time.perf_counter()
            self.ready = not self._given_up
        finally:
            self._writing.release()

    def _start(self) -> None:
        self._places = []
        with suppress(OSError):
            if self._file is None and self.size <= _SHARE * shutil.disk_usage(self.folder).free:
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)
                weakref.finalize(self, self._file.close)
        if self._file is None:
            self._given_up = True
        else:
            self._file.seek(0)

    def _write(self, X: Matrix | Frame) -> None:
        if self._given_up:
            return
        try:
            here = self._end()
            left = _bytes_of(np.ascontiguousarray(X))
            while left:
                left = left[self._file.write(left) :]
            self._places.append((here, X.shape, X.dtype))
        except OSError:  # the disk is full
            self._give_up()

    def _end(self) -> int:
        if not self._places:
            return 0
        start, shape, dtype = self._places[-1]
        return start + dtype.itemsize * int(np.prod(shape))

    def _give_up(self) -> None:
        self._given_up, self._places = True, []
        with suppress(OSError):
            self._file.close()

    def read(self, index: int) -> np.ndarray:
        """Return the matrix of a block."""
        start, shape, dtype = self._places[index]
        X = np.empty(shape, dtype)
        left = _bytes_of(X)
        with self._reading:
            self._file.seek(start)
            while left:
                count = self._file.readinto(left)
                if not count:
                    raise OSError("The temporary copy of the decoded rows has become shorter.")
                left = left[count:]
        return X

    def fill(self, labels: Generator[Block, None, None]) -> Generator[Block, None, None]:
        """Yield blocks that were read without their features, with them."""
        with closing(labels):
            for block in labels:
                yield replace(block, X=self.read(block.index))


def _bytes_of(X: Matrix) -> memoryview:
    """The bytes of an array, not copied."""
    return memoryview(X.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
