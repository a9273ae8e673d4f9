"""Heights in torch: S_k = sum_i w_i l(a_i - b_k) for inner scores a and outer scores b.

Exact on the batch: by sorting for the hinges, block by block for the logistic loss. The
exponential loss needs no sum over pairs and is not here.
"""

from __future__ import annotations

from typing import Any

from toprank.interop.torch._torch import Function, torch

#: Pairs held in memory at once.
PAIRS_PER_BLOCK = 1 << 22


def hinge(a: Any, b: Any, weight: Any) -> Any:
    """Sum of w (1 - r)+ by sorting and prefix sums, O(n log n)."""
    near, counts, firsts, _ = _prefix_sums(a, b, weight)
    return (near * counts - firsts).clamp(min=0.0).to(b.dtype)


def squared_hinge(a: Any, b: Any, weight: Any) -> Any:
    """Sum of w (1 - r)+^2 by sorting and prefix sums, O(n log n)."""
    near, counts, firsts, seconds = _prefix_sums(a, b, weight)
    total = near * near * counts - 2.0 * near * firsts + seconds
    return total.clamp(min=0.0).to(b.dtype)


def _prefix_sums(a: Any, b: Any, weight: Any) -> Any:
    """1 + b, and the sums of w, w a and w a^2 over the inner rows with a < 1 + b."""
    if a.device.type != "mps":  # which has no float64; elsewhere differences keep their digits
        a, b, weight = a.double(), b.double(), weight.double()
    centre = b.detach().mean()
    a, order = torch.sort(a - centre)
    w, near = weight[order], b - centre + 1.0
    place = torch.searchsorted(a.detach().contiguous(), near.detach().contiguous())
    sums = [_up_to(w * a**power, place) for power in (0, 1, 2)]
    return near, *sums


def _up_to(values: Any, place: Any) -> Any:
    zero = values.new_zeros(1)
    return torch.cat([zero, torch.cumsum(values, 0)])[place]


class _Logistic(Function):
    """Sum of w log(1 + e^-r), pairs block by block, forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, weight: Any) -> Any:
        ctx.save_for_backward(a, b, weight)
        parts = [
            torch.nn.functional.softplus(part[:, None] - a[None, :]) @ weight
            for part in _blocks(b, len(a))
        ]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b, weight = ctx.saved_tensors
        to_a, to_b = torch.zeros_like(a), []
        for part, g in zip(_blocks(b, len(a)), _blocks(grad, len(a)), strict=True):
            pull = torch.sigmoid(part[:, None] - a[None, :])
            to_a -= g @ pull
            to_b.append(g * (pull @ weight))
        return weight * to_a, torch.cat(to_b), None


def _blocks(values: Any, n_inner: int) -> Any:
    return torch.split(values, max(1, PAIRS_PER_BLOCK // max(1, n_inner)))


def logistic(a: Any, b: Any, weight: Any) -> Any:
    """Sum of w log(1 + e^-r) over the inner rows."""
    return _Logistic.apply(a, b, weight)


HEIGHTS = {"logistic": logistic, "hinge": hinge, "squared_hinge": squared_hinge}
