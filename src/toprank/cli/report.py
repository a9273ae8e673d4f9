"""`toprank report`: one page about the top of a list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.options import (
    Drop,
    Json,
    MaxColumns,
    Positive,
    Quiet,
    RowId,
    Seed,
    Target,
    Train,
    check_output,
    find_positive,
    reads,
)
from toprank.cli.terminal import console, print_json, progress, safe


@reads
def report(
    train: Train,
    target: Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML file to write; replaced if it is there.")
    ] = Path("report.html"),
    positive: Positive = None,
    id: RowId = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates or numbers that orders the folds.")
    ] = None,
    drop: Drop = None,
    top: Annotated[int, typer.Option(min=1, help="How many rows the top of the list has.")] = 50,
    seed: Seed = 0,
    max_columns: MaxColumns = 5_000,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Write one self-contained page: how good the top is, what p changes, who is near the cut.

    The page opens by double click, in any browser, without a network.
    """
    check_output(output, ("html", "htm"), [train])
    with open_table(train, reading, quiet) as source:
        named = {"--target": target, "--id": id, "--time": time}
        named |= {f"--drop {name}": name for name in drop or ()}
        source.check_columns({name: option for option, name in named.items() if name is not None})
        source.check_width(max_columns)
        rows = source.read()
    # the library is loaded here, because --help need not wait for it
    from toprank.report import build

    options: dict[str, Any] = {"id": id, "time": time, "drop": tuple(drop or ()), "k": top}
    chosen = find_positive(rows, target, positive)
    with progress("Reading", quiet) as step:
        made = build(rows, target, positive=chosen, random_state=seed, progress=step, **options)
    made.save(output)
    if as_json:
        print_json({"file": str(output), **made.to_dict()})
    else:
        screen = console()
        screen.print(safe(made.to_dict()["verdict"]["headline"]), style="bold")
        screen.print(f"Report: {safe(output)}", soft_wrap=True)
