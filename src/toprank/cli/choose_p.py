"""`toprank choose-p`: how hard to push on the rows of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from toprank._extras import require
from toprank._files import replace_file
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.options import (
    Data,
    Drop,
    Json,
    MaxColumns,
    Positive,
    Quiet,
    RowId,
    Target,
    check_output,
    parse_k,
    parse_numbers,
    reads,
)
from toprank.cli.terminal import Failure, console, names, print_json, progress, safe
from toprank.cli.training_tables import find_positive

if TYPE_CHECKING:
    from toprank._arrays import AnyArray, FloatArray, JsonObject
    from toprank.folds.splits import TimeOrderedSplit
    from toprank.models.columns import Column
    from toprank.models.rows import TrainingRows
    from toprank.tuning import PNormPushCV, Support

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
    id: RowId = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", "--group", help="Column of groups: rows with one value stay in one fold."
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column that says how often a row counts.")
    ] = None,
    drop: Drop = None,
    time: Annotated[
        str | None, typer.Option(help="Column of times: train on the past, test on the future.")
    ] = None,
    gap: Annotated[
        float, typer.Option(min=0, help="How long labels mature: days, or units of the times.")
    ] = 0.0,
    scale: Annotated[
        bool,
        typer.Option(
            help="Whether to prepare columns as 'toprank fit' does; else all are numbers."
        ),
    ] = True,
    support: Annotated[
        bool, typer.Option(help="Whether to say how many negatives carry each p.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save a picture of the metric against p.")
    ] = None,
    max_columns: MaxColumns = 5_000,
    as_json: Json = False,
    quiet: Quiet = False,
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
    if groups is not None and time is not None:
        raise Failure("give --groups or --time, not both.")
    settings = _metric_parameters(metric, k)
    roles = {"id": id, "time": time, "weight": weight, "groups": groups}
    left_out = tuple(drop or ())
    rows = read_rows(data, target, positive, roles, left_out, reading, max_columns, scale)
    cv, by = _find_folds(rows, folds, gap)
    with progress("Cross-validating every p", quiet) as step:
        ranker = _cross_validate(
            rows,
            by,
            ps=parse_numbers(ps, "--ps"),
            scoring=metric,
            scoring_kwargs=settings,
            cv=cv,
            alphas=parse_numbers(alphas, "--alphas"),
            rule=rule,
            n_jobs=jobs,
        )
        step("Finding out what p the rows support", 1, 2)
        advice = _advise(ranker, rows, folds, cv, by, jobs) if support else None
    if output is not None:
        _save_push_path(ranker, output)
    if as_json:
        print_json(_choice_as_dict(ranker, advice))
        return
    screen = console()
    _show_choice(screen, ranker, advice, rows)
    if output is not None:
        screen.print(f"\nPicture: {safe(output)}", soft_wrap=True)


def _cross_validate(
    rows: TrainingRows, by: AnyArray | None, *, ps: tuple[float, ...], **settings: Any
) -> PNormPushCV:
    """The push cross-validated; `by` is the column that the folds follow, or None."""
    from toprank.tuning import PNormPushCV

    try:
        known = {} if by is None else {"groups": by}
        return PNormPushCV(ps, **settings).fit(rows.X, rows.y, rows.weight, **known)
    except TypeError as error:  # a setting that the metric does not have
        raise Failure(str(error)) from error


def _find_folds(
    rows: TrainingRows, folds: int, gap: float
) -> tuple[int | TimeOrderedSplit, AnyArray | None]:
    """The folds, and the column that they follow."""
    import numpy as np

    from toprank.tuning import TimeOrderedSplit

    time = rows.time
    if time is None:
        if gap:
            raise Failure("--gap: a gap needs --time.")
        return folds, rows.groups
    if time.dtype.kind == "M":
        return TimeOrderedSplit(folds, gap=np.timedelta64(round(gap * 86_400), "s")), time
    return TimeOrderedSplit(folds, gap=gap), time


def _metric_parameters(metric: str, k: str | None) -> dict[str, int | float] | None:
    """The parameters of a metric; Failure if there is no such metric or it takes none."""
    from toprank.metrics.registry import METRICS

    if metric not in METRICS:
        known = ", ".join(sorted(METRICS))
        raise Failure(f"--metric: '{metric}' is not one of: {known}.")
    if k is None:
        return None
    if not METRICS[metric].takes_k:
        raise Failure(f"--k: {metric} does not take k.")
    return {"k": parse_k(k)}


def _advise(
    ranker: PNormPushCV,
    rows: TrainingRows,
    folds: int,
    cv: int | TimeOrderedSplit,
    by: AnyArray | None,
    jobs: int,
) -> Support:
    """What p the sample supports, with the penalty of the best push."""
    from toprank.tuning import TimeOrderedSplit, supported_p

    timed = isinstance(cv, TimeOrderedSplit)
    choice = ranker.choice_
    pushed = max(
        (i for i in choice.per_p if choice.candidates[i].pushes), key=lambda i: choice.mean[i]
    )
    finite = [p for p in ranker.ps if math.isfinite(p)] or [1.0]
    return supported_p(
        rows.X,
        rows.y,
        sample_weight=rows.weight,
        ps=finite,
        alpha=choice.candidates[pushed].alpha or 0.0,
        cv=folds,
        groups=None if timed else by,
        time=by if timed else None,
        gap=cv.gap if isinstance(cv, TimeOrderedSplit) else 0,
        n_jobs=jobs,
    )


def _choice_as_dict(ranker: PNormPushCV, advice: Support | None) -> JsonObject:
    """The answer as plain values."""
    held_out = ranker.score_interval_
    answer = ranker.choice_.as_dict()
    answer["held_out"] = None if held_out is None else asdict(held_out)
    answer["support"] = None if advice is None else advice.as_dict()
    return answer


def _show_choice(
    console: Console, ranker: PNormPushCV, advice: Support | None, rows: TrainingRows
) -> None:
    """Print a row for each p, and the verdict in words."""
    choice = ranker.choice_
    carried = {} if advice is None else {line.p: line for line in advice.lines}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for name in ("against no push", "p-value", "alpha", "rests on (neg.)"):
        table.add_column(name, justify="right")
    for line in choice.table():
        difference = "" if line["difference"] is None else f"{line['difference']:+.4f}"
        p_value = "" if line["p_value"] is None else f"{line['p_value']:.2g}"
        support = carried.get(line["p"])
        table.add_row(
            ("→ " if line["chosen"] else "  ") + line["name"],
            f"{line['mean']:.4f} ± {line['standard_error']:.4f}",
            difference,
            p_value,
            f"{line['alpha']:g}",
            "" if support is None else f"{support.effective_negatives:.0f} neg.",
            style="bold" if line["chosen"] else "",
        )
    n_positive = int(rows.y.sum())
    console.print(
        f"\n{len(rows)} rows, {n_positive} positives, {rows.X.shape[1]} features. The "
        f"score is {choice.metric}, mean ± standard error over {ranker.n_splits_} folds.",
        highlight=False,
    )
    console.print(table)
    console.print(choice.verdict, style="bold", highlight=False)
    if advice is not None:
        console.print(" ".join(filter(None, (advice.verdict, advice.caution))), highlight=False)
    if ranker.score_interval_ is not None:
        console.print(
            f"On rows that the choice never saw: {ranker.score_interval_}", highlight=False
        )


def _save_push_path(ranker: PNormPushCV, path: Path) -> None:
    """Save the metric against p."""
    from toprank.plots import PushPathDisplay

    figure = require("matplotlib.figure", "cli").Figure(figsize=(6.4, 4.4), layout="constrained")
    PushPathDisplay.from_estimator(ranker, name="P-Norm Push", ax=figure.subplots())
    with replace_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=110)


def read_rows(
    path: Path,
    target: str,
    positive: str | None = None,
    roles: Mapping[str, str | None] | None = None,
    drop: Sequence[str] = (),
    reading: Reading | None = None,
    max_columns: int = 5_000,
    scale: bool = True,
) -> TrainingRows:
    """Read a table as `toprank fit` reads it, and prepare its columns for a linear ranker.

    Parameters
    ----------
    path : Path
        The file; "-" is standard input.
    target : str
        Column of the labels.
    positive : str, optional
        The label that belongs at the top, where that is not plain.
    roles : mapping, optional
        Columns that are not features, by what they are for: id, time, weight, groups.
    drop : sequence of str
        Columns to leave out.
    reading : Reading, optional
        What the user says of the text.
    max_columns : int, default=5000
        Columns that the table may have at most.
    scale : bool, default=True
        Whether to prepare the columns; without, all must be numbers.
    """
    from toprank.models.preparation import Preparation
    from toprank.models.rows import TrainingRows, learn_table

    roles = dict(roles or {})
    with open_table(path, reading) as source:
        wanted = {target: "--target"} | {name: "--drop" for name in drop}
        wanted |= {name: f"--{role}" for role, name in roles.items() if name is not None}
        source.check_columns(wanted)
        source.check_width(max_columns)
        frame = source.read()
    chosen = find_positive(frame, target, positive)
    schema, labels = learn_table(frame, target, chosen, drop, roles)
    rows = TrainingRows.read(frame, schema, labels)
    if scale:
        X = Preparation("linear").fit_transform(schema, rows.X, rows.weight)
    else:
        X = _plain_numbers(schema.columns, rows)
    return replace(rows, X=X)


def _plain_numbers(columns: Sequence[Column], rows: TrainingRows) -> FloatArray:
    """The columns as they are; Failure unless all are numbers without gaps."""
    import numpy as np

    words = [column.name for column in columns if column.kind not in ("number", "boolean")]
    if words:
        raise Failure(
            f"--no-scale: these columns are not numbers: {names(words)}. Leave them out by --drop, "
            "or let the columns be prepared."
        )
    gaps = [column.name for column in columns if np.any(np.isnan(rows.X[column.name]))]
    if gaps:
        raise Failure(f"--no-scale: values are missing in: {names(gaps)}.")
    return np.column_stack([rows.X[column.name] for column in columns]).astype(np.float64)
