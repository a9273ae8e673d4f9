"""`toprank choose-p`: how hard to push on the rows of a table."""

from __future__ import annotations

import math
from dataclasses import asdict
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
    Json,
    MaxColumns,
    Positive,
    Target,
    check_output,
    find_positive,
    parse_k,
    parse_numbers,
    reads,
)
from toprank.cli.terminal import Failure, console, names, print_json, safe

if TYPE_CHECKING:
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
    group: Annotated[
        str | None, typer.Option(help="Column of groups: rows with one value stay in one fold.")
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
    # the library is loaded here, because --help need not wait for it
    from sklearn.preprocessing import StandardScaler

    settings = _metric_parameters(metric, k)
    rows = read_rows(data, target, positive, group, time, reading, max_columns)
    cv, by = _find_folds(rows, folds, gap)
    X = StandardScaler().fit_transform(rows.X) if scale else rows.X
    ranker = _cross_validate(
        X,
        rows.y,
        by,
        ps=parse_numbers(ps, "--ps"),
        scoring=metric,
        scoring_kwargs=settings,
        cv=cv,
        alphas=parse_numbers(alphas, "--alphas"),
        rule=rule,
        n_jobs=jobs,
    )
    advice = _advise(ranker, X, rows, folds, cv, by, jobs) if support else None
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
    X: Any, y: Any, by: Any, *, ps: tuple[float, ...], **settings: Any
) -> PNormPushCV:
    """The push cross-validated; `by` is the column that the folds follow, or None."""
    from toprank.tuning import PNormPushCV

    try:
        return PNormPushCV(ps, **settings).fit(X, y, **({} if by is None else {"groups": by}))
    except TypeError as error:  # a setting that the metric does not have
        raise Failure(str(error)) from error


def _find_folds(rows: TrainingRows, folds: int, gap: float) -> tuple[Any, Any]:
    """The folds, and the column that they follow."""
    import numpy as np

    from toprank.tuning import TimeOrderedSplit

    time = rows.time
    if time is None:
        if gap:
            raise Failure("--gap: a gap needs --time.")
        return folds, rows.groups
    if time.dtype.kind not in "biufM":
        try:
            time = time.astype("datetime64[us]")
        except ValueError as error:
            raise Failure(
                "--time: the times are neither numbers nor dates such as 2026-01-31."
            ) from error
    if time.dtype.kind == "M":
        return TimeOrderedSplit(folds, gap=np.timedelta64(round(gap * 86_400), "s")), time
    return TimeOrderedSplit(folds, gap=gap), time


def _metric_parameters(metric: str, k: str | None) -> dict[str, Any] | None:
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
    ranker: PNormPushCV, X: Any, rows: TrainingRows, folds: int, cv: Any, by: Any, jobs: int
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
        X,
        rows.y,
        ps=finite,
        alpha=choice.candidates[pushed].alpha or 0.0,
        cv=folds,
        groups=None if timed else by,
        time=by if timed else None,
        gap=cv.gap if timed else 0,
        n_jobs=jobs,
    )


def _choice_as_dict(ranker: PNormPushCV, advice: Support | None) -> dict[str, Any]:
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
    groups: str | None = None,
    time: str | None = None,
    reading: Reading | None = None,
    max_columns: int = 5_000,
) -> TrainingRows:
    """Read a table, or leave the command with a sentence that says what is wrong.

    Parameters
    ----------
    path : Path
        The file; "-" is standard input.
    target : str
        Column of the labels.
    positive : str, optional
        The label that belongs at the top, where that is not plain.
    groups, time : str, optional
        Columns that are not features.
    reading : Reading, optional
        What the user says of the text.
    max_columns : int, default=5000
        Columns that the table may have at most.
    """
    import numpy as np

    from toprank.models import Target as TargetLabels
    from toprank.models import frames
    from toprank.models.rows import TrainingRows

    roles = {"group": groups, "time": time}
    named = {role: column for role, column in roles.items() if column is not None}
    with open_table(path, reading) as source:
        wanted = {target: "--target"} | {c: f"--{role}" for role, c in named.items()}
        source.check_columns(wanted)
        source.check_width(max_columns)
        rows = source.read()
    table = require("pandas", "frames").DataFrame(frames.columns(rows, rows.column_names))
    values = frames.column(rows, target)
    labels = TargetLabels.learn(target, values, find_positive(rows, target, positive)).of(values)
    features = [c for c in table.columns if c != target and c not in named.values()]
    words = [c for c in features if table[c].dtype.kind not in "biuf"]
    if words:
        raise Failure(
            f"these columns are not numbers: {names(words)}. Encode them or leave them out; "
            "'toprank fit' prepares columns of every kind."
        )
    if not features:
        raise Failure(f"'{path}' has no columns but the labels: there is nothing to fit.")
    X = table[features].to_numpy(dtype=np.float64)
    if not np.all(np.isfinite(X)):
        bad = [c for c, ok in zip(features, np.isfinite(X).all(axis=0), strict=True) if not ok]
        raise Failure(f"values are missing or infinite in: {names(bad)}.")
    others = {role: table[column].to_numpy() for role, column in named.items()}
    return TrainingRows(X, labels, groups=others.get("group"), time=others.get("time"))
