"""What a tree library can tell apart: numbers of float32, or none below 1e-35."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from toprank._numerics import FloatArray
from toprank.rankers.whole import warn_caller

#: Each library's name, and the sizes that it reads as they are, from the smallest to the largest.
REACH = {
    "lightgbm": ("LightGBM", 1e-35, np.inf),
    "xgboost": ("XGBoost", float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)),
}
#: Weights, whose sums and products both hold as float32.
_WEIGHTS = (1e-30, 1e30)


def check_largest(backend: str, Z: FloatArray) -> None:
    """Refuse columns with entries that the library would take for infinity."""
    library, _, most = REACH[backend]
    largest = _largest(Z)
    lost = np.flatnonzero(largest > most)
    if len(lost):
        raise ValueError(
            f"Column {lost[0]} of X has entries of up to {largest[lost[0]]:.3g} in size; {library} "
            f"reads sizes up to {most:.2g}. Scale the column, or replace infinity."
        )


def warn_of_smallest(backend: str, Z: FloatArray) -> None:
    """Say so where a column is zero to the library and not to its user."""
    library, least, _ = REACH[backend]
    largest = _largest(Z)
    lost = np.flatnonzero((largest > 0) & (largest < least))
    if len(lost):
        warn_caller(
            f"{len(lost)} column(s) of X (column {lost[0]} first) have no entry above "
            f"{least:.2g} in size: {library} takes them for zero and splits by none of them. "
            "Scale such columns.",
            ConvergenceWarning,
        )


def is_blank(backend: str, Z: FloatArray) -> bool:
    """Whether every entry is zero to the library, and none is missing."""
    return bool(np.all(_largest(Z) < REACH[backend][1])) and not np.any(np.isnan(Z))


def _largest(Z: FloatArray) -> NDArray[np.float64]:
    """The largest size in each column; NaN where every entry is missing."""
    if len(Z) == 0:
        return np.zeros(Z.shape[1])
    largest: NDArray[np.float64] = np.fmax(np.fmax.reduce(Z, axis=0), -np.fmin.reduce(Z, axis=0))
    return largest


def check_weight_reach(weight: FloatArray | None) -> None:
    """Refuse weights that are zero, infinite or lost as float32."""
    if weight is None:
        return
    smallest, total = float(np.min(weight, where=weight > 0, initial=np.inf)), float(np.sum(weight))
    if smallest < _WEIGHTS[0] or total > _WEIGHTS[1]:
        raise ValueError(
            f"sample_weight holds {smallest:g} and adds up to {total:g}; the tree libraries hold "
            f"weights as float32: expected none below {_WEIGHTS[0]:g} and a sum of at most "
            f"{_WEIGHTS[1]:g}. Divide the weights by their mean, and use 0 to leave a row out."
        )


def warn_of_light_rows(weight: FloatArray | None, least: float) -> None:
    """Say why no tree has a split, where the weights are shares of the rows and not counts."""
    total = np.inf if weight is None else float(np.sum(weight))
    if weight is not None and total < np.count_nonzero(weight):
        warn_caller(
            f"No tree found a split, and all scores are equal. sample_weight adds up to {total:g} "
            f"for {np.count_nonzero(weight)} rows, and a leaf needs min_child_weight={least:g}. "
            "Divide the weights by their mean, or lower min_child_weight.",
            ConvergenceWarning,
        )
