"""Compiled sums over graded pairs of the exponential and the logistic loss, where pairs are many.

Serial and without the GIL. Places, levels and groups are those of ``toprank.pairs.Graded``;
x are the oriented scores in order of place. ``inward`` turns a sum over the winners of each
place (to the outer rows) into one over the losers (to the inner rows).
"""

from __future__ import annotations

import math

import numpy as np

from toprank._arrays import BoolArray, FloatArray, IntArray
from toprank._extras import jit


@jit(nogil=True, cache=True)
def lowest_winner(x: FloatArray, level_end: IntArray, group_end: IntArray, out: FloatArray) -> None:
    """The lowest score among the winners over each place; infinity where there are none."""
    lowest, seen = np.inf, len(x)
    for place in range(len(x) - 1, -1, -1):
        if level_end[place] == group_end[place]:
            lowest, seen = np.inf, group_end[place]
        for winner in range(level_end[place], seen):
            lowest = min(lowest, x[winner])
        seen = min(seen, level_end[place])
        out[place] = lowest


@jit(nogil=True, cache=True)
def decays_to_outer(
    x: FloatArray,
    lowest: FloatArray,
    v: FloatArray,
    level_end: IntArray,
    group_end: IntArray,
    out: FloatArray,
) -> None:
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


@jit(nogil=True, cache=True)
def decays_to_inner(
    x: FloatArray,
    lowest: FloatArray,
    u: FloatArray,
    level_start: IntArray,
    group_start: IntArray,
    out: FloatArray,
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


@jit(nogil=True, cache=True)
def logistic_blocks(
    x: FloatArray,
    v: FloatArray,
    start: IntArray,
    end: IntArray,
    level_end: IntArray,
    wanted: BoolArray,
    inward: bool,
    out: FloatArray,
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


@jit(nogil=True, cache=True)
def cut_chunks(level_end: IntArray, group_end: IntArray, most: int) -> IntArray:
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


@jit(nogil=True, cache=True)
def spread_chunks(
    chunk: IntArray, box: IntArray, local: FloatArray, v: FloatArray, moments: FloatArray
) -> None:
    """Add to moments[chunk, m, box] the sums of v T_m(local), T_m Chebyshev's polynomials."""
    for place in range(len(v)):
        if chunk[place] >= 0:
            older, old, into = 0.0, v[place], moments[chunk[place], :, box[place]]
            into[0] += old
            older, old = old, local[place] * old
            for m in range(1, len(into)):
                into[m] += old
                older, old = old, 2.0 * local[place] * old - older


@jit(nogil=True, cache=True)
def gather_chunks(
    chunk: IntArray, box: IntArray, local: FloatArray, series: FloatArray, out: FloatArray
) -> None:
    """Add to out the Chebyshev series[chunk, :, box] at each place (Clenshaw's rule)."""
    for place in range(len(out)):
        if chunk[place] >= 0:
            c = series[chunk[place], :, box[place]]
            high, higher = c[len(c) - 1], 0.0
            for m in range(len(c) - 2, 0, -1):
                high, higher = c[m] + 2.0 * local[place] * high - higher, high
            out[place] += c[0] + local[place] * high - higher
