"""Sums over the stored entries of a sparse matrix, segment by segment, where they lie.

A segment is a row, or a piece of a column: entries side by side whose products with numbers
gathered from a vector are added up. On a GPU one Triton kernel does that for many segments at
once, in float64 and in a fixed order, so that the same entries give the same bits again. Where
there is no Triton, and on the host, torch does it in several steps.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from toprank._extras import has_triton

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Entries that a program of the kernel holds, the widths of a segment in it, and its warps.
_TILE = 1024
_WIDTHS = 4, 128
_WARPS = 4


def sum_segments(
    starts: Tensor, index: Tensor, values: Tensor, vector: Tensor, *, by_sign: bool = False
) -> Tensor:
    """Return for each segment the sum of values times the numbers that ``index`` names.

    Parameters
    ----------
    starts : int64 tensor of shape (m + 1,)
        Segment s holds the entries starts[s] to starts[s + 1] - 1.
    index : int tensor of shape (nnz,)
    values : tensor of shape (nnz,)
    vector : float64 tensor
    by_sign : bool
        Sum the positive numbers of the vector and, apart from them, the sizes of the negative
        ones: the answer then has shape (2, m).

    Examples
    --------
    >>> import torch
    >>> from toprank.blocks.kernels_stored import sum_segments
    >>> starts, index = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 2, 1])
    >>> weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    >>> sum_segments(starts, index, torch.tensor([3.0, 4.0, 1.0]), weights).tolist()
    [5.0, 0.0, -2.0]
    """
    if values.is_cuda and has_triton():
        return _sum_on_gpu(starts, index, values, vector, by_sign)
    torch = importlib.import_module("torch")
    gathered = vector.index_select(0, index)
    parts = (gathered.clamp(min=0.0), (-gathered).clamp(min=0.0)) if by_sign else (gathered,)
    numbers = values.double()
    sums = [
        torch.segment_reduce(numbers * part, "sum", offsets=starts, initial=0.0) for part in parts
    ]
    return torch.stack(sums) if by_sign else sums[0]


@cache
def _kernel() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Any = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def segments(  # type: ignore[no-untyped-def]
        starts_at, index_at, values_at, vector_at, out_at, n,
        by_sign: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        segment = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
        there = segment < n
        first = tl.load(starts_at + segment, mask=there, other=0)
        last = tl.load(starts_at + segment + 1, mask=there, other=0)
        longest = tl.max(last - first, 0).to(tl.int32)
        place = tl.arange(0, width)
        high = tl.zeros((height, width), tl.float64)
        low = tl.zeros((height, width), tl.float64)
        for start in range(0, longest, width):
            at = first[:, None] + (start + place)[None, :]
            inside = at < last[:, None]
            value = tl.load(values_at + at, mask=inside, other=0).to(tl.float64)
            index = tl.load(index_at + at, mask=inside, other=0)
            weight = tl.load(vector_at + index, mask=inside, other=0.0)
            if by_sign:
                high += value * tl.where(weight > 0.0, weight, 0.0)
                low += value * tl.where(weight > 0.0, 0.0, -weight)
            else:
                high += value * weight
        tl.store(out_at + segment, tl.sum(high, 1), mask=there)
        if by_sign:
            tl.store(out_at + n + segment, tl.sum(low, 1), mask=there)

    return segments


def _sum_on_gpu(
    starts: Tensor, index: Tensor, values: Tensor, vector: Tensor, by_sign: bool
) -> Tensor:
    torch = importlib.import_module("torch")
    n = len(starts) - 1
    out = vector.new_empty((2, n) if by_sign else n)
    if n == 0:
        return out
    fewest, most = _WIDTHS
    mean = max(1, -(-len(values) // n))
    width = min(most, max(fewest, 1 << (mean - 1).bit_length()))
    height = _TILE // width
    if values.dtype == torch.bool:
        values = values.view(torch.uint8)
    with torch.cuda.device(values.device):
        _kernel()[(-(-n // height),)](
            starts, index, values, vector, out, n,
            by_sign=by_sign, height=height, width=width, num_warps=_WARPS,
        )  # fmt: skip
    return out
