"""What inference asks of sums over the positives of a discount of their place: `dcg` and `aver`.

Among so many positives and negatives the sum lies between that of a list in order and that of a
list that is one tie. As a share of the way between the two it is worth as many trials as its
variance says. A positive adds the discount of its own place, and every row moves those behind it
one place on. Which rows are positive is taken from the rows around each place: those that happen to
stand first show too little of the spread that others there would have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma

from toprank._numerics import FloatArray
from toprank.metrics.at_cut import Cut, RowSample, effective_trials, local_precision, smooth_share
from toprank.metrics.retrieval import discount_of_places, summed_discount

#: Trials that a row of the rarer class is worth at most: ties differ less than a share of trials.
_OF_EACH = 4.0
#: First places that tell how many trials a list in order is worth.
_FIRST = 1 << 16


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
    variance = _variance(sample, discount(last), discount(last + 1)) / span**2
    inner = smooth_share(share * trials, trials)
    trials = effective_trials(inner, variance, _OF_EACH * units)
    return Cut(share, trials, variance, scale=span, offset=least)


def _variance(sample: RowSample, here: FloatArray, further: FloatArray) -> float:
    """Variance of the sum for fixed numbers of positives and negatives, drawn apart."""
    ranked = sample.ranked
    in_tie = ranked.positive + ranked.negative
    near = local_precision(ranked, (ranked.places[:-1] + ranked.places[1:] + 1) / 2, in_tie / 2)
    moved = np.cumsum((in_tie * near * (here - further))[::-1])[::-1]
    summed = 0.0
    for weight, pull in ((in_tie * near, here - moved), (in_tie * (1 - near), -moved)):
        centre = float(np.dot(weight, pull)) / float(np.sum(weight))
        summed += float(np.dot(weight, (pull - centre) ** 2))
    return summed / float(sample.worth(ranked.total))
