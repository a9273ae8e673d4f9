"""Threads over blocks: BLAS held to one thread per worker, answers merged in a fixed order.

An interrupt (Ctrl-C) reaches the main thread only. The pools here tell their threads: what runs in
them asks `go_on` between pieces of work, and is stopped by it once nobody waits for its answer.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from threadpoolctl import LibController

Item = TypeVar("Item")
Partial = TypeVar("Partial")


class _Hold:
    """One who wants BLAS held to one thread."""


class _BlasLimit:
    """Holds BLAS to one thread while anyone is inside; restores it when the last one leaves.

    ``threadpool_limits`` alone restores what it found, so that overlapping fits in several
    threads would leave the process limited for good. It also looks through the loaded libraries
    each time; here they are looked through again only when more modules have been imported.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # by weak reference: an interrupt may fall between the work and its end
        self._inside: dict[int, weakref.ref[_Hold]] = {}
        self._before: list[tuple[LibController, int]] = []
        self._libraries: list[LibController] = []
        self._modules = 0

    def enter(self) -> _Hold:
        """Hold BLAS to one thread, until the answer is handed to `leave`."""
        hold = _Hold()
        with self._lock:
            if not self._before:
                # noted before anything is changed, so that an interrupt loses nothing
                self._before = [(library, library.num_threads) for library in self._found()]
            self._inside[id(hold)] = weakref.ref(hold)
            for library, _ in self._before:
                library.set_num_threads(1)
        return hold

    def leave(self, hold: _Hold) -> None:
        """Let go; the last to do so restores what was there before the first."""
        with self._lock:
            self._inside.pop(id(hold), None)
            self._inside = {key: ref for key, ref in self._inside.items() if ref() is not None}
            if not self._inside:
                self._restore()

    def in_child(self) -> None:
        """After a fork: whoever was inside is another process's thread."""
        self._lock = threading.RLock()
        self._inside = {}
        self._restore()

    def _restore(self) -> None:
        for library, threads in self._before:
            library.set_num_threads(threads)
        self._before = []

    def _found(self) -> list[LibController]:
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            found = ThreadpoolController().lib_controllers
            self._libraries = [library for library in found if library.user_api == "blas"]
        return self._libraries


_BLAS_LIMIT = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS_LIMIT.in_child)


class Stopped(BaseException):
    """Raised in a thread whose answer nobody waits for any more; it never leaves the pool."""


class _Stop:
    """Whether the work of a pool, or of the pool it was begun in, is to stop."""

    def __init__(self) -> None:
        self._set = False
        self._outer: _Stop | _Asked | None = getattr(_HERE, "stop", None)

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set or (self._outer is not None and self._outer.is_set())

    def enlist(self) -> None:
        """Make this thread one of those that are told."""
        _HERE.stop = self


_HERE = threading.local()


def is_stopped() -> bool:
    """Whether this thread works for a pool that was interrupted."""
    stop = getattr(_HERE, "stop", None)
    return stop is not None and stop.is_set()


def go_on() -> None:
    """Raise where this thread works for a pool that was interrupted; call it in long loops."""
    if is_stopped():
        raise Stopped


class _Asked:
    """A reason to stop that lies outside the pools of this process."""

    def __init__(self, is_set: Callable[[], bool]):
        self.is_set = is_set


@contextmanager
def stop_where(is_set: Callable[[], bool]) -> Iterator[None]:
    """Let `go_on` stop a thread that no pool here has started, once ``is_set`` says so."""
    before = getattr(_HERE, "stop", None)
    _HERE.stop = _Asked(is_set)
    try:
        yield
    finally:
        _HERE.stop = before


@contextmanager
def thread_pool(n_threads: int, name: str = "toprank") -> Iterator[ThreadPoolExecutor]:
    """Threads that are told when an exception leaves the block, and are gone at its end."""
    stop = _Stop()
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name, initializer=stop.enlist)
    try:
        yield pool
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class Workers:
    """A pool that maps in order: the same bits for any number of threads."""

    def __init__(self, n_jobs: int | None = None):
        self.n_jobs = int(effective_n_jobs(n_jobs))
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def start_threads(self) -> Iterator[Workers]:
        """Start the threads, and stop them on leaving; BLAS is single-threaded inside."""
        hold = _BLAS_LIMIT.enter()
        before = getattr(_HERE, "lent", None)
        _HERE.lent = self
        try:
            if self.n_jobs == 1:
                yield self
                return
            with thread_pool(self.n_jobs) as self._pool:
                try:
                    yield self
                finally:
                    self._pool = None
        finally:
            _HERE.lent = before
            _BLAS_LIMIT.leave(hold)

    def map(self, function: Callable[[Item], Partial], items: Sequence[Item]) -> Iterator[Partial]:
        """Yield function(item) for every item, in order."""
        one = _stop_if_told(function)
        if self._pool is None or len(items) == 1:
            return map(one, items)
        return self._pool.map(one, items)

    def map_few(
        self, function: Callable[[Item], Partial], items: Sequence[Item]
    ) -> Iterator[Partial]:
        """Do as `map` does, with few answers waiting: they may be large."""
        if self._pool is None or len(items) == 1:
            return self.map(function, items)
        return self._map_few(self._pool, function, items)

    def _map_few(
        self,
        pool: ThreadPoolExecutor,
        function: Callable[[Item], Partial],
        items: Sequence[Item],
    ) -> Iterator[Partial]:
        pending: deque[Future[Partial]] = deque()
        one = _stop_if_told(function)

        def in_thread(item: Item) -> Partial:
            # steps that go too far overflow and are taken back; each thread must be told anew
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return one(item)

        try:
            for item in items:
                pending.append(pool.submit(in_thread, item))
                if len(pending) > 2 * self.n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for left in pending:
                left.cancel()


def _stop_if_told(function: Callable[[Item], Partial]) -> Callable[[Item], Partial]:
    def one(item: Item) -> Partial:
        go_on()
        return function(item)

    return one


def lent_workers() -> Workers | None:
    """Return the workers that run around this call in this thread, for its use."""
    workers: Workers | None = getattr(_HERE, "lent", None)
    return workers
