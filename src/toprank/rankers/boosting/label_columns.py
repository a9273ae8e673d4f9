"""Weak classifiers h(x, label) of the user's own, judged by AdaBoost.MH's or MR's objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.rankers.boosting.label_stumps import LabelObjective
from toprank.rankers.boosting.weak import ColumnRankers


class LabelEntries:
    """The entries (label, example) of an objective in the place of pairs, one after another."""

    p = 1.0

    def __init__(self, objective: LabelObjective):
        self._objective = objective
        self.order = np.arange(objective.members.size)
        self.log_pairs, self.log_n_pairs = objective.log_pairs, objective.log_n_pairs

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the log loss and minus its gradient in the scores."""
        value, weight = self._objective.weights(scores.reshape(self._objective.members.shape))
        return value, (self._objective.sign * weight).reshape(-1)


def label_outputs(
    weak_rankers: Sequence[Callable[[TableLike], ArrayLike]], X: TableLike, shape: tuple[int, int]
) -> FloatArray:
    """Return h(x, label) of each weak classifier: shape (entries, weak classifiers).

    The constants of the labels come first: as weak classifiers they make the F-skew vanish.
    """
    n_labels, n = shape
    constants = np.repeat(np.eye(n_labels), n, axis=0)
    return np.hstack([constants, *(_values(h, j, X, shape) for j, h in enumerate(weak_rankers))])


def _values(weak: object, j: int, X: TableLike, shape: tuple[int, int]) -> FloatArray:
    if not callable(weak) or isinstance(weak, type):
        raise ValueError(
            f"weak_rankers[{j}] is {weak!r}, expected a function of X that returns an array of "
            "shape (rows, labels)."
        )
    values = np.asarray(weak(X), dtype=np.float64)
    if values.shape != shape[::-1]:
        raise ValueError(
            f"weak_rankers[{j}] returned an array of shape {values.shape}, expected "
            f"{shape[::-1]}: one number per row and label."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"weak_rankers[{j}] returned NaN or infinity; expected finite numbers.")
    return np.ascontiguousarray(values.T).reshape(-1, 1)


class LabelColumns(ColumnRankers):
    """Scores of all labels that move along one weak classifier per round."""

    def __init__(self, objective: LabelObjective, H: FloatArray):
        self.objective = objective
        super().__init__(LabelEntries(objective), H)

    @property
    def label_scores(self) -> FloatArray:
        """The scores, of shape (labels, examples)."""
        return self.scores.reshape(self.objective.members.shape)
