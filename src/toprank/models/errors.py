"""What goes wrong with models and the tables they meet, and warnings caught on the way."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from toprank._text import visible


class _Said(Exception):
    """A message that may quote a file or a table, which must not act on the reader's terminal."""

    def __init__(self, message: object = "", *more: object) -> None:
        super().__init__(visible(message), *more)


class ModelError(_Said, ValueError):
    """A table or a file that a model cannot be made of, or cannot read.

    The message says what came, what was expected and what to do.

    Examples
    --------
    >>> from toprank.models import ModelError
    >>> issubclass(ModelError, ValueError)
    True
    """


class ModelWarning(_Said, UserWarning):
    """Something about a model or a table that the reader should know, but can live with."""


#: Python's filters of warnings are those of the whole process.
_LOCK = threading.RLock()


@contextmanager
def catch_warnings(*, record: bool = False) -> Iterator[list[warnings.WarningMessage]]:
    """``warnings.catch_warnings``, one thread at a time.

    Two threads inside it at once would restore each other's filters, and the process would then
    show warnings that were silenced, or silence all.
    """
    with _LOCK, warnings.catch_warnings(record=record) as caught:
        yield [] if caught is None else caught


def _in_child() -> None:
    """After a fork: the thread that held the lock is not in this process."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
