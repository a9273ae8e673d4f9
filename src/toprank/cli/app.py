"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from toprank import __version__
from toprank._extras import require
from toprank.cli import demo_view
from toprank.cli.bounds import bounds
from toprank.cli.choose_p import choose_p
from toprank.cli.demo import DemoResult, run_demo
from toprank.cli.files import check_writable

app = typer.Typer(
    help="Rankings that are right at the top of the list.",
    epilog="Example: toprank demo --output roc.png",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toprank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options of the command line itself; typer shows the help given to the app."""


@app.command(epilog="Example: toprank demo --output roc.png --seed 1")
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
) -> None:
    """Compare the P-Norm Push with logistic regression on data that ships with toprank.

    Trains both on the MAGIC telescope data, prints how right the top of the list is, says what
    the push bought and what it cost, and saves a picture of the ROC curves at the top.
    """
    if picture:
        _check_output(output)
    result = _run(splits, seed)
    console = Console()
    demo_view.show(console, result)
    if picture:
        demo_view.save_picture(result, output)
        console.print(f"\nPicture: {output}", soft_wrap=True, highlight=False, markup=False)


def _check_output(output: Path) -> None:
    """Find out before the training, not after, that the picture cannot be saved."""
    try:
        require("matplotlib", "cli")
    except ImportError as error:
        typer.echo(f"toprank: {error}", err=True)
        raise typer.Exit(1) from error
    try:
        check_writable(output, demo_view.picture_formats())
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error


def _run(splits: int, seed: int) -> DemoResult:
    """Run the demo behind a progress bar, which is not drawn into pipes and files."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("Reading the data", total=None)

        def on_fit(model: str, done: int, total: int) -> None:
            bar.update(task, description=f"Training: {model}", completed=done, total=total)

        return run_demo(n_splits=splits, seed=seed, on_fit=on_fit)


app.command(epilog="Example: toprank bounds --positives 1000 --negatives 9000 --features 10")(
    bounds
)
app.command("choose-p", epilog="Example: toprank choose-p data.csv --target y --k 0.01")(choose_p)
