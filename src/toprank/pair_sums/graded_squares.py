"""Compiled squares over graded pairs, with their gradient, in one pass; see `graded_kernels`.

Where the multipliers of both rows of a pair are known, as they are without a price, one walk gives
what each loser meets above it and what each winner meets below it:

    sum of v u (knot - r)_+^2 over the pairs, and half its gradient in the scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._extras import compiled


@compiled(nogil=True, cache=True, fastmath={"contract"})
def node_squares(
    x: Any, v: Any, u: Any, low: Any, middle: Any, high: Any, order: Any, knot: float, grad: Any
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


@compiled(nogil=True, cache=True, fastmath={"contract"})
def _walk_both_ways(
    s: Any, t: Any, won: Any, lost: Any, counts: Any, above: Any, below: Any, squares: Any
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


@compiled(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def block_squares(
    x: Any, v: Any, u: Any, start: Any, end: Any, level_end: Any, knot: float, grad: Any
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
