"""Options that several commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.failures import Failure
from toprank.cli.io.dialect import Reading

_READING = "Reading text files"

Model = Annotated[Path, typer.Argument(help="Model written by 'toprank fit'.", metavar="MODEL")]
Data = Annotated[
    Path,
    typer.Argument(
        help="Table: CSV, TSV (plain, .gz or .bz2), Parquet or Arrow; - for standard input.",
        metavar="DATA",
    ),
]
Train = Annotated[
    Path,
    typer.Argument(
        help="Table to learn from: CSV, TSV (plain, .gz or .bz2), Parquet or Arrow; - for "
        "standard input.",
        metavar="TRAIN",
    ),
]
Target = Annotated[str, typer.Option("--target", "-y", help="Column of the labels.")]
Positive = Annotated[
    str | None,
    typer.Option(help="Value of the target that belongs at the top, where that is not plain."),
]
RowId = Annotated[str | None, typer.Option(help="Column that names the rows; not a feature.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, not tables.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar, no notes; errors are still said.")
]
Level = Annotated[
    float, typer.Option(help="Confidence level of the intervals.", min=0.5, max=0.9999)
]
MaxColumns = Annotated[
    int,
    typer.Option(
        min=1, help="Columns that a table may have at most; learning from more can take hours."
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        min=20,
        help="Resamples of the metrics whose intervals come from the bootstrap.",
        show_default="1000; 200 beyond 200,000 rows",
    ),
]
_READING_OPTIONS: dict[str, Any] = {
    "encoding": Annotated[
        str | None,
        typer.Option(
            help="Encoding of the text, such as latin-1; UTF-8 unless the file says otherwise.",
            rich_help_panel=_READING,
        ),
    ],
    "delimiter": Annotated[
        str | None,
        typer.Option(help="Sign between fields; found out if not given.", rich_help_panel=_READING),
    ],
    "decimal": Annotated[
        str | None,
        typer.Option(
            help="Decimal sign, a point or a comma; found out if not given.",
            rich_help_panel=_READING,
        ),
    ],
    "missing": Annotated[
        list[str] | None,
        typer.Option(
            help="Word that stands for a missing value, besides NA, NaN, null and nothing at all; "
            "may be repeated.",
            rich_help_panel=_READING,
        ),
    ],
}


def metric_names(incomplete: str) -> list[str]:
    """The metrics, for the completion of the shell."""
    from toprank.metrics.registry import METRICS

    return [name for name in sorted(METRICS) if name.startswith(incomplete)]


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading text; it gets them as `reading`."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for name, one in signature.parameters.items() if name != "reading"]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _READING_OPTIONS.items()
    ]

    @wraps(command)
    def with_reading(**given: Any) -> None:
        reading = _reading(**{name: given.pop(name) for name in _READING_OPTIONS})
        command(**given, reading=reading)

    parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *more]
    with_reading.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_reading


def _reading(
    encoding: str | None, delimiter: str | None, decimal: str | None, missing: list[str] | None
) -> Reading:
    """What the user says of the text, checked."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and (len(delimiter) != 1 or ord(delimiter) > 127):
        raise Failure(f"--delimiter {delimiter!r}: expected one sign, such as ';' or tab.")
    if decimal not in (None, ".", ","):
        raise Failure(f"--decimal {decimal!r}: expected a point or a comma.")
    return Reading(encoding, delimiter, decimal, tuple(missing or ()))


def choose_resamples(given: int | None, rows: int) -> int:
    """How often to draw; a long table is drawn less often, or it would take hours."""
    return given if given is not None else 1_000 if rows <= 200_000 else 200


def parse_k(text: str, option: str = "--k") -> int | float:
    """A count (100) or a share (0.01) of the list."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 1 and value.is_integer() and "." not in text:
        return int(value)
    if 0 < value <= 1:
        return value
    raise Failure(f"{option} {text!r}: expected a count such as 100, or a share such as 0.01.")


def parse_ks(text: str, option: str = "--k") -> list[int | float]:
    """Several of them, with commas."""
    return [parse_k(part.strip(), option) for part in text.split(",") if part.strip()]


def parse_numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers separated by commas; "inf" is one."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise Failure(f"{name}: '{text}' is not a list of numbers such as 1,2,4.") from error
