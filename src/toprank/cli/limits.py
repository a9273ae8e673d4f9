"""Limits of a list on the command line: the options, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from toprank.cli.terminal import Failure

_PANEL = "Limits of the list"

MostPerEntity = Annotated[
    int | None,
    typer.Option(
        min=1, help="Rows of one entity at most, with --per-entity.", rich_help_panel=_PANEL
    ),
]
LimitBy = Annotated[
    str | None,
    typer.Option(
        help="Column of groups that --at-most and --at-least are for.", rich_help_panel=_PANEL
    ),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        help="Rows of each group at most (20), or of one group (north=20); a number below 1 is a "
        "share of --top. May be repeated.",
        rich_help_panel=_PANEL,
    ),
]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        help="Rows of each group at least, in the same way; may be repeated.",
        rich_help_panel=_PANEL,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(min=0, help="What all rows may cost together.", rich_help_panel=_PANEL),
]
Cost = Annotated[
    str | None,
    typer.Option(
        help="What acting on a row costs: a column or a number; with --budget.",
        rich_help_panel=_PANEL,
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        help="What a positive row is worth: a column or a number.", rich_help_panel=_PANEL
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        help="Column of yes and no: rows that must be in the list.", rich_help_panel=_PANEL
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(help="Column of yes and no: rows that must not.", rich_help_panel=_PANEL),
]
Explore = Annotated[
    float,
    typer.Option(
        min=0,
        max=0.99,
        help="Share of the list that is drawn at random below the cut; the list then has a column "
        "of propensities.",
        rich_help_panel=_PANEL,
    ),
]

Stay = Annotated[
    Path | None,
    typer.Option(
        help="List that 'toprank rank' wrote before: its rows stay in the list unless a newcomer "
        "is ahead by more than noise.",
        rich_help_panel=_PANEL,
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Standard deviation of a score's noise, with --stay.",
        show_default="what scores have moved by since that list",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class ListLimits:
    """What the options of `toprank rank` say about limits."""

    per_entity: str | None = None
    most_per_entity: int | None = None
    limit_by: str | None = None
    at_most: Sequence[str] | None = None
    at_least: Sequence[str] | None = None
    budget: float | None = None
    cost: str | None = None
    value: str | None = None
    include: str | None = None
    exclude: str | None = None
    explore: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.most_per_entity is not None and self.per_entity is None:
            raise Failure("--most-per-entity needs --per-entity, the column of entities.")
        if (self.at_most or self.at_least) and self.limit_by is None:
            option = "--at-most" if self.at_most else "--at-least"
            raise Failure(f"{option} needs --limit-by, the column of groups.")
        if self.limit_by is not None and not (self.at_most or self.at_least):
            raise Failure("--limit-by needs --at-most or --at-least.")
        if (self.budget is None) != (self.cost is None):
            raise Failure("--budget and --cost are given together.")

    @property
    def any(self) -> bool:
        """Whether the list is more than the first rows, each entity once."""
        mine = (self.most_per_entity, self.limit_by, self.budget, self.value)
        return any(one is not None for one in (*mine, self.include, self.exclude)) or (
            self.explore > 0
        )

    def columns(self) -> dict[str, str]:
        """The columns that the options name, and which option does."""
        named = {
            "--per-entity": self.per_entity,
            "--limit-by": self.limit_by,
            "--include": self.include,
            "--exclude": self.exclude,
            "--cost": None if number_in(self.cost) is not None else self.cost,
            "--value": None if number_in(self.value) is not None else self.value,
        }
        return {column: option for option, column in named.items() if column is not None}


def number_in(text: str | None) -> float | None:
    """The number that an option gives; None where it names a column, or nothing."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def parse_counts(
    given: Sequence[str] | None, option: str
) -> int | float | dict[str, int | float] | None:
    """One count for all groups, or counts by group."""
    if not given:
        return None
    by_group: dict[str, int | float] = {}
    for text in given:
        group, sign, count = text.rpartition("=")
        number = number_in(count)
        if number is None or number < 0 or (number > 1 and not number.is_integer()):
            raise Failure(
                f"{option} '{text}': expected a count (20), a share of the list (0.2), or one of "
                "them for a group (north=20)."
            )
        counted: int | float = int(number) if number.is_integer() else number
        if not sign:
            if len(given) > 1:
                raise Failure(f"{option} '{text}' is for each group; name the groups, or give one.")
            return counted
        by_group[group] = counted
    return by_group
