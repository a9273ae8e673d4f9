"""The door: what users pass as labels and weights is checked here, once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._columns import numbers
from toprank._numerics import FloatArray

#: The smallest weight of a row beside the largest: their products are still floats.
_FARTHEST_APART = 1e-150


def distinct_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels in order; numbers of two values are not sorted for it."""
    if labels.dtype.kind in "biuf" and labels.size:
        ends = np.array([labels.min(), labels.max()])
        if ends[0] != ends[1] and np.all((labels == ends[0]) | (labels == ends[1])):
            return ends
    return np.unique(labels)


def check_weights(positive: NDArray[np.bool_], sample_weight: object) -> FloatArray | None:
    """Return the sample weights as float64, or raise ValueError saying what is wrong.

    Weights are repetition counts: finite, not negative, and not all zero in either class.
    """
    if sample_weight is None:
        return None
    weight = repetition_counts(sample_weight, len(positive))
    if not np.any(weight > 0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: every row is absent."
        )
    for name, members in (("positive", positive), ("negative", ~positive)):
        if not np.any(weight[members] > 0):
            raise ValueError(
                f"Every {name} row has sample_weight 0, so there is no pair to rank. "
                "Give at least one row of each class a positive weight."
            )
    return weight


def repetition_counts(sample_weight: object, n: int) -> FloatArray:
    """Return one finite weight a row, none of them negative, or raise ValueError."""
    weight = numbers("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}, expected ({n},): one weight a row."
        )
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity; weights must be finite.")
    if np.any(weight < 0):
        raise ValueError(
            f"sample_weight contains negative values (smallest {weight.min():g}); a weight is a "
            "repetition count. Use 0 to leave a row out."
        )
    with np.errstate(over="ignore"):
        if np.isinf(np.sum(weight)):
            raise ValueError(
                f"sample_weight adds up to more than any float (largest {weight.max():g}). Divide "
                "the weights by their mean."
            )
    return weight


def check_span(weight: FloatArray | None) -> None:
    """Refuse weights so far apart that the smallest vanish from every sum, or their shares do."""
    if weight is None:
        return
    smallest = float(np.min(weight, where=weight > 0, initial=np.inf))
    largest = float(np.max(weight, initial=0.0))
    if smallest < largest * _FARTHEST_APART:
        raise ValueError(
            f"sample_weight runs from {smallest:g} to {largest:g}: the smallest count for nothing "
            "beside the largest. Use 0 to leave a row out."
        )
