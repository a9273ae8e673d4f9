"""The exponential loss with the power price in torch: value and gradient in one go.

    F = LSE_i(log w_i - f_i) - log W+ + (1/p) [LSE_k(log w_k + p f_k) - log W-]

The gradient is known as soon as the value is: minus a softmax over the positives, a softmax over
the negatives. Keeping it takes fewer passes over the scores than tracing the sums would.

On a GPU, Triton needs two passes over the scores. The first leaves the (max, mass, weight) of both
classes for each block of rows, which merge as everywhere in this library; the second writes the
gradient. Triton comes with torch for CUDA. Where it is missing, or the scores are not float32 on a
GPU, torch does it in more passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toprank._extras import has_triton
from toprank.interop.torch._torch import Function, torch
from toprank.interop.torch.kernels_triton import value_and_gradient

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.function import FunctionCtx


class _ExponentialPower(Function):
    """F of scores, by masks: shapes do not depend on the labels."""

    @staticmethod
    def forward(ctx: FunctionCtx, f: Tensor, positive: Tensor, log_w: Tensor, p: float) -> Tensor:
        minus, plus = (torch.full((), v, dtype=f.dtype, device=f.device) for v in (-1.0, p))
        t = f * torch.where(positive, minus, plus)
        if log_w is not None:
            t += log_w
        tops = _class_values(t, positive, -torch.inf, torch.amax)
        there = [torch.isfinite(top) for top in tops]
        shifts = [torch.where(ok, top, 0.0) for ok, top in zip(there, tops, strict=True)]
        t -= torch.where(positive, *shifts)
        t.exp_()
        masses = [m.clamp(min=1e-30) for m in _class_values(t, positive, 0.0, torch.sum)]
        both = there[0] & there[1]
        counts = both.to(t.dtype)
        t *= torch.where(positive, -counts / masses[0], counts / masses[1])
        ctx.save_for_backward(t)
        logs = [s + torch.log(m) for s, m in zip(shifts, masses, strict=True)]
        totals = _log_totals(f, positive, log_w)
        value = logs[0] - totals[0] + (logs[1] - totals[1]) / p
        return torch.where(both, value, torch.zeros_like(value))

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        (t,) = ctx.saved_tensors
        return grad * t, None, None, None


class _Fused(Function):
    """The same on a GPU, in two passes."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, f: Tensor, positive: Tensor, weight: Tensor | None, p: float
    ) -> Tensor:
        value, slopes = value_and_gradient(f, positive, weight, p)
        ctx.save_for_backward(slopes)
        return value

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return grad * slopes, None, None, None


def _class_values(
    t: Tensor, positive: object, neutral: float, reduce: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    """Reduce each class: the positives, then the others."""
    rest = torch.full((), neutral, dtype=t.dtype, device=t.device)
    return reduce(torch.where(positive, t, rest)), reduce(torch.where(positive, rest, t))


def _log_totals(f: Tensor, positive: Tensor, log_w: Tensor) -> tuple[Tensor, Tensor]:
    if log_w is not None:
        totals = _class_values(torch.exp(log_w), positive, 0.0, torch.sum)
    else:
        count = positive.sum().to(f.dtype)
        totals = count, f.numel() - count
    return torch.log(totals[0]), torch.log(totals[1])


def exponential_power(f: Tensor, positive: Tensor, weight: Tensor | None, p: float) -> Tensor:
    """Return F; zero, with no gradient, where a class is absent.

    Parameters
    ----------
    f : tensor of shape (n,)
    positive : tensor of shape (n,)
        Positive rows are those above zero.
    weight : tensor of shape (n,) or None
    p : float
    """
    if has_fused_kernels(f):
        return _Fused.apply(f, positive, weight, p)
    log_w = None if weight is None else torch.log(weight)
    return _ExponentialPower.apply(
        f, positive if positive.dtype == torch.bool else positive > 0, log_w, p
    )


def has_fused_kernels(f: Tensor) -> bool:
    """Whether the kernels can serve these scores."""
    if not f.is_cuda or f.dtype != torch.float32 or f.numel() == 0 or f.numel() >= 2**31:
        return False
    return not torch.compiler.is_compiling() and has_triton()
