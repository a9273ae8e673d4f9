"""Early stopping: a metric of rows set apart, round by round."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.metrics.registry import get_metric
from toprank.pair_sums import concordance
from toprank.rankers.boosting.data import RankingData
from toprank.rankers.boosting.rounds import Ensemble


class EarlyStopping:
    """Follows the scores of rows set apart and says when they have stopped improving.

    Parameters
    ----------
    data : RankingData
        The rows set apart.
    scoring : str, callable or None
        Name of a metric of `toprank.metrics`, or a function of (labels, scores) that is larger
        when better; None is the share of the crucial pairs in order.
    patience : int
        Rounds without improvement after which to stop.
    said : callable
        What a round's choice says of those rows, for a step of one.
    """

    def __init__(
        self,
        data: RankingData,
        scoring: Any,
        patience: int,
        said: Callable[[Any], FloatArray],
    ):
        self.data, self.patience, self.said = data, patience, said
        self.scores = np.zeros(len(data.Z))
        self.values: list[float] = []
        self.best_round = 0
        self._best = -np.inf
        self.scoring = scoring
        self._measure = self._measure_of(scoring)

    def _measure_of(self, scoring: Any) -> Any:
        data = self.data
        if scoring is None:
            try:
                relation = data.relation()
            except ValueError:
                raise ValueError(
                    "The rows set apart for validation hold no crucial pair. Raise "
                    "validation_fraction, or use n_iter_no_change=None."
                ) from None
            return lambda scores: concordance(relation, scores, data.weight)
        if hasattr(scoring, "_score_func"):
            raise ValueError(
                "scoring is a scikit-learn scorer, which needs an estimator; expected a function "
                "of (labels, scores), for example functools.partial(precision_at, k=50)."
            )
        if data.labels is None:
            raise ValueError(
                "scoring measures labels, and there is no y. Give y beside pairs, or scoring=None: "
                "the share of the pairs in order."
            )
        if callable(scoring):
            return lambda scores: float(scoring(data.labels, scores))
        metric = get_metric(scoring)
        settings = dict(metric.settings)
        if data.groups is not None and "groups" in inspect.signature(metric.function).parameters:
            settings["groups"] = data.groups
        sign = 1.0 if metric.higher_is_better else -1.0
        return lambda scores: (
            sign * metric.function(data.labels, scores, sample_weight=data.weight, **settings)
        )

    def seen(self, ensemble: Ensemble) -> bool:
        """Follow the last round; return whether to stop."""
        self.scores += ensemble.steps[-1] * self.said(ensemble.choices[-1])
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

    def kept(self, ensemble: Ensemble) -> Ensemble:
        """Return the rounds up to the best."""
        best = ensemble.first(self.best_round)
        if self.best_round < len(ensemble.steps):
            best.message = f"the rows set apart were ranked best after round {self.best_round}"
        return best
