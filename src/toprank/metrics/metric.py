"""What a metric is: its function, and everything a table, a scorer or an interval asks of it.

`toprank.inference` holds strategies (the influence of the rows, exact shares, the bootstrap, means
over lists) and knows no metric by name: it asks the `Metric` which of them apply. A metric that
answers nothing but its ``function`` and its ``values`` gets the bootstrap, on a scale that keeps
the interval within those values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray
from toprank.metrics.at_cut import Cut, Gains
from toprank.metrics.expansion import Expansion
from toprank.metrics.lists import Lists
from toprank.metrics.order import RankedList
from toprank.metrics.place_sums import PlaceMoves

LOWER = "lower"
LOWER_AT_RANDOM = "lower if labelled at random"
UPPER_AT_RANDOM = "upper if labelled at random"
SAME_AT_RANDOM = "same if labelled at random"
NEITHER = "neither"

#: Estimands: what an interval is for.
ENDLESS = "the value for an endless list drawn like this one, with the same share of positives"
SAME_LENGTH = "the expected value for a list of this length, drawn like this one"
TWO_NEW_ROWS = "the chance that two new rows are ranked the wrong way round"

#: Ranges: the smallest and the largest value.
SHARE = (0.0, 1.0)
POSITIVE = (0.0, np.inf)
REAL = (-np.inf, np.inf)

#: Parameters that belong to the rows, not to the metric.
_OF_ROWS = (
    *("y_true", "y_score", "y_real", "groups"),
    *("sample_weight", "label_propensity", "pos_label"),
)


class Planned(Enum):
    """What a plan of how many rows to label takes a metric for."""

    RIGHT_PAIRS = "the share of pairs in order"
    WRONG_PAIRS = "the share of pairs out of order"
    LABELS = "a share of the labels of the first k rows"


class Hidden(Enum):
    """What positives among the unlabelled rows do to a metric, if those labelled are a random part.

    `toprank.inference.unlabelled_interval` takes it back.
    """

    PAIRS = "pairs with a hidden positive come out right half of the time"
    LABELS = "as many more rows are positive as there are more positives"
    HEIGHTS = "some heights are those of positives"
    NOTHING = "nothing"


class CurvePoint(Enum):
    """Points of the precision-recall curve, whose intervals come from the band around it."""

    PRECISION = "the highest precision where the recall is this or more"
    RECALL = "the highest recall where the precision is this or more"


@dataclass(frozen=True)
class Extreme:
    """One extreme row decides the metric, and the bootstrap fails.

    Attributes
    ----------
    report : callable, optional
        The metric from the share of positives above every negative and the weight of all
        positives, where the highest negative decides it. Without it there is no interval.
    advice : str
        What to do where there is no interval.
    """

    report: Callable[[float, float], float] | None = None
    advice: str = ""


@dataclass(frozen=True)
class Swaps:
    """A test of two rankers by random swaps of their ranks, for small samples.

    Attributes
    ----------
    up_to : int
        The largest sample that needs it; beyond, the normal limit holds.
    of_orders : callable, optional
        The metric, up to a constant, of many lists without ties at once: ``of_orders(labels,
        **settings)`` for labels from the top down, one list per row of the matrix.
    of_places : callable, optional
        For metrics that are a mean over the positives, what each adds to that mean:
        ``of_places(places, **settings)`` for the places of the positives from the top down, the
        first 1, one list per row. Differences are then compared in standard errors.
    """

    up_to: int
    of_orders: Callable[..., FloatArray] | None = None
    of_places: Callable[..., FloatArray] | None = None


@dataclass(frozen=True)
class Metric:
    """One metric, and what the library asks of it.

    Attributes
    ----------
    function : callable
        ``function(y_true, y_score, ...)``.
    higher_is_better : bool
        Whether a better ranking has the larger value.
    when_unlabelled : str
        What the value bounds if the negatives are merely unlabelled.
    of_list : callable, optional
        The same metric of a `RankedList`, for those that have ranked the rows already.
    each_list : callable, optional
        The metric of each of the `Lists` that has a positive; the metric is their mean.
    settings : mapping
        Values for the parameters that have no default, as `summary` uses them.
    name : str
        By default the name of the function.
    values : tuple of two floats, or callable
        The smallest and the largest value, or a function of the settings that gives them.
        Intervals stay within, on the logit scale if both are finite and on the log scale from 0.
    estimand : str
        What its interval is for.
    extreme : callable, optional
        From the settings to an `Extreme`, or None where no single row decides.
    cut : callable, optional
        From a sample and the settings to the `Cut` that the metric is a share at, or None where
        with these it is none: its interval is that of a share of trials.
    expansion : callable, optional
        From a `RankedList` and the settings to the `Expansion` that says what each row adds, or
        None where rows are too few for one: intervals and comparisons come from the spread of that.
    gains : callable, optional
        From a `RankedList` and the settings to the `Gains` that the metric is a sum of: two
        rankers are compared over the rows that gain differently.
    worth : callable, optional
        What each row is worth where it gains: ``worth(positive, **settings)``. By default 1 for
        a positive and 0 for a negative.
    moves : callable, optional
        For sums over the positives of a discount of their place: from a `RankedList` and the
        settings to the `PlaceMoves` of its rows, by which two rankers are compared.
    pulls : callable, optional
        For sums of the worth of rows above a cut: how far each row moves it,
        ``pulls(ranked, ties, weight, worth, **settings)``; rows of equal score have one tie.
    swaps : Swaps, optional
        A test for small samples, beside the expansion.
    kernel : str, optional
        For metrics of real-valued labels: the kernel of `toprank.inference.u_statistic` that the
        metric is the mean of.
    each_group : callable, optional
        For metrics that need more than `Lists`: ``each_group(y, s, groups=..., ...)``, the values
        that the metric is the mean of.
    row_settings : tuple of str
        Parameters that may hold one entry per row.
    of_resample : callable, optional
        The metric of a resampled `RankedList`, where copies of a row take places of their own:
        ``of_resample(ranked, alone)``, with which ties are of one row.
    empty_ties : bool
        Whether ``of_list`` takes ties without any row.
    order_only : bool, or callable
        Whether the value stays the same if all negatives between two positives are one tie
        (`RankedList.joined`), or a function of the settings that says so.
    by_place : callable, optional
        For metrics that put ties at their last place: what a positive there adds, from the
        weights of the positives and of all rows down to each place.
    curve_point : CurvePoint, optional
        Which point of the precision-recall curve it is.
    planned : Planned, optional
        What `toprank.inference.sample_size` takes it for; by default there is no plan.
    hidden : Hidden, optional
        What hidden positives do to it; by default that is not known.
    steadier : mapping
        Settings that a choice compares by instead, where the metric hangs on a single row.
    summarize : bool
        Whether `summary` calls the function on the rows, where there is nothing quicker.
    own_labels : bool
        Whether the function wants the labels as the caller gave them, not which are positive.
    """

    function: Callable[..., float]
    higher_is_better: bool = True
    when_unlabelled: str = NEITHER
    of_list: Callable[..., float] | None = None
    each_list: Callable[..., FloatArray] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    name: str = ""
    values: tuple[float, float] | Callable[..., tuple[float, float]] = REAL
    estimand: str = SAME_LENGTH
    extreme: Callable[..., Extreme | None] | None = None
    cut: Callable[..., Cut | None] | None = None
    expansion: Callable[..., Expansion | None] | None = None
    gains: Callable[..., Gains] | None = None
    worth: Callable[..., FloatArray] | None = None
    moves: Callable[..., PlaceMoves] | None = None
    pulls: Callable[..., FloatArray] | None = None
    swaps: Swaps | None = None
    kernel: str | None = None
    each_group: Callable[..., FloatArray] | None = None
    row_settings: tuple[str, ...] = ()
    of_resample: Callable[[RankedList, BoolArray], float] | None = None
    empty_ties: bool = False
    order_only: bool | Callable[..., bool] = False
    by_place: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    curve_point: CurvePoint | None = None
    planned: Planned | None = None
    hidden: Hidden | None = None
    steadier: Mapping[str, object] = field(default_factory=dict)
    summarize: bool = False
    own_labels: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", "metric"))

    @property
    def takes_k(self) -> bool:
        """Whether the metric reads the first k rows."""
        return "k" in self.settings

    @property
    def takes_weights(self) -> bool:
        """Whether the function takes weights of the rows."""
        return "sample_weight" in inspect.signature(self.function).parameters

    @property
    def takes_lists(self) -> bool:
        """Whether the metric can be a mean over lists, such as days."""
        return self.each_list is not None or self.each_group is not None

    def of(self, ranked: RankedList, lists: Lists | None = None, **settings: object) -> float:
        """Evaluate on rows ranked already; `lists` holds the ties of `ranked`, in groups if any."""
        settings = {**self.settings, **settings}
        if self.of_list is not None:
            return self.of_list(ranked, **settings)
        if self.each_list is not None:
            lists = Lists.of_one(ranked) if lists is None else lists
            return float(np.mean(self.each_list(lists, **settings)))
        raise TypeError(f"{self.name} needs more than the order of the rows.")

    def each(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        **settings: object,
    ) -> FloatArray:
        """The values that the metric, with groups, is the mean of."""
        if self.each_list is not None:
            lists = Lists.of(y_true, y_score, groups, sample_weight, None, pos_label)
            return self.each_list(lists, **settings)
        if self.each_group is None:
            raise TypeError(f"{self.name} is not a mean over lists.")
        rows: dict[str, object] = {"sample_weight": sample_weight, "pos_label": pos_label}
        return self.each_group(y_true, y_score, groups=groups, **rows, **settings)

    def bounds(self, settings: Mapping[str, object]) -> tuple[float, float]:
        """The smallest and the largest value with these settings."""
        return self.values(**settings) if callable(self.values) else self.values

    def reads_order_only(self, settings: Mapping[str, object]) -> bool:
        """Whether negatives between two positives may be joined to one tie, with these settings."""
        return self.order_only(**settings) if callable(self.order_only) else self.order_only

    def extreme_of(self, settings: Mapping[str, object]) -> Extreme | None:
        """How one extreme row decides the metric with these settings; None if none does."""
        return None if self.extreme is None else self.extreme(**settings)

    def worth_of(self, positive: NDArray[np.bool_], settings: Mapping[str, object]) -> FloatArray:
        """What each row is worth where it gains."""
        if self.worth is None:
            return positive.astype(np.float64)
        return self.worth(positive, **settings)

    def ends_over_lists(
        self,
        y_true: ArrayLike,
        positive: NDArray[np.bool_],
        lists: ArrayLike,
        sample_weight: ArrayLike | None,
        pos_label: object,
        settings: Mapping[str, object],
    ) -> tuple[float, float]:
        """The smallest and the largest value of a list: of sums of gains, in any order of rows."""
        ends = self.bounds(settings)
        if np.all(np.isfinite(ends)) or self.gains is None:
            return ends
        worth = self.worth_of(positive, settings)
        found = [
            self.each(y_true, order, lists, sample_weight, pos_label, **settings)
            for order in (-worth, worth)
        ]
        return float(np.min(found)), float(np.max(found))

    def check_settings(self, settings: Mapping[str, object]) -> None:
        """Raise TypeError for parameters that the metric does not take, or lacks."""
        known = inspect.signature(self.function).parameters
        own = [name for name in list(known)[2:] if name not in _OF_ROWS]
        unknown = [name for name in settings if name not in own]
        if unknown:
            takes = f"takes {own}" if own else "takes no parameters"
            raise TypeError(f"{self.name} has no parameter {unknown[0]!r}; it {takes}.")
        needed = [name for name in own if known[name].default is inspect.Parameter.empty]
        missing = [name for name in needed if name not in settings]
        if missing:
            example = self.settings.get(missing[0], 1)
            raise TypeError(
                f"{self.name} needs {missing[0]}: pass it by name, for example "
                f"{missing[0]}={example!r}."
            )


def call_label(name: str, settings: Mapping[str, Any]) -> str:
    """A call as it is printed, such as ``precision_at(k=10)``."""
    given = ", ".join(f"{key}={_setting_text(value)}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def _setting_text(value: ArrayLike) -> str:
    return repr(value) if np.ndim(value) == 0 else "..."
