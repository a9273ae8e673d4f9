"""Sums of X over rows of a device that are drawn for a Hessian, by bins of their scores.

See `toprank.objective.binned_curvature`: these are the three things that are asked of X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign
from toprank.blocks.kernels_moments import drawn_moments, sums_in_bins
from toprank.objective.binned_curvature import SPREADS

if TYPE_CHECKING:
    from torch import Tensor

#: Bins of each class: the host sums over all pairs of them, which is what takes the time.
BINS_OF_A_CLASS = 128
#: Rows whose sums over bins are taken at once by torch.
_AT_ONCE = 1 << 15
_TINY = float(np.finfo(float).tiny)
#: Scores that tell their spread.
_SPREAD_SCORES = 1 << 16


class BinSums(ABC):
    """Sums of X over rows drawn, whose bins are known.

    ``summed`` are the sums of share x, of the shares and of share score over each bin.
    """

    summed: Tensor

    @abstractmethod
    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        """Return X' diag(weight) X about some row, and that row.

        The weight of a row is its share times what ``per_share`` says for its bin; ``summed`` are
        the sums over bins on the host.
        """


class TorchSums(BinSums):
    """By products of matrices of copied rows."""

    def __init__(
        self, design: DeviceDesign, x: Tensor, place: Tensor, scores: Tensor, share: Tensor
    ):
        self.design, self.x, self.place, self.share = design, x, place, share
        torch = design.torch
        self.summed = x.new_zeros((2 * BINS_OF_A_CLASS, x.shape[1] + 2), dtype=torch.float64)
        for some, score, bins, part in _together(x, scores, place, share):
            onto = part.new_zeros((len(self.summed), len(some)))
            onto.scatter_(0, bins[None, :], part[None, :])
            lines = [some.double(), torch.ones_like(score[:, None]), score[:, None]]
            self.summed += onto @ torch.cat(lines, 1)

    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        x, torch = self.x, self.design.torch
        weight = (self.share * self.design.small(per_share)[self.place]).float()
        moments: Tensor = x.new_zeros((x.shape[1],) * 2, dtype=torch.float64)
        for some, part in _together(x, weight):
            scaled = some * part.sqrt()[:, None]
            moments += (scaled.T @ scaled).double()
        return np.zeros(x.shape[1]), moments


class CompiledSums(BinSums):
    """By kernels that read the rows where they lie."""

    def __init__(
        self, design: DeviceDesign, rows: Tensor, place: Tensor, scores: Tensor, share: Tensor
    ):
        self.design, self.rows, self.place, self.share = design, rows, place, share
        torch = design.torch
        in_order, order = place.to(torch.int16).sort(stable=True)  # bin by bin
        numbers = torch.arange(2 * BINS_OF_A_CLASS + 1, dtype=torch.int16, device=place.device)
        starts = torch.searchsorted(in_order, numbers)
        rows, share, scores = (part[order] for part in (rows, share, scores))
        self.summed = sums_in_bins(design.X, rows, share, scores, starts, design.centre)

    def moments(self, per_share: FloatArray, summed: FloatArray) -> tuple[FloatArray, Tensor]:
        design, centre = self.design, self.design.units.centre
        weight = (self.share * design.small(per_share)[self.place]).float()
        # about the weighted mean, whose rounded value the rows are read from
        mean = per_share @ summed[:, :-2] / max(float(per_share @ summed[:, -2]), _TINY)
        shift = 0.0 if centre is None else centre
        middle = (mean + shift).astype(np.float32).astype(np.float64)
        middles = design.small(np.stack([middle, middle])).float()
        return middle - shift, drawn_moments(design.X, self.rows, weight, middles)


def _together(*vectors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Some of the rows at a time."""
    return zip(*(vector.split(_AT_ONCE) for vector in vectors), strict=True)


def bin_of_scores(scores: Tensor) -> Tensor:
    """The bin of each score, about as in `toprank.objective.binned_curvature`."""
    some = scores[:: max(1, len(scores) // _SPREAD_SCORES)]
    reach, middle = SPREADS * some.std(correction=0), some.mean()
    lowest, highest = scores.aminmax()
    low, high = lowest.maximum(middle - reach), highest.minimum(middle + reach)
    width = ((high - low) / BINS_OF_A_CLASS).clamp(min=_TINY)
    places: Tensor = ((scores - low) / width).clamp(0.0, BINS_OF_A_CLASS - 1.0).long()
    return places
