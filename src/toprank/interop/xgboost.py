"""The push in XGBoost: an objective and metrics, in its native and its scikit-learn interface.

    xgboost.train({"base_score": 0.0}, data, obj=push_objective(p=4.0),
                  custom_metric=(metric := push_metric("recall_at", k=100)),
                  evals=[(held_out, "held out")], callbacks=[early_stopping(metric, rounds=20)])
    xgboost.XGBClassifier(objective=push_objective(p=4.0), base_score=0.5,
                  eval_metric=metric, callbacks=[early_stopping(metric, rounds=20)])

XGBoost guesses from the first letters of a metric's name whether larger is better (it would
minimise "recall_at"): `early_stopping` says so instead. XGBClassifier keeps the logistic link,
so ``predict_proba`` is sigmoid(score): right in order, not in level.

Inside XGBoost's communicator, as in ``xgboost.dask.train``, objective and metrics are those of the
rows of all workers, exactly (`toprank.interop.team`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank.interop.boosting import PushGradients, PushMetric
from toprank.interop.team import Team, xgboost_team

if TYPE_CHECKING:
    from xgboost import DMatrix
    from xgboost.callback import EarlyStopping


class _XGBoostObjective(PushGradients):
    """Called as f(scores, DMatrix) or as f(labels, scores, sample_weight=...)."""

    def _team(self) -> Team:
        return xgboost_team()

    def __call__(
        self, a: AnyArray, b: AnyArray | DMatrix, sample_weight: AnyArray | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.at(*_matrix_columns(a, b, sample_weight))


class _XGBoostMetric(PushMetric):
    """f(scores, DMatrix) -> (name, value); f(labels, scores, sample_weight=...) -> value."""

    def _team(self) -> Team:
        return xgboost_team()

    def __call__(
        self, a: AnyArray, b: AnyArray | DMatrix, sample_weight: AnyArray | None = None
    ) -> tuple[str, float] | float:
        value = self.of(*_matrix_columns(a, b, sample_weight))
        return (self.label, value) if hasattr(b, "get_label") else value


def _matrix_columns(
    a: AnyArray, b: Any, weight: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray | None, AnyArray | None]:
    """Return labels, scores, weights and group sizes, however they came."""
    if not hasattr(b, "get_label"):
        return np.asarray(a), b, weight, None
    weight, group = b.get_weight(), np.diff(b.get_uint_info("group_ptr").astype(np.intp))
    return b.get_label(), a, weight if weight.size else None, group if group.size else None


def push_objective(
    p: float = 4.0,
    *,
    price: object = "power",
    loss: object = "exponential",
    end: str = "top",
    balance: float = 1.0,
    groups: ArrayLike | None = None,
) -> _XGBoostObjective:
    """The push as an XGBoost objective.

    Parameters
    ----------
    p : float, default=4.0
        Power of the price, >= 1.
    price, loss, end, balance, groups
        As in :func:`toprank.interop.lightgbm.push_objective`.

    Returns
    -------
    callable
        For ``obj=`` of ``xgboost.train`` or ``objective=`` of its estimators.

    Notes
    -----
    As in :func:`toprank.interop.lightgbm.push_objective`. XGBoost multiplies the gradients of
    its own objectives by the weights, those of a callable not: here they are in the gradient.

    Examples
    --------
    >>> import xgboost
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.interop.xgboost import push_objective
    >>> X, y = load_wdbc(return_X_y=True)
    >>> data = xgboost.DMatrix(X, y)
    >>> params = {"base_score": 0.0, "nthread": 1}
    >>> scores = xgboost.train(params, data, 20, obj=push_objective(p=4.0)).predict(data)
    """
    return _XGBoostObjective(p, price=price, loss=loss, end=end, balance=balance, groups=groups)


def push_metric(name: str, **kwargs: object) -> _XGBoostMetric:
    """A metric of `toprank.metrics` for XGBoost's evaluation.

    Parameters
    ----------
    name : str
        Name of the metric, such as "precision_at".
    **kwargs
        Its parameters, such as ``k=100``.

    Returns
    -------
    callable
        For ``custom_metric=`` of ``xgboost.train`` or ``eval_metric=`` of its estimators; see
        `early_stopping`.

    Examples
    --------
    >>> from toprank.interop.xgboost import push_metric
    >>> push_metric("precision_at", k=2)([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.4])
    1.0
    """
    return _XGBoostMetric(name, **kwargs)


def early_stopping(metric: _XGBoostMetric, rounds: int, **kwargs: object) -> EarlyStopping:
    """An ``xgboost.callback.EarlyStopping`` that looks at the metric, the right way up.

    Parameters
    ----------
    metric : callable
        What `push_metric` returned.
    rounds : int
        Rounds without improvement after which to stop.
    **kwargs
        Passed on, such as ``save_best=True``.

    Examples
    --------
    >>> from toprank.interop.xgboost import early_stopping, push_metric
    >>> early_stopping(push_metric("recall_at", k=100), rounds=5).maximize
    True
    """
    callback = require("xgboost.callback", "xgboost")
    return callback.EarlyStopping(
        rounds=rounds, metric_name=metric.label, maximize=metric.higher_is_better, **kwargs
    )
