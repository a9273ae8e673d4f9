"""The tilted sums as a compiled kernel, for matrices so large that loading Numba repays itself.

Imported only then. Serial and without the GIL: threads are the caller's, one per block.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import BoolArray
from toprank._extras import jit
from toprank._numerics import FloatArray
from toprank.objective.sums import (
    BIN,
    BINS,
    EndPartial,
    ScoreHistogram,
    Standard,
    Tilted,
    Tilts,
)

# unsigned indices spare the test for negative ones; the flags allow the dot product to use
# vector registers, and keep infinities and NaN as they are
_FAST = {"reassoc", "contract", "nsz", "arcp"}

#: Columns up to which second moments are summed here faster than by BLAS (by 1.3 at 100).
MOST_SQUARED = 100
#: Rows of a class whose products are added up at once.
_HELD = 128
#: A row of less weight, times its largest squared entry, counts for nothing in second moments.
_NEGLIGIBLE = 1e-26


def tilted_ends(
    X: np.ndarray,
    positive: BoolArray,
    log_weight: FloatArray | None,
    coef: FloatArray,
    tilts: Tilts,
    scores: FloatArray,
    order: int = 1,
) -> list[EndPartial]:
    """Return for each end the tilted sums of positives and negatives; fill in the scores."""
    logs = np.empty(0) if log_weight is None else log_weight
    kind = positive.view(np.uint8)
    ends = []
    for of_pos, of_neg in tilts:
        squares: list[FloatArray | None] = [None, None]
        read = (X, kind, logs, coef, np.array([of_neg, of_pos]), scores)
        if order == 2:
            top, mass, moment, found = tilted_squares(*read)
            squares = [*found]
        else:
            top, mass, moment = tilted_sums(*read)
        neg, pos = (
            Tilted(moment[c], squares[c], float(top[c]) if mass[c] else -np.inf, float(mass[c]))
            for c in (0, 1)
        )
        ends.append((pos, neg))
    return ends


@jit(nogil=True, cache=True, fastmath=_FAST)
def tilted_sums(
    X: np.ndarray,
    kind: NDArray[np.uint8],
    log_weight: FloatArray,
    coef: FloatArray,
    tilts: FloatArray,
    scores: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (top, mass, moment) of w e^{tilt f} for each class.

    ``kind`` is the class of each row (0 or 1), an index into ``tilts``; an empty
    ``log_weight`` means weights of one. X is read once: a row is still in cache when its
    score is known. The scores themselves go to ``scores``.
    """
    d = np.uint64(X.shape[1])
    weighted = len(log_weight) > 0
    top = np.full(2, -1e308)  # finite, so that an absent row (t = -inf) has weight 0, not NaN
    mass = np.zeros(2)
    moment = np.zeros((2, X.shape[1]))
    for i in range(np.uint64(0), np.uint64(X.shape[0])):
        c = np.uint64(kind[i])
        x = X[i]
        t = 0.0
        for j in range(d):
            t += x[j] * coef[j]
        scores[i] = t
        t *= tilts[c]
        if weighted:
            t += log_weight[i]
        into = moment[c]
        if t > top[c]:
            keep = math.exp(top[c] - t)
            top[c] = t
            mass[c] *= keep
            for j in range(d):
                into[j] *= keep
        w = math.exp(t - top[c])
        mass[c] += w
        for j in range(d):
            into[j] += w * x[j]
    return top, mass, moment


def tilted_squares(
    X: np.ndarray,
    kind: NDArray[np.uint8],
    log_weight: FloatArray,
    coef: FloatArray,
    tilts: FloatArray,
    scores: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, list[FloatArray]]:
    """Return (top, mass, moment, second moment) of w e^{tilt f} for each class."""
    d = X.shape[1]
    even = d + d % 2
    top, mass = np.full(2, -1e308), np.zeros(2)
    moment, second = np.zeros((2, d)), np.zeros((2, even, even))
    held, n_held = np.zeros((2, even, _HELD)), np.zeros(2, dtype=np.uint64)
    read = (X, kind, log_weight, coef, tilts, scores)
    _add_squares(*read, top, mass, moment, second, held, n_held)
    squares = []
    for c in (0, 1):
        left = held[c, :, : n_held[c]]
        upper = (second[c] + left @ left.T)[:d, :d]
        squares.append(np.triu(upper) + np.triu(upper, 1).T)
    return top, mass, moment, squares


@jit(nogil=True, cache=True, fastmath=_FAST)
def _add_squares(
    X: np.ndarray,
    kind: NDArray[np.uint8],
    log_weight: FloatArray,
    coef: FloatArray,
    tilts: FloatArray,
    scores: FloatArray,
    top: FloatArray,
    mass: FloatArray,
    moment: FloatArray,
    second: FloatArray,
    held: FloatArray,
    n_held: NDArray[np.uint64],
) -> None:
    """Do as `tilted_sums` does, and add second moments, above the diagonal.

    Rows wait in ``held``, each times the root of its weight, until there are so many that their
    products are long sums; ``n_held`` of each class are left there at the end.
    """
    d = np.uint64(X.shape[1])
    weighted = len(log_weight) > 0
    for i in range(np.uint64(0), np.uint64(X.shape[0])):
        c = np.uint64(kind[i])
        x = X[i]
        t, size = 0.0, 0.0
        for j in range(d):
            t += x[j] * coef[j]
            size += np.float64(x[j]) * x[j]
        scores[i] = t
        t *= tilts[c]
        if weighted:
            t += log_weight[i]
        into = moment[c]
        if t > top[c] or n_held[c] == _HELD:
            keep = math.exp(min(0.0, top[c] - t))
            _add_products(second[c], held[c], n_held[c], keep)
            n_held[c] = 0
            top[c] = max(top[c], t)
            mass[c] *= keep
            for j in range(d):
                into[j] *= keep
        w = math.exp(t - top[c])
        mass[c] += w
        for j in range(d):
            into[j] += w * x[j]
        if w * max(1.0, size) < _NEGLIGIBLE:
            continue
        root, n = math.sqrt(w), n_held[c]
        for j in range(d):
            held[c, j, n] = root * x[j]
        n_held[c] = n + np.uint64(1)


@jit(nogil=True, cache=True, fastmath=_FAST)
def _add_products(second: FloatArray, held: FloatArray, n: int, keep: float) -> None:
    """Add the products of pairs of columns over the first n rows held, then multiply by ``keep``.

    Above the diagonal, two columns by two: an entry is read once for two products. Columns are
    even in number.
    """
    for j in range(0, second.shape[0], 2):
        a, b = held[j], held[j + 1]
        for k in range(j, second.shape[0], 2):
            u, v = held[k], held[k + 1]
            a_u, a_v, b_u, b_v = 0.0, 0.0, 0.0, 0.0
            for i in range(np.uint64(n)):
                a_u += a[i] * u[i]
                a_v += a[i] * v[i]
                b_u += b[i] * u[i]
                b_v += b[i] * v[i]
            second[j, k] = keep * (second[j, k] + a_u)
            second[j, k + 1] = keep * (second[j, k + 1] + a_v)
            second[j + 1, k] = keep * (second[j + 1, k] + b_u)
            second[j + 1, k + 1] = keep * (second[j + 1, k + 1] + b_v)


def histogram_of(
    scores: FloatArray, positive: BoolArray, weight: FloatArray | None, standard: Standard
) -> ScoreHistogram:
    """Return the histogram of some rows, as `ScoreHistogram.of` does."""
    found, w = ScoreHistogram(), np.empty(0) if weight is None else weight
    kind = positive.view(np.uint8)
    place = (standard.centre, standard.spread)
    far = np.empty(len(scores), dtype=np.bool_)
    if _fill_bins(scores, kind, w, *place, found.mass, found.moment, far):
        beyond = np.ones(np.count_nonzero(far)) if weight is None else weight[far]
        found.outside.append((standard.apply(scores[far]), positive[far], beyond))
    return found


@jit(nogil=True, cache=True)
def _fill_bins(
    scores: FloatArray,
    kind: NDArray[np.uint8],
    weight: FloatArray,
    centre: float,
    spread: float,
    mass: FloatArray,
    moment: FloatArray,
    far: NDArray[np.bool_],
) -> int:
    """Add each row to the bin of its class; return how many lie beyond the bins, and mark them."""
    beyond, weighted = 0, len(weight) > 0
    for i in range(len(scores)):
        u = (scores[i] - centre) / spread
        far[i] = not abs(u) < BIN * BINS / 2
        if far[i]:
            beyond += 1
            continue
        w = weight[i] if weighted else 1.0
        place = int(u / BIN + BINS / 2) + BINS * kind[i]
        mass[place] += w
        moment[place] += w * u
    return beyond
