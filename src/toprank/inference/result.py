"""What the inference functions give back: numbers with names, and a sentence when printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A metric with its confidence interval.

    Attributes
    ----------
    metric : str
        The call that gives the estimate, such as ``precision_at(k=10)``.
    estimate : float
        The metric of the rows at hand.
    low, high : float
        Ends of the interval, finite, with the estimate less its bias between them.
    standard_error : float
        Standard error of the estimate; NaN where the method has none.
    level : float
        Confidence level.
    method : str
        How the interval was made.
    estimand : str
        What the interval is for: the quantity that it covers with the given confidence.
    bias : float
        Estimated bias of the estimate, which the interval has taken off.
    note : str
        What else the reader should know; empty if nothing.
    """

    metric: str
    estimate: float
    low: float
    high: float
    standard_error: float
    level: float
    method: str
    estimand: str
    bias: float = 0.0
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.metric} = {self.estimate:.4g}, {100 * self.level:g}% interval "
            f"{self.low:.4g} to {self.high:.4g} ({self.method})"
        )
        return f"{text}\nNote: {self.note}" if self.note else text


@dataclass(frozen=True)
class Comparison:
    """The paired difference of a metric between two rankers, a minus b.

    Attributes
    ----------
    metric : str
        The metric compared.
    names : tuple of str
        Names of ranker a and ranker b.
    estimates : tuple of float
        The metric of each.
    difference : float
        Metric of a minus metric of b.
    low, high : float
        Confidence interval of the difference.
    standard_error : float
        Standard error of the difference; NaN where the method has none.
    p_value : float
        Two-sided p-value of the hypothesis that the rankers are equally good.
    adjusted_p_value : float
        p-value after Holm's correction for all pairs of rankers compared together.
    level : float
        Confidence level of the interval, which is for this pair alone.
    method : str
        How the interval and the p-value were made.
    note : str
        What else the reader should know; empty if nothing.
    """

    metric: str
    names: tuple[str, str]
    estimates: tuple[float, float]
    difference: float
    low: float
    high: float
    standard_error: float
    p_value: float
    adjusted_p_value: float
    level: float
    method: str
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        a, b = self.names
        p = f"p = {self.p_value:.3g}"
        if self.adjusted_p_value != self.p_value:
            p += f", {self.adjusted_p_value:.3g} after Holm"
        text = (
            f"{self.metric}: {a} {self.estimates[0]:.4g}, {b} {self.estimates[1]:.4g}; difference "
            f"{self.difference:.4g}, {100 * self.level:g}% interval {self.low:.4g} to "
            f"{self.high:.4g}, {p} ({self.method})"
        )
        return f"{text}\nNote: {self.note}" if self.note else text


@dataclass(frozen=True)
class Comparisons:
    """All pairs of several rankers; iterate over it, index it, or print it as a table."""

    pairs: tuple[Comparison, ...]

    def __iter__(self) -> Any:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, item: int | tuple[str, str]) -> Comparison:
        if not isinstance(item, tuple):
            return self.pairs[item]
        for pair in self.pairs:
            if pair.names == item:
                return pair
        raise KeyError(f"{item!r}: the pairs are {[pair.names for pair in self.pairs]}.")

    def __str__(self) -> str:
        width = max(len(f"{a} - {b}") for a, b in (pair.names for pair in self.pairs))
        first = self.pairs[0]
        head = f"{first.metric}, {100 * first.level:g}% intervals, p-values after Holm"
        lines = [
            f"{' - '.join(pair.names):<{width}}  {pair.difference:>10.4g}  "
            f"[{pair.low:.4g}, {pair.high:.4g}]  p = {pair.adjusted_p_value:.3g}"
            for pair in self.pairs
        ]
        return "\n".join([head, *lines])

    __repr__ = __str__
