"""A test for small samples: let the rankers trade places, row by row.

If two rankers are equally good and alike, their ranks of any row can be swapped without
changing the law of the data. The difference of the metric over many random swaps is its null
distribution, whatever the sample size; a normal limit is not needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from toprank._numerics import FloatArray
from toprank.inference.request import Request
from toprank.metrics.metric import Swaps

_CELLS = 2**20


def swap_p_value(a: Request, b: Request, swaps: Swaps, difference: float) -> float:
    """Two-sided p-value of a difference, from random swaps of the rankers' ranks."""
    rng = np.random.default_rng(a.random_state)
    positive, n = a.sample.positive, len(a.sample.scores)
    # swapped ranks must not tie: one row keeps its jitter with either ranker
    jitter = rng.permutation(n) / (4 * n)
    ranks = [rankdata(one.sample.scores, "ordinal") + jitter for one in (a, b)]

    def statistic(ranks: FloatArray) -> FloatArray:
        return swaps.of_orders(_from_the_top(positive, ranks), **a.settings)

    reached = done = 0
    while done < a.n_resamples:
        count = min(a.n_resamples - done, max(1, _CELLS // n))
        swap = rng.random((count, n)) < 0.5
        first, second = np.where(swap, ranks[1], ranks[0]), np.where(swap, ranks[0], ranks[1])
        gaps = statistic(first) - statistic(second)
        reached += int(np.count_nonzero(np.abs(gaps) >= abs(difference) * (1 - 1e-9)))
        done += count
    return (1 + reached) / (1 + a.n_resamples)


def _from_the_top(positive: NDArray[np.bool_], ranks: FloatArray) -> NDArray[np.bool_]:
    """The labels from the top of each list to its bottom, one list per row."""
    return positive[np.argsort(-ranks, axis=1)]
