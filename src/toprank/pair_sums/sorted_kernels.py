"""Compiled sorting, and sums over sorted graded pairs; imported only where there are many pairs.

Serial and without the GIL. Places, levels and groups are those of ``toprank.pairs.Graded``;
x are the oriented scores in order of place. ``inward`` turns a sum over the winners of each
place (to the outer rows) into one over the losers (to the inner rows).

Squares are summed with their gradient in one pass: where the multipliers of both rows of a pair
are known, as they are without a price, one walk gives what each loser meets above it and what each
winner meets below it,

    sum of v u (knot - r)_+^2 over the pairs, and half its gradient in the scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import FloatArray, IntArray
from toprank._extras import jit

#: Digits of eleven bits: three of them hold the upper half of a float64.
_BITS, _DIGITS = 11, 3
_MASK, _SHIFT = np.uint32((1 << _BITS) - 1), np.uint32(_BITS)
#: Places that rows may be moved, on average, where the upper halves agree.
_MOVES = 8


def score_order(x: ArrayLike) -> NDArray[np.integer]:
    """Return the places in order of score, equal scores in any order."""
    order, sorted_ = _by_upper_half(np.ascontiguousarray(x))
    return order if sorted_ else np.argsort(x)


@jit(nogil=True, cache=True)
def _by_digit(
    key: NDArray[np.integer],
    order: NDArray[np.integer],
    shift: np.uint32,
    count: NDArray[np.integer],
    new_key: NDArray[np.integer],
    new_order: NDArray[np.integer],
) -> None:
    filled = np.cumsum(count) - count
    for i in range(len(key)):
        digit = (key[i] >> shift) & _MASK
        at = filled[digit]
        new_key[at], new_order[at] = key[i], order[i]
        filled[digit] = at + 1


@jit(nogil=True, cache=True)
def _by_upper_half(x: FloatArray) -> tuple[NDArray[np.uint32], bool]:
    """Sort by the upper halves, digit by digit, and the rest by insertion if that is little."""
    n = len(x)
    bits, key, order = x.view(np.int64), np.empty(n, np.uint32), np.arange(n).astype(np.uint32)
    count = np.zeros((_DIGITS, 1 << _BITS), np.int64)
    for i in range(n):
        # so that keys are ordered as the numbers are: negative ones have all their bits turned
        key[i] = np.uint32((bits[i] ^ ((bits[i] >> 63) | np.int64(-(2**63)))) >> 32)
        count[0, key[i] & _MASK] += 1
        count[1, (key[i] >> _SHIFT) & _MASK] += 1
        count[2, key[i] >> (_SHIFT + _SHIFT)] += 1
    new_key, new_order = np.empty_like(key), np.empty_like(order)
    for digit in range(_DIGITS):
        _by_digit(key, order, np.uint32(digit) * _SHIFT, count[digit], new_key, new_order)
        key, new_key, order, new_order = new_key, key, new_order, order
    moves = _MOVES * n
    for i in range(1, n):
        place, score, at = order[i], x[order[i]], i
        while at > 0 and x[order[at - 1]] > score:
            order[at] = order[at - 1]
            at -= 1
        order[at] = place
        moves -= i - at
        if moves < 0:
            return order, False
    return order, True


@jit(nogil=True, cache=True)
def distribute(
    by_score: NDArray[np.integer], group_start: NDArray[np.integer], out: NDArray[np.integer]
) -> None:
    """Put the places, given in order of score, into their groups, in order of score there."""
    filled = group_start.copy()
    for place in by_score:
        first = group_start[place]
        out[filled[first]] = place
        filled[first] += 1


@jit(nogil=True, cache=True)
def part_nodes(
    low: NDArray[np.integer],
    middle: NDArray[np.integer],
    high: NDArray[np.integer],
    above: NDArray[np.integer],
    out: NDArray[np.integer],
) -> None:
    """Part the places low:high of each node at its middle, in order of score on both sides."""
    out[:] = above
    for node in range(len(low)):
        # unsigned, so that no place is checked for being negative
        left, right, cut = np.uint64(low[node]), np.uint64(middle[node]), middle[node]
        for at in range(low[node], high[node]):
            place = above[at]
            is_left = np.uint64(place < cut)
            out[left if is_left else right] = place
            left += is_left
            right += np.uint64(1) - is_left


@jit(nogil=True, cache=True)
def node_sums(
    x: FloatArray,
    v: FloatArray,
    low: IntArray,
    middle: IntArray,
    high: IntArray,
    order: IntArray,
    near: FloatArray,
    beyond: FloatArray,
    knot: float,
    includes_knot: bool,
    width: float,
    inward: bool,
    out: FloatArray,
) -> None:
    """Add to out[:, j] the sums of v p_j(gap), gap = knot - r, between the halves of each node.

    p_j is near[j] @ (1, gap, gap^2) where 0 < gap <= width (0 <= gap if ``includes_knot``) and
    beyond[j] @ (1, gap - width, (gap - width)^2) where gap > width.
    """
    sign, step = (-1.0, -1) if inward else (1.0, 1)
    source, weight, threshold = np.empty(len(x) + 1), np.empty(len(x) + 1), np.empty(len(x) + 1)
    limited = width < np.inf
    sums = np.empty((3 + 3 * limited, len(x) + 1))
    for node in range(len(low)):
        sources, targets = order[middle[node] : high[node]], order[low[node] : middle[node]]
        if inward:  # with both axes turned round the losers are the sources
            sources, targets = targets, sources
        sources, targets = sources[::step], targets[::step]
        for i in range(len(sources)):
            source[i], weight[i] = sign * x[sources[i]], v[sources[i]]
        for i in range(len(targets)):
            threshold[i] = sign * x[targets[i]] + knot
        source[len(sources)], weight[len(sources)] = np.nan, 0.0  # below no threshold, not even inf
        if limited:
            _walk_limited(source, weight, threshold, len(targets), includes_knot, width, sums)
            _scatter(beyond, sums[3:], targets, out)
        else:
            _walk_once(source, weight, threshold, len(targets), includes_knot, sums)
        _scatter(near, sums, targets, out)


@jit(nogil=True, cache=True)
def _scatter(terms: FloatArray, sums: FloatArray, targets: IntArray, out: FloatArray) -> None:
    """Add terms[j] @ sums to out[:, j] at the targets."""
    for j in range(len(terms)):
        for m in range(3):
            term, sum_m = terms[j, m], sums[m]
            if term != 0.0:  # zero times an infinite moment is no number
                for i in range(len(targets)):
                    out[targets[i], j] += term * sum_m[i]


@jit(nogil=True, cache=True)
def _walk_once(
    source: FloatArray,
    weight: FloatArray,
    threshold: FloatArray,
    n_targets: int,
    includes_knot: bool,
    sums: FloatArray,
) -> None:
    """For each threshold t, the sums of v (t - s)^m, m = 0, 1, 2, over the sources s < t.

    One walk through sources and thresholds in order. The moments move along from event to event,
    so that for positive v only positive numbers are added. Sources end with a NaN.
    Whether an event is a source enters by arithmetic: as a branch it would be guessed wrong half
    of the time, which costs more than everything else.
    """
    s0, s1, s2 = sums[0], sums[1], sums[2]
    m0 = m1 = m2 = 0.0
    at = min(source[0], threshold[0])
    entered = done = np.int64(0)
    at_knot = np.int64(includes_knot)
    while done < n_targets:
        s, t = source[entered], threshold[done]
        enters = np.int64(s < t) | (np.int64(s == t) & at_knot)
        event = s if s < t else t
        moved = event - at
        at = event
        m2 += moved * (2.0 * m1 + moved * m0)
        m1 += moved * m0
        m0 += weight[entered] * enters
        s0[done], s1[done], s2[done] = m0, m1, m2  # for good at the threshold
        entered += enters
        done += 1 - enters


@jit(nogil=True, cache=True)
def _walk_limited(
    source: FloatArray,
    weight: FloatArray,
    threshold: FloatArray,
    n_targets: int,
    includes_knot: bool,
    width: float,
    sums: FloatArray,
) -> None:
    """The same over t - width <= s < t, and over s < t - width with t - width for t."""
    m0 = m1 = m2 = b0 = b1 = b2 = at = 0.0
    entered = passed = 0
    for done in range(n_targets):
        t = threshold[done]
        moved = t - at if entered else 0.0
        b2 += moved * (2.0 * b1 + moved * b0)
        b1 += moved * b0
        while passed < entered and t - source[passed] > width:
            gap, v = at - source[passed], weight[passed]
            m0, m1, m2 = m0 - v, m1 - v * gap, m2 - v * gap * gap
            gap = t - source[passed] - width
            b0, b1, b2 = b0 + v, b1 + v * gap, b2 + v * gap * gap
            passed += 1
        if passed == entered:  # what is left is rounding
            m0 = m1 = m2 = 0.0
        else:
            m2 += moved * (2.0 * m1 + moved * m0)
            m1 += moved * m0
        at = t
        while source[entered] < t or (includes_knot and source[entered] == t):
            gap, v = t - source[entered], weight[entered]
            if gap > width:  # as are all before it
                gap -= width
                b0, b1, b2 = b0 + v, b1 + v * gap, b2 + v * gap * gap
                passed += 1
            else:
                m0, m1, m2 = m0 + v, m1 + v * gap, m2 + v * gap * gap
            entered += 1
        sums[0, done], sums[1, done], sums[2, done] = m0, m1, m2
        sums[3, done], sums[4, done], sums[5, done] = b0, b1, b2


@jit(nogil=True, cache=True)
def block_sums(
    x: FloatArray,
    v: FloatArray,
    start: NDArray[np.integer],
    end: NDArray[np.integer],
    level_start: NDArray[np.integer],
    level_end: NDArray[np.integer],
    near: FloatArray,
    beyond: FloatArray,
    knot: float,
    includes_knot: bool,
    width: float,
    inward: bool,
    out: FloatArray,
) -> None:
    """The sums of `node_sums` inside short stretches of places, pair by pair."""
    sign, moments = -1.0 if inward else 1.0, np.empty(6)
    for block in range(len(start)):
        for place in range(start[block], end[block]):
            first = start[block] if inward else level_end[place]
            last = level_start[place] if inward else end[block]
            threshold = sign * x[place] + knot
            moments[:] = 0.0
            for source in range(first, last):
                s, t = sign * x[source], threshold
                if s < t or (s == t and includes_knot):
                    gap, at = t - s, 0
                    if gap > width:
                        gap, at = gap - width, 3
                    moments[at] += v[source]
                    moments[at + 1] += v[source] * gap
                    moments[at + 2] += v[source] * gap * gap
            for j in range(len(near)):
                for m in range(3):
                    if near[j, m] != 0.0:
                        out[place, j] += near[j, m] * moments[m]
                    if beyond[j, m] != 0.0:
                        out[place, j] += beyond[j, m] * moments[3 + m]


@jit(nogil=True, cache=True, fastmath={"contract"})
def node_squares(
    x: FloatArray,
    v: FloatArray,
    u: FloatArray,
    low: NDArray[np.integer],
    middle: NDArray[np.integer],
    high: NDArray[np.integer],
    order: NDArray[np.integer],
    knot: float,
    grad: FloatArray,
) -> float:
    """Return the sum between the halves of each node; add half its gradient to grad."""
    widest = np.max(high - low)
    winner, threshold, won, lost, above, below, squares = np.empty((7, widest + 2))
    total = 0.0
    for node in range(len(low)):
        losers, winners = order[low[node] : middle[node]], order[middle[node] : high[node]]
        for i in range(len(winners)):
            winner[i + 1], won[i + 1] = x[winners[i]], v[winners[i]]
        for i in range(len(losers)):
            threshold[i + 1], lost[i + 1] = x[losers[i]] + knot, u[losers[i]]
        counts = np.uint64(len(winners)), np.uint64(len(losers))
        _walk_both_ways(winner, threshold, won, lost, counts, above, below, squares)
        for i in range(len(losers)):
            total += lost[i + 1] * squares[i + 1]
            grad[losers[i]] += lost[i + 1] * above[i + 1]
        for i in range(len(winners)):
            grad[winners[i]] -= won[i + 1] * below[i + 1]
    return total


@jit(nogil=True, cache=True, fastmath={"contract"})
def _walk_both_ways(
    s: FloatArray,
    t: FloatArray,
    won: FloatArray,
    lost: FloatArray,
    counts: tuple[np.uint64, np.uint64],
    above: FloatArray,
    below: FloatArray,
    squares: FloatArray,
) -> None:
    """For each t the sums of won (t - s) and won (t - s)^2 over s < t; for each s of lost (t - s).

    Entries 1, 2, ... are in order. Upwards the moments of the winners move along from event to
    event, downwards those of the losers, so that only positive numbers are added. The two walks
    do not wait for each other, and which event comes next enters by arithmetic: as a branch it
    would be guessed wrong half of the time. Unsigned places spare the check for negative ones.
    """
    one, (n_winners, n_losers) = np.uint64(1), counts
    s[0], s[n_winners + one] = -np.inf, np.nan  # never enters upwards, never leaves downwards
    t[0], t[n_losers + one] = np.nan, np.inf
    lost[0] = won[n_winners + one] = 0.0
    up0 = up1 = up2 = down0 = down1 = 0.0
    up_at, down_at = min(s[1], t[1]), max(s[n_winners], t[n_losers])
    i = j = one
    k, m = n_winners, n_losers
    for _ in range(n_winners + n_losers):
        enters = np.uint64(s[i] < t[j])
        event = s[i] if s[i] < t[j] else t[j]
        moved = event - up_at
        up_at = event
        up2 += moved * (2.0 * up1 + moved * up0)
        up1 += moved * up0
        up0 += won[i] * enters
        above[j], squares[j] = up1, up2  # for good at the threshold
        i += enters
        j += one - enters

        enters = np.uint64(s[k] < t[m])
        event = t[m] if s[k] < t[m] else s[k]
        down1 += (down_at - event) * down0
        down0 += lost[m] * enters
        down_at = event
        below[k] = down1
        m -= enters
        k -= one - enters


@jit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def block_squares(
    x: FloatArray,
    v: FloatArray,
    u: FloatArray,
    start: NDArray[np.integer],
    end: NDArray[np.integer],
    level_end: NDArray[np.integer],
    knot: float,
    grad: FloatArray,
) -> float:
    """The same inside short stretches of places, pair by pair."""
    total = 0.0
    for block in range(len(start)):
        stop = end[block]
        for loser in range(start[block], stop):
            threshold, lost = x[loser] + knot, u[loser]
            squares = above = 0.0
            for winner in range(level_end[loser], stop):
                gap = max(threshold - x[winner], 0.0)
                pull = v[winner] * gap
                above += pull
                squares += pull * gap
                grad[winner] -= lost * pull
            total += lost * squares
            grad[loser] += lost * above
    return total
