"""The bootstrap, for metrics that offer nothing better, without sorting again.

A resample gives the ties of one ranked list new weights. Positives and negatives are drawn apart,
each as often as there are of them, or whole groups are drawn. A resample that loses a class is
drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from toprank._arrays import AnyArray, BoolArray
from toprank._numerics import FloatArray
from toprank.blocks import Workers, go_on
from toprank.inference.result import Comparison, Interval, MetricRequest, Verdict, check_size
from toprank.inference.sample import Sample, VarianceEstimate, sums_by_group
from toprank.inference.shares import clopper_pearson, interval_around
from toprank.metrics.metric import Metric
from toprank.metrics.order import RankedList
from toprank.metrics.sorted_classes import SortedClasses

_STREAMS = 16
#: Resamples of more units than these differ in no digit that matters.
_MOST_UNITS = 1e15
#: Mean length of runs from which it takes less time to draw how often each comes than its rows.
_LONG_RUNS = 8
#: Rows that a function without weights may be given.
_MOST_COPIES = 1e8
Statistic = Callable[[FloatArray], float]


def replicates(
    request: MetricRequest, statistic: Callable[[FloatArray], float], *columns: AnyArray
) -> FloatArray:
    """Values of a statistic of the rows' weights, one for each resample.

    The random numbers come in a fixed number of streams, so that the threads that work on them
    change nothing. Nor does the order of the rows in the table: `columns` are what the statistic
    reads of them beside what the sample and the request hold.
    """
    sample, n_resamples = request.sample, request.n_resamples
    by_ties = isinstance(statistic, WeightedMetric) and sample.plain
    order = None if by_ties else sample.table_free_order(*columns, *_columns_of(request))
    streams = np.random.default_rng(request.random_state).spawn(min(_STREAMS, n_resamples))
    shares = np.diff(np.linspace(0, n_resamples, len(streams) + 1).astype(int))

    def run(task: tuple[np.random.Generator, int]) -> list[float]:
        rng, count = task
        if order is None:
            assert isinstance(statistic, WeightedMetric)
            draws: Iterator[float] = iter(lambda: statistic.drawn(rng), None)
        else:
            draws = map(statistic, resamples(sample, order, rng))
        values = []
        for _ in range(count):
            go_on()
            values.append(next(draws))
        return values

    workers = Workers(request.n_jobs)
    with workers.start_threads():
        parts = list(workers.map(run, list(zip(streams, shares.tolist(), strict=True))))
    return np.asarray([value for part in parts for value in part], dtype=np.float64)


def _columns_of(request: MetricRequest) -> list[AnyArray]:
    """Columns of the rows that the request holds beside the sample."""
    columns = [np.asarray(value) for value in request.row_settings.values() if np.ndim(value) == 1]
    if request.own_labels is not None:
        columns.append(np.unique(request.labels, return_inverse=True)[1])
    return [column for column in columns if len(column) == len(request.sample.scores)]


def resamples(
    sample: Sample, order: NDArray[np.intp], rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Endless weights of the rows, as resampling gives them."""
    draw = _drawn_groups(sample) if sample.groups is not None else _drawn_classes(sample, order)
    while True:
        weight = draw(rng)
        present = weight > 0
        if np.any(present & sample.positive) and np.any(present & ~sample.positive):
            yield weight


def _drawn_groups(sample: Sample) -> Callable[[np.random.Generator], FloatArray]:
    assert sample.groups is not None
    codes, count = sample.groups, int(sample.groups.max()) + 1

    def draw(rng: np.random.Generator) -> FloatArray:
        times = np.bincount(rng.integers(0, count, count), minlength=count)
        return np.asarray(times[codes] if sample.weight is None else times[codes] * sample.weight)

    return draw


def _drawn_classes(
    sample: Sample, order: NDArray[np.intp]
) -> Callable[[np.random.Generator], FloatArray]:
    high = sample.positive[order]
    members = (order[high], order[~high])

    def draw(rng: np.random.Generator) -> FloatArray:
        weight = np.empty(len(sample.scores))
        for rows in members:
            weight[rows] = _resampled_weight(sample, rows, rng)
        return weight

    return draw


def _resampled_weight(
    sample: Sample, rows: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """Weight of the rows of one class in a resample of that class."""
    count = len(rows)
    if sample.weight is None or not sample.counts:
        times = np.bincount(rng.integers(0, count, count), minlength=count)
        return np.asarray(times if sample.weight is None else times * sample.weight[rows])
    total = float(np.sum(sample.weight[rows]))
    units = max(1, round(min(total, _MOST_UNITS)))
    times = rng.multinomial(units, sample.weight[rows] / total)
    return np.asarray(times * (total / units))


@dataclass(frozen=True)
class _Runs:
    """Rows of one class from the top of the list to its bottom, in runs of equal score."""

    ties: NDArray[np.intp]
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, counts: FloatArray) -> _Runs:
        """The runs of a class that has so many rows in each tie."""
        ties = np.flatnonzero(counts)
        return cls(ties, counts[ties].astype(np.intp))

    def drawn(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Weights of all ties after drawing as many rows as there are."""
        rows, weight = int(np.sum(self.counts)), np.zeros(count)
        if len(self.ties) * _LONG_RUNS <= rows:
            weight[self.ties] = rng.multinomial(rows, self.counts / rows)
            return weight
        times = np.bincount(rng.integers(0, rows, rows), minlength=rows)
        distinct = len(self.ties) == rows
        weight[self.ties] = times if distinct else np.add.reduceat(times, self._starts)
        return weight

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.cumsum(self.counts) - self.counts


@dataclass(frozen=True)
class WeightedMetric:
    """A registered metric of the order of the rows, as a statistic of weights."""

    sample: Sample
    metric: Metric
    settings: dict[str, Any]

    @cached_property
    def ties(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The ties of the positives, and of the negatives."""
        high = self.sample.positive
        return self.sample.ties[high], self.sample.ties[~high]

    @cached_property
    def drawn_from(self) -> RankedList:
        """The list that ties are drawn of: for what only the order decides a short one."""
        sample, metric = self.sample, self.metric
        by_place = metric.of_resample is not None
        if by_place or metric.of_list is None or not metric.reads_order_only(self.settings):
            return sample.ranked
        return RankedList.joined(SortedClasses.of(sample.positive, sample.scores))

    @cached_property
    def runs(self) -> tuple[_Runs, _Runs]:
        """The rows of each class in order, in runs of one tie."""
        return _Runs.of(self.drawn_from.positive), _Runs.of(self.drawn_from.negative)

    def __call__(self, weight: FloatArray) -> float:
        """The metric of the rows with these weights."""
        high, low = self.ties
        positive = self.sample.positive
        return self.of_ties(
            self.sample.ranked,
            sums_by_group(high, weight[positive], len(self.sample.ranked.scores)),
            sums_by_group(low, weight[~positive], len(self.sample.ranked.scores)),
        )

    def drawn(self, rng: np.random.Generator) -> float:
        """The metric of a resample of rows of weight one: ties are drawn, not rows."""
        ranked = self.drawn_from
        return self.of_ties(ranked, *(runs.drawn(len(ranked.scores), rng) for runs in self.runs))

    def of_ties(self, drawn_from: RankedList, positive: FloatArray, negative: FloatArray) -> float:
        """The metric of a list's ties with these weights of positives and of negatives."""
        metric, scores = self.metric, drawn_from.scores
        held = np.broadcast_to(True, len(scores))
        if not metric.empty_ties:
            held = positive + negative > 0
            scores, positive, negative = scores[held], positive[held], negative[held]
        ranked = _reweigh(scores, positive, negative, drawn_from.whole)
        if metric.of_resample is not None:
            return metric.of_resample(ranked, self._alone[held])
        return metric.of(ranked, **self.settings)

    @cached_property
    def _alone(self) -> BoolArray:
        """Which ties are of one row, whose copies are no ties."""
        ranked = self.sample.ranked
        return np.asarray(ranked.positive + ranked.negative == 1)


def _reweigh(
    scores: FloatArray, positive: FloatArray, negative: FloatArray, whole: bool
) -> RankedList:
    """A ranked list from the weights of its ties."""
    found, passed = (np.concatenate(([0.0], np.cumsum(part))) for part in (positive, negative))
    return RankedList(scores, positive, negative, found, passed, whole)


def bootstrap_interval(request: MetricRequest) -> Interval:
    """Interval around the estimate from the spread of resampled values.

    It is made on the logit scale if the metric has a smallest and a largest value, on the log
    scale if it has no values below 0, and otherwise as it is.
    """
    request.check_method("bootstrap")
    statistic, estimate = statistic_of(request)
    values = replicates(request, statistic)
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{request.label} is not finite in {np.mean(~np.isfinite(values)):.0%} of the "
            "resamples, so its spread cannot be estimated."
        )
    check_size(request.label, float(np.max(np.abs(values))))
    lowest, highest = request.metric.bounds(request.settings)
    method = f"bootstrap ({request.scheme}, {request.n_resamples})"
    error = float(np.std(values, ddof=1))
    bounded = bool(np.isfinite(highest - lowest))
    if error <= 1e-12 * abs(estimate) or (bounded and not lowest < estimate < highest):
        return _of_equal_values(request, estimate, error, method)
    if bounded:
        span = highest - lowest
        spread = VarianceEstimate((error / span) ** 2, request.freedom())
        low, high = interval_around((estimate - lowest) / span, spread, request.level)
        ends = (lowest + span * low, lowest + span * high)
        return request.result(estimate, ends, error, f"{method}, logit scale")
    reach = float(student.ppf((1 + request.level) / 2, request.freedom()))
    if lowest == 0 and estimate > 0 and np.all(values > 0):
        with np.errstate(over="ignore"):
            factor = float(np.exp(reach * np.std(np.log(values), ddof=1)))
        ends = (estimate / factor, estimate * factor)
        return request.result(estimate, ends, error, f"{method}, log scale")
    ends = (max(lowest, estimate - reach * error), min(highest, estimate + reach * error))
    return request.result(estimate, ends, error, method)


def _of_equal_values(
    request: MetricRequest, estimate: float, error: float, method: str
) -> Interval:
    """Interval where no resample changes the value, or the value is the smallest or largest."""
    lowest, highest = request.metric.bounds(request.settings)
    note = "Every resample gives the same value, so the sample shows no spread"
    if error > 1e-12 * abs(estimate):
        end = "largest" if estimate >= highest else "smallest"
        note = f"The value is the {end} there is, where the spread of resamples gives no interval"
    if not np.isfinite(highest - lowest):
        return request.result(estimate, (estimate, estimate), error, method, note=f"{note}.")
    span, trials = highest - lowest, min(request.sample.units)
    share = min(max((estimate - lowest) / span, 0.0), 1.0)
    low, high = clopper_pearson(share, trials, request.level)
    return request.result(
        estimate,
        (lowest + span * low, lowest + span * high),
        error,
        "Clopper-Pearson",
        note=f"{note}; the interval is that of {trials:g} trials that agree.",
    )


def compare_resampled(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """Difference of any metric, over resamples that both rankers share."""
    a, b = _of_distinct_rows(a, b)
    (of_a, value_a), (of_b, value_b) = (statistic_of(one) for one in (a, b))
    # to trade the rankers turns the sign, and nothing else
    first, second = (a, b) if value_a >= value_b else (b, a)
    values = replicates(first, lambda weight: of_a(weight) - of_b(weight), second.sample.scores)
    method = f"paired bootstrap ({a.scheme}, {a.n_resamples})"
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{verdict.label} is not finite in some resamples.")
    check_size(verdict.label, max(abs(value_a), abs(value_b), float(np.max(np.abs(values)))))
    spread = VarianceEstimate(float(np.var(values, ddof=1)), a.freedom())
    if spread.variance <= 1e-24 * max(value_a**2, value_b**2):
        lowest, highest = a.metric.bounds(a.settings)
        largest = highest - lowest if np.isfinite(highest - lowest) else None
        pairs = a.sample.independent_pairs
        return verdict.without_spread((value_a, value_b), pairs, method, largest)
    return verdict.from_variance((value_a, value_b), spread, method)


def _of_distinct_rows(a: MetricRequest, b: MetricRequest) -> tuple[MetricRequest, MetricRequest]:
    """The same requests, rows of one class that either ranker ties as one row of their number.

    A multinomial draw of such rows has the law of a draw of all, in less time where many tie.
    """
    metric, sample = a.metric, a.sample
    if not sample.plain or (metric.of_list is None and metric.each_list is None):
        return a, b
    pairs = sample.ties * len(b.sample.ranked.scores) + b.sample.ties
    _, first, count = np.unique(2 * pairs + sample.positive, return_index=True, return_counts=True)
    if _LONG_RUNS * len(first) > len(pairs):
        return a, b
    samples = (
        replace(
            one.sample,
            positive=one.sample.positive[first],
            scores=one.sample.scores[first],
            weight=count.astype(np.float64),
            present=np.arange(one.sample.rows)[one.sample.present][first],
        )
        for one in (a, b)
    )
    return replace(a, sample=next(samples)), replace(b, sample=next(samples))


def statistic_of(request: MetricRequest) -> tuple[Statistic, float]:
    """A metric as a statistic of the rows' weights, and its value."""
    metric, sample = request.metric, request.sample
    if metric.of_list is not None or metric.each_list is not None:
        return WeightedMetric(sample, metric, request.settings), request.estimate
    labels, settings = request.labels, request.row_settings
    takes_weights = metric.takes_weights
    if not takes_weights and sample.weight is not None:
        _check_copies(metric.name, sample)

    def statistic(weight: FloatArray) -> float:
        if takes_weights:
            given = (labels, sample.scores)
            return float(metric.function(*given, sample_weight=weight, **settings))
        rows = np.repeat(np.arange(len(weight)), np.round(weight).astype(np.intp))
        return float(metric.function(labels[rows], sample.scores[rows], **settings))

    weight = np.ones(len(labels)) if sample.weight is None else sample.weight
    return statistic, statistic(weight)


def _check_copies(name: str, sample: Sample) -> None:
    """Raise ValueError unless weights can be written out as copies of the rows."""
    if not sample.counts:
        raise ValueError(f"{name} takes no sample_weight, so rows cannot be weighted.")
    if not sample.ranked.whole or sample.ranked.total > _MOST_COPIES:
        raise ValueError(
            f"{name} takes no sample_weight, so that a row of weight w is given to it w times: "
            f"expected whole weights of at most {_MOST_COPIES:g} in all, got a total of "
            f"{sample.ranked.total:g}. Let it take sample_weight=."
        )
