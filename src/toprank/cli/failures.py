"""What goes wrong in a command ends in an exit code and one line on stderr, not a traceback."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from toprank.cli.exit_codes import FAULT, INTERRUPTED, INTERRUPTED_NOTE, PIPE_CLOSED, UNUSABLE
from toprank.cli.terminal import safe, say

_ARGUMENT = re.compile(r"\b(positive|id|time|drop|weight|groups|model|p|alpha|metric|k)= ?")


class Failure(Exception):
    """What came cannot be used; the message says what was expected and what to do."""


class Commands(TyperGroup):
    """The commands; whatever goes wrong in one ends in a sentence and an exit code."""

    def make_context(self, *given: Any, **options: Any) -> Any:
        """Read the options of the command line itself."""
        with _escape_messages(), _report_interrupt():
            return super().make_context(*given, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with _escape_messages(), _report_interrupt(), warnings.catch_warnings():
            # asked of the words themselves: the command's options are not parsed yet
            quiet = not {"-q", "--quiet"}.isdisjoint(ctx.args)
            warnings.showwarning = _silence if quiet else _note
            try:
                return super().invoke(ctx)
            except Exception as error:
                if ctx.params.get("traceback") or _is_typers(error):
                    raise
                _end(error)


@contextmanager
def _report_interrupt() -> Iterator[None]:
    """Say in one line that the user interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        say(INTERRUPTED_NOTE)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _escape_messages() -> Iterator[None]:
    """Keep usage errors, which quote the words of the user and names of files, from acting."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):
            told = "\n".join(map(safe, error.format_message().splitlines()))
            error.format_message = lambda: told
        raise


def show_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print where an error arose, without letting what it quotes act on the terminal."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        typer.echo(safe(line), err=True)


def _is_typers(error: Exception) -> bool:
    """Whether typer itself shows the error: usage errors, and ways to leave a command."""
    return isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "exit_code")


def _end(error: Exception) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from error
    say(_sentence(error))
    raise typer.Exit(UNUSABLE if _is_of_the_input(error) else FAULT) from error


def _is_of_the_input(error: Exception) -> bool:
    """Whether the caller can remedy it; the library refuses what it cannot use by ValueError."""
    if isinstance(error, ImportError):
        return "pip install" in str(error)  # a library is missing, not a name in toprank
    return isinstance(error, Failure | ValueError | OSError | MemoryError)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"'{error.filename}': " if error.filename else ""
        return f"{where}{error.strerror.rstrip('.')}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use fewer rows or columns."
    if _is_of_the_input(error):
        return _name_options(error) or type(error).__name__
    return (
        f"this should not happen ({type(error).__name__}: {error}). Please report it, with what "
        "'toprank --traceback' and the same command show."
    )


def _name_options(error: Exception) -> str:
    """The message; errors of models name arguments, which the user knows as options.

    They are told by name, because importing them would load the library for every command.
    """
    of_models = any(kind.__name__ == "ModelError" for kind in type(error).__mro__)
    return _ARGUMENT.sub(r"--\1 ", str(error)) if of_models else str(error)


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning of the library as a line; those meant for programmers are not shown."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | FutureWarning):
        say(f"note: {message}")


def _silence(*_: Any, **__: Any) -> None:
    """Show nothing."""
