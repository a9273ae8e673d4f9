"""A price of heights that are tensors: its own value and slope, where the tensors lie."""

from __future__ import annotations

from typing import Any

from toprank.blocks.on_device import OnDevice
from toprank.interop.torch._torch import Function, torch
from toprank.prices import Price


def priced(price: Price, log_s: Any, log_w: Any) -> Any:
    """Return the objective F of log heights and log weights; its gradient is the price's slope.

    Parameters
    ----------
    price : Price
    log_s, log_w : float64 tensors of shape (K,)
        On the host the price sees NumPy's arrays; on a device it sees vectors that answer to
        NumPy's functions, and what they cannot do there is refused by name.
    """
    return _Priced.apply(log_s, log_w, price)


class _Priced(Function):
    @staticmethod
    def forward(ctx: Any, log_s: Any, log_w: Any, price: Price) -> Any:
        value, slope = price.value_slope(_vector(log_s), _vector(log_w))
        if isinstance(slope, OnDevice):
            slope = slope.tensor
        else:
            slope = torch.tensor(slope, dtype=torch.float64)
        ctx.save_for_backward(slope)
        return log_s.new_tensor(value)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


def _vector(tensor: Any) -> Any:
    tensor = tensor.detach()
    return tensor.numpy() if tensor.device.type == "cpu" else OnDevice(tensor)
