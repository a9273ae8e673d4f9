"""Two sorted classes merged to one list of ties by a compiled loop. Imported only for long lists.

Depths are negated scores, ascending, and every row counts once. Serial and without the GIL.
"""

from __future__ import annotations

import numpy as np

from toprank._extras import jit
from toprank._numerics import FloatArray


@jit(nogil=True, cache=True)
def merge_ties(
    high: FloatArray, low: FloatArray, join: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what makes a `RankedList`: scores, found and passed.

    With ``join`` all negatives between two positives are one tie, and no scores are kept.
    """
    n_high, n_low = len(high), len(low)
    most = min(2 * n_high + 1, n_high + n_low) if join else n_high + n_low
    scores = np.empty(0 if join else most)
    found, passed = np.empty(most + 1), np.empty(most + 1)
    found[0] = passed[0] = 0.0
    i, j, tie = 0, 0, 0
    while i < n_high or j < n_low:
        if i == n_high or (j < n_low and low[j] < high[i]):
            depth = low[j]
            end = high[i] if i < n_high else np.inf
            j += 1
            while j < n_low and (low[j] == depth or (join and low[j] < end)):
                j += 1
        else:
            depth = high[i]
            while i < n_high and high[i] == depth:
                i += 1
            while j < n_low and low[j] == depth:
                j += 1
        if not join:
            scores[tie] = -depth
        tie += 1
        found[tie], passed[tie] = i, j
    return scores[:tie], found[: tie + 1], passed[: tie + 1]
