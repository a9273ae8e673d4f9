"""Compiled loops over crucial pairs in general: within groups and grades, or listed one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._extras import compiled
from toprank.rankers.boosting.kernels import MISSING, SLOPE

#: Groups of so few rows are compared row by row.
FEW_ROWS = 32

_compiled: Any = compiled(nogil=True, cache=True)


@_compiled
def pair_gains(
    plus: Any, minus: Any, n_edges: Any, has_missing: Any, mode: int, gains: Any
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


@_compiled
def explicit_curves(
    codes: Any, winners: Any, losers: Any, weight: Any, side: int, first: int, last: int, out: Any
) -> None:
    """Differences in t of d+ (out[0]) and d- (out[1]); a pair counts from one code to the other."""
    for j in range(first, last):
        column = codes[j]
        for q in range(len(winners)):
            a = _shifted(column[winners[q]], side)
            b = _shifted(column[losers[q]], side)
            if a > b:
                out[0, j, b] += weight[q]
                out[0, j, a] -= weight[q]
            elif a < b:
                out[1, j, a] += weight[q]
                out[1, j, b] -= weight[q]


@_compiled
def graded_curves(
    codes: Any,
    win: Any,
    lose: Any,
    levels: Any,
    groups: Any,
    side: int,
    first: int,
    last: int,
    out: Any,
) -> None:
    """The same differences for rows in order of (group, label): O(log bins) a row.

    Pair (i, k) of a group, label i > label k, weighs win[i] lose[k]. `levels` cuts the rows where
    the label changes, `groups` cuts the levels where the group does. In a group of few rows the
    pairs are fewer than the steps through a tree.
    """
    tree = np.zeros(258)
    for j in range(first, last):
        column = codes[j]
        plus, minus = out[0, j], out[1, j]
        for g in range(len(groups) - 1):
            if levels[groups[g + 1]] - levels[groups[g]] <= FEW_ROWS:
                _few_rows(column, win, lose, levels, groups[g], groups[g + 1], side, plus, minus)
                continue
            total = 0.0
            for level in range(groups[g], groups[g + 1]):
                for i in range(levels[level], levels[level + 1]):
                    b = _shifted(column[i], side)
                    below, upto = _below(tree, b), _below(tree, b + 1)
                    plus[b] -= win[i] * below
                    minus[b] += win[i] * max(0.0, total - upto)
                for i in range(levels[level], levels[level + 1]):
                    total += lose[i]
                    _plant(tree, _shifted(column[i], side), lose[i])
            _clear(tree, column, side, levels[groups[g]], levels[groups[g + 1]])
            total = 0.0
            for level in range(groups[g + 1] - 1, groups[g] - 1, -1):
                for i in range(levels[level], levels[level + 1]):
                    b = _shifted(column[i], side)
                    below, upto = _below(tree, b), _below(tree, b + 1)
                    plus[b] += lose[i] * max(0.0, total - upto)
                    minus[b] -= lose[i] * below
                for i in range(levels[level], levels[level + 1]):
                    total += win[i]
                    _plant(tree, _shifted(column[i], side), win[i])
            _clear(tree, column, side, levels[groups[g]], levels[groups[g + 1]])


@_compiled
def _few_rows(
    column: Any,
    win: Any,
    lose: Any,
    levels: Any,
    first: int,
    last: int,
    side: int,
    plus: Any,
    minus: Any,
) -> None:
    for level in range(first + 1, last):
        for i in range(levels[level], levels[level + 1]):
            a = _shifted(column[i], side)
            for k in range(levels[first], levels[level]):
                b = _shifted(column[k], side)
                weight = win[i] * lose[k]
                if a > b:
                    plus[b] += weight
                    plus[a] -= weight
                elif a < b:
                    minus[a] += weight
                    minus[b] -= weight


@_compiled
def _shifted(code: int, side: int) -> int:
    """Codes in order with missing values first (side 0) or last (side 1)."""
    return (256 if side else 0) if code == MISSING else code + 1


@_compiled
def _plant(tree: Any, b: int, value: float) -> None:
    b += 1
    while b < 258:
        tree[b] += value
        b += b & -b


@_compiled
def _below(tree: Any, b: int) -> float:
    total = 0.0
    while b > 0:
        total += tree[b]
        b -= b & -b
    return total


@_compiled
def _clear(tree: Any, column: Any, side: int, start: int, stop: int) -> None:
    for i in range(start, stop):
        b = _shifted(column[i], side) + 1
        while b < 258:
            tree[b] = 0.0
            b += b & -b


@_compiled
def graded_masses(codes: Any, table: Any, win: Any, lose: Any, levels: Any, groups: Any) -> Any:
    """d+, d- and d0 of one stump, each a sum of positive terms; table[code] is h."""
    plus, minus, zero = 0.0, 0.0, 0.0
    for g in range(len(groups) - 1):
        low, high = 0.0, 0.0
        for level in range(groups[g], groups[g + 1]):
            for i in range(levels[level], levels[level + 1]):
                if table[codes[i]]:
                    plus += win[i] * low
                    zero += win[i] * high
                else:
                    minus += win[i] * high
                    zero += win[i] * low
            for i in range(levels[level], levels[level + 1]):
                if table[codes[i]]:
                    high += lose[i]
                else:
                    low += lose[i]
    return plus, minus, zero


@_compiled
def restarted_sums(values: Any, levels: Any, groups: Any) -> Any:
    """For each row, the sum of the values at the lower levels of its group."""
    out = np.empty(len(values))
    for g in range(len(groups) - 1):
        total = 0.0
        for level in range(groups[g], groups[g + 1]):
            here = 0.0
            for i in range(levels[level], levels[level + 1]):
                out[i] = total
                here += values[i]
            total += here
    return out
