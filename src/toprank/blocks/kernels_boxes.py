"""Scores on an axis of boxes, on a GPU: what they add to a box, and what it says of them.

A score lies at x in [-1, 1] of its box. Its share, times the powers of x, is added to the moments
of the box, in whole quanta: no order of adding up can change a bit. Or the polynomial of the box
is evaluated at x.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from toprank.blocks.kernels_sides import INNER, OUTER, SideKernels

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Copies of the moments that programs are shared out among.
_COPIES = 128


@cache
def _locate() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit
    def locate(score, numbers_at, member):  # type: ignore[no-untyped-def]
        """Which box, the first for rows that are none of these, and where in it."""
        origin, width = tl.load(numbers_at), tl.load(numbers_at + 1)
        at = (tl.where(member, score, origin) - origin) / width
        box = tl.floor(at)
        number = (box - tl.load(numbers_at + 2)).to(tl.int64)
        return tl.where(member, number, 0), 2.0 * (at - box) - 1.0

    return locate


@cache
def _spread() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    locate = _locate()

    @triton.jit  # type: ignore[untyped-decorator]
    def spread(  # type: ignore[no-untyped-def]
        scores_at, side_at, share_at, apart, whole_at, numbers_at, sums_at, slope_at, count, n,
        which: tl.constexpr, sign: tl.constexpr, slopes: tl.constexpr,
        terms: tl.constexpr, copies: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        member = tl.load(side_at + place, mask=there, other=0) == which
        score = sign * tl.load(scores_at + place, mask=there, other=0.0)
        box, x = locate(score, numbers_at, member)
        share = tl.load(share_at + place * apart, mask=member, other=0.0)
        if slopes:  # what the rows' own slopes are times, in the end
            slope = tl.load(slope_at + place, mask=member, other=0.0)
            tl.store(slope_at + place, sign * share * slope, mask=member)
        quanta = share * (tl.load(numbers_at + 3) / tl.load(whole_at))
        own_at = sums_at + (number % copies) * count * terms + box
        for m in tl.static_range(terms):
            whole = tl.floor(quanta + 0.5).to(tl.int64)
            tl.atomic_add(own_at + m * count, whole, mask=member, sem="relaxed")
            quanta *= x

    return spread


@cache
def _heights() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    locate = _locate()

    @triton.jit  # type: ignore[untyped-decorator]
    def heights(  # type: ignore[no-untyped-def]
        scores_at, side_at, numbers_at, height_at, slope_at, largest_at, count, n,
        sign: tl.constexpr, terms: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        member = tl.load(side_at + place, mask=there, other=0) == 2
        score = sign * tl.load(scores_at + place, mask=there, other=0.0)
        box, x = locate(score, numbers_at, member)
        at = numbers_at + 3 + box
        height, slope = tl.load(at + (terms - 1) * count), tl.load(at + (2 * terms - 1) * count)
        for m in tl.static_range(1, terms):
            height = height * x + tl.load(at + (terms - 1 - m) * count)
            slope = slope * x + tl.load(at + (2 * terms - 1 - m) * count)
        # cancellation in signed node sums can leave a zero height at -1e-17
        height = tl.where(height > 0.0, height, 0.0)
        tl.store(height_at + place, height, mask=member)
        tl.store(slope_at + place, slope, mask=member)
        tl.store(largest_at + number, tl.max(tl.where(member, height, 0.0), 0))

    return heights


@cache
def _slopes() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    locate = _locate()

    @triton.jit  # type: ignore[untyped-decorator]
    def slopes(  # type: ignore[no-untyped-def]
        scores_at, side_at, share_at, apart, numbers_at, slope_at, count, n,
        sign: tl.constexpr, terms: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        place = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        side = tl.load(side_at + place, mask=there, other=0)
        member = side == 1
        score = -sign * tl.load(scores_at + place, mask=there, other=0.0)
        box, x = locate(score, numbers_at, member)
        at = numbers_at + 4 + box
        pull = tl.load(at + (terms - 1) * count)
        for m in tl.static_range(1, terms):
            pull = pull * x + tl.load(at + (terms - 1 - m) * count)
        share = tl.load(share_at + place * apart, mask=member, other=0.0)
        known = tl.load(slope_at + place, mask=side == 2, other=0.0)
        slope = tl.where(member, sign * share * pull, known)
        tl.store(slope_at + place, tl.load(numbers_at + 3) * slope, mask=there)

    return slopes


class BoxKernels(SideKernels):
    """The kernels for a loss that is summed over boxes of so many ``terms`` each."""

    def __init__(
        self, side: Tensor, inner_share: Tensor, outer_share: Tensor, sign: int, terms: int
    ):
        super().__init__(side, inner_share, outer_share, sign)
        self.terms = terms
        self.one = self._empty(1).fill_(1.0)

    def inner_moments(self, scores: Tensor, numbers: Tensor, count: int) -> Tensor:
        """The moments of the inner rows' shares, in quanta; numbers: the grid and the quanta."""
        share = self.inner_share
        return self._moments(INNER, scores, share, self.one, numbers, self.one, count)

    def outer_moments(
        self, scores: Tensor, numbers: Tensor, count: int, whole: Tensor, slopes: Tensor
    ) -> Tensor:
        """The moments of the prices over heights, as shares of their sum, of scores turned round.

        The slopes of the outer rows are multiplied by minus the same.
        """
        return self._moments(OUTER, scores, self.heights, whole, numbers, slopes, count)

    def _moments(self, which: int, scores: Tensor, share: Tensor, *given: object) -> Tensor:
        whole, numbers, slopes, count = given
        shape = (_COPIES, self.terms, count)
        sums = self.torch.zeros(shape, dtype=self.torch.int64, device=scores.device)
        self._start(
            _spread(), scores, self.side, share, self._apart(share), whole, numbers, sums, slopes,
            count, n=self.n, which=which, sign=self.sign if which == INNER else -self.sign,
            slopes=which == OUTER, terms=self.terms, copies=_COPIES,
        )  # fmt: skip
        found: Tensor = sums.sum(0).double()
        return found

    def raise_heights(self, scores: Tensor, numbers: Tensor, count: int, slopes: Tensor) -> None:
        """Take the heights of the outer rows, and write their slopes.

        ``numbers`` are the grid of the outer rows, the series of heights and that of slopes.
        """
        self._start(
            _heights(), scores, self.side, numbers, self.heights, slopes, self._largest, count,
            n=self.n, sign=self.sign, terms=self.terms,
        )  # fmt: skip

    def slopes(self, scores: Tensor, numbers: Tensor, count: int, slopes: Tensor) -> None:
        """Put the slopes of the inner rows beside those of the outer ones, all times a factor.

        ``numbers`` are the grid of the inner rows, turned round, the factor, and the series.
        """
        share = self.inner_share
        self._start(
            _slopes(), scores, self.side, share, self._apart(share), numbers, slopes, count,
            n=self.n, sign=self.sign, terms=self.terms,
        )  # fmt: skip
