"""Tilted sums of rows that lie on a device: top, mass and moments, merged there.

Everything but the entries themselves is float64: scores, exponents and sums, so that float32
rows give the coefficients of a float64 fit to the same rows. A GPU reads the rows once, by a
Triton kernel (`device_kernels.py`); where there is none, torch reads them block by block. What
comes back to the host is as large as a coefficient vector, or a matrix of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from toprank._extras import has_triton, require
from toprank._numerics import FloatArray
from toprank.blocks.arrays import Units
from toprank.objective.histogram import BIN, BINS, Standard
from toprank.objective.sweep import EndPartial, Tilted

#: Entries of a block that is converted to float64: small for a cache, large for a GPU.
_BLOCK_ENTRIES = {"cpu": 1 << 17}
_BLOCK_ENTRIES_OF_A_GPU = 1 << 25
#: Rows that tell where the largest exponents lie, roughly.
_SAMPLE_ROWS = 4096
#: Masses within these bounds lost nothing: float64 reaches from 1e-308 to 1e308.
_ROOM = (1e-260, 1e260)
#: Columns up to which a tile of the kernel holds whole rows.
_WIDEST = 1024


class DeviceRows:
    """The rows of a tensor, with labels and weights beside them, and passes over them.

    Parameters
    ----------
    X : tensor of shape (n, d)
    positive : bool tensor of shape (n,)
    log_weight : float64 tensor of shape (n,), optional
    units : Units
        In what units the columns are read.
    """

    def __init__(self, X: Any, positive: Any, log_weight: Any, units: Units):
        self.torch = require("torch", "torch")
        self.X = X
        self.positive = positive
        self.log_weight = log_weight
        self.units = units
        #: About where the largest exponents of (positives, negatives) lie, by tilts.
        self._tops: dict[tuple[float, float], tuple[float, float]] = {}
        self.n_rows, self.n_features = X.shape
        entries = _BLOCK_ENTRIES.get(X.device.type, _BLOCK_ENTRIES_OF_A_GPU)
        self.block_rows = max(64, entries // max(1, self.n_features))

    @property
    def fused(self) -> bool:
        """Whether one kernel can read the rows, score them and sum them up."""
        X, torch = self.X, self.torch
        return bool(
            X.is_cuda
            and X.dtype in (torch.float32, torch.float64)
            and X.stride(1) == 1
            and 0 < self.n_features <= _WIDEST
            and self.n_rows > 0
            and has_triton()
        )

    def tilted(
        self, coef: FloatArray, tilts: tuple[tuple[float, float], ...], order: int = 1
    ) -> list[EndPartial]:
        """Return, for each end, the tilted sums of positives and negatives."""
        if self.n_rows == 0:
            d = self.n_features
            return [(Tilted.empty(d, order), Tilted.empty(d, order)) for _ in tilts]
        beta = self.vector(coef)
        if order == 1 and self.fused:
            return [self._fused_end(coef, beta, of_end) for of_end in tilts]
        ends = []
        for of_end in tilts:
            parts = [self._block_parts(*block, beta, of_end, order) for block in self.blocks()]
            ends.append(_on_host(_merged(self.torch.stack(parts)), self.n_features, order))
        return ends

    def _fused_end(self, coef: FloatArray, beta: Any, tilts: tuple[float, float]) -> EndPartial:
        """One read of X, relative to the tops of the last evaluation or of a sample."""
        tops = self._tops.pop(tilts, None) or self._sampled_tops(coef, tilts)
        end = self._read(beta, tilts, tops)
        if not self._is_sound(end):
            end = self._read(beta, tilts, self._exact_tops(coef, tilts))
        if self._is_sound(end):
            self._tops[tilts] = _log_masses(end)
        return end

    def _read(self, beta: Any, tilts: Any, tops: tuple[float, float]) -> EndPartial:
        from toprank.objective.device_kernels import tilted_parts

        rows = (self.X, self.positive, self.log_weight, beta, self._in_units)
        return _on_host(_merged(tilted_parts(*rows, tilts, tops)), self.n_features, 1)

    def _is_sound(self, end: EndPartial) -> bool:
        """Whether the sums have neither over- nor underflown; float64 goes to 1e308."""
        sound = [_ROOM[0] < part.mass < _ROOM[1] for part in end]
        return all(sound) or all(
            well or not there for well, there in zip(sound, self._classes, strict=True)
        )

    @cached_property
    def _classes(self) -> tuple[bool, bool]:
        """Whether there are positives, and negatives, of weight above zero."""
        held = self.positive | True if self.log_weight is None else self.log_weight > -np.inf
        return bool((self.positive & held).any()), bool((~self.positive & held).any())

    def _sampled_tops(self, coef: FloatArray, tilts: tuple[float, float]) -> tuple[float, float]:
        step = max(1, self.n_rows // _SAMPLE_ROWS)
        logs = None if self.log_weight is None else self.log_weight[::step]
        sample = DeviceRows(self.X[::step], self.positive[::step], logs, self.units)
        parts = [sample._block_parts(*block, sample.vector(coef), tilts, 1)
                 for block in sample.blocks()]  # fmt: skip
        return _log_masses(_on_host(_merged(self.torch.stack(parts)), self.n_features, 1))

    def _exact_tops(self, coef: FloatArray, tilts: tuple[float, float]) -> tuple[float, float]:
        scores = self.scores(coef)
        tops = []
        for tilt, members in zip(tilts, (self.positive, ~self.positive), strict=True):
            exponents = tilt * scores
            if self.log_weight is not None:
                exponents += self.log_weight
            top = float(exponents.where(members, -np.inf).max())
            tops.append(top if np.isfinite(top) else 0.0)
        return tops[0], tops[1]

    def _block_parts(self, rows: slice, block: Any, beta: Any, tilts: Any, order: int) -> Any:
        """One line a class: top, mass, moment and second moment of one block."""
        torch = self.torch
        scores, positive = block @ beta, self.positive[rows]
        lines = []
        for tilt, members in zip(tilts, (positive, ~positive), strict=True):
            exponents = tilt * scores
            if self.log_weight is not None:
                exponents = exponents + self.log_weight[rows]
            exponents = torch.where(members, exponents, -torch.inf)
            top = exponents.max()
            weight = torch.where(members & (top != -torch.inf), (exponents - top).exp(), 0.0)
            line = [top.reshape(1), weight.sum().reshape(1), weight @ block]
            if order == 2:
                scaled = block * weight.sqrt()[:, None]
                line.append((scaled.T @ scaled).reshape(-1))
            lines.append(torch.cat(line))
        return torch.stack(lines)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield (rows, dense float64 block in its units)."""
        centre, inverse = self._in_units
        for first in range(0, self.n_rows, self.block_rows):
            rows = slice(first, min(first + self.block_rows, self.n_rows))
            block = self.X[rows].double()
            if inverse is not None:
                block = block * inverse
            yield rows, block if centre is None else block - centre

    @property
    def _in_units(self) -> tuple[Any, Any]:
        """The centre, and one over the scale, on the device."""
        centre, scale = self.units.centre, self.units.scale
        return (
            None if centre is None else self.vector(centre),
            None if scale is None else self.vector(1.0 / scale),
        )

    def vector(self, values: FloatArray) -> Any:
        """Bring a small vector of the host to the device."""
        return self.torch.from_numpy(np.array(values, dtype=np.float64)).to(self.X.device)

    def scores(self, coef: FloatArray) -> Any:
        """Return X @ coef as a float64 tensor on the device."""
        torch, beta = self.torch, self.vector(coef)
        scores = torch.empty(self.n_rows, dtype=torch.float64, device=self.X.device)
        if self.fused:
            from toprank.objective.device_kernels import score_rows

            score_rows(self.X, beta, self._in_units, scores)
            return scores
        for rows, block in self.blocks():
            torch.mv(block, beta, out=scores[rows])
        return scores

    def counted(
        self, coef: FloatArray, weight: Any, standard: Standard, quanta: float
    ) -> tuple[FloatArray, int]:
        """Count standardised scores in the bins of a `ScoreHistogram`, in quanta of weight.

        Returns the quanta in each bin, negatives before positives, and below them the summed
        distances from the bins' centres, in bins; and how many rows lie beyond the bins.
        """
        if self.fused:
            from toprank.objective.device_kernels import counted_scores

            about = (-standard.centre, standard.spread), BINS, 1.0 / BIN, quanta
            rows = (self.X, self.positive, weight, self.vector(coef), self._in_units)
            counts = counted_scores(*rows, *about)
        else:
            u = (self.scores(coef) - standard.centre) / standard.spread
            counts = self._counted(u, weight, quanta)
        found = counts.cpu().numpy()
        return found[:-1].reshape(2, 2 * BINS).astype(np.float64), int(found[-1])

    def _counted(self, u: Any, weight: Any, quanta: float) -> Any:
        torch = self.torch
        place = u / BIN + BINS // 2
        within = (place > 0) & (place < BINS)
        held = torch.full_like(u, quanta) if weight is None else weight * quanta
        held, place, kind = held[within], place[within], self.positive[within]
        number = place.long()
        offset = held * (place - number - 0.5)
        number += BINS * kind
        counts = torch.zeros(4 * BINS + 1, dtype=torch.int64, device=u.device)
        counts.index_add_(0, number, held.long())
        counts.index_add_(0, number + 2 * BINS, offset.long())
        counts[-1] = len(u) - len(number)
        return counts

    def adjoint(self, v: Any) -> FloatArray:
        """Return X.T @ v for a tensor v of shape (n,) or (n, m)."""
        total = self.X.new_zeros((self.n_features, *v.shape[1:]), dtype=self.torch.float64)
        for rows, block in self.blocks():
            total += block.T @ v[rows]
        return np.asarray(total.cpu().numpy())

    def second_moments(self, weight: Any) -> FloatArray:
        """Return X.T @ diag(weight) @ X for weights that are not negative."""
        d = self.n_features
        total = self.X.new_zeros((d, d), dtype=self.torch.float64)
        for rows, block in self.blocks():
            scaled = block * weight[rows].sqrt()[:, None]
            total += scaled.T @ scaled
        return np.asarray(total.cpu().numpy())


def _log_masses(end: EndPartial) -> tuple[float, float]:
    """Logarithms of the masses of both classes; zero where there is none."""
    logs = [part.log_mass if 0 < part.mass < np.inf else 0.0 for part in end]
    return logs[0], logs[1]


def _merged(parts: Any) -> Any:
    """Merge lines (top, mass, moments) of shape (blocks, 2, m) over the blocks, to the top one."""
    tops = parts[:, :, 0]
    top = tops.amax(0)
    keep = (tops - top).exp().where(tops != -np.inf, 0.0)  # blocks without rows of the class
    sums = (parts[:, :, 1:] * keep[:, :, None]).sum(0)
    return require("torch", "torch").cat([top[:, None], sums], 1)


def _on_host(lines: Any, d: int, order: int) -> EndPartial:
    """The sums of positives and negatives as the solvers know them."""
    ends = []
    for line in lines.cpu().numpy():
        mass = float(line[1])
        second = line[2 + d : 2 + d + d * d].reshape(d, d).copy() if order == 2 else None
        top = float(line[0]) if mass else -np.inf
        ends.append(Tilted(line[2 : 2 + d].copy(), second, top, mass))
    return ends[0], ends[1]
