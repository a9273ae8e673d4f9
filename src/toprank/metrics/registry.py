"""Every metric that is one number, by name: what it needs, and which way is up.

Where only some positives are labelled and the rest of the rows are merely unlabelled, counting
the unlabelled rows as negatives turns many metrics into bounds on their true values:

- "lower": never above the true value, whichever positives were labelled.
- "lower if labelled at random": at most the true value, up to sampling error, if the labelled
  positives are a random sample of all positives and the ROC curve lies above the diagonal.
- "upper if labelled at random": at least the true value, under the same conditions.
- "same if labelled at random": right on average, if the labelled positives are a random sample.
- "neither": it can err either way.

``label_propensity`` answers another question: rows of both classes whose label is known only
because someone looked, with a known probability.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toprank.metrics.built_in import BUILT_IN, UNDIRECTED
from toprank.metrics.metric import REAL, Metric

#: The metrics by name. `f_skew` is left out: it has no better direction.
METRICS: dict[str, Metric] = {metric.name: metric for metric in BUILT_IN}

_UNDIRECTED = {metric.name: metric for metric in UNDIRECTED}


def get_metric(name: str) -> Metric:
    """Return the registered metric, or raise ValueError naming those there are."""
    if name not in METRICS:
        raise ValueError(f"Unknown metric {name!r}: expected one of {sorted(METRICS)}.")
    return METRICS[name]


def register(
    function: Callable[..., float],
    *,
    higher_is_better: bool,
    values: tuple[float, float] | Callable[..., tuple[float, float]] = REAL,
    settings: Mapping[str, Any] | None = None,
    name: str | None = None,
    **facts: Any,
) -> Metric:
    """Add a metric of your own, for everything that takes a metric by name.

    `scorer`, `summary`, `toprank.inference.interval`, `toprank.inference.compare`, the rankers'
    ``scoring=`` and the command line then know it by its name.

    Parameters
    ----------
    function : callable
        ``function(y_true, y_score, ...)``, where `y_true` is True for the positives. With a
        parameter ``sample_weight`` (repetition counts) it is also part of `summary`, and of
        the metrics of block sources.
    higher_is_better : bool
        Whether a better ranking has the larger value.
    values : tuple of two floats, default=(-inf, inf)
        The smallest and the largest value it can have, or a function of its settings that gives
        them. Intervals stay within: between two finite values on the logit scale, from 0 up on
        the log scale.
    settings : mapping, optional
        Values of the parameters that have no default, as `summary` uses them.
    name : str, optional
        By default the name of the function.
    **facts
        What else is known of it: ``when_unlabelled``, ``of_list``, ``each_list``, ``estimand``,
        ``expansion``, ``cut`` and the other attributes of `Metric`. With an expansion or a cut the
        interval needs no bootstrap.

    Returns
    -------
    Metric
        As it is now in `METRICS`.

    Raises
    ------
    ValueError
        If the name is taken, or the function, its settings or its values are not usable.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import interval
    >>> from toprank.metrics import METRICS, register
    >>> def share_above_zero(y_true, y_score, sample_weight=None):
    ...     weight = None if sample_weight is None else sample_weight[y_true]
    ...     return float(np.average(y_score[y_true] > 0, weights=weight))
    >>> metric = register(share_above_zero, higher_is_better=True, values=(0, 1))
    >>> y, s = np.repeat([0, 1], 20), np.arange(40.0) - 20.5
    >>> found = interval("share_above_zero", y, s)
    >>> 0 < found.low < found.estimate < found.high < 1
    True
    >>> del METRICS["share_above_zero"]
    """
    metric = Metric(
        function,
        higher_is_better,
        values=values,
        settings=dict(settings or {}),
        name=name or "",
        **facts,
    )
    _check_new(metric)
    if metric.takes_weights and not metric.row_settings:
        metric = replace(metric, summarize=True)
    METRICS[metric.name] = metric
    return metric


def _check_new(metric: Metric) -> None:
    """Raise ValueError unless the metric can be registered."""
    if metric.name in METRICS or metric.name in _UNDIRECTED:
        raise ValueError(
            f"There is a metric {metric.name!r} already: register yours with another name=."
        )
    if not metric.name.isidentifier():
        raise ValueError(f"name={metric.name!r}: expected a name such as 'share_above_zero'.")
    parameters = list(inspect.signature(metric.function).parameters)
    if len(parameters) < 2:
        raise ValueError(
            f"{metric.name} takes {parameters}: expected a function of the labels and the scores."
        )
    try:
        metric.check_settings(metric.settings)
    except TypeError as error:
        raise ValueError(f"{error} Give it to register in settings=.") from error
    lowest, highest = metric.bounds(metric.settings)
    if not lowest < highest:
        raise ValueError(
            f"values=({lowest!r}, {highest!r}): expected the smallest value, then the largest."
        )


def as_metric(metric: str | Callable[..., float] | Metric) -> Metric:
    """The metric of a name, of a function, or itself.

    A function that is not registered becomes a metric of any real value, which sees the labels
    as they are.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _UNDIRECTED[metric] if metric in _UNDIRECTED else get_metric(metric)
    known = {**METRICS, **_UNDIRECTED}.get(getattr(metric, "__name__", ""))
    if known is not None and known.function is metric:
        return known
    return Metric(metric, own_labels=True)
