"""The root of a power price of the logistic loss or the squared hinge on a GPU, by few kernels.

What `toprank.objective.device_root` does in torch's words, with the rows read where they lie. The
host waits for the device once; where it puts the series of the boxes of the logistic loss together,
because the scores lie far apart or CUDA cannot be compiled, three times.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.kernels_boxes import BoxKernels
from toprank.blocks.kernels_chain import BoxChain, Chain, SquareChain
from toprank.blocks.kernels_sides import INNER, OUTER, SideKernels
from toprank.blocks.kernels_squares import SquareKernels
from toprank.losses import Loss
from toprank.objective.power_root import Axis, is_square, powers_of_polynomials, series_of
from toprank.pair_sums.interpolated import DEGREE, WIDTH, Interactions, series_matrices

if TYPE_CHECKING:
    from typing import TypeAlias

    import torch
    from torch import Tensor

    #: The side of each row, the shares of inner and of outer rows, and the sign of the scores.
    Sides: TypeAlias = tuple[Tensor, Tensor, Tensor, int]

    #: The first box and the number of boxes, of two axes.
    Boxes: TypeAlias = tuple[float, ...]


#: Shares are counted in whole quanta of this; those of a class sum to one.
QUANTA = 2.0**60


@dataclass(frozen=True)
class Side:
    """The rows of one side, and the share of each of them."""

    rows: Tensor
    share: Tensor


class CompiledRoot(ABC):
    """F and its gradient in the scores of a GPU's rows.

    Parameters
    ----------
    inner, outer : Side
    n_rows : int
        Absent rows included.
    p : float
    sign : float
        -1 where the scores are turned round.
    loss : Loss
    """

    kernels: SideKernels
    _chain: Chain

    def __init__(self, inner: Side, outer: Side, n_rows: int, p: float, sign: float, loss: Loss):
        torch = importlib.import_module("torch")
        self.torch, self.device, self.p = torch, inner.rows.device, p
        side = torch.zeros(n_rows, dtype=torch.uint8, device=self.device)
        shares = []
        for which, own in ((INNER, inner), (OUTER, outer)):
            side.index_fill_(0, own.rows, which)  # and no number goes over for it
            if own.share.stride(0) == 0:  # all alike
                shares.append(own.share[:1].contiguous())
                continue
            shares.append(torch.zeros(n_rows, dtype=torch.float64, device=self.device))
            shares[-1][own.rows] = own.share
        self._power = self._bring(p)
        self._compile((side, shares[0], shares[1], int(sign)), inner.rows, loss)

    @abstractmethod
    def _compile(self, sides: Sides, inner: Tensor, loss: Loss) -> None:
        """Make the kernels of the loss; ``inner`` are the inner rows."""

    @staticmethod
    def of(loss: Loss) -> type[CompiledRoot]:
        """Return the class for a loss."""
        return SquaredRoot if is_square(loss) else BoxedRoot

    def _bring(self, *parts: object) -> Tensor:
        """Bring numbers to the device, one after the other."""
        numbers = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts])
        brought: Tensor = self.torch.from_numpy(numbers).to(self.device, non_blocking=True)
        return brought

    def ends(self, scores: Tensor) -> tuple[FloatArray, FloatArray]:
        """The lowest and highest score of inner and of outer rows, NaN where one of them is."""
        found = self.kernels.ends(scores).cpu().numpy()
        if found[4] < 0.0:
            found[:4] = np.nan
        return np.array([found[0], -found[1]]), np.array([found[2], -found[3]])

    @abstractmethod
    def value_grad(
        self, scores: Tensor, inner: FloatArray, outer: FloatArray
    ) -> tuple[float, Tensor]:
        """Return F and its gradient, from the ends of the scores of either side."""

    def at_once(self, scores: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return what `read` reads, and slopes, without waiting for the device; None if it cannot.

        Both are overwritten by the next call.
        """
        return None if self._chain.kernels is None else self._chain(scores)

    @staticmethod
    def read(facts: FloatArray) -> tuple[float, float] | None:
        """Return F and what all slopes lack as a factor.

        None where the scores were not for `at_once`: then they are for `value_grad`.
        """
        value, factor, sound = map(float, facts)
        return (value, factor) if sound and np.isfinite(value + factor) else None


class SquaredRoot(CompiledRoot):
    """The same for the squared hinge."""

    def _compile(self, sides: Sides, inner: Tensor, loss: Loss) -> None:
        ((knot, (*_, square)),) = loss.pieces
        given = self._bring(knot, square)
        self.kernels = SquareKernels(*sides, inner, given)
        rows, sign = _rows_of(sides, self.kernels), sides[-1]
        named = {"KNOT": float(knot).hex(), "SQUARE": float(square).hex()}
        named |= {"QUANTA": QUANTA.hex(), "SIGN": f"({sign}.0)"}
        self._chain = SquareChain(*rows, self.p, named, inner, self.kernels.below)

    def value_grad(
        self, scores: Tensor, inner: FloatArray, outer: FloatArray
    ) -> tuple[float, Tensor]:
        found, gradient = self.kernels.value_grad(scores, self._power)
        value, factor = self._root(*map(float, found[:2].cpu().numpy()))
        return value, gradient.mul_(factor)

    def _root(self, largest: float, total: float) -> tuple[float, float]:
        """F and F / total, from the sum of the powers of the heights relative to the largest."""
        if not largest > 0.0:
            return 0.0, 0.0
        value = largest * float(np.exp(np.log(total) / self.p))
        return value, value / total

    kernels: SquareKernels


class BoxedRoot(CompiledRoot):
    """The same for the logistic loss."""

    def _compile(self, sides: Sides, inner: Tensor, loss: Loss) -> None:
        self.kernels = BoxKernels(*sides, DEGREE)
        self._known: dict[Boxes, Interactions] = {}
        rows, sign = _rows_of(sides, self.kernels), sides[-1]
        named = {"BOX": WIDTH.hex(), "QUANTA": QUANTA.hex(), "SIGN": f"({sign}.0)"}
        self._chain = BoxChain(*rows, self.p, named, *near_tables(self.device))

    def _between(self, source: Axis, target: Axis) -> Interactions:
        """The interactions of two axes, those of the last evaluation where the boxes are the same.

        Near the minimum they are: scores hardly move. Of either direction one is kept.
        """
        boxes = tuple(number for axis in (source, target) for number in axis.boxes)
        found = self._known.get(boxes) or Interactions(source.numbers, target.numbers)
        if len(self._known) > 1 and boxes not in self._known:
            self._known.clear()
        self._known[boxes] = found
        return found

    def value_grad(
        self, scores: Tensor, inner: FloatArray, outer: FloatArray
    ) -> tuple[float, Tensor]:
        kernels, gradient = self.kernels, self.torch.empty_like(scores)
        source, target = Axis(inner, inner[0]), Axis(outer, inner[0])
        grid = self._bring(source.grid, QUANTA)
        _fill(source, kernels.inner_moments(scores, grid, len(source.table)).cpu().numpy())
        forward, moments = self._between(source, target), source.moments
        series = [series_of(forward, k, moments).T for k in (0, 1)]
        numbers = self._bring(target.grid, *series)
        kernels.raise_heights(scores, numbers, len(target.table), gradient)
        found = kernels.price(scores, self._power, grid)
        back, front = (Axis(-ends[::-1], -outer[1]) for ends in (outer, inner))
        grid = self._bring(back.grid, QUANTA)
        pulled = kernels.outer_moments(scores, grid, len(back.table), found[2:], gradient)
        summed = self.torch.cat([found, pulled.view(-1)]).cpu().numpy()
        (largest, total, per_height, _), quanta = map(float, summed[:4]), summed[4:]
        if not largest > 0.0:
            return 0.0, gradient.zero_()
        value = largest * float(np.exp(np.log(total) / self.p))
        _fill(back, per_height * quanta.reshape(DEGREE, -1))
        backward = self._between(back, front)
        numbers = self._bring(front.grid, value / total, series_of(backward, 1, back.moments).T)
        kernels.slopes(scores, numbers, len(front.table), gradient)
        return value, gradient

    kernels: BoxKernels


def _rows_of(sides: Sides, kernels: SideKernels) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
    """The sides of the rows, their shares, and room for what the outer rows are worth."""
    side, inner, outer, _ = sides
    return side, (inner, outer), kernels.heights


@cache
def near_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """What boxes near each other add to each other's series, and the powers in polynomials."""
    torch = importlib.import_module("torch")
    near = np.stack([series_matrices(k) for k in (0, 1)])
    found = (
        torch.from_numpy(np.array(part)).to(device) for part in (near, powers_of_polynomials())
    )
    return next(found), next(found)


def _fill(axis: Axis, quanta: FloatArray) -> None:
    """Put moments in quanta into the table of an axis."""
    axis.table[:] = quanta.T / QUANTA
