"""The cut-off that keeps the number of alerts within what can be looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtri
from sklearn.utils import check_consistent_length

from toprank._arrays import AnyArray, BoolArray, JsonObject
from toprank._numerics import FloatArray, is_number
from toprank.inference.periods import cut_to_days
from toprank.inference.shares import clopper_pearson
from toprank.pairs import check_counts, check_labels, check_scores, check_weights, split_classes

if TYPE_CHECKING:
    from toprank._arrays import IntArray


#: Numbers of alerts and of periods beyond these are mistaken units, and have no quantiles.
_SMALLEST, _LARGEST = 1e-12, 1e12
#: From here on a law of counts is a normal one; further on the quantiles of SciPy are NaN.
_MANY = 1e9
#: Variance over mean of days that are busy or quiet: what is supposed where nothing shows it.
_UNEVEN = 4.0
#: Periods below which a note says that they are few.
_FEW_PERIODS = 5


@dataclass(frozen=True)
class CapacityThreshold:
    """A cut-off for items that are scored one at a time: alert if score >= threshold.

    Attributes
    ----------
    threshold : float
        The cut-off; infinite if even the highest tied scores are too many.
    expected : float
        Alerts per period, in the mean over the periods seen. At most `per_period`.
    low, high : float
        Interval for the alerts of one new period. With few periods it is wide, because they show
        little of how much alerts vary.
    per_period : float
        The capacity that was asked for.
    n_periods : float
        Periods that the scores cover.
    dispersion : float
        Variance of the alerts between periods over their mean, at least one; one is Poisson. The
        one seen, the one that was given, or 4 where neither is known.
    precision : float or None
        Share of positives among the alerts, if labels were given.
    precision_low, precision_high : float or None
        Confidence interval of the precision.
    level : float
        Level of both intervals.
    note : str
        What else the reader should know; empty if nothing.
    """

    threshold: float
    expected: float
    low: float
    high: float
    per_period: float
    n_periods: float
    dispersion: float
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    level: float
    note: str = ""

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        percent = f"{100 * self.level:g}%"
        text = (
            f"Alert if score >= {self.threshold:.6g}: {self.expected:.4g} alerts per period, and "
            f"in {percent} of new periods between {self.low:g} and {self.high:g}"
        )
        if self.precision is not None:
            text += (
                f"; precision {self.precision:.3g}, {percent} interval {self.precision_low:.3g} "
                f"to {self.precision_high:.3g}"
            )
        return f"{text}.\nNote: {self.note}" if self.note else f"{text}."


def capacity_threshold(
    scores: ArrayLike,
    per_period: float = 100,
    period: object = 1,
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    level: float = 0.95,
    dispersion: float | None = None,
) -> CapacityThreshold:
    r"""The cut-off that yields a given number of alerts per day, for items scored one at a time.

    Taking the first 100 of a list needs the whole list. Where each item must be decided when it
    comes, a fixed cut-off stands for it: the lowest score at which the mean number of alerts
    per period is at most ``per_period``. The alerts of a new period vary; with mean m over T
    periods and dispersion :math:`\phi` their variance is :math:`\phi\, m (1 + 1/T)`, the second
    term for m being an estimate, and their distribution is taken as negative binomial. Where
    :math:`\phi` is itself estimated from the T periods, the variance is taken
    :math:`(t_{T-1} / z)^2` times as large, by the quantiles of Student's and of the normal law.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of past items that the ranker was not trained on.
    per_period : float, default=100
        Alerts that can be looked at in a period.
    period : number or array-like of shape (n,), default=1
        How many periods the scores cover, or the period of each item (a date, a week number).
        Dates with hours are cut to days. With one per item the dispersion between periods is
        measured. A number of periods does not show it: 4 is supposed then, days that are busy or
        quiet, unless `dispersion` is given, and the note says so. Periods without any item must be
        counted by the number.
    y : array-like of shape (n,), optional
        Labels, for the precision.
    sample_weight : array-like of shape (n,), optional
        Repetition counts.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    level : float, default=0.95
        Level of the intervals.
    dispersion : float, optional
        Variance of the alerts between periods over their mean, from 1 on, where it is known; 1 if
        periods differ by chance only.

    Returns
    -------
    CapacityThreshold
        ``.threshold .expected .low .high .precision``; prints as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tuning import capacity_threshold
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(30), 1000)
    >>> y = rng.random(30_000) < 0.05
    >>> cut = capacity_threshold(rng.normal(size=30_000) + 2 * y, 50, day, y=y)
    >>> round(cut.threshold, 2), cut.expected, (cut.low, cut.high)
    (1.97, 50.0, (36.0, 65.0))
    >>> round(cut.precision, 2)
    0.53
    """
    _check_number("per_period", per_period)
    given = dispersion is not None
    if given and not (is_number(dispersion) and 1 <= dispersion <= _LARGEST):
        raise ValueError(f"dispersion={dispersion!r}: expected a number from 1 on.")
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r}: expected a number between 0 and 1.")
    values = check_scores(scores, name="scores")
    if len(values) == 0:
        raise ValueError("Found 0 rows while a minimum of 1 is required.")
    labels = None if y is None else check_labels(y)
    check_consistent_length(values, labels)
    weight = _item_weights(len(values), sample_weight)
    n_periods, index = _periods(period, len(values), weight)
    threshold = _find_threshold(values, weight, per_period * n_periods)
    alerts = values >= threshold
    mean = float(np.sum(weight, where=alerts)) / n_periods
    unseen = index is None or n_periods < 2
    known = given or unseen
    if dispersion is None and unseen:
        dispersion = _UNEVEN
    elif dispersion is None:
        assert index is not None
        dispersion = _dispersion(index, np.where(alerts, weight, 0.0), n_periods, mean)
    wider = 1.0 if known else _student_over_normal(n_periods - 1, level) ** 2
    low, high = _alerts_of_a_new_period(mean, dispersion, wider, n_periods, level)
    share, ends = _precision(labels, pos_label, alerts, weight, level)
    note = _describe_note(threshold, mean, per_period, values[weight > 0])
    if not given and unseen:
        calm = _alerts_of_a_new_period(mean, 1.0, 1.0, n_periods, level)
        note = f"{note} {_describe_supposed(mean, calm)}".strip()
    elif not given and n_periods < _FEW_PERIODS:
        note = f"{note} Less than five periods say little about how much the alerts vary.".strip()
    return CapacityThreshold(
        threshold,
        mean,
        low,
        high,
        float(per_period),
        n_periods,
        float(dispersion),
        share,
        *ends,
        level,
        note,
    )


def _check_number(name: str, value: object) -> None:
    if not (is_number(value) and _SMALLEST <= value <= _LARGEST):
        raise ValueError(
            f"{name}={value!r}: expected a positive number, from {_SMALLEST:g} to {_LARGEST:g}."
        )


def _item_weights(n: int, sample_weight: ArrayLike | None) -> FloatArray:
    weight = check_counts(sample_weight, n)
    if weight is None:
        return np.ones(n)
    total = float(np.sum(weight))
    if total > _LARGEST**2:
        raise ValueError(f"sample_weight sums to {total:g}: expected counts of items.")
    return weight


def _periods(period: Any, n: int, weight: FloatArray) -> tuple[float, IntArray | None]:
    """Number of periods, and the period of each item if it is known."""
    if np.ndim(period) == 0:
        _check_number("period", period)
        return float(period), None
    labels = cut_to_days(check_labels(period, "period"))
    if len(labels) != n:
        raise ValueError(f"period has {len(labels)} items, expected one number or {n}.")
    present = np.unique(labels[weight > 0])
    return float(len(present)), np.searchsorted(present, labels).clip(max=len(present) - 1)


def _find_threshold(values: FloatArray, weight: FloatArray, capacity: float) -> float:
    """The lowest score such that the items at or above it weigh at most the capacity."""
    distinct, where = np.unique(values[weight > 0], return_inverse=True)
    mass = np.cumsum(np.bincount(where, weights=weight[weight > 0])[::-1])[::-1]
    fits = np.flatnonzero(mass <= capacity * (1 + 1e-12))
    return float(distinct[fits[0]]) if len(fits) else float("inf")


def _dispersion(index: IntArray, alerts: FloatArray, n_periods: float, mean: float) -> float:
    if mean == 0:
        return 1.0
    counts = np.bincount(index, weights=alerts, minlength=int(n_periods))
    return max(1.0, float(np.var(counts, ddof=1)) / mean)


def _student_over_normal(freedom: float, level: float) -> float:
    """How much wider an interval is if its standard error has so many degrees of freedom."""
    tail = (1 - level) / 2
    return float(stats.t.isf(tail, freedom)) / -float(ndtri(tail))


def _alerts_of_a_new_period(
    mean: float, dispersion: float, wider: float, n_periods: float, level: float
) -> tuple[float, float]:
    """Interval of the alerts, of a variance `wider` times that of the mean and the dispersion."""
    if mean == 0:  # nothing seen in T periods: the rate may still be 3/T or so
        return 0.0, _exceeded_count(-float(np.log1p(-level)) / n_periods, 0.0, 1 - level)
    tail, more = (1 - level) / 2, wider * dispersion * (1 + 1 / n_periods) - 1
    return _exceeded_count(mean, more, 1 - tail), _exceeded_count(mean, more, tail)


def _exceeded_count(mean: float, more: float, tail: float) -> float:
    """The count that is exceeded with at most this probability, if its variance is (1 + more) mean.

    Negative binomial; Poisson where the variance is the mean.
    """
    if mean < _SMALLEST:  # one alert at the most, as rarely as that
        return float(mean > tail)
    if mean > _MANY:
        return max(0.0, float(np.ceil(mean - ndtri(tail) * np.sqrt((1 + more) * mean))))
    law = stats.nbinom(mean / more, 1 / (1 + more)) if more > 1e-9 else stats.poisson(mean)
    return max(0.0, float(law.isf(tail)))


def _precision(
    labels: AnyArray | None, pos_label: object, alerts: BoolArray, weight: FloatArray, level: float
) -> tuple[float | None, tuple[float | None, float | None]]:
    if labels is None:
        return None, (None, None)
    positive = split_classes(labels, pos_label=pos_label)[1]
    check_weights(positive, weight)
    trials = float(np.sum(weight, where=alerts))
    if trials == 0:
        return None, (None, None)
    share = float(np.sum(weight, where=alerts & positive)) / trials
    low, high = clopper_pearson(share, trials, level)
    return share, (float(low), float(high))


def _describe_note(
    threshold: float,
    mean: float,
    per_period: float,
    values: FloatArray,
) -> str:
    said = []
    if threshold == np.inf:
        said.append(
            "More items tie at the highest score than fit: no cut-off on this score is low enough."
        )
    elif threshold == np.min(values) and mean < per_period:
        said.append("There are fewer items than that: every one of them is an alert.")
    elif mean < 0.9 * per_period:
        said.append("Items tie at the cut-off: the next lower score would be too many.")
    return " ".join(said)


def _describe_supposed(mean: float, calm: tuple[float, float]) -> str:
    """What the interval supposes, what would be right for calm days, and how often on others."""
    text = (
        f"How far days differ is not known: the interval supposes a variance of {_UNEVEN:g} times "
        "the mean, of busy and quiet days. Give the period of each item, or a dispersion."
    )
    if mean < np.finfo(np.float64).tiny:  # no alert on any day
        return text
    within = _chance_within(mean, _UNEVEN, calm)
    return (
        f"{text} If days differ by chance only (Poisson, dispersion=1) it is {calm[0]:g} to "
        f"{calm[1]:g}, which holds {within:.0%} of such busy and quiet days."
    )


def _chance_within(mean: float, dispersion: float, ends: tuple[float, float]) -> float:
    """Chance that the alerts of a day of this mean and dispersion lie within an interval."""
    spread = float(np.sqrt(dispersion * mean))
    if mean > _MANY:
        law = stats.norm(mean, spread)
        return float(law.cdf(ends[1]) - law.cdf(ends[0]))
    law = stats.nbinom(mean / (dispersion - 1), 1 / dispersion)
    return float(law.cdf(ends[1]) - law.cdf(ends[0] - 1))
