"""The root of a power price of the logistic loss or the squared hinge, where the rows lie.

`toprank.objective.power_root` on a device: scores, heights and slopes are float64 vectors there, in
torch's words. The logistic loss is summed over boxes, whose moments and series, a few thousand
numbers, are put together on the host. Weights are added to the moments in whole quanta, so that
no order of adding up can change a bit. The squared hinge is summed by running sums along the
sorted scores, in a fixed order too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np

from toprank._extras import has_triton
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.kernels_chosen import spaced_rows
from toprank.losses import Loss
from toprank.objective.device_compiled import QUANTA, CompiledRoot, Side
from toprank.objective.power_root import MOST_BOXES, Axis, is_square, series_of
from toprank.pair_sums.interpolated import DEGREE, REACH, WIDTH, Interactions

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers that are added up one after the other in a running sum.
_RUN = 1024
#: Scores further apart have squares that may be no numbers.
_SQUARED = 1e150


class DeviceRoot:
    """F and its gradient for labelled rows of a device.

    Parameters
    ----------
    positive : bool tensor of shape (n,)
    weight : float64 tensor of shape (n,) or None
    p : float
        The power of the price, which is in the form of a root.
    loss : Loss
        One that `toprank.objective.power_root.PowerRoot` suits.
    prices_positives : bool
        Whether the positives are the outer rows.
    counts : two ints, optional
        The numbers of negatives and of positives, where they are known and none is absent.

    Examples
    --------
    >>> import torch
    >>> from toprank.losses import get_loss
    >>> from toprank.objective.device_root import DeviceRoot
    >>> positive = torch.tensor([True, False, False])
    >>> root = DeviceRoot(positive, None, 1.0, get_loss("squared_hinge"), False)
    >>> value, gradient = root.value_grad(torch.zeros(3, dtype=torch.float64))
    >>> value, gradient.tolist()
    (1.0, [-2.0, 1.0, 1.0])
    """

    def __init__(
        self,
        positive: Tensor,
        weight: Tensor | None,
        p: float,
        loss: Loss,
        prices_positives: bool,
        counts: tuple[int, int] | None = None,
    ):
        self.torch = importlib.import_module("torch")
        self.p, self.loss, self.n_rows = p, loss, len(positive)
        self.sign = -1.0 if prices_positives else 1.0
        sides = _rows_of_classes(positive, weight, counts)
        self.inner, self.outer = sides if prices_positives else sides[::-1]
        self.inner_share, self.outer_share = (
            self._shares(weight, side) for side in (self.inner, self.outer)
        )

    def _shares(self, weight: Tensor | None, side: Tensor) -> Tensor:
        """The weights of a class, which sum to one."""
        if weight is None:
            one = self.torch.ones(1, dtype=self.torch.float64, device=side.device)
            even: Tensor = (one / len(side)).expand(len(side))
            return even
        own = weight[side] / weight[side].max()  # no such total overflows
        return own / own.sum()

    @cached_property
    def compiled(self) -> CompiledRoot | None:
        """The same by compiled kernels, on a GPU that has them."""
        if not (self.inner.is_cuda and has_triton()):
            return None
        inner, outer = Side(self.inner, self.inner_share), Side(self.outer, self.outer_share)
        kind = CompiledRoot.of(self.loss)
        return kind(inner, outer, self.n_rows, self.p, self.sign, self.loss)

    def _sums_over(self, inner: FloatArray, outer: FloatArray) -> bool:
        """Whether scores between these ends are summed here."""
        if not np.all(np.isfinite([inner, outer])):
            return False
        apart = max(inner[1], outer[1]) - min(inner[0], outer[0])
        if is_square(self.loss):
            return bool(apart < _SQUARED)
        far = inner[0] - outer[0] > REACH  # some see e^-r alone, however small
        return not (far or apart > MOST_BOXES * WIDTH)

    def value_grad(self, scores: Tensor) -> tuple[float, Tensor] | None:
        """Return F and its gradient in the scores; None where they lie too far apart for it."""
        compiled = self.compiled
        if compiled is not None:
            begun = compiled.at_once(scores)
            read = None if begun is None else compiled.read(begun[0].cpu().numpy())
            if begun is not None and read is not None:
                return read[0], read[1] * begun[1]
            ends = compiled.ends(scores)
            return compiled.value_grad(scores, *ends) if self._sums_over(*ends) else None
        a, b = self.sign * scores[self.inner], self.sign * scores[self.outer]
        found = self.torch.stack([*a.aminmax(), *b.aminmax()]).cpu().numpy()
        inner, outer = found[:2], found[2:]
        if not self._sums_over(inner, outer):
            return None
        made: _Squares | _Boxed
        made = _Squares(self, a, b) if is_square(self.loss) else _Boxed(self, a, b, inner, outer)
        gradient = self.torch.zeros_like(scores)
        largest = float(made.heights.max())
        if largest <= 0.0:
            return 0.0, gradient
        power = (made.heights / largest) ** self.p * self.outer_share
        total = float(power.sum())
        value = largest * float(np.exp(np.log(total) / self.p))
        per_height = self.torch.where(made.heights > 0.0, power / made.heights, 0.0)
        per_height *= value / total
        gradient[self.outer] = -self.sign * per_height * made.tilts()
        gradient[self.inner] = self.sign * self.inner_share * made.pulls(per_height)
        return value, gradient


def _rows_of_classes(
    positive: Tensor, weight: Tensor | None, counts: tuple[int, int] | None
) -> tuple[Tensor, Tensor]:
    """The negatives and the positives that are present."""
    if counts is not None and positive.is_cuda:  # then the host need not wait
        rows = spaced_rows(positive, (1, 1), (0, 0), counts)
        if rows is not None:
            return rows[: counts[0]], rows[counts[0] :]
    members = [~positive, positive]
    if weight is not None:
        members = [member & (weight > 0) for member in members]
    of_neg, of_pos = (member.nonzero()[:, 0] for member in members)
    return of_neg, of_pos


class _Boxed:
    """Sums of the logistic loss over boxes; see `toprank.pair_sums.interpolated`."""

    def __init__(
        self, root: DeviceRoot, a: Tensor, b: Tensor, inner: FloatArray, outer: FloatArray
    ):
        self.a, self.b = a, b
        self.ends = inner, outer
        source, target = Axis(inner, inner[0]), Axis(outer, inner[0])
        source.table[:] = _Places(a, source).moments(root.inner_share)
        self._moments = source.moments
        self._forward = Interactions(source.numbers, target.numbers)
        self._target = _Places(b, target)
        heights = self._target.evaluate(series_of(self._forward, 0, self._moments))
        # cancellation in signed node sums can leave a zero height at -1e-17
        self.heights = heights.clamp_(min=0.0)

    def tilts(self) -> Tensor:
        """dS/dr of every outer row."""
        return self._target.evaluate(series_of(self._forward, 1, self._moments))

    def pulls(self, per_height: Tensor) -> Tensor:
        """Sum over the outer rows of dF/dS l'(r), for every inner row."""
        inner, outer = self.ends
        source, target = (Axis(-ends[::-1], -outer[1]) for ends in (outer, inner))
        total = per_height.sum()
        shares = per_height / total.clamp(min=np.finfo(float).tiny)
        source.table[:] = float(total) * _Places(-self.b, source).moments(shares)
        backward = Interactions(source.numbers, target.numbers)
        return _Places(-self.a, target).evaluate(series_of(backward, 1, source.moments))


class _Places:
    """Points of an axis of boxes."""

    def __init__(self, points: Tensor, axis: Axis):
        self.torch = importlib.import_module("torch")
        self.points = points.contiguous()
        self.count = len(axis.table)
        self.grid = axis.grid

    @cached_property
    def _located(self) -> tuple[Tensor, Tensor]:
        """Which box, and where in it on [-1, 1]."""
        origin, width, first = self.grid
        place = (self.points - origin) / width
        box = place.floor()
        return (box - first).long(), (place - box).mul_(2.0).sub_(1.0)

    def evaluate(self, series: FloatArray) -> Tensor:
        """Return the polynomials of the boxes, one line of ``series`` each, at the points."""
        lines = self.torch.from_numpy(np.ascontiguousarray(series.T)).to(self.points.device)
        box, x = self._located
        total: Tensor = lines[-1][box]
        for line in lines[:-1].flip(0):
            total = self.torch.addcmul(line[box], total, x)
        return total

    def moments(self, share: Tensor) -> FloatArray:
        """Return the sums of share x^m over each box, one line per box."""
        summed = self._spread(share).double().cpu().numpy()
        found: FloatArray = summed.T / QUANTA
        return found

    def _spread(self, share: Tensor) -> Tensor:
        (box, x), quanta = self._located, share * QUANTA
        table: Tensor = self.torch.zeros(
            (DEGREE, self.count), dtype=self.torch.int64, device=x.device
        )
        for line in table:
            line.index_add_(0, box, quanta.round().long())
            quanta = quanta * x
        return table


class _Squares:
    """Sums of c (knot - r)_+^2, from running sums along the scores in order."""

    def __init__(self, root: DeviceRoot, a: Tensor, b: Tensor):
        torch = root.torch
        ((self.knot, (*_, self.square)),) = root.loss.pieces
        middle = a.mean()  # places about it lose the fewest digits
        self.a, self.b = a - middle, b - middle
        by_place, order = torch.sort(self.a, stable=True)
        threshold = self.b + self.knot
        below = torch.searchsorted(by_place, threshold)
        share = root.inner_share[order]
        terms = torch.stack([share, share * by_place, share * by_place**2])
        zero, one, two = running_sums(terms)[:, below]
        self.heights = self.square * (two - threshold * (2.0 * one - threshold * zero))
        self.heights.clamp_(min=0.0)
        self._tilts: Tensor = -2.0 * self.square * (threshold * zero - one)

    def tilts(self) -> Tensor:
        """dS/dr of every outer row."""
        return self._tilts

    def pulls(self, per_height: Tensor) -> Tensor:
        """Sum over the outer rows of dF/dS l'(r), for every inner row."""
        torch = importlib.import_module("torch")
        falling, order = torch.sort(self.b, descending=True, stable=True)
        above = torch.searchsorted(-falling, self.knot - self.a)
        held = per_height[order]
        zero, one = running_sums(torch.stack([held, held * falling]))[:, above]
        found: Tensor = -2.0 * self.square * ((self.knot - self.a) * zero + one)
        return found


def running_sums(lines: Tensor) -> Tensor:
    """Return 0, v_1, v_1 + v_2, ... of each line, in an order that depends on the length alone.

    Examples
    --------
    >>> import torch
    >>> from toprank.objective.device_root import running_sums
    >>> running_sums(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[0.0, 1.0, 3.0, 6.0]]
    """
    torch = importlib.import_module("torch")
    count, n = lines.shape
    runs = -(-n // _RUN)
    padded = torch.zeros((count, max(1, runs) * _RUN), dtype=lines.dtype, device=lines.device)
    padded[:, :n] = lines
    within = padded.view(count, -1, _RUN).cumsum(2)
    if runs > 1:
        within += running_sums(within[:, :, -1])[:, :-1, None]
    found: Tensor = torch.cat([padded.new_zeros((count, 1)), within.view(count, -1)[:, :n]], 1)
    return found
