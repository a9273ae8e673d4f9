"""Compiled loops over crucial pairs in general: within groups and grades, or listed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import FloatArray, IntArray
from toprank._extras import jit
from toprank.rankers.boosting.kernels import MISSING, SLOPE

if TYPE_CHECKING:
    from toprank._arrays import BoolArray


#: Groups of so few rows are compared row by row.
FEW_ROWS = 32

_jit = jit(nogil=True, cache=True)


@_jit
def pair_gains(
    plus: FloatArray,
    minus: FloatArray,
    n_edges: IntArray,
    has_missing: BoolArray,
    mode: int,
    gains: FloatArray,
) -> None:
    """Judge every stump by the weight of the pairs it ranks rightly and wrongly."""
    for j in range(len(n_edges)):
        for t in range(n_edges[j] + 1):
            for side in range(2):
                right, wrong = plus[j, side, t], minus[j, side, t]
                if (side == 0 and t == n_edges[j]) or (side == 1 and not has_missing[j]):
                    gains[j, side, t] = -1.0
                elif mode == SLOPE:
                    gains[j, side, t] = abs(right - wrong)
                else:
                    gains[j, side, t] = abs(np.sqrt(right) - np.sqrt(wrong))


@_jit
def listed_curves(
    column: NDArray[np.uint8],
    winners: IntArray,
    losers: IntArray,
    weight: FloatArray,
    side: int,
    plus: FloatArray,
    minus: FloatArray,
) -> None:
    """Add the differences of d+ and d- in t; a pair counts from one code to the other."""
    for q in range(len(winners)):
        a = _shift_code(column[winners[q]], side)
        b = _shift_code(column[losers[q]], side)
        if a > b:
            plus[b] += weight[q]
            plus[a] -= weight[q]
        elif a < b:
            minus[a] += weight[q]
            minus[b] -= weight[q]


@_jit
def graded_curves(
    column: NDArray[np.uint8],
    win: FloatArray,
    lose: FloatArray,
    level_start: IntArray,
    level_end: IntArray,
    cuts: IntArray,
    side: int,
    plus: FloatArray,
    minus: FloatArray,
) -> None:
    """The same differences for rows in order of group and label: O(log bins) per row.

    Pair (i, k) of a group, label i > label k, weighs win[i] lose[k]. Levels are those of
    ``toprank.pairs.Graded``, and `cuts` are its groups'. In a group of few rows the pairs are
    fewer than the steps through a tree.
    """
    tree = np.zeros(258)
    for g in range(len(cuts) - 1):
        first, last = cuts[g], cuts[g + 1]
        if last - first <= FEW_ROWS:
            _few_rows(column, win, lose, level_start, first, last, side, plus, minus)
            continue
        total, start = 0.0, first
        while start < last:
            end = level_end[start]
            for i in range(start, end):
                b = _shift_code(column[i], side)
                below, upto = _below(tree, b), _below(tree, b + 1)
                plus[b] -= win[i] * below
                minus[b] += win[i] * max(0.0, total - upto)
            for i in range(start, end):
                total += lose[i]
                _plant(tree, _shift_code(column[i], side), lose[i])
            start = end
        _clear(tree, column, side, first, last)
        total, end = 0.0, last
        while end > first:
            start = level_start[end - 1]
            for i in range(start, end):
                b = _shift_code(column[i], side)
                below, upto = _below(tree, b), _below(tree, b + 1)
                plus[b] += lose[i] * max(0.0, total - upto)
                minus[b] -= lose[i] * below
            for i in range(start, end):
                total += win[i]
                _plant(tree, _shift_code(column[i], side), win[i])
            end = start
        _clear(tree, column, side, first, last)


@_jit
def _few_rows(
    column: NDArray[np.uint8],
    win: FloatArray,
    lose: FloatArray,
    level_start: IntArray,
    first: int,
    last: int,
    side: int,
    plus: FloatArray,
    minus: FloatArray,
) -> None:
    for i in range(first, last):
        a = _shift_code(column[i], side)
        for k in range(first, level_start[i]):
            b = _shift_code(column[k], side)
            weight = win[i] * lose[k]
            if a > b:
                plus[b] += weight
                plus[a] -= weight
            elif a < b:
                minus[a] += weight
                minus[b] -= weight


@_jit
def _shift_code(code: int, side: int) -> int:
    """Codes in order with missing values first (side 0) or last (side 1)."""
    return (256 if side else 0) if code == MISSING else code + 1


@_jit
def _plant(tree: FloatArray, b: int, value: float) -> None:
    b += 1
    while b < 258:
        tree[b] += value
        b += b & -b


@_jit
def _below(tree: FloatArray, b: int) -> float:
    total = 0.0
    while b > 0:
        total += tree[b]
        b -= b & -b
    return total


@_jit
def _clear(tree: FloatArray, column: NDArray[np.uint8], side: int, start: int, stop: int) -> None:
    for i in range(start, stop):
        b = _shift_code(column[i], side) + 1
        while b < 258:
            tree[b] = 0.0
            b += b & -b


@_jit
def graded_masses(
    h: NDArray[np.uint8],
    win: FloatArray,
    lose: FloatArray,
    level_end: IntArray,
    cuts: IntArray,
) -> tuple[float, float, float]:
    """d+, d- and d0 of one stump with values h, each a sum of positive terms."""
    plus, minus, zero = 0.0, 0.0, 0.0
    for g in range(len(cuts) - 1):
        low, high, start = 0.0, 0.0, cuts[g]
        while start < cuts[g + 1]:
            end = level_end[start]
            for i in range(start, end):
                if h[i]:
                    plus += win[i] * low
                    zero += win[i] * high
                else:
                    minus += win[i] * high
                    zero += win[i] * low
            for i in range(start, end):
                if h[i]:
                    high += lose[i]
                else:
                    low += lose[i]
            start = end
    return plus, minus, zero


@_jit
def sums_below(values: FloatArray, level_start: IntArray, cuts: IntArray) -> FloatArray:
    """For each place, the sum of the values at the lower levels of its group."""
    out = np.empty(len(values))
    for g in range(len(cuts) - 1):
        below, level = 0.0, 0.0
        for i in range(cuts[g], cuts[g + 1]):
            if i == level_start[i]:
                below, level = below + level, 0.0
            out[i] = below
            level += values[i]
    return out


@_jit
def sums_above(values: FloatArray, level_end: IntArray, cuts: IntArray) -> FloatArray:
    """For each place, the sum of the values at the higher levels of its group."""
    out = np.empty(len(values))
    for g in range(len(cuts) - 1):
        above, level = 0.0, 0.0
        for i in range(cuts[g + 1] - 1, cuts[g] - 1, -1):
            if i + 1 == level_end[i]:
                above, level = above + level, 0.0
            out[i] = above
            level += values[i]
    return out


@_jit
def log_sums_above(logs: FloatArray, level_end: IntArray, cuts: IntArray) -> FloatArray:
    """For each place, the log of the sum of e^logs at the higher levels of its group."""
    out = np.empty(len(logs))
    for g in range(len(cuts) - 1):
        above, level = -np.inf, -np.inf
        for i in range(cuts[g + 1] - 1, cuts[g] - 1, -1):
            if i + 1 == level_end[i]:
                above, level = _log_add(above, level), -np.inf
            out[i] = above
            level = _log_add(level, logs[i])
    return out


@_jit
def _log_add(a: float, b: float) -> float:
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))
