"""Lists that hold what was asked for with a stated probability, for this very list.

If n calibration rows and m new rows are exchangeable, then so is the order in which the rows of
one class come, from the top of the list down: whether the next negative (or positive) is a
calibration row or a new one is a draw from an urn of n and m balls without replacement, whatever
the scores. So, with H hypergeometric,

    P(more than v new negatives above the k-th calibration negative) <= P(H(n + m, n, k + v) < k)

and the same for positives from either end. Where a class runs out of rows, rows of the other class
take its place in the order, which only makes the event on the right larger. No distribution of
scores is assumed, and ties do no harm: rows tied with a calibration negative are left out, rows
tied with a calibration positive are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from toprank._numerics import FloatArray

#: Numbers of negatives that may stand above the cut grow by this factor.
_FINENESS = 1.25
#: Bounds at k negatives may fail with a chance that falls as k to this power: where positives are
#: rare, only short lists can be precise, and they stand and fall with the first few negatives.
_EARLY = 1.25
#: The same where many rows are tied: lists end between ties, not where a count of the grid is, and
#: the first tie holds many negatives already.
_FINENESS_TIED, _EARLY_TIED = 1.08, 0.7
#: Rows are tied where fewer of them than this share have a score of their own.
_DISTINCT = 0.25
#: Of the chance of an error of a recall, the part that goes to the number of new positives.
_FOR_NUMBER = 0.1
#: Numbers of new positives that are looked at together lie within this factor.
_BLOCK = 1.002
#: No plan of how many rows to label goes beyond.
_MOST_ROWS = 10**9

#: Urns drawn to see how often bounds fail together, and how closely their level is then found.
_PATHS, _HALVINGS = 20_000, 9
#: Terms of sums that are held in memory together.
_TERMS = 2_000_000

IntArray = NDArray[np.int64]


def lower_tail(
    total: IntArray | int, marked: IntArray | int, drawn: IntArray | int, at_most: IntArray | int
) -> FloatArray:
    """P(H <= at_most) for H marked balls among those drawn from an urn; bounds from above.

    Examples
    --------
    >>> lower_tail(10, 4, 3, 0).round(6).tolist()  # 6/10 * 5/9 * 4/8
    [0.166667]
    """
    given = np.broadcast_arrays(total, marked, drawn, at_most)
    urns, good, draws, most = (np.atleast_1d(np.asarray(part, np.float64)) for part in given)
    # beyond the mean the upper tail is the small one, and that of the balls not marked
    mirrored = most * urns > draws * good
    good = np.where(mirrored, urns - good, good)
    most = np.where(mirrored, draws - most - 1, most)
    tail = np.empty(len(urns))
    at_once = max(1, _TERMS // _n_terms(float(np.max(most))))
    for first in range(0, len(urns), at_once):
        part = slice(first, first + at_once)
        tail[part] = _sum_down(urns[part], good[part], draws[part], most[part])
    return np.where(mirrored, 1 - tail, tail)


def _n_terms(largest: float) -> int:
    """How many terms of a sum count; the standard deviation is at most the root of the mean."""
    return int(50 + 12 * np.sqrt(max(largest, 0.0)))


def _sum_down(
    total: FloatArray, marked: FloatArray, drawn: FloatArray, at_most: FloatArray
) -> FloatArray:
    """P(H <= at_most) where that is below the mean: terms that shrink ever faster, from the top."""
    lowest = np.maximum(0.0, drawn - (total - marked))
    possible = at_most >= lowest
    start = np.where(possible, np.minimum(at_most, np.minimum(marked, drawn)), lowest)
    log_first = (
        _log_choices(marked, start)
        + _log_choices(total - marked, drawn - start)
        - _log_choices(total, drawn)
    )
    x = np.maximum(start[:, None] - np.arange(_n_terms(float(np.max(start)))), 0.0)
    others = np.maximum((total - marked - drawn)[:, None] + x, 0.0)
    ratios = x * others / ((marked[:, None] - x + 1) * (drawn[:, None] - x + 1))
    terms = np.cumprod(ratios, axis=1)
    rest = terms[:, -1] / np.maximum(1 - ratios[:, -1], 1e-3)  # of a geometric series
    summed = np.exp(log_first) * (1 + np.sum(terms, axis=1) + rest)
    return np.where(possible, np.minimum(summed, 1.0), 0.0)


def _log_choices(n: FloatArray, k: FloatArray) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def smallest_where(holds: Callable[[IntArray], NDArray[np.bool_]], high: IntArray) -> IntArray:
    """The smallest whole numbers from 0 to high where a condition, false then true, holds.

    ``high`` itself is taken to hold.
    """
    low, high = np.zeros_like(high), high.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        held = holds(middle)
        high = np.where(held, middle, high)
        low = np.where(held, low, np.minimum(middle + 1, high))
    return high


# Precision ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def cut_counts(n: int, precision: float, tied: bool = False) -> IntArray:
    """The numbers k of calibration negatives at which lists may be cut: fixed before any label.

    They grow by a quarter each, by a twelfth where many rows are tied, up to the most that a list
    of that precision can pass.
    """
    most = max(1, int((1 - precision) * n))
    factor = _FINENESS_TIED if tied else _FINENESS
    steps = int(np.ceil(np.log(most) / np.log(factor))) + 1
    return np.unique(np.ceil(factor ** np.arange(steps)).astype(np.int64).clip(1, most))


def many_tied(known: FloatArray, counts: FloatArray, new: FloatArray) -> bool:
    """Whether few rows have a score of their own: of all rows, so that no label has a say in it."""
    distinct = len(np.unique(np.concatenate((known, new))))
    return distinct < _DISTINCT * (float(np.sum(counts)) + len(new))


@lru_cache(maxsize=256)
def most_negatives(n: int, m: int, precision: float, chance: float, tied: bool = False) -> IntArray:
    """How many new negatives there may be above each of the `cut_counts`, for all of them at once.

    The chance that one of the bounds fails is at most `chance`. Each alone fails less often, those
    of small k more often than those of large k: a share for each of them would do, but they mostly
    fail together, and how often one of them does is counted over drawn urns. Three standard errors
    of that count are taken off.
    """
    k = cut_counts(n, precision, tied)
    parts = _parts_of_chance(k, tied)
    few = _bounds_of_each(n, m, k, chance * parts)
    if len(k) == 1:
        return few
    paths = _draw_paths(n, m, k)
    allowed = chance - 3 * np.sqrt(chance * (1 - chance) / len(paths))
    low, high = np.log(chance), np.log(chance / np.min(parts))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        bounds = _bounds_of_each(n, m, k, np.minimum(np.exp(middle) * parts, chance))
        if np.mean(np.any(paths > bounds, axis=1)) <= allowed:
            low, few = middle, bounds
        else:
            high = middle
    return few


def _parts_of_chance(k: IntArray, tied: bool = False) -> FloatArray:
    """How the chance of an error is shared among the bounds at k negatives; sums to one."""
    parts = k.astype(np.float64) ** -(_EARLY_TIED if tied else _EARLY)
    return np.asarray(parts / np.sum(parts))


def _bounds_of_each(n: int, m: int, k: IntArray, each: FloatArray) -> IntArray:
    """Bounds that fail with at most these chances, each by itself."""
    high = np.full(len(k), m, dtype=np.int64)
    return smallest_where(
        lambda v: lower_tail(n + m, n, np.minimum(k + v, n + m), k - 1) <= each, high
    )


def _draw_paths(n: int, m: int, k: IntArray) -> IntArray:
    """New rows above the k-th calibration row in drawn orders, one order per row.

    Of n + m uniform numbers, what the next few calibration rows leave of the interval is a beta
    variable, and the new rows there are binomial.
    """
    draw = np.random.default_rng(0)
    above = np.zeros((_PATHS, len(k)), dtype=np.int64)
    so_far = np.zeros(_PATHS, dtype=np.int64)
    for place, step in enumerate(np.diff(k, prepend=0)):
        share = draw.beta(step, n - k[place] + 1, size=_PATHS)
        so_far = so_far + draw.binomial(m - so_far, share)
        above[:, place] = so_far
    return above


def cut_by_precision(
    negatives: FloatArray,
    counts: FloatArray,
    new: FloatArray,
    n: int,
    precision: float,
    chance: float,
    tied: bool = False,
) -> float:
    """The score above which the list begins; infinity where no list is long enough.

    Parameters
    ----------
    negatives, counts : arrays
        Scores of the calibration negatives, descending, and how many rows each stands for.
    new : array
        Scores of the new rows.
    n : int
        How many calibration rows there are.
    precision, chance : float
        The share of positives, and the chance of falling short of it.
    tied : bool, default=False
        Whether many rows are tied, as `many_tied` says.
    """
    m = len(new)
    k = cut_counts(n, precision, tied)
    bounds = most_negatives(n, m, precision, chance, tied)
    place = np.searchsorted(np.cumsum(counts), k, side="left")
    # with fewer than k negatives in the calibration part, the bound is for all new rows
    cuts = np.append(negatives, -np.inf)[np.minimum(place, len(negatives))]
    lengths = m - np.searchsorted(np.sort(new), cuts, side="right")
    allowed = np.floor((1 - precision) * lengths * (1 + 1e-12))
    passed = np.flatnonzero((bounds <= allowed) & (lengths > 0))
    return float(cuts[passed[-1]]) if len(passed) else float("inf")


def shortest_by_precision(
    n: int, m: int, precision: float, chance: float, tied: bool = False
) -> int:
    """The shortest list of that precision that n calibration rows can vouch for."""
    fewest = np.min(most_negatives(n, m, precision, chance, tied))
    return max(1, int(np.ceil(fewest / (1 - precision) * (1 - 1e-12))))


def planned_by_precision(n: int, m: int, precision: float, chance: float) -> int:
    """The same, a little too long, without drawing urns: for plans that try many n."""
    each = chance * _parts_of_chance(cut_counts(n, precision))[:1]
    fewest = _bounds_of_each(n, m, np.array([1], dtype=np.int64), each)[0]
    return max(1, int(np.ceil(fewest / (1 - precision) * (1 - 1e-12))))


# Recall -------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def positives_below(found: int, n: int, m: int, recall: float, chance: float) -> int:
    """How many calibration positives may be left below the cut, plus one; 0 where none may be.

    The cut is at the k-th lowest positive. The number b of new positives is unknown: it is at
    least what the number found among the n calibration rows leaves possible, and for every such b
    the chance that more than (1 - recall) b new ones are below the cut must be small.
    """
    high = np.array([m], dtype=np.int64)
    unlikely = chance * _FOR_NUMBER

    def possible(b: IntArray) -> NDArray[np.bool_]:
        """Whether the calibration part could hold so many of found + b positives."""
        total = np.minimum(found + b, n + m)
        return 1 - lower_tail(n + m, total, n, found - 1) > unlikely

    fewest = max(1, int(smallest_where(possible, high)[0]))
    first, last = _blocks(fewest, m)
    missed = np.floor((1 - recall) * first * (1 + 1e-12)).astype(np.int64)

    def fails(k: IntArray) -> NDArray[np.bool_]:
        drawn = np.minimum(k[0] + missed, found + last)
        error = lower_tail(found + last, found, drawn, k[0] - 1)
        return np.array([np.max(error) > chance - unlikely])

    # the smallest k - 1 >= 0 at which k fails
    return int(smallest_where(lambda k: fails(k + 1), np.array([found], dtype=np.int64))[0])


def _blocks(low: int, high: int) -> tuple[IntArray, IntArray]:
    """Ends of blocks of whole numbers from low to high; short ones where numbers are small."""
    starts = [low]
    while starts[-1] <= high:
        starts.append(max(starts[-1] + 1, int(starts[-1] * _BLOCK)))
    ends = np.minimum(np.array(starts[1:], dtype=np.int64) - 1, max(low, high))
    return np.array(starts[:-1], dtype=np.int64), ends


# Numbers of positives -----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def positives_to_pass(wanted: int, n: int, m: int, chance: float) -> int:
    """How many calibration positives must be in the list so that it holds that many new ones.

    More than n where no number will do.
    """

    def enough(j: IntArray) -> NDArray[np.bool_]:
        drawn = np.minimum(j + wanted - 1, n + m)
        return lower_tail(n + m, m, drawn, wanted - 1) <= chance

    found = smallest_where(enough, np.array([n + 1], dtype=np.int64))
    return max(1, int(found[0]))


# Plans --------------------------------------------------------------------------------------------


def rows_needed(supports: Callable[[int], bool], n: int) -> int | None:
    """The smallest number of labelled rows, beyond n, that supports a guarantee; None if none does.

    Found to one part in a hundred.
    """
    high = max(n, 1)
    while not supports(high):
        high *= 2
        if high > _MOST_ROWS:
            return None
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if supports(middle) else (middle, high)
    return high
