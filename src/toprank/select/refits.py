"""Models that other training rows, drawn like these, might have given.

Linear rankers under the P-Norm Push with the exponential loss need no refit: to first order, a row
that counts a little more moves the coefficients by its influence,

    - H^-1 g_i,   g_i = -q_i (x_i - mean_q)  or  r_k (x_k - mean_r),   H = Cov_q + p Cov_r + alpha I

where q and r are the objective's own weights of the positives (softmax of -f) and of the negatives
(softmax of p f). The sum of the influences' squares is the covariance of the infinitesimal
jackknife. Linear rankers with other smooth losses take one Newton step per draw of random weights
(gamma variables of mean one per row: the Bayesian bootstrap) from where they are, with the Hessian
that they have there: a pass over the rows, not a fit. Where a few rows carry all of the weight, as
with a large p, the first order is not enough; then, and for every other ranker, the model is fitted
again to rows with such weights, from where the last fit ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import Matrix, TableLike
from toprank._numerics import FloatArray, softmax
from toprank.blocks.memory import ArraySource
from toprank.folds import WeightedFit
from toprank.objective import Task
from toprank.pairs import Rows, check_labels, check_rows, check_weights, split_classes
from toprank.pairs.propensity import label_weights
from toprank.prices import Power
from toprank.rankers.base import LinearRanker
from toprank.rankers.minimiser import overflow_is_handled
from toprank.select.calibration import score_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank._arrays import RandomState
    from toprank.objective.risk import PointwiseTask

#: Rows that must carry the weight of a class for the first order to be enough.
_ENOUGH = 30
#: Models where refits are cheap, where each is a pass over the rows, and where each is a fit.
_MANY, _STEPS, _SOME = 400, 32, 50
METHODS = ("auto", "jackknife", "bootstrap")

Progress = Callable[[str, float, float | None], None]


class Refits:
    """Scores of new rows by models of other training rows.

    Attributes
    ----------
    n : int
        How many models there are.
    method : str
        "jackknife", "one-step bootstrap" or "bootstrap".
    """

    def __init__(self, models: list[Callable[[Matrix], FloatArray]] | FloatArray, method: str):
        self._models = models
        self.method = method
        self.n = len(models)

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        X: TableLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
        n_refits: int | None = None,
        n_fits: int = _SOME,
        method: str = "auto",
        random_state: RandomState = 0,
        progress: Progress | None = None,
    ) -> Refits:
        """Find models that might have come of other rows; parameters as in `membership`.

        ``n_fits`` is how many there are by default where each must be fitted.
        """
        if method not in METHODS:
            raise ValueError(f"method={method!r}: expected one of {list(METHODS)}.")
        draw = np.random.default_rng(random_state)
        if method != "bootstrap":
            spread = _spread_of_coefficients(estimator, X, y, sample_weight, label_propensity)
            if isinstance(spread, str):
                if method == "jackknife":
                    raise ValueError(f"method='jackknife' cannot be used here: {spread}")
            else:
                noise = draw.standard_normal((n_refits or _MANY, len(spread)))
                return cls(estimator.coef_[0] + noise @ spread, "jackknife")
        weights = (sample_weight, label_propensity)
        if method == "auto":
            number = n_refits or min(n_fits, _STEPS)
            steps = _one_step(estimator, X, y, *weights, number, draw, progress)
            if steps is not None:
                return cls(steps, "one-step bootstrap")
        models = _bootstrap(estimator, X, y, *weights, n_refits or n_fits, draw, progress)
        return cls(models, "bootstrap")

    def scores(self, X: TableLike, which: slice = slice(None)) -> FloatArray:
        """Return the scores of rows, up to a constant for each model: one line per model."""
        models = self._models[which]
        if isinstance(models, list):
            return np.stack([score(X) for score in models])
        return np.asarray(models @ np.asarray(X, dtype=np.float64).T)


def _spread_of_coefficients(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None = None,
) -> FloatArray | str:
    """A root of the coefficients' covariance, its rows to be added; or why there is none."""
    if not isinstance(estimator, LinearRanker) or not hasattr(estimator, "coef_"):
        return "it is for fitted linear rankers."
    task: Any = estimator._task()
    if not _has_closed_form(task):
        return "it is for the power price with a finite p, the exponential loss and end='top'."
    if issparse(X):
        return "X is sparse."
    if estimator.positive:
        return "coefficients with bounds do not move freely."
    rows, _ = check_rows(clone(estimator), X, y, sample_weight, sparse=False)
    own, counts = _weights(len(rows), rows.weight, label_propensity)
    there = np.flatnonzero(counts)
    rows, counts = replace(rows, weight=own).take(there), counts[there]
    found, effective = influences(rows, estimator.coef_[0], float(task.p), estimator.alpha)
    if effective < _ENOUGH:
        return f"fewer than {_ENOUGH} rows carry the weight of a class."
    # a row that is there w times is w rows, and each of them varies by itself
    return _root(found / np.sqrt(counts)[:, None])


def _weights(
    n: int, sample_weight: ArrayLike | None, label_propensity: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """The weights of a fit, and how often each row is there: a propensity repeats no row."""
    counts = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    if label_propensity is None:
        return counts, counts
    return label_weights(label_propensity, counts, n=n).weight, counts


def _has_closed_form(task: PointwiseTask | Task) -> bool:
    """Whether the objective is the power price of exponential heights, at the top of the list."""
    if not isinstance(task, Task) or not isinstance(task.price, Power):
        return False
    factorises = getattr(task.loss, "factorises", False)
    return bool(factorises and task.end == "top" and np.isfinite(task.p))


def influences(rows: Rows, coef: FloatArray, p: float, alpha: float) -> tuple[FloatArray, float]:
    """How far a relative change of each row's weight moves the coefficients, to first order.

    And the number of rows that carry the weight of the class where fewer do.
    """
    table = np.asarray(rows.X, dtype=np.float64)
    weight = np.ones(len(table)) if rows.weight is None else rows.weight
    curvature, pushes = alpha * np.eye(table.shape[1]), np.empty_like(table)
    effective = np.inf
    for members, slope in ((rows.y, -1.0), (~rows.y, p)):
        part, counts = table[members], weight[members]
        share = softmax(slope * (part @ coef) + np.log(counts))
        effective = min(effective, 1 / float(np.sum(share**2 / counts)))
        centred = part - share @ part
        curvature += abs(slope) * (centred.T * share) @ centred
        pushes[members] = -np.sign(slope) * share[:, None] * centred
    return np.asarray(np.linalg.solve(curvature, pushes.T).T), effective


def _root(pushes: FloatArray) -> FloatArray:
    """A square matrix with the same covariance as many rows."""
    values, vectors = np.linalg.eigh(pushes.T @ pushes)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def _one_step(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
    n_refits: int,
    draw: np.random.Generator,
    progress: Progress | None,
) -> list[Callable[[Matrix], FloatArray]] | None:
    """Linear scores after one Newton step to rows with random weights; None where that is off."""
    if not isinstance(estimator, LinearRanker) or not hasattr(estimator, "coef_"):
        return None
    if estimator.positive:
        return None
    rows, _ = check_rows(clone(estimator), X, y, sample_weight, sparse=True)
    own, counts = _weights(len(rows), rows.weight, label_propensity)
    task = estimator._task()

    def problem_with(weight: FloatArray) -> Any:
        source = ArraySource(rows.X, rows.y, weight, None, estimator.n_jobs, checked=True)
        return estimator.problem_on(source, task)

    with overflow_is_handled():
        whole = problem_with(own)
        if not (whole.smooth and whole.has_curvature and whole.size <= whole.newton_up_to):
            return None
        at = estimator._point(whole)
        if _carriers(whole.row_slopes(at), rows.y) < _ENOUGH:
            return None
        curvature = np.linalg.cholesky(whole.hessian(at))
        each = own / np.where(counts > 0, counts, 1.0)
        models = []
        for done in range(n_refits):
            weight = draw.gamma(np.where(counts > 0, counts, 1.0)) * (counts > 0) * each
            slope = problem_with(weight).value_grad(at)[1]
            step = np.linalg.solve(curvature.T, np.linalg.solve(curvature, slope))
            models.append(_linear_score((at - step)[: rows.X.shape[1]]))
            if progress is not None:
                progress("Fitting again", done + 1, n_refits)
    return models


def _carriers(slopes: FloatArray, positive: NDArray[np.bool_]) -> float:
    """How many rows carry the gradient, in the class where fewer do."""
    parts = (np.abs(slopes[positive]), np.abs(slopes[~positive]))
    return min(float(np.sum(part)) ** 2 / float(np.sum(part**2)) for part in parts)


def _bootstrap(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
    n_refits: int,
    draw: np.random.Generator,
    progress: Progress | None,
) -> list[Callable[[Matrix], FloatArray]]:
    rows = Rows(X, np.asarray(y))
    own, counts = _weights(len(rows.y), sample_weight, label_propensity)
    each = own / np.where(counts > 0, counts, 1.0)
    fit = WeightedFit(estimator, None, True)
    warm = isinstance(estimator, LinearRanker)
    models: list[Callable[[Matrix], FloatArray]] = []
    moving = clone(estimator).set_params(warm_start=True) if warm else None
    if moving is not None and hasattr(estimator, "coef_"):
        moving.coef_ = estimator.coef_.copy()
        moving.intercept_ = estimator.intercept_.copy()
    for done in range(n_refits):
        weight = draw.gamma(np.where(counts > 0, counts, 1.0)) * (counts > 0) * each
        if moving is not None:
            moving.fit(X, y, sample_weight=weight)
            models.append(_linear_score(moving.coef_[0].copy()))
        else:
            models.append(partial(score_rows, fit.fit(Rows(X, rows.y, weight))))
        if progress is not None:
            progress("Fitting again", done + 1, n_refits)
    return models


def _linear_score(coef: FloatArray) -> Callable[[Matrix], FloatArray]:
    return lambda X: np.asarray(X @ coef, dtype=np.float64)


def fit_if_needed(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None = None,
) -> BaseEstimator:
    """Return the estimator fitted: as it is, or a clone fitted to the rows."""
    try:
        check_is_fitted(estimator)
    except (TypeError, ValueError, AttributeError):
        weight = None if sample_weight is None else check_counts_of(y, sample_weight)
        if label_propensity is not None:
            weight = _weights(len(np.asarray(y)), weight, label_propensity)[0]
        return WeightedFit(estimator, None, weight is not None).fit(Rows(X, np.asarray(y), weight))
    return estimator


def check_counts_of(y: ArrayLike, sample_weight: ArrayLike | None) -> NDArray[np.float64] | None:
    """The weights of rows of two classes, checked."""
    return check_weights(split_classes(check_labels(y))[1], sample_weight)
