"""How good a list is: metrics with their intervals. Models, reports and commands measure here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toprank._numerics import FloatArray
from toprank.inference import Interval, interval
from toprank.metrics.registry import METRICS
from toprank.pairs import Rows


@dataclass(frozen=True, kw_only=True)
class ScoredRows(Rows):
    """Labelled rows and their scores; the features may be left out."""

    scores: FloatArray

    @property
    def known(self) -> dict[str, Any]:
        """What the functions of `toprank.inference` are told of the rows."""
        return {"sample_weight": self.weight, "groups": self.groups}


@dataclass(frozen=True)
class Measurement:
    """One metric of a list.

    Attributes
    ----------
    name : str
        The metric's name in `toprank.metrics`.
    settings : mapping
        The parameters it was given.
    interval : Interval or None
        None where the rows allow no interval.
    why_not : str
        Why there is no interval; empty if there is one.
    """

    name: str
    settings: Mapping[str, Any]
    interval: Interval | None
    why_not: str = ""


def metric_settings(name: str, k: int | float | None = None) -> dict[str, Any]:
    """The usual parameters of a metric, with this length of the top where it has one."""
    metric = METRICS[name]
    return {**metric.settings, **({"k": k} if k is not None and metric.takes_k else {})}


def measure(
    rows: ScoredRows, wanted: Iterable[tuple[str, Mapping[str, Any]]], **options: Any
) -> Iterator[Measurement]:
    """Measure a list by several metrics, one after the other.

    Parameters
    ----------
    rows : ScoredRows
    wanted : iterable of (str, mapping)
        Names of metrics, and their parameters.
    **options
        ``level`` and ``n_resamples`` of `toprank.inference.interval`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(200) < 0.3
    >>> rows = ScoredRows(None, positive, scores=positive + rng.normal(size=200))
    >>> [round(one.interval.estimate, 2) for one in measure(rows, [("auc", {})])]
    [0.8]
    """
    for name, settings in wanted:
        try:
            found = interval(name, rows.y, rows.scores, **rows.known, **options, **settings)
        except ValueError as error:  # a metric that has no interval on these rows
            yield Measurement(name, settings, None, str(error))
        else:
            yield Measurement(name, settings, found)
