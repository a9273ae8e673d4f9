"""Settings compared on the same folds: every one is fitted and scored on each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from toprank.blocks import Workers, go_on
from toprank.folds.choice import Candidate, PChoice
from toprank.folds.scoring import Scoring
from toprank.folds.splits import Fold
from toprank.pairs import Rows


def compare_settings(
    candidates: Sequence[Candidate],
    models: Sequence[Any],
    rows: Rows,
    folds: Sequence[Fold],
    score: Scoring,
    *,
    rule: str = "best",
    level: float = 0.95,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> PChoice:
    """Fit and score every model on every fold, and return the choice between them.

    Parameters
    ----------
    candidates : sequence of Candidate
        What is tried, from the weakest push to the strongest.
    models : sequence of estimators
        The unfitted estimator of each.
    rows : Rows
        With the labels as the estimators should see them.
    folds : sequence of (train, test)
    score : Scoring
    rule, level
        As in `PChoice`.
    fit_params : mapping, optional
        Further arguments of ``fit``, handed on whole.
    n_jobs : int, optional
        Folds at a time, in threads.
    """
    fits = [_Fit(model, fit_params, rows.weight is not None) for model in models]
    workers = Workers(n_jobs)
    with workers.running():
        columns = list(workers.map(lambda fold: _score_fold(fits, rows, fold, score), folds))
    overlap = tested_over_trained(folds)
    return PChoice(tuple(candidates), np.column_stack(columns), score.label, rule, overlap, level)


def tested_over_trained(folds: Sequence[Fold]) -> float:
    """Rows tested over rows trained on, in the mean over the folds."""
    return float(np.mean([len(test) / len(train) for train, test in folds]))


class _Fit:
    """An estimator, and how it is told the weights."""

    def __init__(self, estimator: Any, fit_params: Mapping[str, Any] | None, weighted: bool):
        self.estimator = estimator
        self.params = dict(fit_params or {})
        self.weight_name = "sample_weight"
        if isinstance(estimator, Pipeline) and weighted:
            self.weight_name = f"{estimator.steps[-1][0]}__sample_weight"

    def fit(self, rows: Rows) -> Any:
        weighted = {} if rows.weight is None else {self.weight_name: rows.weight}
        return clone(self.estimator).fit(rows.X, rows.y, **weighted, **self.params)


def _score_fold(fits: Sequence[_Fit], rows: Rows, fold: Fold, score: Scoring) -> list[float]:
    train, test = (rows.take(part) for part in fold)
    scores = []
    for fit in fits:
        go_on()
        scores.append(score.of_estimator(fit.fit(train), test.X, test.y, test.weight))
    return scores
