"""A training table described: what its columns hold, from all rows or from blocks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from toprank._arrays import JsonObject
from toprank.models import frames
from toprank.models.columns import MOST_CATEGORIES, OTHERS, Column, Unreadable
from toprank.models.errors import ModelError
from toprank.models.kinds import ColumnSummary
from toprank.models.wishes import Wishes, find_ends
from toprank.models.words import Words

if TYPE_CHECKING:
    from toprank._arrays import Frame
    from toprank.models.columns import Finding


@dataclass(frozen=True)
class TableSummary:
    """What the columns of some rows hold; summaries of other rows merge with it.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank.models.summary import TableSummary
    >>> from toprank.models.wishes import Wishes
    >>> frame = pd.DataFrame({"age": [31, None, 45], "city": ["Rome", "Oslo", None]})
    >>> names = ["age", "city"]
    >>> first = TableSummary.of(frame[:1], names, Wishes())
    >>> both = first.merge(TableSummary.of(frame[1:], names, Wishes()))
    >>> both.columns["city"].find().kind, both.columns["age"].missing, both.rows
    ('category', 1, 3)
    """

    rows: int = 0
    columns: dict[str, ColumnSummary] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Frame, names: Sequence[str], wishes: Wishes) -> TableSummary:
        """Describe some rows of a table."""
        declared = frames.declared_categories(frame)
        values = frames.columns(frame, list(names))
        found = {name: wishes.describe(name, values[name], name in declared) for name in values}
        return cls(frames.n_rows(frame), found)

    def merge(self, other: TableSummary) -> TableSummary:
        """Join the description of other rows."""
        both = {name: one.merge(other.columns[name]) for name, one in self.columns.items()}
        return TableSummary(self.rows + other.rows, both)

    def learn_columns(
        self, wishes: Wishes, look: SecondLook
    ) -> tuple[tuple[Column, ...], dict[str, str]]:
        """Return the columns that can be ranked by, and why the others are left out."""
        found = {name: wishes.find(name, one) for name, one in self.columns.items()}
        unsure = [
            Column(name, "date", date_format=finding.date_format, **more)
            for name, (summary, finding, more) in found.items()
            if finding.date_format is not None and summary.unsure
        ]
        for name in look.find_misread(unsure) if unsure else ():
            found[name] = wishes.find(name, self.columns[name], dates=False)
        kept, left_out = {}, {}
        for name, (summary, finding, more) in found.items():
            if finding.left_out is None:
                kept[name] = _make_column(name, summary, finding, more)
            else:
                left_out[name] = finding.left_out
        clipped = [kept[name] for name in wishes.clip if name in kept]
        ends = look.find_ends(clipped) if clipped else {}
        for name, pair in ends.items():
            kept[name] = replace(kept[name], clip=pair)
        return tuple(kept.values()), left_out


def _make_column(name: str, summary: ColumnSummary, finding: Finding, more: JsonObject) -> Column:
    words = summary.words
    known: tuple[str, ...] = ()
    if finding.kind == "category" and words is not None:
        known = _commonest(words) if more.get("pooled") else tuple(words.distinct)
    return Column(
        name,
        finding.kind,
        summary.dtype,
        summary.share_missing,
        finding.date_format,
        known,
        **more,
    )


def _commonest(words: Words) -> tuple[str, ...]:
    """The commonest words, in order, and last the category that stands for all others.

    Of words that are as common as each other the first by the alphabet are taken.
    """
    by_count = sorted(words.counts.items(), key=lambda one: (-one[1], one[0]))
    kept = [word for word, _ in by_count if word != OTHERS][: MOST_CATEGORIES - 1]
    return (*sorted(kept), OTHERS)


class SecondLook(Protocol):
    """The rows once more, for the few columns of which a summary does not tell enough."""

    def find_misread(self, columns: Sequence[Column]) -> list[str]:
        """Return the names of the columns that cannot be read as they are described."""
        ...

    def find_ends(self, columns: Sequence[Column]) -> dict[str, tuple[float, float]]:
        """Return where the tails of numbers begin, for the columns that hold some."""
        ...


@dataclass(frozen=True)
class FrameLook:
    """A second look at a table in memory."""

    frame: Frame

    def find_misread(self, columns: Sequence[Column]) -> list[str]:
        """Return the names of the columns that cannot be read as they are described."""
        return [column.name for column in columns if not is_readable(column, self.frame)]

    def find_ends(self, columns: Sequence[Column]) -> dict[str, tuple[float, float]]:
        """Return where the tails of numbers begin, for the columns that hold some."""
        found = {}
        for column in columns:
            try:
                numbers = column.read(frames.column(self.frame, column.name))
            except Unreadable as error:
                raise ModelError(f"clip={column.name!r}: {error}.") from error
            ends = find_ends(numbers)
            if ends is not None:
                found[column.name] = ends
        return found


def is_readable(column: Column, frame: object) -> bool:
    """Whether the values of a column can be read as its kind."""
    try:
        column.read(frames.column(frame, column.name))
    except Unreadable:
        return False
    return True
