"""What inference asks of metrics at k: shares at a cut of the list, and gains of the rows.

The share of positives above a cut is not a share of independent trials, because the cut itself
moves with the sample. With the local precision eta, the share of positives among the rows
near the cut, the influence of a row on the number of positives among the first k is

    1[row above the cut] (y - eta)

so that for rows drawn together Var(precision) = (P (1 - P) + (1 - k/n) (P - eta)^2) / k: more than
a binomial's where the precision falls along the list. A share with such a variance is worth as
many trials as a binomial of that variance has.

For a comparison the same metrics are sums of gains: what each row adds by standing where a ranker
put it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.metrics.lists import Lists
from toprank.metrics.order import RankedList
from toprank.metrics.retrieval import summed_discount
from toprank.metrics.roc import tpr_at_fpr_of

#: Places that are counted one by one, and the runs that deeper ones are taken together in.
_SINGLE, _RUNS = 1 << 16, 1 << 12
#: Below any variance, and trials that leave no doubt.
_TINY, _CERTAIN = 1e-300, 1e100


class RowSample(Protocol):
    """A ranked list as a sample of rows, which inference has drawn."""

    @property
    def ranked(self) -> RankedList:
        """The rows in order."""

    @property
    def units(self) -> tuple[float, float]:
        """How many independent positives and negatives the rows are worth."""

    def worth(self, depth: ArrayLike) -> Any:
        """How many independent rows a unit of weight above a cut at this depth is worth."""


@dataclass(frozen=True)
class Cut:
    """Shares of rows on one side of one or more cuts, and the trials that each is worth.

    Attributes
    ----------
    share, trials, variance : float or ndarray
        The share, its effective number of trials and its variance.
    scale, offset, most : float
        The metric is `scale` times the share and the offset, and at most `most`.
    fpr : float or ndarray, optional
        Where the share is a point of the ROC curve: its FPR.
    of_rows : bool
        Whether rows of both classes are the trials, and not positives alone.
    above : Cut, optional
        The share of positives among the rows above the cut, where trials are other rows: a few hits
        tell no more than these rows do.
    """

    share: Any
    trials: Any
    variance: Any
    scale: float = 1.0
    offset: float = 0.0
    most: float = np.inf
    fpr: Any = None
    of_rows: bool = False
    above: Cut | None = None

    def report(self, share: float) -> float:
        """The metric with this share."""
        return min(self.most, share * self.scale + self.offset)

    @property
    def is_certain(self) -> bool:
        """Whether the share is no matter of chance: that of a list of all rows."""
        return bool(np.all(self.trials >= _CERTAIN))


def smooth_share(hits: FloatArray | float, trials: FloatArray | float) -> Any:
    """A share that one more hit and one more miss keep away from 0 and 1."""
    return (hits + 1) / (trials + 2)


def effective_trials(share: Any, variance: Any, trials: Any) -> Any:
    """Trials of a share with this variance, but never more than there were."""
    return np.minimum(trials, share * (1 - share) / np.maximum(variance, _TINY))


def _hits(ranked: RankedList, depth: FloatArray | float) -> FloatArray | float:
    """Expected weight of positives above the cut; within a tie it grows evenly."""
    return np.interp(depth, ranked.places, ranked.found)


def _near(ranked: RankedList, depth: FloatArray | float) -> FloatArray | float:
    return local_precision(ranked, depth)


def local_precision(
    ranked: RankedList, depth: FloatArray | float, least: FloatArray | float = 4.0
) -> FloatArray | float:
    """The share of positives among the rows around a depth, at least so many to either side."""
    return _share_around(ranked, depth, _reach(depth, least))[0]


def steady_precision(
    ranked: RankedList, depth: FloatArray | float, least: FloatArray | float = 4.0
) -> FloatArray:
    """The same, where a row that keeps the share away from 0 and 1 has mostly that of more rows.

    `local_precision` adds half a positive and half a negative. A difference of rankers hangs on the
    first few rows, and that makes its spread up to twice as large where these are all positive. A
    row with the share of more rows alone makes it too small: simulated intervals covered 89%.
    """
    half = _reach(depth, least)
    share, rows = _share_around(ranked, depth, half)
    wide = _share_around(ranked, depth, np.maximum(_WIDE, half))[0]
    return np.asarray(share + _DRAWN * (wide - 0.5) / (rows + 1))


#: Rows on either side that are more rows, and how much of the row added has their share.
_WIDE, _DRAWN = 25.0, 0.75


def rows_around(ranked: RankedList, depth: float) -> tuple[float, float]:
    """The first and the last place of the rows around a depth that `local_precision` reads."""
    first, last = _places_around(ranked, depth, _reach(depth))
    return float(first), float(last)


def _reach(depth: FloatArray | float, least: FloatArray | float = 4.0) -> FloatArray:
    return np.maximum(np.maximum(4.0, least), depth**0.8)


def _places_around(
    ranked: RankedList, depth: FloatArray | float, half: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    return np.maximum(depth - half, 0.0), np.minimum(depth + half, ranked.total)


def _share_around(
    ranked: RankedList, depth: FloatArray | float, half: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """The share of positives among so many rows on either side of a depth, and their number."""
    first, last = _places_around(ranked, depth, half)
    found = np.interp([first, last], ranked.places, ranked.found)
    # one half of a positive and of a negative keep the share away from 0 and 1
    return (found[1] - found[0] + 0.5) / (last - first + 1), last - first


def precision_cut(sample: RowSample, depth: FloatArray | float) -> Cut:
    """Share of positives among the first `depth` units of the list."""
    ranked = sample.ranked
    hits, near = _hits(ranked, depth), _near(ranked, depth)
    trials = depth * sample.worth(depth)
    share, rest = smooth_share(hits, depth), 1 - depth / ranked.total
    variance = (share * (1 - share) + rest * (share - near) ** 2) / trials
    observed = np.minimum(1.0, hits / depth)
    return Cut(observed, effective_trials(share, variance, trials), variance)


def discounted_cut(sample: RowSample, depth: float) -> Cut:
    """Discounted share of positives among the first `depth` units.

    The gain is a mixture of the positives above the cuts at all depths up to this one, and its
    influence the mixture of theirs.
    """
    ranked = sample.ranked
    place, count, discount = _discounted_places(depth)
    total = float(np.dot(count, discount))
    near = _near(ranked, place)
    drops = discount - np.append(discount[1:], 0.0)
    moved = discount * near - np.cumsum((drops * near)[::-1])[::-1]
    own = discount**2 * near * (1 - near)
    trials = total**2 / float(np.dot(count, discount**2)) * sample.worth(depth)
    scale = sample.worth(depth) * total**2
    summed = float(np.dot(count, own + moved**2))
    variance = (summed - float(np.dot(count, moved)) ** 2 / ranked.total) / scale
    within = np.diff(summed_discount(np.minimum(ranked.places, depth)))
    share = ranked.positive / (ranked.positive + ranked.negative)
    observed = min(1.0, float(np.dot(share, within)) / total)
    inner = smooth_share(observed * trials, trials)
    return Cut(observed, effective_trials(inner, variance, trials), variance)


def _discounted_places(depth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places down to a depth, how many each stands for, and their discount.

    One by one, the last one in part, and from some depth on in growing runs.
    """
    place = np.arange(1.0, np.ceil(min(depth, _SINGLE)) + 1)
    count, discount = np.minimum(1.0, depth - (place - 1)), 1 / np.log1p(place)
    if depth > _SINGLE:
        ends = np.geomspace(_SINGLE, depth, _RUNS)
        runs = np.diff(ends)
        place = np.concatenate((place, ends[:-1] + runs / 2))
        count = np.concatenate((count, runs))
        discount = np.concatenate((discount, np.diff(summed_discount(ends)) / runs))
    return place, count, discount


def ideal_discount(ranked: RankedList, depth: float) -> float:
    """The discounted gain of a perfect ranking down to a depth."""
    return float(summed_discount(np.array([min(depth, ranked.positives)]))[0])


def recall_cut(sample: RowSample, depth: FloatArray | float) -> Cut:
    """Share of the positives that are among the first `depth` units."""
    ranked, high = sample.ranked, sample.units[0]
    hits = _hits(ranked, depth)
    share = smooth_share(hits, ranked.positives)
    variance = _recall_variance(sample, depth, share, _near(ranked, depth))
    observed = np.minimum(1.0, hits / ranked.positives)
    trials = _certain_of_all(ranked, depth, effective_trials(share, variance, high))
    return Cut(observed, trials, variance)


def _certain_of_all(
    ranked: RankedList, depth: FloatArray | float, trials: FloatArray | float
) -> FloatArray | float:
    """The trials of a recall, where the list has every row so many that it is 1 without doubt."""
    return np.where(depth >= ranked.total * (1 - 1e-12), _CERTAIN, trials)[()]


def _recall_variance(
    sample: RowSample, depth: FloatArray | float, share: FloatArray, eta: FloatArray | float
) -> FloatArray | float:
    """Variance of a recall if the share of positives at the cut is eta."""
    ranked = sample.ranked
    total = sample.units[0] * ranked.total / ranked.positives
    pi, q = ranked.positives / ranked.total, depth / ranked.total
    above = np.minimum(pi * share, q)  # rounding up the share must not leave the cut
    cells = (above, pi - above, q - above, np.maximum(0.0, 1 - pi - q + above))
    pulls = (1 - share - eta * (1 - q), eta * q - share, -eta * (1 - q), eta * q)
    summed = sum(cell * pull**2 for cell, pull in zip(cells, pulls, strict=True))
    return summed / (total * pi**2)


def lift_cut(sample: RowSample, depth: FloatArray | float) -> Cut:
    """The recall, to be held against the share of the list: rows of both classes are drawn.

    The precision held against the share of positives is the same number, but that share is drawn
    too, and with a precision near 1 most of the spread is its own. So the trials are as many as the
    variance says, of all rows, and not of the positives. Where the labels change from one row to
    the next, the rows nearest to the cut say what those around it hide: theirs is the variance, if
    it is larger.
    """
    cut, ranked = recall_cut(sample, depth), sample.ranked
    rows = sample.units[0] * ranked.total / ranked.positives
    share = smooth_share(cut.share * ranked.positives, ranked.positives)
    variance, wide = cut.variance, np.maximum(4.0, depth**0.8)
    around = _near(ranked, depth)
    for part in (2.0, 4.0):
        near, count = _share_around(ranked, depth, np.maximum(2.0, wide / part))
        apart = (near - around) ** 2 * count * sample.worth(depth) >= around * (1 - around)
        nearer = _recall_variance(sample, depth, share, near)
        variance = np.where(apart, np.maximum(variance, nearer), variance)
    trials = _certain_of_all(ranked, depth, effective_trials(share, variance, rows))
    of_rows = _certain_of_all(ranked, depth, depth * sample.worth(depth))
    above = replace(precision_cut(sample, depth), trials=of_rows)
    return replace(cut, trials=trials, variance=variance[()], above=above)


def tpr_cut(sample: RowSample, fpr: Any) -> Cut:
    """TPR where the FPR is `fpr`: the slope of the curve there carries the negatives' noise."""
    observed = np.vectorize(lambda rate: tpr_at_fpr_of(sample.ranked, rate))(fpr)
    high, low = sample.units
    slope = slope_of_curve(sample.ranked, fpr, observed)
    share = smooth_share(observed * high, high)
    variance = share * (1 - share) / high + slope**2 * fpr * (1 - fpr) / low
    return Cut(observed, effective_trials(share, variance, high), variance, fpr=fpr)


def fpr_where(ranked: RankedList, tpr: FloatArray) -> FloatArray:
    """Return the FPR where the TPR is `tpr`, the curve read from the side."""
    return np.interp(tpr, ranked.found / ranked.positives, ranked.passed / ranked.negatives)


def slope_of_curve(
    ranked: RankedList, fpr: FloatArray | float, tpr: FloatArray | float
) -> FloatArray | float:
    """Slope of the ROC curve at a point, from the local precision."""
    near = _near(ranked, fpr * ranked.negatives + tpr * ranked.positives)
    return near / (1 - near) * ranked.negatives / ranked.positives


def kept(ranked: RankedList, depth: float) -> FloatArray:
    """Expected share of each tie among the first `depth` units."""
    in_tie = ranked.positive + ranked.negative
    return np.clip(depth - ranked.places[:-1], 0.0, in_tie) / in_tie


def depth_of(ranked: RankedList, k: int | float, rounding: str = "up") -> float:
    """Units of weight that k asks for."""
    return float(Lists.of_one(ranked).sizes(k, rounding)[0])


def precision_at_cut(sample: RowSample, k: int | float) -> Cut:
    """`precision_at`: a share of the first k rows."""
    return replace(precision_cut(sample, depth_of(sample.ranked, k)), of_rows=True)


def value_at_cut(
    sample: RowSample, k: int | float, benefit: ArrayLike = 1.0, cost: ArrayLike = 0.0
) -> Cut | None:
    """`value_at` with one benefit and one cost: the precision, times the depth and the benefit."""
    if np.ndim(benefit) or np.ndim(cost) or not benefit:
        return None
    depth = depth_of(sample.ranked, k)
    gained, spent = depth * float(benefit), depth * float(cost)  # type: ignore[arg-type]
    cut = precision_cut(sample, depth)
    return replace(cut, of_rows=True, scale=gained, offset=-spent)


def recall_at_cut(sample: RowSample, k: int | float) -> Cut:
    """`recall_at`: a share of the positives."""
    return recall_cut(sample, depth_of(sample.ranked, k))


def lift_at_cut(sample: RowSample, k: int | float) -> Cut:
    """`lift_at`: the recall over the share of the list that k is."""
    depth = depth_of(sample.ranked, k)
    return replace(lift_cut(sample, depth), scale=sample.ranked.total / depth)


def enrichment_factor_cut(sample: RowSample, k: int | float) -> Cut:
    """`enrichment_factor`: the recall of rows wholly within the fraction, over the fraction."""
    ranked = sample.ranked
    depth = depth_of(ranked, k, "down")
    if depth == 0:
        raise ValueError(
            f"k={k:g} of {ranked.total:g} rows holds no row, so that the enrichment factor "
            "is 0 whatever the scores; take a larger k."
        )
    share = float(k) if isinstance(k, float) else depth / ranked.total
    return replace(lift_cut(sample, depth), scale=1 / share)


def ndcg_at_cut(sample: RowSample, k: int | float) -> Cut:
    """`ndcg_at`: a discounted share of the first k rows, over that of a perfect ranking."""
    depth = depth_of(sample.ranked, k)
    _, count, discount = _discounted_places(depth)
    total = float(np.dot(count, discount))
    scale = total / ideal_discount(sample.ranked, depth)
    return replace(discounted_cut(sample, depth), scale=scale, most=1.0)


def top_is_positive_cut(sample: RowSample) -> Cut:
    """`top_is_positive`: the share of positives in the first place."""
    top = sample.ranked.positive[0] + sample.ranked.negative[0]
    return precision_cut(sample, min(1.0, top))


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
