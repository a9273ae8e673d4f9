"""`toprank reproduce`: the papers' tables and figures, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank.cli.options import Json, Quiet
from toprank.cli.terminal import Failure, console, print_json, progress, safe


def _experiments(incomplete: str) -> list[str]:
    """The experiments, for the completion of the shell."""
    from toprank.reproduce import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def reproduce(
    experiment: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments, such as table3; all of them if none is named.",
            autocompletion=_experiments,
            metavar="[NAME]...",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the page; made if it is not there.")
    ] = Path("reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repeats: minutes instead of hours.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    names: Annotated[bool, typer.Option("--names", help="Print the names and stop.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the tables and figures of the papers again, ours beside theirs.

    Results that are there already, with the same settings, are not computed again.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.reproduce import NAMES, run

    if names:
        typer.echo("\n".join(NAMES))
        return
    unknown = [name for name in experiment or () if name not in (*NAMES, "all")]
    if unknown:
        raise Failure(f"there is no experiment '{unknown[0]}'; there are: {', '.join(NAMES)}.")
    if output.exists() and not output.is_dir():
        raise Failure(f"--output: '{output}' is a file; name a folder.")
    with progress("Starting", quiet) as step:
        done = run(experiment or "all", output, quick=quick, seed=seed, progress=step)
    if as_json:
        print_json({"page": str(done.html), "results": done.results})
    else:
        console().print(f"Page: {safe(done.html)}", soft_wrap=True)
