"""The fits that a worker takes part in, so that whoever asked for one can stop it.

A thread cannot be ended from outside. A fit asks before every round whether it is still wanted; one
that waits for other workers hears of it when their meeting point closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import Any

from toprank.blocks.threads import stopping_where


class Runs:
    """What goes on in this process, by the name of the fit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._busy: list[str] = []  # a name for each thread: workers may share a process
        self._trackers: dict[str, Any] = {}
        self._stopped: set[str] = set()

    @contextmanager
    def part_of(self, run: str) -> Iterator[None]:
        """Work for a fit; `go_on` raises where it was stopped."""
        with self._lock:
            self._busy.append(run)
        try:
            with stopping_where(lambda: run in self._stopped):
                yield
        finally:
            with self._lock:
                self._busy.remove(run)

    def meet(self, run: str, tracker: Any) -> None:
        """Keep a meeting point until the workers part."""
        with self._lock:
            self._trackers[run] = tracker
        Thread(target=self._wait, args=(run, tracker), daemon=True, name="toprank-tracker").start()

    def _wait(self, run: str, tracker: Any) -> None:
        with suppress(Exception):  # it was closed, or a worker was lost: the workers say so
            tracker.wait_for()
        with self._lock:
            self._trackers.pop(run, None)

    def stop(self, run: str, close: bool) -> bool:
        """Stop a fit, and return whether any of its threads is still busy.

        Threads that are busy stop at their next round, together. ``close`` closes the meeting
        point too, for those that wait there for somebody who will not come.
        """
        self._stopped.add(run)
        with self._lock:
            tracker = self._trackers.pop(run, None) if close else None
        if tracker is not None:
            # in a thread: it waits for the meeting point to close
            Thread(target=self._close, args=(tracker,), daemon=True, name="toprank-close").start()
        with self._lock:
            return run in self._busy

    @staticmethod
    def _close(tracker: Any) -> None:
        with suppress(Exception):  # it complains of the workers that never came
            tracker.free()


RUNS = Runs()


def stop(run: str, close: bool) -> bool:
    """Stop a fit on this worker, and return whether any of its threads is still busy."""
    return RUNS.stop(run, close)
