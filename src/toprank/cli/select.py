"""`toprank select`: a list with a guarantee, from labelled rows that the model has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.listing import check_listing, show_listing, write_listing
from toprank.cli.options import Data, Json, Model, Quiet, reads
from toprank.cli.ranked_rows import read_top, records
from toprank.cli.terminal import Failure, Step, console, note, print_json, progress, safe

if TYPE_CHECKING:
    from toprank._arrays import JsonObject
    from toprank._numerics import FloatArray
    from toprank.cli.io.source import Source
    from toprank.models import TableModel
    from toprank.models.rows import ScoredRows
    from toprank.select import Shortlist

_GUARANTEE = "What the list must hold: one of these"


@reads
def select(
    model: Model,
    data: Data,
    calibration: Annotated[
        Path,
        typer.Option(
            "--calibration",
            "-c",
            help="Table of labelled rows that the model has not learned from, drawn like DATA.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-y", help="Column of their labels.", show_default="that of the model"
        ),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="At most this share of negatives, on average.", rich_help_panel=_GUARANTEE
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            help="The longest list with at least this share of positives.",
            rich_help_panel=_GUARANTEE,
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            help="The shortest list with at least this share of all positives.",
            rich_help_panel=_GUARANTEE,
        ),
    ] = None,
    positives: Annotated[
        int | None,
        typer.Option(
            help="The shortest list with at least so many positives.", rich_help_panel=_GUARANTEE
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(help="Probability of --precision, --recall or --positives."),
    ] = 0.95,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write the list to, by its ending, as in 'toprank rank': .csv, .xlsx, "
            ".parquet and others.",
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry along, besides the model's id; may be repeated."),
    ] = None,
    reasons: Annotated[int, typer.Option(min=0, help="How many reasons to give for each row.")] = 3,
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe",
            help="Put an apostrophe before texts that a spreadsheet would run as a formula.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Choose the rows to act on, so that a guarantee holds for the list.

    The guarantee comes from labelled rows that the model has not learned from. It assumes that
    they and the new rows are drawn in the same way, and nothing else. Where they are too few, the
    answer says how many would do; rows of the training are refused.
    """
    wish = _read_options(fdr, precision, recall, positives)
    if as_json and output is not None:
        raise Failure("give --json or --output, not both; an output may end in .jsonl.")
    if "-" in (str(data), str(calibration)) and str(data) == str(calibration):
        raise Failure("DATA and --calibration cannot both be standard input.")
    check_listing(output, [model, data, calibration])
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model
    from toprank.select import TooFewLabels
    from toprank.select import select as choose

    loaded = load_model(model)
    with open_table(calibration, reading, quiet) as source, progress("Calibrating", quiet) as step:
        known = _score_calibration(loaded, source, target, step)
    with open_table(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        scores = _score_new(loaded, source, step)
        options = {"sample_weight": known.weight, "confidence": confidence, **wish}
        try:
            chosen = choose(scores, calibration=(known.y, known.scores), **options)
        except TooFewLabels as error:
            raise Failure(_by_options(str(error))) from error
        # the table is read again: how many rows to keep was not known before
        found = read_top(loaded, source, max(1, len(chosen)), list(id or ()), reasons, step)
        dialect = source.dialect
    listing = found.listing.slice(0, len(chosen))
    if as_json:
        print_json({**_summary(chosen), "list": records(found)[: len(chosen)]})
        return
    if output is None:
        show_listing(listing)
    else:
        write_listing(listing, output, excel_safe, dialect)
    if output is None or str(output) != "-":
        for line in str(chosen).splitlines():
            console().print(safe(line), soft_wrap=True)
    if output is not None and str(output) != "-":
        note(f"wrote {len(chosen)} of {len(scores)} rows to '{output}'.", quiet)


def _read_options(
    fdr: float | None, precision: float | None, recall: float | None, positives: int | None
) -> dict[str, Any]:
    """The guarantee that is asked for, by the name that the library has for it."""
    given = {
        "--fdr": ("fdr", fdr),
        "--precision": ("precision_at_least", precision),
        "--recall": ("recall_at_least", recall),
        "--positives": ("positives_at_least", positives),
    }
    wanted = {option: pair for option, pair in given.items() if pair[1] is not None}
    if len(wanted) != 1:
        came = " and ".join(wanted) or "none"
        raise Failure(f"give one of {', '.join(given)}; {came} came.")
    ((option, (name, value)),) = wanted.items()
    assert value is not None
    if name == "positives_at_least" and value < 1:
        raise Failure(f"{option} {value}: expected a count of at least 1.")
    if name != "positives_at_least" and not 0 < value < 1:
        raise Failure(f"{option} {value:g}: expected a share between 0 and 1, such as 0.1.")
    return {name: value}


def _by_options(message: str) -> str:
    """A message of the library with the names of the options."""
    for name in ("precision", "recall", "positives"):
        message = message.replace(f"{name}_at_least=", f"--{name} ")
    return message.replace("fdr=", "--fdr ").replace("confidence=", "--confidence ")


def _score_calibration(
    model: TableModel, source: Source, target: str | None, step: Step
) -> ScoredRows:
    from toprank.cli.scoring import score_labelled_table

    scored = score_labelled_table(model, source, step, target)
    if scored.rows.y.all() or not scored.rows.y.any():
        only = "positive" if scored.rows.y.all() else "negative"
        raise Failure(f"{source.name}: all rows are {only}; --calibration needs rows of both.")
    if scored.seen:
        raise Failure(
            f"{source.name}: the model has learned from these rows, and a guarantee made of them "
            "is wrong. Give --calibration rows that were kept from 'toprank fit'."
        )
    return scored.rows


def _score_new(model: TableModel, source: Source, step: Step) -> FloatArray:
    import numpy as np

    from toprank.cli.scoring import score_chunks

    return np.concatenate([scores for _, scores in score_chunks(model, source, step)])


def _summary(chosen: Shortlist) -> JsonObject:
    """What is said of the list, without the rows themselves."""
    said = chosen.as_dict()
    return {name: value for name, value in said.items() if name not in ("rows", "scores")}
