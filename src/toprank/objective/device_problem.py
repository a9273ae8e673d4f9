"""A power price of the logistic loss or the squared hinge on the rows of one device.

Scores and slopes stay where the rows lie (`toprank.objective.device_root`); value and gradient come
to the host. Hessians are estimated from some rows by bins of their scores
(`toprank.objective.binned_curvature`), whose sums of X are products of matrices on the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign, to_array
from toprank.blocks.kernels_moments import (
    GOLDEN,
    draw_by_size,
    drawn_moments,
    sums_in_bins,
)
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
#: Bins of each class: the host sums over all pairs of them, which is what takes the time.
_BINS = 128
#: Rows whose sums over bins are taken at once by torch.
_AT_ONCE = 1 << 15
_TINY = float(np.finfo(float).tiny)
#: Scores that tell their spread.
_SPREAD_SCORES = 1 << 16


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
    """

    def __init__(
        self, opened: OpenBlock, task: Task, prices_positives: bool, is_sample: bool = False
    ):
        self.opened = opened
        self.is_sample = is_sample
        self.design: DeviceDesign = opened.design  # type: ignore[assignment]
        self.task, self.prices_positives = task, prices_positives
        self.positive: Tensor = unwrap(opened.positive)
        self.weight: Tensor | None = unwrap(opened.weight)
        self.root = DeviceRoot(self.positive, self.weight, task.p, task.loss, prices_positives)

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray] | None:
        """Return F and its gradient in the coefficients."""
        scores, self._slopes = self.opened.kept_scores(coef).tensor, None
        at_once = self._at_once(scores)
        if at_once is not None:
            value, grad, slopes = at_once
            self._slopes = coef.tobytes(), slopes
            return value, grad
        found = self.root.value_grad(scores)
        if found is None:
            return None
        return found[0], self.design.adjoint(OnDevice(found[1]))

    #: Where the last evaluation was, and its slopes up to a factor.
    _slopes: tuple[bytes, Tensor] | None = None

    def _at_once(self, scores: Tensor) -> tuple[float, FloatArray, Tensor] | None:
        """Value, gradient and slopes, waiting for the device once; None where that cannot be."""
        root = self.root.compiled
        begun = root.at_once(scores) if root and self.design.kernel == "triton" else None
        if root is None or begun is None:
            return None
        facts, slopes = begun
        both = to_array(self.design.torch.cat([facts, self.design.weigh(slopes)]))
        read = root.read(both[: len(facts)])
        return None if read is None else (read[0], read[1] * both[len(facts) :], slopes)

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
    def _drawn(self) -> tuple[Tensor, Tensor, Tensor]:
        """Evenly spaced rows of each class that are present, which are inner, and their shares."""
        torch, most = self.design.torch, self._most_drawn
        rows = torch.cat([_spaced(side, most) for side in (self.root.inner, self.root.outer)])
        one = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
        return self._with_shares(rows, one if self.weight is None else self.weight[rows])

    def _drawn_at(self, coef: FloatArray) -> tuple[Tensor, Tensor, Tensor]:
        """The same at some coefficients: outer rows by their slopes, where they are many.

        Most of the Hessian is theirs, and most of them have little part in it.
        """
        torch, most, n = self.design.torch, self._most_drawn, len(self.root.outer)
        at, slopes = self._slopes or (b"", None)
        few = self.is_sample or not self._compiled or n <= _DRAWN_FROM * most
        if few or slopes is None or at != coef.tobytes():
            return self._drawn
        inner = _spaced(self.root.inner, max(_ROWS, most // _FEWER_INNER))
        most = 2 * most - len(inner)  # as many in all
        about = self.design.small(np.array([(1.0 - _EVENLY) * most, _EVENLY * most / n, GOLDEN]))
        outer, count = draw_by_size(
            slopes, self.positive, self.prices_positives, self.weight, about
        )
        alike = count.new_ones(len(inner)) if self.weight is None else self.weight[inner]
        counts = torch.cat([alike.double(), count.double()])
        return self._with_shares(torch.cat([inner, outer]), counts)

    def _with_shares(self, rows: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, which of them are inner, and the shares of each in its class."""
        torch, inner = self.design.torch, self.positive[rows] != self.prices_positives
        masses = [torch.where(side, counts, 0.0).sum() for side in (inner, ~inner)]
        return rows, inner, counts / torch.where(inner, *masses)

    def hessian(self, coef: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian from rows drawn, in bins of their scores."""
        rows, inner, share = self._drawn_at(coef)
        torch, scores = self.design.torch, self.root.sign * self.opened.scores(coef).tensor[rows]
        place = _places(scores) + torch.where(inner, 0, _BINS)
        sums: _BinSums
        if self._compiled:
            sums = _CompiledSums(self.design, rows, place, scores, share)
        else:
            sums = _TorchSums(self.design, self._entries, place, scores, share)
        summed = to_array(sums.over_bins())
        mass, held = summed[:, -2], summed[:, -2] > 0
        middle = summed[held, -1] / mass[held]
        split = int(np.count_nonzero(held[:_BINS]))
        own_masses = mass[held][:split], mass[held][split:]
        loss, p = self.task.loss, float(self.task.p)
        pairs = BinPairs.of(middle[:split], middle[split:], *own_masses, loss, p)
        per_share = np.zeros(len(held))
        per_share[held] = pairs.per_share
        about, moments = sums.moments(per_share, summed)
        return pairs.hessian(summed[held, :-2] - mass[held, None] * about, to_array(moments))

    @cached_property
    def _entries(self) -> Tensor:
        """The entries of the rows drawn, in single precision."""
        design, torch = self.design, self.design.torch
        x = design.dense_rows(self._drawn[0], torch.float32)
        if design.centre is not None:
            x -= design.centre
        return x


class _BinSums(ABC):
    """Sums of X over rows drawn, whose bins are known."""

    @abstractmethod
    def over_bins(self) -> Tensor:
        """Return the sums of share x, of the shares and of share score over each bin."""

    @abstractmethod
    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        """Return X' diag(weight) X about some row, and that row.

        The weight of a row is its share times what ``per_share`` says for its bin; ``summed`` is
        what `over_bins` has returned.
        """


class _TorchSums(_BinSums):
    """By products of matrices of copied rows."""

    def __init__(
        self, design: DeviceDesign, x: Tensor, place: Tensor, scores: Tensor, share: Tensor
    ):
        self.design, self.x = design, x
        self.place, self.scores, self.share = place, scores, share

    def over_bins(self) -> Tensor:
        x, torch = self.x, self.design.torch
        sums: Tensor = x.new_zeros((2 * _BINS, x.shape[1] + 2), dtype=torch.float64)
        for some, score, bins, part in _together(x, self.scores, self.place, self.share):
            onto = part.new_zeros((len(sums), len(some)))
            onto.scatter_(0, bins[None, :], part[None, :])
            own = some.double()
            sums += onto @ torch.cat([own, torch.ones_like(score[:, None]), score[:, None]], 1)
        return sums

    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        x, torch = self.x, self.design.torch
        weight = (self.share * self.design.small(per_share)[self.place]).float()
        moments: Tensor = x.new_zeros((x.shape[1],) * 2, dtype=torch.float64)
        for some, part in _together(x, weight):
            scaled = some * part.sqrt()[:, None]
            moments += (scaled.T @ scaled).double()
        return np.zeros(x.shape[1]), moments


class _CompiledSums(_BinSums):
    """By kernels that read the rows where they lie."""

    def __init__(
        self, design: DeviceDesign, rows: Tensor, place: Tensor, scores: Tensor, share: Tensor
    ):
        self.design, self.rows = design, rows
        self.place, self.scores, self.share = place, scores, share

    def over_bins(self) -> Tensor:
        torch, design = self.design.torch, self.design
        place, order = self.place.to(torch.int16).sort(stable=True)  # bin by bin
        numbers = torch.arange(2 * _BINS + 1, dtype=torch.int16, device=place.device)
        starts = torch.searchsorted(place, numbers)
        rows, share, scores = (part[order] for part in (self.rows, self.share, self.scores))
        return sums_in_bins(design.X, rows, share, scores, starts, design.centre)

    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        design, centre = self.design, self.design.units.centre
        weight = (self.share * design.small(per_share)[self.place]).float()
        # about the weighted mean, whose rounded value the rows are read from
        mean = per_share @ summed[:, :-2] / max(float(per_share @ summed[:, -2]), _TINY)
        shift = 0.0 if centre is None else centre
        middle = (mean + shift).astype(np.float32).astype(np.float64)
        middles = design.small(np.stack([middle, middle])).float()
        return middle - shift, drawn_moments(design.X, self.rows, weight, middles)


def _spaced(rows: Tensor, most: int) -> Tensor:
    """Evenly spaced ones of some rows, so many at the most."""
    return rows[:: -(-len(rows) // most)]


def _together(*vectors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Some of the rows at a time."""
    return zip(*(vector.split(_AT_ONCE) for vector in vectors), strict=True)


def _places(scores: Tensor) -> Tensor:
    """The bin of each score, about as in `toprank.objective.binned_curvature`."""
    some = scores[:: max(1, len(scores) // _SPREAD_SCORES)]
    reach, middle = SPREADS * some.std(correction=0), some.mean()
    lowest, highest = scores.aminmax()
    low, high = lowest.maximum(middle - reach), highest.minimum(middle + reach)
    width = ((high - low) / _BINS).clamp(min=_TINY)
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
            self._rows = RootRows(opened, self.task, prices_positives, self.data.is_sample)
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
