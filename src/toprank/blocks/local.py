"""Blocks that this process reads: a map over them in threads, merged in order.

A thread of its own reads ahead, so that reading and computing overlap. No more blocks are held
than there are threads to work on them, one in waiting and one being read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from time import sleep

from toprank.blocks.source import Block, BlockSource, Partial, State, Sweep
from toprank.blocks.threads import Workers, thread_pool


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
        with workers.running():
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
