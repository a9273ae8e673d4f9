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
from toprank.objective.sums import EndPartial, Tilted, Tilts

# unsigned indices spare the test for negative ones; the flags allow the dot product to use
# vector registers, and keep infinities and NaN as they are
_FAST = {"reassoc", "contract", "nsz", "arcp"}


def tilted_ends(
    X: np.ndarray,
    positive: BoolArray,
    log_weight: FloatArray | None,
    coef: FloatArray,
    tilts: Tilts,
    scores: FloatArray,
) -> list[EndPartial]:
    """Return for each end the tilted sums of positives and negatives; fill in the scores."""
    logs = np.empty(0) if log_weight is None else log_weight
    kind = positive.view(np.uint8)
    ends = []
    for of_pos, of_neg in tilts:
        top, mass, moment = tilted_sums(X, kind, logs, coef, np.array([of_neg, of_pos]), scores)
        neg, pos = (
            Tilted(moment[c], None, float(top[c]) if mass[c] else -np.inf, float(mass[c]))
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
