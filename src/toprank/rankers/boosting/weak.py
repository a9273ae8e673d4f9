"""What weak rankers may be: stumps, columns in [0, 1] or {0, 1}, functions, fitted estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from toprank._numerics import FloatArray

NAMES = ("stumps", "features", "binary")


def outputs(weak_rankers: Any, X: Any, n: int) -> FloatArray:
    """Return the values of each weak ranker of a list at the n rows of X, one column each."""
    if len(weak_rankers) == 0:
        raise ValueError("weak_rankers is empty; give at least one function or fitted estimator.")
    return np.column_stack([_output(weak, j, X, n) for j, weak in enumerate(weak_rankers)])


def _output(weak: Any, j: int, X: Any, n: int) -> FloatArray:
    returned = _call(weak, j, X)
    try:
        values = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"weak_rankers[{j}] returned values of type {np.asarray(returned).dtype}, expected one "
            "number per row. For a classifier with named classes give a function, such as its "
            "decision_function."
        ) from None
    if values.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"weak_rankers[{j}] returned an array of shape {values.shape}, expected ({n},): one "
            "number per row."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"weak_rankers[{j}] returned NaN or infinity; expected finite numbers.")
    return values.reshape(n)


def _call(weak: Any, j: int, X: Any) -> Any:
    predicts = hasattr(weak, "predict")
    if isinstance(weak, type) or not (predicts or callable(weak)):
        raise ValueError(
            f"weak_rankers[{j}] is {weak!r}, expected a function of X or a fitted estimator."
        )
    try:
        return weak.predict(X) if predicts else weak(X)
    except NotFittedError as error:
        raise NotFittedError(
            f"weak_rankers[{j}] is not fitted: {type(weak).__name__}. scikit-learn's clone (and so "
            "cross-validation) forgets the fit of estimators in a list: give its method, "
            "estimator.predict, or wrap it in sklearn.frozen.FrozenEstimator."
        ) from error


def are_binary(weak_rankers: Any, Z: Any) -> bool:
    """Whether the weak rankers take the values 0 and 1 only, so that steps have a closed form.

    ValueError if columns are not what the name promises.
    """
    if isinstance(weak_rankers, str) and weak_rankers == "stumps":
        return True
    in_two = bool(np.all((Z == 0) | (Z == 1)))
    if isinstance(weak_rankers, str):
        wanted = "{0, 1}" if weak_rankers == "binary" else "[0, 1]"
        fits = (Z == 0) | (Z == 1) if weak_rankers == "binary" else (Z >= 0) & (Z <= 1)
        wrong = np.flatnonzero(~np.all(fits, axis=0))
        if wrong.size:
            low, high = np.min(Z[:, wrong[0]]), np.max(Z[:, wrong[0]])
            raise ValueError(
                f"weak_rankers={weak_rankers!r} needs columns in {wanted}; column {wrong[0]} "
                f"holds values from {low:g} to {high:g}. Scale the columns (for example with "
                "MinMaxScaler), or use weak_rankers='stumps'."
            )
    return in_two and weak_rankers != "features"
