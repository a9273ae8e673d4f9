"""Sums of c (knot - r)_+^2 over pairs of scores, r = inner - outer, on a GPU.

The inner rows are in order. An outer row looks up how many of them lie below its threshold and
takes its sums from running sums; what it adds to each of these goes into one place, and running
sums take it on. All are in whole quanta, so that no order of adding up can change a bit, and the
outer rows need not be put in order.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from toprank.blocks.kernels_sides import SideKernels

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Sums of sizes are so many quanta.
_QUANTA = 2.0**60


@cache
def _terms() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def terms(  # type: ignore[no-untyped-def]
        sorted_at, row_at, share_at, apart, middle_at, whole_at, quanta_at, out_at, n,
        counted: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        """Shares times powers of the places: sums of their sizes first, then whole quanta."""
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        x = tl.load(sorted_at + place, mask=there, other=0.0) - tl.load(middle_at)
        row = tl.load(row_at + place, mask=there, other=0)
        term = tl.load(share_at + row * apart, mask=there, other=0.0)
        line_at = out_at + place
        for m in tl.static_range(3):
            if counted:
                whole = tl.load(whole_at + m)
                each = tl.where(whole > 0.0, tl.load(quanta_at) / whole, 0.0)
                quanta = tl.floor(term * each + 0.5).to(tl.int64)
                tl.store(line_at, quanta, mask=there)
                line_at += n
            else:
                tl.store(out_at + 3 * number + m, tl.sum(tl.where(there, tl.abs(term), 0.0), 0))
            term *= x

    return terms


@cache
def _heights() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def heights(  # type: ignore[no-untyped-def]
        scores_at, side_at, sorted_at, running_at, middle_at, whole_at, quanta_at, loss_at,
        below_at, height_at, slope_at, largest_at, many, halvings, n,
        sign: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        member = tl.load(side_at + place, mask=there, other=0) == 2
        score = sign * tl.load(scores_at + place, mask=member, other=0.0)
        threshold = score + tl.load(loss_at)
        low = tl.zeros((rows,), tl.int64)
        high = low + many
        for _ in range(halvings):
            half = (low + high) // 2
            open_ = member & (low < high)
            value = tl.load(sorted_at + half, mask=open_, other=0.0)
            low = tl.where(open_ & (value < threshold), half + 1, low)
            high = tl.where(open_ & (value >= threshold), half, high)
        some, at = member & (low > 0), running_at + low - 1
        quanta = tl.load(quanta_at)
        zero = tl.load(at, mask=some, other=0).to(tl.float64) * (tl.load(whole_at) / quanta)
        at += many
        one = tl.load(at, mask=some, other=0).to(tl.float64) * (tl.load(whole_at + 1) / quanta)
        at += many
        two = tl.load(at, mask=some, other=0).to(tl.float64) * (tl.load(whole_at + 2) / quanta)
        threshold -= tl.load(middle_at)
        square = tl.load(loss_at + 1)
        height = square * (two - threshold * (2.0 * one - threshold * zero))
        height = tl.where(height > 0.0, height, 0.0)
        tl.store(below_at + place, low, mask=member)
        tl.store(height_at + place, height, mask=member)
        tl.store(slope_at + place, -2.0 * square * (threshold * zero - one), mask=member)
        tl.store(largest_at + number, tl.max(tl.where(member, height, 0.0), 0))

    return heights


@cache
def _pull() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def pull(  # type: ignore[no-untyped-def]
        scores_at, side_at, middle_at, sums_at, quanta_at, below_at, height_at, slope_at, out_at,
        many, n, sign: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        """What each outer row adds for the inner rows below its threshold, and its own slope."""
        place = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        member = tl.load(side_at + place, mask=there, other=0) == 2
        score = sign * tl.load(scores_at + place, mask=member, other=0.0) - tl.load(middle_at)
        per_height = tl.load(height_at + place, mask=member, other=0.0)
        slope = tl.load(slope_at + place, mask=member, other=0.0)
        tl.store(slope_at + place, -sign * per_height * slope, mask=member)
        term = per_height
        at = out_at + tl.load(below_at + place, mask=member, other=0)
        some = member & (per_height > 0.0)
        for m in tl.static_range(2):
            whole = tl.load(sums_at + 2 + m)
            each = tl.where(whole > 0.0, tl.load(quanta_at) / whole, 0.0)
            quanta = tl.floor(term * each + 0.5).to(tl.int64)
            tl.atomic_add(at + m * (many + 1), quanta, mask=some, sem="relaxed")
            term *= score

    return pull


@cache
def _slopes() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def slopes(  # type: ignore[no-untyped-def]
        sorted_at, row_at, share_at, apart, middle_at, sums_at, quanta_at, loss_at, running_at,
        slope_at, n, sign: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        place = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        x = tl.load(sorted_at + place, mask=there, other=0.0) - tl.load(middle_at)
        row = tl.load(row_at + place, mask=there, other=0)
        quanta = tl.load(quanta_at)
        above = tl.load(running_at + n) - tl.load(running_at + place, mask=there, other=0)
        zero = above.to(tl.float64) * (tl.load(sums_at + 2) / quanta)
        second_at = running_at + n + 1
        above = tl.load(second_at + n) - tl.load(second_at + place, mask=there, other=0)
        one = above.to(tl.float64) * (tl.load(sums_at + 3) / quanta)
        pulled = -2.0 * tl.load(loss_at + 1) * ((tl.load(loss_at) - x) * zero + one)
        share = tl.load(share_at + row * apart, mask=there, other=0.0)
        tl.store(slope_at + row, sign * share * pulled, mask=there)

    return slopes


class SquareKernels(SideKernels):
    """The kernels for the loss square (knot - r)_+^2.

    Parameters
    ----------
    inner : int64 tensor
        The inner rows.
    loss : float64 tensor of (knot, square)
    """

    def __init__(
        self,
        side: Tensor,
        inner_share: Tensor,
        outer_share: Tensor,
        sign: int,
        inner: Tensor,
        loss: Tensor,
    ):
        super().__init__(side, inner_share, outer_share, sign)
        self.inner, self.loss = inner, loss
        self.quanta = self._empty(1).fill_(_QUANTA)
        self.below = self.torch.empty(self.n, dtype=self.torch.int64, device=side.device)

    def value_grad(self, scores: Tensor, power: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `price` does, and slopes that lack a factor of value / sum of prices."""
        m, share, torch = len(self.inner), self.inner_share, self.torch
        whole_numbers = {"dtype": torch.int64, "device": scores.device}
        placed, order = torch.sort(self.sign * scores[self.inner])
        row, middle = self.inner[order], placed.mean().view(1)
        whole, apart = self._empty(self._programs(m), 3), self._apart(share)
        rows = placed, row, share, apart, middle
        self._start(_terms(), *rows, middle, self.quanta, whole, n=m, counted=False)
        whole = whole.sum(0)
        terms = torch.empty((3, m), **whole_numbers)
        self._start(_terms(), *rows, whole, self.quanta, terms, n=m, counted=True)
        slopes = torch.zeros_like(scores)
        running = torch.stack([line.cumsum(0) for line in terms])
        self._start(
            _heights(), scores, self.side, placed, running, middle, whole, self.quanta,
            self.loss, self.below, self.heights, slopes, self._largest, m, m.bit_length(),
            n=self.n, sign=self.sign,
        )  # fmt: skip
        found = self.price(scores, power, middle)
        added = torch.zeros((2, m + 1), **whole_numbers)
        self._start(
            _pull(), scores, self.side, middle, found, self.quanta, self.below, self.heights,
            slopes, added, m, n=self.n, sign=self.sign,
        )  # fmt: skip
        running = torch.stack([line.cumsum(0) for line in added])
        self._start(
            _slopes(), *rows, found, self.quanta, self.loss, running, slopes,
            n=m, sign=self.sign,
        )  # fmt: skip
        return found, slopes
