"""Smooth losses with logistic tails in linear time, to machine precision.

The score axis is cut into boxes of width ``WIDTH``. Inside a box the sources are replaced
by their Chebyshev moments sum v T_m(x), a small matrix per distance of boxes turns moments into
Chebyshev coefficients of the sum at the targets, and the targets evaluate those. The logistic
loss is analytic in the strip |Im r| < pi, so ``DEGREE`` terms leave an error near rounding, for
its slope and curvature too. Beyond ``REACH`` the loss is its own asymptote to the last bit:
e^-r on the right, -r on the left, so far boxes enter through running sums and the range of
the scores costs nothing.

Graded pairs: Chebyshev moments that run along the labels. In order of label the rows of a group
are cut into chunks of whole levels. Pairs inside a chunk are summed one by one. Between chunks,
the moments of all higher chunks run along as one sum, and each chunk turns that sum into a series
at its own rows, as for two classes. With chunks of C rows the cost is O(n C) for the pairs and O(n
/ C) series; C is chosen to balance them, about 100 where the scores span a few units.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.losses.margin import Logistic
from toprank.pair_sums.base import GradedSum, PairSum
from toprank.pairs import Graded, IntArray

WIDTH = 0.5
DEGREE = 11
REACH = 39.0
_NEAR = int(np.ceil(REACH / WIDTH))
_CHUNK = 1 << 14
#: Entries up to which the boxes' interactions are kept as one matrix (16 MB).
_DENSE_ENTRIES = 1 << 21
#: Seconds for a pair, for a call, and for an entry of a matrix from moments to a series: only
#: their proportions matter, for the choice of the chunks.
_PAIR, _CALL, _ENTRY = 1.5e-8, 2e-5, 5e-10
_NEIGHBOURS = 2 * REACH / WIDTH


class Interpolated(PairSum):
    """Chebyshev moments of the inner scores, evaluated at the outer scores, and back."""

    def __init__(self, loss: Loss, inner: FloatArray, outer: FloatArray):
        super().__init__(loss, inner, outer)
        self._lowest = float(np.min(inner, initial=np.inf))
        # an outer row whose every pair has r > REACH sees e^-r alone, which factorises
        self._deep = self._lowest - outer > REACH
        self._any_deep = bool(np.any(self._deep))
        self.log_scale = np.where(self._deep, outer - self._lowest, 0.0) if self._any_deep else 0.0

    @staticmethod
    def supports(loss: Loss) -> bool:
        return loss.logistic_tails

    @cached_property
    def _decay(self) -> FloatArray:
        return np.exp(self._lowest - self.inner)

    @cached_property
    def _shallow(self) -> FloatArray:
        return self.outer[~self._deep] if self._any_deep else self.outer

    @cached_property
    def _forward(self) -> Potential:
        return Potential(self.inner, self._shallow)

    @cached_property
    def _backward(self) -> Potential:
        # r = a - b is (-b) - (-a): the same potential with both axes turned round
        return Potential(-self._shallow, -self.inner)

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        near = self._forward.sums(orders, v)
        if not self._any_deep:
            return near
        total = float(self._decay @ v)
        sums = []
        for k, shallow in zip(orders, near, strict=True):
            full = np.full(len(self.outer), -total if k == 1 else total)
            full[~self._deep] = shallow
            sums.append(full)
        return sums

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        if not self._any_deep:
            return self._backward.sums(orders, u)
        near = self._backward.sums(orders, u[~self._deep])
        total = float(np.sum(u[self._deep]))
        return [
            shallow + (-total if k == 1 else total) * self._decay
            for k, shallow in zip(orders, near, strict=True)
        ]

    def columns_to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        if self._any_deep:
            return super().columns_to_outer(orders, v)
        return self._forward.column_sums(orders, v)

    def columns_to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        if self._any_deep:
            return super().columns_to_inner(orders, u)
        return self._backward.column_sums(orders, u)


class Numbers:
    """Boxes of a grid that hold points, known by their numbers alone, ascending."""

    def __init__(self, number: FloatArray):
        self.number = number

    @property
    def count(self) -> int:
        return len(self.number)


class Boxes(Numbers):
    """Points on the grid of boxes: which box, and where in it on [-1, 1]."""

    def __init__(self, points: FloatArray, origin: float):
        offset = (points - origin) / WIDTH
        box = np.floor(offset)
        self.local = 2.0 * (offset - box) - 1.0
        first = float(np.min(box, initial=0.0))
        spread = float(np.max(box, initial=0.0)) - first
        if spread <= max(4 * len(points), 1024):
            dense = (box - first).astype(np.intp)
            present = np.flatnonzero(np.bincount(dense))
            renumber = np.zeros(int(spread) + 1, dtype=np.intp)
            renumber[present] = np.arange(len(present))
            self.index: IntArray = renumber[dense]
            self.number = first + present.astype(np.float64)
        else:  # almost every point has a box of its own
            self.number, self.index = np.unique(box, return_inverse=True)

    @cached_property
    def polynomials(self) -> sparse.csr_array:
        """T_m of each point, a row of ``DEGREE`` entries, in the columns (m, box) of the moments.

        Its transpose makes moments of many columns at once, and it evaluates their series.
        """
        n = len(self.local)
        values = np.empty((n, DEGREE))
        values[:, 0], values[:, 1] = 1.0, self.local
        for m in range(2, DEGREE):
            values[:, m] = 2.0 * self.local * values[:, m - 1] - values[:, m - 2]
        places = self.index[:, None] + self.count * np.arange(DEGREE)
        starts = DEGREE * np.arange(n + 1)
        shape = (n, DEGREE * self.count)
        return sparse.csr_array((values.ravel(), places.ravel(), starts), shape)


def spread(boxes: Boxes, v: FloatArray) -> FloatArray:
    """Chebyshev moments of each box: sum v T_m(x) over its points."""
    moments = np.zeros((DEGREE, boxes.count))
    step = max(_CHUNK, boxes.count)
    for start in range(0, len(v), step):
        part = slice(start, start + step)
        index, x = boxes.index[part], boxes.local[part]
        older, old = None, v[part].astype(np.float64)
        for m in range(DEGREE):
            moments[m] += np.bincount(index, weights=old, minlength=boxes.count)
            older, old = old, (x * old if older is None else 2.0 * x * old - older)
    return moments


class Interactions:
    """From the moments of source boxes to the series of sum v l_k(s - t) at target boxes."""

    def __init__(self, source: Numbers, target: Numbers):
        self.source = source
        self.target = target
        self._matrices: dict[int, FloatArray] = {}

    def series(self, k: int, moments: FloatArray) -> FloatArray:
        """Chebyshev coefficients at the target boxes from the moments of the source boxes."""
        series = self._near(k, moments).reshape(DEGREE, self.target.count)
        self._add_far(k, moments, series)
        return series

    def _near(self, k: int, moments: FloatArray) -> FloatArray:
        """Coefficients at the target boxes from the source boxes within reach."""
        if self._is_small:
            return self._whole(k) @ moments.ravel()
        kernels = series_matrices(k)
        series = np.zeros((DEGREE, self.target.count))
        for distance, hit, found in self._neighbours:
            series[:, hit] += kernels[distance] @ moments[:, found]
        return series.ravel()

    @property
    def _is_small(self) -> bool:
        """Whether the boxes are few enough for one matrix of their interactions."""
        return self.source.count * self.target.count * DEGREE**2 <= _DENSE_ENTRIES

    @cached_property
    def _reaches_beyond(self) -> bool:
        """Whether some boxes are so far apart that the loss between them is its asymptote."""
        left, right = self._beyond
        return bool(np.any(right < self.source.count) or np.any(left > 0))

    def _whole(self, k: int) -> FloatArray:
        """The matrix from all moments to all series, where the boxes are few."""
        if k not in self._matrices:
            distance = self.source.number[None, :] - self.target.number[:, None]
            near = np.abs(distance) <= _NEAR
            which = np.where(near, distance, 0).astype(np.intp) + _NEAR
            blocks = np.where(near[:, :, None, None], series_matrices(k)[which], 0.0)
            rows, columns = DEGREE * self.target.count, DEGREE * self.source.count
            self._matrices[k] = blocks.transpose(2, 0, 3, 1).reshape(rows, columns)
        return self._matrices[k]

    @cached_property
    def _neighbours(self) -> list[tuple[int, IntArray, IntArray]]:
        """(kernel, target boxes, source boxes) for every distance within reach."""
        found_at = []
        for distance in range(-_NEAR, _NEAR + 1):
            wanted = self.target.number + distance
            found = np.searchsorted(self.source.number, wanted)
            found[found == self.source.count] = 0
            # not "== wanted": beyond 2^53 boxes, wanted rounds and every distance would match
            apart = self.source.number[found] - self.target.number
            hit = np.flatnonzero(apart == distance)
            if hit.size:
                found_at.append((distance + _NEAR, hit, found[hit]))
        return found_at

    @cached_property
    def _beyond(self) -> tuple[IntArray, IntArray]:
        """For each target box: where the far source boxes on its left end and right begin."""
        number = self.target.number
        return (
            np.searchsorted(self.source.number, number - _NEAR, side="left"),
            np.searchsorted(self.source.number, number + _NEAR, side="right"),
        )

    def _add_far(self, k: int, moments: FloatArray, series: FloatArray) -> None:
        """Add the boxes beyond reach: e^-r on the right, -r on the left."""
        left, right = self._beyond
        if np.any(right < self.source.count):
            self._add_decay(series, moments, right, -1.0 if k == 1 else 1.0)
        if np.any(left > 0):
            if k == 2:
                self._mirror_decay(series, moments, left)
            else:
                self._add_line(series, moments, left, k)

    def _add_decay(
        self, series: FloatArray, moments: FloatArray, right: IntArray, sign: float
    ) -> None:
        """Add sign * e^{t} sum e^{-s} over the source boxes from ``right`` on."""
        number = self.source.number
        mass = _expansion(-0.5 * WIDTH) @ moments  # e^{-(s - centre)} summed over a box
        running = _discount_sums(mass[::-1], np.diff(number)[::-1] * WIDTH)[::-1]
        at = np.flatnonzero(right < self.source.count)
        gap = (number[right[at]] - self.target.number[at]) * WIDTH
        series[:, at] += sign * np.outer(_expansion(0.5 * WIDTH), running[right[at]] * np.exp(-gap))

    def _mirror_decay(self, series: FloatArray, moments: FloatArray, left: IntArray) -> None:
        """Add e^{-t} sum e^{s} over the source boxes before ``left``: curvature's left tail."""
        number = self.source.number
        mass = _expansion(0.5 * WIDTH) @ moments
        running = _discount_sums(mass, np.diff(number) * WIDTH)
        at = np.flatnonzero(left > 0)
        gap = (self.target.number[at] - number[left[at] - 1]) * WIDTH
        decayed = running[left[at] - 1] * np.exp(-gap)
        series[:, at] += np.outer(_expansion(-0.5 * WIDTH), decayed)

    def _add_line(self, series: FloatArray, moments: FloatArray, left: IntArray, k: int) -> None:
        """Add sum (t - s), or its derivative in r, over the source boxes before ``left``."""
        number = self.source.number
        mass = np.cumsum(moments[0])
        at = np.flatnonzero(left > 0)
        last = left[at] - 1
        if k == 1:
            series[0, at] -= mass[last]
            return
        # sum (c - s) about the centre c of the last box, all terms of one sign: no cancellation
        shift = np.concatenate([[0.0], np.diff(number) * WIDTH * mass[:-1]])
        lag = np.cumsum(shift) - 0.5 * WIDTH * np.cumsum(moments[1])
        gap = (self.target.number[at] - number[last]) * WIDTH
        series[0, at] += gap * mass[last] + lag[last]
        series[1, at] += 0.5 * WIDTH * mass[last]


class Potential(Interactions):
    """Sums over sources s of v l_k(s - t) at targets t."""

    source: Boxes
    target: Boxes

    def __init__(self, source: FloatArray, target: FloatArray):
        origin = float(np.min(source, initial=np.inf))
        origin = origin if np.isfinite(origin) else 0.0
        super().__init__(Boxes(source, origin), Boxes(target, origin))

    def sums(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        if self.source.count == 0 or self.target.count == 0:
            return [np.zeros(len(self.target.local)) for _ in orders]
        moments = spread(self.source, v)
        return self._gather([self.series(k, moments) for k in orders])

    def column_sums(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        """`sums` of every column of ``v``, by matrix products."""
        if self.source.count == 0 or self.target.count == 0:
            return [np.zeros((len(self.target.local), v.shape[1])) for _ in orders]
        moments = self.source.polynomials.T @ v
        return [self.target.polynomials @ self._column_series(k, moments) for k in orders]

    def _column_series(self, k: int, moments: FloatArray) -> FloatArray:
        """`series` of every column of moments, both flat."""
        if self._is_small and not self._reaches_beyond:
            return self._whole(k) @ moments
        shape = (DEGREE, self.source.count)
        made = [self.series(k, column.reshape(shape)).ravel() for column in moments.T]
        return np.stack(made, axis=1)

    def _gather(self, coefficients: list[FloatArray]) -> list[FloatArray]:
        """Evaluate the target boxes' Chebyshev series at the targets (Clenshaw's rule)."""
        boxes = self.target
        sums = [np.empty(len(boxes.local)) for _ in coefficients]
        for start in range(0, len(boxes.local), _CHUNK):
            part = slice(start, start + _CHUNK)
            index, x = boxes.index[part], boxes.local[part]
            twice = 2.0 * x
            for total, series in zip(sums, coefficients, strict=True):
                high, higher = series[DEGREE - 1][index], 0.0
                for m in range(DEGREE - 2, 0, -1):
                    high, higher = series[m][index] + twice * high - higher, high
                total[part] = series[0][index] + x * high - higher
        return sums


def _discount_sums(mass: FloatArray, gaps: FloatArray) -> FloatArray:
    """running[j] = mass[j] + e^{-gaps[j-1]} running[j-1], one number per box."""
    running = np.array(mass)
    for j, keep in enumerate(np.exp(-gaps), start=1):
        running[j] += keep * running[j - 1]
    return running


@lru_cache(maxsize=1)
def nodes() -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes, and the matrix from values at them to Chebyshev coefficients."""
    angle = np.pi * (np.arange(DEGREE) + 0.5) / DEGREE
    to_series = 2.0 / DEGREE * np.cos(np.outer(np.arange(DEGREE), angle))
    to_series[0] /= 2.0
    return np.cos(angle), to_series


@lru_cache(maxsize=8)
def series_matrices(k: int) -> FloatArray:
    """Moments-to-series matrices of l_k for every distance of boxes within reach."""
    at, to_series = nodes()
    distance = WIDTH * np.arange(-_NEAR, _NEAR + 1)
    half = 0.5 * WIDTH
    margin = distance[:, None, None] + half * (at[None, None, :] - at[None, :, None])
    return to_series @ Logistic().derivative(k, margin) @ to_series.T


@lru_cache(maxsize=4)
def _expansion(rate: float) -> FloatArray:
    """Chebyshev coefficients of e^{rate x} on [-1, 1]."""
    at, to_series = nodes()
    return to_series @ np.exp(rate * at)


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
        running = _running_sums(moments, chunks.first if inward else chunks.last, inward)
        for k in set(orders):
            series = np.zeros((chunks.count, DEGREE, target.count))
            for into, above in zip(series, running, strict=True):
                into += potential.series(k, above)
            gather_chunks(chunks.of_place, target.index, target.local, series, totals[k])
        return [totals[k] for k in orders]


def _running_sums(moments: FloatArray, restart: np.ndarray, forward: bool) -> FloatArray:
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
