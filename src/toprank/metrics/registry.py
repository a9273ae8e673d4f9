"""Every metric that is one number, by name: to look up, to add one's own, to score, to tabulate.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer

from toprank.metrics._inputs import check_ranking
from toprank.metrics.built_in import BUILT_IN, UNDIRECTED
from toprank.metrics.lists import Lists, SortedOnce, group_codes
from toprank.metrics.margins import f_skew_of, f_skew_of_sorted
from toprank.metrics.metric import REAL, Metric
from toprank.pairs import to_numpy

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
    settings: Mapping[str, object] | None = None,
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


def scorer(name: str, **kwargs: object) -> Callable[..., float]:
    """A scikit-learn scorer of a metric, for ``cross_validate`` or ``GridSearchCV``.

    It ranks with the estimator's ``decision_function``, or else its ``predict_proba``. Risks and
    errors are negated, so that a larger score is always better.

    Parameters
    ----------
    name : str
        Name of a metric, such as "auc", "precision_at" or "pnorm_risk".
    **kwargs
        Its parameters, such as ``k=100`` or ``p=4``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from toprank.metrics import scorer
    >>> X, y = make_classification(random_state=0)
    >>> scoring = {"top": scorer("precision_at", k=5), "risk": scorer("pnorm_risk", p=4)}
    >>> result = cross_validate(LogisticRegression(), X, y, scoring=scoring)
    >>> result["test_top"].shape, bool((result["test_risk"] <= 0).all())
    ((5,), True)
    """
    metric = get_metric(name)
    _check_parameters(metric.function, name, kwargs)
    return make_scorer(
        metric.function,
        greater_is_better=metric.higher_is_better,
        response_method=("decision_function", "predict_proba"),
        **kwargs,
    )


def _check_parameters(
    function: Callable[..., object], name: str, kwargs: Mapping[str, object]
) -> None:
    """Raise ValueError now, not in the middle of a search, if the parameters do not fit."""
    parameters = list(inspect.signature(function).parameters.values())[2:]
    unknown = sorted(set(kwargs) - {p.name for p in parameters})
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in kwargs]
    if unknown or missing:
        problems = [f"does not know {', '.join(unknown)}"] if unknown else []
        problems += [f"needs {', '.join(missing)}"] if missing else []
        raise ValueError(f"The metric {name!r} {' and '.join(problems)}.")


@dataclass(frozen=True)
class Entry:
    """One metric of a summary: its name, the parameters it was given, and its value."""

    name: str
    settings: dict[str, object]
    value: float

    @property
    def label(self) -> str:
        """The call that gives this value, such as ``precision_at(k=10)``."""
        if not self.settings:
            return self.name
        given = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.name}({given})"


@dataclass(frozen=True)
class Summary:
    """The metrics of one ranking; print it, or read ``summary["auc"]``.

    ``groups`` is the number of groups that the metrics at k and `top_is_positive` are the mean
    over, those with a positive; None if all rows were one list.
    """

    positives: float
    negatives: float
    entries: tuple[Entry, ...]
    groups: int | None = None

    def as_dict(self) -> dict[str, float]:
        """Return the values by label, such as ``"precision_at(k=10)"``."""
        return {entry.label: entry.value for entry in self.entries}

    def __getitem__(self, label: str) -> float:
        return self.as_dict()[label]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        width = max(len(entry.label) for entry in self.entries)
        head = f"{self.positives:g} positives, {self.negatives:g} negatives"
        if self.groups is not None:
            head += f"; first rows: mean over {self.groups} groups with a positive"
        lines = [f"{entry.label:<{width}}  {entry.value:>12.6g}" for entry in self.entries]
        return "\n".join([head, *lines])

    __repr__ = __str__


def summary(
    y_true: ArrayLike,
    y_score: ArrayLike,
    top: int | float | Sequence[int | float] = (0.01, 0.05, 0.1),
    *,
    p: float = 4.0,
    max_fpr: float = 0.1,
    theta: float = 0.0,
    alpha: float = 20.0,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> Summary:
    """Every metric of the order of the rows, from one sort; with groups, a second within them.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    top : int, float or sequence of them, default=(0.01, 0.05, 0.1)
        The k of the metrics at k: counts (int) or fractions (float).
    p : float, default=4.0
        Power of the normalised `pnorm_risk`.
    max_fpr : float, default=0.1
        False positive rate of `partial_auc` and `tpr_at_fpr`.
    theta : float, default=0.0
        Margin of `margin_error`.
    alpha : float, default=20.0
        Rate of decay of `bedroc`.
    groups : array-like of shape (n,), optional
        The list each row belongs to, as in `precision_at`. The metrics at k and
        `top_is_positive` are then means over the groups that have a positive; all others have
        no groups and still rank all rows as one list.

    Returns
    -------
    Summary
        Printed, a table; ``as_dict()`` gives the values by the call that computes each.

    Examples
    --------
    >>> from toprank.metrics import summary
    >>> result = summary([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], top=2)
    >>> result["auc"], result["precision_at(k=2)"]
    (0.8888888888888888, 1.0)
    >>> print(result)  # doctest: +ELLIPSIS
    3 positives, 3 negatives
    auc  ...
    """
    checked = check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity)
    rows = SortedOnce(checked)
    grouped = None
    if groups is not None:
        grouped = Lists.by_rows(*checked, group_codes(groups, len(checked[1])))
    cuts = np.atleast_1d(np.asarray(top, dtype=object)).tolist()
    plan: dict[str, list[dict[str, object]]] = {
        "partial_auc": [{"max_fpr": max_fpr}],
        "tpr_at_fpr": [{"fpr": max_fpr}],
        "misranking_error": [{}, {"ties": "error"}],
        "pnorm_risk": [{"p": p, "normalize": True}],
        "margin_error": [{"theta": theta}],
        "bedroc": [{"alpha": alpha}],
    }
    skew = Entry("f_skew", {}, _f_skew(rows))
    if theta == 0:  # every metric of the library reads the short list now
        rows.keep_short_only()
    entries = _entries(rows, grouped, plan, [{"k": k} for k in cuts])
    count = None if grouped is None else int(np.count_nonzero(grouped.positives))
    return Summary(rows.short.positives, rows.short.negatives, (*entries, skew), count)


def _f_skew(rows: SortedOnce) -> float:
    """`f_skew`, which the scores of all rows decide."""
    return f_skew_of(rows.full) if rows.classes is None else f_skew_of_sorted(rows.classes)


def _entries(
    rows: SortedOnce,
    grouped: Lists | None,
    plan: dict[str, list[dict[str, object]]],
    cuts: list[dict[str, object]],
) -> Iterator[Entry]:
    """The registered metrics that the rows determine, in the registry's order."""
    for name, metric in METRICS.items():
        by_function = metric.of_list is None and metric.each_list is None
        if by_function and not metric.summarize:
            continue
        for settings in cuts if metric.takes_k else plan.get(name, [dict(metric.settings)]):
            if by_function:
                value = _by_function(metric, rows.checked, settings)
            elif metric.reads_order_only(settings):
                lists = rows.short_lists if grouped is None else grouped
                value = metric.of(rows.short, lists, **settings)
            else:
                value = metric.of(rows.full, grouped, **settings)
            yield Entry(name, settings, value)


def _by_function(metric: Metric, rows: tuple[object, ...], settings: Mapping[str, object]) -> float:
    """Call the metric's function on the rows, which are copied to the host if need be."""
    on_host = (None if part is None else to_numpy(getattr(part, "tensor", part)) for part in rows)
    positive, scores, weight = on_host
    return float(metric.function(positive, scores, sample_weight=weight, **settings))
