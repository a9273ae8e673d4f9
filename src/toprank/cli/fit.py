"""`toprank fit`: from a table to a model in a file."""

from __future__ import annotations

from enum import StrEnum
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
    Train,
    check_output,
    find_positive,
    metric_names,
    parse_k,
    reads,
)
from toprank.cli.show import show_card
from toprank.cli.terminal import Failure, print_json, progress


class Kind(StrEnum):
    """The rankers that can be fitted to a table."""

    pnorm = "pnorm"
    ir = "ir"
    rankboost = "rankboost"
    smooth_margin = "smooth-margin"
    trees = "trees"
    proper = "proper"


@reads
def fit(
    train: Train,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of the model; replaced if it is there.")
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-y", help="Column of the labels; with --from, the model's."),
    ] = None,
    positive: Positive = None,
    model: Annotated[
        Kind | None,
        typer.Option(
            help="Linear with the P-Norm Push (pnorm, the default), the IR Push (ir) or a proper "
            "loss (proper); boosted stumps (rankboost, smooth-margin); trees under the push."
        ),
    ] = None,
    p: Annotated[
        str, typer.Option(help="How hard to push: a number from 1 on, or auto to let folds choose.")
    ] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Penalty of the linear rankers.",
            show_default="chosen with p where p is auto, else 0.001",
        ),
    ] = None,
    id: RowId = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column of dates or numbers: train on the past, measure on the future."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column that says how often a row counts.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of groups: rows with one value stay in one fold.")
    ] = None,
    drop: Drop = None,
    metric: Annotated[
        str,
        typer.Option(help="Metric that p is chosen by.", autocompletion=metric_names),
    ] = "precision_at",
    k: Annotated[
        str | None, typer.Option(help="Its length of the top: a count (100) or a share (0.01).")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", help="Model to start from: the same columns and settings."),
    ] = None,
    seed: Seed = 0,
    max_columns: MaxColumns = 5_000,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Learn to rank from a table, and write the model to a file.

    Numbers, dates, categories, texts and missing values are prepared, and the preparation travels
    in the model. A fifth of the rows is held out to say how good the top of the list is; the
    model itself is then fitted to all rows.
    """
    check_output(output, read=[train])
    options = {
        "id": id,
        "time": time,
        "weight": weight,
        "groups": groups,
        "drop": tuple(drop or ()),
        "model": None if model is None else model.value,
        "p": _parse_power(p, start is not None),
        "alpha": alpha,
        "metric": metric,
        "k": None if k is None else parse_k(k),
        "random_state": seed,
    }
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model
    from toprank.models import fit_table
    from toprank.models.card import readable_card

    before = None if start is None else load_model(start)
    if target is None:
        if before is None:
            raise Failure("--target is missing: name the column of the labels.")
        target = before.schema.target
    with open_table(train, reading, quiet) as source:
        named = {"--target": target, "--id": id, "--time": time, "--weight": weight}
        named |= {"--groups": groups, **{f"--drop {name}": name for name in drop or ()}}
        source.check_columns({name: option for option, name in named.items() if name is not None})
        source.check_width(max_columns)
        rows = source.read()
    if before is None:
        positive = find_positive(rows, target, positive)
    with progress("Reading", quiet) as step:
        fitted = fit_table(
            rows, target, positive=positive, from_model=before, progress=step, **options
        )
    fitted.save(output)
    if as_json:
        print_json({"file": str(output), **readable_card(fitted.card)})
        return
    show_card(fitted, output)


def _parse_power(text: str, warm: bool) -> Any:
    """The power as the library takes it; None leaves it to the model that the fit starts from."""
    if text == "auto":
        return None if warm else "auto"
    try:
        return float(text)
    except ValueError:
        raise Failure(f"--p {text!r}: expected auto, or a number from 1 on.") from None
