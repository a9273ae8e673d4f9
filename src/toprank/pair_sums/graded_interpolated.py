"""The logistic loss over graded pairs: Chebyshev moments that run along the labels.

In order of label the rows of a group are cut into chunks of whole levels. Pairs inside a chunk are
summed one by one. Between chunks, the moments of all higher chunks run along as one sum, and
each chunk turns that sum into a series at its own rows, as for two classes. With chunks of C
rows the cost is O(n C) for the pairs and O(n / C) series; C is chosen to balance them, about 100
where the scores span a few units.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.pair_sums.graded import GradedSum
from toprank.pair_sums.interpolated import DEGREE, REACH, WIDTH, Interpolated, Potential
from toprank.pairs import Graded

#: Seconds for a pair, for a call, and for an entry of a matrix from moments to a series: only
#: their proportions matter, for the choice of the chunks.
_PAIR, _CALL, _ENTRY = 1.5e-8, 2e-5, 5e-10
_NEIGHBOURS = 2 * REACH / WIDTH


class GradedInterpolated(GradedSum):
    """Chunks of label levels, each facing the running moments of all higher ones."""

    @staticmethod
    def supports(loss: Loss) -> bool:
        return Interpolated.supports(loss)

    @cached_property
    def _outward(self) -> Potential:
        return Potential(self.x, self.x)

    @cached_property
    def _inward(self) -> Potential:
        # r = a - b is (-b) - (-a): the same potential with both axes turned round
        return Potential(-self.x, -self.x)

    @cached_property
    def _chunks(self) -> _Chunks:
        boxes = self._outward.target.count
        series = _CALL + _ENTRY * boxes * DEGREE**2 * min(boxes, _NEIGHBOURS)
        return _Chunks(self.relation, max(16, int(np.sqrt(2.0 * series / _PAIR))))

    def _sums(self, orders: tuple[int, ...], v: FloatArray, *, inward: bool) -> list[FloatArray]:
        from toprank.pair_sums.graded_kernels import gather_chunks, logistic_blocks, spread_chunks

        chunks, totals = self._chunks, np.zeros((3, len(self.x)))
        wanted = np.isin(np.arange(3), orders)
        blocks = (chunks.block_start, chunks.block_end, self.relation.level_end)
        logistic_blocks(self.x, v, *blocks, wanted, inward, totals)
        potential = self._inward if inward else self._outward
        source, target = potential.source, potential.target
        moments = np.zeros((chunks.count, DEGREE, source.count))
        spread_chunks(chunks.of_place, source.index, source.local, v, moments)
        running = _running(moments, chunks.first if inward else chunks.last, inward)
        for k in set(orders):
            series = np.zeros((chunks.count, DEGREE, target.count))
            for into, above in zip(series, running, strict=True):
                into += potential.series(k, above)
            gather_chunks(chunks.of_place, target.index, target.local, series, totals[k])
        return [totals[k] for k in orders]


def _running(moments: FloatArray, restart: np.ndarray, forward: bool) -> FloatArray:
    """Sums of the moments of the chunks before each one (after it, unless forward) in its group."""
    running = np.zeros_like(moments)
    order = range(len(moments)) if forward else range(len(moments) - 1, -1, -1)
    last = -1
    for chunk in order:
        if not restart[chunk]:
            np.add(running[last], moments[last], out=running[chunk])
        last = chunk
    return running


class _Chunks:
    """Runs of whole levels of about the given size; a larger level is a chunk of its own.

    Attributes
    ----------
    of_place : the chunk of each place, -1 in groups that are one chunk altogether
    count, first, last : how many there are, and which are the first and the last of a group
    block_start, block_end : the places of the chunks with several levels
    """

    def __init__(self, relation: Graded, size: int):
        from toprank.pair_sums.graded_kernels import cut_chunks

        start = cut_chunks(relation.level_end, relation.group_end, size)
        end = np.append(start[1:], relation.n_places)
        several = relation.level_end[start] < end
        self.block_start, self.block_end = start[several], end[several]
        first = start == relation.group_start[start]
        last = end == relation.group_end[start]
        open_ = ~(first & last)
        self.first, self.last = first[open_], last[open_]
        self.count = int(np.count_nonzero(open_))
        number = np.where(open_, np.cumsum(open_) - 1, -1)
        self.of_place = np.repeat(number, end - start)
