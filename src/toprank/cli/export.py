"""`toprank export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank._files import replace_file
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.options import Model, Quiet, check_output, reads
from toprank.cli.terminal import Failure, note, print_lines

_CHECKED = 1_000  # rows on which ONNX Runtime must agree


@reads
def export(
    model: Model,
    onnx: Annotated[
        Path | None, typer.Option("--onnx", help="ONNX file to write, preparation included.")
    ] = None,
    sql: Annotated[
        Path | None, typer.Option("--sql", help="SQL file to write; - for stdout.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="Table on whose first rows ONNX Runtime must give the same scores."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Table that the SQL selects from; else an expression.")
    ] = None,
    dialect: Annotated[str, typer.Option(help="Dialect of the SQL.")] = "ansi",
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Write a model as ONNX or as SQL, for programs that know nothing of toprank.

    Dates and texts cannot be written so. SQL of trees is long: a megabyte for 400 of them.
    """
    if onnx is None and sql is None:
        raise Failure("name a file to write: --onnx FILE or --sql FILE.")
    for path in (onnx, sql):
        if path is not None and str(path) != "-":
            check_output(path, read=[model, *([] if check is None else [check])])
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model, text_types

    loaded = load_model(model)
    if sql is not None:
        query = loaded.to_sql(table, dialect=dialect).rstrip() + "\n"
        if str(sql) == "-":
            print_lines(query)
        else:
            with replace_file(sql) as file:
                file.write(query.encode())
            note(f"wrote '{sql}'.", quiet)
    if onnx is not None:
        rows = None
        if check is not None:
            with open_table(check, reading, quiet) as source:
                source.remember(Reading.remembered(loaded.card))
                wanted = [name for name in loaded.schema.names if name in source.columns]
                types = {n: kind for n, kind in text_types([loaded]).items() if n in wanted}
                rows = source.read(wanted, types).slice(0, _CHECKED)
        done = loaded.to_onnx(onnx, check=rows)
        difference = (
            "" if rows is None else f"; scores differ by {done.largest_difference:.2g} at most"
        )
        note(f"wrote '{onnx}'{difference}.", quiet)
