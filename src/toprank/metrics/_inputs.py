"""What the metrics take: labels of two classes, scores and weights, checked at the door.

Scores that lie on a device are checked there. Every metric is written once, in NumPy's words, and
`toprank.blocks.tensors` lets tensors answer to them; only the door and the sort differ. What
needs more than the order of the rows of two classes (`push_risk`, `heights`, groups, amounts) is
refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from toprank._columns import amounts_of_rows
from toprank._numerics import FloatArray
from toprank.blocks.tensors import OnDevice, all_finite, distinct, on_device, tensor_on_device
from toprank.pairs import check_labels, check_scores, check_weights, split_classes

if TYPE_CHECKING:
    from torch import Tensor

#: What to do with weights, or amounts, whose products or sums would not be floats.
TOO_FAR = "too far from a repetition count. Scale the weights to between 1e-100 and 1e100."
_LARGEST_AMOUNT = 1e100


def check_ranking(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    label_propensity: ArrayLike | None = None,
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray | None]:
    """Return (positive, scores, weights) or raise ValueError saying what is wrong."""
    tensor = tensor_on_device(y_score)
    if tensor is not None:
        of_tensors: Any = check_on_device(
            tensor, y_true, sample_weight, pos_label, label_propensity
        )
        return of_tensors
    scores, labels = check_scores(y_score), check_labels(y_true, "y_true")
    check_consistent_length(labels, scores)
    positive = split_classes(labels, "y_true", pos_label)[1]
    weight = check_weights(positive, sample_weight, far_apart=True)
    if label_propensity is not None:
        weight = inverse_weights(weight, label_propensity, len(scores))
    if weight is not None:
        with np.errstate(over="ignore"):
            _check_scale(float(np.sum(weight[positive])), float(np.sum(weight[~positive])))
    return positive, scores, weight


def _check_scale(high: float, low: float) -> None:
    """Refuse total weights of the classes whose products over pairs leave the range of floats."""
    if not 1e-100 < min(high, low) <= high + low < 1e100:
        raise ValueError(
            f"sample_weight sums to {high + low:g}, and to {min(high, low):g} in one class: "
            f"{TOO_FAR}"
        )


def check_amounts(name: str, amounts: ArrayLike, n: int) -> FloatArray:
    """Return one finite number per row, from one number for all rows or one for each."""
    values = amounts_of_rows(name, amounts, n)
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


def check_on_device(
    scores: Tensor,
    y_true: ArrayLike,
    sample_weight: object,
    pos_label: object,
    label_propensity: object,
) -> tuple[OnDevice, OnDevice, OnDevice | None]:
    """Return (positive, scores, weights) on the device of the scores, or raise ValueError."""
    labels = _device_column("y_true", y_true, scores)
    scores = _device_column("y_score", scores, scores)
    if len(labels) != len(scores):
        raise ValueError(f"y_true has {len(labels)} entries, but y_score has {len(scores)}.")
    positive = _device_positives(labels, pos_label)
    weight = None
    if sample_weight is not None:
        weight = _device_weights("sample_weight", sample_weight, scores)
    if label_propensity is not None:
        seen = _device_weights("label_propensity", label_propensity, scores)
        if bool((seen <= 0).any()) or bool((seen > 1).any()):
            raise ValueError("label_propensity must lie in (0, 1]: every row can be labelled.")
        weight = (1.0 if weight is None else weight) / seen
    if weight is not None:
        _check_totals_on_device(positive, weight)
    return OnDevice(positive), OnDevice(scores), None if weight is None else OnDevice(weight)


def _device_column(name: str, values: object, like: object) -> Tensor:
    column = on_device(values, like)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {tuple(column.shape)}, expected one entry per row.")
    if not all_finite(column):
        raise ValueError(f"{name} contains NaN or infinity; expected finite numbers.")
    return column


def _device_positives(labels: object, pos_label: object) -> Tensor:
    classes, _ = split_classes(distinct(labels), "y_true", pos_label)
    return labels == classes[1].item()


def _device_weights(name: str, values: object, scores: Tensor) -> Tensor:
    """One number per row in float64, from one for all rows or one for each."""
    weight = on_device(values, scores).double()
    if tuple(weight.shape) not in ((), (len(scores),)):
        raise ValueError(
            f"{name} has shape {tuple(weight.shape)}, expected one number per row: "
            f"({len(scores)},)."
        )
    if not all_finite(weight) or bool((weight < 0).any()):
        raise ValueError(f"{name} has negative entries, NaN or infinity; expected counts.")
    return weight.expand(len(scores))


def _check_totals_on_device(positive: Tensor, weight: object) -> None:
    high = float((weight * positive).sum())
    low = float((weight * ~positive).sum())
    if min(high, low) <= 0:
        raise ValueError("A class has a total weight of zero: a ranking needs rows of both.")
    _check_scale(high, low)
