"""What goes wrong with models and the tables they meet."""

from __future__ import annotations


class ModelError(ValueError):
    """A table or a file that a model cannot be made of, or cannot read.

    The message says what came, what was expected and what to do.

    Examples
    --------
    >>> from toprank.models import ModelError
    >>> issubclass(ModelError, ValueError)
    True
    """


class ModelWarning(UserWarning):
    """Something about a model or a table that the reader should know, but can live with."""
