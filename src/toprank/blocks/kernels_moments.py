"""Weighted second moments of some rows of a table on a GPU, by its units for matrices.

A program takes two blocks of columns and some of the rows, reads them where they lie, and adds up
the products of what lies between them and a middle. The entries are rounded to the eleven bits
that those units read: for curvatures, which need no more.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Columns of a block and rows read at once, and the programs that a GPU should have to do.
_WIDTH, _HEIGHT = 64, 64
_PROGRAMS = 2048
_WARPS = 4
#: Numbers that the programs may leave to be added up.
_LEFT = 1 << 25


@cache
def _kernel() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def moments(  # type: ignore[no-untyped-def]
        X_at, down, across, rows_at, weight_at, middle_at, first_at, second_at, n, each,
        d: tl.constexpr, blocks: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        pair, part = tl.program_id(0), tl.program_id(1)
        left, right = pair // blocks, pair % blocks
        if left <= right:
            one, other = left * width + tl.arange(0, width), right * width + tl.arange(0, width)
            in_one, in_other = one < d, other < d
            of_one = tl.load(middle_at + one, mask=in_one, other=0.0)
            of_other = tl.load(middle_at + other, mask=in_other, other=0.0)
            first = tl.zeros((width,), tl.float32)
            second = tl.zeros((width, width), tl.float32)
            end = tl.minimum((part + 1) * each, n)
            for start in range(part * each, end, height):
                place = start + tl.arange(0, height)
                there = place < end
                row = tl.load(rows_at + place, mask=there, other=0)[:, None] * down
                weight = tl.load(weight_at + place, mask=there, other=0.0)
                at_one = X_at + row + one[None, :].to(tl.int64) * across
                at_other = X_at + row + other[None, :].to(tl.int64) * across
                a = tl.load(at_one, mask=there[:, None] & in_one[None, :], other=0.0)
                b = tl.load(at_other, mask=there[:, None] & in_other[None, :], other=0.0)
                a = (a.to(tl.float32) - of_one[None, :]) * weight[:, None]
                b = b.to(tl.float32) - of_other[None, :]
                first += tl.sum(a, 0)
                second = tl.dot(tl.trans(a), b, second, input_precision="tf32")
            out = second_at + part.to(tl.int64) * d * d + one[:, None] * d + other[None, :]
            tl.store(out, second, mask=in_one[:, None] & in_other[None, :])
            if left == right:
                tl.store(first_at + part * d + one, first, mask=in_one)

    return moments


def weighted_moments(
    X: Tensor, rows: Tensor, weight: Tensor, middle: Tensor
) -> tuple[Tensor, Tensor]:
    """Return sum w (x - middle) and sum w (x - middle)(x - middle)' over some rows, in float64.

    Parameters
    ----------
    X : tensor of shape (n, d), of floating-point numbers
    rows : int64 tensor of shape (m,)
    weight : float32 tensor of shape (m,)
    middle : float32 tensor of shape (d,)
    """
    torch = importlib.import_module("torch")
    d, n = int(X.shape[1]), len(rows)
    blocks = -(-d // _WIDTH)
    parts = max(1, min(_PROGRAMS // blocks**2, _LEFT // d**2, -(-n // _HEIGHT)))
    each = -(-n // (parts * _HEIGHT)) * _HEIGHT
    kind = {"dtype": torch.float32, "device": X.device}
    first, second = torch.zeros((parts, d), **kind), torch.zeros((parts, d, d), **kind)
    with torch.cuda.device(X.device):
        _kernel()[(blocks**2, parts)](
            X, *X.stride(), rows, weight, middle, first, second, n, each,
            d=d, blocks=blocks, height=_HEIGHT, width=_WIDTH, num_warps=_WARPS,
        )  # fmt: skip
    upper = second.sum(0, dtype=torch.float64).triu()
    return first.sum(0, dtype=torch.float64), upper + upper.triu(1).T
