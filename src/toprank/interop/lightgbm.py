"""The push in LightGBM: an objective and metrics, in its native and its scikit-learn interface.

    lightgbm.train({"objective": push_objective(p=4.0), "metric": "None"}, data,
                   feval=push_metric("precision_at", k=100), ...)
    lightgbm.LGBMClassifier(objective=push_objective(p=4.0)).fit(X, y, sample_weight=w,
                   eval_X=..., eval_y=..., eval_metric=push_metric("precision_at", k=100))

``metric="None"`` (the string) keeps LightGBM from adding metrics of its own, so that early stopping
looks at yours. LightGBM hands weights to a callable that takes them and applies none by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank.interop.boosting import PushGradients, PushMetric

if TYPE_CHECKING:
    from lightgbm import Dataset

_ON_ONE_MACHINE = (
    "LightGBM shows a callable the rows of one machine only, so that the push would be against "
    "those alone. Train on one machine, or across several with XGBoost: "
    "PushTrees(backend='xgboost').fit_dask or fit_spark, or toprank.interop.xgboost."
)


class _LightGBMObjective(PushGradients):
    """Called as f(scores, Dataset) or as f(labels, scores, weight, group).

    LightGBM's scikit-learn interface counts the parameters of a callable, with their defaults, and
    leaves out what it has no parameter for: four are needed to see weights and groups.
    """

    def __call__(
        self,
        a: AnyArray,
        b: AnyArray | Dataset,
        weight: AnyArray | None = None,
        group: AnyArray | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.at(*_dataset_columns(a, b, weight, group))


class _LightGBMMetric(PushMetric):
    """Called in the same two ways; returns (name, value, higher is better)."""

    def __call__(
        self,
        a: AnyArray,
        b: AnyArray | Dataset,
        weight: AnyArray | None = None,
        group: AnyArray | None = None,
    ) -> tuple[str, float, bool]:
        labels, scores, weight, group = _dataset_columns(a, b, weight, group)
        return self.label, self.of(labels, scores, weight, group), self.higher_is_better


def _dataset_columns(
    a: AnyArray, b: Any, weight: AnyArray | None, group: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray | None, AnyArray | None]:
    """Return labels, scores, weights and group sizes, however they came."""
    if not hasattr(b, "get_label"):
        return np.asarray(a), b, weight, group
    if int((b.params or {}).get("num_machines", 1)) > 1:
        raise ValueError(_ON_ONE_MACHINE)
    return b.get_label(), a, b.get_weight(), b.get_group()


def push_objective(
    p: float = 4.0,
    *,
    price: object = "power",
    loss: object = "exponential",
    end: str = "top",
    balance: float = 1.0,
    groups: ArrayLike | None = None,
) -> _LightGBMObjective:
    """The push as a LightGBM objective.

    Parameters
    ----------
    p : float, default=4.0
        Power of the price, >= 1.
    price, loss, end, balance
        As in :class:`toprank.PushRanker`: price "power" (default), "identity", "exponential",
        "log1p" or "max" (which becomes p = 64); loss "exponential" (default), "logistic",
        "hinge" or "squared_hinge"; end "top" (default), "bottom" or "both".
    groups : array-like of shape (n,), optional
        Rows are compared within groups only. Groups of the data set itself go first.

    Returns
    -------
    callable
        For ``params["objective"]`` of ``lightgbm.train`` or ``objective=`` of its estimators. The
        booster's predictions are ranking scores, not probabilities.

    Notes
    -----
    The gradient is exact, in linear time. The curvature is explained in
    `toprank.objective.curvature`; both are in proportion to the total weight
    (`toprank.interop.boosting.PushGradients`).

    LightGBM shows a callable the rows of one machine only. ``lightgbm.train`` across several is
    refused; ``lightgbm.dask`` gives no sign by which it could be: use `toprank.interop.xgboost`
    there, whose push is that of all rows.

    Examples
    --------
    >>> import lightgbm
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.interop.lightgbm import push_objective
    >>> X, y = load_wdbc(return_X_y=True)
    >>> params = {"objective": push_objective(p=4.0), "verbose": -1, "num_threads": 1}
    >>> booster = lightgbm.train(params, lightgbm.Dataset(X, y), 20)
    >>> scores = booster.predict(X)
    """
    return _LightGBMObjective(p, price=price, loss=loss, end=end, balance=balance, groups=groups)


def push_metric(name: str, **kwargs: object) -> _LightGBMMetric:
    """A metric of `toprank.metrics` for LightGBM's evaluation and early stopping.

    Parameters
    ----------
    name : str
        Name of the metric, such as "precision_at".
    **kwargs
        Its parameters, such as ``k=100``.

    Returns
    -------
    callable
        For ``feval=`` of ``lightgbm.train`` or ``eval_metric=`` of its estimators.

    Examples
    --------
    >>> from toprank.interop.lightgbm import push_metric
    >>> push_metric("precision_at", k=2)([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.4])
    ('precision_at(k=2)', 1.0, True)
    """
    return _LightGBMMetric(name, **kwargs)
