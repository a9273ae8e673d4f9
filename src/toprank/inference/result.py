"""What a call of `interval` or `compare` asks for, and what it gives back.

A `MetricRequest` holds the sample, what to compute, and how; a `Verdict` says what is compared.
They make an `Interval` and a `Comparison`: numbers with names, and a sentence when printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import t as student

from toprank._arrays import JsonObject
from toprank._html import interval_picture, table_html
from toprank.inference.sample import Sample, VarianceEstimate
from toprank.inference.shares import agreement_interval, student_reach
from toprank.metrics._inputs import check_amounts
from toprank.metrics.expansion import Expansion
from toprank.metrics.metric import Metric, call_label

#: A metric larger than this has a variance near the largest float.
_LARGEST = 1e150
#: An end nearer to the estimate than this share of it differs from it by rounding alone.
_ROUNDING = 1e-12
METHODS = ("auto", "score", "projection", "delong", "bootstrap", "exact")


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
        Ends of the interval, finite, with the estimate between them, and the estimate less its
        bias.
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

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.metric} = {self.estimate:.4g}, {100 * self.level:g}% interval "
            f"{self.low:.4g} to {self.high:.4g} ({self.method})"
        )
        return f"{text}\nNote: {self.note}" if self.note else text

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (self.metric, f"{self.estimate:.4g}"),
            (f"{100 * self.level:g}% interval", f"{self.low:.4g} to {self.high:.4g}"),
            ("", interval_picture(self.estimate, self.low, self.high)),
            ("method", self.method),
        ]
        return table_html(rows, notes=[self.note])


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

    def as_dict(self) -> JsonObject:
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

    def _repr_html_(self) -> str:
        p = f"{self.p_value:.3g}"
        if self.adjusted_p_value != self.p_value:
            p += f", {self.adjusted_p_value:.3g} after Holm"
        ends = f"{100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g}"
        rows: list[tuple[object, ...]] = [
            *zip(self.names, (f"{value:.4g}" for value in self.estimates), strict=True),
            ("difference", f"{self.difference:.4g}, {ends}"),
            ("", interval_picture(self.difference, self.low, self.high, mark=0.0)),
            ("p-value", p),
            ("method", self.method),
        ]
        return table_html(rows, caption=self.metric, notes=[self.note])


@dataclass(frozen=True)
class Comparisons:
    """All pairs of several rankers; iterate over it, index it, or print it as a table."""

    pairs: tuple[Comparison, ...]

    def __iter__(self) -> Iterator[Comparison]:
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

    def _repr_html_(self) -> str:
        first = self.pairs[0]
        rows = [
            (
                " - ".join(pair.names),
                f"{pair.difference:.4g}",
                f"{pair.low:.4g} to {pair.high:.4g}",
                interval_picture(pair.difference, pair.low, pair.high, mark=0.0),
                f"{pair.adjusted_p_value:.3g}",
            )
            for pair in self.pairs
        ]
        interval = f"{100 * first.level:g}% interval"
        head = ("rankers", "difference", interval, "", "p after Holm")
        return table_html(rows, head=head, caption=first.metric)


@dataclass(frozen=True)
class MetricRequest:
    """One call: the sample, what to compute, and how."""

    metric: Metric
    settings: dict[str, Any]
    sample: Sample
    level: float
    method: str = "auto"
    n_resamples: int = 1000
    random_state: int | np.random.Generator | None = 0
    n_jobs: int | None = None
    own_labels: np.ndarray | None = None  #: as the caller gave them, for functions of them

    @property
    def label(self) -> str:
        """The call that gives the estimate."""
        return call_label(self.metric.name, self.settings)

    @cached_property
    def row_settings(self) -> dict[str, Any]:
        """The settings, where one entry per row is given cut down to the rows of the sample."""
        settings, sample = dict(self.settings), self.sample
        for name in self.metric.row_settings:
            if np.ndim(settings.get(name, 0.0)):
                settings[name] = check_amounts(name, settings[name], sample.rows)[sample.present]
        return settings

    @cached_property
    def expansion(self) -> Expansion | None:
        """What each row adds to the metric; None where that is not known, or rows are too few."""
        expand = self.metric.expansion
        return None if expand is None else expand(self.sample.ranked, **self.settings)

    @property
    def labels(self) -> np.ndarray:
        """The labels of the sample's rows, as the metric's function wants them."""
        if self.own_labels is None:
            return self.sample.positive
        return self.own_labels[self.sample.present]

    @property
    def estimate(self) -> float:
        """The metric of the sample, for metrics of the order of the rows."""
        return self.metric.of(self.sample.ranked, **self.settings)

    def check_method(self, *methods: str) -> None:
        """Raise ValueError if another method was asked for."""
        if self.method not in ("auto", *methods):
            raise ValueError(
                f"{self.metric.name} has no interval by method={self.method!r}; it has "
                f"{list(methods)}."
            )

    def result(
        self,
        estimate: float,
        ends: tuple[float, float],
        error: float,
        method: str,
        estimand: str | None = None,
        **others: Any,
    ) -> Interval:
        """An interval with its ends in order, or ValueError where one is not finite.

        An end that is the estimate but for rounding is the estimate.
        """
        low, high = (
            estimate if abs(end - estimate) <= _ROUNDING * abs(estimate) else end
            for end in sorted(ends)
        )
        if not np.all(np.isfinite((estimate, low, high))):
            raise ValueError(
                f"{self.label} is {estimate:.3g} with an interval from {low:.3g} to {high:.3g} at "
                f"level {self.level}: these rows do not bound it. Take more rows, or a lower "
                "level, or leave out log=True."
            )
        estimand = self.metric.estimand if estimand is None else estimand
        return Interval(
            self.label, estimate, low, high, error, self.level, method, estimand, **others
        )

    def freedom(self) -> float:
        """Degrees of freedom of a resampled variance: the units of the smaller class, less one."""
        if self.sample.groups is not None:
            return self.sample.group_support.freedom
        return max(1.0, min(self.sample.units) - 1)

    @property
    def scheme(self) -> str:
        """What the bootstrap draws."""
        return "stratified" if self.sample.groups is None else "whole groups"


def check_resamples(n_resamples: object) -> None:
    """Raise ValueError unless there are enough resamples to see a spread."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral) or n_resamples < 20:
        raise ValueError(f"n_resamples={n_resamples!r}: expected a whole number of at least 20.")


def check_size(label: str, value: float) -> None:
    """Raise ValueError if the metric is so large that its spread would overflow."""
    if value == -np.inf:
        raise ValueError(
            f"{label} is minus infinity: no pair is misranked, and a logarithm has no spread "
            "there. Leave out log=True."
        )
    if abs(value) > _LARGEST:
        raise ValueError(
            f"{label} is {value:.3g}, or may be, too large for its spread to be a number. Use "
            "log=True or normalize=True, or larger units."
        )


@dataclass(frozen=True)
class Verdict:
    """What is compared; its methods turn a spread into a result."""

    names: tuple[str, str]
    label: str
    level: float

    def result(
        self,
        values: Sequence[float],
        ends: tuple[float, float],
        error: float,
        chance: float,
        method: str,
        note: str = "",
    ) -> Comparison:
        """The comparison with these numbers."""
        a, b = float(values[0]), float(values[1])
        numbers = (a - b, *ends, error, chance, chance)
        return Comparison(self.label, self.names, (a, b), *numbers, self.level, method, note)

    def from_variance(
        self, values: Sequence[float], spread: VarianceEstimate, method: str, note: str = ""
    ) -> Comparison:
        """Student's t with the degrees of freedom of a normal sample.

        A difference of alike rankers is symmetric, so its long tails need no allowance.
        """
        if not np.isfinite(spread.variance):
            raise ValueError(
                f"{self.label}: one independent row, or group, does not show how far such rows "
                "spread; a comparison needs at least two."
            )
        difference = values[0] - values[1]
        error = float(np.sqrt(spread.variance))
        reach = student_reach(spread.plain_freedom, self.level) * error
        chance = float(2 * student.sf(abs(difference) / error, spread.plain_freedom))
        ends = (difference - reach, difference + reach)
        return self.result(values, ends, error, chance, method, note)

    def without_spread(
        self,
        values: Sequence[float],
        trials: float,
        method: str,
        largest: float | None = None,
    ) -> Comparison:
        """Every row, or list, says the same of the difference.

        Parameters
        ----------
        values : sequence of two floats
        trials : float
            How many independent rows, or lists, agree. If the rankers were equally good, each
            would favour either with the same chance.
        method : str
        largest : float, optional
            The largest difference there could be; without it the interval has no width.
        """
        difference = float(values[0] - values[1])
        same = abs(difference) <= 1e-12 * max(1.0, abs(values[0]), abs(values[1]))
        chance = 1.0 if same else float(min(1.0, 2.0 ** (1.0 - trials)))
        who = "No row tells the rankers apart" if same else "Every row says the same"
        note = f"{who}, so the sample shows no spread"
        ends = (difference, difference)
        if chance > 1 - self.level:
            ends = (min(difference, 0.0), max(difference, 0.0))
        if largest is not None:
            # those that do not agree could be for either ranker, by as much as there is
            _, others = agreement_interval(0.0, trials, self.level)
            most = max(largest, abs(difference))
            low, high = (difference + others * (end - difference) for end in (-most, most))
            ends = (low, high)
            note += f"; the interval is what {trials:g} independent ones that agree leave possible"
        return self.result(values, ends, 0.0, chance, method, f"{note}.")
