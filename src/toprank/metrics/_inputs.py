"""What the metrics take: labels of two classes, scores and weights, checked at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from toprank._columns import numbers
from toprank._numerics import FloatArray
from toprank.blocks.tensors import tensor_on_device
from toprank.metrics import device
from toprank.pairs import check_labels, check_scores, check_weights, split_classes

#: What to do with weights, or amounts, whose products or sums would not be floats.
TOO_FAR = "too far from a repetition count. Scale the weights to between 1e-100 and 1e100."
_LARGEST_AMOUNT = 1e100


def check_ranking(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    label_propensity: ArrayLike | None = None,
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray | None]:
    """Return (positive, scores, weights) or raise ValueError saying what is wrong."""
    tensor = tensor_on_device(y_score)
    if tensor is not None:
        of_tensors: Any = device.checked(tensor, y_true, sample_weight, pos_label, label_propensity)
        return of_tensors
    scores, labels = check_scores(y_score), check_labels(y_true, "y_true")
    check_consistent_length(labels, scores)
    positive = split_classes(labels, "y_true", pos_label)[1]
    weight = check_weights(positive, sample_weight, far_apart=True)
    if label_propensity is not None:
        weight = inverse_weights(weight, label_propensity, len(scores))
    if weight is not None:
        _check_scale(positive, weight)
    return positive, scores, weight


def _check_scale(positive: NDArray[np.bool_], weight: FloatArray) -> None:
    """Refuse weights whose products over pairs leave the range of floats."""
    with np.errstate(over="ignore"):
        high, low = float(np.sum(weight[positive])), float(np.sum(weight[~positive]))
    if not 1e-100 < min(high, low) <= high + low < 1e100:
        raise ValueError(
            f"sample_weight sums to {high + low:g}, and to {min(high, low):g} in one class: "
            f"{TOO_FAR}"
        )


def check_amounts(name: str, amounts: ArrayLike, n: int) -> FloatArray:
    """Return one finite number per row, from one number for all rows or one for each."""
    values = numbers(name, amounts)
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"{name} has shape {values.shape}, expected one number or one number per row, ({n},)."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} contains NaN or infinity; expected finite numbers.")
    if np.any(np.abs(values) > _LARGEST_AMOUNT):
        raise ValueError(
            f"{name} is as large as {np.max(np.abs(values)):g}, expected amounts up to "
            f"{_LARGEST_AMOUNT:g}, whose sums are numbers: state it in larger units."
        )
    return np.broadcast_to(values, (n,))


def inverse_weights(weight: FloatArray | None, propensity: ArrayLike, n: int) -> FloatArray:
    """Divide the weights by the probability that each row's label was seen."""
    probability = check_amounts("label_propensity", propensity, n)
    if np.any(probability <= 0) or np.any(probability > 1):
        raise ValueError(
            f"label_propensity goes from {probability.min():g} to {probability.max():g}, expected "
            "probabilities in (0, 1]: a row that could not have been labelled cannot be weighted."
        )
    return (1.0 if weight is None else weight) / probability
