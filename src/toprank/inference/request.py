"""One call of `interval` or `compare`: the sample, what to compute, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import replicates
from toprank.inference.result import Interval
from toprank.inference.sample import Sample
from toprank.metrics.cuts import Lists
from toprank.metrics.margins import f_skew
from toprank.metrics.registry import METRICS, Metric

#: A metric larger than this has a variance near the largest float.
_LARGEST = 1e150
METHODS = ("auto", "projection", "bootstrap", "exact")
_OURS = (
    *("y_true", "y_score", "y_real", "groups"),
    *("sample_weight", "label_propensity", "pos_label"),
)
ENDLESS = "the value for an endless list drawn like this one, with the same share of positives"
SAME_LENGTH = "the expected value for a list of this length, drawn like this one"
GIVEN_NEGATIVES = "the expected value for new positives, against the negatives of this list"
OTHER_LISTS = "the mean over all lists drawn like these"


@dataclass(frozen=True)
class Request:
    """One call: the sample, what to compute, and how."""

    name: str
    settings: dict[str, Any]
    sample: Sample
    level: float
    method: str
    n_resamples: int = 1000
    random_state: Any = 0
    n_jobs: int | None = None

    @property
    def label(self) -> str:
        """The call that gives the estimate."""
        return call_label(self.name, self.settings)

    def result(
        self,
        estimate: float,
        ends: tuple[float, float],
        error: float,
        method: str,
        estimand: str,
        **others: Any,
    ) -> Interval:
        """An interval with its ends in order, or ValueError where one is not finite."""
        low, high = sorted(ends)
        if not np.all(np.isfinite((estimate, low, high))):
            raise ValueError(
                f"{self.label} is {estimate:.3g} with an interval from {low:.3g} to {high:.3g} at "
                f"level {self.level}: these rows leave everything possible. Take more rows, or a "
                "lower level, or leave out log=True."
            )
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


def named(metric: str | Callable[..., float]) -> tuple[str | Callable[..., float], str]:
    """The metric and its name; `f_skew`, which has no better direction, is a plain function."""
    if metric == "f_skew":
        metric = f_skew
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
    if not isinstance(metric, str) and name in METRICS and METRICS[name].function is metric:
        return name, name
    return metric, name


def call_label(name: str, settings: dict[str, Any]) -> str:
    """A call as it is printed, such as ``precision_at(k=10)``."""
    given = ", ".join(f"{key}={_short(value)}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def _short(value: Any) -> str:
    return repr(value) if np.ndim(value) == 0 else "..."


def check_resamples(n_resamples: Any) -> None:
    """Raise ValueError unless there are enough resamples to see a spread."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral) or n_resamples < 20:
        raise ValueError(f"n_resamples={n_resamples!r}: expected a whole number of at least 20.")


def check_settings(metric: Metric, settings: dict[str, Any]) -> None:
    """Raise TypeError for parameters that the metric does not take, or lacks."""
    known = inspect.signature(metric.function).parameters
    own = [name for name in known if name not in _OURS]
    unknown = [name for name in settings if name not in own]
    if unknown:
        takes = f"takes {own}" if own else "takes no parameters"
        raise TypeError(f"{metric.name} has no parameter {unknown[0]!r}; it {takes}.")
    needed = [name for name in own if known[name].default is inspect.Parameter.empty]
    lacking = [name for name in needed if name not in settings]
    if lacking:
        example = metric.settings.get(lacking[0], 1)
        raise TypeError(
            f"{metric.name} needs {lacking[0]}: pass it by name, for example "
            f"{lacking[0]}={example!r}."
        )


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


def only(request: Request, *methods: str) -> None:
    """Raise ValueError if another method was asked for."""
    if request.method not in ("auto", *methods):
        raise ValueError(
            f"{request.name} has no interval by method={request.method!r}; it has {list(methods)}."
        )


def without_lists() -> Lists:
    """A stand-in for metrics of a ranked list, which do not look at the lists."""
    return Lists(np.zeros(1, dtype=np.intp), np.ones(1), np.ones(1), np.zeros(1), True)
