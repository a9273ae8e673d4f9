"""Confidence intervals for every metric of a ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._columns import labels_column
from toprank.inference.by_lists import check_lists, of_lists, weight_of_rows
from toprank.inference.exact import given_negatives, of_cut
from toprank.inference.influence import of_expansion
from toprank.inference.real_labels import of_kernel
from toprank.inference.request import METHODS, Request, check_resamples
from toprank.inference.resampled import resampled
from toprank.inference.result import Interval
from toprank.inference.sample import Sample, rows_and_units
from toprank.inference.shares import check_level
from toprank.metrics.metric import Metric
from toprank.metrics.registry import as_metric


def interval(
    metric: str | Callable[..., float] | Metric,
    y: ArrayLike,
    s: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "auto",
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
) -> Interval:
    """Confidence interval for a metric of any ranker's scores.

    Parameters
    ----------
    metric : str, callable or Metric
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``, which is called on
        resampled rows, with ``sample_weight=`` if it takes that. Of a function nothing is known;
        to keep the interval within the values it can have, see `toprank.metrics.register`.
    y, s : array-like of shape (n,)
        Labels and scores, as the metric takes them.
    level : float, default=0.95
        Confidence level.
    method : {"auto", "projection", "bootstrap", "exact"}, default="auto"
        How. "projection": the Hoeffding projection of a U-statistic (for the AUC, DeLong's
        method) or the influence of each row. "bootstrap": resampled weights of one sorted list.
        "exact": shares of independent trials. "auto" takes the best one for the metric; not every
        metric has every method.
    groups : array-like of shape (n,), optional
        Clusters: rows of one group may depend on each other (visits of a patient, lines of a
        claim). The metric is still of all rows as one list.
    lists : array-like of shape (n,), optional
        For metrics at k: each value is a list of its own (a day, a query). The metric is
        the mean over the lists, as with ``groups=`` of the metric, and the lists are the sample.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; zero is an absent row.
    weights : {"counts", "sampling"}, default="counts"
        What a weight is. "counts": so many independent rows. "sampling": one row that stands
        for so many, as inverse propensities do.
    label_propensity : float or array-like of shape (n,), optional
        Probability that the row's label was seen; rows are then weighted by its inverse, as
        "sampling" weights.
    pos_label : label, optional
        The positive class; by default the larger of the two labels. A function of your own then
        sees labels 1 and 0.
    n_resamples : int, default=1000
        Resamples of the bootstrap.
    random_state : int, Generator or None, default=0
        Seed of the bootstrap.
    n_jobs : int, optional
        Threads of the bootstrap; the result does not depend on it.
    **metric_kwargs
        Parameters of the metric, such as ``k=100`` or ``max_fpr=0.1``.

    Returns
    -------
    Interval
        ``.estimate .low .high .standard_error .method .estimand .note``; prints as a sentence.

    Raises
    ------
    ValueError
        If the input is not usable, or no valid method exists: the message says why.

    Notes
    -----
    Positives and negatives count as drawn apart, in fixed numbers; for `ranking_risk` and the
    metrics at k the rows are drawn together. The plug-in values of `pnorm_risk` and
    `average_precision` are biased in small samples; their intervals are centred where the bias is
    taken off (``.bias``). `positives_at_top` and `max_height` hang on the one highest negative,
    where the bootstrap fails; their intervals take the negatives as given, and are exact for new
    positives. `ranking_margin` has no interval.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> s = rng.normal(size=1000) + y
    >>> print(interval("auc", y, s))
    auc = 0.7122, 95% interval 0.6573 to 0.7614 (Hoeffding projection (DeLong), logit scale)
    >>> print(interval("precision_at", y, s, k=50))
    precision_at(k=50) = 0.3, 95% interval 0.1785 to 0.4463 (Clopper-Pearson, effective trials)
    """
    check_level(level)
    check_resamples(n_resamples)
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}: expected one of {list(METHODS)}.")
    known = as_metric(metric)
    if not known.own_labels:
        known.check_settings(metric_kwargs)
    if known.kernel is not None:
        rows: dict[str, Any] = {
            "sample_weight": sample_weight,
            "label_propensity": label_propensity,
        }
        drawn = rows_and_units(len(np.asarray(s)), groups, weights=weights, **rows)
        return of_kernel(known, y, s, *drawn, level, method, **rows)
    if lists is not None:
        check_lists(known, groups, method)
        weight = weight_of_rows(y, s, sample_weight, label_propensity, pos_label)
        values = known.each(y, s, lists, weight, pos_label, **metric_kwargs)
        sample = Sample.of(y, s, pos_label=pos_label)
        return of_lists(Request(known, metric_kwargs, sample, level), values)
    sample = Sample.of(y, s, sample_weight, groups, weights, label_propensity, pos_label)
    resampling = (n_resamples, random_state, n_jobs)
    labels = own_labels(y, pos_label) if known.own_labels else None
    return _by_strategy(Request(known, metric_kwargs, sample, level, method, *resampling, labels))


def own_labels(y: ArrayLike, pos_label: Any) -> NDArray[Any]:
    """The labels as a caller's function sees them: 1 and 0 where a positive class is named."""
    labels = labels_column("y", y)
    return np.asarray(labels if pos_label is None else (labels == pos_label).astype(np.intp))


def _by_strategy(request: Request) -> Interval:
    """The interval by the first of the strategies that the metric has an answer for."""
    metric, settings, sample = request.metric, request.settings, request.sample
    extreme = metric.extreme_of(settings)
    if extreme is not None and extreme.report is not None:
        return given_negatives(request, extreme.report)
    if extreme is not None:
        raise ValueError(
            f"{request.label} has no valid interval: it is an extreme of the sample, and a larger "
            f"sample has another one. {extreme.advice}"
        )
    if metric.cut is not None:
        return of_cut(request, metric.cut(sample, **settings))
    if metric.expansion is not None:
        return of_expansion(request, metric.expansion(sample.ranked, **settings))
    return resampled(request)
