"""Every metric from one sort, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.metrics._inputs import check_ranking
from toprank.metrics.lists import Lists, group_codes
from toprank.metrics.margins import f_skew_of
from toprank.metrics.metric import Metric
from toprank.metrics.order import RankedList
from toprank.metrics.registry import METRICS
from toprank.pairs import to_numpy


@dataclass(frozen=True)
class Entry:
    """One metric of a summary: its name, the parameters it was given, and its value."""

    name: str
    settings: dict[str, Any]
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
    pos_label: Any = None,
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
    ranked = RankedList.ranked(*checked)
    lists = (
        Lists.of_one(ranked)
        if groups is None
        else Lists.by_rows(*checked, group_codes(groups, len(checked[1])))
    )
    cuts = np.atleast_1d(np.asarray(top, dtype=object)).tolist()
    plan: dict[str, list[dict[str, Any]]] = {
        "partial_auc": [{"max_fpr": max_fpr}],
        "tpr_at_fpr": [{"fpr": max_fpr}],
        "misranking_error": [{}, {"ties": "error"}],
        "pnorm_risk": [{"p": p, "normalize": True}],
        "margin_error": [{"theta": theta}],
        "bedroc": [{"alpha": alpha}],
    }
    entries = _entries(ranked, lists, checked, plan, [{"k": k} for k in cuts])
    skew = Entry("f_skew", {}, f_skew_of(ranked))
    count = None if groups is None else int(np.count_nonzero(lists.positives))
    return Summary(ranked.positives, ranked.negatives, (*entries, skew), count)


def _entries(
    ranked: RankedList,
    lists: Lists,
    rows: tuple[Any, ...],
    plan: dict[str, list[dict[str, Any]]],
    cuts: list[dict[str, Any]],
) -> Iterator[Entry]:
    """The registered metrics that the rows determine, in the registry's order."""
    for name, metric in METRICS.items():
        by_function = metric.of_list is None and metric.each_list is None
        if by_function and not metric.summarize:
            continue
        for settings in cuts if metric.takes_k else plan.get(name, [dict(metric.settings)]):
            if by_function:
                value = _by_function(metric, rows, settings)
            else:
                value = metric.of(ranked, lists, **settings)
            yield Entry(name, settings, value)


def _by_function(metric: Metric, rows: tuple[Any, ...], settings: dict[str, Any]) -> float:
    """Call the metric's function on the rows, which are copied to the host if need be."""
    on_host = (None if part is None else to_numpy(getattr(part, "tensor", part)) for part in rows)
    positive, scores, weight = on_host
    return float(metric.function(positive, scores, sample_weight=weight, **settings))
