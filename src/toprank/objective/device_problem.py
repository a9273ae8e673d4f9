"""A power price of the logistic loss or the squared hinge on the rows of one device.

Scores and slopes stay where the rows lie (`toprank.objective.device_root`); value and gradient come
to the host. Hessians are estimated from some rows by bins of their scores
(`toprank.objective.binned_curvature`), whose sums of X are products of matrices on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign, to_array
from toprank.blocks.source import Block
from toprank.blocks.tensors import OnDevice, unwrap
from toprank.objective.binned_curvature import SPREADS, BinPairs
from toprank.objective.data import LabelledData
from toprank.objective.device_root import DeviceRoot
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem, TwoClassProblem
from toprank.objective.risk import Task

if TYPE_CHECKING:
    from torch import Tensor

#: Rows of each class that a Hessian is estimated from, at the least, and how many more where they
#: have so few entries.
_ROWS = 10_000
_ROWS_PER_FEATURE = 300
_MORE_PER_FEATURE = 1200
_ENTRIES = 1 << 24
#: Bins of each class: the host sums over all pairs of them, which is what takes the time.
_BINS = 128
#: Rows whose sums over bins are taken at once.
_AT_ONCE = 1 << 15


class RootRows:
    """The rows of a block as an objective of their scores sees them, looked at once.

    Parameters
    ----------
    opened : OpenBlock
        Rows of a device.
    task : Task
    prices_positives : bool
        Whether the positives are the outer rows.
    """

    def __init__(self, opened: OpenBlock, task: Task, prices_positives: bool):
        self.opened = opened
        self.design: DeviceDesign = opened.design  # type: ignore[assignment]
        self.task, self.prices_positives = task, prices_positives
        self.positive: Tensor = unwrap(opened.positive)
        self.weight: Tensor | None = unwrap(opened.weight)
        self.root = DeviceRoot(self.positive, self.weight, task.p, task.loss, prices_positives)

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray] | None:
        """Return F and its gradient in the coefficients."""
        found = self.root.value_grad(self.opened.kept_scores(coef).tensor)
        if found is None:
            return None
        return found[0], self.design.adjoint(OnDevice(found[1]))

    @cached_property
    def _drawn(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Evenly spaced rows of each class that are present, in order.

        Their numbers and entries in single precision, which are inner rows, and their shares.
        """
        design, torch = self.design, self.design.torch
        d = design.n_features
        most = max(_ROWS, _ROWS_PER_FEATURE * d, min(_MORE_PER_FEATURE * d, _ENTRIES // d))
        sides = (self.root.inner, self.root.outer)
        rows = torch.cat([side[:: -(-len(side) // most)] for side in sides]).sort().values
        x = design.dense_rows(rows, torch.float32)
        if design.centre is not None:
            x -= design.centre
        inner = self.positive[rows] != self.prices_positives
        share = x.new_ones(len(rows)).double() if self.weight is None else self.weight[rows]
        masses = [torch.where(side, share, 0.0).sum() for side in (inner, ~inner)]
        return rows, x, inner, share / torch.where(inner, *masses)

    def hessian(self, coef: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian from rows drawn, in bins of their scores."""
        rows, x, inner, share = self._drawn
        torch, scores = self.design.torch, self.root.sign * self.opened.scores(coef).tensor[rows]
        place = _places(scores) + torch.where(inner, 0, _BINS)
        sums = x.new_zeros((2 * _BINS, x.shape[1] + 2), dtype=torch.float64)
        for some, score, bins, part in _together(x, scores, place, share):
            onto = part.new_zeros((len(sums), len(some)))
            onto.scatter_(0, bins[None, :], part[None, :])
            own = some.double()
            sums += onto @ torch.cat([own, torch.ones_like(score[:, None]), score[:, None]], 1)
        summed = to_array(sums)
        mass, held = summed[:, -2], summed[:, -2] > 0
        middle = summed[held, -1] / mass[held]
        split = int(np.count_nonzero(held[:_BINS]))
        own_masses = mass[held][:split], mass[held][split:]
        loss, p = self.task.loss, float(self.task.p)
        pairs = BinPairs.of(middle[:split], middle[split:], *own_masses, loss, p)
        per_share = np.zeros(len(held))
        per_share[held] = pairs.per_share
        weight = (share * self.design.small(per_share)[place]).float()
        moments = x.new_zeros((x.shape[1],) * 2, dtype=torch.float64)
        for some, part in _together(x, weight):
            scaled = some * part.sqrt()[:, None]
            moments += (scaled.T @ scaled).double()
        return pairs.hessian(summed[held, :-2], to_array(moments))


def _together(*vectors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Some of the rows at a time."""
    return zip(*(vector.split(_AT_ONCE) for vector in vectors), strict=True)


def _places(scores: Tensor) -> Tensor:
    """The bin of each score, as in `toprank.objective.binned_curvature`."""
    middle, spread = scores.median(), scores.std(correction=0)
    low = scores.min().maximum(middle - SPREADS * spread)
    high = scores.max().minimum(middle + SPREADS * spread)
    width = ((high - low) / _BINS).clamp(min=np.finfo(float).tiny)
    places: Tensor = ((scores - low) / width).clamp(0.0, _BINS - 1.0).long()
    return places


@dataclass(frozen=True)
class AtRoot:
    """What `RootRows` answer at some coefficients: "value_grad" or "hessian"."""

    view: View
    problem: DeviceRootProblem
    what: str

    @property
    def shows_bad(self) -> bool:
        """Whether scores and gradient are finite only if every entry is."""
        return self.what == "value_grad"

    def is_finite(self, found: tuple[float, FloatArray] | None) -> bool:
        """Whether no entry that was read is infinite or NaN."""
        return found is not None and bool(np.all(np.isfinite(found[1])))

    def local(self, block: Block, coef: FloatArray) -> object:
        return getattr(self.problem.rows(open_block(block, self.view)), self.what)(coef)

    def merge(self, left: object, right: object) -> object:
        raise TypeError("the rows of several blocks have no scores in common")


class DeviceRootProblem(ScoredProblem):
    """The root of a power price at one end of the list, for the rows of one device."""

    newton_up_to = 500
    scale = 1.0

    @staticmethod
    def suits(data: LabelledData, task: Task) -> bool:
        """Whether the rows lie on one device, and its sums know the task."""
        return (
            data.source.on_device
            and len(data.starts) == 1
            and task.end != "both"
            and PowerRoot.suits(task.price, task.loss)
        )

    def with_task(self, task: Task) -> ScoredProblem:
        suits = self.suits(self.data, task)
        return (DeviceRootProblem if suits else ScoredProblem)(self.data, task)

    def rows(self, opened: OpenBlock) -> RootRows:
        """The rows of the device, looked at once."""
        if self._rows is None:
            prices_positives = (self.task.end == "top") == (self.task.price.outer == "winners")
            self._rows = RootRows(opened, self.task, prices_positives)
        return self._rows

    _rows: RootRows | None = None

    def coarse(self) -> TwoClassProblem | None:
        # an evaluation takes the host as long for a few rows as for a million
        coarse: TwoClassProblem | None = self._coarse
        return None if self.data.is_sample else coarse

    @property
    def has_sample(self) -> bool:
        """Estimates come from rows drawn, whether there is a coarse problem or not."""
        return True

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        found = self._last.at(coef, 1, lambda: self._ask("value_grad", coef))
        if found is None:  # scores so far apart are summed on the host
            return super().value_grad(coef)
        value, grad = found
        return self.add_penalty(value, grad, coef)

    def value(self, coef: FloatArray) -> float:
        return self.value_grad(coef)[0]

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        if exact:
            return super().hessian(coef)
        hessian: FloatArray = self._ask("hessian", coef)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _ask(self, what: str, coef: FloatArray) -> Any:
        return self.data.run(AtRoot(self.data.view, self, what), coef)
