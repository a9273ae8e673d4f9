"""One line of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MetricRow:
    """One metric: its value, its interval where there is one, and what else to know."""

    label: str
    name: str
    settings: dict[str, Any]
    value: float
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    method: str = ""
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)
