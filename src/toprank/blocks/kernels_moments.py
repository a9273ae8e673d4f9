"""Curvature on a GPU: rows drawn by their weight, and the second moments of those rows.

A row of weight v, of a class whose weights sum to one, is drawn with the chance min(1, m v) and
then counts max(v, 1/m): about m rows of each class stand for it, and those that weigh little are
seldom read. What stands for chance is a sequence of numbers of equal distances around a circle
(Weyl's), so that the same rows are drawn every time.

The moments come from the GPU's units for matrices. What lies between an entry and the middle of
its class, times the root of what the row counts, is rounded to bfloat16 (eight significant bits),
which those units read at full speed, and written in order; a program multiplies two blocks of
columns of some of these rows. Rounding moves an entry by a five-hundredth of itself at the most,
now up, now down, which evens out over many rows: the error is far below that of the draw. What
comes out is a product of a matrix with its transpose, so that no eigenvalue is negative.

For losses whose Hessian comes from bins of scores, rows are added up bin by bin, in a fixed order.
Rows that are drawn evenly, for a sample, are copied here too.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Numbers that equal steps of this share of a circle leave as far apart as any step can.
GOLDEN = 0.6180339887498949
#: Entries that a program copies.
_GATHERED = 2048
#: Columns of a block: rows of it that are multiplied at once, the warps of a program, and how many
#: of its reads are under way. One block holds all columns where it can, several of one width else.
_SHAPES = {16: (128, 2, 3), 32: (128, 2, 3), 64: (128, 8, 3)}
_WIDE = 64
#: Programs that a GPU should have to do.
_PROGRAMS = 528
_WARPS = 4
#: Numbers that the programs may leave to be added up.
_LEFT = 1 << 25
#: Rows of a bin that a program adds up, and the entries that it reads at once.
_BIN_ROWS = 256
_BIN_ENTRIES = 1024
#: Entries that are made ready for the units for matrices at once: two bytes each.
_PACKED = 1 << 26


@cache
def _pack() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def pack(  # type: ignore[no-untyped-def]
        X_at, down, across, rows_at, count_at, middle_at, out_at, total_at, first, most,
        d: tl.constexpr, padded: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        place = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
        column = tl.arange(0, width)
        n = tl.minimum(tl.load(total_at) - first, most)
        there, inside = place < n, column < d
        row = tl.load(rows_at + place, mask=there, other=0)[:, None] * down
        count = tl.load(count_at + place, mask=there, other=0.0)[:, None]
        at = X_at + row + column[None, :].to(tl.int64) * across
        x = tl.load(at, mask=there[:, None] & inside[None, :], other=0.0).to(tl.float32)
        of_pos = tl.load(middle_at + column, mask=inside, other=0.0)[None, :]
        of_neg = tl.load(middle_at + d + column, mask=inside, other=0.0)[None, :]
        x = (x - tl.where(count > 0.0, of_pos, of_neg)) * tl.sqrt(tl.abs(count))
        to = out_at + place[:, None] * padded + column[None, :]
        tl.store(to, x.to(tl.bfloat16), mask=there[:, None] & (column < padded)[None, :])

    return pack


@cache
def _products() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def products(  # type: ignore[no-untyped-def]
        packed_at, out_at, total_at, first, most, padded: tl.constexpr, blocks: tl.constexpr,
        height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        pair, part = tl.program_id(0), tl.program_id(1)
        n = tl.maximum(tl.minimum(tl.load(total_at) - first, most), 0).to(tl.int32)
        each = tl.cdiv(n, tl.num_programs(1) * height) * height
        left, right = pair // blocks, pair % blocks
        if left <= right:
            one = left * width + tl.arange(0, width)
            other = right * width + tl.arange(0, width)
            out = out_at + part.to(tl.int64) * padded * padded + one[:, None] * padded
            total = tl.load(out + other[None, :])
            end = tl.minimum((part + 1) * each, n)
            for start in range(part * each, end, height):
                place = start + tl.arange(0, height)
                at, there = packed_at + place[:, None].to(tl.int64) * padded, place < end
                a = tl.load(at + one[None, :], mask=there[:, None], other=0.0)
                b = a
                if blocks > 1:
                    b = tl.load(at + other[None, :], mask=there[:, None], other=0.0)
                total = tl.dot(tl.trans(a), b, total)
            tl.store(out + other[None, :], total)

    return products


@cache
def _bin_sums() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def bin_sums(  # type: ignore[no-untyped-def]
        X_at, down, across, rows_at, share_at, score_at, centre_at, starts_at, parts_at, out_at,
        bins, d: tl.constexpr, each: tl.constexpr, most: tl.constexpr,
        height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        part, slot = tl.program_id(0), tl.arange(0, most)
        # the parts of a bin follow those of the bins before it; there may be fewer than programs
        before = tl.load(parts_at + slot, mask=slot <= bins, other=2147483647)
        number = tl.sum((before <= part).to(tl.int32), 0) - 1
        inside_bins = number < bins
        first = tl.load(starts_at + number, mask=inside_bins, other=0)
        last = tl.load(starts_at + number + 1, mask=inside_bins, other=0)
        start = first + (part - tl.load(parts_at + number)) * each
        column = tl.arange(0, width)
        end, inside = tl.minimum(start + each, last), column < d
        centre = tl.load(centre_at + column, mask=inside, other=0.0)[None, :]
        total = tl.zeros((height, width), tl.float64)
        mass = tl.zeros((height,), tl.float64)
        moment = tl.zeros((height,), tl.float64)
        for at in range(start, end, height):
            place = at + tl.arange(0, height)
            there = place < end
            row = tl.load(rows_at + place, mask=there, other=0)[:, None] * down
            share = tl.load(share_at + place, mask=there, other=0.0)
            x_at = X_at + row + column[None, :].to(tl.int64) * across
            x = tl.load(x_at, mask=there[:, None] & inside[None, :], other=0.0).to(tl.float64)
            total += share[:, None] * (x - centre)
            mass += share
            moment += share * tl.load(score_at + place, mask=there, other=0.0)
        out = out_at + part.to(tl.int64) * (d + 2)
        tl.store(out + column, tl.sum(total, 0), mask=inside)
        tl.store(out + d, tl.sum(mass, 0))
        tl.store(out + d + 1, tl.sum(moment, 0))

    return bin_sums


@cache
def _merge_parts() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def merge_parts(sums_at, parts_at, out_at, d: tl.constexpr, width: tl.constexpr):  # type: ignore[no-untyped-def]
        number, column = tl.program_id(0), tl.arange(0, width)
        total = tl.zeros((width,), tl.float64)
        for part in range(tl.load(parts_at + number), tl.load(parts_at + number + 1)):
            at = sums_at + part * d + column
            total += tl.load(at, mask=column < d, other=0.0)
        tl.store(out_at + number.to(tl.int64) * d + column, total, mask=column < d)

    return merge_parts


@cache
def _gather() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def gather(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, rows_at, out_at, n, d: tl.constexpr,
        height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        place = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
        column = tl.arange(0, width)
        there = place < n
        row = tl.load(rows_at + place, mask=there, other=0)
        mask = there[:, None] & (column < d)[None, :]
        x = tl.load(X_at + row[:, None] * stride + column[None, :], mask=mask)
        tl.store(out_at + place[:, None] * d + column[None, :], x, mask=mask)

    return gather


def drawn_moments(
    X: Tensor, rows: Tensor, count: Tensor, middles: Tensor, total: Tensor | None = None
) -> Tensor:
    """Return sum |count| (x - middle)(x - middle)' over some rows, in float64.

    Parameters
    ----------
    X : tensor of shape (n, d), of floating-point numbers
    rows : int64 tensor of shape (m,)
    count : float32 tensor of shape (m,), less than zero for negatives
    middles : float32 tensor of shape (2, d)
        Of the positives and of the negatives.
    total : int64 tensor of shape (1,), optional
        How many of the rows there are, where the host does not know; all of them else.
    """
    torch = importlib.import_module("torch")
    d, n = int(X.shape[1]), len(rows)
    if total is None:
        total = torch.full((1,), n, dtype=torch.int64, device=X.device)
    width = next((width for width in _SHAPES if d <= width), _WIDE)
    (height, warps, stages), blocks = _SHAPES[width], -(-d // width)
    padded, pairs = blocks * width, blocks * (blocks + 1) // 2
    at_once = max(1, _PACKED // (padded * height)) * height
    parts = max(1, min(_PROGRAMS // pairs, _LEFT // padded**2, -(-min(n, at_once) // height)))
    sums = torch.zeros((parts, padded, padded), dtype=torch.float32, device=X.device)
    packed = torch.empty((min(n, at_once), padded), dtype=torch.bfloat16, device=X.device)
    read, tall = _power_of_two(padded), max(1, _GATHERED // _power_of_two(padded))
    with torch.cuda.device(X.device):
        for first in range(0, n, at_once):
            some, counts = rows[first : first + at_once], count[first : first + at_once]
            chosen = total, first, len(some)
            _pack()[(-(-len(some) // tall),)](
                X, *X.stride(), some, counts, middles, packed, *chosen, d,
                padded=padded, height=tall, width=read, num_warps=_WARPS,
            )  # fmt: skip
            _products()[(blocks**2, parts)](
                packed, sums, *chosen, padded=padded, blocks=blocks,
                height=height, width=width, num_warps=warps, num_stages=stages,
            )  # fmt: skip
    upper = sums.sum(0, dtype=torch.float64)[:d, :d].triu()
    found: Tensor = upper + upper.triu(1).T
    return found


def _power_of_two(count: int) -> int:
    return 1 << (count - 1).bit_length()


def sums_in_bins(
    X: Tensor, rows: Tensor, share: Tensor, scores: Tensor, starts: Tensor, centre: Tensor | None
) -> Tensor:
    """Return the sums of share (x - centre), of shares and of share score over bins of rows.

    Parameters
    ----------
    X : tensor of shape (n, d), of floating-point numbers
    rows : int64 tensor of shape (m,)
        Some of its rows, those of a bin one after the other.
    share, scores : float64 tensors of shape (m,)
    starts : int64 tensor of shape (bins + 1,)
        Where each bin begins, and the end of the last.
    centre : float64 tensor of shape (d,), optional

    Returns
    -------
    float64 tensor of shape (bins, d + 2)
    """
    torch = importlib.import_module("torch")
    d, bins, width = int(X.shape[1]), len(starts) - 1, _power_of_two(int(X.shape[1]))
    centre = share.new_zeros(d) if centre is None else centre
    parts = starts.new_zeros(bins + 1, dtype=torch.int32)
    torch.cumsum(-(starts.diff().neg() // _BIN_ROWS), 0, dtype=torch.int32, out=parts[1:])
    most = len(rows) // _BIN_ROWS + bins  # which the parts are, or fewer
    sums, out = share.new_empty((most, d + 2)), share.new_empty((bins, d + 2))
    with torch.cuda.device(X.device):
        _bin_sums()[(most,)](
            X, *X.stride(), rows, share, scores, centre, starts, parts, sums, bins, d=d,
            each=_BIN_ROWS, most=_power_of_two(bins + 1),
            height=max(1, _BIN_ENTRIES // width), width=width, num_warps=_WARPS,
        )  # fmt: skip
        _merge_parts()[(bins,)](sums, parts, out, d=d + 2, width=_power_of_two(d + 2))
    return out


def gather_rows(X: Tensor, rows: Tensor) -> Tensor:
    """Return copies of some rows of a table that lies by rows.

    At a hundred columns torch takes twice as long.
    """
    torch = importlib.import_module("torch")
    d = int(X.shape[1])
    out = X.new_empty((len(rows), d))
    width = _power_of_two(d)
    height = max(1, _GATHERED // width)
    if len(rows):
        with torch.cuda.device(X.device):
            _gather()[(-(-len(rows) // height),)](
                X, X.stride(0), rows, out, len(rows), d,
                height=height, width=width, num_warps=_WARPS,
            )  # fmt: skip
    return out
