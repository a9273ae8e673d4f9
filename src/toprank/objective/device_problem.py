"""A power price of the logistic loss or the squared hinge on the rows of one device.

Scores and slopes stay where the rows lie (`toprank.objective.device_root`); value and gradient come
to the host. Hessians are estimated from some rows by bins of their scores
(`toprank.objective.binned_curvature`), whose sums of X are products of matrices on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign, to_array
from toprank.blocks.kernels_chosen import draw_by_size
from toprank.blocks.kernels_moments import GOLDEN
from toprank.blocks.source import Block
from toprank.blocks.tensors import OnDevice, unwrap
from toprank.objective.binned_curvature import BinPairs
from toprank.objective.data import LabelledData
from toprank.objective.device_bins import (
    BINS_OF_A_CLASS,
    BinSums,
    CompiledSums,
    TorchSums,
    bin_of_scores,
)
from toprank.objective.device_root import DeviceRoot
from toprank.objective.labelled import OpenBlock, View, open_block
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem, TwoClassProblem
from toprank.objective.risk import Task

if TYPE_CHECKING:
    from torch import Tensor

#: Rows of each class that a Hessian is estimated from, at the least, and how many more where they
#: have so few entries: by torch, by compiled kernels, and by those in a sample of the rows.
_ROWS = 10_000
_ROWS_PER_FEATURE = 300
_MORE_PER_FEATURE = {"torch": 1200, "compiled": 1 << 14, "sample": 1 << 11}
_ENTRIES = {"torch": 1 << 24, "compiled": 1 << 27, "sample": 1 << 24}
#: Outer rows are drawn by their slopes where there are so many times as many; then one inner row
#: serves where so many did, and this share of the outer ones is drawn whatever their slopes.
_DRAWN_FROM = 2
_FEWER_INNER = 8
_EVENLY = 0.1
#: Room for rows that are drawn: relative to how many there should be, and some beside that.
_ROOM, _SPARE = 1.02, 1000
#: Features up to which a Hessian is asked for.
_NEWTON_UP_TO = 500


class RootRows:
    """The rows of a block as an objective of their scores sees them, looked at once.

    Parameters
    ----------
    opened : OpenBlock
        Rows of a device.
    task : Task
    prices_positives : bool
        Whether the positives are the outer rows.
    is_sample : bool
        Whether the rows stand for others: then fewer of them tell a Hessian.
    counts : two ints, optional
        The numbers of negatives and of positives, where those of a class weigh alike.
    """

    def __init__(
        self,
        opened: OpenBlock,
        task: Task,
        prices_positives: bool,
        is_sample: bool = False,
        counts: tuple[int, int] | None = None,
    ):
        self.opened = opened
        self.is_sample = is_sample
        self.design: DeviceDesign = opened.design  # type: ignore[assignment]
        self.task, self.prices_positives = task, prices_positives
        self.positive: Tensor = unwrap(opened.positive)
        self.weight: Tensor | None = unwrap(opened.weight) if counts is None else None
        given = self.positive, self.weight, task.p, task.loss, prices_positives, counts
        self.root = DeviceRoot(*given)

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray] | None:
        """Return F and its gradient in the coefficients."""
        scores = self.opened.kept_scores(coef).tensor
        at_once = self._at_once(coef, scores)
        if at_once is not None:
            return at_once
        self._slopes = None
        found = self.root.value_grad(scores)
        if found is None:
            return None
        return found[0], self.design.adjoint(OnDevice(found[1]))

    #: Where the last evaluation was, and its slopes up to a factor.
    _slopes: tuple[bytes, Tensor] | None = None
    #: Where a Hessian was begun before it was asked for, and its sums; without sums once one was.
    _begun: tuple[bytes, BinSums | None] | None = None

    def _at_once(self, coef: FloatArray, scores: Tensor) -> tuple[float, FloatArray] | None:
        """Value and gradient, waiting for the device once; None where that cannot be."""
        root = self.root.compiled
        begun = root.at_once(scores) if root and self.design.kernel == "triton" else None
        if root is None or begun is None:
            return None
        facts, slopes = begun
        self._slopes = coef.tobytes(), slopes
        found = self.design.torch.cat([facts, self.design.weigh(slopes)])
        if self._begun is None and self._compiled and len(coef) <= _NEWTON_UP_TO:
            # a solver asks for this Hessian next: the host starts on it while the device is at work
            self._begin(coef)
        both = to_array(found)
        read = root.read(both[: len(facts)])
        if read is None:
            self._begun = None
            return None
        return read[0], read[1] * both[len(facts) :]

    @property
    def _compiled(self) -> bool:
        """Whether compiled kernels sum the rows; entries of eight bytes may need all of them."""
        return self.design.kernel == "triton" and self.design.X.element_size() <= 4

    @property
    def _most_drawn(self) -> int:
        """Rows of each class that a Hessian is estimated from."""
        by = ("sample" if self.is_sample else "compiled") if self._compiled else "torch"
        d = self.design.n_features
        more = min(_MORE_PER_FEATURE[by] * d, _ENTRIES[by] // d)
        return max(_ROWS, _ROWS_PER_FEATURE * d, more)

    @cached_property
    def _drawn(self) -> _Drawn:
        """Evenly spaced rows of each class that are present."""
        inner, outer = (
            _spaced(side, self._most_drawn) for side in (self.root.inner, self.root.outer)
        )
        return self._with_shares(inner, outer, self._weights(outer))

    def _drawn_at(self, coef: FloatArray) -> _Drawn:
        """The same at some coefficients: outer rows by their slopes, where they are many.

        Most of the Hessian is theirs, and most of them have little part in it.
        """
        most, n = self._most_drawn, len(self.root.outer)
        at, slopes = self._slopes or (b"", None)
        few = self.is_sample or not self._compiled or n <= _DRAWN_FROM * most
        if few or slopes is None or at != coef.tobytes():
            return self._drawn
        inner = _spaced(self.root.inner, max(_ROWS, most // _FEWER_INNER))
        most = 2 * most - len(inner)  # as many in all
        about = self.design.small(np.array([(1.0 - _EVENLY) * most, _EVENLY * most / n, GOLDEN]))
        room = int(_ROOM * most) + _SPARE
        # rows that are not overwritten count nothing, and have scores as any others
        outer = self.root.outer[:: max(1, n // room)][:room].clone()
        given = slopes, self.positive, self.prices_positives, self.weight, about
        counts = draw_by_size(*given, outer)
        return self._drawn if counts is None else self._with_shares(inner, outer, counts.double())

    def _weights(self, rows: Tensor) -> Tensor:
        if self.weight is not None:
            return self.weight[rows]
        torch = self.design.torch
        ones: Tensor = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
        return ones

    def _with_shares(self, inner: Tensor, outer: Tensor, counts: Tensor) -> _Drawn:
        """Inner and outer rows, which count so much, and the share of each in its class."""
        shares = [part / part.sum() for part in (self._weights(inner), counts)]
        cat = self.design.torch.cat
        return _Drawn(cat([inner, outer]), len(inner), cat(shares))

    def _begin(self, coef: FloatArray) -> BinSums:
        """Start on the Hessian from rows drawn, in bins of their scores."""
        drawn = self._drawn_at(coef)
        scores = self.root.sign * self.opened.scores(coef).tensor[drawn.rows]
        place = bin_of_scores(scores)
        place[drawn.n_inner :] += BINS_OF_A_CLASS
        known = place, scores, drawn.share
        sums: BinSums
        if self._compiled:
            sums = CompiledSums(self.design, drawn.rows, *known)
        else:
            sums = TorchSums(self.design, self._entries, *known)
        self._begun = coef.tobytes(), sums
        return sums

    def hessian(self, coef: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian from rows drawn, in bins of their scores."""
        at, begun = self._begun or (b"", None)
        sums = begun if begun is not None and at == coef.tobytes() else self._begin(coef)
        self._begun = b"", None  # none is begun ahead any more
        summed = to_array(sums.summed)
        mass, held = summed[:, -2], summed[:, -2] > 0
        middle = summed[held, -1] / mass[held]
        split = int(np.count_nonzero(held[:BINS_OF_A_CLASS]))
        own_masses = mass[held][:split], mass[held][split:]
        loss, p = self.task.loss, float(self.task.p)
        pairs = BinPairs.of(middle[:split], middle[split:], *own_masses, loss, p)
        per_share = np.zeros(len(held))
        per_share[held] = pairs.per_share
        about, moments = sums.moments(per_share, summed)
        # the device is at the moments meanwhile
        beside = pairs.beside_moments(summed[held, :-2] - mass[held, None] * about)
        return to_array(moments) + beside

    @cached_property
    def _entries(self) -> Tensor:
        """The entries of the rows drawn, in single precision."""
        design, torch = self.design, self.design.torch
        x = design.dense_rows(self._drawn.rows, torch.float32)
        if design.centre is not None:
            x -= design.centre
        return x


@dataclass(frozen=True)
class _Drawn:
    """Rows drawn, the inner ones first, and the share of each in its class."""

    rows: Tensor
    n_inner: int
    share: Tensor


def _spaced(rows: Tensor, most: int) -> Tensor:
    """Evenly spaced ones of some rows, so many at the most."""
    return rows[:: -(-len(rows) // most)]


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

    newton_up_to = _NEWTON_UP_TO
    scale = 1.0
    #: All pairs lie where the loss bends most, or near it, as long as no score differs from others.
    flattens = True

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
            data = self.data
            counts = data.thinning.members if data.alike else None
            self._rows = RootRows(opened, self.task, prices_positives, data.is_sample, counts)
        return self._rows

    _rows: RootRows | None = None

    def coarse(self) -> TwoClassProblem | None:
        # an evaluation takes the host as long for a few rows as for a million
        if self.data.is_sample:
            return None
        coarse: TwoClassProblem | None = self._coarse
        return coarse

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
