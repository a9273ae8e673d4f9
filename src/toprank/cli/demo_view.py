"""How the demo is shown: a table, one sentence, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.cli.demo import CLEAR, MAX_FPR, MEASURES, TOP, Change, DemoResult, Measure, ModelResult
from toprank.cli.files import replacing
from toprank.plots import TopRocDisplay

PICTURED = (None, 1, 4, 64)  # seven curves would hide each other


def show(console: Console, result: DemoResult) -> None:
    """Print the table, what its columns mean, and the sentence."""
    n_rows = result.n_train + result.n_test
    console.print(
        f"\nMAGIC telescope: {n_rows} events, {result.prevalence:.0%} of them gamma rays (the "
        "positives), which should be ranked above the others (the negatives).",
        highlight=False,
    )
    console.print(table(result.models))
    console.print(notes(result), style="dim", highlight=False)
    console.print("\n" + sentence(result), style="bold", highlight=False)


def table(models: Sequence[ModelResult]) -> Table:
    """One row a model: the mean over the splits ± the standard deviation between them."""
    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    rows.add_column("", no_wrap=True)
    shown = [m for m, measure in enumerate(MEASURES) if measure.in_table]
    for m in shown:
        name = MEASURES[m].name
        rows.add_column(name[0].upper() + name[1:], justify="right", min_width=12)
    for model in models:
        rows.add_row(model.name, *(_cell(MEASURES[m], model.values[m]) for m in shown))
    return rows


def notes(result: DemoResult) -> str:
    """What a reader must know of the rows and columns."""
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


def sentence(result: DemoResult) -> str:
    """What the strongest push bought against logistic regression, and what it cost."""
    changes = result.changes()
    bought, cost, unclear = (
        [_change(change) for change in changes if change.direction == direction]
        for direction in (1, -1, 0)
    )
    verdict = f"bought {_join(bought)}" if bought else "bought nothing"
    verdict += f", and cost {_join(cost)}" if cost else ", and cost nothing that is clear here"
    if unclear:
        verdict += f"; without clear change: {_join(unclear)}"
    first, last = result.models[0], result.models[-1]
    return f"Compared with {first.name}, the P-Norm Push with p = {last.p:g} {verdict}."


def picture_formats() -> tuple[str, ...]:
    """Endings of file names that matplotlib can write, those that everyone can open."""
    return ("pdf", "png", "svg")


def save_picture(result: DemoResult, path: Path) -> None:
    """Save the mean ROC curves, whole and at the top of the list."""
    figure = require("matplotlib.figure", "cli").Figure(figsize=(11, 4.8), layout="constrained")
    axes = figure.subplots(1, 2)
    pictured = [model for model in result.models if model.p in PICTURED]
    for model in pictured:
        TopRocDisplay(fpr=model.fpr, tpr=model.tpr, name=model.name).plot(axes, max_fpr=MAX_FPR)
    axes[0].set_title("The whole ROC curve")
    axes[1].set_title(f"The top of the list: at most {MAX_FPR:.0%} of the negatives")
    splits = "one random split" if result.n_splits == 1 else f"mean of {result.n_splits} splits"
    figure.suptitle(f"MAGIC telescope data, {splits}")
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=110)


def _cell(measure: Measure, values: FloatArray) -> str:
    """Mean ± standard deviation, or the value itself if there is one only."""
    scale, digits, unit = (100, 1, " %") if measure.percent else (1, 3, "")
    mean = f"{scale * values.mean():.{digits}f}"
    if len(values) == 1:
        return mean + unit
    spread = f"{scale * values.std(ddof=1):.{digits}f}"
    return f"{mean} ± {spread if measure.percent else spread.lstrip('0')}{unit}"


def _change(change: Change) -> str:
    if change.measure.percent:
        return f"{change.measure.name} ({100 * change.before:.1f}% → {100 * change.after:.1f}%)"
    return f"{change.measure.name} ({change.before:.3f} → {change.after:.3f})"


def _join(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
