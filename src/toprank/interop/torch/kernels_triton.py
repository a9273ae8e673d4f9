"""The kernels of the exponential loss with the power price, which Triton compiles for a GPU.

The first leaves the (max, mass, weight) of both classes for each block of rows; where blocks are
many, a second merges them; the last writes the gradient.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from toprank.interop.torch._torch import torch

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

_BLOCK = 8192
_CHUNK = 1024
#: Blocks up to which that takes less time than a launch more.
_FEW = 2 * _CHUNK


@cache
def _exponents() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def exponents(f_at, y_at, w_at, n, p, weighted: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
        """Of a block of rows: which, their labels, weights and exponents; -inf where absent."""
        rows = tl.program_id(0) * block + tl.arange(0, block)
        there = rows < n
        f = tl.load(f_at + rows, mask=there, other=0.0)
        y = tl.load(y_at + rows, mask=there, other=0)
        t = tl.where(y > 0, -f, p * f)
        if weighted:
            w = tl.load(w_at + rows, mask=there, other=0.0)
            there = there & (w > 0)
            t += tl.log(tl.where(there, w, 1.0))
        else:
            w = there.to(tl.float32)
        return rows, y, w, tl.where(there, t, float("-inf"))

    return exponents


@cache
def _partials() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    exponents = _exponents()

    @triton.jit  # type: ignore[untyped-decorator]
    def partials(f_at, y_at, w_at, out_at, n, p, weighted: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
        _, y, w, t = exponents(f_at, y_at, w_at, n, p, weighted, block)
        at = out_at + 7 + tl.program_id(0) * 6
        for side in tl.static_range(2):
            mine = (y > 0) if side == 0 else ((y > 0) == 0)
            values = tl.where(mine, t, float("-inf"))
            top = tl.max(values, 0)
            shift = tl.where(top == float("-inf"), 0.0, top)
            tl.store(at + 3 * side, top)
            tl.store(at + 3 * side + 1, tl.sum(tl.exp(values - shift), 0))
            tl.store(at + 3 * side + 2, tl.sum(tl.where(mine, w, 0.0), 0))

    return partials


@cache
def _merged() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def merged(parts_at, blocks, side: tl.constexpr, chunk: tl.constexpr):  # type: ignore[no-untyped-def]
        """The top, the mass and the weight of a class, over all blocks."""
        top = tl.full((), float("-inf"), tl.float64)
        mass = tl.full((), 0.0, tl.float64)
        weight = tl.full((), 0.0, tl.float64)
        for start in range(0, blocks, chunk):
            block = start + tl.arange(0, chunk)
            there = block < blocks
            at = parts_at + block * 6 + 3 * side
            tops = tl.load(at, mask=there, other=float("-inf")).to(tl.float64)
            masses = tl.load(at + 1, mask=there, other=0.0).to(tl.float64)
            weight += tl.sum(tl.load(at + 2, mask=there, other=0.0).to(tl.float64), 0)
            higher = tl.maximum(top, tl.max(tops, 0))
            shift = tl.where(higher == float("-inf"), 0.0, higher)
            mass = mass * tl.exp(top - shift) + tl.sum(masses * tl.exp(tops - shift), 0)
            top = higher
        return top, mass, weight

    return merged


@cache
def _merge() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    merged = _merged()

    @triton.jit  # type: ignore[untyped-decorator]
    def merge(out_at, blocks, chunk: tl.constexpr):  # type: ignore[no-untyped-def]
        """Leave all blocks as one, before the others."""
        for side in tl.static_range(2):
            top, mass, weight = merged(out_at + 7, blocks, side, chunk)
            tl.store(out_at + 1 + 3 * side, top.to(tl.float32))
            tl.store(out_at + 2 + 3 * side, mass.to(tl.float32))
            tl.store(out_at + 3 + 3 * side, weight.to(tl.float32))

    return merge


@cache
def _gradient() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    exponents, merged = _exponents(), _merged()

    @triton.jit  # type: ignore[untyped-decorator]
    def gradient(  # type: ignore[no-untyped-def]
        f_at, y_at, w_at, out_at, g_at, n, p, parts, blocks,
        weighted: tl.constexpr, block: tl.constexpr, chunk: tl.constexpr,
    ):  # fmt: skip
        rows, y, _, t = exponents(f_at, y_at, w_at, n, p, weighted, block)
        high, high_mass, high_weight = merged(out_at + parts, blocks, 0, chunk)
        low, low_mass, low_weight = merged(out_at + parts, blocks, 1, chunk)
        # an absent class leaves no gradient to the other one either
        both = (high_mass > 0) & (low_mass > 0)
        high += tl.log(high_mass)
        low += tl.log(low_mass)
        value = high - tl.log(high_weight) + (low - tl.log(low_weight)) / p
        if tl.program_id(0) == 0:
            tl.store(out_at, tl.where(both, value, 0.0).to(tl.float32))
        log_mass = tl.where(y > 0, high.to(tl.float32), low.to(tl.float32))
        g = tl.where(both, tl.exp(t - log_mass), 0.0)
        tl.store(g_at + rows, tl.where(y > 0, -g, g), mask=rows < n)

    return gradient


def value_and_gradient(
    f: Tensor, positive: Tensor, weight: Tensor | None, p: float
) -> tuple[Tensor, Tensor]:
    """Return F and its gradient; both zero where a class is absent."""
    f, n = f.contiguous(), f.numel()
    y = positive.contiguous()
    if y.dtype == torch.bool:
        y = y.view(torch.uint8)
    w = f if weight is None else weight.contiguous()
    blocks = -(-n // _BLOCK)
    settings = {"weighted": weight is not None, "block": _BLOCK}
    # F, what all blocks have together, and what each of them has
    room = torch.empty(7 + 6 * blocks, dtype=torch.float32, device=f.device)
    slopes = torch.empty_like(f)
    with torch.cuda.device(f.device):
        _partials()[(blocks,)](f, y, w, room, n, p, **settings)
        parts = (7, blocks)  # every program merges a few for itself: sooner than a launch more
        if blocks > _FEW:
            _merge()[(1,)](room, blocks, chunk=_CHUNK)
            parts = (1, 1)
        _gradient()[(blocks,)](f, y, w, room, slopes, n, p, *parts, chunk=_CHUNK, **settings)
    return room[0], slopes
