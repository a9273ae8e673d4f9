"""A power price of the logistic loss or the squared hinge on the rows of one device.

Scores and slopes stay where the rows lie (`toprank.objective.device_root`); value and gradient come
to the host. Hessians are estimated from some rows by bins of their scores
(`toprank.objective.binned_curvature`), whose sums of X are products of matrices on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign, to_array
from toprank.blocks.source import Block
from toprank.blocks.tensors import OnDevice, unwrap
from toprank.objective.binned_curvature import BinnedRows
from toprank.objective.data import LabelledData
from toprank.objective.device_root import DeviceRoot
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem
from toprank.objective.risk import Task

if TYPE_CHECKING:
    from torch import Tensor

#: Rows of each class that a Hessian is estimated from, at the least.
_ROWS = 10_000
_ROWS_PER_FEATURE = 300
#: Rows whose sums over bins are taken at once.
_AT_ONCE = 1 << 13


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
        self.design: DeviceDesign = opened.design  # type: ignore[assignment]
        self.task, self.prices_positives = task, prices_positives
        self.positive: Tensor = unwrap(opened.positive)
        self.weight: Tensor | None = unwrap(opened.weight)
        self.root = DeviceRoot(self.positive, self.weight, task.p, task.loss, prices_positives)
        self._scored: tuple[bytes, Tensor | None] = b"", None

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray] | None:
        """Return F and its gradient in the coefficients."""
        scores = self.design.scores(coef).tensor
        self._scored = coef.tobytes(), scores[self._drawn]
        found = self.root.value_grad(scores)
        if found is None:
            return None
        return found[0], self.design.adjoint(OnDevice(found[1]))

    @cached_property
    def _drawn(self) -> Tensor:
        """Evenly spaced rows of each class that are present, in order."""
        most = max(_ROWS, _ROWS_PER_FEATURE * self.design.n_features)
        sides = (self.root.inner, self.root.outer)
        drawn = [side[:: -(-len(side) // most)] for side in sides]
        rows: Tensor = self.design.torch.cat(drawn).sort().values
        return rows

    @cached_property
    def _drawn_rows(self) -> tuple[Tensor, NDArray[np.bool_], FloatArray]:
        """Those rows in single precision, which of them are inner ones, and their shares."""
        rows, design = self._drawn, self.design
        x = design.dense_rows(rows, design.torch.float32)
        if design.centre is not None:
            x -= design.centre
        inner = to_array(self.positive[rows]) != self.prices_positives
        share = np.ones(len(rows)) if self.weight is None else to_array(self.weight[rows])
        for side in (inner, ~inner):
            share[side] /= np.sum(share[side])
        return x, inner, share

    def hessian(self, coef: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian from rows drawn."""
        known, drawn = self._scored
        if known != coef.tobytes() or drawn is None:
            drawn = self.design.scores(coef).tensor[self._drawn]
        scores = to_array(drawn)
        x, inner, share = self._drawn_rows
        binned = BinnedRows.of(
            self.root.sign * scores, inner, share, self.task.loss, float(self.task.p)
        )
        n_bins = len(binned.pairs.per_share)
        torch, vectors = self.design.torch, (binned.bin, binned.share, binned.weight)
        parts = [torch.from_numpy(np.ascontiguousarray(part)).to(x.device) for part in vectors]
        sums = torch.zeros((n_bins, x.shape[1]), dtype=torch.float64, device=x.device)
        moments = torch.zeros((x.shape[1],) * 2, dtype=torch.float64, device=x.device)
        for some, bins, shares, weight in zip(
            *(part.split(_AT_ONCE) for part in (x, *parts)), strict=True
        ):
            onto = torch.zeros((n_bins, len(some)), dtype=torch.float64, device=x.device)
            onto.scatter_(0, bins[None, :], shares[None, :])
            sums += onto @ some.double()
            scaled = some * weight.float().sqrt()[:, None]
            moments += (scaled.T @ scaled).double()
        return binned.pairs.hessian(to_array(sums), to_array(moments))


@dataclass(frozen=True)
class AtRoot:
    """What `RootRows` answer at some coefficients: "value_grad" or "hessian"."""

    view: View
    problem: DeviceRootProblem
    what: str

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
