"""An estimate of the Hessian from bins of scores, for rows in memory.

The exact Hessian of a loss that does not factorise takes an evaluation per column; the estimate
(`toprank.objective.binned_curvature`) takes one pass over some of the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.objective.binned_curvature import BinnedRows, BinnedSums
from toprank.objective.data import LabelledData

#: Rows of each class that a Hessian is estimated from, at the least; then rows per feature, for
#: Newton's method, whose steps use the estimate, and for L-BFGS, which only starts from it.
_ROWS, _FOR_NEWTON, _TO_START_FROM = 5_000, 150, 50
#: The most rows that are taken because their columns are few, and the products of entries that
#: these may take.
_ROWS_OF_FEW, _PRODUCTS = 1 << 17, 1 << 27


def drawn_rows(
    positive: NDArray[np.bool_], weight: FloatArray | None, size: int, *, for_newton: bool
) -> NDArray[np.intp]:
    """Return evenly spaced rows of each class that are present, in order."""
    per_feature = _FOR_NEWTON if for_newton else _TO_START_FROM
    most = max(_ROWS, per_feature * size, min(_ROWS_OF_FEW, _PRODUCTS // size**2))
    drawn = []
    for members in (positive, ~positive):
        rows = np.flatnonzero(members if weight is None else members & (weight > 0))
        drawn.append(rows[:: -(-len(rows) // most)])
    return np.sort(np.concatenate(drawn))


def binned_hessian(
    data: LabelledData,
    rows: NDArray[np.intp],
    scores: FloatArray,
    loss: Loss,
    p: float,
    prices_positives: bool,
) -> FloatArray:
    """Return the estimate from some rows, in order, and their scores; without the penalty."""
    positive, weight = data.labels
    inner = positive[rows] != prices_positives
    share = np.ones(len(rows)) if weight is None else weight[rows]
    for side in (inner, ~inner):
        share[side] /= np.sum(share[side])
    binned = BinnedRows.of(-scores if prices_positives else scores, inner, share, loss, p)
    starts = [*data.starts.values(), data.n_rows]
    cuts = np.searchsorted(rows, starts)
    state = {
        index: (
            rows[first:last] - start,
            *(part[first:last] for part in (binned.bin, binned.share, binned.weight)),
        )
        for index, start, first, last in zip(
            data.starts, starts[:-1], cuts[:-1], cuts[1:], strict=True
        )
    }
    n_bins = len(binned.pairs.per_share)
    return binned.pairs.hessian(*data.run(BinnedSums(data.view, n_bins), state))
