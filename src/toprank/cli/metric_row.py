"""One line of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


@dataclass(frozen=True)
class MetricRow:
    """One metric: its value, its interval where there is one, and what else to know."""

    label: str
    name: str
    settings: dict[str, object]
    value: float
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    method: str = ""
    note: str = ""

    def as_dict(self) -> JsonObject:
        """The attributes by name."""
        return asdict(self)
