"""Confidence intervals for every metric of a ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.inference.bootstrap import OfOrder
from toprank.inference.by_lists import check_lists, of_lists, resolved_weight
from toprank.inference.cuts import CUTS, AtCut
from toprank.inference.extremes import given_negatives, is_extreme
from toprank.inference.influence import EXPANSIONS
from toprank.inference.request import (
    METHODS,
    SAME_LENGTH,
    Request,
    check_resamples,
    check_settings,
    named,
    only,
)
from toprank.inference.resampled import of_callable, own_labels, resampled
from toprank.inference.result import Interval
from toprank.inference.sample import Sample, rows_and_units
from toprank.inference.shares import clopper_pearson, effective_trials, smoothed
from toprank.inference.smooth import expanded
from toprank.inference.u_statistics import check_level, u_statistic
from toprank.metrics.cuts import Lists
from toprank.metrics.registry import METRICS, get_metric


def interval(
    metric: str | Callable[..., float],
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
    metric : str or callable
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``, which is called on
        resampled rows, with ``sample_weight=`` if it takes that.
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
    options = {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs}
    metric, name = named(metric)
    if metric == "ranking_risk":
        return _ranking_risk(
            y, s, level, method, groups, sample_weight, weights, label_propensity, metric_kwargs
        )
    if lists is not None:
        check_lists(name, groups, method)
        weight = resolved_weight(y, s, sample_weight, label_propensity, pos_label)
        return of_lists(name, y, s, lists, weight, pos_label, level, metric_kwargs)
    sample = Sample.of(y, s, sample_weight, groups, weights, label_propensity, pos_label)
    if not isinstance(metric, str):
        request = Request(name, metric_kwargs, sample, level, method, **options)
        return of_callable(request, metric, own_labels(y, pos_label))
    check_settings(get_metric(name), metric_kwargs)
    return _planned(Request(name, metric_kwargs, sample, level, method, **options))


def _planned(request: Request) -> Interval:
    name, settings = request.name, request.settings
    if name == "ranking_margin" or (name == "push_risk" and _priced_by_maximum(settings)):
        raise ValueError(
            f"{request.label} has no valid interval: it is an extreme of the sample, of which a "
            "larger sample has a different one. Use margin_error(theta=...), pnorm_risk(p=...) or "
            "positives_at_top instead."
        )
    if is_extreme(name, settings):
        return given_negatives(request)
    if name == "pnorm_risk" and settings.get("p") == np.inf:
        raise ValueError(
            "pnorm_risk with p=inf and a margin is a maximum over the negatives and has no valid "
            "interval; use a finite p."
        )
    if name in CUTS:
        return _at_cut(request)
    if name in EXPANSIONS:
        return expanded(request)
    return resampled(request)


def _priced_by_maximum(settings: dict[str, Any]) -> bool:
    return settings.get("price", "power") == "max" or settings.get("p", 1.0) == np.inf


def _at_cut(request: Request) -> Interval:
    """Interval of a share at a cut of the list."""
    sample = request.sample
    at: AtCut = CUTS[request.name](sample, **request.settings)
    cut, method = at.cut, "Clopper-Pearson, effective trials"
    trials, variance = cut.trials, cut.variance
    only(request, "exact", "bootstrap")
    if sample.groups is not None or request.method == "bootstrap":
        statistic = OfOrder(sample, METRICS[request.name], request.settings)
        variance = float(np.var(request.replicates(statistic) / at.scale, ddof=1))
        trials = effective_trials(smoothed(cut.share * trials, trials), variance, trials)
        method = f"Clopper-Pearson, trials from a bootstrap ({request.scheme})"
    low, high = (float(end) for end in clopper_pearson(cut.share, trials, request.level))
    estimate = METRICS[request.name].of(
        sample.ranked, Lists.of_one(sample.ranked), **request.settings
    )
    return request.result(
        estimate,
        (at.report(low), at.report(high)),
        at.scale * float(np.sqrt(variance)),
        method,
        SAME_LENGTH,
    )


def _ranking_risk(
    y: ArrayLike,
    s: ArrayLike,
    level: float,
    method: str,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    weights: str,
    label_propensity: ArrayLike | None,
    settings: dict[str, Any],
) -> Interval:
    """Interval of the ranking risk: rows, or groups of them, are drawn, whatever their labels."""
    check_settings(METRICS["ranking_risk"], settings)
    if method not in ("auto", "projection"):
        raise ValueError(
            f"ranking_risk has no interval by method={method!r}; it has ['projection']."
        )
    estimate = METRICS["ranking_risk"].function(
        y, s, sample_weight=sample_weight, label_propensity=label_propensity
    )
    n = len(np.asarray(s))
    weight, units = rows_and_units(n, groups, sample_weight, weights, label_propensity)
    pairs = np.column_stack([np.asarray(y, dtype=np.float64), np.asarray(s, dtype=np.float64)])
    result = u_statistic("ranking", pairs, groups=units, sample_weight=weight)
    low, high = result.interval(level)
    note = "" if result.variance > 0 else "Every pair of rows says the same."
    return Interval(
        "ranking_risk",
        estimate,
        low,
        high,
        result.standard_error,
        level,
        "Hoeffding projection, logit scale",
        "the chance that two new rows are ranked the wrong way round",
        note=note,
    )
