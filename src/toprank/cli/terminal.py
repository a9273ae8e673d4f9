"""What reaches the terminal: results on stdout, everything else on stderr, nothing that acts."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from toprank._text import plain
from toprank._text import visible as safe

Step = Callable[[str, float, float | None], None]


def names(values: Iterable[Any], most: int = 8) -> str:
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


def say(message: Any) -> None:
    """Print a line of the program's own on stderr."""
    first, *rest = str(message).splitlines() or [""]
    typer.echo(
        "\n".join([f"toprank: {safe(first)}", *(f"  {safe(line)}" for line in rest)]), err=True
    )


def note(message: str, quiet: bool) -> None:
    """Say what the user should know but did not ask for."""
    if not quiet:
        say(message)


def print_json(value: Any) -> None:
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


def cells(*values: Any) -> list[Text]:
    """Cells of a table row as they are: no markup, no control sequences."""
    return [Text(safe(value)) for value in values]


def number(value: Any) -> str:
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

    Yields a function of what is being done, the amount done and the amount there is (None where
    it is not known).
    """
    screen = Console(stderr=True, markup=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    hidden = quiet or not screen.is_terminal
    bar = Progress(*columns, console=screen, transient=True, disable=hidden)
    # rich before 14.3 leaves an empty line where it ends a bar that it has not drawn
    with nullcontext() if hidden else bar:
        task = bar.add_task(safe(description), total=None)

        def step(what: str, done: float, total: float | None) -> None:
            bar.update(task, description=safe(what), completed=done, total=total)

        yield step


def can_ask() -> bool:
    """Whether someone sits at the terminal to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()
