"""What every source of row blocks offers: one map-reduce, wherever the rows lie.

A source knows where its blocks are: in this process, in files, on the workers of a cluster, on
a device. A sweep knows what one block contributes and how two contributions merge. Nothing
else depends on scale: threads, Parquet row groups, Dask, Spark and GPUs differ only in how they
bring a sweep to the blocks.

Blocks that this process reads are mapped over in threads and merged in order. A thread of its own
reads ahead, so that reading and computing overlap. No more blocks are held than there are threads
to work on them, one in waiting and one being read; of Parquet files that a fit copies, one more.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank._numerics import FloatArray
from toprank.blocks.threads import Workers, thread_pool

if TYPE_CHECKING:
    from pathlib import Path

    from dask.array import Array
    from pyspark.sql import DataFrame
    from torch import Tensor

State = TypeVar("State", contravariant=True)
Partial = TypeVar("Partial")
Piece = TypeVar("Piece")

#: Scores as an engine hands them back: an array or a tensor, the files that hold them, or what a
#: cluster computes when asked.
Scores: TypeAlias = "FloatArray | Tensor | Path | list[Path] | Array | DataFrame"

#: An entry that no fit can use: the index of its block, its column, what it is.
Bad: TypeAlias = tuple[int, int, str]


@dataclass
class Block:
    """Some rows of the data, as they lie: features, labels, weights.

    ``X`` is a NumPy array, a CSR matrix, `toprank.blocks.columns.Columns` from a file, or a
    tensor on its device; ``y`` holds the labels as the user gave them (None where rows are only
    scored). A block without rows is allowed, and so is one with rows of a single class.
    """

    index: int  #: its place in the order in which partial results are merged
    X: Any
    y: Any = None
    weight: Any = None
    groups: Any = None  #: which rows belong together, or when each was seen
    #: Things worth keeping while the block stays where it is. A source may hand out a fresh,
    #: empty one at every pass, so nothing may depend on it but time.
    cache: dict[object, Any] = field(default_factory=dict)
    #: The same for what depends on the rows alone: all who read the block share it.
    facts: dict[object, Any] = field(default_factory=dict)

    def for_reader(self, reader: object) -> Block:
        """Return the block with a cache for one of several who read it in the same pass.

        It stays with sparse rows alone, whose gradient is the matter of two passes.
        """
        kept = self.cache.setdefault(("reader", reader), {}) if issparse(self.X) else {}
        return replace(self, cache=kept)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])


class Sweep(Protocol[State, Partial]):
    """What a pass over the data gathers. It travels to the blocks: picklable, and small."""

    def local(self, block: Block, state: State) -> Partial:
        """Return what the rows of one block contribute; ``state`` is no larger than a few d x d."""
        ...

    def merge(self, left: Partial, right: Partial) -> Partial:
        """Join two contributions, associatively; either may be overwritten."""
        ...


def join_pieces(left: dict[int, Piece], right: dict[int, Piece]) -> dict[int, Piece]:
    """Join pieces of an answer kept under the indices of their blocks, in the larger of the two.

    Examples
    --------
    >>> from toprank.blocks.source import join_pieces
    >>> join_pieces({2: "c"}, {0: "a", 1: "b"})
    {0: 'a', 1: 'b', 2: 'c'}
    """
    small, large = sorted((left, right), key=len)  # a new one for every merge would be quadratic
    large.update(small)
    return large


def not_numbers(columns: Sequence[str], advice: str) -> ValueError:
    """Return the error for columns of a table that hold something else than numbers."""
    return ValueError(
        f"A linear ranker needs numbers; these columns hold none: {', '.join(columns)}. Encode "
        f"categories first, for example with {advice}."
    )


@runtime_checkable
class ShowsBad(Protocol):
    """A sweep whose sums are finite only if every entry that it reads is."""

    @property
    def shows_bad(self) -> bool:
        """Whether that holds for what this one sums."""

    def is_finite(self, found: Partial) -> bool:
        """Whether no entry that was read is infinite or NaN."""


class BlockSource(ABC):
    """Rows in blocks, and a map-reduce over them.

    Attributes
    ----------
    n_features : int
    feature_names : array of str or None
        Names of the columns, where the data have them.
    """

    n_features: int
    feature_names: NDArray[np.object_] | None = None
    #: Threads that work on blocks in this process, as in joblib.
    n_jobs: int | None = None
    #: Whether a sample of the rows stays where they lie: such a source has `thin`.
    keeps_samples: bool = False
    #: Whether every pass reads the rows anew, so that a pass saved is worth some computing.
    reads_anew: bool = False
    #: Whether every entry of X is known to be a finite number of a size that sums can bear.
    checked: bool = False
    #: Whether the rows lie in the memory of this process, where a score per row costs little.
    in_memory: bool = False
    #: Whether the rows are one tensor per process, whose second moments torch sums where they lie.
    on_device: bool = False
    #: Whether samples of rows from elsewhere lie on a device: such a source has `gather`.
    samples_on_device: bool = False
    #: Entries of X below which reading all of them costs less than drawing a sample to start on,
    #: and the most entries of such a sample; None where the rows decide.
    sample_entries: tuple[int, int] | None = None
    #: Whether the blocks know the groups, or the times, of their rows.
    grouped: bool = False
    #: Which part of another source this is, for messages: "in fold 2 to train on".
    part: str | None = None

    @abstractmethod
    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        """Merge ``sweep.local(block, state)`` over all blocks.

        The cuts and the order of the merge depend on the data alone, so that the answer has
        the same bits for any number of workers.
        """

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        """Start the threads that passes in this process use, for as long as several are made."""
        return Workers(n_jobs if self.n_jobs is None else self.n_jobs).start_threads()

    def expect_passes(self) -> None:
        """Hear that several passes will follow: rows that cost something to decode may be kept."""
        return  # most sources keep nothing

    def late_check(self) -> Callable[[], Bad | None] | None:
        """Return what looks for entries that no fit can use, where a sum over the rows shows any.

        Then such a sum need not wait for it: one that is finite has none. None where every entry
        has to be looked at first.
        """
        return None

    def name_of(self, index: int) -> str:
        """Say where a block comes from, for messages."""
        return f"block {index}"

    def identity(self) -> bytes:
        """Return what tells these rows from others without a pass; empty where nothing does."""
        return b""

    def thin(self, pick: Callable[[Block], Block]) -> BlockSource:
        """Return a source of the rows that ``pick`` takes of each block, left where they lie."""
        raise TypeError(f"{type(self).__name__} hands samples of its rows to the driver")

    def gather(self, blocks: Sequence[Block]) -> BlockSource:
        """Put samples of the rows together where they lie."""
        raise TypeError(f"{type(self).__name__} hands samples of its rows to the driver")

    def cheap_curvature(self, n_rows: int) -> bool:
        """Whether second moments of so many rows cost no more than another read of them."""
        return True

    @abstractmethod
    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> Scores:
        """Score every row where it lies, and hand the scores back the engine's own way.

        ``score`` takes the ``X`` of a block; it is picklable. ``to`` says where scores go when
        they are written to files.
        """


class LocalSource(BlockSource):
    """Blocks of one process, mapped over in threads."""

    @abstractmethod
    def read(self, *, features: bool = True) -> Generator[Block, None, None]:
        """Yield the blocks in order, at least one; without features where labels are enough."""

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        features = getattr(sweep, "needs_features", True)
        partials = self.map(lambda block: sweep.local(block, state), features=features)
        with closing(partials):  # threads and files are not to wait for a traceback to go
            total = next(partials)
            for partial in partials:
                total = sweep.merge(total, partial)
        return total

    def map(
        self, function: Callable[[Block], Partial], *, features: bool = True
    ) -> Generator[Partial, None, None]:
        """Yield function(block) for every block, in order."""
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            yield from _map_ahead(function, self.read(features=features), workers.n_jobs)


def _map_ahead(
    function: Callable[[Block], Partial], blocks: Generator[Block, None, None], n_jobs: int
) -> Iterator[Partial]:
    pending: deque[Future[Partial]] = deque()
    with (
        thread_pool(n_jobs) as pool,
        thread_pool(1, "toprank-reader") as reader,
    ):
        try:
            ahead = reader.submit(next, blocks, None)
            while (block := ahead.result()) is not None:
                ahead = reader.submit(next, blocks, None)
                pending.append(pool.submit(function, block))
                del block  # or it would stay in memory until the next one has been read
                if len(pending) > n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for left in pending:
                left.cancel()
            reader.submit(_close, blocks).result()  # a generator belongs to the thread that runs it


def _close(blocks: Generator[Block, None, None]) -> None:
    """Close a generator, once nobody reads from it.

    An interrupt while the pool starts its thread can leave it uncounted, and a second one starts.
    """
    while True:
        try:
            blocks.close()
            return
        except ValueError as error:
            if "already executing" not in str(error):
                raise
            sleep(0.001)


class Progress:
    """Counts the passes over a source, and prints a line for each if asked to."""

    def __init__(self, verbose: int):
        self.verbose = verbose
        self.passes = 0

    @contextmanager
    def one_pass(self, name: str, n_blocks: int) -> Iterator[None]:
        """Print what was done and how long it took, on the error stream."""
        started = time.perf_counter()
        yield
        self.passes += 1
        if self.verbose:
            took = time.perf_counter() - started
            line = f"toprank: pass {self.passes} ({name}) over {n_blocks} blocks, {took:.2f} s"
            print(line, file=sys.stderr, flush=True)
