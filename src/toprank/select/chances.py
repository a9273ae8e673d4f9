"""The probability that each row is positive: given, or scores calibrated on labelled rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression

from toprank._columns import numbers
from toprank._numerics import FloatArray
from toprank.pairs import check_labels, check_scores, split_classes

#: Labelled rows of each class that a calibration needs at least.
_FEWEST = 5


def read_chances(
    scores: FloatArray,
    probability: ArrayLike | None,
    calibration: tuple[ArrayLike, ArrayLike] | None,
) -> tuple[FloatArray | None, str]:
    """Return the probability of each row and where it comes from; None and "" if unknown.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    probability : array-like of shape (n,), optional
        Probabilities from 0 to 1.
    calibration : (labels, scores), optional
        Of rows that the ranker was not fitted to: isotonic regression of the labels on the scores.
    """
    if probability is not None and calibration is not None:
        raise ValueError("Give probability or calibration, not both.")
    if probability is not None:
        chance = numbers("probability", probability)
        if chance.shape != scores.shape:
            raise ValueError(
                f"probability has shape {chance.shape}, expected one per row: {scores.shape}."
            )
        if not np.all((chance >= 0) & (chance <= 1)):
            raise ValueError("probability has entries outside of 0 to 1, or NaN.")
        return chance, "the probabilities given"
    if calibration is None:
        return None, ""
    try:
        labels, seen = calibration
    except (TypeError, ValueError) as error:
        raise ValueError("calibration: expected a pair (labels, scores).") from error
    labels = check_labels(labels, "the column of calibration labels")
    seen = check_scores(seen, len(labels), "the column of calibration scores")
    positive = split_classes(labels, "the column of calibration labels")[1]
    if min(np.count_nonzero(positive), np.count_nonzero(~positive)) < _FEWEST:
        raise ValueError(
            f"calibration has {np.count_nonzero(positive)} positive rows of {len(positive)}; "
            f"expected at least {_FEWEST} of each class."
        )
    curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(seen, positive)
    return np.asarray(curve.predict(scores), dtype=np.float64), (
        f"scores calibrated on {len(positive)} labelled rows"
    )
