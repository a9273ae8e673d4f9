"""`toprank choose-p`: how hard to push on the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank._extras import require
from toprank.cli.data import numbers, read_rows
from toprank.cli.dialect import Reading
from toprank.cli.failures import Failure
from toprank.cli.files import check_output
from toprank.cli.options import Data, Json, MaxColumns, Positive, Target, reads
from toprank.cli.terminal import console, print_json, safe

_PICTURES = ("pdf", "png", "svg")


@reads
def choose_p(
    data: Data,
    target: Target,
    positive: Positive = None,
    metric: Annotated[str, typer.Option(help="Metric of toprank.metrics to choose by.")] = (
        "precision_at"
    ),
    k: Annotated[
        str | None, typer.Option(help="Length of the top: a count (100) or a share (0.01).")
    ] = None,
    ps: Annotated[str, typer.Option("--ps", help="Powers to try, with commas; inf is one.")] = (
        "1,2,4,8,16,64"
    ),
    alphas: Annotated[str, typer.Option(help="Penalties to try, with commas.")] = (
        "0.0001,0.001,0.01,0.1,1"
    ),
    rule: Annotated[str, typer.Option(help="best or one_standard_error.")] = "best",
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    group: Annotated[
        str | None, typer.Option(help="Column whose rows of one value are never parted.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of times: train on the past, test on the future.")
    ] = None,
    gap: Annotated[
        float, typer.Option(min=0, help="How long labels mature: days, or units of the times.")
    ] = 0.0,
    scale: Annotated[bool, typer.Option(help="Whether to standardise the features.")] = True,
    support: Annotated[
        bool, typer.Option(help="Whether to say how many negatives carry each p.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save a picture of the metric against p.")
    ] = None,
    max_columns: MaxColumns = 5_000,
    as_json: Json = False,
    jobs: Annotated[int, typer.Option(help="Folds at a time; -1 for every core.")] = 1,
    *,
    reading: Reading,
) -> None:
    """Choose how hard to push on your data, or say that you should not.

    Fits the P-Norm Push for every p and penalty, and logistic regression, in cross-validation;
    compares them by a metric of the top of the list on rows held out; and says how many negatives
    each p rests on.
    """
    if output is not None:
        require("matplotlib", "cli")
        check_output(output, _PICTURES)
    if group is not None and time is not None:
        raise Failure("give --group or --time, not both.")
    from toprank.cli import choosing  # loads the library, which --help need not wait for

    settings = choosing.settings(metric, k)
    rows = read_rows(data, target, positive, {"group": group, "time": time}, reading, max_columns)
    cv, by = choosing.splits(rows, folds, gap)
    X = choosing.standardised(rows.X) if scale else rows.X
    ranker = choosing.fit(
        X,
        rows.y,
        by,
        ps=numbers(ps, "--ps"),
        scoring=metric,
        scoring_kwargs=settings,
        cv=cv,
        alphas=numbers(alphas, "--alphas"),
        rule=rule,
        n_jobs=jobs,
    )
    advice = choosing.advice(ranker, X, rows, folds, cv, by, jobs) if support else None
    if output is not None:
        choosing.save_picture(ranker, output)
    if as_json:
        print_json(choosing.plain_answer(ranker, advice))
        return
    screen = console()
    choosing.show(screen, ranker, advice, rows)
    if output is not None:
        screen.print(f"\nPicture: {safe(output)}", soft_wrap=True)
