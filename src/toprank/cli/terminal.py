"""What reaches the terminal: results on stdout, the rest on stderr; errors as one line each."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from toprank._extras import hides_interrupt
from toprank._text import plain, visible
from toprank.cli.exit_codes import FAULT, INTERRUPTED, INTERRUPTED_NOTE, PIPE_CLOSED, UNUSABLE

#: Text of users, with its control characters escaped.
safe = visible
Step = Callable[[str, float, float | None], None]
#: Rows up to which members of a model are fitted side by side: each has a copy of them.
_ROWS_FOR_THREADS = 100_000
#: Whether this process is the command line's, and nobody else's libraries live in it.
OWN_PROCESS = False


def names(values: Iterable[object], most: int = 8) -> str:
    """The values with commas, the first few of them if there are many.

    Examples
    --------
    >>> names(range(5), most=2)
    '0, 1 and 3 more'
    """
    texts = [str(value) for value in values]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {len(texts) - most} more"


def say(message: object) -> None:
    """Print a line of the program's own on stderr."""
    first, *rest = str(message).splitlines() or [""]
    typer.echo(
        "\n".join([f"toprank: {safe(first)}", *(f"  {safe(line)}" for line in rest)]), err=True
    )


def note(message: str, quiet: bool) -> None:
    """Say what the user should know but did not ask for."""
    if not quiet:
        say(message)


def print_json(value: object) -> None:
    """Print a result for machines: JSON in ASCII, without infinities and NaN."""
    typer.echo(json.dumps(plain(value), indent=2))


def print_lines(text: str) -> None:
    """Print text for other programs: as it is into pipes; on a terminal nothing of it may act."""
    if sys.stdout.isatty():
        text = "".join(f"{safe(line)}\n" for line in text.splitlines())
    sys.stdout.write(text)
    sys.stdout.flush()


def table(columns: Collection[str], left: Collection[str] = ()) -> Table:
    """An empty table; columns stand at the right unless they are named in `left`."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        side = "left" if name in left else "right"
        drawn.add_column(Text(safe(name)), justify=side, overflow="fold")  # type: ignore[arg-type]
    return drawn


def cells(*values: object) -> list[Text]:
    """Cells of a table row as they are: no markup, no control sequences."""
    return [Text(safe(value)) for value in values]


def short_number(value: object) -> str:
    """Four significant digits; nothing for what is missing; infinity may come as its word."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.4g}"


def console() -> Console:
    """The console of results; it wraps at the width of the terminal, and is plain in pipes."""
    return Console(highlight=False, markup=False, emoji=False)


@contextmanager
def progress(description: str, quiet: bool = False) -> Iterator[Step]:
    """A bar on stderr, gone when all is done and never drawn into pipes and files.

    It names what is being done, and says how long it took so far and how long it will take.
    Yields a function of what is being done, the amount done and the amount there is (None where
    it is not known).
    """
    screen = Console(stderr=True, markup=False, emoji=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:", style="dim"),
        TimeRemainingColumn(),
    )
    hidden = quiet or not screen.is_terminal
    bar = Progress(*columns, console=screen, transient=True, disable=hidden)
    # rich before 14.3 leaves an empty line where it ends a bar that it has not drawn
    with nullcontext() if hidden else bar:
        task = bar.add_task(safe(description), total=None)

        def step(what: str, done: float, total: float | None) -> None:
            named = safe(what[:1].upper() + what[1:])
            bar.update(task, description=named, completed=done, total=total)

        yield step


@contextmanager
def worker_threads(jobs: int | None) -> Iterator[None]:
    """Let everything inside use so many threads, -1 for every core; None leaves it as it is."""
    if jobs is None:
        yield
        return
    from joblib import parallel_config

    with parallel_config("threading", n_jobs=jobs):
        yield


def usual_jobs(jobs: int | None, rows: int) -> int | None:
    """The threads asked for; otherwise every core, unless the rows that each copies are many.

    Examples
    --------
    >>> usual_jobs(None, 6_000), usual_jobs(2, 6_000), usual_jobs(None, 1_000_000)
    (-1, 2, None)
    """
    return -1 if jobs is None and rows <= _ROWS_FOR_THREADS else jobs


def can_ask() -> bool:
    """Whether someone sits at the terminal to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


_ARGUMENT = re.compile(
    r"\b(positive|id|time|drop|weight|groups|as_text|as_number|clip|tidy|pool|model|p|alpha|metric|"
    r"k)= ?"
)


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
            warnings.showwarning = _silence if quiet else _show_warning
            try:
                return super().invoke(ctx)
            except Exception as error:
                if hides_interrupt(error):
                    raise KeyboardInterrupt from error
                if ctx.params.get("traceback") or _is_typers(error):
                    raise
                _leave_command(error)


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
            told = error.format_message()
            if told.startswith("Got unexpected extra argument") and ".parquet" in told:
                # a shell has put the names of files in the place of a pattern
                told += ". Many files are one table if their pattern is quoted: 'folder/*.parquet'."
            escaped = "\n".join(map(safe, told.splitlines()))
            error.format_message = lambda: escaped
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


def _leave_command(error: Exception) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from error
    say(_error_text(error))
    raise typer.Exit(UNUSABLE if _is_input_error(error) else FAULT) from error


def _is_input_error(error: Exception) -> bool:
    """Whether the caller can remedy it; the library refuses what it cannot use by ValueError."""
    if isinstance(error, ImportError):
        return "pip install" in str(error)  # a library is missing, not a name in toprank
    return isinstance(error, Failure | ValueError | OSError | MemoryError)


def _error_text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"'{error.filename}': " if error.filename else ""
        return f"{where}{error.strerror.rstrip('.')}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use fewer rows or columns."
    if _is_input_error(error):
        return _name_options(error) or type(error).__name__
    return (
        f"this should not happen ({type(error).__name__}: {error}). Please report it, with what "
        "'toprank --traceback' and the same command show."
    )


def _name_options(error: Exception) -> str:
    """The message; errors of models name arguments, which the user knows as options.

    They are recognised by name: importing them would load the library for every command.
    """
    of_models = any(kind.__name__ == "ModelError" for kind in type(error).__mro__)
    if not of_models:
        return str(error)
    text = str(error).replace("skip_unlabelled=True", "--skip-unlabelled")
    return _ARGUMENT.sub(lambda found: f"--{found[1].replace('_', '-')} ", text)


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Show a warning of the library as a line; those meant for programmers are not shown."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | FutureWarning):
        say(f"note: {message}")


def _silence(*_: object, **__: object) -> None:
    """Show nothing."""
