"""Piecewise polynomial losses (hinge, squared hinge, 0-1) by sorting: O(n log n), exact.

For an outer row with threshold t = b + knot the sum runs over the inner rows a < t of a
polynomial in t - a. With c the largest such a, and the moments M_k = sum v (c - a)^k of the
rows up to c, (t - a)^m expands in (t - c) and c - a, both non-negative: for positive weights
nothing ever cancels, however far the scores lie from zero. The moments follow from one cumulative
sum each, because moving c to the right by D turns M1 into M1 + D M0 and M2 into
M2 + 2 D M1 + D^2 M0.

A bend, a parabola between t - width and t, sums over the few rows in between. Its moments are
taken about the first row of short stretches of the axis, so that rows far away do not enter.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, stable_order
from toprank.losses import Loss
from toprank.losses.margin import derivative_coefficients
from toprank.pair_sums.base import PairSum

HIGHEST_DEGREE = 2


class Sorted(PairSum):
    """Cumulative moments of the sorted inner scores, looked up at every outer score."""

    @staticmethod
    def supports(loss: Loss) -> bool:
        return bool(loss.pieces) and all(
            len(coefficients) <= HIGHEST_DEGREE + 1 for _, coefficients in loss.pieces
        )

    @cached_property
    def _forward(self) -> _Prefix:
        return _Prefix(self.loss, self.inner, self.outer)

    @cached_property
    def _backward(self) -> _Prefix:
        # b > a - knot is -b < -a + knot: the same sums with both axes turned round
        return _Prefix(self.loss, -self.outer, -self.inner)

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        return self._forward.sums(orders, v)

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        return self._backward.sums(orders, u)


class _Prefix:
    """Sums over the sources below target + knot of polynomials in target + knot - source."""

    def __init__(self, loss: Loss, source: FloatArray, target: FloatArray):
        self.pieces, self.bend = loss.pieces, loss.bend
        self.side: Literal["left", "right"] = "right" if loss.includes_knot else "left"
        self.order = stable_order(source)
        self.source = source[self.order]
        self.target = target
        # looked up in sorted order the binary searches stay in cache
        self.target_order = stable_order(target)
        self._kept_stretches: _Stretches | None = None

    def sums(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        highest = max(len(c) - 1 for _, c in self.pieces) if self.bend is None else HIGHEST_DEGREE
        v = v[self.order]
        with np.errstate(over="ignore", invalid="ignore"):  # squares beyond 1e308 are infinite
            moments = self._moments(v, highest)
            totals = self._sums(orders, moments)
            if self.bend is not None:
                self._add_bend(totals, orders, v, moments, *self.bend)
        return totals

    def _sums(self, orders: tuple[int, ...], moments: list[FloatArray]) -> list[FloatArray]:
        totals = [np.zeros(len(self.target)) for _ in orders]
        for knot, coefficients in self.pieces:
            last, gap = self._reach(knot)
            powers = _powers_at(gap, [moment[last] for moment in moments])
            for total, k in zip(totals, orders, strict=True):
                for c, power in zip(derivative_coefficients(coefficients, k), powers, strict=False):
                    if c != 0.0:
                        total[self.target_order] += c * power
        return totals

    def _add_bend(
        self,
        totals: list[FloatArray],
        orders: tuple[int, ...],
        v: FloatArray,
        moments: list[FloatArray],
        knot: float,
        width: float,
    ) -> None:
        """Add the sums, or derivatives, of (threshold - source)^2 / (2 width) over the bend."""
        threshold = self.target[self.target_order] + knot
        first, _ = self._reach(knot - width)
        last, gap = self._reach(knot)
        powers = self._stretches(width).powers(v, first, last, threshold)
        # where no row lies beyond the bend, the moments keep even the smallest sums exact
        alone = _powers_at(gap, [moment[last] for moment in moments])
        powers = [np.where(first == 0, a, b) for a, b in zip(alone, powers, strict=True)]
        for total, k in zip(totals, orders, strict=True):
            factor = (0.5, -1.0, 1.0)[k] / width
            total[self.target_order] += factor * powers[2 - k]

    def _stretches(self, width: float) -> _Stretches:
        if self._kept_stretches is None:
            self._kept_stretches = _Stretches(self.source, 2.0 * width)
        return self._kept_stretches

    def _reach(self, knot: float) -> tuple[NDArray[np.intp], FloatArray]:
        """For each sorted target, the last source it reaches (0: none) and the gap to it."""
        threshold = self.target[self.target_order] + knot
        last = np.searchsorted(self.source, threshold, side=self.side)
        gap = threshold - self.source[np.maximum(last - 1, 0)]
        gap[last == 0] = 0.0
        return last, gap

    def _moments(self, v: FloatArray, highest: int) -> list[FloatArray]:
        """M_k about the j-th sorted source of the sources up to it; entry 0 is the empty sum."""
        moments = [np.concatenate([[0.0], np.cumsum(v)])]
        step = np.diff(self.source, prepend=self.source[:1])
        if highest >= 1:
            gained = step * moments[0][:-1]
            moments.append(np.concatenate([[0.0], np.cumsum(gained)]))
        if highest >= 2:
            gained = step * (2.0 * moments[1][:-1] + step * moments[0][:-1])
            moments.append(np.concatenate([[0.0], np.cumsum(gained)]))
        return moments


class _Stretches:
    """Sorted sources cut into stretches of the given length, each with its own origin.

    A window of half that length meets at most two stretches.
    """

    def __init__(self, source: FloatArray, length: float):
        number = np.floor((source - source[0]) / length)
        starts = np.flatnonzero(np.diff(number, prepend=-1.0))
        counts = np.diff(starts, append=len(source))
        self.origin = np.repeat(source[starts], counts)
        self.end = np.repeat(starts + counts, counts)
        self.offset = source - self.origin

    def powers(
        self, v: FloatArray, first: NDArray[np.intp], last: NDArray[np.intp], threshold: FloatArray
    ) -> list[FloatArray]:
        """Sums of v (threshold - source)^m, m = 0, 1, 2, over the sources from first to last."""
        sums = [np.concatenate([[0.0], np.cumsum(v * self.offset**m)]) for m in range(3)]
        cut = np.minimum(self.end[np.minimum(first, len(v) - 1)], last)
        totals = [np.zeros(len(threshold)) for _ in range(3)]
        for low, high in ((first, cut), (cut, last)):
            some = np.flatnonzero(low < high)
            low, high = low[some], high[some]
            s0, s1, s2 = (total[high] - total[low] for total in sums)
            t = threshold[some] - self.origin[low]
            for total, part in zip(
                totals, (s0, t * s0 - s1, t * (t * s0 - 2 * s1) + s2), strict=True
            ):
                total[some] += part
        return totals


def _powers_at(gap: FloatArray, moments: list[FloatArray]) -> list[FloatArray]:
    """Sums of (gap + c - source)^m for m = 0, 1, 2, from the moments about c."""
    powers = [moments[0]]
    if len(moments) > 1:
        powers.append(gap * moments[0] + moments[1])
    if len(moments) > 2:
        powers.append(gap * (gap * moments[0] + 2.0 * moments[1]) + moments[2])
    return powers
