"""`toprank demo`: the push against logistic regression on data that ships with toprank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from toprank._extras import require
from toprank._files import replace_file
from toprank.cli.options import Json, Quiet, check_output
from toprank.cli.terminal import print_json, progress, safe

if TYPE_CHECKING:
    from toprank._arrays import JsonObject
    from toprank._numerics import FloatArray
    from toprank.reproduce.demo import Change, DemoResult, Measure, ModelResult

_PICTURES = ("pdf", "png", "svg")
_PICTURED = (None, 1, 4, 64)  # values of p; seven curves would hide each other


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to save the picture (.png, .pdf, .svg).")
    ] = Path("toprank-demo.png"),
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Whether to save a picture.")
    ] = True,
    splits: Annotated[
        int, typer.Option(min=1, help="Number of random splits to average over.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random splits.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the P-Norm Push with logistic regression on data that ships with toprank.

    Trains both on the MAGIC telescope data, prints how right the top of the list is, says what
    the push bought and what it cost, and saves a picture of the ROC curves at the top.
    """
    if picture:
        require("matplotlib", "cli")
    # the library is loaded here, because --help need not wait for it
    from toprank.reproduce.demo import run_demo

    if picture:
        check_output(output, _PICTURES)
    with progress("Reading the data", quiet) as step:
        result = run_demo(
            n_splits=splits,
            seed=seed,
            on_fit=lambda model, done, total: step(f"Training: {model}", done, total),
        )
    if picture:
        _save_roc_curves(result, output)
    if as_json:
        print_json(_result_as_dict(result))
        return
    console = Console()
    _show_demo(console, result)
    if picture:
        console.print(f"\nPicture: {safe(output)}", soft_wrap=True, highlight=False, markup=False)


def _result_as_dict(result: DemoResult) -> JsonObject:
    from toprank.reproduce.demo import MEASURES

    return {
        "rows_trained_on": result.n_train,
        "rows_measured_on": result.n_test,
        "splits": result.n_splits,
        "models": [
            {
                "name": model.name,
                "p": model.p,
                "mean": dict(zip([m.name for m in MEASURES], model.means, strict=True)),
            }
            for model in result.models
        ],
    }


def _show_demo(console: Console, result: DemoResult) -> None:
    """Print the table, what its columns mean, and the sentence."""
    n_rows = result.n_train + result.n_test
    console.print(
        f"\nMAGIC telescope: {n_rows} events, {result.prevalence:.0%} of them gamma rays (the "
        "positives), which should be ranked above the others (the negatives).",
        highlight=False,
    )
    console.print(_models_table(result.models))
    console.print(_table_notes(result), style="dim", highlight=False)
    console.print("\n" + _verdict_text(result), style="bold", highlight=False)


def _models_table(models: Sequence[ModelResult]) -> Table:
    """One row per model: the mean over the splits ± the standard deviation between them."""
    from toprank.reproduce.demo import MEASURES

    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    rows.add_column("", no_wrap=True)
    shown = [m for m, measure in enumerate(MEASURES) if measure.in_table]
    for m in shown:
        name = MEASURES[m].name
        rows.add_column(name[0].upper() + name[1:], justify="right", min_width=12)
    for model in models:
        rows.add_row(model.name, *(_measure_cell(MEASURES[m], model.values[m]) for m in shown))
    return rows


def _table_notes(result: DemoResult) -> str:
    """What a reader must know of the rows and columns."""
    from toprank.reproduce.demo import CLEAR, MAX_FPR, TOP

    several = f"Mean ± standard deviation over {result.n_splits} random splits"
    return (
        f"{several if result.n_splits > 1 else 'One random split'}: trained on "
        f"{result.n_train} events, measured on {result.n_test} others.\n"
        f"Precision: share of positives in the first {TOP:.0%} of the list; a random order has "
        f"{result.prevalence:.0%}.\n"
        f"Partial AUC: the area under the ROC curve where at most {MAX_FPR:.0%} of the negatives "
        "are let through, rescaled (McClish) so that 0.5 is a random order and 1 is perfect.\n"
        "AUC: how often a random positive is ranked above a random negative.\n"
        "The sentence compares the first row with the last, whatever the numbers, also at the "
        f"bottom of the list; a change is clear if {CLEAR:.0%} of the splits agree on its sign. "
        "Choose your own p on held-out data."
    )


def _verdict_text(result: DemoResult) -> str:
    """What the strongest push bought against logistic regression, and what it cost."""
    changes = result.changes()
    bought, cost, unclear = (
        [_change_text(change) for change in changes if change.direction == direction]
        for direction in (1, -1, 0)
    )
    verdict = f"bought {_join(bought)}" if bought else "bought nothing"
    verdict += f", and cost {_join(cost)}" if cost else ", and cost nothing that is clear here"
    if unclear:
        verdict += f"; without clear change: {_join(unclear)}"
    first, last = result.models[0], result.models[-1]
    return f"Compared with {first.name}, the P-Norm Push with p = {last.p:g} {verdict}."


def _save_roc_curves(result: DemoResult, path: Path) -> None:
    """Save the mean ROC curves, whole and at the top of the list."""
    from toprank.plots import TopRocDisplay
    from toprank.reproduce.demo import MAX_FPR

    figure = require("matplotlib.figure", "cli").Figure(figsize=(11, 4.8), layout="constrained")
    axes = figure.subplots(1, 2)
    pictured = [model for model in result.models if model.p in _PICTURED]
    for model in pictured:
        TopRocDisplay(fpr=model.fpr, tpr=model.tpr, name=model.name).plot(axes, max_fpr=MAX_FPR)
    axes[0].set_title("The whole ROC curve")
    axes[1].set_title(f"The top of the list: at most {MAX_FPR:.0%} of the negatives")
    splits = "one random split" if result.n_splits == 1 else f"mean of {result.n_splits} splits"
    figure.suptitle(f"MAGIC telescope data, {splits}")
    with replace_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=110)


def _measure_cell(measure: Measure, values: FloatArray) -> str:
    """Mean ± standard deviation, or the value itself if there is one only."""
    scale, digits, unit = (100, 1, " %") if measure.percent else (1, 3, "")
    mean = f"{scale * values.mean():.{digits}f}"
    if len(values) == 1:
        return mean + unit
    spread = f"{scale * values.std(ddof=1):.{digits}f}"
    return f"{mean} ± {spread if measure.percent else spread.lstrip('0')}{unit}"


def _change_text(change: Change) -> str:
    if change.measure.percent:
        return f"{change.measure.name} ({100 * change.before:.1f}% → {100 * change.after:.1f}%)"
    return f"{change.measure.name} ({change.before:.3f} → {change.after:.3f})"


def _join(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
