"""`toprank evaluate`: every metric of a model on labelled rows, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.dialect import Reading
from toprank.cli.options import Data, Json, Level, Model, Quiet, Resamples, ks_of, reads
from toprank.cli.tables import opened
from toprank.cli.terminal import cells, console, number, print_json, progress, safe, table

if TYPE_CHECKING:
    from toprank.cli.measuring import Line


@reads
def evaluate(
    model: Model,
    data: Data,
    k: Annotated[
        str, typer.Option(help="Lengths of the top, with commas: counts (100) or shares (0.01).")
    ] = "0.01,0.05,0.1",
    level: Level = 0.95,
    resamples: Resamples = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Measure how good the top of the list is: every metric, each with its interval.

    The table has a column of labels, named as in training; weights and groups are used where the
    model was trained with them and the table has them. Also says how long one row takes.
    """
    tops = ks_of(k)
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.measuring import latency, lines
    from toprank.cli.scoring import labelled, load_model

    loaded = load_model(model)
    with opened(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        rows = labelled(loaded, source, step)
        found = lines(rows, tops, level, resamples, step)
    one_row = latency(loaded, rows.first)
    answer = {
        "model": str(model),
        "data": str(data),
        "rows": len(rows.scores),
        "positives": int(rows.positive.sum()),
        "level": level,
        "metrics": [line.as_dict() for line in found],
        "one_row_milliseconds": one_row,
    }
    if as_json:
        print_json(answer)
    else:
        _show(answer, found)


def _show(answer: dict[str, Any], found: list[Line]) -> None:
    screen = console()
    share = f"{100 * answer['level']:g}% interval"
    screen.print(
        f"\n{safe(answer['model'])} on {safe(answer['data'])}: {answer['rows']} rows, "
        f"{answer['positives']} positives.",
        soft_wrap=True,
    )
    drawn = table(["metric", "value", share, ""], left=["metric", share, ""])
    notes: list[str] = []
    for line in found:
        if line.note and line.note not in notes:
            notes.append(line.note)
        mark = f"[{notes.index(line.note) + 1}]" if line.note else ""
        span = f"{number(line.low)} to {number(line.high)}" if line.low is not None else ""
        drawn.add_row(*cells(line.label, number(line.value), span, mark))
    screen.print(drawn)
    for place, text in enumerate(notes, 1):
        screen.print(f"[{place}] {safe(text)}", style="dim")
    screen.print(f"Scoring one row takes {answer['one_row_milliseconds']:.3g} milliseconds.")
