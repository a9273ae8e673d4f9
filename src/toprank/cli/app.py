"""The commands, and the options of the command line itself.

A command is imported when the command line is built. All of them are for `--help` and completion;
whoever names one waits for that one alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import typer

from toprank._version import __version__
from toprank.cli.terminal import Commands

_START, _LOOK, _THEORY = "From a table to a list", "Look closer", "What the theory says"


@dataclass(frozen=True)
class _Command:
    """A command: the heading under which `--help` lists it, and examples of it."""

    panel: str
    examples: tuple[str, ...]

    def add_to(self, app: typer.Typer, name: str) -> None:
        """Add it to a command line; it is the function of its name, in the file of its name."""
        word = name.replace("-", "_")
        function = getattr(import_module(f"toprank.cli.{word}"), word)
        shown = "\n\n".join(f"`{example}`" for example in self.examples)
        epilog = f"Example{'s' if len(self.examples) > 1 else ''}:\n\n{shown}"
        app.command(name, epilog=epilog, rich_help_panel=self.panel)(function)


#: In the order in which `--help` lists them.
_COMMANDS = {
    "fit": _Command(
        _START,
        (
            "toprank fit train.csv --target bought --id customer -o model",
            "toprank fit visits.parquet -y ill --positive yes --time day --metric precision_at "
            "--k 100 -o model",
            "toprank fit november.csv -y bought --from model -o model",
        ),
    ),
    "check": _Command(
        _START,
        (
            "toprank check train.csv --target bought",
            "toprank check train.csv -y bought --time day --drop premium --as-text zip",
        ),
    ),
    "rank": _Command(
        _START,
        (
            "toprank rank model new.csv --top 100 -o ranked.csv",
            "toprank rank model big.parquet --top 0.01 -o ranked.parquet",
            "cat new.csv | toprank rank model - --json",
        ),
    ),
    "select": _Command(
        _START,
        (
            "toprank select model new.csv --calibration labelled.csv --fdr 0.1 -o list.csv",
            "toprank select model new.csv -c labelled.csv --precision 0.9 --confidence 0.95",
            "toprank select model new.csv -c labelled.csv --positives 20 --json",
        ),
    ),
    "diff": _Command(
        _START,
        (
            "toprank diff monday.csv tuesday.csv --top 100",
            "toprank diff monday.csv tuesday.csv --old-data 1.csv --new-data 2.csv --model model",
        ),
    ),
    "evaluate": _Command(
        _START,
        (
            "toprank evaluate model test.csv",
            "toprank evaluate model test.csv --k 50,0.01 --json",
        ),
    ),
    "compare": _Command(
        _START,
        (
            "toprank compare old new test.csv",
            "toprank compare old new trees test.csv --metric auc --metric precision_at --k 100",
        ),
    ),
    "report": _Command(
        _START,
        (
            "toprank report train.csv --target bought -o report.html",
            "toprank report model test.csv --top 100 --value-positive 40 --cost 1.5",
            "toprank report old new --test test.csv --today old_score",
        ),
    ),
    "monitor": _Command(
        _START,
        (
            "toprank monitor model today.csv --max-drift 0.2",
            "toprank monitor model today.csv --min-precision 0.3 --json",
        ),
    ),
    "show": _Command(
        _LOOK,
        (
            "toprank show model",
            "toprank show model --json",
        ),
    ),
    "export": _Command(
        _LOOK,
        (
            "toprank export model --onnx model.onnx",
            "toprank export model --sql score.sql --table customers",
        ),
    ),
    "demo": _Command(
        _LOOK,
        ("toprank demo --output roc.png --seed 1",),
    ),
    "choose-p": _Command(
        _THEORY,
        ("toprank choose-p data.csv --target y --k 0.01 --output path.png",),
    ),
    "bounds": _Command(
        _THEORY,
        ("toprank bounds --positives 1000 --negatives 9000 --features 10",),
    ),
    "reproduce": _Command(
        _THEORY,
        ("toprank reproduce --quick -o reproduced",),
    ),
}


def build_app(arguments: Sequence[str] | None = None) -> typer.Typer:
    """Return the command line, of the one command that the arguments name or of all.

    Examples
    --------
    >>> [command.name for command in build_app(["show", "model"]).registered_commands]
    ['show']
    >>> len(build_app(["--help"]).registered_commands) > 10
    True
    """
    app = typer.Typer(
        cls=Commands,
        help="Rankings that are right at the top of the list.",
        epilog="Example: toprank fit train.csv --target y -o model && toprank rank model new.csv",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    named = next((word for word in arguments or () if not word.startswith("-")), None)
    # a shell that completes words says so in the environment
    one = named in _COMMANDS and "_TOPRANK_COMPLETE" not in os.environ
    for name, command in _COMMANDS.items():
        if not one or name == named:
            command.add_to(app, name)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toprank {__version__}")
        raise typer.Exit


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


def __getattr__(name: str) -> typer.Typer:
    """The command line of all commands, built when it is asked for."""
    if name == "app":
        globals()["app"] = built = build_app()
        return built
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
