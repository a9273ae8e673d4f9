"""The push against logistic regression on the MAGIC data: what `toprank demo` measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush
from toprank._arrays import Matrix
from toprank._numerics import FloatArray
from toprank.datasets import load_magic
from toprank.metrics import positives_at_top, precision_at

POWERS = (1, 2, 4, 8, 16, 64)
TOP = 0.01
MAX_FPR = 0.05
FOUND = 0.95
BASELINE = "logistic regression"
CLEAR = 0.9  # the share of splits that must agree for a change to be called clear


@dataclass(frozen=True)
class Measure:
    """A function of labels and scores, higher is better, and its name in the table."""

    name: str
    of: Callable[[ArrayLike, ArrayLike], float]
    percent: bool = False
    in_table: bool = True


def _negatives_at_bottom(y: ArrayLike, scores: ArrayLike) -> float:
    """Share of negatives ranked below `FOUND` of the positives: the other end of the list."""
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    return float(1 - fpr[np.argmax(tpr >= FOUND)])


MEASURES = (
    Measure(f"precision in the top {TOP:.0%}", lambda y, s: precision_at(y, s, TOP), True),
    Measure("positives above every negative", positives_at_top, True),
    Measure("partial AUC", lambda y, s: roc_auc_score(y, s, max_fpr=MAX_FPR)),
    Measure("AUC", roc_auc_score),
    Measure(
        f"negatives ranked below {FOUND:.0%} of the positives", _negatives_at_bottom, True, False
    ),
)


@dataclass(frozen=True)
class ModelResult:
    """One model over all splits: `values[m, r]` is measure m on split r; the mean ROC curve."""

    name: str
    p: float | None
    values: FloatArray
    fpr: FloatArray
    tpr: FloatArray

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.values.mean(axis=1))


@dataclass(frozen=True)
class Change:
    """A measure before and after; `direction` is +1 or -1 if nearly every split agrees, else 0."""

    measure: Measure
    before: float
    after: float
    direction: int


@dataclass(frozen=True)
class DemoResult:
    """Every model on the same splits, the baseline first."""

    models: tuple[ModelResult, ...]
    n_train: int
    n_test: int
    n_splits: int
    prevalence: float

    def changes(self) -> tuple[Change, ...]:
        """From the baseline to the strongest push, whatever the other rows say.

        The pair is fixed beforehand: the best of many rows on the test rows would flatter.
        """
        first, last = self.models[0], self.models[-1]
        directions = map(_direction, last.values - first.values)
        return tuple(map(Change, MEASURES, first.means, last.means, directions))


def run_demo(
    X: Matrix | None = None,
    y: Any = None,
    *,
    powers: Sequence[float] = POWERS,
    n_splits: int = 10,
    seed: int = 0,
    on_fit: Callable[[str, int, int], None] = lambda model, done, total: None,
) -> DemoResult:
    """Train logistic regression and the push on random splits, and measure the top of the list.

    Parameters
    ----------
    X, y : array-like, optional
        Features and labels; by default the MAGIC data.
    powers : sequence of float
        Values of p, ascending.
    n_splits : int, default=10
        Random stratified splits, two thirds to train on and one third to measure on.
    seed : int, default=0
        Seed of the splits.
    on_fit : callable
        Called before each fit with the model's name, the fits done and the fits to do.

    Returns
    -------
    DemoResult
        The measures of every model on every split, and their mean ROC curves.
    """
    if X is None:
        X, y = load_magic(return_X_y=True)
    pipelines = _pipelines(powers)
    values = np.empty((len(pipelines), len(MEASURES), n_splits))
    curves = np.zeros((len(pipelines), len(_FPR)))
    splitter = StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=seed)
    splits = list(splitter.split(X, y))
    for (r, (train, test)), (m, (name, pipeline)) in _product(splits, list(pipelines.items())):
        on_fit(name, r * len(pipelines) + m, n_splits * len(pipelines))
        scores = pipeline.fit(X[train], y[train]).decision_function(X[test])
        values[m, :, r] = [measure.of(y[test], scores) for measure in MEASURES]
        curves[m] += _tpr_at(_FPR, y[test], scores) / n_splits
    models = (
        ModelResult(name, p, values[m], _FPR, curves[m])
        for m, (name, p) in enumerate(zip(pipelines, (None, *powers), strict=True))
    )
    train, test = splits[0]
    return DemoResult(tuple(models), len(train), len(test), n_splits, float(np.mean(y)))


# Rates at which the ROC curves are averaged: finely at the top of the list.
_FPR = np.union1d(np.linspace(0, MAX_FPR, 251), np.linspace(0, 1, 201))


def _direction(differences: FloatArray) -> int:
    """The sign that at least `CLEAR` of the splits have, or 0."""
    return next((sign for sign in (1, -1) if np.mean(np.sign(differences) == sign) >= CLEAR), 0)


def _pipelines(powers: Sequence[float]) -> dict[str, Pipeline]:
    models = {BASELINE: LogisticRegression(max_iter=1000)}
    models |= {f"P-Norm Push, p = {p:g}": PNormPush(p=p) for p in powers}
    return {name: make_pipeline(StandardScaler(), model) for name, model in models.items()}


First = TypeVar("First")
Second = TypeVar("Second")


def _product(
    first: Sequence[First], second: Sequence[Second]
) -> Iterator[tuple[tuple[int, First], tuple[int, Second]]]:
    """Pairs of numbered items, the first running slower."""
    return ((a, b) for a in enumerate(first) for b in enumerate(second))


def _tpr_at(rates: FloatArray, y: ArrayLike, scores: FloatArray) -> FloatArray:
    """Share of positives found while at most these shares of the negatives are let through."""
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    return np.asarray(tpr[np.searchsorted(fpr, rates, side="right") - 1])
