"""A metric of each period (a day, a week), its mean, and an interval for alike neighbours.

Days that follow each other are alike: a wave of fraud, a season. The variance of their mean is not
that of independent days. It is estimated from the slow waves of the series: its products with the
first B cosines, whose mean square estimates T times the variance of the mean, and Student's law
with B degrees of freedom (equal-weighted cosines; Lazarus, Lewis, Stock & Watson 2018, whose rule
for B is taken: 0.41 T^(2/3)).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from toprank._arrays import AnyArray, JsonObject
from toprank._columns import labels_column, to_numpy
from toprank._html import interval_picture, table_html
from toprank._numerics import FloatArray
from toprank.inference.shares import check_level
from toprank.metrics.metric import Metric, Planned, call_label
from toprank.metrics.registry import as_metric
from toprank.pairs import check_labels, check_scores, split_classes

#: Periods that an interval needs at least.
_FEWEST = 4


@dataclass(frozen=True)
class PeriodInterval:
    """The mean of a metric over periods, with its interval; print it.

    Attributes
    ----------
    metric : str
        The call that gives the value of each period, such as ``precision_at(k=100)``.
    estimate : float
        The mean of the periods' values.
    low, high : float
        Ends of the interval, within the values that the metric can have.
    standard_error : float
        Standard error of the mean.
    level : float
    method : str
        How the interval was made.
    freedom : float
        Degrees of freedom of the standard error.
    periods : ndarray
        The periods that have a value, in order.
    values : ndarray of float
        The metric of each of them.
    rows : ndarray of int
        How many rows, or entities, each of them has.
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
    freedom: float
    periods: AnyArray
    values: FloatArray
    rows: NDArray[np.intp]
    note: str = ""

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.metric}, mean of {len(self.values)} periods = {self.estimate:.4g}, "
            f"{100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g} ({self.method})"
        )
        return f"{text}\nNote: {self.note}" if self.note else text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (self.metric, f"{self.estimate:.4g}, the mean of {len(self.values)} periods"),
            (f"{100 * self.level:g}% interval", f"{self.low:.4g} to {self.high:.4g}"),
            ("", interval_picture(self.estimate, self.low, self.high)),
            ("method", self.method),
        ]
        return table_html(rows, notes=[self.note])


def period_interval(
    metric: str | Callable[..., float] | Metric,
    y: ArrayLike,
    s: ArrayLike,
    period: ArrayLike,
    *,
    entities: ArrayLike | None = None,
    level: float = 0.95,
    correlated: bool = True,
    pos_label: object = None,
    **metric_kwargs: object,
) -> PeriodInterval:
    """The mean of a metric over days, or other periods, with an interval over the periods.

    Each period is a list of its own, as for people who look at the first 100 cards each day. With
    `entities` the list of a period holds each entity once, by its highest score, and an entity is
    positive if one of its rows is: the precision at 100 is then that of 100 cards.

    Parameters
    ----------
    metric : str, callable or Metric
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``.
    y, s : array-like of shape (n,)
        Labels and scores.
    period : array-like of shape (n,)
        The period of each row (a date, the number of a week); periods follow each other in sorted
        order. Dates with hours are cut to days.
    entities : array-like of shape (n,), optional
        What each row is about; a missing entity is one of its own.
    level : float, default=0.95
        Confidence level.
    correlated : bool, default=True
        Whether neighbouring periods may be alike, which costs degrees of freedom. If not, periods
        count as independent.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    **metric_kwargs
        Parameters of the metric, such as ``k=100``. A period of fewer rows than k is taken whole.

    Returns
    -------
    PeriodInterval
        ``.estimate .low .high .periods .values``; prints as a sentence.

    Notes
    -----
    A period of one class only has no area under a curve and no recall: such periods are left out,
    and the note counts them. Its precision at k is known, 0 or 1, and counts.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import period_interval
    >>> rng = np.random.default_rng(0)
    >>> day, card = np.repeat(np.arange(40), 500), rng.integers(0, 3000, 20_000)
    >>> y = rng.random(20_000) < 0.05
    >>> s = rng.normal(size=20_000) + 2 * y
    >>> print(period_interval("precision_at", y, s, day, entities=card, k=20))
    precision_at(k=20), mean of 40 periods = 0.55, 95% interval 0.4969 to 0.6031 \
(5 cosines, for alike neighbours)
    """
    check_level(level)
    known = as_metric(metric)
    if not known.own_labels:
        known.check_settings(metric_kwargs)
    labels, scores = check_labels(y), check_scores(s, name="s")
    n = len(scores)
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} entries, expected one per row: {n}.")
    positive = split_classes(labels, pos_label=pos_label)[1]
    times = check_periods(period, n)
    whose = None if entities is None else group_of_entities(entities, n)
    found, left_out = [], 0
    for name, rows in _split(times):
        inside, marks = positive[rows], scores[rows]
        if whose is not None:
            inside, marks = collapse_entities(inside, marks, whose[rows])
        value = _metric_of(known, inside, marks, metric_kwargs)
        if value is None:
            left_out += 1
        else:
            found.append((name, value, len(marks)))
    if len(found) < _FEWEST:
        raise ValueError(
            f"{len(found)} periods have a value of {known.name}; an interval over periods needs at "
            f"least {_FEWEST}."
        )
    names, values, counts = zip(*found, strict=True)
    series = np.array(values, dtype=np.float64)
    error, freedom = error_of_mean(series, correlated)
    mean = float(np.mean(series))
    reach = float(student.isf((1 - level) / 2, freedom)) * error
    least, most = known.bounds(metric_kwargs)
    method = f"{freedom:g} cosines, for alike neighbours" if correlated else "independent periods"
    note = f"{left_out} periods of one class only are left out." if left_out else ""
    return PeriodInterval(
        call_label(known.name, metric_kwargs),
        mean,
        max(mean - reach, min(least, mean)),
        min(mean + reach, max(most, mean)),
        error,
        level,
        method,
        freedom,
        np.array(names),
        series,
        np.array(counts),
        note,
    )


def error_of_mean(series: FloatArray, correlated: bool = True) -> tuple[float, float]:
    """Standard error of the mean of a series, and its degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> error, freedom = error_of_mean(np.random.default_rng(0).normal(size=100))
    >>> round(error, 2), freedom
    (0.13, 9.0)
    """
    count = len(series)
    if not correlated:
        return float(np.std(series, ddof=1)) / np.sqrt(count), count - 1.0
    waves = max(2, round(0.41 * count ** (2 / 3)))
    place = np.pi * (np.arange(count) + 0.5) / count
    cosines = np.cos(np.outer(np.arange(1, waves + 1), place))
    products = np.sqrt(2 / count) * cosines @ (series - np.mean(series))
    return float(np.sqrt(np.mean(products**2) / count)), float(waves)


def collapse_entities(
    positive: NDArray[np.bool_], scores: FloatArray, entity: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Each entity once: positive if one of its rows is, with the highest of its scores.

    Examples
    --------
    >>> import numpy as np
    >>> y, s = np.array([True, False, False]), np.array([1.0, 3.0, 2.0])
    >>> [column.tolist() for column in collapse_entities(y, s, np.array([5, 5, 7]))]
    [[True, False], [3.0, 2.0]]
    """
    codes = np.unique(entity, return_inverse=True)[1]
    count = int(codes.max(initial=-1)) + 1
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, codes, scores)
    return np.bincount(codes, weights=positive, minlength=count) > 0, highest


def check_periods(period: ArrayLike, n: int) -> AnyArray:
    """Return the period of each row; dates with hours are cut to days."""
    times = labels_column("period", to_numpy(period), "every row must be in a known period")
    if len(times) != n:
        raise ValueError(f"period has {len(times)} entries, expected one per row: {n}.")
    return cut_to_days(times)


def cut_to_days(times: AnyArray) -> AnyArray:
    """Dates with hours as days, each on its own clock where it has a zone; all else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> cut_to_days(np.array(["2026-01-05T23:10", "2026-01-06T00:05"], dtype="datetime64[m]"))
    array(['2026-01-05', '2026-01-06'], dtype='datetime64[D]')
    """
    if times.dtype == object and all(isinstance(time, datetime) for time in times):
        return np.array([time.date() for time in times], dtype="datetime64[D]")
    return times.astype("datetime64[D]") if times.dtype.kind == "M" else times


def group_of_entities(entities: ArrayLike, n: int) -> NDArray[np.intp]:
    """Number the entities; a missing one (None, NaN or the empty word) is one of its own."""
    given = np.asarray(to_numpy(entities))
    if given.shape != (n,):
        raise ValueError(f"entities has shape {given.shape}, expected one entity per row: ({n},).")
    seen: dict[Hashable, int] = {}
    return np.array(
        [
            seen.setdefault((place,) if value in (None, "") or value != value else value, len(seen))
            for place, value in enumerate(given.tolist())
        ],
        dtype=np.intp,
    )


def _split(times: AnyArray) -> Iterator[tuple[np.generic, NDArray[np.intp]]]:
    """The rows of each period, in the order of the periods."""
    names, codes = np.unique(times, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    yield from zip(names, np.split(order, np.flatnonzero(np.diff(codes[order])) + 1), strict=True)


def _metric_of(
    known: Metric, positive: NDArray[np.bool_], scores: FloatArray, settings: Mapping[str, object]
) -> float | None:
    """The metric of one period; None where it has no value."""
    k = settings.get("k")
    if isinstance(k, (int, np.integer)) and not isinstance(k, bool):
        settings = {**settings, "k": min(int(k), len(scores))}
    if positive.all() or not positive.any():
        # a share of labels has a value where all are alike; others compare the classes
        return float(positive.all()) if known.planned is Planned.LABELS else None
    return float(known.function(positive, scores, **settings))
