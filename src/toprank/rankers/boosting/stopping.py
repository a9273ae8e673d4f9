"""Early stopping: rows set apart, and a metric of them round by round."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.metrics.registry import get_metric
from toprank.pair_sums import concordance
from toprank.pairs import IntArray, RelatedRows
from toprank.rankers.boosting.rounds import Ensemble


def set_apart(
    rows: RelatedRows, fraction: float, random_state: np.random.RandomState
) -> tuple[RelatedRows, RelatedRows]:
    """Split the rows for validation: whole groups, or a share of each class, or of all rows."""
    apart = np.zeros(len(rows), dtype=bool)
    if rows.groups is not None:
        names, group = np.unique(rows.groups, return_inverse=True)
        apart = np.isin(group.reshape(-1), _draw(np.arange(len(names)), fraction, random_state))
    elif rows.is_bipartite:
        for members in (np.flatnonzero(rows.y), np.flatnonzero(~rows.y)):
            apart[_draw(members, fraction, random_state)] = True
    else:
        apart[_draw(np.arange(len(rows)), fraction, random_state)] = True
    return rows.take(~apart), rows.take(apart)


def _draw(members: IntArray, fraction: float, random_state: np.random.RandomState) -> IntArray:
    """A share of the members, at least one, and not all."""
    if len(members) < 2:
        raise ValueError(
            "n_iter_no_change sets rows of each class (whole groups, where there are groups) apart "
            "for validation, but a class, or the table, has only one. Use n_iter_no_change=None."
        )
    count = min(max(1, round(fraction * len(members))), len(members) - 1)
    return random_state.permutation(members)[:count]


class EarlyStopping:
    """Follows the scores of rows set apart and says when they have stopped improving.

    Parameters
    ----------
    rows : RelatedRows
        The rows set apart.
    scoring : str, callable or None
        Name of a metric of `toprank.metrics`, or a function of (labels, scores) that is larger
        when better; None is the share of the crucial pairs in order.
    patience : int
        Rounds without improvement after which to stop.
    outputs : callable
        What a round's choice adds to the scores of those rows, for a step of one.
    """

    def __init__(
        self,
        rows: RelatedRows,
        scoring: Any,
        patience: int,
        outputs: Callable[[Any], FloatArray],
    ):
        self.rows, self.patience, self.outputs = rows, patience, outputs
        self.scores = np.zeros(len(rows))
        self.values: list[float] = []
        self.best_round = 0
        self._best = -np.inf
        self.scoring = scoring
        self._measure = _pairs_in_order(rows) if scoring is None else _measure(rows, scoring)

    def should_stop(self, ensemble: Ensemble) -> bool:
        """Measure the last round; return whether to stop."""
        self.scores += ensemble.steps[-1] * self.outputs(ensemble.choices[-1])
        value = float(self._measure(self.scores))
        if np.isnan(value):
            raise ValueError(
                f"scoring={self.scoring!r} is NaN on the {len(self.scores)} rows set apart after "
                f"round {len(self.values) + 1}; expected a number, larger when better."
            )
        self.values.append(value)
        if value > self._best:
            self._best, self.best_round = value, len(self.values)
        return len(self.values) - self.best_round >= self.patience

    def best_rounds(self, ensemble: Ensemble) -> Ensemble:
        """Return the rounds up to the best."""
        best = ensemble.first(self.best_round)
        if self.best_round < len(ensemble.steps):
            best.message = f"the rows set apart were ranked best after round {self.best_round}"
        return best


def _pairs_in_order(rows: RelatedRows) -> Callable[[FloatArray], float]:
    """The share of the crucial pairs in order; for two classes that is the AUC."""
    if rows.is_bipartite:
        return _measure(rows, "auc")
    try:
        relation = rows.relation()
    except ValueError:
        raise ValueError(
            "The rows set apart for validation hold no crucial pair. Raise validation_fraction, or "
            "use n_iter_no_change=None."
        ) from None
    return lambda scores: concordance(relation, scores, rows.weight)


def _measure(rows: RelatedRows, scoring: Any) -> Callable[[FloatArray], float]:
    """A metric by its name, or a user's function of (labels, scores); larger is better."""
    if hasattr(scoring, "_score_func"):
        raise ValueError(
            "scoring is a scikit-learn scorer, which needs an estimator; expected a function "
            "of (labels, scores), for example functools.partial(precision_at, k=50)."
        )
    if rows.y is None:
        raise ValueError(
            "scoring measures labels, and there is no y. Give y beside pairs, or scoring=None: "
            "the share of the pairs in order."
        )
    if callable(scoring):
        return lambda scores: float(scoring(rows.y, scores))
    metric = get_metric(scoring)
    settings = dict(metric.settings)
    if rows.groups is not None and "groups" in inspect.signature(metric.function).parameters:
        settings["groups"] = rows.groups
    sign = 1.0 if metric.higher_is_better else -1.0
    return lambda scores: (
        sign * metric.function(rows.y, scores, sample_weight=rows.weight, **settings)
    )
