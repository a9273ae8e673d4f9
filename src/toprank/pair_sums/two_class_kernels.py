"""Compiled loops over the rows of two classes, with nothing kept per row but what is asked for.

Imported only where there are many rows. Serial and without the GIL. ``kind`` is the class of each
row, 0 or 1; rows of class ``inner`` have oriented scores a = sign f, the others b = sign f, and
r = a - b. An empty ``weight`` means weights of one; a row of weight zero is absent. ``share``
multiplies the weights.

For the logistic loss the sums are those of `toprank.pair_sums.interpolated`: a row adds to the
moments of its box, or evaluates the series of its box. Here both are in powers of the place x in
the box, which do not wait for each other as Chebyshev's recurrence does; `power_matrix` translates.
The series of a box falls by a factor of twelve per term, so that no digit is lost. For the squared
hinge the sums are those of `toprank.pair_sums.sorted`: one walk along the scores in order, with
moments about the place reached, which only grow.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toprank._extras import jit
from toprank._numerics import FloatArray

#: Terms of a series, written out below.
TERMS = 11


def power_matrix() -> FloatArray:
    """Return the powers of x in each Chebyshev polynomial, one line per polynomial."""
    lines = np.zeros((TERMS, TERMS))
    lines[0, 0] = lines[1, 1] = 1.0
    for m in range(2, TERMS):
        lines[m, 1:] = 2.0 * lines[m - 1, :-1]
        lines[m] -= lines[m - 2]
    return lines


@jit(nogil=True, cache=True)
def ends_of_scores(scores: FloatArray, kind: NDArray[np.integer], weight: FloatArray) -> FloatArray:
    """Return lowest and highest score of each class among the rows present, in lines by class."""
    weighted = len(weight) > 0
    ends = np.empty((2, 2))
    ends[:, 0], ends[:, 1] = np.inf, -np.inf
    for i in range(len(scores)):
        if weighted and weight[i] == 0.0:
            continue
        f, c = scores[i], kind[i]
        if math.isnan(f):
            ends[c, 0], ends[c, 1] = -np.inf, np.inf
        ends[c, 0] = min(ends[c, 0], f)
        ends[c, 1] = max(ends[c, 1], f)
    return ends


@jit(nogil=True, cache=True, inline="always")
def _add_powers(into: FloatArray, v: float, x: float) -> None:
    """Add v x^m to the moments of a box."""
    x2 = x * x
    x4 = x2 * x2
    vx, v4 = v * x, v * x4
    v8 = v4 * x4
    into[0] += v
    into[1] += vx
    into[2] += v * x2
    into[3] += vx * x2
    into[4] += v4
    into[5] += v4 * x
    into[6] += v4 * x2
    into[7] += v4 * x2 * x
    into[8] += v8
    into[9] += v8 * x
    into[10] += v8 * x2


@jit(nogil=True, cache=True, inline="always")
def _evaluate(t: FloatArray, x: float) -> float:
    """Return the polynomial at x, in pairs that do not wait for each other."""
    x2 = x * x
    x4 = x2 * x2
    low = (t[0] + t[1] * x) + (t[2] + t[3] * x) * x2
    middle = (t[4] + t[5] * x) + (t[6] + t[7] * x) * x2
    high = (t[8] + t[9] * x) + t[10] * x2
    return low + (middle + high * x4) * x4


@jit(nogil=True, cache=True)
def _power(x: float, p: float) -> float:
    """Return x^p, by products where p is a small whole number."""
    if p == math.floor(p) and p <= 64.0:
        left, total, square = int(p), 1.0, x
        while left:
            if left & 1:
                total *= square
            square *= square
            left >>= 1
        return total
    return math.exp(p * math.log(x)) if x > 0.0 else 0.0


@jit(nogil=True, cache=True)
def spread_weights(
    scores: FloatArray,
    kind: NDArray[np.integer],
    inner: int,
    sign: float,
    weight: FloatArray,
    share: float,
    grid: tuple[float, float, float],
    moments: FloatArray,
) -> None:
    """Add the weights of the inner rows to the moments of their boxes, one line per box.

    ``grid`` is (origin, width, number of the first box).
    """
    weighted = len(weight) > 0
    origin, width, first = grid
    for i in range(len(scores)):
        if kind[i] == inner and not (weighted and weight[i] == 0.0):
            v = share * weight[i] if weighted else share
            place = (sign * scores[i] - origin) / width
            box = math.floor(place)
            _add_powers(moments[int(box - first)], v, 2.0 * (place - box) - 1.0)


@jit(nogil=True, cache=True)
def evaluate_heights(
    scores: FloatArray,
    kind: NDArray[np.integer],
    inner: int,
    sign: float,
    weight: FloatArray,
    grid: tuple[float, float, float],
    series: FloatArray,
    out: FloatArray,
) -> float:
    """Write the height of every outer row that is present; return the largest."""
    weighted = len(weight) > 0
    origin, width, first = grid
    largest = 0.0
    for i in range(len(scores)):
        if kind[i] != inner and not (weighted and weight[i] == 0.0):
            place = (sign * scores[i] - origin) / width
            box = math.floor(place)
            height = _evaluate(series[int(box - first)], 2.0 * (place - box) - 1.0)
            # cancellation in signed node sums can leave a zero height at -1e-17
            out[i] = max(height, 0.0)
            largest = max(largest, height)
    return largest


@jit(nogil=True, cache=True)
def price_heights(
    kind: NDArray[np.integer],
    inner: int,
    weight: FloatArray,
    share: float,
    p: float,
    largest: float,
    heights: FloatArray,
) -> float:
    """Return the sum of w (S / largest)^p over the outer rows."""
    weighted = len(weight) > 0
    total = 0.0
    for i in range(len(heights)):
        if kind[i] != inner:
            v = share * weight[i] if weighted else share
            total += v * _power(heights[i] / largest, p)
    return total


@jit(nogil=True, cache=True)
def _per_height(height: float, v: float, p: float, largest: float, factor: float) -> float:
    """Return dF/dS = F w (S / largest)^p / (total S), with factor = F / total."""
    if height <= 0.0:
        return 0.0
    return factor * v * _power(height / largest, p) / height


@jit(nogil=True, cache=True)
def pull_outer(
    scores: FloatArray,
    kind: NDArray[np.integer],
    inner: int,
    sign: float,
    weight: FloatArray,
    share: float,
    p: float,
    largest: float,
    factor: float,
    grid: tuple[float, float, float],
    series: FloatArray,
    back: tuple[float, float, float],
    moments: FloatArray,
    out: FloatArray,
) -> None:
    """Turn heights into the gradient of the outer rows, and spread dF/dS onto boxes of -b.

    ``grid`` and ``series`` are of dS/dr, ``back`` and ``moments`` of the boxes of -b.
    """
    weighted = len(weight) > 0
    origin, width, first = grid
    back_origin, _, back_first = back
    for i in range(len(scores)):
        if kind[i] != inner and not (weighted and weight[i] == 0.0):
            v = share * weight[i] if weighted else share
            c = _per_height(out[i], v, p, largest, factor)
            b = sign * scores[i]
            place = (b - origin) / width
            box = math.floor(place)
            tilt = _evaluate(series[int(box - first)], 2.0 * (place - box) - 1.0)
            out[i] = -sign * c * tilt
            place = (-b - back_origin) / width
            box = math.floor(place)
            _add_powers(moments[int(box - back_first)], c, 2.0 * (place - box) - 1.0)


@jit(nogil=True, cache=True)
def pull_inner(
    scores: FloatArray,
    kind: NDArray[np.integer],
    inner: int,
    sign: float,
    weight: FloatArray,
    share: float,
    back: tuple[float, float, float],
    series: FloatArray,
    out: FloatArray,
) -> None:
    """Write the gradient of the inner rows, from the series of sum c l'(a - b) at -a."""
    weighted = len(weight) > 0
    origin, width, first = back
    for i in range(len(scores)):
        if kind[i] == inner and not (weighted and weight[i] == 0.0):
            v = share * weight[i] if weighted else share
            place = (-sign * scores[i] - origin) / width
            box = math.floor(place)
            slope = _evaluate(series[int(box - first)], 2.0 * (place - box) - 1.0)
            out[i] = sign * v * slope


@jit(nogil=True, cache=True)
def part_classes(
    scores: FloatArray,
    order: NDArray[np.integer],
    kind: NDArray[np.integer],
    inner: int,
    sign: float,
    weight: FloatArray,
    row: NDArray[np.integer],
    place: FloatArray,
) -> tuple[int, int]:
    """Put the rows present into ``row``, inner ones first, each class by ascending place.

    ``order`` is that of the scores; ``place`` takes the oriented scores. Returns how many inner
    and how many outer rows there are.
    """
    weighted = len(weight) > 0
    n, inner_rows = len(order), 0
    for i in range(n):
        if kind[i] == inner and not (weighted and weight[i] == 0.0):
            inner_rows += 1
    next_inner, next_outer = 0, inner_rows
    for at in range(n):
        i = order[at] if sign > 0 else order[n - 1 - at]
        if weighted and weight[i] == 0.0:
            continue
        if kind[i] == inner:
            row[next_inner], place[next_inner] = i, sign * scores[i]
            next_inner += 1
        else:
            row[next_outer], place[next_outer] = i, sign * scores[i]
            next_outer += 1
    return inner_rows, next_outer - inner_rows


@jit(nogil=True, cache=True)
def square_heights(
    row: NDArray[np.integer],
    place: FloatArray,
    inner_rows: int,
    outer_rows: int,
    weight: FloatArray,
    share: float,
    knot: float,
    out: FloatArray,
) -> float:
    """Write sum v (knot - r)_+^2 of every outer row, in the order of ``row``; return the largest.

    A second place runs along the inner rows below b + knot.
    """
    weighted = len(weight) > 0
    zero = one = two = largest = 0.0
    reached, k = 0.0, 0
    for at in range(inner_rows, inner_rows + outer_rows):
        threshold = place[at] + knot
        if k > 0:
            moved = threshold - reached
            two += moved * (2.0 * one + moved * zero)
            one += moved * zero
        reached = threshold
        while k < inner_rows and place[k] < threshold:
            v = share * weight[row[k]] if weighted else share
            gap = threshold - place[k]
            zero += v
            one += v * gap
            two += v * gap * gap
            k += 1
        out[at] = two
        largest = max(largest, two)
    return largest


@jit(nogil=True, cache=True)
def price_squares(
    row: NDArray[np.integer],
    inner_rows: int,
    outer_rows: int,
    weight: FloatArray,
    share: float,
    p: float,
    largest: float,
    heights: FloatArray,
) -> float:
    """Return the sum of w (S / largest)^p over the outer rows, in the order of ``row``."""
    weighted = len(weight) > 0
    total = 0.0
    for at in range(inner_rows, inner_rows + outer_rows):
        v = share * weight[row[at]] if weighted else share
        total += v * _power(heights[at] / largest, p)
    return total


@jit(nogil=True, cache=True)
def square_pulls(
    row: NDArray[np.integer],
    place: FloatArray,
    inner_rows: int,
    outer_rows: int,
    weight: FloatArray,
    inner_share: float,
    outer_share: float,
    knot: float,
    p: float,
    largest: float,
    factor: float,
    out: FloatArray,
) -> None:
    """Turn heights of squares into gradients in the oriented scores, in one walk each way.

    ``out`` holds the heights of the outer rows first, then dF/dS, and the gradients in the end.
    """
    weighted = len(weight) > 0
    end = inner_rows + outer_rows
    for at in range(inner_rows, end):
        u = outer_share * weight[row[at]] if weighted else outer_share
        out[at] = _per_height(out[at], u, p, largest, factor)
    zero = one = reached = 0.0
    k = end - 1
    for at in range(inner_rows - 1, -1, -1):
        v = inner_share * weight[row[at]] if weighted else inner_share
        threshold = place[at] - knot
        if k < end - 1:
            one += (reached - threshold) * zero
        reached = threshold
        while k >= inner_rows and place[k] > threshold:
            zero += out[k]
            one += out[k] * (place[k] - threshold)
            k -= 1
        out[at] = -2.0 * v * one
    zero = one = reached = 0.0
    k = 0
    for at in range(inner_rows, end):
        threshold = place[at] + knot
        if k > 0:
            one += (threshold - reached) * zero
        reached = threshold
        while k < inner_rows and place[k] < threshold:
            v = inner_share * weight[row[k]] if weighted else inner_share
            zero += v
            one += v * (threshold - place[k])
            k += 1
        out[at] *= 2.0 * one


@jit(nogil=True, cache=True)
def scatter(
    row: NDArray[np.integer], count: int, sign: float, values: FloatArray, out: FloatArray
) -> None:
    """Write sign times the values to their rows, zero elsewhere."""
    out[:] = 0.0
    for at in range(count):
        out[row[at]] = sign * values[at]
