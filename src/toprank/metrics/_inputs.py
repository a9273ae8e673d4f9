"""One door for every metric: labels, scores and weights are checked here and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target

from toprank._numerics import FloatArray
from toprank.pairs import check_weights


def check_ranking(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray | None]:
    """Return (positive, scores, weights) or raise ValueError saying what is wrong."""
    check_consistent_length(y_true, y_score)
    scores = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    positive = positives(y_true, pos_label)
    return positive, column_or_1d(scores), check_weights(positive, sample_weight)


def positives(y_true: ArrayLike, pos_label: Any = None) -> NDArray[np.bool_]:
    """Return which labels are positive, for any two-class labels.

    Without ``pos_label`` the larger label in sorted order is positive, as in scikit-learn.
    """
    labels = column_or_1d(np.asarray(y_true))
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ValueError("y_true contains NaN or infinity; labels must be two known classes.")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(
            f"y_true has {len(classes)} class(es), expected two ({type_of_target(labels)} "
            "labels): a ranking metric compares positives with negatives."
        )
    if pos_label is None:
        pos_label = classes[1]
    elif pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the labels {classes.tolist()}.")
    return np.asarray(labels == pos_label)
