"""What goes wrong with models and the tables they meet."""

from __future__ import annotations

from typing import Any

from toprank._text import visible


class _Said(Exception):
    """A message that may quote a file or a table, which must not act on the reader's terminal."""

    def __init__(self, message: Any = "", *more: Any) -> None:
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
