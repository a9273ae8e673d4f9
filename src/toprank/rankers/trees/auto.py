"""p="auto": every p and the library's binary objective on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing

from toprank._arrays import FloatArray, TableLike
from toprank.folds import (
    Candidate,
    PChoice,
    Scoring,
    check_powers,
    compare_settings,
    folds_of,
)
from toprank.pairs import Rows
from toprank.rankers.callbacks import without_callbacks
from toprank.rankers.held_out import TopMetric
from toprank.rankers.trees.libraries import bins_once
from toprank.rankers.trees.plan import TreeRows


class RowTable:
    """Everything that belongs to the rows, so that folds can be taken by row number."""

    def __init__(self, X: TableLike, fit_params: Mapping[str, object], init_model: object):
        self.X = X
        self.fit_params = fit_params
        self.init_model = init_model

    def __deepcopy__(self, memo: object) -> RowTable:
        return self  # scikit-learn's clone copies parameters; data and a fitted model are none

    def part(self, rows: object) -> tuple[Any, dict[str, np.ndarray]]:
        """Return X and the parameters of fit for some of the rows."""
        numbers = np.asarray(rows)[:, 0]
        given = {name: np.asarray(values)[numbers] for name, values in self.fit_params.items()}
        return _safe_indexing(self.X, numbers), given


class TreesByRow(ClassifierMixin, BaseEstimator):
    """Trees fitted by row number: groups and starting scores go with their rows."""

    def __init__(self, p: object, trees: object, rows: RowTable):
        self.p = p
        self.trees = trees
        self.rows = rows

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        Z, given = self.rows.part(X)
        trees = clone(self.trees).set_params(p=self.p)
        self.trees_ = trees.fit(Z, y, sample_weight, init_model=self.rows.init_model, **given)
        self.classes_ = self.trees_.classes_
        return self

    def decision_function(self, X: TableLike) -> FloatArray:
        Z, given = self.rows.part(X)
        return self.trees_.decision_function(Z, init_score=given.get("init_score"))


def _scorer(trees: Any) -> Callable[..., float]:
    def top_metric(
        estimator: BaseEstimator, X: object, y: object, sample_weight: FloatArray | None = None
    ) -> float:
        groups = estimator.rows.part(X)[1].get("groups")
        codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
        positive = np.asarray(y == estimator.classes_[1])
        rows = TreeRows(np.empty((len(positive), 0)), positive, sample_weight, codes)
        measure = TopMetric(trees.metric, trees.metric_kwargs, rows)
        return measure(estimator.decision_function(X))

    return top_metric


def choose_power(
    trees: Any,
    X: TableLike,
    y: np.ndarray,
    sample_weight: FloatArray | None,
    fit_params: Mapping[str, ArrayLike | None],
    init_model: BaseEstimator | None,
) -> PChoice:
    """Compare every p of ``trees.ps`` and the binary objective by cross-validation."""
    own = RowTable(X, fit_params, init_model)
    # the folds compare rankings, which no link changes
    template = without_callbacks(clone(trees)).set_params(p=4.0, calibration="training")
    powers = check_powers(trees.ps)
    candidates = [Candidate("the binary objective", None, pushes=False)]
    candidates += [Candidate(f"p = {p:g}", p) for p in powers]
    models = [TreesByRow(p, template, own) for p in (None, *powers)]
    groups = fit_params.get("groups")
    score = Scoring(trees.metric, trees.metric_kwargs)
    if groups is not None or callable(trees.metric):
        # groups decide the folds, and a scorer of our own measures within them
        score = Scoring(_scorer(trees))
    rows = Rows(np.arange(len(y))[:, None], y, sample_weight)
    folds = folds_of(trees.cv, y, groups=groups, weight=sample_weight)
    with bins_once():
        return compare_settings(candidates, models, rows, folds, score, rule=trees.rule)
