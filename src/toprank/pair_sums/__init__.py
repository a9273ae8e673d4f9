"""Sums over all pairs of scores, and their adjoints, without a matrix of I x K pairs.

:func:`pair_sum` picks the fastest way that is exact for a loss. All of them are tested
against :class:`Reference`, the double loop.
"""

from __future__ import annotations

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.losses import Loss, ZeroOne
from toprank.pair_sums.base import PairSum, RelatedSum
from toprank.pair_sums.factorised import Factorised, GradedFactorised
from toprank.pair_sums.interpolated import GradedInterpolated, Interpolated
from toprank.pair_sums.pair_by_pair import Blocked, Listed
from toprank.pair_sums.reference import Reference
from toprank.pair_sums.sorted import GradedSorted, Sorted
from toprank.pairs import Relation

#: Fast ways first; ``Blocked`` takes whatever is left.
PAIR_SUMS: tuple[type[PairSum], ...] = (Factorised, Sorted, Interpolated, Blocked)
#: The same where not everyone faces everyone; ``Listed`` takes whatever is left.
RELATED_SUMS: tuple[type[RelatedSum], ...] = (
    GradedFactorised,
    GradedSorted,
    GradedInterpolated,
    Listed,
)
#: Up to so many pairs, summing over a list of them is faster than loading compiled code.
LISTED_UP_TO = 1 << 14

__all__ = [
    "LISTED_UP_TO",
    "PAIR_SUMS",
    "RELATED_SUMS",
    "Blocked",
    "Factorised",
    "GradedFactorised",
    "GradedInterpolated",
    "GradedSorted",
    "Interpolated",
    "Listed",
    "PairSum",
    "Reference",
    "RelatedSum",
    "Sorted",
    "concordance",
    "pair_sum",
    "related_sum",
]


def pair_sum(loss: Loss, inner: FloatArray, outer: FloatArray) -> PairSum:
    """Return the fastest exact pair sum for the loss, prepared at the oriented scores."""
    kind = next(kind for kind in PAIR_SUMS if kind.supports(loss))
    return kind(loss, inner, outer)


def related_sum(
    loss: Loss, relation: Relation, scores: FloatArray, workers: Workers | None = None
) -> RelatedSum:
    """Return the fastest exact sum over the pairs of a relation, at the oriented scores."""
    if relation.n_pairs <= LISTED_UP_TO:
        return Listed(loss, relation, scores)
    ways = (way for way in RELATED_SUMS if way.accepts(relation) and way.supports(loss))
    return next(ways)(loss, relation, scores, workers)


def concordance(relation: Relation, scores: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the share of the pairs of a relation that the scores put in order; ties count half.

    A pair weighs the product of its rows' weights. For two classes it is the AUC.
    """
    # relative to the largest, products of weights neither over- nor underflow
    weight = np.ones(len(scores)) if weight is None else weight / np.max(weight)
    inner, outer = weight[relation.inner], weight[relation.outer]
    total = float(np.sum(outer * relation.facing_weight(weight)))
    not_above, not_below = (
        float(np.sum(outer * related_sum(ZeroOne(), relation, x).to_outer((0,), inner)[0]))
        for x in (scores, -scores)
    )
    share = (total + not_below - not_above) / (2.0 * total)
    return min(max(share, 0.0), 1.0)
