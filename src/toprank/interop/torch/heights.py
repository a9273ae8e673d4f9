"""Heights in torch, and their price: log S_o = log sum_i w_i l(a_i - b_o).

The inner scores are a, the outer scores b. How the heights are summed follows from what the loss
declares, as in `toprank.pair_sums`: a loss that factorises needs two sums, one that is given by its
pieces is sorted where the scores lie. Any other loss is summed by `toprank.pair_sums` on the host,
and block by block on a device, by its own ``value`` and ``slope``. So is the price: its own value
and slope, where the heights lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.blocks.tensors import OnDevice, unwrap
from toprank.interop.torch._torch import Function, torch
from toprank.losses import Loss
from toprank.pair_sums import PairSum, Sorted, pair_sum
from toprank.prices import Price

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.function import FunctionCtx

#: Pairs held in memory at once.
PAIRS_ON_DEVICE = 1 << 22


@dataclass(frozen=True)
class Members:
    """Rows of one class: their numbers, scores and float64 weights."""

    rows: Tensor
    scores: Tensor
    weight: Tensor
    log_weight: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def turn(self) -> Members:
        """Return the rows as the other end of the list sees them."""
        return replace(self, scores=-self.scores)

    def normalise(self) -> Members:
        """Return the rows with weights that sum to one."""
        total = self.weight.sum()
        return replace(
            self, weight=self.weight / total, log_weight=self.log_weight - torch.log(total)
        )


def class_members(chosen: Tensor, scores: Tensor, weight: Tensor | None) -> Members:
    """Return the chosen rows; a row of weight zero is absent."""
    rows = torch.nonzero(chosen if weight is None else chosen & (weight > 0)).reshape(-1)
    f = scores.index_select(0, rows)
    if weight is None:
        ones = torch.ones_like(f, dtype=torch.float64)
        return Members(rows, f, ones, torch.zeros_like(ones))
    of_class = weight.index_select(0, rows).double()
    return Members(rows, f, of_class, torch.log(of_class))


def log_heights(loss: Loss, inner: Members, outer: Members) -> Tensor:
    """Return log S of the outer rows as float64; scores are oriented, a margin is a - b."""
    a, b, weight = inner.scores, outer.scores, inner.weight
    if loss.factorises:
        return b + torch.logsumexp(inner.log_weight - a, 0)
    if Sorted.supports(loss) and loss.bend is None:
        heights = _sorted_sums(loss, a.double(), b.double(), weight)
        # a height of zero has no pair that could still move it
        return torch.log(heights.clamp(min=torch.finfo(heights.dtype).tiny))
    return _Summed.apply(a, b, weight.to(a.dtype), loss).double()


def _sorted_sums(loss: Loss, a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """Sums of polynomials in knot - r over the inner rows left of each knot, O(n log n)."""
    centre = b.detach().mean()
    a, order = torch.sort(a - centre)
    w = weight[order]
    total = torch.zeros_like(b)
    for knot, coefficients in loss.pieces:
        near = b - centre + knot
        place = torch.searchsorted(a.detach(), near.detach(), right=loss.includes_knot)
        sums = [_up_to(w * a**m, place) for m in range(len(coefficients))]
        for c, power in zip(coefficients, _powers(near, sums), strict=True):
            total = total + c * power if c else total
    return total.clamp(min=0.0)


def _powers(near: Tensor, sums: list[Tensor]) -> Iterator[Tensor]:
    """Sums of w (near - a)^m for m = 0, 1, 2, from the sums of w, w a and w a^2."""
    yield sums[0]
    if len(sums) > 1:
        yield near * sums[0] - sums[1]
    if len(sums) > 2:
        yield near * near * sums[0] - 2.0 * near * sums[1] + sums[2]


def _up_to(values: Tensor, place: Tensor) -> Tensor:
    return torch.nn.functional.pad(torch.cumsum(values, 0), (1, 0))[place]


class _Summed(Function):
    """log S of any loss, by the sums over pairs of the loss and of its slope."""

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor, weight: Tensor, loss: Loss) -> Tensor:
        ctx.sums = sums = _pair_sum(loss, a, b)
        (height,) = sums.to_outer((0,), _array(weight))
        height, log_scale = _tensors(a, height, sums.log_scale)
        ctx.save_for_backward(height, weight)
        tiny = torch.finfo(height.dtype).tiny
        return torch.log(height.clamp(min=tiny)) + log_scale

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        height, weight = ctx.saved_tensors
        per_height = torch.where(height > 0, grad / height, 0.0)
        tilt, inner = _tensors(height, *_slopes(ctx.sums, _array(weight), _array(per_height)))
        return weight * inner, -per_height * tilt, None, None


def _slopes(sums: PairSum, weight: Tensor, per_height: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of the slope over the inner rows and over the outer rows."""
    if isinstance(sums, _OnDevice):
        return sums.slopes(weight, per_height)
    return sums.to_outer((1,), weight)[0], sums.to_inner((1,), per_height)[0]


def _pair_sum(loss: Loss, a: Tensor, b: Tensor) -> PairSum:
    if a.device.type == "cpu":
        return pair_sum(loss, _array(a), _array(b))
    return _OnDevice(loss, a.detach(), b.detach())


def _array(tensor: Tensor) -> np.ndarray:
    """What pair sums take: NumPy's float64 on the host, the tensor itself on a device."""
    if tensor.device.type != "cpu":
        return tensor.detach()
    return tensor.detach().double().numpy()


def _tensors(like: Tensor, *values: object) -> Iterator[Tensor]:
    return (torch.as_tensor(v, dtype=like.dtype, device=like.device) for v in values)


class _OnDevice(PairSum):
    """Margins of a block of outer rows against all inner rows, on the device of the scores."""

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        rows = max(1, PAIRS_ON_DEVICE // max(1, len(self.inner)))
        for first in range(0, len(self.outer), rows):
            part = slice(first, first + rows)
            yield part, OnDevice(self.inner[None, :] - self.outer[part, None])

    def to_outer(self, orders: tuple[int, ...], v: Tensor) -> list[Tensor]:
        parts = [
            [unwrap(self.loss.derivative(k, margins)) @ v for k in orders]
            for _, margins in self._blocks()
        ]
        return [torch.cat(part) for part in zip(*parts, strict=True)]

    def to_inner(self, orders: tuple[int, ...], u: Tensor) -> list[Tensor]:
        sums = [torch.zeros_like(self.inner) for _ in orders]
        for part, margins in self._blocks():
            for total, k in zip(sums, orders, strict=True):
                total += u[part] @ unwrap(self.loss.derivative(k, margins))
        return sums

    def slopes(self, v: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Both sums of the slope from one pass over the margins."""
        outer, inner = [], torch.zeros_like(self.inner)
        for part, margins in self._blocks():
            slope = unwrap(self.loss.slope(margins))
            outer.append(slope @ v)
            inner += u[part] @ slope
        return torch.cat(outer), inner


def objective_of_heights(price: Price, log_s: Tensor, log_w: Tensor) -> Tensor:
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
    def forward(ctx: FunctionCtx, log_s: Tensor, log_w: Tensor, price: Price) -> Tensor:
        value, slope = price.value_slope(_host_or_device(log_s), _host_or_device(log_w))
        if isinstance(slope, OnDevice):
            slope = slope.tensor
        else:
            slope = torch.tensor(slope, dtype=torch.float64)
        ctx.save_for_backward(slope)
        return log_s.new_tensor(value)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


def _host_or_device(tensor: Tensor) -> Any:
    tensor = tensor.detach()
    return tensor.numpy() if tensor.device.type == "cpu" else OnDevice(tensor)
