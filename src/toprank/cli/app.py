"""The commands, and the options of the command line itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from toprank._version import __version__
from toprank.cli.bounds import bounds
from toprank.cli.check import check
from toprank.cli.choose_p import choose_p
from toprank.cli.compare import compare
from toprank.cli.demo import demo
from toprank.cli.diff import diff
from toprank.cli.evaluate import evaluate
from toprank.cli.export import export
from toprank.cli.fit import fit
from toprank.cli.monitor import monitor
from toprank.cli.rank import rank
from toprank.cli.report import report
from toprank.cli.reproduce import reproduce
from toprank.cli.select import select
from toprank.cli.show import show
from toprank.cli.terminal import Commands

_START, _LOOK, _THEORY = "From a table to a list", "Look closer", "What the theory says"

app = typer.Typer(
    cls=Commands,
    help="Rankings that are right at the top of the list.",
    epilog="Example: toprank fit train.csv --target y -o model && toprank rank model new.csv",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback",
            envvar="TOPRANK_TRACEBACK",
            help="Show where in the code an error arose.",
        ),
    ] = False,
) -> None:
    """The options of the command line itself; typer shows the help given to the app."""


def _add_command(panel: str, name: str, command: Callable[..., None], *examples: str) -> None:
    shown = "\n\n".join(f"`{example}`" for example in examples)
    epilog = f"Example{'s' if len(examples) > 1 else ''}:\n\n{shown}"
    app.command(name, epilog=epilog, rich_help_panel=panel)(command)


_add_command(
    _START,
    "fit",
    fit,
    "toprank fit train.csv --target bought --id customer -o model",
    "toprank fit visits.parquet -y ill --positive yes --time day --metric precision_at --k 100 "
    "-o model",
    "toprank fit november.csv -y bought --from model -o model",
)
_add_command(
    _START,
    "check",
    check,
    "toprank check train.csv --target bought",
    "toprank check train.csv -y bought --time day --drop premium --as-text zip",
)
_add_command(
    _START,
    "rank",
    rank,
    "toprank rank model new.csv --top 100 -o ranked.csv",
    "toprank rank model big.parquet --top 0.01 -o ranked.parquet",
    "cat new.csv | toprank rank model - --json",
)
_add_command(
    _START,
    "select",
    select,
    "toprank select model new.csv --calibration labelled.csv --fdr 0.1 -o list.csv",
    "toprank select model new.csv -c labelled.csv --precision 0.9 --confidence 0.95",
    "toprank select model new.csv -c labelled.csv --positives 20 --json",
)
_add_command(
    _START,
    "diff",
    diff,
    "toprank diff monday.csv tuesday.csv --top 100",
    "toprank diff monday.csv tuesday.csv --old-data 1.csv --new-data 2.csv --model model",
)
_add_command(
    _START,
    "evaluate",
    evaluate,
    "toprank evaluate model test.csv",
    "toprank evaluate model test.csv --k 50,0.01 --json",
)
_add_command(
    _START,
    "compare",
    compare,
    "toprank compare old new test.csv",
    "toprank compare old new trees test.csv --metric auc --metric precision_at --k 100",
)
_add_command(
    _START,
    "report",
    report,
    "toprank report train.csv --target bought -o report.html",
    "toprank report model test.csv --top 100 --value-positive 40 --cost 1.5",
    "toprank report old new --test test.csv --today old_score",
)
_add_command(
    _START,
    "monitor",
    monitor,
    "toprank monitor model today.csv --max-drift 0.2",
    "toprank monitor model today.csv --min-precision 0.3 --json",
)
_add_command(_LOOK, "show", show, "toprank show model", "toprank show model --json")
_add_command(
    _LOOK,
    "export",
    export,
    "toprank export model --onnx model.onnx",
    "toprank export model --sql score.sql --table customers",
)
_add_command(_LOOK, "demo", demo, "toprank demo --output roc.png --seed 1")
_add_command(
    _THEORY,
    "choose-p",
    choose_p,
    "toprank choose-p data.csv --target y --k 0.01 --output path.png",
)
_add_command(
    _THEORY,
    "bounds",
    bounds,
    "toprank bounds --positives 1000 --negatives 9000 --features 10",
)
_add_command(
    _THEORY,
    "reproduce",
    reproduce,
    "toprank reproduce --quick -o reproduced",
)
