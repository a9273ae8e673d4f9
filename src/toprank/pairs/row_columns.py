"""Columns beside the features, checked: weights, groups, times and scores, one entry per row."""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import (
    check_consistent_length,
    compute_class_weight,
)

from toprank._arrays import AnyArray, IntArray
from toprank._columns import finite_column, labels_column, numbers, to_numpy
from toprank._numerics import FloatArray

#: The smallest weight of a row beside the largest: their products are still floats.
_FARTHEST_APART = 1e-150
#: How a moment ends, as ISO 8601 writes it, whose zone is known.
_ZONE = re.compile(r"\d[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")


def check_weights(
    positive: NDArray[np.bool_], sample_weight: ArrayLike | None, *, far_apart: bool = False
) -> FloatArray | None:
    """Return the sample weights as float64, or raise ValueError saying what is wrong.

    Weights are repetition counts: finite, not negative, and not all zero in either class.
    """
    weight = check_counts(sample_weight, len(positive), far_apart=far_apart)
    if weight is None:
        return None
    for name, members in (("positive", positive), ("negative", ~positive)):
        if not np.any(weight[members] > 0):
            raise ValueError(
                f"Every {name} row has sample_weight 0, so there is no pair to rank. "
                "Give at least one row of each class a positive weight."
            )
    return weight


def weigh_classes(
    class_weight: object,
    classes: AnyArray,
    positive: NDArray[np.bool_],
    weight: FloatArray | None,
) -> FloatArray | None:
    """Return the weights of rows times those of their classes, as scikit-learn defines them."""
    if class_weight is None:
        return weight
    labels = classes[positive.astype(np.intp)]
    of_class = compute_class_weight(class_weight, classes=classes, y=labels, sample_weight=weight)
    by_class = np.where(positive, of_class[1], of_class[0])
    return check_weights(positive, by_class if weight is None else by_class * weight)


def check_counts(
    sample_weight: ArrayLike | None, n: int, *, far_apart: bool = False
) -> FloatArray | None:
    """Return the weights of rows without classes: finite, not negative, and not all zero.

    They may be ``far_apart`` where they are only summed, as in a metric.
    """
    if sample_weight is None:
        return None
    weight = repetition_counts(sample_weight, n)
    if not np.any(weight > 0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: every row is absent."
        )
    if not far_apart:
        check_span(weight)
    return weight


def repetition_counts(sample_weight: ArrayLike, n: int) -> FloatArray:
    """Return one finite weight per row, none of them negative, or raise ValueError."""
    weight = numbers("sample_weight", to_numpy(sample_weight))
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}, expected ({n},): one weight per row."
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


def group_labels(groups: object, n: int) -> AnyArray | None:
    """Return the group of each row as it was given; None if there are none."""
    if groups is None:
        return None
    labels = labels_column("groups", to_numpy(groups), "every row must be in a known group")
    if len(labels) != n:
        raise ValueError(f"groups has {len(labels)} entries, expected one per row: {n}.")
    return labels


def check_groups(groups: object, n: int) -> IntArray | None:
    """Number the groups from 0, or raise ValueError; None if there are none."""
    labels = group_labels(groups, n)
    if labels is None:
        return None
    try:
        codes: IntArray = np.unique(labels, return_inverse=True)[1]
    except TypeError:  # numbers and strings in one column have no order
        first_seen: dict[Hashable, int] = {}
        numbered = [first_seen.setdefault(label, len(first_seen)) for label in labels]
        codes = np.array(numbered, dtype=np.intp)
    return codes


def check_times(time: object, n: int) -> AnyArray:
    """Return when each row was seen, as numbers or dates: in UTC where a zone is known."""
    known = _without_zone(to_numpy(time))
    times = labels_column("time", known, "every row must have its place in the order")
    if len(times) != n:
        raise ValueError(f"time has {len(times)} entries, expected one per row: {n}.")
    if times.dtype.kind not in "OUS":
        return times
    try:
        given = times.astype(str) if times.dtype.kind == "S" else times
        moments = np.array([_in_utc(moment) for moment in given.tolist()], dtype=object)
        return moments.astype("datetime64[us]")
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError("time must be numbers or dates such as 2026-01-31.") from error


def _without_zone(times: object) -> object:
    """Turn a column of pandas whose type has a zone into one of UTC; anything else stays."""
    if getattr(getattr(times, "dtype", None), "tz", None) is None:
        return times
    column: Any = getattr(times, "dt", times)
    return column.tz_convert(None)


def _in_utc(moment: object) -> object:
    """A moment without its zone, of which NumPy knows nothing and warns."""
    if isinstance(moment, str) and _ZONE.search(moment):
        moment = datetime.fromisoformat(moment)
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def check_scores(scores: ArrayLike, n: int | None = None, name: str = "y_score") -> FloatArray:
    """Return one finite score per row, as float64."""
    column = finite_column(name, to_numpy(scores))
    if n is not None:
        check_consistent_length(np.empty(n), column)
    return column
