"""`toprank check`: a look at a table before a model learns from it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from toprank.cli.exit_codes import LIMIT_PASSED
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.options import (
    AsNumber,
    AsText,
    Clip,
    Drop,
    Groups,
    Json,
    KeepTails,
    MaxColumns,
    Pool,
    Positive,
    Propensity,
    Quiet,
    RowId,
    SkipUnlabelled,
    Target,
    Tidy,
    TimeColumn,
    Train,
    Weight,
    reads,
)
from toprank.cli.terminal import Failure, console, print_json, safe
from toprank.cli.training_tables import find_positive, read_training

if TYPE_CHECKING:
    from toprank.models import Concern


@reads
def check(
    train: Train,
    target: Target,
    positive: Positive = None,
    id: RowId = None,
    time: TimeColumn = None,
    weight: Weight = None,
    groups: Groups = None,
    propensity: Propensity = None,
    drop: Drop = None,
    as_text: AsText = None,
    as_number: AsNumber = None,
    clip: Clip = None,
    tidy: Tidy = None,
    pool: Pool = None,
    keep_tails: KeepTails = False,
    skip_unlabelled: SkipUnlabelled = False,
    max_columns: MaxColumns = 5_000,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Look at a table before learning from it: columns that give the answer away, ids, odd words.

    What is found comes in the order of danger, each with the option of 'toprank fit' that mends
    it. The exit code is 1 if a column may give the answer away. 'toprank fit' looks too.
    """
    roles = {"id": id, "time": time, "weight": weight, "groups": groups, "propensity": propensity}
    columns = {"drop": drop, "as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    columns["pool"] = pool
    with open_table(train, reading, quiet) as source:
        rows = read_training(source, target, roles, columns, max_columns)
    # the library is loaded here, because --help need not wait for it
    from toprank.models import frames, look_at
    from toprank.models.columns import is_missing

    gaps = is_missing(frames.column(rows, target))
    if gaps.all():
        raise Failure(f"'{target}' is missing in every row; name the column of the labels.")
    labelled = rows.filter(~gaps) if gaps.any() else rows
    if skip_unlabelled:
        rows = labelled
    chosen = find_positive(labelled, target, positive, target in (tidy or ()))
    given: dict[str, Any] = {name: tuple(names or ()) for name, names in columns.items()}
    given["keep_tails"] = keep_tails
    found = look_at(rows, target, positive=chosen, **{**given, **roles})
    if as_json:
        print_json({"data": str(train), "concerns": [concern.as_dict() for concern in found]})
    else:
        _show_concerns(found, f"{safe(train)}: {rows.num_rows} rows, {rows.num_columns} columns.")
    if any(concern.danger == 1 for concern in found):
        raise typer.Exit(LIMIT_PASSED)


def _show_concerns(found: list[Concern], heading: str) -> None:
    from toprank.models.concern import DANGERS

    screen = console()
    screen.print(heading, soft_wrap=True)
    for danger, concerns in groupby(found, key=lambda concern: concern.danger):
        words = DANGERS[danger]
        screen.print(f"\n{words[0].upper()}{words[1:]}:", style="bold" if danger < 3 else "")
        for concern in concerns:
            screen.print(f"- {safe(concern.message)}.")
            if concern.option:
                screen.print(f"    {safe(concern.option)}", style="dim", soft_wrap=True)
    if not found:
        screen.print("Nothing to say against it.")
