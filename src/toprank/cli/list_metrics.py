"""Metrics of one list of labelled rows, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toprank.cli.metric_row import MetricRow
from toprank.cli.options import choose_resamples
from toprank.cli.terminal import Failure, Step
from toprank.inference import hidden_share
from toprank.metrics import summary
from toprank.metrics.registry import METRICS, Entry
from toprank.models.rows import Measurement, ScoredRows, measure, metric_settings

if TYPE_CHECKING:
    from toprank._arrays import BoolArray, FloatArray


def list_metrics(
    names: Sequence[str], tops: Sequence[int | float]
) -> list[tuple[str, dict[str, object]]]:
    """The metrics by name with their settings: those at the top once for each length."""
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise Failure(f"--metric: '{unknown[0]}' is not one of: {', '.join(sorted(METRICS))}.")
    return [
        (name, metric_settings(name, top))
        for top in tops
        for name in names
        if METRICS[name].takes_k
    ] + [(name, metric_settings(name)) for name in names if not METRICS[name].takes_k]


def measure_list(
    rows: ScoredRows,
    wanted: Sequence[tuple[str, dict[str, object]]] | None,
    tops: Sequence[int | float],
    level: float,
    resamples: int | None,
    step: Step,
    more: dict[str, Any],
) -> list[MetricRow]:
    """The metrics of the rows, each with its interval; the share of hidden positives where unknown.

    Parameters
    ----------
    rows : ScoredRows
    wanted : sequence of (name, settings) or None
        Which; None for all there are.
    tops : sequence of int or float
        The lengths of the top.
    level : float
        Confidence level.
    resamples : int or None
        How often the bootstrap draws; None leaves it to the number of rows.
    step : callable
        Called with the metric that is being measured.
    more : dict
        ``label_propensity``, the probability that the label of each row was seen; or
        ``unlabelled`` and ``hidden``, as `toprank.inference.interval` takes them.
    """
    weighed: dict[str, Any] = {"sample_weight": rows.weight}
    weighed["label_propensity"] = more.get("label_propensity")
    if wanted is None:
        entries = list(summary(rows.y, rows.scores, tops, **weighed))
    else:
        known: tuple[BoolArray, FloatArray] = (rows.y, rows.scores)
        entries = [
            Entry(name, given, METRICS[name].function(*known, **weighed, **given))
            for name, given in wanted
        ]
    options: dict[str, Any] = {"level": level, **more}
    options |= {"n_resamples": choose_resamples(resamples, len(rows))}
    measured = measure(rows, [(entry.name, entry.settings) for entry in entries], **options)
    found = []
    for done, entry in enumerate(entries):
        step(f"Measuring {entry.label}", done, len(entries))
        corrected = "unlabelled" in more and METRICS[entry.name].hidden is not None
        found.append(_metric_row(entry, next(measured), corrected))
    return found + _measure_share(rows, level, more.get("unlabelled"), more.get("hidden"))


def _measure_share(
    rows: ScoredRows, level: float, unlabelled: BoolArray | None = None, hidden: object = None
) -> list[MetricRow]:
    """The share of positives among the rows without a label, where it is estimated."""
    if unlabelled is None or hidden is not None:
        return []
    try:
        one = hidden_share(rows.y, rows.scores, unlabelled=unlabelled, level=level)
    except ValueError:  # the metrics say why
        return []
    value = (one.estimate, one.low, one.high)
    return [MetricRow(one.metric, "hidden_share", {}, *value, method=one.method, note=one.note)]


def _metric_row(entry: Entry, measured: Measurement, corrected: bool) -> MetricRow:
    what = (entry.label, entry.name, entry.settings, float(entry.value))
    one = measured.interval
    if one is None:  # a metric that has no interval on these rows: the value stays
        return MetricRow(*what, note=f"no interval: {measured.why_not}")
    if corrected:
        what = (*what[:3], one.estimate)
    return MetricRow(
        *what, one.low, one.high, one.standard_error, one.method, " ".join(one.note.split())
    )
