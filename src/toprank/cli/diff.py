"""`toprank diff`: who enters and who leaves a list, and why."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.options import Json, Quiet, reads
from toprank.cli.terminal import (
    Failure,
    Step,
    cells,
    console,
    print_json,
    progress,
    safe,
    table,
)

if TYPE_CHECKING:
    from toprank.models import TableModel
    from toprank.models.moves import Move, ScoredTable
    from toprank.select import ListDifference


@reads
def diff(
    old: Annotated[
        Path, typer.Argument(help="List that 'toprank rank' wrote before.", metavar="OLD")
    ],
    new: Annotated[Path, typer.Argument(help="List that it wrote later.", metavar="NEW")],
    id: Annotated[
        str | None,
        typer.Option(help="Column that names the rows.", show_default="the first column"),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many rows are the top.", show_default="the shorter list's length"
        ),
    ] = None,
    old_data: Annotated[
        Path | None, typer.Option(help="Table that the old list was ranked from.")
    ] = None,
    new_data: Annotated[
        Path | None, typer.Option(help="Table that the new list was ranked from.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Model of the new list.")] = None,
    old_model: Annotated[
        Path | None, typer.Option(help="Model of the old list, if it was another.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Compare two lists: who enters, who leaves, turnover at the top and rank-biased overlap.

    With both tables and the model (--old-data, --new-data, --model) each row that enters or leaves
    has a reason: it is new or gone, its data changed (with the columns), other rows passed it, or
    the model changed (with the columns that count otherwise now).
    """
    given = {"--old-data": old_data, "--new-data": new_data, "--model": model}
    absent = [option for option, path in given.items() if path is None]
    if 0 < len(absent) < 3 or (old_model is not None and absent):
        raise Failure(f"the reasons need {', '.join(given)} together; {absent[0]} is missing.")
    # the library is loaded here, because --help need not wait for it
    from toprank.select import compare_lists

    (names_before, column), (names_after, _) = (
        _read_names(path, id, reading, quiet) for path in (old, new)
    )
    found = compare_lists(names_before, names_after, top)
    moves: list[Move] = []
    if old_data is not None and new_data is not None and model is not None:
        with progress("Ranking", quiet) as step:
            tables = _score_tables(
                (old_data, new_data), (old_model or model, model), column, (reading, quiet), step
            )
            moves = _explain(found, *tables)
    if as_json:
        print_json({**found.as_dict(), "moves": [asdict(one) for one in moves]})
    else:
        _show_difference(found, moves)


def _read_names(path: Path, id: str | None, reading: Reading, quiet: bool) -> tuple[list[str], str]:
    """The names of the rows of a list, in the order of their ranks, and the column they are in."""
    with open_table(path, reading, quiet) as source:
        name = source.columns[0] if id is None else id
        source.check_columns({name: "--id"})
        wanted = [name, *(["rank"] if "rank" in source.columns and name != "rank" else [])]
        names = _carried_words(source, name)
        rows = source.read(wanted)
    if "rank" in wanted[1:]:
        ranks = rows.column("rank").to_pylist()
        if all(isinstance(rank, int) for rank in ranks):
            names = [names[row] for row in sorted(range(len(names)), key=ranks.__getitem__)]
    if any(name is None or name == "" for name in names):
        raise Failure(f"{source.name}: some rows have no '{name}'; name another column by --id.")
    return list(map(str, names)), name


def _carried_words(source: Source, name: str) -> list[object]:
    """A column as the file has it, letter for letter."""
    words: list[object] = []
    for chunk in source.chunks([name], {}, [name]):
        words += chunk.carried.column(0).to_pylist()
    return words


def _score_tables(
    data: tuple[Path, Path],
    models: tuple[Path, Path],
    column: str,
    how: tuple[Reading, bool],
    step: Step,
) -> tuple[ScoredTable, ScoredTable, ScoredTable, ScoredTable]:
    """The old model on the old table, new on new, old on new, new on old."""
    from toprank.cli.scoring import load_model

    same = models[0].resolve() == models[1].resolve()
    later = load_model(models[1])
    earlier = later if same else load_model(models[0])
    by_new = [_score_one(path, later, column, how, step) for path in data]
    by_old = by_new if same else [_score_one(path, earlier, column, how, step) for path in data]
    return by_old[0], by_new[1], by_old[1], by_new[0]


def _score_one(
    path: Path, model: TableModel, column: str, how: tuple[Reading, bool], step: Step
) -> ScoredTable:
    import numpy as np

    from toprank._extras import require
    from toprank.cli.scoring import score_chunks
    from toprank.models.moves import ScoredTable

    rows, scores, names = [], [], []
    with open_table(path, *how) as source:
        source.remember(Reading.remembered(model.card))
        source.check_columns({column: "--id"})
        for chunk, of_rows in score_chunks(model, source, step, [column]):
            rows.append(chunk.rows)
            scores.append(of_rows)
            names += chunk.carried.column(0).to_pylist()
    words = [str(name) for name in names]
    if len(set(words)) < len(words):
        raise Failure(f"'{path}': '{column}' names some rows twice, so rows cannot be matched.")
    merged = require("pyarrow", "frames").concat_tables(rows, promote_options="permissive")
    return ScoredTable(model, words, merged, np.concatenate(scores))


def _explain(found: ListDifference, *tables: ScoredTable) -> list[Move]:
    from toprank.models.moves import explain_moves

    return explain_moves(list(map(str, [*found.entered, *found.left])), *tables)


def _show_difference(found: ListDifference, moves: list[Move]) -> None:
    screen = console()
    lines = str(found).split("\n")
    for line in lines[:2] if moves else lines:
        screen.print(safe(line), soft_wrap=True)
    if not moves:
        return
    entered = set(found.entered)
    words = ["", "row", "why", "columns"]
    drawn = table(["", "row", "place before", "now", "why", "columns"], left=words)
    for one in moves:
        drawn.add_row(
            *cells(
                "entered" if one.name in entered else "left",
                one.name,
                "" if one.old_place is None else one.old_place,
                "" if one.new_place is None else one.new_place,
                one.why,
                "; ".join(one.columns),
            )
        )
    screen.print(drawn)
