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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.metrics import at_k, margins, push, retrieval, risk, roc, value
from toprank.metrics.cuts import Lists
from toprank.metrics.order import RankedList

LOWER = "lower"
LOWER_AT_RANDOM = "lower if labelled at random"
UPPER_AT_RANDOM = "upper if labelled at random"
SAME_AT_RANDOM = "same if labelled at random"
NEITHER = "neither"


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    function : callable
        ``function(y_true, y_score, ...)``.
    higher_is_better : bool
        Whether a better ranking has the larger value.
    when_unlabelled : str
        What the value bounds if the negatives are merely unlabelled.
    of_list : callable, optional
        The same metric of a `RankedList`, for those that have ranked the rows already.
    each_list : callable, optional
        The metric of each of the `Lists` that has a positive; the metric is their mean.
    settings : mapping
        Values for the parameters that have no default, as `summary` uses them.
    """

    function: Callable[..., float]
    higher_is_better: bool
    when_unlabelled: str
    of_list: Callable[..., float] | None = None
    each_list: Callable[..., FloatArray] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def takes_k(self) -> bool:
        """Whether the metric reads the first k rows."""
        return "k" in self.settings

    def of(self, ranked: RankedList, lists: Lists, **settings: Any) -> float:
        """Evaluate on rows ranked already; `lists` holds the ties of `ranked`."""
        settings = {**self.settings, **settings}
        if self.of_list is not None:
            return self.of_list(ranked, **settings)
        if self.each_list is not None:
            return float(np.mean(self.each_list(lists, **settings)))
        raise TypeError(f"{self.name} needs more than the order of the rows.")


_AT_K = {"k": 0.1}
_ALL = (
    Metric(roc.auc, True, LOWER_AT_RANDOM, roc.auc_of),
    Metric(roc.partial_auc, True, LOWER_AT_RANDOM, roc.partial_auc_of),
    Metric(roc.misranking_error, False, UPPER_AT_RANDOM, roc.misranking_error_of),
    Metric(roc.tpr_at_fpr, True, LOWER_AT_RANDOM, roc.tpr_at_fpr_of, settings={"fpr": 0.1}),
    Metric(risk.ranking_risk, False, NEITHER, risk.ranking_risk_of),
    Metric(push.pnorm_risk, False, NEITHER, push.pnorm_risk_of, settings={"p": 4.0}),
    Metric(push.max_height, False, NEITHER, push.max_height_of),
    Metric(push.push_risk, False, NEITHER),
    Metric(at_k.positives_at_top, True, LOWER_AT_RANDOM, at_k.positives_at_top_of),
    Metric(at_k.top_is_positive, True, LOWER, each_list=at_k.top_is_positive_each),
    Metric(at_k.precision_at, True, LOWER, None, at_k.precision_at_each, _AT_K),
    Metric(at_k.recall_at, True, SAME_AT_RANDOM, None, at_k.recall_at_each, _AT_K),
    Metric(at_k.lift_at, True, SAME_AT_RANDOM, None, at_k.lift_at_each, _AT_K),
    Metric(at_k.enrichment_factor, True, SAME_AT_RANDOM, None, at_k.enrichment_factor_each, _AT_K),
    Metric(at_k.ndcg_at, True, NEITHER, None, at_k.ndcg_at_each, _AT_K),
    Metric(retrieval.average_precision, True, LOWER_AT_RANDOM, retrieval.average_precision_of),
    Metric(retrieval.bedroc, True, NEITHER, retrieval.bedroc_of),
    Metric(retrieval.dcg, True, LOWER, retrieval.dcg_of),
    Metric(retrieval.aver, True, LOWER, retrieval.aver_of),
    Metric(margins.ranking_margin, True, NEITHER, margins.ranking_margin_of),
    Metric(margins.margin_error, False, NEITHER, margins.margin_error_of, settings={"theta": 0.0}),
    Metric(value.value_at, True, LOWER, settings=_AT_K),
)

#: The metrics by name. `f_skew` is left out: it has no better direction.
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def get_metric(name: str) -> Metric:
    """Return the registered metric, or raise ValueError naming those there are."""
    if name not in METRICS:
        raise ValueError(f"Unknown metric {name!r}: expected one of {sorted(METRICS)}.")
    return METRICS[name]
