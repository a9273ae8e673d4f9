"""What each member brings to an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


@dataclass(frozen=True)
class MemberRow:
    """One member.

    Attributes
    ----------
    name : str
    weight : float
        Its weight in the combination, in standard deviations of its scores; zero if unused.
    score : float
        The metric of its own out-of-fold scores, the mean over the folds; larger is better.
    loss_without : float
        How much the metric of the whole falls without it.
    seconds : float
        What its fits took, folds and all.
    note : str
        Why it was dropped; empty if it was not.
    """

    name: str
    weight: float
    score: float
    loss_without: float
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class MemberTable:
    """The members of an ensemble, the heaviest first; prints as a table.

    Attributes
    ----------
    rows : tuple of MemberRow
    metric : str
    """

    rows: tuple[MemberRow, ...]
    metric: str

    def __iter__(self) -> Iterator[MemberRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def as_dicts(self) -> list[JsonObject]:
        """Return the rows in plain types, for JSON and data frames."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [
            f"{'':<{width}}  weight  {self.metric}",
            f"{'member':<{width}}          alone  loss without  seconds",
        ]
        for row in self.rows:
            if row.note:
                lines.append(f"{row.name:<{width}}  {row.note}")
                continue
            lines.append(
                f"{row.name:<{width}}  {row.weight:6.3f}  {row.score:6.4f}  "
                f"{row.loss_without:+12.4f}  {row.seconds:7.2f}"
            )
        return "\n".join(lines)

    __repr__ = __str__
