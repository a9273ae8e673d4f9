"""Compiled sums over graded pairs; imported only where there are many.

Serial and without the GIL. Places, levels and groups are those of ``toprank.pairs.Graded``;
x are the oriented scores in order of place. ``inward`` turns a sum over the winners of each
place (to the outer rows) into one over the losers (to the inner rows).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toprank._extras import compiled


@compiled(nogil=True, cache=True)
def distribute(by_score: Any, group_start: Any, out: Any) -> None:
    """Put the places, given in order of score, into their groups, in order of score there."""
    filled = group_start.copy()
    for place in by_score:
        first = group_start[place]
        out[filled[first]] = place
        filled[first] += 1


@compiled(nogil=True, cache=True)
def part_nodes(low: Any, middle: Any, high: Any, above: Any, out: Any) -> None:
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


@compiled(nogil=True, cache=True)
def node_sums(
    x: Any,
    v: Any,
    low: Any,
    middle: Any,
    high: Any,
    order: Any,
    near: Any,
    beyond: Any,
    knot: float,
    includes_knot: bool,
    width: float,
    inward: bool,
    out: Any,
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
            _walk(source, weight, threshold, len(targets), includes_knot, sums)
        _scatter(near, sums, targets, out)


@compiled(nogil=True, cache=True)
def _scatter(terms: Any, sums: Any, targets: Any, out: Any) -> None:
    """Add terms[j] @ sums to out[:, j] at the targets."""
    for j in range(len(terms)):
        for m in range(3):
            term, sum_m = terms[j, m], sums[m]
            if term != 0.0:  # zero times an infinite moment is no number
                for i in range(len(targets)):
                    out[targets[i], j] += term * sum_m[i]


@compiled(nogil=True, cache=True)
def _walk(
    source: Any, weight: Any, threshold: Any, n_targets: int, includes_knot: bool, sums: Any
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


@compiled(nogil=True, cache=True)
def _walk_limited(
    source: Any,
    weight: Any,
    threshold: Any,
    n_targets: int,
    includes_knot: bool,
    width: float,
    sums: Any,
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


@compiled(nogil=True, cache=True)
def block_sums(
    x: Any,
    v: Any,
    start: Any,
    end: Any,
    level_start: Any,
    level_end: Any,
    near: Any,
    beyond: Any,
    knot: float,
    includes_knot: bool,
    width: float,
    inward: bool,
    out: Any,
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


@compiled(nogil=True, cache=True)
def lowest_winner(x: Any, level_end: Any, group_end: Any, out: Any) -> None:
    """The lowest score among the winners over each place; infinity where there are none."""
    lowest, seen = np.inf, len(x)
    for place in range(len(x) - 1, -1, -1):
        if level_end[place] == group_end[place]:
            lowest, seen = np.inf, group_end[place]
        for winner in range(level_end[place], seen):
            lowest = min(lowest, x[winner])
        seen = min(seen, level_end[place])
        out[place] = lowest


@compiled(nogil=True, cache=True)
def decays_to_outer(x: Any, lowest: Any, v: Any, level_end: Any, group_end: Any, out: Any) -> None:
    """Give out = sum over the winners of v e^{lowest - x}, lowest that of the loser's place."""
    total, at, seen = 0.0, np.inf, len(x)
    for place in range(len(x) - 1, -1, -1):
        if level_end[place] == group_end[place]:
            total, at, seen = 0.0, np.inf, group_end[place]
            continue
        if lowest[place] < at:
            total *= math.exp(lowest[place] - at)
            at = lowest[place]
        for winner in range(level_end[place], seen):
            total += v[winner] * math.exp(at - x[winner])
        seen = min(seen, level_end[place])
        out[place] = total


@compiled(nogil=True, cache=True)
def decays_to_inner(
    x: Any, lowest: Any, u: Any, level_start: Any, group_start: Any, out: Any
) -> None:
    """Give out = sum over the losers of u e^{lowest - x}, lowest that of the loser's place."""
    total, at, seen = 0.0, -np.inf, 0
    for place in range(len(x)):
        if level_start[place] == group_start[place]:
            total, at, seen = 0.0, -np.inf, group_start[place]
            continue
        for loser in range(seen, level_start[place]):
            if lowest[loser] > at:
                total *= math.exp(at - lowest[loser])
                at = lowest[loser]
            total += u[loser] * math.exp(lowest[loser] - at)
        seen = max(seen, level_start[place])
        out[place] = total * math.exp(at - x[place])


@compiled(nogil=True, cache=True)
def logistic_blocks(
    x: Any, v: Any, start: Any, end: Any, level_end: Any, wanted: Any, inward: bool, out: Any
) -> None:
    """Add sums of v times the logistic loss or its derivatives inside short stretches."""
    for block in range(len(start)):
        for loser in range(start[block], end[block]):
            for winner in range(level_end[loser], end[block]):
                r = x[winner] - x[loser]
                target, source = (winner, loser) if inward else (loser, winner)
                decay = math.exp(-abs(r))
                share = 1.0 / (1.0 + decay)
                if wanted[0]:
                    out[0, target] += v[source] * (max(-r, 0.0) + math.log1p(decay))
                if wanted[1]:
                    out[1, target] -= v[source] * (decay * share if r > 0 else share)
                if wanted[2]:
                    out[2, target] += v[source] * decay * share * share


@compiled(nogil=True, cache=True)
def cut_chunks(level_end: Any, group_end: Any, most: int) -> Any:
    """Where runs of whole levels start that hold at most so many places, or one level alone."""
    starts = np.empty(len(level_end), dtype=np.intp)
    count, place, chunk_end = 0, 0, 0
    while place < len(level_end):
        end = level_end[place]
        if place >= chunk_end or end - starts[count - 1] > most:
            starts[count] = place
            count += 1
            chunk_end = group_end[place]
        place = end
    return starts[:count]


@compiled(nogil=True, cache=True)
def spread_chunks(chunk: Any, box: Any, local: Any, v: Any, moments: Any) -> None:
    """Add to moments[chunk, m, box] the sums of v T_m(local), T_m Chebyshev's polynomials."""
    for place in range(len(v)):
        if chunk[place] >= 0:
            older, old, into = 0.0, v[place], moments[chunk[place], :, box[place]]
            into[0] += old
            older, old = old, local[place] * old
            for m in range(1, len(into)):
                into[m] += old
                older, old = old, 2.0 * local[place] * old - older


@compiled(nogil=True, cache=True)
def gather_chunks(chunk: Any, box: Any, local: Any, series: Any, out: Any) -> None:
    """Add to out the Chebyshev series[chunk, :, box] at each place (Clenshaw's rule)."""
    for place in range(len(out)):
        if chunk[place] >= 0:
            c = series[chunk[place], :, box[place]]
            high, higher = c[len(c) - 1], 0.0
            for m in range(len(c) - 2, 0, -1):
                high, higher = c[m] + 2.0 * local[place] * high - higher, high
            out[place] += c[0] + local[place] * high - higher
