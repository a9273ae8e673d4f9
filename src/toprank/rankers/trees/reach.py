"""What a tree library can tell apart: numbers of float32, or none below 1e-35."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from toprank._numerics import FloatArray
from toprank.interop.team import ALONE, Team
from toprank.rankers.common import warn_caller
from toprank.rankers.trees.plan import TreeRows

#: Each library's name, and the sizes that it reads as they are, from the smallest to the largest.
REACH = {
    "lightgbm": ("LightGBM", 1e-35, np.inf),
    "xgboost": ("XGBoost", float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)),
}
#: Weights, whose sums and products both hold as float32.
_WEIGHTS = (1e-30, 1e30)


def check_largest(backend: str, Z: FloatArray, team: Team = ALONE) -> None:
    """Refuse columns with entries that the library would take for infinity, wherever they lie."""
    library, _, most = REACH[backend]
    largest = _largest(Z, team)
    lost = np.flatnonzero(largest > most)
    if len(lost):
        raise ValueError(
            f"Column {lost[0]} of X has entries of up to {largest[lost[0]]:.3g} in size; {library} "
            f"reads sizes up to {most:.2g}. Scale the column, or replace infinity."
        )


def of_the_smallest(backend: str, rows: TreeRows, team: Team = ALONE) -> list[str]:
    """What to say where a column is zero to the library and not to its user."""
    library, least, _ = REACH[backend]
    largest = _largest(rows.present().X, team)
    lost = np.flatnonzero((largest > 0) & (largest < least))
    if not len(lost):
        return []
    return [
        f"{len(lost)} column(s) of X (column {lost[0]} first) have no entry above "
        f"{least:.2g} in size: {library} takes them for zero and splits by none of them. "
        "Scale such columns."
    ]


def is_blank(backend: str, Z: FloatArray) -> bool:
    """Whether every entry is zero to the library, and none is missing."""
    return bool(np.all(_largest(Z) < REACH[backend][1])) and not np.any(np.isnan(Z))


def _largest(Z: FloatArray, team: Team = ALONE) -> NDArray[np.float64]:
    """The largest size in each column; zero where every entry is missing, or there is none."""
    ends = (np.fmax.reduce(Z, axis=0, initial=0.0), -np.fmin.reduce(Z, axis=0, initial=0.0))
    return team.max(np.fmax(*ends))


def check_weight_reach(weight: FloatArray | None, team: Team = ALONE) -> None:
    """Refuse weights that are zero, infinite or lost as float32."""
    if weight is None:
        return
    smallest = -float(team.max(-np.min(weight, where=weight > 0, initial=np.inf)))
    total = float(team.sum(np.sum(weight)))
    if smallest < _WEIGHTS[0] or total > _WEIGHTS[1]:
        raise ValueError(
            f"sample_weight holds {smallest:g} and adds up to {total:g}; the tree libraries hold "
            f"weights as float32: expected none below {_WEIGHTS[0]:g} and a sum of at most "
            f"{_WEIGHTS[1]:g}. Divide the weights by their mean, and use 0 to leave a row out."
        )


def of_light_rows(weight: FloatArray | None, least: float, team: Team = ALONE) -> list[str]:
    """What to say of trees without a split, where weights are shares of the rows, not counts."""
    if weight is None:
        return []
    total, rows = team.sum([np.sum(weight), np.count_nonzero(weight)])
    if total >= rows:
        return []
    return [
        f"No tree found a split, and all scores are equal. sample_weight adds up to {total:g} "
        f"for {rows:.0f} rows, and a leaf needs min_child_weight={least:g}. "
        "Divide the weights by their mean, or lower min_child_weight."
    ]


def tell(notes: Sequence[str]) -> None:
    """Warn whoever asked for the trees."""
    for note in notes:
        warn_caller(note, ConvergenceWarning)
