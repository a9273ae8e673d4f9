"""The ranking score of a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def ranking_score(estimator: Any, X: Any, pos_label: Any = None) -> tuple[np.ndarray, Any]:
    """Scores of the rows, higher for the positive class, and the positive class.

    `decision_function` if there is one, since probabilities tie where they saturate at 0 or 1;
    `predict_proba` if not.
    """
    check_is_fitted(estimator)
    classes = list(getattr(estimator, "classes_", ()))
    if len(classes) != 2:
        raise ValueError(
            f"{type(estimator).__name__} is not a two-class classifier (classes: {classes}); "
            "pass its scores to from_predictions instead."
        )
    if pos_label is None:
        pos_label = classes[1]
    elif pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
    column = classes.index(pos_label)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return (scores if column == 1 else -scores), pos_label
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X))[:, column], pos_label
    raise ValueError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba; "
        "pass scores to from_predictions instead."
    )
