"""`toprank compare`: whether one model is better than another on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.dialect import Reading
from toprank.cli.failures import Failure
from toprank.cli.options import Json, Level, Quiet, Resamples, k_of, metric_names, reads
from toprank.cli.tables import opened
from toprank.cli.terminal import cells, console, names, number, print_json, progress, safe, table

if TYPE_CHECKING:
    from toprank.inference import Comparisons


@reads
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more models, then a table with labels.", metavar="MODEL... DATA"
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
    depth = k_of(k)
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.comparing import by_name, comparisons, scores_of

    loaded = by_name(models)
    with opened(data, reading, quiet) as source, progress("Ranking", quiet) as step:
        positive, scores, known = scores_of(loaded, source, step)
        found = comparisons(metric, depth, positive, scores, known, level, resamples, step)
    if as_json:
        print_json([pair.as_dict() for each in found for pair in each])
    else:
        _show(found, data, len(positive), int(positive.sum()), list(scores))


def _show(
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
            drawn.add_row(*_row(pair))
        screen.print(drawn)
    told = {pair.note for each in found for pair in each if pair.note}
    for note in sorted(told):
        screen.print(safe(note), style="dim")
    screen.print(
        "Intervals are for one pair alone; p-values are corrected for all pairs (Holm).",
        style="dim",
    )


def _row(pair: Any) -> list[Any]:
    (a, b), (value_a, value_b) = pair.names, pair.estimates
    return cells(
        f"{a} − {b}",
        f"{number(value_a)} − {number(value_b)}",
        f"{pair.difference:+.4g}",
        f"{number(pair.low)} to {number(pair.high)}",
        f"{pair.adjusted_p_value:.3g}",
    )
