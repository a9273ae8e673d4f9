"""The work behind `toprank choose-p`: folds, the fit, and how its answer is shown."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import StandardScaler

from toprank._extras import require
from toprank.cli.data import LabelledRows
from toprank.cli.failures import Failure
from toprank.cli.files import replacing
from toprank.cli.options import k_of
from toprank.metrics.registry import METRICS
from toprank.plots import PushPathDisplay
from toprank.tuning import PNormPushCV, Support, TimeOrderedSplit, supported_p


def standardised(X: Any) -> Any:
    """Columns of mean zero and variance one."""
    return StandardScaler().fit_transform(X)


def fit(X: Any, y: Any, by: Any, *, ps: tuple[float, ...], **settings: Any) -> PNormPushCV:
    """The push cross-validated; `by` is the column that the folds follow, or None."""
    try:
        return PNormPushCV(ps, **settings).fit(X, y, **({} if by is None else {"groups": by}))
    except TypeError as error:  # a setting that the metric does not have
        raise Failure(str(error)) from error


def splits(rows: LabelledRows, folds: int, gap: float) -> tuple[Any, Any]:
    """The folds, and the column that they follow."""
    if "time" not in rows.special:
        if gap:
            raise Failure("--gap: a gap needs --time.")
        return folds, rows.special.get("group")
    time = rows.special["time"]
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


def settings(metric: str, k: str | None) -> dict[str, Any] | None:
    """The parameters of a metric; Failure if there is no such metric or it takes none."""
    if metric not in METRICS:
        known = ", ".join(sorted(METRICS))
        raise Failure(f"--metric: '{metric}' is not one of: {known}.")
    if k is None:
        return None
    if not METRICS[metric].takes_k:
        raise Failure(f"--k: {metric} does not take k.")
    return {"k": k_of(k)}


def advice(
    ranker: PNormPushCV, X: Any, rows: LabelledRows, folds: int, cv: Any, by: Any, jobs: int
) -> Support:
    """What p the sample supports, with the penalty of the best push."""
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


def plain_answer(ranker: PNormPushCV, advice: Support | None) -> dict[str, Any]:
    """The answer as plain values."""
    held_out = ranker.score_interval_
    answer = ranker.choice_.as_dict()
    answer["held_out"] = None if held_out is None else asdict(held_out)
    answer["support"] = None if advice is None else advice.as_dict()
    return answer


def show(console: Console, ranker: PNormPushCV, advice: Support | None, rows: LabelledRows) -> None:
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


def save_picture(ranker: PNormPushCV, path: Path) -> None:
    """Save the metric against p."""
    figure = require("matplotlib.figure", "cli").Figure(figsize=(6.4, 4.4), layout="constrained")
    PushPathDisplay.from_estimator(ranker, name="P-Norm Push", ax=figure.subplots())
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=110)
