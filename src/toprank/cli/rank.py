"""`toprank rank`: the top of a list, with reasons, from a table of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank.cli.dialect import Reading
from toprank.cli.failures import Failure
from toprank.cli.listing import check_listing, show_listing, write_listing
from toprank.cli.options import Data, Json, Model, Quiet, k_of, reads
from toprank.cli.tables import opened
from toprank.cli.terminal import note, print_json, progress


@reads
def rank(
    model: Model,
    data: Data,
    top: Annotated[
        str, typer.Option("--top", help="How many rows: a count (100) or a share (0.01).")
    ] = "100",
    whole: Annotated[
        bool, typer.Option("--all", help="Every row, the highest score first.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, by its ending: .csv, .tsv, .jsonl (also with .gz), .parquet, "
            ".feather; - for CSV on stdout. Replaced if it is there.",
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry along, besides the model's id; may be repeated."),
    ] = None,
    reasons: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many reasons to give for each row.", show_default="3; 0 with --all"
        ),
    ] = None,
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe",
            help="Put an apostrophe before texts that a spreadsheet would run as a formula "
            "(CSV and TSV); numbers stay numbers.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Rank the rows of a table and keep the first ones, each with its reasons.

    The table is read some rows at a time, so that it may be longer than the memory; only the rows
    kept are held, all of them with --all. Rows of equal score stand in the order of the
    table, and `tied_at_the_cut` says where such rows were left out.
    """
    k = 1.0 if whole else k_of(top, "--top")
    if as_json and output is not None:
        raise Failure("give --json or --output, not both; an output may end in .jsonl.")
    n_reasons = (0 if whole else 3) if reasons is None else reasons
    check_listing(output, [model, data])
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.ranking import records, top_of
    from toprank.cli.scoring import load_model

    loaded = load_model(model)
    with opened(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        found = top_of(loaded, source, k, list(id or ()), n_reasons, step)
    if as_json:
        print_json(records(found))
    elif output is None:
        show_listing(found.listing)
    else:
        write_listing(found.listing, output, excel_safe)
    if found.tied_out:
        note(
            f"{found.tied_out} row(s) with the last score, {found.scores[-1]:.6g}, were left out.",
            quiet,
        )
    if output is not None and str(output) != "-":
        note(f"wrote the first {len(found.scores)} of {found.n} rows to '{output}'.", quiet)
