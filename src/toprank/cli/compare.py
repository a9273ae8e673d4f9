"""`toprank compare`: whether one model is better than another on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.io.folder import GivenPath
from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.options import (
    Json,
    Level,
    Quiet,
    Resamples,
    choose_resamples,
    metric_names,
    parse_k,
    reads,
)
from toprank.cli.terminal import (
    Failure,
    Step,
    cells,
    console,
    names,
    note,
    print_json,
    progress,
    safe,
    short_number,
    table,
)

if TYPE_CHECKING:
    from rich.text import Text

    from toprank._arrays import BoolArray
    from toprank._numerics import FloatArray
    from toprank.inference import Comparisons
    from toprank.inference.result import Comparison
    from toprank.models import TableModel
    from toprank.models.rows import WeightAndGroups


@reads
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more models, then a table with labels.",
            metavar="MODEL... DATA",
            parser=GivenPath.of,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Metric to compare by; may be repeated.",
            autocompletion=metric_names,
            show_default="precision_at and auc",
        ),
    ] = None,
    k: Annotated[
        str, typer.Option(help="Length of the top for metrics at k: a count or a share.")
    ] = "0.1",
    level: Level = 0.95,
    resamples: Resamples = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Compare models on the same rows: the difference, its interval and a p-value.

    Every pair of models is compared row by row, and the p-values are corrected for the number of
    pairs (Holm). The models may read different columns, but must rank for the same target.
    """
    *models, data = files
    if len(models) < 2:
        raise Failure("name at least two models and then a table: MODEL MODEL... DATA.")
    depth = parse_k(k)
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_by_name

    loaded = load_by_name(models)
    with open_table(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        positive, scores, known, seen = _score_models(loaded, source, step)
        found = _compare_models(metric, depth, positive, scores, known, level, resamples, step)
    if as_json:
        print_json([pair.as_dict() for each in found for pair in each])
        for text in seen:
            note(text, quiet)
    else:
        _show_comparisons(found, data, len(positive), int(positive.sum()), list(scores))
        for text in seen:
            console().print(f"Note: {safe(text)}", style="bold")


def _score_models(
    models: Mapping[str, TableModel], source: Source, step: Step
) -> tuple[BoolArray, dict[str, FloatArray], WeightAndGroups, list[str]]:
    """Labels, scores by model, what else is known of the rows, and what to say of them.

    Weights and groups are those of the first model that has them.
    """
    from toprank.cli.scoring import score_labelled_table

    goals = {(model.target.column, model.target.positive) for model in models.values()}
    if len(goals) > 1:
        listed = " and ".join(f"'{column}' = '{value}'" for column, value in sorted(goals))
        raise Failure(f"the models rank for different things: {listed}.")
    scored = {name: score_labelled_table(model, source, step) for name, model in models.items()}
    rows = {name: one.rows for name, one in scored.items()}
    weights = (one.weight for one in rows.values() if one.weight is not None)
    groups = (one.groups for one in rows.values() if one.groups is not None)
    known: WeightAndGroups = {
        "sample_weight": next(weights, None),
        "groups": next(groups, None),
    }
    first = next(iter(rows.values()))
    notes = [f"{name}: {one.seen}" for name, one in scored.items() if one.seen]
    return first.y, {name: one.scores for name, one in rows.items()}, known, notes


def _compare_models(
    metrics: Sequence[str] | None,
    k: int | float,
    positive: BoolArray,
    scores: Mapping[str, FloatArray],
    known: WeightAndGroups,
    level: float,
    resamples: int | None,
    step: Step,
) -> list[Comparisons]:
    """All pairs of models by each metric."""
    from toprank.inference import compare
    from toprank.metrics.registry import METRICS
    from toprank.models.rows import metric_settings

    wanted = metrics or ("precision_at", "auc")
    unknown = [name for name in wanted if name not in METRICS]
    if unknown:
        raise Failure(f"--metric: '{unknown[0]}' is not one of: {', '.join(sorted(METRICS))}.")
    if positive.all() or not positive.any():
        only = "positive" if positive.all() else "negative"
        raise Failure(f"all rows are {only}; models are compared on rows of two classes.")
    drawn = choose_resamples(resamples, len(positive))
    found = []
    for done, name in enumerate(wanted):
        step(f"Comparing by {name}", done, len(wanted))
        settings = metric_settings(name, k)
        found.append(
            compare(name, positive, scores, level=level, n_resamples=drawn, **known, **settings)
        )
    return found


def _show_comparisons(
    found: Sequence[Comparisons], data: Path, rows: int, positives: int, models: list[str]
) -> None:
    screen = console()
    screen.print(
        f"\n{names(map(safe, models))} on {safe(data)}: {rows} rows, {positives} positives.",
        soft_wrap=True,
    )
    for each in found:
        first = each[0]
        span = f"{100 * first.level:g}% interval"
        drawn = table(
            [first.metric, "", "difference", span, "p (Holm)"], left=["", first.metric, span]
        )
        for pair in each:
            drawn.add_row(*_pair_cells(pair))
        screen.print(drawn)
    notes = {pair.note for each in found for pair in each if pair.note}
    for text in sorted(notes):
        screen.print(safe(text), style="dim")
    screen.print(
        "Intervals are for one pair alone; p-values are corrected for all pairs (Holm).",
        style="dim",
    )


def _pair_cells(pair: Comparison) -> list[Text]:
    (a, b), (value_a, value_b) = pair.names, pair.estimates
    return cells(
        f"{a} − {b}",
        f"{short_number(value_a)} − {short_number(value_b)}",
        f"{pair.difference:+.4g}",
        f"{short_number(pair.low)} to {short_number(pair.high)}",
        f"{pair.adjusted_p_value:.3g}",
    )
