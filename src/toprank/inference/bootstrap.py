"""The bootstrap without sorting again: a resample gives the ties of one ranked list new weights.

Positives and negatives are drawn apart, each as often as there are of them, or whole groups are
drawn. A resample that loses a class is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import Workers, go_on
from toprank.inference.sample import Sample, sums_in
from toprank.metrics.metric import Metric
from toprank.metrics.order import RankedList

_STREAMS = 16
#: Resamples of more units than these differ in no digit that matters.
_MOST_UNITS = 1e15


def replicates(
    sample: Sample,
    statistic: Callable[[FloatArray], Any],
    n_resamples: int,
    random_state: Any,
    n_jobs: int | None = None,
) -> FloatArray:
    """Values of a statistic of the rows' weights, one for each resample.

    The random numbers come in a fixed number of streams, so that the threads that work on them
    change nothing.
    """
    streams = np.random.default_rng(random_state).spawn(min(_STREAMS, n_resamples))
    shares = np.diff(np.linspace(0, n_resamples, len(streams) + 1).astype(int))

    def run(task: tuple[np.random.Generator, int]) -> list[Any]:
        rng, count = task
        draws: Iterator[Any] = map(statistic, resamples(sample, rng))
        if isinstance(statistic, OfOrder) and sample.groups is None and sample.weight is None:
            draws = iter(lambda: statistic.drawn(rng), None)
        values = []
        for _ in range(count):
            go_on()
            values.append(next(draws))
        return values

    workers = Workers(n_jobs)
    with workers.running():
        parts = list(workers.map(run, list(zip(streams, shares.tolist(), strict=True))))
    return np.asarray([value for part in parts for value in part], dtype=np.float64)


def resamples(sample: Sample, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Endless weights of the rows, as resampling gives them."""
    draw = _drawn_groups(sample) if sample.groups is not None else _drawn_classes(sample)
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


def _drawn_classes(sample: Sample) -> Callable[[np.random.Generator], FloatArray]:
    members = (np.flatnonzero(sample.positive), np.flatnonzero(~sample.positive))

    def draw(rng: np.random.Generator) -> FloatArray:
        weight = np.empty(len(sample.scores))
        for rows in members:
            weight[rows] = _times(sample, rows, rng)
        return weight

    return draw


def _times(sample: Sample, rows: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
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
    starts: NDArray[np.intp]
    rows: int

    @classmethod
    def of(cls, ties: NDArray[np.intp]) -> _Runs:
        distinct, counts = np.unique(ties, return_counts=True)
        return cls(distinct, np.cumsum(counts) - counts, len(ties))

    def drawn(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Weights of all ties after drawing as many rows as there are."""
        times = np.bincount(rng.integers(0, self.rows, self.rows), minlength=self.rows)
        weight = np.zeros(count)
        distinct = len(self.ties) == self.rows
        weight[self.ties] = times if distinct else np.add.reduceat(times, self.starts)
        return weight


@dataclass(frozen=True)
class OfOrder:
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
    def runs(self) -> tuple[_Runs, _Runs]:
        """The rows of each class in order, and where their ties begin."""
        high, low = self.ties
        return _Runs.of(high), _Runs.of(low)

    def __call__(self, weight: FloatArray) -> float:
        """The metric of the rows with these weights."""
        high, low = self.ties
        positive = self.sample.positive
        return self.of_ties(
            sums_in(high, weight[positive], self._count),
            sums_in(low, weight[~positive], self._count),
        )

    def drawn(self, rng: np.random.Generator) -> float:
        """The metric of a resample of rows of weight one: ties are drawn, not rows."""
        return self.of_ties(*(runs.drawn(self._count, rng) for runs in self.runs))

    def of_ties(self, positive: FloatArray, negative: FloatArray) -> float:
        """The metric of ties with these weights of positives and of negatives."""
        metric, scores = self.metric, self.sample.ranked.scores
        held = None if metric.empty_ties else positive + negative > 0
        if held is not None and not np.all(held):
            scores, positive, negative = scores[held], positive[held], negative[held]
        ranked = _reweighted(scores, positive, negative, self.sample.ranked.whole)
        if metric.of_resample is not None:
            return metric.of_resample(ranked)
        return metric.of(ranked, **self.settings)

    @property
    def _count(self) -> int:
        return len(self.sample.ranked.scores)


def _reweighted(
    scores: FloatArray, positive: FloatArray, negative: FloatArray, whole: bool
) -> RankedList:
    """A ranked list from the weights of its ties."""
    found, passed = (np.concatenate(([0.0], np.cumsum(part))) for part in (positive, negative))
    return RankedList(scores, positive, negative, found, passed, whole)
