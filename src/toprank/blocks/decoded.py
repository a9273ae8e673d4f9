"""The rows of a table that passes decode, kept in a temporary file for the passes after them.

Decoding a Parquet file takes ten times as long as reading the numbers that come out of it. The
first pass of a fit writes them to a file without a name, which is gone with the source or with
the process, however that ends. A block is written while the next one is decoded. A pass finds
there the same numbers in the same blocks, so that answers do not depend on whether there was room
for the file. Passes map it, block by block: no number is copied on its way from the system's cache
to the sums.
"""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from toprank.blocks.columns import Columns
from toprank.blocks.source import Block
from toprank.blocks.threads import thread_pool

#: The share of what is free on the disk that the file may take.
_SHARE = 0.25
#: Bytes after which a disk has shown whether it writes faster than rows are decoded.
_TRIED = 1 << 28
#: How much longer than decoding writing may take: it goes on meanwhile, and waits for its turn.
_PATIENCE = 2.0
#: Bytes of rows that are put together from columns at once: they are still in the cache when they
#: are written.
_TILE_BYTES = 1 << 22
#: Bytes of all rows from which a compiled kernel puts them together, and from which Numba is loaded
#: for it where nothing is copied: that may be a single pass.
_COMPILED_FROM, _LOADED_FROM = 1 << 27, 1 << 30
#: Where an array may begin within a block.
_ALIGNED = 64


class _Place(NamedTuple):
    """Where an array lies, counted from the first byte of its block."""

    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def end(self) -> int:
        return self.start + self.dtype.itemsize * int(np.prod(self.shape))


class DecodedCopy:
    """The blocks of one source, in order, in a file that has no name.

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
    >>> blocks = [Block(0, np.ones((2, 1))), Block(1, np.zeros((2, 1)), np.array([1, 0]))]
    >>> _ = list(copy.keep(block for block in blocks))
    >>> again = list(copy.read())
    >>> copy.ready, again[1].X.tolist(), again[1].y.tolist()
    (True, [[0.0], [0.0]], [1, 0])
    """

    def __init__(self, size: int, folder: str | PathLike[str] | None = None):
        self.size = size
        self.folder = tempfile.gettempdir() if folder is None else folder
        self.ready = False
        #: Whether labels, weights and groups are kept: texts are not.
        self.with_labels = True
        #: Of each block the offset in the file, and the places of its arrays.
        self._blocks: list[tuple[int, dict[str, _Place]]] = []
        self._file: Any = None
        self._given_up = False
        self._writing = Lock()
        self._decode_seconds = self._write_seconds = 0.0

    def keep(self, blocks: Generator[Block, None, None]) -> Generator[Block, None, None]:
        """Yield the blocks of a pass and write them, if nobody does so already.

        Their features may be `toprank.blocks.columns.Columns`; they come out as matrices.
        """
        if self._given_up or self.ready or not self._writing.acquire(blocking=False):
            yield from in_rows(blocks, self.size)
            return
        try:
            self._start()
            with closing(blocks), thread_pool(1, "toprank-writer") as writer:
                waiting: Future[Block] | None = None
                while (block := self._next(blocks)) is not None:
                    # it is written while the one after it is decoded
                    last, waiting = waiting, writer.submit(self._take_in, block)
                    del block  # the columns are let go once they are written
                    if last is not None:
                        yield last.result()
                if waiting is not None:
                    yield waiting.result()
            self.ready = not self._given_up
        finally:
            self._writing.release()

    def _next(self, blocks: Generator[Block, None, None]) -> Block | None:
        """The next block, or None; the time is taken."""
        begun = time.perf_counter()
        block = next(blocks, None)
        self._decode_seconds += time.perf_counter() - begun
        return block

    def _take_in(self, block: Block) -> Block:
        """Write a block, and return it as it lies in the file."""
        self._write_seconds += self._write(block)
        if self._write_seconds > _PATIENCE * self._decode_seconds and self._end() > _TRIED:
            self._give_up()  # a slow disk: decoding again is faster
        return _in_rows(block, self.size) if self._given_up else self._replace(block)

    def _start(self) -> None:
        self._blocks, self.with_labels = [], True
        self._decode_seconds = self._write_seconds = 0.0
        with suppress(OSError):
            if self._file is None and self.size <= _SHARE * shutil.disk_usage(self.folder).free:
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)
                weakref.finalize(self, self._file.close)
        self._given_up = self._file is None

    def _write(self, block: Block) -> float:
        """Write a block, and return the seconds that its features took."""
        if self._given_up:
            return 0.0
        try:
            offset, took = _next_page(self._end()), 0.0
            self._file.seek(offset)
            places = {"X": _Place(0, block.X.shape, block.X.dtype)}
            for rows in _tiles(block.X, self.size >= _COMPILED_FROM):
                before = time.perf_counter()
                self._write_bytes(rows)
                took += time.perf_counter() - before
            end = places["X"].end
            for name in ("y", "weight", "groups"):
                values = getattr(block, name)
                if values is None:
                    continue
                if values.dtype.hasobject:
                    self.with_labels = False
                    continue
                places[name] = _Place(-(-end // _ALIGNED) * _ALIGNED, values.shape, values.dtype)
                self._file.seek(offset + places[name].start)
                self._write_bytes(values)
                end = places[name].end
            self._blocks.append((offset, places))
            return took
        except OSError:  # the disk is full
            self._give_up()
            return 0.0

    def _write_bytes(self, values: np.ndarray) -> None:
        left = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        while left:
            left = left[self._file.write(left) :]

    def _end(self) -> int:
        if not self._blocks:
            return 0
        offset, places = self._blocks[-1]
        return offset + max(place.end for place in places.values())

    def _give_up(self) -> None:
        self._given_up, self._blocks = True, []
        with suppress(OSError):
            self._file.close()

    def _arrays(self, index: int) -> dict[str, Any]:
        """Map the arrays of a block: they take memory while they are looked at."""
        offset, places = self._blocks[index]
        size = max(place.end for place in places.values())
        if not size:
            return {name: np.empty(place.shape, place.dtype) for name, place in places.items()}
        # a copy on write, of which nobody makes use: compiled code takes read-only arrays for a
        # type of its own
        mapped = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_COPY, offset=offset)
        if hasattr(os, "posix_fadvise"):  # where the cache had no room, read ahead of the sums
            os.posix_fadvise(self._file.fileno(), offset, size, os.POSIX_FADV_WILLNEED)
        return {
            name: np.frombuffer(
                mapped, place.dtype, int(np.prod(place.shape)), place.start
            ).reshape(place.shape)
            for name, place in places.items()
        }

    def _replace(self, block: Block) -> Block:
        return replace(block, **self._arrays(len(self._blocks) - 1))

    def read(self) -> Iterator[Block]:
        """Yield the blocks as they were kept."""
        for index in range(len(self._blocks)):
            yield Block(index, **self._arrays(index))

    def fill(self, labels: Generator[Block, None, None]) -> Generator[Block, None, None]:
        """Yield blocks that were read without their features, with them."""
        with closing(labels):
            for block in labels:
                yield replace(block, X=self._arrays(block.index)["X"])


def in_rows(blocks: Generator[Block, None, None], size: int) -> Generator[Block, None, None]:
    """Yield blocks with their features as matrices, row by row; all of them have ``size`` bytes."""
    with closing(blocks):
        for block in blocks:
            yield _in_rows(block, size)


def _in_rows(block: Block, size: int) -> Block:
    X = block.X
    if not isinstance(X, Columns):
        return block
    enough = _COMPILED_FROM if "numba" in sys.modules else _LOADED_FROM
    fill_rows = _fill_compiled(X) if size >= enough else None
    if fill_rows is None:
        return replace(block, X=X.by_rows())
    rows = np.empty(X.shape, X.dtype)
    fill_rows(0, rows)
    return replace(block, X=rows)


def _tiles(X: np.ndarray | Columns, compiled: bool) -> Iterator[np.ndarray]:
    """The rows of a matrix, or those of columns a few at a time."""
    if not isinstance(X, Columns):
        yield X
        return
    n_rows = max(1, _TILE_BYTES // max(1, X.dtype.itemsize * X.shape[1]))
    room = np.empty((min(n_rows, len(X)), X.shape[1]), X.dtype)
    fill_rows = _fill_compiled(X) if compiled else None
    for first in range(0, len(X), n_rows):
        rows = slice(first, min(first + n_rows, len(X)))
        if fill_rows is None:
            yield X.by_rows(rows, room)
        else:
            tile = room[: rows.stop - first]
            fill_rows(first, tile)
            yield tile


def _fill_compiled(X: Columns) -> Callable[[int, np.ndarray], None] | None:
    """The compiled way to put rows together, where the columns are of one type."""
    from toprank.blocks.kernels_columns import ColumnAddresses  # loads Numba

    found = ColumnAddresses.of(X.columns, X.dtype)
    return None if found is None else found.fill_rows


def _next_page(offset: int) -> int:
    """The next offset at which a file can be mapped."""
    return -(-offset // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
