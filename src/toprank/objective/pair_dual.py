"""The weights of pairs at given scores: the dual point of the push (Rudin 2009, Theorem 4).

With F a function of the margins m_ik = f_i - f_k, the dual point is d_ik = -dF/dm_ik. For the
exponential loss it is a product, whatever the price: with heights S_k,

    d_ik = u_i v_k,   u_i = w_i e^{-f_i} / sum_i w_i e^{-f_i},   v_k = dF/d log S_k

(for the ends of the list and for the IR Push the classes change places). For other losses only its
sums over the pairs of a row are cheap, which are minus the gradient of F in the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of, softmax
from toprank.objective.risk import PushObjective
from toprank.pairs import IntArray, Sides


@dataclass(frozen=True)
class PairDual:
    """The dual point of a fitted ranker: how much each pair of training rows counts.

    Attributes
    ----------
    positives, negatives : int arrays
        Row numbers of the two classes, rows of weight zero left out.
    row_weight : array of shape (n,)
        What the pairs of each row weigh: summed for a positive, minus the sum for a negative. They
        sum to zero. At the minimum ``X.T @ row_weight`` is ``alpha * coef_``.
    factors : list of (array, array)
        Weights of the positives and of the negatives whose products, summed over the list, are the
        weights of the pairs: one entry for one end of the list, two for both. Empty for losses
        other than the exponential one, whose pair weights are no products.
    gap : float
        The objective minus the value of the dual at this point: no ranker can be better by more.
        Infinite without a penalty, unless the point is moved to a feasible one (as in
        ``optimality_gap_``).
    """

    positives: IntArray
    negatives: IntArray
    row_weight: FloatArray
    factors: list[tuple[FloatArray, FloatArray]]
    gap: float
    _objective: PushObjective = field(repr=False)
    _scores: FloatArray = field(repr=False)

    def pair_weights(self) -> FloatArray:
        """Return the weight of each pair: an array of shape (positives, negatives)."""
        total = np.zeros((len(self.positives), len(self.negatives)))
        if self.factors:
            for of_positives, of_negatives in self.factors:
                total += np.outer(of_positives, of_negatives)
            return total
        slopes = _slopes(self._objective, self._scores)
        for side, (log_s, slope) in zip(self._objective.sides, slopes, strict=True):
            scores = side.sign * self._scores
            margins = scores[side.inner][:, None] - scores[side.outer]
            # a height of zero has no active pair and no slope
            per_height = np.exp(log_of(slope) - np.where(slope > 0, log_s, 0.0))
            weights = -self._objective.loss.slope(margins) * side.inner_weight[:, None] * per_height
            total += weights if side.sign > 0 else weights.T
        return total


def _slopes(objective: PushObjective, scores: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Log S and dF/d log S of the outer rows, end by end."""
    log_s = objective.log_heights(scores)
    _, slope = objective.price.value_slope(log_s, objective.log_outer_weight)
    cuts = np.cumsum([len(side.outer) for side in objective.sides])[:-1]
    return list(zip(np.split(log_s, cuts), np.split(slope, cuts), strict=True))


def dual_at(
    objective: PushObjective, positive: NDArray[np.bool_], scores: FloatArray, gap: float
) -> PairDual:
    """Return the dual point of an objective at scores; ValueError where it has corners."""
    if not objective.smooth:
        raise ValueError(
            "The dual weights are slopes of the objective; the hinge loss and the max price have "
            "corners, where they are not unique. Use a squared hinge, or a large p."
        )
    sides = objective.sides
    members = np.zeros(len(scores), dtype=bool)
    members[sides[0].inner] = members[sides[0].outer] = True
    factors = []
    if objective.loss.factorises:
        for side, (_, slope) in zip(sides, _slopes(objective, scores), strict=True):
            factors.append(_product(side, scores, slope))
    return PairDual(
        np.flatnonzero(members & positive),
        np.flatnonzero(members & ~positive),
        -objective.value_grad(scores)[1],
        factors,
        gap,
        objective,
        scores,
    )


def _product(side: Sides, scores: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of positives and negatives whose products are those of one end's pairs."""
    inner = softmax(log_of(side.inner_weight) - side.sign * scores[side.inner])
    return (inner, slope) if side.sign > 0 else (slope, inner)
