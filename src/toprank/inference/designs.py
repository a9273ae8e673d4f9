"""Plans: how many rows of which kind, what to expect of them, and the search for the fewest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, sqrt
from numbers import Integral
from typing import TypeVar

import numpy as np
from scipy.special import logit, ndtri
from scipy.stats import binom

from toprank._numerics import is_number
from toprank.inference.auc_models import MODELS, auc_difference_variance
from toprank.inference.shares import check_level, clopper_pearson
from toprank.metrics.metric import Planned
from toprank.metrics.registry import METRICS

#: What a plan for the precision at k supposes.
INDEPENDENT_LABELS = "independent labels, each positive with the probability that is the precision"

MOST_ROWS = 2**40
#: Numbers of rows beyond these, and areas closer to 0 or 1, are not what anybody plans for, and
#: what is computed of them would leave the range of floats.
_LARGEST_COUNT, _SMALLEST_AREA, _SMALLEST_FRACTION = 10**15, 1e-100, 1e-15


@dataclass(frozen=True, kw_only=True)
class LabelPlan:
    """A number of labelled rows for a measurement; print it.

    Attributes
    ----------
    metric, value, level
        What is measured, the value supposed, and the confidence level.
    supposed : str
        The model behind the figures.
    positives, negatives : int or None
        Rows of each class, for metrics that compare the classes.
    k : int or None
        Rows at the top of the list, for metrics at k.
    list_length : int or None
        Length of the whole list, where k was given as a fraction of it.
    """

    metric: str
    value: float
    level: float
    supposed: str
    positives: int | None = None
    negatives: int | None = None
    k: int | None = None
    list_length: int | None = None

    @property
    def rows(self) -> int:
        """Labelled rows in all."""
        return sum(count for count in (self.positives, self.negatives, self.k) if count is not None)

    def _counts(self) -> str:
        if self.k is None:
            return f"{self.positives} positives and {self.negatives} negatives"
        whole = "" if self.list_length is None else f" of a list of {self.list_length}"
        return f"the first {self.k} rows{whole}"


@dataclass(frozen=True, kw_only=True, repr=False)
class IntervalPlan(LabelPlan):
    """A plan to measure one ranker, with the expected half-width of the interval."""

    half_width: float

    def __str__(self) -> str:
        return (
            f"{self.metric} of {self.value:g}\n"
            f"label     {self._counts()}\n"
            f"expect    {100 * self.level:g}% interval of half-width {self.half_width:.4g}\n"
            f"supposed  {self.supposed}"
        )

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonPlan(LabelPlan):
    """A plan to compare two rankers, with the probability of detecting their difference.

    At k, the first k rows of both lists are labelled: (2 - overlap) k rows.
    """

    difference: float
    power: float
    overlap: float = 0.0

    @property
    def rows(self) -> int:
        """Labelled rows in all."""
        return super().rows if self.k is None else whole_rows(self.k * (2 - self.overlap))

    def _counts(self) -> str:
        each = "" if self.k is None else f" of each list, {self.rows} in all"
        return super()._counts() + each

    def __str__(self) -> str:
        return (
            f"{self.metric} of {self.value:g} against {self.value + self.difference:g}\n"
            f"label     {self._counts()}\n"
            f"expect    power {self.power:.4g} of a two-sided {100 * (1 - self.level):.4g}% test\n"
            f"supposed  {self.supposed}"
        )

    __repr__ = __str__


AnyPlan = TypeVar("AnyPlan", bound=LabelPlan)


def plan_kind(name: str) -> Planned:
    """What a plan takes the metric for, or ValueError if there is no plan for it."""
    planned = METRICS[name].planned if name in METRICS else None
    if planned is None:
        *most, last = (repr(one.name) for one in METRICS.values() if one.planned is not None)
        raise ValueError(f"There is no plan for {name!r}: expected {', '.join(most)} or {last}.")
    return planned


def design(
    metric: str, prevalence: float | None, positives: int | None, negatives: int | None
) -> Callable[[int], dict[str, int]]:
    """Return how a number of rows is divided; more rows never means fewer of a class."""
    if plan_kind(metric) is Planned.LABELS:
        refuse(metric, prevalence=prevalence, positives=positives, negatives=negatives)
        return lambda size: {"k": size}
    given = [count is not None for count in (prevalence, positives, negatives)]
    if sum(given) != 1:
        raise ValueError(
            "Expected one of prevalence (the share of positives among the rows), positives or "
            f"negatives (the rows there are of one class); got {sum(given)} of them."
        )
    if prevalence is None:
        fixed = {"positives": positives} if positives is not None else {"negatives": negatives}
        free = "negatives" if positives is not None else "positives"
        known = {name: check_count(name, count, 2) for name, count in fixed.items()}
        return lambda size: {**known, free: size + 1}
    if not (is_number(prevalence) and 0 < prevalence < 1):
        raise ValueError(f"prevalence={prevalence!r}: expected a share between 0 and 1.")

    def by_share(size: int) -> dict[str, int]:
        high, low = (whole_rows(share * size) for share in (prevalence, 1 - prevalence))
        return {"positives": max(2, high), "negatives": max(2, low)}

    return by_share


def whole_rows(rows: float) -> int:
    """Round up, but 0.2 of 15 rows, in floating point 3.0000000000000004, are 3."""
    return ceil(rows - 1e-9 - 4e-16 * rows)


def smallest_plan(
    plan: Callable[[int], AnyPlan], enough: Callable[[AnyPlan], bool]
) -> AnyPlan | None:
    """The plan of the smallest size that is enough; None if there is none."""
    size = smallest_size(lambda size: enough(plan(size)))
    return None if size is None else plan(size)


def smallest_size(enough: Callable[[int], bool]) -> int | None:
    """The smallest size that is enough, by bisection; None if there is none."""
    largest = 1
    while not enough(largest):
        if largest >= MOST_ROWS:
            return None
        largest *= 2
    sizes = range(largest // 2 + 1, largest)
    return sizes.start + bisect_left(sizes, True, key=enough)


def smallest_plan_near(
    plan: Callable[[int], AnyPlan], excess: Callable[[AnyPlan], float], reach: float, start: int
) -> AnyPlan | None:
    """The plan of the smallest size that is enough, from a size that is near: few are made.

    `excess` says by how much a plan is more than enough, and with `reach` added is about as the
    root of the size. The plan found is enough, and that of one size less is not.
    """
    size, low, high, beyond = start, 0, 0, 1.03
    made: dict[int, AnyPlan] = {}
    over: dict[int, float] = {}
    while size not in over:  # outwards, until one is enough and one is not
        made[size] = plan(size)
        over[size] = excess(made[size])
        aim = size * (reach / max(over[size] + reach, reach / 8)) ** 2
        if over[size] >= 0:
            high = size
            size = size if low else max(1, floor(aim / beyond))
        else:
            low = size
            size = size if high else min(MOST_ROWS, ceil(aim * beyond))
        beyond = beyond**2
    if high == 0:
        return None
    while high - low > 1:
        size = _between(low, high, over)
        made[size] = plan(size)
        over[size] = excess(made[size])
        if over[size] >= 0:
            high, over[low] = size, over[low] / 2  # the end that stays counts for less
        else:
            low, over[high] = size, over[high] / 2
    return made[high]


def _between(low: int, high: int, over: dict[int, float]) -> int:
    """The size at which a line through both, over the roots of the sizes, has no excess."""
    if high > 4 * low:
        return round(sqrt(low * high))
    share = over[low] / (over[low] - over[high])
    root = sqrt(low) + share * (sqrt(high) - sqrt(low))
    return min(max(round(root**2), low + 1), high - 1)


def advice(
    positives: int | None, negatives: int | None, local_precision: float | None = None
) -> str:
    """What to do where even the most rows are not enough."""
    for name, count in (("positives", positives), ("negatives", negatives)):
        if count is not None:
            return f"The {count} {name} are too few: label more of them, or ask for less."
    if local_precision is not None:
        return "Ask for less, or suppose a precision nearer to local_precision."
    return "Ask for less."


def refuse(metric: str, **given: object) -> None:
    """Raise ValueError if a parameter is given that the metric has no use for."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(f"A plan for {metric} does not take {', '.join(names)}.")


def check_share(name: str, value: float) -> float:
    """Return a share from 0 to 1, or raise ValueError."""
    if not (is_number(value) and 0 <= value <= 1):
        raise ValueError(f"{name}={value!r}: expected a share from 0 to 1.")
    return float(value)


def check_area(metric: str, value: float) -> float:
    """Return a supposed AUC, or error, which must leave something to estimate."""
    if not (is_number(value) and _SMALLEST_AREA <= value < 1):
        raise ValueError(
            f"{metric} is supposed to be {value!r}: expected a number between 0 and 1, ends "
            f"excluded, where the estimate would have no error, and from {_SMALLEST_AREA:g}."
        )
    return float(value)


def check_count(name: str, count: int | None, least: int) -> int:
    """Return a number of rows, or raise ValueError."""
    if (
        isinstance(count, (bool, np.bool_))
        or not isinstance(count, Integral)
        or not least <= count <= _LARGEST_COUNT
    ):
        raise ValueError(
            f"{name}={count!r}: expected a number of rows, at least {least} and at most "
            f"{_LARGEST_COUNT:.0e}."
        )
    return int(count)


def check_fraction(fraction: float) -> None:
    """Raise ValueError unless k can be this fraction of a list."""
    if not (is_number(fraction) and _SMALLEST_FRACTION <= fraction <= 1):
        raise ValueError(
            f"fraction={fraction!r}: expected a fraction of the list in (0, 1], from "
            f"{_SMALLEST_FRACTION:g}."
        )


def check_difference(difference: float) -> float:
    """Return a difference to find, or raise ValueError."""
    if not (is_number(difference) and difference != 0 and abs(difference) < 1):
        raise ValueError(f"difference={difference!r}: expected a number between -1 and 1, not 0.")
    return float(difference)


def check_model(model: str, spread: float) -> str:
    """Return what the model supposes, or raise ValueError."""
    if model not in MODELS:
        raise ValueError(f"Unknown model {model!r}: expected one of {sorted(MODELS)}.")
    if not (is_number(spread) and 0 < spread < inf):
        raise ValueError(f"spread={spread!r}: expected a number > 0.")
    return MODELS[model].format(spread=spread)


def logit_half_width(area: float, error: float, level: float) -> float:
    """Half of expit(logit A + r) - expit(logit A - r), which keeps its digits however small r."""
    reach, place = normal_quantile(level) * error / (area * (1 - area)), float(logit(area))
    ends = np.exp(np.array([-2 * reach, place - reach, -place - reach]))
    return float(-np.expm1(-2 * reach) / (1 + np.sum(ends))) / 2


def planned_trials(
    value: float, k: int, fraction: float | None, local_precision: float | None
) -> int:
    """Independent trials with the variance of the precision of k rows."""
    if fraction is not None:
        check_fraction(fraction)
    if local_precision is None:
        return k
    gap = value - check_share("local_precision", local_precision)
    own, moving = value * (1 - value), (1 - (fraction or 0.0)) * gap**2
    share = own / (own + moving) if own > 0 else float(gap == 0)
    return max(1, floor(k * share + 1e-9))


def clopper_pearson_half_width(value: float, trials: int, level: float) -> float:
    """Half the length of the exact binomial interval, averaged over the number of positives."""
    first, last = max(0, int(binom.ppf(1e-10, trials, value))), int(binom.isf(1e-10, trials, value))
    # the length is smooth in the hits, so some hundred of them stand for all
    hits = np.arange(first, last + 1, 1 + (last - first) // 200)
    with np.errstate(over="ignore"):  # of a subnormal value older SciPy warns, and is right
        chance = binom.pmf(hits, trials, value)
    low, high = clopper_pearson(hits / trials, float(trials), level)
    return float(np.dot(chance, high - low) / np.sum(chance)) / 2


def area_difference_variance(
    metric: str,
    value: float,
    difference: float,
    correlation: float,
    positives: int,
    negatives: int,
    spread: float,
) -> float:
    """Variance of the difference of two areas, or errors, of binormal scores."""
    if not (is_number(correlation) and -1 <= correlation <= 1):
        raise ValueError(f"correlation={correlation!r}: expected a number from -1 to 1.")
    check_area(metric, value + difference)
    # errors differ as the areas do: to exchange the classes changes nothing
    return auc_difference_variance(
        value, difference, float(correlation), positives, negatives, float(spread)
    )


def shares_apart(value: float, difference: float, overlap: float) -> tuple[float, float]:
    """The precisions of the rows that only one of two lists holds, for two precisions at k."""
    if not (is_number(overlap) and 0 <= overlap < 1):
        raise ValueError(f"overlap={overlap!r}: expected a share in [0, 1).")
    middle = value + check_share("value + difference", value + difference)
    apart = abs(difference) / (2 * (1 - overlap))
    shares = np.array([middle / 2 - apart, middle / 2 + apart])
    if np.any(shares < -1e-12) or np.any(shares > 1 + 1e-12):
        raise ValueError(
            f"A difference of {difference:g} cannot come from a share of {1 - overlap:g} of the "
            "rows: expected a smaller difference or overlap."
        )
    low, high = np.clip(shares, 0.0, 1.0).tolist()
    return low, high


def normal_quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    return float(-ndtri((1 - check_level(level)) / 2))
