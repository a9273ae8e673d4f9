"""Warnings caught in one thread at a time: Python's filters are those of the whole process."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.RLock()


@contextmanager
def catching(*, record: bool = False) -> Iterator[Any]:
    """``warnings.catch_warnings``, one thread at a time.

    Two threads inside it at once would restore each other's filters, and the process would then
    show warnings that were silenced, or silence all.
    """
    with _LOCK, warnings.catch_warnings(record=record) as caught:
        yield caught


def _in_child() -> None:
    """After a fork: the thread that held the lock is not in this process."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
