"""The dual point over the pairs of a relation: grades, groups, crucial pairs with weights.

As `toprank.objective.pair_dual` for two classes: a pair weighs minus the slope of the objective in
its margin, w_i pi_ik (-l'(f_i - f_k)) dF/dS_k.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.objective.pairwise import PairObjective
from toprank.pairs import IntArray


@dataclass(frozen=True)
class RelatedDual:
    """The dual point of a ranker over crucial pairs: how much each pair of its rows counts.

    Attributes
    ----------
    row_weight : array of shape (n,)
        What the pairs that a row should win weigh, less those it should lose. They sum to zero; for
        a linear score ``X.T @ row_weight`` is ``alpha * coef_`` at the minimum.
    gap : float
        The objective minus the value of the dual at this point: no ranker can be better by more.
        Infinite without a penalty, NaN for a kernel and for boosting.
    """

    row_weight: FloatArray
    gap: float
    _objective: PairObjective = field(repr=False)
    _scores: FloatArray = field(repr=False)

    def pair_weights(self) -> tuple[IntArray, FloatArray]:
        """Return the pairs, rows (winner, loser), and the weight of each; every pair is listed."""
        objective, scores = self._objective, self._scores
        (side,), relation = objective.sides, objective.relation
        inner, outer = relation.pairs_at(np.arange(relation.n_pairs))
        log_s = objective.log_heights(scores)
        _, slope = objective.price.value_slope(log_s, objective.log_outer_weight)
        # a height of zero has no active pair and no slope
        log_factor = log_of(slope) - np.where(slope > 0, log_s, 0.0)
        oriented = side.sign * scores
        margins = oriented[relation.inner[inner]] - oriented[relation.outer[outer]]
        with np.errstate(over="ignore", under="ignore"):
            if objective.loss.factorises:  # e^-r may overflow where its product does not
                weight = np.exp(log_factor[outer] - margins)
            else:
                weight = -objective.loss.slope(margins) * np.exp(log_factor[outer])
        weight = np.where(np.isfinite(log_factor[outer]), weight, 0.0) * side.inner_weight[inner]
        if relation.pair_weight is not None:
            weight = weight * relation.pair_weight
        rows = np.column_stack([relation.inner[inner], relation.outer[outer]])
        return (rows if side.sign > 0 else rows[:, ::-1]), weight


def related_dual_at(objective: PairObjective, scores: FloatArray, gap: float) -> RelatedDual:
    """Return the dual point of an objective over pairs; ValueError where it has corners."""
    if not objective.smooth:
        raise ValueError(
            "The dual weights are slopes of the objective; the hinge loss and the max price have "
            "corners, where they are not unique. Use a squared hinge, or a large p."
        )
    return RelatedDual(-objective.value_grad(scores)[1], gap, objective, scores)
