"""What inference asks of sums over the positives of a discount of their place: `dcg` and `aver`.

Among so many positives and negatives the sum lies between that of a list in order and that of a
list that is one tie. As a share of the way between the two it is worth as many trials as its
variance says. A positive adds the discount of its own place, and every row moves those behind it
one place on. Which rows are positive is taken from the rows around each place: those that happen to
stand first show too little of the spread that others there would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from toprank._numerics import FloatArray
from toprank.metrics.at_cut import (
    Cut,
    RowSample,
    effective_trials,
    local_precision,
    smooth_share,
    steady_precision,
)
from toprank.metrics.order import RankedList
from toprank.metrics.retrieval import discount_of_places, summed_discount

#: Trials that a row of the rarer class is worth at most: ties differ less than a share of trials.
_OF_EACH = 4.0
#: First places that tell how many trials a list in order is worth.
_FIRST = 1 << 16
#: The share of positives around depths of a list, of at least so many rows to either side.
ShareAround = Callable[[RankedList, FloatArray, FloatArray], FloatArray | float]


@dataclass(frozen=True)
class PlaceMoves:
    """What rows move a sum over places, by tie.

    Attributes
    ----------
    own : ndarray of shape (m,)
        What a positive adds itself: the discount of its place.
    moved : ndarray of shape (m,)
        What any row takes from the positives behind it, which it moves one place on.
    near : ndarray of shape (m,)
        The share of positives among the rows around the tie.
    """

    own: FloatArray
    moved: FloatArray
    near: FloatArray

    @classmethod
    def of(
        cls,
        ranked: RankedList,
        discount: Callable[[FloatArray], FloatArray],
        share_around: ShareAround,
    ) -> PlaceMoves:
        """Moves of the rows of a list, the positives behind each row as they are to be expected."""
        last, in_tie = ranked.places[1:], ranked.positive + ranked.negative
        own = discount(last)
        near = share_around(ranked, (ranked.places[:-1] + last + 1) / 2, in_tie / 2)
        lost = in_tie * near * (own - discount(last + 1))
        return cls(own, np.cumsum(lost[::-1])[::-1], np.asarray(near))


def dcg_moves(ranked: RankedList) -> PlaceMoves:
    """`dcg`: what each row moves it."""
    return PlaceMoves.of(ranked, discount_of_places, steady_precision)


def aver_moves(ranked: RankedList) -> PlaceMoves:
    """`aver`: the same."""
    return PlaceMoves.of(ranked, np.reciprocal, steady_precision)


def variance_of_moves(
    own: FloatArray, moved: FloatArray, near: FloatArray, rows: FloatArray, units: FloatArray
) -> float:
    """Variance of a sum over places for fixed numbers of positives and negatives, drawn apart.

    Each entry stands for so many rows, positive with this chance; `units` are what its square
    counts for.
    """
    summed = 0.0
    for chance, pull in ((near, own - moved), (1 - near, -moved)):
        weight = rows * chance
        centre = float(np.dot(weight, pull)) / float(np.sum(weight))
        summed += float(np.dot(units * chance, (pull - centre) ** 2))
    return summed


def dcg_cut(sample: RowSample) -> Cut:
    """`dcg`: a share of the way from one tie to a list in order."""
    return _cut(sample, discount_of_places, summed_discount)


def aver_cut(sample: RowSample) -> Cut:
    """`aver`: the same."""
    return _cut(sample, np.reciprocal, lambda places: digamma(places + 1) - digamma(1))


def _cut(
    sample: RowSample,
    discount: Callable[[FloatArray], FloatArray],
    summed: Callable[[FloatArray], FloatArray],
) -> Cut:
    ranked, units = sample.ranked, min(sample.units)
    last = ranked.places[1:]
    found = float(np.dot(ranked.positive, discount(last)))
    most = max(found, float(summed(np.array([ranked.positives]))[0]))
    least = min(found, ranked.positives * float(discount(last[-1:])[0]))
    span = most - least
    first = discount(np.arange(1.0, min(ranked.positives, _FIRST) + 1))
    of_ordered = float(np.sum(first)) ** 2 / float(np.dot(first, first))
    share, trials = (found - least) / span, min(units, of_ordered)
    variance = _variance(sample, discount) / span**2
    inner = smooth_share(share * trials, trials)
    trials = effective_trials(inner, variance, _OF_EACH * units)
    return Cut(share, trials, variance, scale=span, offset=least)


def _variance(sample: RowSample, discount: Callable[[FloatArray], FloatArray]) -> float:
    """Variance of the sum of one list."""
    ranked = sample.ranked
    moves = PlaceMoves.of(ranked, discount, local_precision)
    in_tie = ranked.positive + ranked.negative
    summed = variance_of_moves(moves.own, moves.moved, moves.near, in_tie, in_tie)
    return summed / float(sample.worth(ranked.total))
