"""One call of `interval` or `compare`: the sample, what to compute, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import replicates
from toprank.inference.result import Interval
from toprank.inference.sample import Sample
from toprank.metrics._inputs import check_amounts
from toprank.metrics.metric import Metric, call_label

#: A metric larger than this has a variance near the largest float.
_LARGEST = 1e150
METHODS = ("auto", "projection", "bootstrap", "exact")


@dataclass(frozen=True)
class Request:
    """One call: the sample, what to compute, and how."""

    metric: Metric
    settings: dict[str, Any]
    sample: Sample
    level: float
    method: str = "auto"
    n_resamples: int = 1000
    random_state: Any = 0
    n_jobs: int | None = None
    own_labels: NDArray[Any] | None = None  #: as the caller gave them, for functions of them

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

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the sample's rows, as the metric's function wants them."""
        if self.own_labels is None:
            return self.sample.positive
        return self.own_labels[self.sample.present]

    @property
    def estimate(self) -> float:
        """The metric of the sample, for metrics of the order of the rows."""
        return self.metric.of(self.sample.ranked, **self.settings)

    def only(self, *methods: str) -> None:
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
        """An interval with its ends in order, or ValueError where one is not finite."""
        low, high = sorted(ends)
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

    def replicates(self, statistic: Callable[[FloatArray], Any]) -> FloatArray:
        """Values of a statistic of the rows' weights over resamples."""
        return replicates(self.sample, statistic, self.n_resamples, self.random_state, self.n_jobs)

    def freedom(self) -> float:
        """Degrees of freedom of a resampled variance: the units of the smaller class, less one."""
        groups = self.sample.groups
        units = min(self.sample.units) if groups is None else int(groups.max()) + 1
        return max(1.0, units - 1)

    @property
    def scheme(self) -> str:
        """What the bootstrap draws."""
        return "stratified" if self.sample.groups is None else "whole groups"


def check_resamples(n_resamples: Any) -> None:
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
