"""Points of an axis of boxes, on a GPU: what they add to a box, and what it says of them.

A point lies at x in [-1, 1] of its box. Its share, times the powers of x, is added to the moments
of the box, in whole quanta: no order of adding up can change a bit. Or the polynomial of the box
is evaluated at x.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Points of a program, its warps, and copies of the moments that programs are shared out among.
_POINTS = 1024
_WARPS = 4
_COPIES = 128


@cache
def _kernels() -> tuple[JITFunction, JITFunction]:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit
    def locate(points_at, grid_at, place, there):  # type: ignore[no-untyped-def]
        origin, width, first = tl.load(grid_at), tl.load(grid_at + 1), tl.load(grid_at + 2)
        at = (tl.load(points_at + place, mask=there, other=origin) - origin) / width
        box = tl.floor(at)
        return (box - first).to(tl.int64), 2.0 * (at - box) - 1.0

    @triton.jit  # type: ignore[untyped-decorator]
    def spread(  # type: ignore[no-untyped-def]
        points_at, grid_at, share_at, apart, sums_at, n, count,
        terms: tl.constexpr, copies: tl.constexpr, points: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        place = number.to(tl.int64) * points + tl.arange(0, points)
        there = place < n
        box, x = locate(points_at, grid_at, place, there)
        quanta = tl.load(share_at + place * apart, mask=there, other=0.0) * tl.load(grid_at + 3)
        own_at = sums_at + (number % copies) * count * terms + tl.where(there, box, 0)
        for m in tl.static_range(terms):
            whole = tl.floor(quanta + 0.5).to(tl.int64)
            tl.atomic_add(own_at + m * count, whole, mask=there, sem="relaxed")
            quanta *= x

    @triton.jit  # type: ignore[untyped-decorator]
    def evaluate(  # type: ignore[no-untyped-def]
        points_at, grid_at, lines_at, out_at, n, count,
        terms: tl.constexpr, points: tl.constexpr,
    ):  # fmt: skip
        place = tl.program_id(0).to(tl.int64) * points + tl.arange(0, points)
        there = place < n
        box, x = locate(points_at, grid_at, place, there)
        at = lines_at + tl.where(there, box, 0)
        total = tl.load(at + (terms - 1) * count)
        for m in tl.static_range(1, terms):
            total = total * x + tl.load(at + (terms - 1 - m) * count)
        tl.store(out_at + place, total, mask=there)

    return spread, evaluate


def spread_shares(points: Tensor, grid: Tensor, share: Tensor, count: int, terms: int) -> Tensor:
    """Return the sums of share x^m over each box in whole quanta, of shape (terms, count).

    ``grid`` holds the origin, the width of a box, the number of the first and the quanta of a
    share of one.
    """
    torch, (spread, _) = importlib.import_module("torch"), _kernels()
    sums = torch.zeros((_COPIES, terms, count), dtype=torch.int64, device=points.device)
    with torch.cuda.device(points.device):
        spread[(-(-len(points) // _POINTS),)](
            points, grid, share, share.stride(0), sums, len(points), count,
            terms=terms, copies=_COPIES, points=_POINTS, num_warps=_WARPS,
        )  # fmt: skip
    summed: Tensor = sums.sum(0)
    return summed


def evaluate_series(points: Tensor, grid: Tensor, lines: Tensor) -> Tensor:
    """Return the polynomials of the boxes at the points; ``lines`` has shape (terms, count)."""
    torch, (_, evaluate) = importlib.import_module("torch"), _kernels()
    out: Tensor = torch.empty_like(points)
    with torch.cuda.device(points.device):
        evaluate[(-(-len(points) // _POINTS),)](
            points, grid, lines, out, len(points), lines.shape[1],
            terms=lines.shape[0], points=_POINTS, num_warps=_WARPS,
        )  # fmt: skip
    return out
