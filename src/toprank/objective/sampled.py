"""Second moments from few well-chosen rows.

In each class rows are drawn in proportion to their weight e^{tilt f}, at equal distances of the
cumulated weight. There is no chance in it, and rows that matter little are seldom read. The
relative error of a covariance is about sqrt(d / rows drawn).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.objective.data import LabelledData
from toprank.objective.labelled import draw_by_weight
from toprank.objective.sums import EndPartial
from toprank.objective.sweeps import Drawn, DrawnMoments, Exponents

#: Rows of a class that are looked at for every row drawn.
_LOOKED_AT = 10


def sampled_moments(
    data: LabelledData, coef: FloatArray, tilts: tuple[float, float], n_rows: int
) -> EndPartial:
    """Return estimates of the moments of both classes from about n_rows rows of each."""
    before, totals = _present_before(data)
    steps = tuple(max(1, total // (_LOOKED_AT * n_rows)) for total in totals)
    found = data.run(Exponents(data.view, tilts, (steps[0], steps[1]), before), coef)
    indices = sorted(found)
    positives, negatives = (_draw([found[i][c] for i in indices], n_rows) for c in (0, 1))
    state = dict(zip(indices, zip(positives, negatives, strict=True), strict=True))
    moments: EndPartial = data.run(DrawnMoments(data.view), state)
    return moments


def _present_before(data: LabelledData) -> tuple[dict[int, tuple[int, int]], tuple[int, int]]:
    """For each block how many (positives, negatives) are present before it, and in all."""
    before, at = {}, (0, 0)
    for index in sorted(data.counts.blocks):
        before[index] = at
        neg, pos = (data.counts.blocks[index].of(label)[1] for label in data.classes)
        at = at[0] + pos, at[1] + neg
    return before, at


def _draw(pieces: list[Drawn], n_rows: int) -> list[tuple[NDArray[np.intp], FloatArray]]:
    """Rows of a class at equal distances of its cumulated weight, and how often each, by block."""
    exponents = np.concatenate([piece[1] for piece in pieces])
    drawn, count = draw_by_weight(np.exp(exponents - np.max(exponents)), n_rows)
    starts = np.cumsum([0, *(len(piece[1]) for piece in pieces)])
    cuts = np.searchsorted(drawn, starts)
    return [
        (rows[drawn[first:last] - start], count[first:last])
        for (rows, _), start, first, last in zip(
            pieces, starts[:-1], cuts[:-1], cuts[1:], strict=True
        )
    ]
