"""Is one ranker better than another? Paired differences on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.inference.by_lists import check_lists, compare_lists, weight_of_rows
from toprank.inference.gains import compare_gains
from toprank.inference.influence import compare_influences
from toprank.inference.intervals import own_labels
from toprank.inference.real_labels import compare_kernels
from toprank.inference.request import Request, check_resamples
from toprank.inference.resampled import compare_resampled
from toprank.inference.result import Comparison, Comparisons
from toprank.inference.sample import Sample, rows_and_units
from toprank.inference.shares import check_level
from toprank.inference.verdict import Verdict
from toprank.metrics.metric import Metric, call_label
from toprank.metrics.registry import as_metric
from toprank.pairs import check_scores

Scores = ArrayLike | Mapping[str, ArrayLike] | Sequence[ArrayLike]


def compare(
    metric: str | Callable[..., float] | Metric,
    y: ArrayLike,
    s_a: Scores,
    s_b: ArrayLike | None = None,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    lists: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    **metric_kwargs: Any,
) -> Any:
    """Compare rankers on the same rows by one metric: difference, interval and p-value.

    Parameters
    ----------
    metric : str, callable or Metric
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``.
    y : array-like of shape (n,)
        Labels.
    s_a : array-like of shape (n,), or mapping of names to such arrays
        Scores of ranker a; or scores of two and more rankers by name, and no `s_b`: every pair is
        then compared, with Holm's correction of the p-values.
    s_b : array-like of shape (n,), optional
        Scores of ranker b.
    level : float, default=0.95
        Confidence level of each interval.
    groups, lists, sample_weight, weights, label_propensity, pos_label
        As in `interval`.
    n_resamples, random_state, n_jobs
        As in `interval`, for metrics compared by the bootstrap.
    **metric_kwargs
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    Comparison or Comparisons
        ``.difference .low .high .p_value`` of a minus b; for several rankers, one for each pair.

    Raises
    ------
    ValueError
        If the input is not usable, or the metric depends on one extreme row, so that no valid
        comparison exists.

    Notes
    -----
    The AUC and its kin, partial areas, average precision and the p-norm risk are compared by the
    difference of each row's influence, in O(n log n) time and O(n) memory (for the AUC this is
    DeLong's test). In small samples the p-values of partial areas (up to 1,000 rows) and of the
    average precision (up to 4,000) come from random swaps of the two rankers' ranks, row by row.
    Metrics at k are compared over the rows that stand differently: if the rankers are equally good,
    labels fall on those rows at random. The rest is compared by a paired bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import compare
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> good, poor = rng.normal(size=(2, 1000)) + np.outer([2.0, 1.0], y)
    >>> result = compare("auc", y, good, poor)
    >>> result.difference > 0, result.p_value < 0.001
    (True, True)
    >>> pairs = compare("auc", y, {"good": good, "poor": poor, "same": poor + 1})
    >>> pairs["poor", "same"].adjusted_p_value
    1.0
    """
    check_level(level)
    check_resamples(n_resamples)
    scores = _by_name(s_a, s_b)
    common = {
        "groups": groups,
        "lists": lists,
        "sample_weight": sample_weight,
        "weights": weights,
        "label_propensity": label_propensity,
        "pos_label": pos_label,
        "resampling": {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs},
    }
    known = as_metric(metric)
    if not known.own_labels:
        known.check_settings(metric_kwargs)
    label = call_label(known.name, metric_kwargs)
    results = [
        _pair(
            known,
            Verdict((a, b), label, level),
            y,
            (scores[a], scores[b]),
            metric_kwargs,
            **common,
        )
        for a, b in combinations(scores, 2)
    ]
    if s_b is not None:
        return results[0]
    return Comparisons(tuple(_holm(results)))


def _by_name(s_a: Scores, s_b: ArrayLike | None) -> dict[str, Any]:
    if s_b is not None:
        return {"a": s_a, "b": s_b}
    if not isinstance(s_a, Mapping):
        raise ValueError(
            "There is nothing to compare with: give the scores of a second ranker as s_b, or all "
            "scores as a mapping {name: scores}."
        )
    if len(s_a) < 2:
        raise ValueError(f"There are scores of {len(s_a)} ranker(s), expected at least two.")
    return {str(name): scores for name, scores in s_a.items()}


def _holm(results: list[Comparison]) -> list[Comparison]:
    """Holm's step-down correction: the smallest of m p-values times m, the next times m - 1, ..."""
    order = np.argsort([result.p_value for result in results], kind="stable")
    adjusted, largest = list(results), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(results) - rank) * results[place].p_value))
        adjusted[place] = replace(results[place], adjusted_p_value=largest)
    return adjusted


def _pair(
    metric: Metric,
    verdict: Verdict,
    y: ArrayLike,
    scores: tuple[Any, Any],
    settings: dict[str, Any],
    *,
    groups: ArrayLike | None,
    lists: ArrayLike | None,
    sample_weight: ArrayLike | None,
    weights: str,
    label_propensity: ArrayLike | None,
    pos_label: Any,
    resampling: dict[str, Any],
) -> Comparison:
    if metric.kernel is not None:
        n = len(check_scores(scores[0]))
        rows = rows_and_units(n, groups, sample_weight, weights, label_propensity)
        return compare_kernels(verdict, y, scores, *rows)
    if lists is not None:
        check_lists(metric, groups)
        weight = weight_of_rows(y, scores[0], sample_weight, label_propensity, pos_label)
        values = [metric.each(y, s, lists, weight, pos_label, **settings) for s in scores]
        return compare_lists(verdict, metric, values)
    if metric.own_labels:
        resampling = {**resampling, "own_labels": own_labels(y, pos_label)}
    samples = [
        Sample.of(y, s, sample_weight, groups, weights, label_propensity, pos_label) for s in scores
    ]
    a, b = (Request(metric, settings, sample, verdict.level, **resampling) for sample in samples)
    return _by_strategy(verdict, a, b)


def _by_strategy(verdict: Verdict, a: Request, b: Request) -> Comparison:
    """The comparison by the first of the strategies that the metric has an answer for."""
    metric = a.metric
    if metric.extreme_of(a.settings) is not None:
        raise ValueError(
            f"{verdict.label} depends on one extreme row of each ranking, so that neither the "
            "bootstrap nor a normal limit is valid for a difference. Compare pnorm_risk with a "
            "large p, partial_auc with a small max_fpr, or precision_at instead."
        )
    if metric.gains is not None:
        return compare_gains(verdict, a, b)
    if metric.expansion is not None:
        return compare_influences(verdict, a, b)
    return compare_resampled(verdict, a, b)
