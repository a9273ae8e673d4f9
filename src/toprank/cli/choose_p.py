"""`toprank choose-p`: how hard to push on the rows of a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import StandardScaler

from toprank._extras import require
from toprank.choose import PNormPushCV, Support, TimeOrderedSplit, supported_p
from toprank.cli.data import LabelledRows, numbers, read_rows
from toprank.cli.files import check_writable, replacing
from toprank.metrics.registry import METRICS

_PICTURES = ("pdf", "png", "svg")


def choose_p(
    data: Annotated[Path, typer.Argument(help="Table of rows: .csv, .csv.gz or .parquet.")],
    target: Annotated[str, typer.Option("--target", "-y", help="Column of the labels.")],
    positive: Annotated[
        str | None, typer.Option(help="Label that belongs at the top; by default the larger.")
    ] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    jobs: Annotated[int, typer.Option(help="Folds at a time; -1 for every core.")] = 1,
) -> None:
    """Choose how hard to push on your data, or say that you should not.

    Fits the P-Norm Push for every p and penalty, and logistic regression, in cross-validation;
    compares them by a metric of the top of the list on rows held out; and says how many negatives
    each p rests on.
    """
    if output is not None:
        _check_output(output)
    if group is not None and time is not None:
        raise typer.BadParameter("give --group or --time, not both.")
    if metric not in METRICS:
        known = ", ".join(sorted(METRICS))
        raise typer.BadParameter(f"'{metric}' is not one of: {known}.", param_hint="--metric")
    rows = read_rows(data, target, positive, {"group": group, "time": time})
    X = StandardScaler().fit_transform(rows.X) if scale else rows.X
    cv, by = _splits(rows, folds, gap)
    try:
        ranker = PNormPushCV(
            numbers(ps, "--ps"),
            scoring=metric,
            scoring_kwargs=_settings(metric, k),
            cv=cv,
            alphas=numbers(alphas, "--alphas"),
            rule=rule,
            n_jobs=jobs,
        ).fit(X, rows.y, **({} if by is None else {"groups": by}))
        advice = _advice(ranker, X, rows, folds, cv, by, jobs) if support else None
    except (ValueError, TypeError) as error:
        typer.echo(f"toprank: {error}", err=True)
        raise typer.Exit(1) from error
    if output is not None:
        _save_picture(ranker, output)
    if as_json:
        typer.echo(json.dumps(_plain(ranker, advice), indent=2))
        return
    _show(Console(), ranker, advice, rows)
    if output is not None:
        typer.echo(f"\nPicture: {output}")


def _check_output(output: Path) -> None:
    try:
        require("matplotlib", "cli")
    except ImportError as error:
        typer.echo(f"toprank: {error}", err=True)
        raise typer.Exit(1) from error
    try:
        check_writable(output, _PICTURES)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error


def _splits(rows: LabelledRows, folds: int, gap: float) -> tuple[Any, Any]:
    """The folds, and the column that they follow."""
    if "time" not in rows.special:
        if gap:
            raise typer.BadParameter("a gap needs --time.", param_hint="--gap")
        return folds, rows.special.get("group")
    time = rows.special["time"]
    if time.dtype.kind not in "biufM":
        try:
            time = time.astype("datetime64[us]")
        except ValueError as error:
            raise typer.BadParameter(
                "the times are neither numbers nor dates such as 2026-01-31.", param_hint="--time"
            ) from error
    if time.dtype.kind == "M":
        return TimeOrderedSplit(folds, gap=np.timedelta64(round(gap * 86_400), "s")), time
    return TimeOrderedSplit(folds, gap=gap), time


def _settings(metric: str, k: str | None) -> dict[str, Any] | None:
    if k is None:
        return None
    if not METRICS[metric].takes_k:
        raise typer.BadParameter(f"{metric} does not take k.", param_hint="--k")
    try:
        return {"k": int(k) if k.lstrip("+").isdigit() else float(k)}
    except ValueError as error:
        raise typer.BadParameter(f"'{k}' is neither a count nor a share.") from error


def _advice(
    ranker: PNormPushCV, X: Any, rows: LabelledRows, folds: int, cv: Any, by: Any, jobs: int
) -> Support:
    timed = isinstance(cv, TimeOrderedSplit)
    choice = ranker.choice_
    pushed = max(
        (i for i in choice.per_p if choice.candidates[i].pushes), key=lambda i: choice.mean[i]
    )
    finite = [p for p in ranker.ps if np.isfinite(p)] or [1.0]
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


def _plain(ranker: PNormPushCV, advice: Support | None) -> dict[str, Any]:
    held_out = ranker.score_interval_
    answer = ranker.choice_.as_dict()
    answer["held_out"] = None if held_out is None else asdict(held_out)
    answer["support"] = None if advice is None else advice.as_dict()
    return _without_infinity(answer)


def _without_infinity(value: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    if isinstance(value, dict):
        return {key: _without_infinity(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return "inf" if value > 0 else None
    return value


def _show(
    console: Console, ranker: PNormPushCV, advice: Support | None, rows: LabelledRows
) -> None:
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
    n_positive = int(np.sum(rows.y))
    console.print(
        f"\n{len(rows.y)} rows, {n_positive} positives, {len(rows.features)} features. The "
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


def _save_picture(ranker: PNormPushCV, path: Path) -> None:
    from toprank.plots import PushPathDisplay

    figure = require("matplotlib.figure", "cli").Figure(figsize=(6.4, 4.4), layout="constrained")
    PushPathDisplay.from_estimator(ranker, name="P-Norm Push", ax=figure.subplots())
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=110)
