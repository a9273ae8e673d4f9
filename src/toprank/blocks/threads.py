"""Threads over blocks: BLAS held to one thread a worker, answers merged in a fixed order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Partial = TypeVar("Partial")


class _BlasLimit:
    """Holds BLAS to one thread while anyone is inside; restores it when the last one leaves.

    ``threadpool_limits`` alone restores what it found, so that overlapping fits in several
    threads would leave the process limited for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()
                self._limits = None


_BLAS_LIMIT = _BlasLimit()


class Workers:
    """A pool that maps in order: the same bits for any number of threads."""

    def __init__(self, n_jobs: int | None = None):
        self.n_jobs = int(effective_n_jobs(n_jobs))
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[Workers]:
        """Start the threads, and stop them on leaving; BLAS is single-threaded inside."""
        with _BLAS_LIMIT:
            if self.n_jobs == 1:
                yield self
                return
            with ThreadPoolExecutor(self.n_jobs, thread_name_prefix="toprank") as pool:
                self._pool = pool
                try:
                    yield self
                finally:
                    self._pool = None

    def map(self, function: Callable[[Item], Partial], items: Sequence[Item]) -> Iterator[Partial]:
        """Yield function(item) for every item, in order."""
        if self._pool is None or len(items) == 1:
            return map(function, items)
        return self._pool.map(function, items)
