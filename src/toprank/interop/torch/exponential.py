"""The exponential loss with the power price in torch: value and gradient in one go.

    F = LSE_i(log w_i - f_i) - log W+ + (1/p) [LSE_k(log w_k + p f_k) - log W-]

The gradient is known as soon as the value is: minus a softmax over the positives, a softmax over
the negatives. Keeping it takes fewer passes over the scores than tracing the sums would.
"""

from __future__ import annotations

from typing import Any

from toprank.interop.torch._torch import Function, torch
from toprank.interop.torch.fused import usable, value_and_gradient


class _ExponentialPower(Function):
    """F of scores, by masks: shapes do not depend on the labels."""

    @staticmethod
    def forward(ctx: Any, f: Any, positive: Any, log_w: Any, p: float) -> Any:
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
    def backward(ctx: Any, grad: Any) -> Any:
        (t,) = ctx.saved_tensors
        return grad * t, None, None, None


class _Fused(Function):
    """The same on a GPU, in two passes."""

    @staticmethod
    def forward(ctx: Any, f: Any, positive: Any, weight: Any, p: float) -> Any:
        value, slopes = value_and_gradient(f, positive, weight, p)
        ctx.save_for_backward(slopes)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (slopes,) = ctx.saved_tensors
        return grad * slopes, None, None, None


def _class_values(t: Any, positive: Any, neutral: float, reduce: Any) -> tuple[Any, Any]:
    """Reduce each class: the positives, then the others."""
    rest = torch.full((), neutral, dtype=t.dtype, device=t.device)
    return reduce(torch.where(positive, t, rest)), reduce(torch.where(positive, rest, t))


def _log_totals(f: Any, positive: Any, log_w: Any) -> tuple[Any, Any]:
    if log_w is not None:
        totals = _class_values(torch.exp(log_w), positive, 0.0, torch.sum)
    else:
        count = positive.sum().to(f.dtype)
        totals = count, f.numel() - count
    return torch.log(totals[0]), torch.log(totals[1])


def exponential_power(f: Any, positive: Any, weight: Any, p: float) -> Any:
    """Return F; zero, with no gradient, where a class is absent.

    Parameters
    ----------
    f : tensor of shape (n,)
    positive : bool tensor of shape (n,)
    weight : tensor of shape (n,) or None
    p : float
    """
    if usable(f):
        return _Fused.apply(f, positive, weight, p)
    return _ExponentialPower.apply(f, positive, None if weight is None else torch.log(weight), p)
