"""From what users say about their rows, y, groups, pairs and weights, to a relation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from toprank._columns import labels_column
from toprank._numerics import FloatArray
from toprank.losses import ZeroOne
from toprank.metrics.cuts import group_codes
from toprank.metrics.risk import check_counts
from toprank.pair_sums import related_sum
from toprank.pairs import (
    Explicit,
    Graded,
    IntArray,
    Pairs,
    Relation,
    check_pairs,
    check_span,
)


def relation_of(
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
    present = np.flatnonzero(weight > 0)
    if not len(present):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: every row is absent."
        )
    if pairs is not None:
        if groups is not None:
            raise ValueError(
                "Give groups or pairs, not both: pairs say by themselves which rows are compared."
            )
        return _explicit(check_pairs(pairs, n_rows), weight), weight
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give "
            "labels as y, or pairs=."
        )
    labels = check_labels(y, n_rows)
    relation = Graded(labels, check_groups(groups, n_rows), present)
    if relation.n_pairs == 0:
        raise ValueError(_no_pair(labels[present], groups, n_rows))
    return relation, weight


def _explicit(pairs: IntArray, weight: FloatArray) -> Relation:
    winner, loser = pairs[:, 0], pairs[:, 1]
    present = (weight[winner] > 0) & (weight[loser] > 0)
    if not np.any(present):
        what = "every one names a row of weight zero" if len(pairs) else "there is none"
        raise ValueError(f"No pair is left to rank: {what}.")
    return Explicit(winner[present], loser[present])


def _no_pair(labels: NDArray[Any], groups: ArrayLike | None, n_rows: int) -> str:
    if n_rows == 1:
        return "There is no pair to rank: n_samples = 1, and a pair needs two rows."
    if groups is None or len(np.unique(labels)) == 1:
        return (
            f"There is no pair to rank: every label in y is {labels[0]:g}. Rows are compared where "
            "their labels differ; check the label column, or the split that lost the others."
        )
    return (
        "There is no pair to rank: in every group all labels are equal. Rows are compared within "
        "their group only; check that groups holds the query of each row, not its own number."
    )


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


def concordance(relation: Relation, scores: FloatArray, weight: FloatArray) -> float:
    """Return the share of the pairs that the scores put in order; ties count one half."""
    mass = weight[relation.outer]
    total = float(mass @ relation.facing(weight))
    not_above, not_below = (
        float(mass @ related_sum(ZeroOne(), relation, x).to_outer((0,), weight[relation.inner])[0])
        for x in (scores, -scores)
    )
    return (total + not_below - not_above) / (2.0 * total)
