"""`toprank demo`: the push against logistic regression on data that ships with toprank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from toprank._extras import require
from toprank.cli.files import check_output
from toprank.cli.options import Json, Quiet
from toprank.cli.terminal import print_json, progress, safe

if TYPE_CHECKING:
    from toprank.cli.demo import DemoResult


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
    from toprank.cli import demo, demo_view

    if picture:
        check_output(output, demo_view.picture_formats())
    with progress("Reading the data", quiet) as step:
        result = demo.run_demo(
            n_splits=splits,
            seed=seed,
            on_fit=lambda model, done, total: step(f"Training: {model}", done, total),
        )
    if picture:
        demo_view.save_picture(result, output)
    if as_json:
        print_json(_plain(result))
        return
    console = Console()
    demo_view.show(console, result)
    if picture:
        console.print(f"\nPicture: {safe(output)}", soft_wrap=True, highlight=False, markup=False)


def _plain(result: DemoResult) -> dict[str, Any]:
    from toprank.cli.demo import MEASURES

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
