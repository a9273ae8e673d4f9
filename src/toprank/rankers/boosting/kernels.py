"""Compiled loops over binned columns. Imported when a booster is fitted or scores rows.

A column is stored as one byte per row: the number of its thresholds below the value, or `MISSING`.
The stump at threshold t has h = 1 where the code exceeds t; a missing value counts as the stump
says. Serial and without the GIL: threads are the caller's, each with columns or rows of its own,
so that the sums do not depend on their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import FloatArray, IntArray
from toprank._extras import jit
from toprank.rankers.boosting.rounds import EQUAL

if TYPE_CHECKING:
    from toprank._arrays import AnyArray, BoolArray


MISSING = 255
#: Ways of judging a stump by what the classes weigh on either side: for the pairs of two classes,
#: for AdaBoost, and for one label among several.
LOSS, SLOPE, PUSH, CLASSIFY, BY_ROW, BY_EXAMPLE, POOLED = range(7)

_jit = jit(nogil=True, cache=True)


@_jit
def digitise(
    block: FloatArray, edges: FloatArray, place: IntArray, codes: NDArray[np.uint8]
) -> None:
    """Write the codes of a block of rows to their places; edges are padded to 256 with inf."""
    for j in range(block.shape[1]):
        edge = edges[j]
        for r in range(block.shape[0]):
            x = block[r, j]
            if np.isnan(x):
                codes[j, place[r]] = MISSING
                continue
            position = 0
            step = 128
            while step:
                position += step * (edge[position + step - 1] < x)
                step >>= 1
            codes[j, place[r]] = position


@_jit
def add_steps(
    block: FloatArray,
    columns: IntArray,
    edges: FloatArray,
    values: FloatArray,
    missing: NDArray[np.uint8],
    out: FloatArray,
) -> None:
    """Add the step functions of some columns; edges are padded to a power of two with inf."""
    half = edges.shape[1] >> 1
    for r in range(block.shape[0]):
        total = 0.0
        for q in range(len(columns)):
            x = block[r, columns[q]]
            if np.isnan(x):
                total += missing[q]
                continue
            position = 0
            step = half
            while step:
                position += step * (edges[q, position + step - 1] < x)
                step >>= 1
            total += values[q, position]
        out[r] += total


@_jit
def rows_where(
    codes: NDArray[np.uint8],
    table: NDArray[np.uint8],
    wanted: int,
    starts: NDArray[np.int64],
    out: NDArray[np.int32],
) -> NDArray[np.int64]:
    """List the rows with table[code] = wanted, chunk by chunk; return how many each has."""
    counts = np.zeros(len(starts) - 1, dtype=np.int64)
    for c in range(len(starts) - 1):
        at = starts[c]
        for i in range(starts[c], starts[c + 1]):
            out[at] = i
            at += table[codes[i]] == wanted
        counts[c] = at - starts[c]
    return counts


@_jit
def accumulate(
    codes: NDArray[np.uint8],
    weight: FloatArray,
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Add the weights of the listed rows to the histograms out[j - first] of some columns.

    A chunk's weights are gathered once and stay in cache while the columns pass by. Four tables
    per column spare the wait when neighbouring rows fall into one bin.
    """
    longest = np.max(counts)
    gathered = np.empty(longest)
    tables = np.zeros((last - first, 4, 256))
    for c in range(len(counts)):
        start, n = starts[c], counts[c]
        for r in range(n):
            gathered[r] = weight[rows[start + r]]
        listed = rows[start : start + n]
        whole = n - n % 4
        for j in range(last - first):
            column = codes[first + j]
            t0, t1, t2, t3 = tables[j, 0], tables[j, 1], tables[j, 2], tables[j, 3]
            for r in range(0, whole, 4):
                t0[column[listed[r]]] += gathered[r]
                t1[column[listed[r + 1]]] += gathered[r + 1]
                t2[column[listed[r + 2]]] += gathered[r + 2]
                t3[column[listed[r + 3]]] += gathered[r + 3]
            for r in range(whole, n):
                t0[column[listed[r]]] += gathered[r]
    for j in range(last - first):
        for b in range(256):
            out[j, b] = (tables[j, 0, b] + tables[j, 1, b]) + (tables[j, 2, b] + tables[j, 3, b])


@_jit
def label_sums(
    codes: NDArray[np.uint8],
    members: IntArray,
    weight: FloatArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Histograms of one label's weights: of the rows that have it (out[0]) and of the others."""
    for j in range(first, last):
        column = codes[j]
        for i in range(len(members)):
            out[1 - members[i], j, column[i]] += weight[i]


@_jit
def side_masses(
    codes: NDArray[np.uint8], table: AnyArray, weight: FloatArray, starts: IntArray
) -> FloatArray:
    """Sum the weights with h = 0 and with h = 1 in each chunk of rows; table[code] is h."""
    sums = np.zeros((len(starts) - 1, 2))
    for c in range(len(starts) - 1):
        above, below = 0.0, 0.0
        for i in range(starts[c], starts[c + 1]):
            h = table[codes[i]]
            above += weight[i] * h
            below += weight[i] * (1 - h)
        sums[c, 0], sums[c, 1] = below, above
    return sums


@_jit
def move(
    codes: NDArray[np.uint8],
    steps: np.ndarray,
    factors: np.ndarray,
    weight: FloatArray,
    scores: FloatArray,
) -> None:
    """Add steps[code] to the scores, and multiply the weights by factors[code]."""
    for i in range(len(codes)):
        scores[i] += steps[codes[i]]
        weight[i] *= factors[codes[i]]


@_jit
def class_gains(
    sums: FloatArray,
    beside: FloatArray,
    n_edges: IntArray,
    has_missing: BoolArray,
    mode: int,
    p: float,
    gains: FloatArray,
) -> None:
    """Judge every stump from the histograms of the two classes (positives first).

    gains[j, s, t] belongs to column j, missing values on side s, threshold t. `beside` is what the
    mode must know beside the sums: for CLASSIFY what the classes weigh together, for POOLED what
    the other labels weigh. The sums below and above a threshold are each added up without a
    subtraction, so that an empty side weighs exactly nothing.
    """
    for j in range(len(n_edges)):
        n = n_edges[j]
        lost_p, lost_n = sums[0, j, MISSING], sums[1, j, MISSING]
        above_p, above_n = np.zeros(n + 1), np.zeros(n + 1)
        for t in range(n - 1, -1, -1):
            above_p[t] = above_p[t + 1] + sums[0, j, t + 1]
            above_n[t] = above_n[t + 1] + sums[1, j, t + 1]
        below_p, below_n = 0.0, 0.0
        for t in range(n + 1):
            below_p += sums[0, j, t]
            below_n += sums[1, j, t]
            for side in range(2):
                if (side == 0 and t == n) or (side == 1 and not has_missing[j]):
                    gains[j, side, t] = -1.0
                    continue
                p1 = above_p[t] + side * lost_p
                p0 = below_p + (1 - side) * lost_p
                n1 = above_n[t] + side * lost_n
                n0 = below_n + (1 - side) * lost_n
                gains[j, side, t] = _gain(p1, p0, n1, n0, beside, mode, p)


@_jit
def _gain(
    p1: float, p0: float, n1: float, n0: float, beside: FloatArray, mode: int, p: float
) -> float:
    if mode >= BY_ROW:
        right, wrong = label_masses(p1, p0, n1, n0, beside, mode)
        return abs(np.sqrt(right) - np.sqrt(wrong))
    p1, p0 = p1 / (p1 + p0), p0 / (p1 + p0)
    n1, n0 = n1 / (n1 + n0), n0 / (n1 + n0)
    if mode == LOSS:
        return abs(np.sqrt(p1 * n0) - np.sqrt(p0 * n1))
    if mode == SLOPE:
        return abs(p1 * n0 - p0 * n1)
    if mode == CLASSIFY:
        return abs(beside[0] * (p1 - p0) - beside[1] * (n1 - n0))
    return np.sqrt(push_decrease(p1, p0, n1, n0, p))


@_jit
def push_decrease(p1: float, p0: float, n1: float, n0: float, p: float) -> float:
    """Return what the best step takes off log R^(1/p): -ln(P1 x + P0) - ln(N1 x^-p + N0)/p.

    x = e^-alpha = (P0 N1 / (P1 N0))^(1/(1+p)). Close to zero, where the logarithms cancel, the
    second-order value edge^2 / (2 curvature).
    """
    right, wrong = p1 * n0, p0 * n1
    if right == 0.0 and wrong == 0.0:
        return 0.0
    if right == 0.0 or wrong == 0.0:
        left_p, left_n = (p0, n0) if p0 * n0 > 0.0 else (p1, n1)
        if left_p * left_n == 0.0:
            return 1e300
        return max(0.0, -np.log(left_p) - np.log(left_n) / p)
    alpha = np.log(right / wrong) / (1.0 + p)
    if abs(alpha) < 1e-4:
        edge = right - wrong
        return 0.5 * edge * edge / (p1 * p0 + p * n1 * n0)
    return -np.log1p(p1 * np.expm1(-alpha)) - np.log1p(n1 * np.expm1(p * alpha)) / p


@_jit
def label_masses(
    p1: float, p0: float, n1: float, n0: float, beside: FloatArray, mode: int
) -> tuple[float, float]:
    """The weights that a stump of one label, zero for all others, ranks rightly and wrongly.

    BY_ROW: its value is 2h - 1. BY_EXAMPLE: rows are weighed by their pairs within the example, in
    which only this label moves. POOLED: every member against every non-member.
    """
    if mode == BY_ROW:
        return p1 + n0, p0 + n1
    if mode == BY_EXAMPLE:
        return p1, n1
    return p1 * (beside[1] + n0), (beside[0] + p0) * n1


@_jit
def first_best(gains: FloatArray, n_edges: IntArray) -> tuple[int, int, int, float]:
    """Return (column, threshold, side) of the best gain; among equals the first in that order."""
    best = -1.0
    for j in range(len(n_edges)):
        for t in range(n_edges[j] + 1):
            best = max(best, gains[j, 0, t], gains[j, 1, t])
    for j in range(len(n_edges)):
        for t in range(n_edges[j] + 1):
            for side in range(2):
                if gains[j, side, t] >= best - EQUAL and gains[j, side, t] >= 0.0:
                    return j, t, side, best
    return -1, -1, -1, best
