"""Options that several commands have, and the checks of what they name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from toprank._files import address_of, check_folder
from toprank.cli.io.folder import GivenPath
from toprank.cli.io.source import Reading
from toprank.cli.terminal import Failure

_READING = "Reading text files"

Model = Annotated[Path, typer.Argument(help="Model written by 'toprank fit'.", metavar="MODEL")]
Data = Annotated[
    Path,
    typer.Argument(
        help="Table: CSV, TSV (plain, .gz or .bz2), Excel, Parquet or Arrow; a folder, a "
        "pattern or an address of Parquet files; - for standard input.",
        metavar="DATA",
        parser=GivenPath.of,
    ),
]
Train = Annotated[
    Path,
    typer.Argument(
        help="Table to learn from: CSV, TSV (plain, .gz or .bz2), Excel, Parquet or Arrow; a "
        "folder, a pattern or an address of Parquet files; - for standard input.",
        metavar="TRAIN",
        parser=GivenPath.of,
    ),
]
Target = Annotated[str, typer.Option("--target", "-y", help="Column of the labels.")]
Positive = Annotated[
    str | None,
    typer.Option(help="Value of the target that belongs at the top, where that is not plain."),
]
RowId = Annotated[str | None, typer.Option(help="Column that names the rows; not a feature.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="Column of dates or numbers: train on the past, measure on the future."),
]
Weight = Annotated[str | None, typer.Option(help="Column that says how often a row counts.")]
Groups = Annotated[
    str | None, typer.Option(help="Column of groups: rows with one value stay in one fold.")
]
Propensity = Annotated[
    str | None,
    typer.Option(
        help="Column of probabilities that a row's label was seen, such as 'rank --explore' "
        "writes: rows are weighted by one over it."
    ),
]
Unlabelled = Annotated[
    str | None,
    typer.Option(
        help="Where only some positives have a label: the label of the other rows, or 'missing'. "
        "Metrics are then corrected for the positives among these.",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        help="Share of positives among the rows of --unlabelled: a number (0.1), or the least and "
        "the largest (0.05,0.2).",
        show_default="estimated",
    ),
]
_COLUMNS = "How columns are read"
AsText = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of names in figures, such as zip codes: read as words; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
AsNumber = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of numbers with signs, such as $1,234.50 or 12,5 %: read as numbers; may be "
        "repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Clip = Annotated[
    list[str] | None,
    typer.Option(
        help="Column with a long tail: its largest and smallest half percent count as no more than "
        "that; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Tidy = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of words that are spelled in several ways (Yes, yes): read in small letters, "
        "without needless spaces; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Pool = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of many different words, or of names in figures: read as categories, the 39 "
        "commonest each and all others as one; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
KeepTails = Annotated[
    bool,
    typer.Option(
        "--keep-tails",
        help="Let numbers far from all others count in full in linear models too.",
        rich_help_panel=_COLUMNS,
    ),
]
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out the rows without a label.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, not tables.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar, no notes; errors are still shown.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads to use; -1 for every core.",
        show_default="every core, but 1 where many rows would be copied",
    ),
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
_READING_OPTIONS: dict[str, object] = {
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
    "rename_duplicates": Annotated[
        bool,
        typer.Option(
            "--rename-duplicates",
            help="Number the columns that have the name of an earlier one: x, x.2, x.3.",
            rich_help_panel=_READING,
        ),
    ],
}
#: What the options of reading are where they are not given.
_NOT_GIVEN = {"rename_duplicates": False}


def metric_names(incomplete: str) -> list[str]:
    """The metrics, for the completion of the shell."""
    from toprank.metrics.registry import METRICS

    return [name for name in sorted(METRICS) if name.startswith(incomplete)]


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading text; it gets them as `reading`."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for name, one in signature.parameters.items() if name != "reading"]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_NOT_GIVEN.get(name),
            annotation=kind,
        )
        for name, kind in _READING_OPTIONS.items()
    ]

    @wraps(command)
    def with_reading(**given: Any) -> None:
        reading = _text_options(**{name: given.pop(name) for name in _READING_OPTIONS})
        command(**given, reading=reading)

    parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *more]
    with_reading.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_reading


def _text_options(
    encoding: str | None,
    delimiter: str | None,
    decimal: str | None,
    missing: list[str] | None,
    rename_duplicates: bool,
) -> Reading:
    """What the user says of the text, checked."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and (len(delimiter) != 1 or ord(delimiter) > 127):
        raise Failure(f"--delimiter {delimiter!r}: expected one sign, such as ';' or tab.")
    if decimal not in (None, ".", ","):
        raise Failure(f"--decimal {decimal!r}: expected a point or a comma.")
    return Reading(encoding, delimiter, decimal, tuple(missing or ()), rename_duplicates)


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


def parse_hidden(text: str | None, unlabelled: str | None) -> float | tuple[float, ...] | None:
    """The share of hidden positives, or the least and the largest; None to estimate it."""
    if text is None:
        return None
    if unlabelled is None:
        raise Failure("--hidden needs --unlabelled, the label of rows that may be positive.")
    ends = parse_numbers(text, "--hidden")
    if len(ends) not in (1, 2) or not all(0 <= end < 1 for end in ends):
        raise Failure(f"--hidden {text}: expected a share from 0 to below 1, or two of them.")
    return ends[0] if len(ends) == 1 else ends


def parse_numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers separated by commas; "inf" is one."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise Failure(f"{name}: '{text}' is not a list of numbers such as 1,2,4.") from error


def check_output(path: Path, suffixes: Collection[str] = (), read: Collection[Path] = ()) -> None:
    """Find out before the work, not after, that its result cannot be saved.

    Parameters
    ----------
    path : Path
        The file to be written later.
    suffixes : collection of str
        Endings of a file name that are understood, without the dot; none for any.
    read : collection of Path
        Files that are read, and are not to be lost.
    """
    try:
        check_writable(path, suffixes)
    except (OSError, ValueError) as error:
        raise Failure(f"--output: {error}") from error
    for other in read:
        if path.exists() and other.exists() and path.samefile(other):
            raise Failure(f"--output: '{path}' is read by this command; name another file.")


def check_writable(path: Path, suffixes: Collection[str] = ()) -> None:
    """Raise OSError or ValueError, with the remedy, if no file can be written at a path.

    Parameters
    ----------
    path : Path
        The file to be written later.
    suffixes : collection of str
        Endings of a file name that are understood, without the dot; none for any.
    """
    if (address := address_of(path)) is not None and not path.parent.is_dir():
        raise ValueError(
            f"'{address}' is an address, and files are written to disks: name a file there."
        )
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' is a device or a pipe, and would be replaced; name a file.")
    if suffixes and path.suffix.lstrip(".").lower() not in suffixes:
        raise ValueError(
            f"'{path}' should end in one of: {', '.join('.' + s for s in sorted(suffixes))}."
        )
    if not path.parent.is_dir():
        raise NotADirectoryError(f"'{path.parent}' is not a folder; make it, or name another.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"'{path}' is protected against writing; allow it, or name another.")
    folder = Path(os.path.realpath(path)).parent  # a link may lead elsewhere
    try:
        check_folder(folder)
    except OSError as error:
        raise PermissionError(f"the folder '{folder}' {error.strerror}.") from error
