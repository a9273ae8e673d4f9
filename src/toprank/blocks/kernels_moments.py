"""Curvature on a GPU: rows drawn by their weight, and the second moments of those rows.

A row of weight v, of a class whose weights sum to one, is drawn with the chance min(1, m v) and
then counts max(v, 1/m): about m rows of each class stand for it, and those that weigh little are
seldom read. What stands for chance is a sequence of numbers of equal distances around a circle
(Weyl's), so that the same rows are drawn every time.

The moments come from the GPU's units for matrices. A program takes two blocks of columns and some
of the rows, reads them where they lie, and adds up the products of what lies between them and the
middle of their class. An entry becomes the sum of two numbers of eight bits, which those units
read; of their four products the smallest is left out. One block of columns with itself takes two
products, since the third is the transpose of the second.

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
#: Rows that a program of the drawing looks at.
_LOOKED_AT = 1024
#: Columns of a block: rows of it that are read at once, and the warps of a program. One block holds
#: all columns where it can.
_SHAPES = {32: (128, 4), 64: (64, 4), 128: (128, 8)}
#: Columns up to which two of the widest blocks take less time than more of half their width.
_TWO_BLOCKS = 256
#: Programs that a GPU should have to do.
_PROGRAMS = 1056
_PROGRAMS_OF_WIDE = 528
_WARPS = 4
#: Numbers that the programs may leave to be added up.
_LEFT = 1 << 25


@cache
def _draw() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def draw(  # type: ignore[no-untyped-def]
        scores_at, kind_at, log_weight_at, about_at, out_at, n,
        weighted: tl.constexpr, height: tl.constexpr,
    ):  # fmt: skip
        rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
        there = rows < n
        is_pos = tl.load(kind_at + rows, mask=there, other=0) != 0
        tilt = tl.where(is_pos, tl.load(about_at), tl.load(about_at + 1))
        top = tl.where(is_pos, tl.load(about_at + 2), tl.load(about_at + 3))
        t = tl.load(scores_at + rows, mask=there, other=0.0) * tilt - top
        if weighted:
            t += tl.load(log_weight_at + rows, mask=there, other=0.0)
        share = tl.exp(t.to(tl.float32))
        each = tl.load(about_at + 4)
        turn = (rows + 1).to(tl.float64) * tl.load(about_at + 5)
        chosen = there & ((turn - tl.floor(turn)) < each * share.to(tl.float64))
        count = tl.maximum(share, (1.0 / each).to(tl.float32))
        count *= tl.where(is_pos, 1.0, -1.0) * tl.abs(tilt).to(tl.float32)
        tl.store(out_at + rows, tl.where(chosen, count, 0.0), mask=there)

    return draw


@cache
def _moments() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def moments(  # type: ignore[no-untyped-def]
        X_at, down, across, rows_at, count_at, middle_at, out_at, n, each,
        d: tl.constexpr, blocks: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        pair, part = tl.program_id(0), tl.program_id(1)
        left, right = pair // blocks, pair % blocks
        if left <= right:
            one, other = left * width + tl.arange(0, width), right * width + tl.arange(0, width)
            in_one, in_other = one < d, other < d
            one_pos = tl.load(middle_at + one, mask=in_one, other=0.0)[None, :]
            one_neg = tl.load(middle_at + d + one, mask=in_one, other=0.0)[None, :]
            other_pos = tl.load(middle_at + other, mask=in_other, other=0.0)[None, :]
            other_neg = tl.load(middle_at + d + other, mask=in_other, other=0.0)[None, :]
            total = tl.zeros((width, width), tl.float32)
            end = tl.minimum((part + 1) * each, n)
            for start in range(part * each, end, height):
                place = start + tl.arange(0, height)
                there = place < end
                row = tl.load(rows_at + place, mask=there, other=0)[:, None] * down
                count = tl.load(count_at + place, mask=there, other=0.0)
                root, is_pos = tl.sqrt(tl.abs(count))[:, None], (count > 0.0)[:, None]
                at_one = X_at + row + one[None, :].to(tl.int64) * across
                a = tl.load(at_one, mask=there[:, None] & in_one[None, :], other=0.0)
                a = (a.to(tl.float32) - tl.where(is_pos, one_pos, one_neg)) * root
                a_high = a.to(tl.bfloat16)
                a_low = (a - a_high.to(tl.float32)).to(tl.bfloat16)
                if blocks == 1:  # half of the sum, which is its own transpose
                    half = (0.5 * a_high.to(tl.float32)).to(tl.bfloat16)
                    total = tl.dot(tl.trans(a_high), half, total)
                    total = tl.dot(tl.trans(a_high), a_low, total)
                else:
                    at_other = X_at + row + other[None, :].to(tl.int64) * across
                    b = tl.load(at_other, mask=there[:, None] & in_other[None, :], other=0.0)
                    b = (b.to(tl.float32) - tl.where(is_pos, other_pos, other_neg)) * root
                    b_high = b.to(tl.bfloat16)
                    b_low = (b - b_high.to(tl.float32)).to(tl.bfloat16)
                    total = tl.dot(tl.trans(a_high), b_high, total)
                    total = tl.dot(tl.trans(a_high), b_low, total)
                    total = tl.dot(tl.trans(a_low), b_high, total)
            out = out_at + part.to(tl.int64) * d * d + one[:, None] * d + other[None, :]
            tl.store(out, total, mask=in_one[:, None] & in_other[None, :])

    return moments


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


def draw_rows(
    scores: Tensor, positive: Tensor, log_weight: Tensor | None, about: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the rows that are drawn of both classes, and how much each counts, as float32.

    Those of negatives count less than zero. ``about`` holds the tilts of (positives, negatives),
    the logarithms of their masses, the rows m that are to stand for a class, and `GOLDEN`.
    """
    torch = importlib.import_module("torch")
    count = torch.empty(len(scores), dtype=torch.float32, device=scores.device)
    logs = scores if log_weight is None else log_weight
    with torch.cuda.device(scores.device):
        _draw()[(-(-len(scores) // _LOOKED_AT),)](
            scores, positive.view(torch.uint8), logs, about, count, len(scores),
            weighted=log_weight is not None, height=_LOOKED_AT, num_warps=_WARPS,
        )  # fmt: skip
    rows = count.nonzero()[:, 0]
    return rows, count[rows]


def drawn_moments(X: Tensor, rows: Tensor, count: Tensor, middles: Tensor) -> Tensor:
    """Return sum |count| (x - middle)(x - middle)' over some rows, in float64.

    Parameters
    ----------
    X : tensor of shape (n, d), of floating-point numbers
    rows : int64 tensor of shape (m,)
    count : float32 tensor of shape (m,), less than zero for negatives
    middles : float32 tensor of shape (2, d)
        Of the positives and of the negatives.
    """
    torch = importlib.import_module("torch")
    d, n = int(X.shape[1]), len(rows)
    several = 128 if d <= _TWO_BLOCKS else 64
    width = next((width for width in _SHAPES if d <= width), several)
    (height, warps), blocks = _SHAPES[width], -(-d // width)
    programs = _PROGRAMS_OF_WIDE if width == 128 else _PROGRAMS
    pairs = blocks * (blocks + 1) // 2
    parts = max(1, min(programs // pairs, _LEFT // d**2, -(-n // height)))
    each = -(-n // (parts * height)) * height
    sums = torch.zeros((parts, d, d), dtype=torch.float32, device=X.device)
    with torch.cuda.device(X.device):
        _moments()[(blocks**2, parts)](
            X, *X.stride(), rows, count, middles, sums, n, each,
            d=d, blocks=blocks, height=height, width=width, num_warps=warps,
        )  # fmt: skip
    total = sums.sum(0, dtype=torch.float64)
    if blocks == 1:
        found: Tensor = total + total.T
        return found
    upper = total.triu()
    found = upper + upper.triu(1).T
    return found


def gather_rows(X: Tensor, rows: Tensor) -> Tensor:
    """Return copies of some rows of a table that lies by rows.

    At a hundred columns torch takes twice as long.
    """
    torch = importlib.import_module("torch")
    d = int(X.shape[1])
    out = X.new_empty((len(rows), d))
    width = 1 << (d - 1).bit_length()
    height = max(1, _GATHERED // width)
    if len(rows):
        with torch.cuda.device(X.device):
            _gather()[(-(-len(rows) // height),)](
                X, X.stride(0), rows, out, len(rows), d,
                height=height, width=width, num_warps=_WARPS,
            )  # fmt: skip
    return out
