"""Second moments from few well-chosen rows.

In each class rows are drawn in proportion to their weight e^{tilt f}: those that weigh much are
taken with their weights, the others at equal distances of the cumulated weight. There is no chance
in it, and rows that matter little are seldom read. The relative error of a covariance is about
sqrt(d / rows drawn), or none to speak of where the heaviest rows carry nearly all the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.objective.data import LabelledData
from toprank.objective.labelled import draw_by_weight
from toprank.objective.sums import EndPartial, Tilted
from toprank.objective.sweeps import Drawn, DrawnMoments, Exponents

#: Rows of a class that are looked at for every row drawn.
_LOOKED_AT = 10

#: Rows of a class, and how much each counts.
_Rows: TypeAlias = "tuple[NDArray[np.intp], FloatArray]"


def sampled_moments(
    data: LabelledData, coef: FloatArray, tilts: tuple[float, float], n_rows: int
) -> EndPartial:
    """Return estimates of the moments of both classes from about n_rows rows of each."""
    draw = partial(draw_by_weight, n_rows=n_rows)
    return _moments(data, coef, tilts, _LOOKED_AT * n_rows, (draw, draw))


def leading_moments(
    data: LabelledData,
    coef: FloatArray,
    tilts: tuple[float, float],
    which: int,
    left_out: float,
    most: int,
) -> Tilted:
    """Return the moments of the positives (0) or the negatives (1) without their lightest rows.

    The share ``left_out`` of their weight may be missing. Where more than ``most`` rows remain,
    that many are drawn as above.
    """

    def draw(weight: FloatArray) -> _Rows:
        return heaviest_rows(weight, left_out, most) or draw_by_weight(weight, most)

    draws = (draw, _no_rows) if which == 0 else (_no_rows, draw)
    return _moments(data, coef, tilts, data.n_rows, draws)[which]


def _no_rows(weight: FloatArray) -> _Rows:
    return np.empty(0, dtype=np.intp), np.empty(0)


def heaviest_rows(weight: FloatArray, left_out: float, most: int) -> _Rows | None:
    """Return rows, heaviest first chosen, that carry all but a share of the weight, and theirs.

    None where they are more than ``most``.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.objective.sampled import heaviest_rows
    >>> rows, weight = heaviest_rows(np.array([4.0, 0.0, 0.5, 5.5]), left_out=0.1, most=3)
    >>> rows.tolist(), weight.tolist()
    ([0, 3], [4.0, 5.5])
    """
    order = np.argsort(weight)
    mass = np.cumsum(weight[order])
    kept = order[np.searchsorted(mass, left_out * mass[-1], side="right") :]
    if len(kept) > most:
        return None
    kept.sort()
    return kept, weight[kept]


def _moments(
    data: LabelledData,
    coef: FloatArray,
    tilts: tuple[float, float],
    looked_at: int,
    draws: tuple[Callable[[FloatArray], _Rows], Callable[[FloatArray], _Rows]],
) -> EndPartial:
    """Moments of the rows that are drawn of each class, by the weights of about so many of it."""
    before, totals = _present_before(data)
    steps = tuple(max(1, total // looked_at) for total in totals)
    found = data.run(Exponents(data.view, tilts, (steps[0], steps[1]), before), coef)
    indices = sorted(found)
    positives, negatives = (_draw([found[i][c] for i in indices], draws[c]) for c in (0, 1))
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


def _draw(pieces: list[Drawn], draw: Callable[[FloatArray], _Rows]) -> list[_Rows]:
    """The rows that are drawn of a class, and how much each counts, by block."""
    exponents = np.concatenate([piece[1] for piece in pieces])
    drawn, count = draw(np.exp(exponents - np.max(exponents)))
    starts = np.cumsum([0, *(len(piece[1]) for piece in pieces)])
    cuts = np.searchsorted(drawn, starts)
    return [
        (rows[drawn[first:last] - start], count[first:last])
        for (rows, _), start, first, last in zip(
            pieces, starts[:-1], cuts[:-1], cuts[1:], strict=True
        )
    ]
