"""From what users say about their rows, y, groups, pairs and weights, to a relation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from toprank._columns import labels_column
from toprank._numerics import FloatArray
from toprank.metrics.cuts import group_codes
from toprank.metrics.risk import check_counts
from toprank.pairs import (
    IntArray,
    Pairs,
    Relation,
    check_pairs,
    check_span,
    relation_of,
)


def checked_relation(
    estimator: Any,
    n_rows: int,
    y: Any,
    groups: ArrayLike | None,
    pairs: ArrayLike | Pairs | None,
    sample_weight: ArrayLike | None,
) -> tuple[Relation, FloatArray]:
    """Return which rows are compared, and the weight of every row."""
    weight = check_counts(sample_weight, n_rows)
    check_span(weight)
    if not np.any(weight > 0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: every row is absent."
        )
    if pairs is not None:
        if groups is not None:
            raise ValueError(
                "Give groups or pairs, not both: pairs say by themselves which rows are compared."
            )
        listed = Pairs(check_pairs(pairs, n_rows), n_rows)
        return relation_of(None, pairs=listed, weight=weight), weight
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give "
            "labels as y, or pairs=."
        )
    labels = check_labels(y, n_rows)
    return relation_of(labels, check_groups(groups, n_rows), weight=weight), weight


def check_labels(y: Any, n_rows: int) -> FloatArray:
    """Return y as ordered numbers, or raise ValueError saying what is wrong."""
    if isinstance(y, np.ma.MaskedArray):
        labels_column("y", y)  # refuses what lies behind a mask
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y has dtype {labels.dtype}, and it is not known which label belongs above which: "
                "grades must be numbers, larger is better. Map them, for example with "
                "y.map({'bad': 0, 'fair': 1, 'good': 2}); for an ordered categorical use "
                "y.cat.codes."
            ) from error
        if np.asarray(y).dtype.kind in "SUMm":
            raise ValueError(
                f"y has dtype {np.asarray(y).dtype}, expected numbers, larger is better; convert "
                "it, for example with astype(float)."
            )
    labels = check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(labels, np.empty(n_rows))
    return labels


def check_groups(groups: ArrayLike | None, n_rows: int) -> IntArray | None:
    """Return the groups as numbers, None if there are none, or raise ValueError."""
    return None if groups is None else group_codes(groups, n_rows)
