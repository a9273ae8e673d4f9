"""Metrics at k as sums of gains: what each row adds by standing where a ranker put it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.metrics.at_cut import depth_of, ideal_discount, kept
from toprank.metrics.discount import summed_discount
from toprank.metrics.order import RankedList


@dataclass(frozen=True)
class Gains:
    """A metric as a factor times the sum over rows of weight, worth and gain.

    Attributes
    ----------
    by_tie : ndarray of shape (m,)
        Gain of a row in each tie of the ranked list.
    scale : float
        What the sum is multiplied by.
    counted : bool
        Whether the sum counts positives, so that counts have exact tests.
    largest : float, optional
        The largest difference of two rankers; by default all gains on the rows of the largest
        worth against all on those of the smallest.
    """

    by_tie: FloatArray
    scale: float
    counted: bool = True
    largest: float | None = None


def precision_at_gains(ranked: RankedList, k: int | float) -> Gains:
    """`precision_at`: one for each row above the cut."""
    depth = depth_of(ranked, k)
    return Gains(kept(ranked, depth), 1 / depth if depth else 0.0)


def recall_at_gains(ranked: RankedList, k: int | float) -> Gains:
    """`recall_at`: the same over all positives."""
    return Gains(kept(ranked, depth_of(ranked, k)), 1 / ranked.positives)


def lift_at_gains(ranked: RankedList, k: int | float) -> Gains:
    """`lift_at`: the same over the positives expected by chance."""
    depth, of_positives = depth_of(ranked, k), 1 / ranked.positives
    return Gains(kept(ranked, depth), ranked.total / depth * of_positives if depth else 0.0)


def enrichment_factor_gains(ranked: RankedList, k: int | float) -> Gains:
    """`enrichment_factor`: rows wholly within the fraction, over the fraction itself."""
    depth, of_positives = depth_of(ranked, k, "down"), 1 / ranked.positives
    asked = float(k) * ranked.total if isinstance(k, float) else depth
    return Gains(kept(ranked, depth), ranked.total / asked * of_positives)


def ndcg_at_gains(ranked: RankedList, k: int | float) -> Gains:
    """`ndcg_at`: the mean discount of a row of each tie within the first k."""
    depth = depth_of(ranked, k)
    summed = summed_discount(np.minimum(ranked.places, depth))
    by_tie = np.diff(summed) / (ranked.positive + ranked.negative)
    return Gains(by_tie, 1 / ideal_discount(ranked, depth), counted=False, largest=1.0)


def top_is_positive_gains(ranked: RankedList) -> Gains:
    """`top_is_positive`: the precision of the first row."""
    return precision_at_gains(ranked, 1)


def value_at_gains(
    ranked: RankedList, k: int | float, benefit: object = None, cost: object = None
) -> Gains:
    """`value_at`: the worth of the rows above the cut; benefits and costs are in the worth."""
    return Gains(kept(ranked, depth_of(ranked, k)), 1.0, counted=False)
