"""By which metric trees stop growing, and what to say of a list whose first rows tie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.folds import Scoring
from toprank.metrics.registry import get_metric
from toprank.rankers.held_out import TopMetric
from toprank.rankers.trees.plan import TreeRows

#: Rounds that are kept at least where "auto" has chosen what to stop by.
FEWEST_ROUNDS = 20


@dataclass(frozen=True)
class StoppingRule:
    """The metric that rounds stop by, its parameters, and how many rounds are kept at least."""

    metric: str | Callable[..., float]
    settings: Mapping[str, object] | None
    least: int = 1

    @classmethod
    def of(cls, trees: Any, *, grouped: bool) -> StoppingRule:
        """Return the rule of an estimator, for rows with groups or without."""
        if trees.stop_by != "auto":
            own = trees.metric_kwargs if trees.stop_by == trees.metric else None
            return cls(trees.stop_by, own)
        return cls.by_metric(trees, grouped=grouped)

    @classmethod
    def by_metric(cls, trees: Any, *, grouped: bool) -> StoppingRule:
        """Return what an estimator's ``metric`` stands for: itself, if all positives move it."""
        metric, settings = trees.metric, trees.metric_kwargs
        if callable(metric) or not get_metric(metric).takes_k:
            return cls(metric, settings)
        # the user's metric moves in steps; these two see every positive, the second in its group
        if grouped:
            return cls("ndcg_at", {"k": 1.0}, FEWEST_ROUNDS)
        return cls("average_precision", None, FEWEST_ROUNDS)

    def steadied(self) -> StoppingRule:
        """Return the rule by a form of its metric that hangs on no single row, if it has one."""
        if callable(self.metric):
            return self
        steadier = get_metric(self.metric).steadier
        return replace(self, settings={**steadier, **(self.settings or {})}) if steadier else self

    @property
    def label(self) -> str:
        """What the metric is called, with its parameters."""
        if callable(self.metric):
            return self.name
        return Scoring(self.metric, self.settings).label

    @property
    def name(self) -> str:
        """What the metric is called."""
        if callable(self.metric):
            return str(getattr(self.metric, "__name__", type(self.metric).__name__))
        return str(self.metric)

    def measure(self, rows: TreeRows) -> TopMetric:
        """Return the metric of held-out rows."""
        return TopMetric(self.metric, self.settings, rows)


def cares_for_ties(trees: Any) -> bool:
    """Whether someone has said that the first rows matter, or rows were held out for it."""
    return hasattr(trees, "validation_scores_") or "k" in (trees.metric_kwargs or {})


def tied_top_notes(trees: object, scores: FloatArray, rows: TreeRows) -> list[str]:
    """Return what to say where the first k rows of a list tie, and are of both classes.

    Nothing where nobody has said that the first rows matter, and no rows were held out for it.
    """
    if not cares_for_ties(trees) or rows.groups is not None or len(scores) == 0:
        return []
    k = _top_length(trees, len(scores))
    first = scores == np.max(scores)
    tied = int(np.count_nonzero(first))
    if tied < max(k, 2) or np.all(rows.y[first]):
        return []
    return [
        f"{tied} of {len(scores)} rows share the highest score, {int(np.sum(rows.y[first]))} of "
        f"them positive: among the first {k} the order is arbitrary. Grow more trees "
        "(n_estimators, n_iter_no_change), or larger ones (max_leaves, min_child_weight)."
    ]


def _top_length(trees: Any, n: int) -> int:
    """How many rows the user looks at: the k of the metric, or a tenth."""
    k = (trees.metric_kwargs or {}).get("k", 0.1)
    k = max(k) if np.ndim(k) else k
    return max(1, round(k * n) if isinstance(k, float) and k <= 1 else int(k))
